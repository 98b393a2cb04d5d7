"""Bandwidth utilisation in a measured document, recomputed from the evidence without the config."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.configs import TINY
from tests.support.virtual_loop import run_virtual
from tests.support.virtual_run import VirtualRun, spec_of
from tokenwatt_site.documents import jsonfile
from tokenwatt_site.documents.doors import load_run
from tokenwatt_site.documents.model_config import ModelConfig
from tokenwatt_site.errors import UsageError
from tokenwatt_site.measure import Options, plan
from tokenwatt_site.method.utilisation import served_model
from tokenwatt_site.store import RunStore
from tokenwatt_site.verify import verify

SPEC = spec_of(
    model={"config": "config.json", "weight_dtype": "fp8", "geometry": {"num_hidden_layers": 3}},
    sweep={"rates": [60]},
    measurement={"repeats": 1},
)
FILES = ModelConfig({**TINY, "rope_theta": 1e6, "vocab_size": 9_999}, None, "f" * 64)


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("measured") / "runs" / "a.json"
    run_virtual(VirtualRun(out, SPEC, model=served_model(SPEC, FILES).config).measure())
    return out


def begin(measured: Path) -> dict[str, Any]:
    lines = (measured.with_suffix("") / "events.jsonl").read_text(encoding="utf-8").splitlines()
    row: dict[str, Any] = json.loads(lines[0])
    return row


def test_the_document_holds_the_figure_and_what_it_was_made_of(measured: Path) -> None:
    run, _ = load_run(measured)
    config = run.configs[0]
    assert config.mbu is not None
    assert config.mbu.tpot_ms == pytest.approx(5)
    assert config.mbu.batch == pytest.approx((config.output_tok_s or 0) * 0.005)
    assert config.mbu.config_sha256 == "f" * 64
    assert config.mbu.dtypes["experts"] == "fp8"
    assert config.mbu_pct == pytest.approx(
        100 * (config.mbu.weight_bytes + config.mbu.kv_bytes) / 0.005 / 1e8
    )
    assert "/configs/0/mbu_pct" not in (run.missing or {})


def test_the_evidence_has_the_keys_that_were_used_and_no_others(measured: Path) -> None:
    kept = begin(measured)["resolved"]["model"]["config"]
    assert kept["vocab_size"] == 9_999
    assert not {"rope_theta", "num_hidden_layers"} & set(kept)


def test_it_is_verified_to_the_last_digit(measured: Path) -> None:
    assert verify(measured).holds()
    data = jsonfile.load(measured)
    data["configs"][0]["mbu_pct"] *= 1.000001
    data["configs"][0]["mbu"]["terms"][0]["bytes"] += 1
    forged = measured.with_name("a.json")
    before = forged.read_text(encoding="utf-8")
    forged.write_text(jsonfile.dumps(data), encoding="utf-8")
    places = {each.place for each in verify(forged).mismatches}
    forged.write_text(before, encoding="utf-8")
    assert places == {"/configs/0/mbu_pct", "/configs/0/mbu/terms/0/bytes"}


def test_a_run_that_was_cut_off_goes_on_without_the_file(measured: Path, tmp_path: Path) -> None:
    class Killed(RunStore):
        """Dies at the third document."""

        saved = 0

        def save(self, run: Any) -> None:
            self.saved += 1
            if self.saved == 3:
                raise SystemExit(9)
            super().save(run)

    out = tmp_path / "runs" / "a.json"
    run = VirtualRun(out, SPEC, model=served_model(SPEC, FILES).config)
    with pytest.raises(SystemExit):
        run_virtual(run.measure(lambda store: _as(Killed, store)))
    run_virtual(VirtualRun(out, SPEC).measure())
    resumed, whole = load_run(out)[0].configs[0], load_run(measured)[0].configs[0]
    assert resumed.mbu == whole.mbu
    assert verify(out).holds()


def _as(kind: type[RunStore], store: RunStore) -> RunStore:
    store.__class__ = kind
    return store


def options(folder: Path) -> Options:
    return Options(folder / "s.yaml", "", "baseline", folder / "runs" / "x.json", force=False)


def test_a_config_that_is_not_understood_stops_before_any_load(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(TINY | {"odd": 1}), encoding="utf-8")
    with pytest.raises(UsageError, match="odd"):
        plan(SPEC, options(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps(TINY), encoding="utf-8")
    assert plan(SPEC, options(tmp_path))["windows"] == [1, 1]


def test_geometry_without_a_config_is_refused(tmp_path: Path) -> None:
    spec = spec_of(model={"geometry": {"num_hidden_layers": 3}})
    with pytest.raises(UsageError, match=r"model\.geometry is given"):
        plan(spec, options(tmp_path))
