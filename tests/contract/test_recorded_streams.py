"""Streams that real servers and providers sent, decoded to what they say of themselves.

The captures are whole HTTP answers with the times of their reads: they are played through the
client, read by read. The providers' recordings are bodies: the dialect alone reads them.
What has no usage, several choices, an error or no end stands in a table, counted by hand.
"""

import json
import os
import re
from array import array
from pathlib import Path
from typing import Any

import httptools
import pytest
from ruamel.yaml import YAML

from tests.support.scripted import Do, ScriptedServer
from tests.support.shared import ROOT, shared_path
from tests.support.virtual_loop import MemoryConnector, VirtualClock, run_virtual
from tokenwatt_site.load.api import dialect
from tokenwatt_site.load.player import Played, play
from tokenwatt_site.load.sse import SseDecoder
from tokenwatt_site.load.target import Target
from tokenwatt_site.method.outcome import StreamFacts, count_tokens
from tokenwatt_site.method.schedule import Schedule

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

# a provider's file: token events, where no usage tells
EVENTS_BY_HAND: dict[str, int] = {
    "envoy-ai-gateway/chat-streaming-web-search.yaml": 23,
    "envoy-ai-gateway/chat-streaming.yaml": 48,
    "envoy-ai-gateway/completion-streaming.yaml": 25,
    "tgi_snapshots/test_completion_prompts__test_chat_hfhub_nousage.json": 2,
    "tgi_snapshots/test_completion_prompts__test_chat_openai_nousage.json": 2,
    "tgi_snapshots/"
    "test_tools_llama__test_flash_llama_grammar_tools_sea_creatures_stream_auto.json": 20,
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
    """Return the completion tokens by the last usage of the stream, summed over its choices."""
    found: dict[int, int] = {}
    for line in re.findall(rb"^data: ?(\{.*\})\r?$", body, re.MULTILINE):
        chunk = json.loads(line)
        if chunk.get("usage"):
            choices = chunk.get("choices")
            found[choices[0]["index"] if choices else WHOLE] = chunk["usage"]["completion_tokens"]
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


def bodies(path: Path) -> list[tuple[str, bytes]]:
    """Return the streams of a recording of chat or completions: (api, body)."""
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
    return [
        ("chat" if "/chat/" in url else "completions", body.encode())
        for url, body in streams
        if "/completions" in url
    ]


def _cassette(interaction: dict[str, Any]) -> tuple[str, str]:
    request, body = interaction["request"], interaction["response"].get("body") or ""
    text = body.get("string", "") if isinstance(body, dict) else body
    return request.get("url") or request["uri"], text if isinstance(text, str) else text.decode()


def test_the_recordings_are_there() -> None:
    shared_path("data/sse")
    assert sum(bool(bodies(param.values[0])) for param in recordings()) >= 20


@pytest.mark.parametrize("path", recordings())
def test_a_recording_counts_what_its_usage_says(path: Path) -> None:
    name = path.relative_to(RECORDED).as_posix()
    for api, body in bodies(path):
        facts, sse = StreamFacts(), SseDecoder()
        for event in [*sse.feed(body), *sse.close()]:
            dialect(api).read(*event, facts)
        assert not facts.malformed
        assert facts.finish or facts.error
        usage = said(body)
        if usage is None:
            assert (facts.events, count_tokens(facts)[0]) == (EVENTS_BY_HAND[name],) * 2
        else:
            assert name not in EVENTS_BY_HAND
            assert count_tokens(facts) == (usage, "usage")


def test_a_provider_error_inside_a_stream_is_seen() -> None:
    path = shared_path(
        "data/sse/pydantic-ai_cassettes/test_openrouter__test_openrouter_stream_error.yaml"
    )
    ((api, body),) = bodies(path)
    facts = StreamFacts()
    for event in SseDecoder().feed(body):
        dialect(api).read(*event, facts)
    assert (facts.error, facts.message, facts.events) == (True, "Token limit reached", 2)
