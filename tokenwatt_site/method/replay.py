"""A recorded trace: when requests came and how long they were, from the text of a file.

Three forms, told apart by their first line:

- Azure LLM inference traces, CSV: ``TIMESTAMP,ContextTokens,GeneratedTokens``
- Mooncake traces, JSONL: ``timestamp`` (ms), ``input_length``, ``output_length`` and
  ``hash_ids``, one a block of 512 prompt tokens; equal ids stand for equal blocks
- our own, JSONL: ``t_s``, ``input_tokens``, ``output_tokens``
"""

import datetime as dt
import hashlib
import json
from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from tokenwatt_site.documents.jsonfile import is_array, is_object
from tokenwatt_site.documents.spec_workload import LONGEST_TOKENS
from tokenwatt_site.documents.tracefile import TraceFile
from tokenwatt_site.errors import UsageError

Form = Literal["azure", "mooncake", "own"]

BLOCK_TOKENS = 512
"""Prompt tokens that one of Mooncake's hash ids stands for; the last block of a prompt is cut."""
MAX_REQUESTS = 1_000_000
_AZURE = ("timestamp", "contexttokens", "generatedtokens")
_HEAD = ("name", "sha256", "form", "raised")
_FARTHEST_S = 1e11
_SHOWN = 60
_MOST_ID = 2**63
_MOST_DIGITS = 20
_FORMS = (
    "a trace is an Azure LLM CSV (TIMESTAMP,ContextTokens,GeneratedTokens), a Mooncake JSONL"
    " (timestamp, input_length, output_length, hash_ids) or a JSONL of t_s, input_tokens,"
    " output_tokens"
)


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """Recorded requests in the order of their arrival; all columns have the same length."""

    name: str
    sha256: str
    """Of the file."""
    form: Form
    at_s: "array[float]"
    """Seconds after the first one, ascending."""
    input_tokens: "array[int]"
    output_tokens: "array[int]"
    blocks: tuple[tuple[int, ...], ...] = ()
    """Ids of each prompt's blocks of 512 tokens; empty where the trace has none."""
    raised: int = 0
    """Recorded lengths of 0 tokens, which were raised to 1."""

    def __len__(self) -> int:
        """Return the number of requests."""
        return len(self.at_s)

    @property
    def rate_rps(self) -> float:
        """The mean rate in requests/s: n − 1 gaps over the time that they take."""
        return (len(self) - 1) / self.at_s[-1]


@dataclass(frozen=True, slots=True)
class _Row:
    at_s: float
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...] = ()


def trace_of(file: TraceFile | None) -> Trace | None:
    """Parse a trace file; None stays None.

    Raises:
        UsageError: no known form, or a line that isn't a request; the message names file and line.
    """
    if file is None:
        return None
    try:
        text = file.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        bad = file.data.count(b"\n", 0, error.start) + 1
        raise _fault(file, bad, "not UTF-8", _FORMS) from None
    lines = ((number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip())
    first = next(lines, None)
    if first is None:
        raise UsageError(f"{file.path}: the file is empty", _FORMS)
    form, parse = _sniff(file, *first)
    rows = [] if form == "azure" else [_parsed(file, parse, *first)]
    for number, line in lines:
        if len(rows) == MAX_REQUESTS:
            raise _fault(file, number, f"more than {MAX_REQUESTS:,} requests", "shorten the trace")
        rows.append(_parsed(file, parse, number, line))
    return _trace(file, form, rows)


def trace_rows(trace: Trace) -> list[dict[str, Any]]:
    """Return the lines of ``trace.jsonl.gz``: what the trace is, then its requests in our form."""
    head: dict[str, Any] = {name: getattr(trace, name) for name in _HEAD}
    rows: list[dict[str, Any]] = [
        {"t_s": at_s, "input_tokens": inputs, "output_tokens": outputs}
        for at_s, inputs, outputs in zip(
            trace.at_s, trace.input_tokens, trace.output_tokens, strict=True
        )
    ]
    for row, blocks in zip(rows, trace.blocks, strict=False):
        row["hash_ids"] = list(blocks)
    return [head, *rows]


def trace_of_rows(rows: Iterable[Mapping[str, Any]]) -> Trace | None:
    """Return the trace of such lines; None of none.

    Raises:
        ValueError: more of them than a trace may have requests.
    """
    lines = iter(rows)
    head = next(lines, None)
    if head is None:
        return None
    rest = list(islice(lines, MAX_REQUESTS + 1))
    if len(rest) > MAX_REQUESTS:
        message = f"a trace of more than {MAX_REQUESTS:,} requests"
        raise ValueError(message)
    return Trace(
        head["name"],
        head["sha256"],
        head["form"],
        array("d", (row["t_s"] for row in rest)),
        array("q", (row["input_tokens"] for row in rest)),
        array("q", (row["output_tokens"] for row in rest)),
        tuple(tuple(row["hash_ids"]) for row in rest if "hash_ids" in row),
        head["raised"],
    )


def _trace(file: TraceFile, form: Form, rows: list[_Row]) -> Trace:
    rows.sort(key=lambda row: row.at_s)
    at_s = array("d", (round(row.at_s - rows[0].at_s, 6) for row in rows))
    if not at_s or at_s[-1] == 0:  # a rate needs a gap
        raise UsageError(
            f"{file.path}: fewer than two times of arrival", "a trace needs several requests"
        )
    return Trace(
        file.name,
        hashlib.sha256(file.data).hexdigest(),
        form,
        at_s,
        array("q", (max(1, row.input_tokens) for row in rows)),
        array("q", (max(1, row.output_tokens) for row in rows)),
        tuple(row.blocks for row in rows) if form == "mooncake" else (),
        sum((row.input_tokens == 0) + (row.output_tokens == 0) for row in rows),
    )


def _sniff(file: TraceFile, number: int, line: str) -> tuple[Form, Callable[[str], _Row]]:
    """Return the form that the first line has, and how a line of it is parsed."""
    columns = tuple(part.strip().lower() for part in line.split(","))
    if columns == _AZURE:
        return "azure", _azure
    try:
        keys = set(_object(line))
    except ValueError:
        keys = set[str]()
    if {"timestamp", "input_length", "output_length"} <= keys:
        return "mooncake", _mooncake
    if {"t_s", "input_tokens", "output_tokens"} <= keys:
        return "own", _own
    raise _fault(file, number, "not a trace of a known form", _FORMS)


def _parsed(file: TraceFile, parse: Callable[[str], _Row], number: int, line: str) -> _Row:
    try:
        return parse(line)
    except ValueError as error:
        raise _fault(file, number, str(error), "mend the line, or remove it") from None


def _azure(line: str) -> _Row:
    parts = [part.strip() for part in line.split(",")]
    if len(parts) != len(_AZURE):
        message = f"{len(parts)} columns, not {len(_AZURE)}"
        raise ValueError(message)
    at = dt.datetime.fromisoformat(parts[0])
    at = at if at.tzinfo else at.replace(tzinfo=dt.UTC)
    tokens = [_tokens(_whole(text) if text.isdecimal() else text) for text in parts[1:]]
    return _Row(at.timestamp(), tokens[0], tokens[1])


def _mooncake(line: str) -> _Row:
    row = _object(line)
    tokens = _tokens(_get(row, "input_length"))
    blocks = row.get("hash_ids", [])
    if not is_array(blocks) or not all(type(b) is int and 0 <= b < _MOST_ID for b in blocks):
        raise ValueError("hash_ids is not a list of whole numbers from 0")
    if len(blocks) > -(-tokens // BLOCK_TOKENS):
        message = f"{len(blocks)} hash_ids are more than a prompt of {tokens} tokens has blocks"
        raise ValueError(message)
    at_s = _seconds(_get(row, "timestamp")) / 1000
    return _Row(at_s, tokens, _tokens(_get(row, "output_length")), tuple(blocks))


def _own(line: str) -> _Row:
    row = _object(line)
    tokens = [_tokens(_get(row, key)) for key in ("input_tokens", "output_tokens")]
    return _Row(_seconds(_get(row, "t_s")), tokens[0], tokens[1])


def _object(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line, parse_int=_whole)
    except json.JSONDecodeError as error:
        message = f"not JSON: {error.msg} at column {error.colno}"
        raise ValueError(message) from None
    except RecursionError:
        raise ValueError("not JSON: nested too deeply") from None
    if not is_object(value):
        raise ValueError("not a JSON object")
    return value


def _whole(text: str) -> int | str:
    """Return the number, or a text where no count or time has so many digits."""
    return int(text) if len(text) <= _MOST_DIGITS else text


def _get(row: dict[str, Any], key: str) -> Any:
    if key not in row:
        message = f"the key {key} is missing"
        raise ValueError(message)
    return row[key]


def _tokens(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= LONGEST_TOKENS:
        message = f"{_short(value)} is not a number of tokens from 0 to {LONGEST_TOKENS:,}"
        raise ValueError(message)
    return value


def _seconds(value: Any) -> float:
    if type(value) not in {int, float} or not abs(value) <= _FARTHEST_S * 1000:
        message = f"{_short(value)} is not a time"
        raise ValueError(message)
    return float(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _fault(file: TraceFile, line: int, what: str, hint: str) -> UsageError:
    return UsageError(f"{file.path}:{line}: {what}", hint)
