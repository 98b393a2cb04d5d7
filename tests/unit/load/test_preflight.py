"""What a server is asked before any load, and the one message for each thing that can be wrong."""

import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import ServerError, TokenwattError, UsageError
from tokenwatt_site.load.facts import UNCALIBRATED, Calibration, ServerFacts
from tokenwatt_site.load.preflight import preflight

URL = "http://127.0.0.1:8000/v1"
MODELS = {"object": "list", "data": [{"id": "tiny", "max_model_len": 16384}]}


def spec(vocab_size: int | None = 2048, **engine: Any) -> Spec:
    return Spec.model_validate(
        {
            "name": "s",
            "engine": {"endpoint": URL, **engine},
            "model": {"name": "m", "vocab_size": vocab_size},
        }
    )


class Server:
    """A server of two tokens a word, whose ways can be changed; it remembers what it was asked."""

    def __init__(self, **changed: Any) -> None:
        self.ways: dict[str, Any] = {
            "models": MODELS,
            "refuse": lambda _: None,
            "usage": True,
            "template": 0,
            "answer": lambda asked: asked,
        } | changed
        self.asked: list[dict[str, Any]] = []
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if request.method == "POST":
            return self._post(json.loads(request.content))
        other = self.ways.get(request.url.path)
        if other is not None:
            return other if isinstance(other, httpx.Response) else httpx.Response(200, json=other)
        if request.url.path == "/v1/models":
            models = self.ways["models"]
            if isinstance(models, httpx.Response):
                return models
            return httpx.Response(200, json=models)
        return httpx.Response(404, json={"detail": "Not Found"})

    def _post(self, body: dict[str, Any]) -> httpx.Response:
        self.asked.append(body)
        refusal = self.ways["refuse"](body)
        if refusal is not None:
            if isinstance(refusal, httpx.Response):
                return refusal
            return httpx.Response(refusal[0], content=refusal[1])
        prompt = body.get("prompt") or body.get("input") or body["messages"][0]["content"]
        n_prompt = len(prompt) if isinstance(prompt, list) else 2 * len(prompt.split())
        if "input" in body:
            return self._respond(n_prompt, self.ways["answer"](body["max_output_tokens"]))
        n = self.ways["answer"](body["max_tokens"])
        chunks = [
            {
                "choices": [
                    {"index": 0, "text": "x", "delta": {"content": "x"}, "finish_reason": None}
                ]
            }
            for _ in range(n)
        ]
        chunks[-1]["choices"][0]["finish_reason"] = "length"
        if self.ways["usage"]:
            counts = {"prompt_tokens": n_prompt + self.ways["template"], "completion_tokens": n}
            chunks.append({"choices": [], "usage": counts})
        text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, text=text)

    def _respond(self, n_prompt: int, n: int) -> httpx.Response:
        usage = {"input_tokens": n_prompt, "output_tokens": n}
        response = {"usage": usage, "incomplete_details": {"reason": "max_output_tokens"}}
        events = [{"type": "response.output_text.delta", "delta": "x"}] * n
        events.append({"type": "response.incomplete", "response": response})
        text = "".join(f"data: {json.dumps(each)}\n\n" for each in events)
        return httpx.Response(200, headers={"content-type": "text/event-stream"}, text=text)


def ask(server: Callable[[httpx.Request], httpx.Response], asked: Spec, **more: Any) -> ServerFacts:
    return preflight(asked, URL, transport=httpx.MockTransport(server), **more)


def test_a_server_that_takes_everything_gives_no_notes() -> None:
    server = Server()
    assert ask(server, spec()) == ServerFacts("tiny", "", 16384, ids_ok=True)
    (asked,) = server.asked
    assert len(asked["prompt"]) == 32
    assert (asked["max_tokens"], asked["ignore_eos"], asked["stream"]) == (16, True, True)


@pytest.mark.parametrize(
    "path, body, version",
    [
        ("/version", {"version": "0.32.0"}, "0.32.0"),
        ("/props", {"build_info": "b7002-abc"}, "b7002-abc"),
        ("/get_server_info", {"version": "0.5.6"}, "0.5.6"),
        ("/version", {"version": "\x1b[31m"}, ""),
        ("/version", {"version": 3}, ""),
        ("/version", ["0.32.0"], ""),
    ],
)
def test_the_version_is_the_one_that_the_server_says(path: str, body: Any, version: str) -> None:
    assert ask(Server(**{path: body}), spec()).engine_version == version


@pytest.mark.parametrize(
    "entry, context",
    [
        ({"max_model_len": 4096}, 4096),
        ({"meta": {"n_ctx": 2048, "n_vocab": 2048}}, 2048),
        ({"context_length": 1024}, 1024),
        ({"max_model_len": None, "meta": None}, None),
        ({"max_model_len": "many"}, None),
    ],
)
def test_the_context_is_found_where_servers_put_it(entry: dict[str, Any], context: Any) -> None:
    server = Server(models={"data": [{"id": "tiny", **entry}]})
    assert ask(server, spec()).max_context == context


def test_a_workload_longer_than_the_context_is_noted() -> None:
    server = Server(models={"data": [{"id": "tiny", "max_model_len": 8192}]})
    (note,) = ask(server, spec()).notes
    assert "10,240 tokens" in note
    assert "8,192" in note


def test_a_server_that_is_silent_about_its_version_is_still_measured() -> None:
    server = Server()

    def silent(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/version":
            raise httpx.ReadTimeout("timed out")
        return server(request)

    assert ask(silent, spec()).engine_version == ""


def test_the_named_model_or_alias_is_used() -> None:
    models = {"data": [{"id": "big"}, {"id": "tiny", "aliases": ["t"]}]}
    assert ask(Server(models=models), spec(model="tiny")).model == "tiny"
    server = Server(models=models)
    assert ask(server, spec(model="t")).model == "t"
    assert server.asked[0]["model"] == "t"


def test_llamacpp_answers_to_any_name_which_is_noted() -> None:
    models = {"data": [{"id": "tiny", "owned_by": "llamacpp"}]}
    (note,) = ask(Server(models=models), spec()).notes
    assert "any model name" in note


def test_a_server_without_a_list_is_taken_by_the_name_of_the_spec() -> None:
    server = Server(models=httpx.Response(500, text="Internal Server Error"))
    facts = ask(server, spec(model="given"))
    assert (facts.model, facts.max_context) == ("given", None)
    assert "unchecked" in facts.notes[0]


def test_refused_ids_become_text_with_a_calibration() -> None:
    server = Server(
        template=10,
        refuse=lambda body: (
            (400, b'{"detail": "prompt must be a string"}')
            if isinstance(body["prompt"], list)
            else None
        ),
    )
    facts = ask(server, spec())
    assert not facts.ids_ok
    assert facts.calibration.tokens_per_word == pytest.approx(2)
    assert facts.calibration.overhead_tokens == pytest.approx(10)
    assert "refuses token ids (prompt must be a string)" in facts.notes[0]
    assert "2.00 tokens a word and 10 around them" in facts.notes[1]
    assert [len(asked["prompt"].split()) for asked in server.asked[1:]] == [32, 64, 576]


def test_ids_that_fail_inside_the_stream_become_text() -> None:
    error = b'data: {"error": {"message": "Token id 5 is out of vocabulary"}}\n\ndata: [DONE]\n\n'
    server = Server(refuse=lambda body: (200, error) if isinstance(body["prompt"], list) else None)
    facts = ask(server, spec())
    assert (facts.ids_ok, facts.ignore_eos_ok) == (False, True)
    assert "out of vocabulary" in facts.notes[0]


def test_422_drops_ignore_eos_and_keeps_the_ids() -> None:
    server = Server(
        refuse=lambda body: (
            (422, b'{"detail": "unexpected {\'ignore_eos\'}"}') if "ignore_eos" in body else None
        )
    )
    facts = ask(server, spec())
    assert (facts.ids_ok, facts.ignore_eos_ok) == (True, False)
    assert facts.notes == (
        "ignore_eos is not sent: the server refuses it (unexpected {'ignore_eos'})",
    )


def test_a_server_that_refuses_stream_options_is_not_asked_for_usage() -> None:
    words = b'{"message": "stream_options: Extra inputs are not permitted"}'
    server = Server(
        usage=False, refuse=lambda body: (422, words) if "stream_options" in body else None
    )
    facts = ask(server, spec())
    assert (facts.usage_ok, facts.ids_ok, facts.ignore_eos_ok) == (False, True, True)
    assert "Extra inputs" in facts.notes[0]


def test_a_server_that_takes_neither_is_still_measured() -> None:
    def refuse(body: dict[str, Any]) -> tuple[int, bytes] | None:
        if "ignore_eos" in body:
            return 422, b"{}"
        return (400, b"{}") if isinstance(body["prompt"], list) else None

    facts = ask(Server(refuse=refuse), spec())
    assert (facts.ids_ok, facts.ignore_eos_ok) == (False, False)


def test_a_server_that_ignores_ignore_eos_is_noted_and_not_held_to_it() -> None:
    facts = ask(Server(answer=lambda asked: max(1, asked - 6)), spec())
    assert (facts.ids_ok, facts.lengths_ok) == (True, False)
    assert "gave 10 tokens where 16 were asked for" in facts.notes[0]


def test_a_server_without_usage_is_noted() -> None:
    facts = ask(Server(usage=False), spec(vocab_size=None))
    assert facts.calibration == UNCALIBRATED
    assert facts.notes[0] == "the server sends no usage: tokens are counted by chunks"
    assert "counts no prompt" in facts.notes[1]


def test_without_usage_and_with_other_counts_lengths_are_not_checked() -> None:
    facts = ask(Server(usage=False, answer=lambda asked: asked // 2), spec())
    assert (facts.ignore_eos_ok, facts.lengths_ok) == (True, False)  # it is still asked for
    assert "no usage to check them by" in facts.notes[0]


def test_other_prompt_counts_are_noted() -> None:
    (note,) = ask(Server(template=1), spec()).notes
    assert note == "the server counts 33 prompt tokens for 32 ids"


def test_chat_sends_text() -> None:
    server = Server()
    facts = ask(server, spec(api="chat"))
    assert not facts.ids_ok
    assert all(request.url.path != "/v1/completions" for request in server.requests)


def test_a_spec_without_ignore_eos_asks_for_none() -> None:
    server = Server(answer=lambda _: 3)
    assert not ask(server, spec(ignore_eos=False)).ignore_eos_ok
    assert "ignore_eos" not in server.asked[0]


def failure(kind: type[TokenwattError], server: Any, asked: Spec, **more: Any) -> TokenwattError:
    with pytest.raises(kind) as failed:
        ask(server, asked, **more)
    assert failed.value.hint
    return failed.value


def raising(error: Exception) -> Callable[[httpx.Request], httpx.Response]:
    def fail(_: httpx.Request) -> httpx.Response:
        raise error

    return fail


HTML = httpx.Response(200, html="<html><body>Welcome to nginx!</body></html>")


@pytest.mark.parametrize(
    "server, what, hint",
    [
        (raising(httpx.ConnectError("[Errno 111] Connection refused")),
         f"nothing answers at {URL} ([Errno 111] Connection refused)", "start the server"),
        (raising(httpx.ConnectTimeout("timed out")), "nothing answers", "start the server"),
        (raising(httpx.ConnectError("[SSL: CERTIFICATE_VERIFY_FAILED] self-signed certificate")),
         "certificate of 127.0.0.1:8000 can't be verified", "engine.ca_file"),
        (raising(httpx.ConnectError("[SSL: WRONG_VERSION_NUMBER] wrong version number")),
         "speaks no TLS", "http://127.0.0.1:8000/v1"),
        (raising(httpx.ReadTimeout("")), "takes connections and doesn't answer", "log"),
        (raising(httpx.RemoteProtocolError("illegal status line")), "no valid HTTP answer", "port"),
        (Server(models=httpx.Response(401, json={"error": {"message": "no key"}})),
         "wants an API key: 401 (no key)", "engine.api_key_env"),
        (Server(models=httpx.Response(403)), "wants an API key: 403", "engine.api_key_env"),
        (Server(models=HTML), "no OpenAI-compatible API: its /models is no list", "port"),
        (Server(models={"hello": 1}), "no OpenAI-compatible API", "path of engine.endpoint"),
        (Server(models={"data": {"id": "tiny"}}), "no OpenAI-compatible API", "port"),
        (Server(models=httpx.Response(404, html="<html>Not Found</html>")), "web page", "port"),
        (Server(models=httpx.Response(404)), "lists no models, and the spec names none",
         "engine.model"),
        (Server(models=httpx.Response(503, json={"error": {"message": "Loading model"}})),
         "not ready (503: Loading model)", "wait"),
        (Server(models=httpx.Response(307, headers={"location": "https://a/v1/models"})),
         f"{URL}/models redirects to https://a/v1/models", "engine.endpoint"),
        (Server(models={"data": []}), "has 0 models: none", "engine.model"),
        (Server(models={"data": [{"id": "a"}, {"id": "b"}, {"name": "c"}, 7]}),
         "has 2 models: a, b", "engine.model"),
        (Server(refuse=lambda _: (500, b"out of memory")),
         "doesn't answer a short completions request: http_500 (out of memory)", "log"),
        (Server(refuse=lambda _: (404, b'{"detail": "Not Found"}')),
         "has no completions for 'tiny': Not Found", "engine.api: chat"),
        (Server(refuse=lambda _: (200, b"")), "completions request: empty", "log"),
        (Server(refuse=lambda _: (401, b"")), "wants an API key", "engine.api_key_env"),
        (Server(refuse=lambda _: httpx.Response(302, headers={"location": "/x"})),
         "completions redirects to /x", "engine.endpoint"),
    ],
)  # fmt: skip
def test_each_failure_has_its_message_and_next_step(server: Any, what: str, hint: str) -> None:
    error = failure(ServerError, server, spec())
    assert what in error.what
    assert hint in error.hint


def test_a_wrong_model_name_lists_what_the_server_has() -> None:
    many = {"data": [{"id": f"model-{i}"} for i in range(12)]}
    error = failure(ServerError, Server(models=many), spec(model="tny"))
    assert "has no model 'tny'; it has: model-0, model-1" in error.what
    assert "model-9 …" in error.what
    assert error.hint == "set engine.model to 'model-0'"


def test_a_wrong_model_name_is_wrong_on_llamacpp_too() -> None:
    models = {"data": [{"id": "tiny", "owned_by": "llamacpp"}]}
    assert "it has: tiny" in failure(ServerError, Server(models=models), spec(model="big")).what


def test_an_endpoint_without_v1_is_told_of_it() -> None:
    with pytest.raises(ServerError) as failed:
        preflight(
            spec(),
            "http://127.0.0.1:8000",
            transport=httpx.MockTransport(lambda _: httpx.Response(404)),
        )
    assert "http://127.0.0.1:8000/v1" in failed.value.hint


def test_a_refused_key_is_not_shown() -> None:
    server = Server(models=httpx.Response(401, json={"error": {"message": "bad key sesame"}}))
    asked = spec(api_key_env="MY_KEY")
    error = failure(ServerError, server, asked, environ={"MY_KEY": "sesame"})
    assert "refuses the API key with 401" in error.what
    assert "sesame" not in str(error)
    assert server.requests[0].headers["authorization"] == "Bearer sesame"


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(503, json={"error": {"message": "key Bearer sesame-1234 is busy"}}),
        httpx.Response(503, json={"error": {"message": "x" * 290 + "sesame-1234"}}),
        httpx.Response(307, headers={"location": "http://other/?key=sesame-1234"}),
    ],
)
def test_words_that_repeat_the_key_are_shown_without_it(answer: httpx.Response) -> None:
    asked = spec(api_key_env="MY_KEY")
    error = failure(ServerError, Server(models=answer), asked, environ={"MY_KEY": "sesame-1234"})
    assert "sesame" not in str(error)
    assert "…" in error.what


def test_a_name_that_could_not_be_shown_is_no_model() -> None:
    ids = ["evil\x1b]0;pwned\x07", "\ud800", "", "a\nb", "x" * 301, "tiny"]
    body = json.dumps({"data": [{"id": each} for each in ids]}).encode()
    server = Server(models=httpx.Response(200, content=body))
    assert ask(server, spec()).model == "tiny"


def test_where_a_server_redirects_to_is_shown_in_one_plain_line() -> None:
    server = Server(models=httpx.Response(302, headers={"location": b"/x\x1b[31m\x9by"}))
    assert failure(ServerError, server, spec()).what.isprintable()


def test_responses_are_asked_in_text_and_their_usage_comes_unasked() -> None:
    server = Server()
    facts = ask(server, spec(api="responses"))
    assert (facts.ids_ok, facts.ignore_eos_ok, facts.lengths_ok) == (False, True, True)
    assert facts.calibration == Calibration(2.0, 0.0)
    assert all(asked["max_output_tokens"] >= 16 for asked in server.asked)
    assert all("stream_options" not in asked for asked in server.asked)
    assert {request.url.path for request in server.requests if request.method == "POST"} == {
        "/v1/responses"
    }


def test_responses_drop_ignore_eos_where_the_server_does_not_know_it() -> None:
    def refuse(body: dict[str, Any]) -> tuple[int, bytes] | None:
        error = {"error": {"message": "Unknown parameter: 'ignore_eos'."}}
        return (400, json.dumps(error).encode()) if "ignore_eos" in body else None

    server = Server(refuse=refuse)
    facts = ask(server, spec(api="responses"))
    assert not facts.ignore_eos_ok
    assert "Unknown parameter" in " ".join(facts.notes)
    heedless = ask(Server(answer=lambda _: 3), spec(api="responses"))
    assert (heedless.ignore_eos_ok, heedless.lengths_ok) == (True, False)


def test_what_the_spec_gets_wrong_is_said_before_anything_is_sent() -> None:
    server = Server()
    failure(UsageError, server, spec(extra_body={"max_tokens": 1}))
    failure(UsageError, server, spec(api_key_env="MY_KEY"), environ={})
    assert server.requests == []


def test_a_vocabulary_above_the_servers_is_refused() -> None:
    models = {"data": [{"id": "tiny", "meta": {"n_vocab": 1024}}]}
    error = failure(UsageError, Server(models=models), spec())
    assert "2,048" in error.what
    assert "1,024" in error.what
    assert error.hint == "set model.vocab_size to 1024"
    same = {"data": [{"id": "tiny", "vocab_size": 2048}]}
    assert ask(Server(models=same), spec()).ids_ok


def test_a_proxy_before_another_machine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://user:secret@proxy:3128")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    with pytest.raises(UsageError, match="HTTP_PROXY puts a proxy before llm") as refused:
        preflight(spec(), "http://llm.example/v1", transport=httpx.MockTransport(Server()))
    assert "NO_PROXY" in refused.value.hint
    assert "secret" not in str(refused.value)
    (note,) = ask(Server(), spec()).notes
    assert note == "HTTP_PROXY is set and not used: requests go straight to 127.0.0.1:8000"
