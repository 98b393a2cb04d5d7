"""What a run that is gone on with must find as it was, and what is refused by name."""

import asyncio
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.virtual_loop import run_virtual
from tests.support.virtual_run import VirtualRun, spec_of
from tokenwatt_site import measure
from tokenwatt_site.cli.measure import measure as command
from tokenwatt_site.documents import jsonfile
from tokenwatt_site.documents.doors import load_run
from tokenwatt_site.documents.run import Hardware
from tokenwatt_site.documents.specfile import commented
from tokenwatt_site.errors import DocumentError, TokenwattError, UsageError
from tokenwatt_site.method.identity import same_set_up
from tokenwatt_site.restore import take_up
from tokenwatt_site.store import RunStore
from tokenwatt_site.verify import verify

SPEC = spec_of(sweep={"rates": [60]}, measurement={"repeats": 1})


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the document of a finished run of one window."""
    out = tmp_path_factory.mktemp("measured") / "runs" / "a.json"
    run_virtual(VirtualRun(out, SPEC).measure())
    return out


@pytest.fixture
def run(measured: Path, tmp_path: Path) -> Path:
    shutil.copytree(measured.parent, tmp_path / "runs")
    return tmp_path / "runs" / measured.name


def test_a_run_is_taken_up_as_it_stood(run: Path) -> None:
    store, rebuilt = take_up(run)
    assert [window.window.index for window in rebuilt.windows] == [0]
    assert rebuilt.begin.spec == SPEC
    assert rebuilt.done is not None
    names = {each.path for each in store.evidence()}
    assert names == {f"a/{path.name}" for path in run.with_suffix("").iterdir()}
    store.close()


def test_two_processes_never_write_one_run(run: Path) -> None:
    store, _ = take_up(run)
    with pytest.raises(UsageError, match="being measured by another process"):
        take_up(run)
    with pytest.raises(UsageError, match="being measured by another process"):
        RunStore(run, force=True)
    store.close()
    take_up(run)[0].close()


def test_what_lies_behind_the_named_evidence_is_cut_off_when_the_run_begins(run: Path) -> None:
    requests, more = (
        run.with_suffix("") / "requests.jsonl.gz",
        run.with_suffix("") / "server.jsonl.gz",
    )
    whole = requests.read_bytes()
    requests.write_bytes(whole + b"torn")
    more.write_bytes(b"of a window that nobody knows")
    store, _ = take_up(run)
    assert requests.read_bytes() == whole + b"torn"  # the server may turn out to be dead
    store.begin()
    assert requests.read_bytes() == whole
    assert not more.exists()
    store.close()


def test_a_copied_document_never_cuts_off_another_run_s_evidence(run: Path) -> None:
    """The copy names the first run's files; a second run's lie where it would write."""
    victim = run.with_name("victim.json")
    shutil.copytree(run.with_suffix(""), victim.with_suffix(""))
    shutil.copy(run, victim)
    with pytest.raises(DocumentError, match=r"victim\.json names a/.* own folder victim"):
        take_up(victim)


def test_a_renamed_document_is_told_before_any_server_is_asked(run: Path) -> None:
    renamed = run.rename(run.with_name("b.json"))
    with pytest.raises(DocumentError, match=r"b\.json names a/"):
        take_up(renamed)


def test_a_joined_document_is_not_gone_on_with(run: Path) -> None:
    data = jsonfile.load(run)
    data["configs"][0]["source_sha256"] = "0" * 64
    run.write_text(jsonfile.dumps(data), encoding="utf-8")
    with pytest.raises(DocumentError, match="joined from several runs"):
        take_up(run)


def test_a_run_is_never_gone_on_with_through_a_link(run: Path) -> None:
    folder = run.with_suffix("")
    for path in (folder, folder / "events.jsonl"):
        real = path.rename(run.parent / f"real-{path.name}")
        path.symlink_to(real)
        with pytest.raises(UsageError, match=f"{path.name} is a link"):
            take_up(run)
        path.unlink()
        real.rename(path)
    take_up(run)[0].close()


def test_a_stranger_s_file_that_comes_late_is_kept(run: Path) -> None:
    store, _ = take_up(run)
    notes = run.with_suffix("") / "notes.txt"
    notes.write_text("mine")
    store.begin()
    assert notes.read_text() == "mine"
    store.close()


def test_a_run_that_was_interrupted_goes_on_and_says_so(tmp_path: Path) -> None:
    out = tmp_path / "run.json"
    spec = spec_of(sweep={"rates": [60]}, measurement={"repeats": 2})

    async def interrupted() -> None:
        task = asyncio.create_task(VirtualRun(out, spec).measure())
        await asyncio.sleep(7)  # virtual seconds: in the second window
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        run_virtual(interrupted())
    draft, _ = load_run(out)
    assert draft.verdict is not None
    assert (draft.verdict.word, draft.verdict.code) == ("undecided", "INTERRUPTED")
    assert [window.index for window in draft.configs[0].windows or ()] == [0]
    assert draft.resumed is None
    run_virtual(VirtualRun(out, spec).measure())
    whole, _ = load_run(out)
    assert [window.index for window in whole.configs[0].windows or ()] == [0, 1]
    assert whole.verdict is not None
    assert (whole.verdict.word, whole.verdict.code) == ("met", None)
    assert whole.resumed is not None
    assert len(whole.resumed) == 1
    assert verify(out).mismatches == []


def test_evidence_that_was_changed_is_not_gone_on_with(run: Path) -> None:
    path = run.with_suffix("") / "requests.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(DocumentError, match=r"a/requests\.jsonl\.gz isn't what"):
        take_up(run)


@pytest.mark.parametrize(
    "section,change,said",
    [
        ("slo", {"tpot_p99_ms": 51}, "spec field slo.tpot_p99_ms: 50 when the run was begun, 51"),
        ("workload", {"seed": 6}, "spec field workload.seed"),
        ("sweep", {"rates": [60, 61]}, "spec field sweep.rates.1"),
    ],
)
def test_another_spec_is_refused_by_the_key_that_differs(
    run: Path, section: str, change: dict[str, Any], said: str
) -> None:
    sections: dict[str, dict[str, Any]] = {
        "sweep": {"rates": [60]},
        "measurement": {"repeats": 1},
    }
    sections[section] = sections.get(section, {}) | change
    with pytest.raises(UsageError) as refused:
        measure.take_up(run, spec_of(**sections), run)
    assert said in refused.value.what


def test_the_same_spec_may_be_named(run: Path) -> None:
    measure.take_up(run, spec_of(sweep={"rates": [60]}, measurement={"repeats": 1}), run)


@pytest.mark.parametrize(
    "what,said",
    [
        ({"engine_version": "2.0"}, "engine_version was '1.0' when the run was begun"),
        ({"meter_source": "another"}, "meter_source was"),
        ({"simulated": True}, "simulated was False"),
        (
            {"hardware": Hardware(vendor="nobody", accelerator="Formula", count=4)},
            "hardware.count was 2 when the run was begun, and is 4 now",
        ),
    ],
)
def test_another_set_up_is_refused_by_what_differs(
    run: Path, what: dict[str, Any], said: str
) -> None:
    store, rebuilt = take_up(run)
    store.close()
    begin = rebuilt.begin
    same_set_up(begin, begin.resolved, begin.meters, begin.server)
    with pytest.raises(UsageError) as refused:
        same_set_up(begin, replace(begin.resolved, **what), begin.meters, begin.server)
    assert said in refused.value.what


def test_another_server_meter_or_method_is_refused_too(run: Path) -> None:
    store, rebuilt = take_up(run)
    store.close()
    begin = rebuilt.begin
    meters = [replace(begin.meters[0], hz=5)]
    with pytest.raises(UsageError, match="model was 'formula'"):
        same_set_up(begin, begin.resolved, begin.meters, {"model": "other"})
    with pytest.raises(UsageError, match=r"meters\.0\.hz was 10"):
        same_set_up(begin, begin.resolved, meters, begin.server)
    old = replace(begin, method="0")
    with pytest.raises(UsageError, match="method was '0'"):
        same_set_up(old, begin.resolved, begin.meters, begin.server)


def test_a_finished_run_is_not_touched(run: Path) -> None:
    """No server is asked: there is none."""
    before = {path: path.read_bytes() for path in run.parent.rglob("*") if path.is_file()}
    resumed = measure.take_up(run, None, None)
    result = measure.measure(resumed.spec, resumed.options(), lambda _: None, resumed)
    assert (result.exit_code, result.out) == (0, run)
    assert {path: path.read_bytes() for path in before} == before


def invoked(*arguments: str | Path) -> TokenwattError:
    """Return the error that the command ends in."""
    done = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert isinstance(done.exception, TokenwattError), done.output
    return done.exception


@pytest.mark.parametrize("option", ["--out", "--label", "--role", "--force"])
def test_what_was_settled_at_the_beginning_is_not_asked_again(run: Path, option: str) -> None:
    value = {"--out": ["b.json"], "--label": ["x"], "--role": ["candidate"]}.get(option, [])
    error = invoked("--resume", run, option, *value)
    assert error.exit_code == 2
    assert f"{option} was settled" in error.what


def test_a_run_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    error = invoked("--resume", tmp_path / "none.json")
    assert error.exit_code == 1
    assert "none.json" in error.what


def test_a_dry_run_says_where_it_would_go_on(run: Path, tmp_path: Path) -> None:
    spec = tmp_path / "s.yaml"
    spec.write_text(commented(SPEC.model_dump(mode="json", exclude_unset=True), "the run's own"))
    arguments = [str(spec), "--resume", str(run), "--dry-run", "--json"]
    done = CliRunner().invoke(command, arguments)
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["resumed"] == 1
