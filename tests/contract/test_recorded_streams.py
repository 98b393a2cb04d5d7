"""Streams that real servers and providers sent, decoded to what they say of themselves.

The captures are whole HTTP answers with the times of their reads: they are played through the
client, read by read. The providers' recordings are bodies without times.
What has no usage, several choices, an error or no end stands in a table, counted by hand.
"""

import json
import os
import re
from array import array
from functools import cache
from pathlib import Path
from typing import Any

import httptools
import pytest
from ruamel.yaml import YAML

from tests.support.scripted import Do, ScriptedServer
from tests.support.shared import ROOT, shared_path
from tests.support.virtual_loop import MemoryConnector, VirtualClock, run_virtual
from tokenwatt_site.load.api import DIALECTS, dialect
from tokenwatt_site.load.player import Played, play
from tokenwatt_site.load.stream import Stream
from tokenwatt_site.load.target import Target
from tokenwatt_site.method.outcome import Asked
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.trace import RequestTrace

SHARED = ROOT / os.environ.get("TOKENWATT_SHARED", "../shared")
CAPTURES, RECORDED = SHARED / "captures", SHARED / "data" / "sse"
WHOLE = -1

# engine/case: (reason, tokens, source), counted by hand
BY_HAND: dict[str, tuple[str, int, str]] = {
    **{
        f"llama-cpp-python-0.3.36/{case}": ("", n, "chunks")
        for case, n in {
            "chat-stream": 8,
            "chat-stream-ignore-eos-64": 64,
            "chat-stream-usage": 8,
            "completion-stream": 8,
            "completion-stream-add-special-false": 8,
            "completion-stream-ignore-eos-64": 64,
            "completion-stream-min-tokens": 32,
            "completion-stream-n2": 4,
            "completion-stream-return-token-ids": 4,
            "completion-stream-stop": 1,
            "completion-stream-usage": 8,
            "completion-stream-usage-continuous": 8,
            "err-unknown-model": 8,
            "err-unknown-model-chat": 8,
        }.items()
    },
    "llama-cpp-python-0.3.36/completion-stream-logprobs": ("", 4, "ids"),
    "llama-cpp-python-0.3.36/err-chat-too-long": ("empty", 0, "chunks"),
    **{
        f"{engine}/chat-stream": ("", 8, "chunks")
        for engine in (
            "llamacpp-smollm2-135m",
            "llamacpp-xllamacpp-2026.10.11549",
            "vllm-0.32.0",
            "xpyd-sim-0.5.0",
        )
    },
    "vllm-0.32.0/completion-stream": ("", 8, "chunks"),
    "xpyd-sim-0.5.0/completion-stream": ("", 8, "chunks"),
    **{
        f"{engine}/completion-stream-{case}": ("choices", n, "usage")
        for engine in (
            "llamacpp-smollm2-135m",
            "llamacpp-xllamacpp-2026.10.11549",
            "vllm-0.32.0",
        )
        for case, n in (("ids-batch", 16), ("n2", 8))
    },
    "xpyd-sim-0.5.0/completion-stream-n2": ("choices", 8, "usage"),
    "vllm-0.32.0/err-token-id-out-of-vocab": ("error", 0, "chunks"),
    "transformers-serve-5.19.0/err-chat-too-long": ("truncated", 0, "chunks"),
    "llamacpp-smollm2-135m/err-empty-prompt": ("empty", 0, "usage"),
    "llamacpp-xllamacpp-2026.10.11549/err-empty-prompt": ("empty", 0, "usage"),
    "xpyd-sim-0.5.0/max-tokens-0": ("empty", 0, "usage"),
}

# a provider's file: (reason, tokens, source, token events), counted by hand
RECORDED_BY_HAND: dict[str, tuple[str, int, str, int]] = {
    "envoy-ai-gateway/chat-streaming-web-search.yaml": ("", 23, "chunks", 23),
    "envoy-ai-gateway/chat-streaming.yaml": ("", 48, "chunks", 48),
    "envoy-ai-gateway/completion-streaming.yaml": ("", 25, "chunks", 25),
    "tgi_snapshots/test_completion_prompts__test_chat_hfhub_nousage.json": ("", 2, "chunks", 2),
    "tgi_snapshots/test_completion_prompts__test_chat_openai_nousage.json": ("", 2, "chunks", 2),
    "tgi_snapshots/"
    "test_tools_llama__test_flash_llama_grammar_tools_sea_creatures_stream_auto.json": (
        *("", 20, "chunks", 20),
    ),
    # four prompts at once, 10 tokens each, a usage a choice
    "tgi_snapshots/test_completion_prompts__test_flash_llama_completion_many_prompts_stream.json": (
        *("choices", 40, "usage", 40),
    ),
    # 100 tokens of hidden reasoning reach the limit: no text at all
    "envoy-ai-gateway/chat-streaming-detailed-usage.yaml": ("empty", 100, "usage", 0),
    # two chunks of reasoning, finish_reason length, then an error object with the usage
    "pydantic-ai_cassettes/test_openrouter__test_openrouter_stream_error.yaml": (
        *("error", 10, "usage", 2),
    ),
}
# what is recorded beside streams of our dialects
OTHERS: dict[str, str] = {
    **dict.fromkeys(
        [
            "envoy-ai-gateway/azure-chat-basic.yaml",
            "envoy-ai-gateway/chat-bad-request.yaml",
            "envoy-ai-gateway/chat-unknown-model.yaml",
            "envoy-ai-gateway/completion-bad-request.yaml",
            "envoy-ai-gateway/completion-token-batch.yaml",
            "pydantic-ai_cassettes/test_openrouter__test_openrouter_errors_raised.yaml",
            "pydantic-ai_cassettes/test_openrouter__test_openrouter_with_reasoning.yaml",
            "tgi_snapshots/test_completion_prompts__test_flash_llama_completion_many_prompts.json",
            "tgi_snapshots/test_completion_prompts__test_flash_llama_completion_single_prompt.json",
        ],
        "an answer in one piece",
    ),
    **dict.fromkeys(
        [
            "vercel-ai/cohere__cohere-empty-tool-call.chunks.txt",
            "vercel-ai/cohere__cohere-reasoning.chunks.txt",
            "vercel-ai/cohere__cohere-text.chunks.txt",
            "vercel-ai/cohere__cohere-tool-call.chunks.txt",
        ],
        "an API of its own",
    ),
}


def request_of(answer: Path) -> bytes:
    return answer.with_name(answer.name.replace(".response.", ".request.")).read_bytes()


def is_stream(answer: Path) -> bool:
    """Long requests are recorded in part: their answers tell."""
    request, head = request_of(answer), answer.read_bytes().partition(b"\r\n\r\n")[0]
    asked = request.startswith(b"POST") and re.search(rb'"stream": ?true', request)
    return bool(asked) or b"text/event-stream" in head


def case_of(answer: Path) -> str:
    return f"{answer.parent.name}/{answer.name.removesuffix('.response.http')}"


STREAMED = [path for path in sorted(CAPTURES.glob("*/*.response.http")) if is_stream(path)]


def test_the_captures_are_there() -> None:
    shared_path("captures")
    assert len(STREAMED) > 100
    assert set(BY_HAND) <= {case_of(answer) for answer in STREAMED}


class Body:
    """The body of an HTTP answer, put together."""

    def __init__(self, answer: bytes) -> None:
        self.data = b""
        httptools.HttpResponseParser(self).feed_data(answer)

    def on_body(self, data: bytes) -> None:
        self.data += data


def said(body: bytes) -> int | None:
    """Return the output tokens by the last usage of the stream, summed over its choices."""
    found: dict[int, int] = {}
    for line in re.findall(rb"^data: ?(\{.*\})\r?$", body, re.MULTILINE):
        chunk = json.loads(line)
        usage = chunk.get("usage") or (chunk.get("response") or {}).get("usage")
        if usage:
            choices = chunk.get("choices")
            tokens = usage.get("completion_tokens", usage.get("output_tokens"))
            found[choices[0]["index"] if choices else WHOLE] = tokens
    return found.get(WHOLE, sum(found.values())) if found else None


def replayed(answer: Path) -> Played:
    """Play one request whose answer comes in the reads that were recorded."""
    raw, request = answer.read_bytes(), request_of(answer)
    times = json.loads(Path(str(answer).replace(".response.http", ".times.json")).read_bytes())
    steps: list[tuple[float, bytes | Do]] = []
    for t_s, size in times["recv"]:
        steps.append((t_s, raw[:size]))
        raw = raw[size:]
    steps.append((times["recv"][-1][0], Do.HANG_UP))
    api = "chat" if b"/chat/" in request.split(b"\r\n")[0] else "completions"
    exact = re.search(rb'"ignore_eos": ?true', request) is not None
    asked = int(match[1]) if (match := re.search(rb'"max_tokens": ?(\d+)', request)) else 16

    async def run() -> Played:
        clock = VirtualClock()
        return await play(
            Target("http://server/v1", api, "m", ignore_eos=exact),
            Schedule(array("d", [0.0]), array("q", [5]), array("q", [asked]), 0, 1.0),
            lambda _: "hi",
            clock,
            MemoryConnector(ScriptedServer(lambda *_: steps)),
            lambda *_: False,
            clock.now() + 1,
        )

    return run_virtual(run())


@pytest.mark.parametrize("answer", [pytest.param(path, id=case_of(path)) for path in STREAMED])
def test_a_capture_is_what_the_server_says(answer: Path) -> None:
    (trace,) = replayed(answer).traces
    status = int(answer.read_bytes().split(b" ", 2)[1])
    usage = said(Body(answer.read_bytes()).data)
    assert trace.status == status
    if status >= 400:
        assert (trace.outcome, trace.reason) == ("failed", f"http_{status}")
        return
    reason, n, source = BY_HAND.get(case_of(answer), ("", usage, "usage"))
    assert usage in (None, n)
    assert (trace.n_output, trace.n_source) == (n, source)
    if "too-long" not in answer.name or reason:  # those are cut where the context ends
        assert (trace.outcome, trace.reason) == ("failed" if reason else "ok", reason)
    if source != "usage":
        assert len(trace.events_s) == n


def recordings() -> list[Any]:
    return [
        pytest.param(path, id=path.relative_to(RECORDED).as_posix())
        for path in sorted(RECORDED.glob("*/*"))
    ]


@cache
def bodies(path: Path) -> list[tuple[str, bytes]]:
    """Return the streams of a recording in our dialects: (api, body)."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".yaml":
        found = [_cassette(each) for each in YAML(typ="safe").load(text)["interactions"]]
        streams = [(url, body) for url, body in found if "data:" in body]
    else:
        chunks = json.loads(text) if path.suffix == ".json" else map(json.loads, text.splitlines())
        chunks = [chunk for chunk in ([chunks] if isinstance(chunks, dict) else chunks) if chunk]
        if not all("choices" in chunk for chunk in chunks) or len(chunks) == 1:
            return []
        url = "/completions" if "text_completion" in text else "/chat/completions"
        streams = [(url, "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks))]
    return [(api, body.encode()) for url, body in streams if (api := _api_of(url))]


def _api_of(url: str) -> str:
    paths = {"/chat/completions": "chat", "/completions": "completions", "/responses": "responses"}
    return next((api for path, api in paths.items() if path in url), "")


def _cassette(interaction: dict[str, Any]) -> tuple[str, str]:
    request, body = interaction["request"], interaction["response"].get("body") or ""
    text = body.get("string", "") if isinstance(body, dict) else body
    return request.get("url") or request["uri"], text if isinstance(text, str) else text.decode()


def test_every_recording_is_a_stream_of_ours_or_known_not_to_be() -> None:
    shared_path("data/sse")
    found = {param.id: bodies(param.values[0]) for param in recordings()}
    assert {name for name, streams in found.items() if not streams} == OTHERS.keys()
    assert sum(map(len, found.values())) >= 30
    assert {api for streams in found.values() for api, _ in streams} == set(DIALECTS)
    assert RECORDED_BY_HAND.keys() <= found.keys()


def read_whole(api: str, body: bytes, size: int) -> Stream:
    """Read a body in pieces of ``size`` bytes; finished as its end says, of any length."""
    trace = RequestTrace(0, 0.0, 5, 16)
    asked = Asked(ignore_eos=False, tools=True)
    stream = Stream(trace, b"", dialect(api), asked, lambda _: None)
    stream.sent(0.0)
    stream.head(200)
    for place in range(0, len(body), size):
        stream.body(body[place:][:size], 0.1 + place / len(body))
    stream.end("complete", 2.0)
    return stream


@pytest.mark.parametrize("size", [2**20, 997])
@pytest.mark.parametrize("path", recordings())
def test_a_recording_is_what_its_usage_says(path: Path, size: int) -> None:
    name = path.relative_to(RECORDED).as_posix()
    for api, body in bodies(path):
        usage = said(body)
        told = RECORDED_BY_HAND.get(name, ("", usage, "usage", None))
        trace = read_whole(api, body, size).trace
        assert (trace.reason, trace.n_output, trace.n_source) == told[:3]
        assert usage in (None, trace.n_output)
        assert len(trace.events_s) == told[3] if told[3] is not None else trace.events_s
        assert trace.finish


def test_a_provider_error_inside_a_stream_is_seen_with_its_words() -> None:
    path = shared_path(
        "data/sse/pydantic-ai_cassettes/test_openrouter__test_openrouter_stream_error.yaml"
    )
    ((api, body),) = bodies(path)
    assert read_whole(api, body, 2**20).message == "Token limit reached"
