"""Recorded traces: the published ones, and lines that are none."""

import hashlib
import json

import pytest

from tests.support.shared import shared_path
from tokenwatt_site.documents.tracefile import TraceFile, read_file
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method import replay
from tokenwatt_site.method.replay import Trace, trace_of, trace_of_rows, trace_rows


def trace(text: str | bytes, name: str = "folder/t.jsonl") -> Trace:
    data = text if isinstance(text, bytes) else text.encode()
    found = trace_of(TraceFile(name, data))
    assert found is not None
    return found


def shared(name: str) -> Trace:
    found = trace_of(read_file(shared_path(f"data/traces/{name}")))
    assert found is not None
    return found


def test_azures_code_trace_is_read_whole() -> None:
    """Its lines end in CRLF, its times have seven digits, its last line has no end."""
    found = shared("AzureLLMInferenceTrace_code.csv")
    assert (found.form, len(found)) == ("azure", 8819)
    assert list(found.at_s[:3]) == [0.0, 0.052, 0.098189]
    assert found.at_s[-1] == pytest.approx(3435.94804)
    assert list(found.input_tokens[:2]) == [4808, 3180]
    assert (found.input_tokens[-1], found.output_tokens[-1]) == (549, 173)
    assert found.rate_rps == pytest.approx(8818 / 3435.94804)
    assert found.blocks == ()


def test_azures_conversation_trace_is_read_whole() -> None:
    found = shared("AzureLLMInferenceTrace_conv.csv")
    assert (len(found), max(found.input_tokens), max(found.output_tokens)) == (19366, 14050, 1000)
    assert sum(found.input_tokens) / len(found) == pytest.approx(1154.7, abs=0.1)
    assert sum(found.output_tokens) / len(found) == pytest.approx(211.1, abs=0.1)


def test_mooncakes_conversation_trace_keeps_its_blocks() -> None:
    found = shared("mooncake_conversation_first6000.jsonl")
    assert (found.form, len(found), found.at_s[-1]) == ("mooncake", 6000, 1872.0)
    assert found.blocks[1] == (0, *range(14, 28))
    assert all(
        len(ids) == -(-tokens // 512)
        for ids, tokens in zip(found.blocks, found.input_tokens, strict=True)
    )


def test_mooncakes_synthetic_trace_is_read_whole() -> None:
    found = shared("mooncake_synthetic_trace.jsonl")
    assert (len(found), found.at_s[-1], max(found.input_tokens)) == (3993, 1022.025, 191378)


def test_our_own_form_is_sorted_by_time_and_begins_at_its_first_request() -> None:
    text = "\n".join(
        json.dumps({"t_s": t, "input_tokens": n, "output_tokens": 0, "user": "left out"})
        for t, n in ((7.5, 3), (5, 1), (6, 2))
    )
    found = trace("\ufeff" + text)
    assert list(found.at_s) == [0, 1, 2.5]
    assert list(found.input_tokens) == [1, 2, 3]
    assert (list(found.output_tokens), found.raised) == ([1, 1, 1], 3)
    assert found.name == "t.jsonl"
    assert found.sha256 == hashlib.sha256(("\ufeff" + text).encode()).hexdigest()


def test_azures_later_traces_name_their_time_zone() -> None:
    found = trace(
        "TIMESTAMP,ContextTokens,GeneratedTokens\n"
        "2024-05-10 00:00:00.009930+00:00,2162,5\n"
        "2024-05-10 00:00:01.009930+00:00,2399,6\n",
    )
    assert list(found.at_s) == [0, 1]


def test_a_trace_goes_through_its_evidence_and_back() -> None:
    for found in (trace(OWN + OWN2), trace(MOON + MOON.replace(": 0", ": 5", 1))):
        lines = json.loads(json.dumps(trace_rows(found)))
        back = trace_of_rows(lines)
        assert back is not None
        assert all(getattr(back, n) == getattr(found, n) for n in Trace.__slots__)
    assert trace_of_rows([]) is None


OWN = '{"t_s": 0, "input_tokens": 1, "output_tokens": 1}\n'
OWN2 = '{"t_s": 1, "input_tokens": 2, "output_tokens": 3}\n'
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,4808,10\n"
MOON = '{"timestamp": 0, "input_length": 600, "output_length": 5, "hash_ids": [0, 1]}\n'


@pytest.mark.parametrize(
    "text, says",
    [
        ("", "t.jsonl: the file is empty"),
        (" \n\n", "t.jsonl: the file is empty"),
        ("hello", "t.jsonl:1: not a trace of a known form"),
        ('\n{"t_s": 0}', "t.jsonl:2: not a trace of a known form"),
        ("[" * 100_000, "t.jsonl:1: not a trace of a known form"),
        (b"\xff\xfe", "t.jsonl:1: not UTF-8"),
        (OWN.encode() + b"\xff", "t.jsonl:2: not UTF-8"),
        (OWN, "t.jsonl: fewer than two times of arrival"),
        (OWN + OWN, "t.jsonl: fewer than two times of arrival"),
        (OWN + OWN2.replace(": 1", ": 1e-7", 1), "t.jsonl: fewer than two times of arrival"),
        (AZURE.partition("\n")[0], "t.jsonl: fewer than two times of arrival"),
        (OWN + "\n" + "{", "t.jsonl:3: not JSON"),
        (OWN + "[" * 100_000, "t.jsonl:2: not JSON: nested too deeply"),
        (OWN + "7", "t.jsonl:2: not a JSON object"),
        (OWN + '{"t_s": 0, "input_tokens": 1}', "t.jsonl:2: the key output_tokens is missing"),
        (OWN + OWN.replace(": 1", ": -1"), "t.jsonl:2: -1 is not a number of tokens"),
        (OWN + OWN.replace(": 1", ": 1.5"), "t.jsonl:2: 1.5 is not a number of tokens"),
        (OWN + OWN.replace(": 1", ": true"), "t.jsonl:2: True is not a number of tokens"),
        (OWN + OWN.replace(": 1", ": 99999999"), "from 0 to 1,048,576"),
        (OWN + OWN.replace(": 0", ": NaN"), "t.jsonl:2: nan is not a time"),
        (OWN + OWN.replace(": 0", ": 1e400"), "t.jsonl:2: inf is not a time"),
        (OWN + OWN.replace(": 0", ': "0"'), "t.jsonl:2: '0' is not a time"),
        (AZURE + "2023-11-16 18:17:04,1", "t.jsonl:3: 2 columns, not 3"),
        (AZURE + "yesterday,1,1", "t.jsonl:3: Invalid isoformat"),
        (AZURE + "2023-11-16 18:17:04,1,x", "t.jsonl:3: 'x' is not a number of tokens"),
        (AZURE + "2023-11-16 18:17:04,1," + "9" * 5000, "9… is not a number of tokens"),
        (OWN + OWN.replace(": 1", ": " + "9" * 5000), "9… is not a number of tokens"),
        (OWN + OWN.replace(": 0", ": " + "9" * 5000), "9… is not a time"),
        (MOON + MOON.replace("[0, 1]", "[0, 1, 2]"), "3 hash_ids are more than a prompt of 600"),
        (MOON + MOON.replace("[0, 1]", '["a"]'), "t.jsonl:2: hash_ids is not a list"),
        (MOON + MOON.replace("[0, 1]", "[-1]"), "t.jsonl:2: hash_ids is not a list"),
        (MOON + MOON.replace("[0, 1]", "0"), "t.jsonl:2: hash_ids is not a list"),
    ],
)
def test_what_is_no_trace_says_where(text: str | bytes, says: str) -> None:
    with pytest.raises(UsageError) as caught:
        trace(text)
    assert says in str(caught.value)
    assert str(caught.value).startswith("folder/t.jsonl")
    assert len(caught.value.what) < 300


def test_a_trace_has_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "MAX_REQUESTS", 1)
    with pytest.raises(UsageError, match=r"t.jsonl:2: more than 1 requests"):
        trace(OWN + OWN2)
