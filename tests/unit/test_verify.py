"""Every value of a document is recomputed from the evidence; one byte or digit off is noticed."""

import gzip
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.shared import shared_path
from tests.support.virtual_loop import run_virtual
from tests.support.virtual_run import VirtualRun, spec_of
from tokenwatt_site.cli.verify import verify as command
from tokenwatt_site.documents import jsonfile
from tokenwatt_site.documents.doors import load_run
from tokenwatt_site.documents.tracefile import TraceFile
from tokenwatt_site.errors import DocumentError, FindingsError
from tokenwatt_site.method.recorded import with_recorded_rate
from tokenwatt_site.method.replay import trace_of
from tokenwatt_site.method.rng import rng
from tokenwatt_site.method.verify import Part, leaves
from tokenwatt_site.method.verify import verify as hold
from tokenwatt_site.restore import find, restored, take_up
from tokenwatt_site.verify import verify

FILES = ("events.jsonl", "schedule.jsonl", "requests.jsonl.gz", "power.jsonl.gz")


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the document of a run whose confirm windows passed, with a meter."""
    out = tmp_path_factory.mktemp("measured") / "runs" / "a.json"
    session = run_virtual(VirtualRun(out).measure())
    assert session.done is not None
    assert session.done.word == "met"
    return out


@pytest.fixture
def run(measured: Path, tmp_path: Path) -> Path:
    """Return a copy of the document with its evidence, to be spoiled."""
    shutil.copytree(measured.parent, tmp_path / "runs")
    return tmp_path / "runs" / measured.name


def pointers(value: Any, pointer: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield from pointers(item, f"{pointer}/{key.replace('/', '~1')}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from pointers(item, f"{pointer}/{index}")
    else:
        yield pointer


def changed(value: Any) -> Any:
    """Return a JSON value with every leaf of it changed, the hashes of evidence not."""
    if isinstance(value, dict):
        return {key: item if key == "evidence" else changed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [changed(item) for item in value]
    if isinstance(value, bool):
        return not value
    if isinstance(value, float):
        return value * (1 + 2**-52) or 5e-324
    return value + 1 if isinstance(value, int) else f"{value}7"


def test_a_run_holds_to_the_last_digit(run: Path) -> None:
    result = verify(run)
    assert result.mismatches == []
    assert result.not_recomputed == []
    assert result.values == leaves(jsonfile.load(run)) > 900
    assert result.holds()


def test_every_value_of_a_document_is_recomputed(run: Path) -> None:
    """All are changed at once, by the least there is: all are named, so each alone would be."""
    document, data = load_run(run)[0], jsonfile.load(run)
    assert document.evidence is not None
    part = Part(restored(find(run, document.evidence)), document.evidence)
    spoiled = changed(data) | {"status": data["status"]}  # of a published one, texts may be edited
    found = {mismatch.place for mismatch in hold(spoiled, [part]).mismatches}
    kept = ("/status", "/evidence/")
    assert found == {at for at in pointers(data) if not at.startswith(kept)}


def test_one_digit_of_the_document_is_noticed(run: Path) -> None:
    """Digits at random places of the file: of numbers, of stamps, of texts, of hashes."""
    text, source = run.read_text(encoding="utf-8"), rng(1, "digits")
    places = [match.start() for match in re.finditer(r"\d", text)]
    for at in source.sample(places, 10):
        digit = str((int(text[at]) + source.randrange(1, 10)) % 10)
        run.write_text(text[:at] + digit + text[at + 1 :], encoding="utf-8")
        try:
            result = verify(run)
        except DocumentError:  # no run document any more
            continue
        if jsonfile.load(run) != json.loads(text):  # 1e-05 for 1e-5, 0 for -0
            assert not result.holds(), f"{text[at - 40 : at]}»{text[at]}« became {digit}"


@pytest.mark.parametrize("name", FILES)
def test_one_byte_of_evidence_is_noticed(run: Path, name: str) -> None:
    path, source = run.with_suffix("") / name, rng(2, "bytes")
    whole = path.read_bytes()
    for at in [0, 3, len(whole) - 1, *(source.randrange(len(whole)) for _ in range(20))]:
        flipped = bytes([whole[at] ^ (1 << source.randrange(8))])
        path.write_bytes(whole[:at] + flipped + whole[at + 1 :])
        result = verify(run)
        assert [each.place.rpartition("/")[2] for each in result.mismatches] == ["sha256"]
        assert not result.holds()
        assert result.not_recomputed


@pytest.mark.parametrize("name", FILES)
def test_evidence_that_is_short_or_gone_is_noticed(run: Path, name: str) -> None:
    path = run.with_suffix("") / name
    path.write_bytes(path.read_bytes()[:-1])
    assert {each.place.rpartition("/")[2] for each in verify(run).mismatches} == {
        "bytes",
        "sha256",
    }
    path.unlink()
    assert all(each.recomputed is None for each in verify(run).mismatches)


def test_what_a_killed_run_left_behind_its_evidence_is_not_read(run: Path) -> None:
    path = run.with_suffix("") / "requests.jsonl.gz"
    path.write_bytes(path.read_bytes() + b"\x1f\x8b torn")
    result = verify(run)
    assert result.holds()
    assert "7 bytes behind" in result.notes[0]


def forge(run: Path, name: str, edit: Callable[[list[dict[str, Any]]], None]) -> None:
    """Change the lines of an evidence file, and the document's hash and length to go with it."""
    path = run.with_suffix("") / name
    data = path.read_bytes()
    lines = gzip.decompress(data) if name.endswith(".gz") else data
    rows = [json.loads(line) for line in lines.splitlines()]
    edit(rows)
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    forge_hash(run, name)


def forge_hash(run: Path, name: str) -> None:
    path = run.with_suffix("") / name
    document = jsonfile.load(run)
    for each in document["evidence"]:
        if each["path"].endswith(name):
            each["bytes"] = path.stat().st_size
            each["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    run.write_text(jsonfile.dumps(document), encoding="utf-8")


def of_window(rows: list[dict[str, Any]], window: int) -> dict[str, Any]:
    """Return a line in the middle of a window."""
    mine = [row for row in rows if row["w"] == window]
    return mine[len(mine) // 2]


def faster(rows: list[dict[str, Any]]) -> None:
    of_window(rows, 4)["dt_us"][0] -= 40_000


def shorter(rows: list[dict[str, Any]]) -> None:
    rows[5]["in"] -= 1


def fewer(rows: list[dict[str, Any]]) -> None:
    rows.remove(of_window(rows, 2))


def colder(rows: list[dict[str, Any]]) -> None:
    of_window(rows, 4)["power_w"] += 0.5


def luckier(rows: list[dict[str, Any]]) -> None:
    """Leave the window that failed out, as if it had never been measured."""
    rows[:] = [row for row in rows if row.get("index") != 1]


def other_seed(rows: list[dict[str, Any]]) -> None:
    rows[2]["seed"] = "1"


@pytest.mark.parametrize(
    "name,edit,place",
    [
        ("requests.jsonl.gz", faster, "/configs/0/"),
        ("requests.jsonl.gz", shorter, "requests.jsonl.gz, window 0"),
        ("requests.jsonl.gz", fewer, "requests.jsonl.gz, window 2"),
        ("power.jsonl.gz", colder, "/configs/0/"),
        ("events.jsonl", luckier, "events.jsonl, window 2"),
        ("schedule.jsonl", other_seed, "schedule.jsonl, window 2"),
    ],
)
def test_forged_evidence_with_a_right_hash_is_noticed(
    run: Path, name: str, edit: Callable[[list[dict[str, Any]]], None], place: str
) -> None:
    forge(run, name, edit)
    result = verify(run)
    assert any(each.place.startswith(place) for each in result.mismatches)


def no_spec(rows: list[dict[str, Any]]) -> None:
    del rows[0]["spec"]


def endless(rows: list[dict[str, Any]]) -> None:
    """A load that would take a year to draw."""
    window = next(row for row in rows if row["event"] == "window")
    window["rate_rps"] = 1e15


def no_window(rows: list[dict[str, Any]]) -> None:
    window = next(row for row in rows if row["event"] == "window")
    window["window_s"] = -1


def infinite(rows: list[dict[str, Any]]) -> None:
    rows[0]["meters"][0]["hz"] = 0


def played_twice(rows: list[dict[str, Any]]) -> None:
    played = next(row for row in rows if row["event"] == "played")
    rows.insert(rows.index(played), played)


def no_begin(rows: list[dict[str, Any]]) -> None:
    """As an older version wrote it."""
    del rows[0]


@pytest.mark.parametrize("edit", [no_spec, endless, no_window, infinite, played_twice, no_begin])
def test_a_stranger_s_lines_are_told_and_never_break_it(
    run: Path, edit: Callable[[list[dict[str, Any]]], None]
) -> None:
    forge(run, "events.jsonl", edit)
    result = verify(run)
    assert not result.holds()
    assert result.mismatches or "NOT_RECOMPUTABLE" in result.not_recomputed[0][1]


def hot(rows: list[dict[str, Any]]) -> None:
    """Readings whose sum is no number any more."""
    for row in rows:
        row["power_w"] = 1.5e308
        row.pop("limit_w")


def test_figures_that_no_document_can_hold_are_told(run: Path) -> None:
    forge(run, "power.jsonl.gz", hot)
    result = verify(run)
    assert not result.holds()
    assert result.not_recomputed[0][1].startswith(
        "NOT_RECOMPUTABLE: the evidence can't be computed"
    )


def test_forged_evidence_is_not_gone_on_with(run: Path) -> None:
    forge(run, "requests.jsonl.gz", shorter)
    with pytest.raises(DocumentError, match="window 0 doesn't follow from what was asked") as told:
        take_up(run)
    assert f"tokenwatt-site verify {run}" in told.value.hint


def test_another_version_s_document_is_held_to_what_it_says(run: Path) -> None:
    """What only a later version publishes is no fault of it; what it published must hold."""

    def older(rows: list[dict[str, Any]]) -> None:
        rows[0]["tool"] = "0.0.1"

    forge(run, "events.jsonl", older)
    assert [each.place for each in verify(run).mismatches] == ["/tool/version"]
    document = jsonfile.load(run)
    document["tool"]["version"] = "0.0.1"
    for place in (*document["configs"][0]["windows"], *document["configs"][0]["sweep"]):
        del place["tpot_p50_ms"]
    run.write_text(jsonfile.dumps(document), encoding="utf-8")
    result = verify(run)
    assert result.mismatches == []
    assert "measured by version 0.0.1 (method 1), recomputed by" in result.notes[0]
    document["configs"][0]["energy"]["joules"] += 1
    run.write_text(jsonfile.dumps(document), encoding="utf-8")
    assert [each.place for each in verify(run).mismatches] == ["/configs/0/energy/joules"]


@pytest.mark.parametrize(
    "text", [b"[1]\n", b'{"event": NaN}\n', b"\xff\n", b"[" * 100_000 + b"\n", b'{"w":1}\n']
)
def test_a_file_that_holds_no_lines_of_ours_is_told(run: Path, text: bytes) -> None:
    path = run.with_suffix("") / "schedule.jsonl"
    path.write_bytes(text)
    forge_hash(run, "schedule.jsonl")
    result = verify(run)
    assert not result.holds()


def test_evidence_that_is_said_to_be_huge_takes_no_memory(run: Path) -> None:
    document = jsonfile.load(run)
    document["evidence"][0]["bytes"] = 10**18
    run.write_text(jsonfile.dumps(document), encoding="utf-8")
    assert {each.place for each in verify(run).mismatches} == {"/evidence/0/bytes"}


def test_evidence_never_leads_out_of_the_document_s_folder(run: Path) -> None:
    document = jsonfile.load(run)
    document["evidence"][0]["path"] = "../../events.jsonl"
    run.write_text(jsonfile.dumps(document), encoding="utf-8")
    with pytest.raises(DocumentError, match="leads out of"):
        verify(run)


TRACE = b"".join(
    b'{"timestamp":%d,"input_length":%d,"output_length":2,"hash_ids":[%d,%d]}\n'
    % (15 * i, 600 + i % 7, i % 5, 1000 + i)
    for i in range(120)
)


@pytest.mark.parametrize("timestamps", ["poisson", "rescaled", "kept"])
def test_a_replayed_trace_is_verified_without_its_file(tmp_path: Path, timestamps: str) -> None:
    workload = {"trace": "t.jsonl", "timestamps": timestamps, "seed": 1}
    spec = spec_of(
        workload=workload | {"input_tokens": None, "output_tokens": None},
        sweep={"rates": None if timestamps == "kept" else [60]},
        measurement={"repeats": 1},
        slo={"ttft_p99_ms": 5000},
    )
    trace = trace_of(TraceFile(Path("t.jsonl"), TRACE))
    spec = with_recorded_rate(spec, trace)
    out = tmp_path / "run.json"
    session = run_virtual(VirtualRun(out, spec, trace=trace).measure())
    assert session.done is not None
    result = verify(out)
    assert result.mismatches == []
    assert result.holds()


def test_the_command_prints_pointer_published_and_recomputed(run: Path) -> None:
    document = jsonfile.load(run)
    document["configs"][0]["energy"]["joules"] += 1
    run.write_text(jsonfile.dumps(document), encoding="utf-8")
    done = CliRunner().invoke(command, [str(run)])
    assert isinstance(done.exception, FindingsError)
    joules = document["configs"][0]["energy"]["joules"]
    assert f"/configs/0/energy/joules: published {joules}, recomputed " in done.output
    done = CliRunner().invoke(command, [str(run), "--json"])
    said = json.loads(done.output)
    assert said["holds"] is False
    assert [each["place"] for each in said["mismatches"]] == ["/configs/0/energy/joules"]


def test_the_command_is_content_with_a_run_that_holds(run: Path) -> None:
    done = CliRunner().invoke(command, [str(run)])
    assert done.exit_code == 0, done.output
    assert "all hold" in done.output


def test_a_document_without_evidence_can_not_be_recomputed() -> None:
    path = shared_path("seed/h200x4-deepseek-v4.1-flash-fp8-vllm.json")
    result = verify(path)
    assert not result.holds()
    assert result.mismatches == []
    assert result.not_recomputed == [("/configs/0", "NOT_RECOMPUTABLE: it names no evidence")]
    done = CliRunner().invoke(command, [str(path)])
    assert isinstance(done.exception, FindingsError)
    assert "nothing could be recomputed" in done.output
    assert "not recomputed: /configs/0: NOT_RECOMPUTABLE: it names no evidence" in done.output
