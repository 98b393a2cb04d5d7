"""What is a token event and what isn't: roles, empty text, reasoning, tool calls, choices."""

from typing import Any

from tokenwatt_site.load.conformance.case import CHOICES, Case, Truth, failed, nothing
from tokenwatt_site.load.conformance.script import GAP_S, LAST_S, Script, event, sent, tokens
from tokenwatt_site.load.conformance.writer import DONE, Writer, named, usage_of

CHAT = ("chat",)
RESPONSES = ("responses",)
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "f", "parameters": {"type": "object", "properties": {}}},
}


def _delta(finish: str | None = None, **fields: Any) -> bytes:
    return event({"choices": [{"index": 0, "delta": fields, "finish_reason": finish}]})


def _role(content: str | None, at_s: float = 0.005) -> Case:
    name = "role-null" if content is None else "role-empty"

    def script(writer: Writer) -> Script:
        return sent([(at_s, _delta(role="assistant", content=content)), *writer.whole()])

    shown = "null" if content is None else '""'
    return Case(name, f"the role comes at once, with content {shown}", script, apis=CHAT)


def _role_with_token(writer: Writer) -> Script:
    (first_s, first), *others = writer.whole()
    return sent([(first_s, _delta(role="assistant", content=None) + first), *others])


def _reasoning(**fields: Any) -> Script:
    chat = Writer("chat")
    thought = [_delta(**fields)] * 4
    return sent(tokens(*thought, *[chat.token()] * 3, chat.last(finish="stop")))


def _calls(finish: str) -> Script:
    call = {"index": 0, "function": {"arguments": "{"}}
    first = {"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}
    deltas = [_delta(tool_calls=[first]), *[_delta(tool_calls=[call])] * 7]
    deltas[-1] += _delta(finish) + Writer("chat").usage(8) + DONE
    return sent(tokens(*deltas))


def _second_choice(writer: Writer) -> Script:
    """Two answers in turn, 16 tokens in all."""
    both = writer.token() + writer.token().replace(b'"index": 0', b'"index": 1')
    ends = writer.token("", "length") + writer.usage(16) + DONE
    return sent(tokens(*[both] * 7, both + ends))


def _usage_a_choice(writer: Writer) -> Script:
    """Two answers, each with a usage of its own as llama.cpp sends them."""
    both = writer.token() + writer.token().replace(b'"index": 0', b'"index": 1')
    end = writer.token("", "length", **usage_of(8))
    return sent(tokens(*[both] * 7, both + end + end.replace(b'"index": 0', b'"index": 1') + DONE))


def _responses_reasoning(writer: Writer) -> Script:
    thought = named("response.reasoning_text.delta", delta="hm")
    return sent(tokens(*[thought] * 4, *[writer.token()] * 3, writer.last()))


def _responses_noise(writer: Writer) -> Script:
    """Send what frames an answer: 5 ms after the request, and around its end."""
    opening = b"".join(
        [
            named("response.created", response={"error": None, "usage": None}),
            named("response.in_progress", response={"error": None, "usage": None}),
            named("response.output_item.added", item={"type": "message", "content": []}),
            named("response.content_part.added", part={"type": "output_text", "text": ""}),
        ]
    )
    closing = named("response.output_text.done", text="xxxxxxxx")
    *first, last = [writer.token()] * 8
    body = tokens(*first, last + closing + writer.end(8, "length"))
    return sent([(0.005, opening), *body])


def _responses_call(writer: Writer) -> Script:
    item = {"type": "function_call", "name": "f", "arguments": ""}
    name = named("response.output_item.added", item=item)
    part = named("response.function_call_arguments.delta", delta="{")
    usage = {"input_tokens": 5, "output_tokens": 8}
    done = {"error": None, "output": [item], "usage": usage}
    del writer
    end = named("response.completed", response=done)
    return sent(tokens(name, *[part] * 6, part + end))


TOKEN_EVENTS = (
    _role(""),
    _role(None),
    Case(
        "role-with-token",
        "the role's chunk in one read with the first token",
        _role_with_token,
        apis=CHAT,
    ),
    Case(
        "empty-first-token",
        "the first token decodes to nothing",
        lambda w: sent(tokens(w.token(""), *[w.token()] * 6, w.last())),
    ),
    Case(
        "reasoning-content",
        "four tokens of reasoning_content, then content",
        lambda _: _reasoning(reasoning_content="hm"),
        Truth(answer_s=0.50),
        apis=CHAT,
    ),
    Case(
        "reasoning",
        "four tokens of reasoning, each with the role and empty content, then content",
        lambda _: _reasoning(reasoning="hm", content="", role="assistant"),
        Truth(answer_s=0.50),
        apis=CHAT,
    ),
    Case(
        "reasoning",
        "four deltas of reasoning, then text",
        _responses_reasoning,
        Truth(answer_s=0.50),
        apis=RESPONSES,
    ),
    Case(
        "framing-events",
        "created, in_progress, item and part events 5 ms after the request; done events at the end",
        _responses_noise,
        apis=RESPONSES,
    ),
    Case(
        "tool-calls",
        "tools were offered: the answer is a call, finish_reason tool_calls",
        lambda _: _calls("tool_calls"),
        apis=CHAT,
        extra={"tools": [TOOL]},
    ),
    Case(
        "tool-calls",
        "tools were offered: the answer is a call",
        _responses_call,
        apis=RESPONSES,
        extra={"tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}}]},
    ),
    Case(
        "tool-calls-unasked",
        "finish_reason tool_calls though no tools were offered",
        lambda _: _calls("tool_calls"),
        failed("finish_tool_calls", 8, "usage"),
        apis=CHAT,
    ),
    Case(
        "filtered",
        "8 tokens, then finish_reason content_filter",
        lambda w: sent(tokens(*[w.token()] * 7, w.last(8, "content_filter"))),
        failed("finish_content_filter", 8, "usage"),
        apis=CHOICES,
    ),
    Case(
        "hidden-tokens",
        "no text at all, a usage of 8 tokens",
        lambda w: sent([(0.3, w.end(8, "length"))]),
        nothing("empty", 8, "usage", end_s=0.30),
    ),
    Case(
        "no-tokens",
        "finish_reason stop and a usage of 0 tokens",
        lambda w: sent([(0.3, w.end(0))]),
        nothing("empty", 0, "usage", end_s=0.30),
    ),
    Case(
        "two-choices",
        "two choices in turn, one usage for both",
        _second_choice,
        failed("choices", 16, "usage", lenient=True),
        apis=CHOICES,
    ),
    Case(
        "two-choices-two-usages",
        "two choices in turn, each with its own usage",
        _usage_a_choice,
        failed("choices", 16, "usage", lenient=True),
        apis=CHOICES,
    ),
    Case(
        "buffered",
        "a proxy that holds the whole stream back until its end",
        lambda w: sent([(LAST_S, b"".join(piece for _, piece in w.whole()))]),
        Truth(ttft_s=LAST_S, tpot_s=None, coalesced=True),
    ),
    Case(
        "buffered-in-part",
        "a proxy that passes four events on at a time: half of the gaps are nothing",
        lambda w: sent([(0.3, w.token() * 4), (0.5, w.token() * 3 + w.last())]),
        Truth(tpot_s=4 * GAP_S / 7, end_s=0.50),
    ),
)
