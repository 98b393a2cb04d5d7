"""Finds the form of request that a server takes, by sending it short ones as the load will."""

import time
from dataclasses import dataclass, replace
from typing import NoReturn

from tokenwatt_site.errors import ServerError
from tokenwatt_site.load.api import Prompt, dialect
from tokenwatt_site.load.api.chunk import error_message, parsed
from tokenwatt_site.load.control import Control
from tokenwatt_site.load.facts import UNCALIBRATED, Calibration
from tokenwatt_site.load.prompts import random_ids, random_text
from tokenwatt_site.load.stream import Stream
from tokenwatt_site.load.target import Target
from tokenwatt_site.method.rng import rng
from tokenwatt_site.method.trace import RequestTrace

_PROMPT_TOKENS = 32
_ANSWER_TOKENS = 16
_FEW_WORDS = 64
_MANY_WORDS = 576


@dataclass(frozen=True, slots=True)
class Form:
    """What the server takes."""

    ids_ok: bool
    ignore_eos_ok: bool
    lengths_ok: bool = True
    usage_ok: bool = True
    calibration: Calibration = UNCALIBRATED


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    trace: RequestTrace
    words: str
    """The server's own words about a failure."""

    @property
    def refused(self) -> bool:
        """Tell whether the refusal is in the status, not in the stream."""
        return self.status >= 400  # noqa: PLR2004


def find_form(
    control: Control,
    target: Target,
    vocab_size: int | None,
    max_context: int | None,
    notes: list[str],
) -> Form:
    """Return the form nearest to the wish that the server takes; say in ``notes`` what differs.

    Token ids fall back to text, and ``ignore_eos`` is dropped where it isn't taken. Where it is
    taken and the counts differ all the same, it is still sent and nothing is held to it.

    Raises:
        ServerError: it takes none of them.
    """
    form = Form(vocab_size is not None and target.api == "completions", target.ignore_eos)
    while True:
        tried = replace(target, ignore_eos=form.ignore_eos_ok, ask_usage=form.usage_ok)
        answer = _send(control, tried, _prompt(vocab_size if form.ids_ok else None), _ANSWER_TOKENS)
        if answer.trace.outcome == "ok":
            break
        if answer.trace.reason in ("short", "long"):
            notes.append(_inexact(answer.trace))
            form = replace(form, lengths_ok=False)
            break
        form = _fall_back(form, answer, notes) or _cannot(control, target, answer)
    n_prompt, source = answer.trace.n_prompt, answer.trace.n_source
    if source != "usage":
        notes.append(f"the server sends no usage: tokens are counted by {source}")
    if form.ids_ok:
        if n_prompt not in (None, _PROMPT_TOKENS):
            notes.append(f"the server counts {n_prompt} prompt tokens for {_PROMPT_TOKENS} ids")
        return form
    return replace(form, calibration=_calibrate(control, tried, max_context, notes))


def _fall_back(form: Form, answer: _Answer, notes: list[str]) -> Form | None:
    """Return the next simpler form; None if there is none."""
    if form.usage_ok and "stream_options" in answer.words:
        notes.append(f"usage is not asked for: the server refuses it ({answer.words})")
        return replace(form, usage_ok=False)
    unknown_field = answer.status == 422  # noqa: PLR2004 - any other refusal may be about the ids
    if form.ignore_eos_ok and answer.refused and (unknown_field or not form.ids_ok):
        notes.append(f"ignore_eos is not sent: the server refuses it ({answer.words})")
        return replace(form, ignore_eos_ok=False)
    if form.ids_ok:
        notes.append(f"prompts go as text: the server refuses token ids ({answer.words})")
        return replace(form, ids_ok=False)
    return None


def _calibrate(
    control: Control, target: Target, max_context: int | None, notes: list[str]
) -> Calibration:
    """Measure the tokens of a word and of the template from a short and a long prompt."""
    counts: list[int | None] = []
    sizes = (_FEW_WORDS, min(_MANY_WORDS, max(2 * _FEW_WORDS, (max_context or 4096) // 4)))
    for number, words in enumerate(sizes):
        text = random_text(words, rng(0, "calibration", number))
        # not fewer: some servers take no answer shorter than 16 tokens
        counts.append(_send(control, target, text, _ANSWER_TOKENS).trace.n_prompt)
    few, many = counts
    if few is None or many is None or many <= few:
        notes.append("prompts are text of one word a token asked for: the server counts no prompt")
        return UNCALIBRATED
    tokens_per_word = (many - few) / (sizes[1] - sizes[0])
    overhead_tokens = max(0.0, few - tokens_per_word * sizes[0])
    notes.append(
        f"prompts are text of random words, {tokens_per_word:.2f} tokens a word and "
        f"{overhead_tokens:.0f} around them: the asked lengths are met on average"
    )
    return Calibration(tokens_per_word, overhead_tokens)


def _prompt(vocab_size: int | None) -> Prompt:
    draw = rng(0, "preflight")
    if vocab_size is None:
        return random_text(_PROMPT_TOKENS, draw)
    return random_ids(_PROMPT_TOKENS, vocab_size, draw)


def _send(control: Control, target: Target, prompt: Prompt, max_tokens: int) -> _Answer:
    """Send one request; its answer goes through the stream that the load uses."""
    spoken = dialect(target.api)
    reply = control.ask("POST", target.base_url + spoken.PATH, target.body(prompt, max_tokens))
    now_s = time.monotonic()
    trace = RequestTrace(0, now_s, _PROMPT_TOKENS, max_tokens)
    stream = Stream(trace, b"", spoken, target.asked, lambda _: None)
    stream.head(reply.status)
    stream.body(reply.body, now_s)
    stream.end("complete", now_s)
    words = stream.message or error_message(parsed(reply.text[:4096]))
    return _Answer(reply.status, trace, target.without_key(words))


def _inexact(trace: RequestTrace) -> str:
    if trace.n_source == "chunks":
        return "answer lengths are not checked: the server sends no usage to check them by"
    return (
        f"answer lengths are not checked: the server gave {trace.n_output} tokens where "
        f"{trace.output_tokens} were asked for with ignore_eos"
    )


def _cannot(control: Control, target: Target, answer: _Answer) -> NoReturn:
    if answer.status == 404:  # noqa: PLR2004
        other = "chat" if target.api == "completions" else "completions"
        raise ServerError(
            f"{control.url} has no {target.api} for {target.model!r}: {answer.words}",
            f"try engine.api: {other}",
        )
    raise ServerError(
        f"the server at {control.url} doesn't answer a short {target.api} request: "
        f"{answer.trace.reason} ({answer.words})",
        "look into the server's log; engine.extra_body may ask for what it doesn't know",
    )
