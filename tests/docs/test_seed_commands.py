"""The commands that the published document gives to repeat it run, as they are written there.

Only the spec file is exchanged: the embedded engine stands in for the four H200.
"""

import json
import shlex
from pathlib import Path

from tests.support.program import run, write_spec
from tests.support.shared import shared_path
from tokenwatt_site.documents.doors import load_run


def test_the_seed_is_reproduced_by_its_own_commands(tmp_path: Path) -> None:
    seed = json.loads(
        shared_path("seed/h200x4-deepseek-v4.1-flash-fp8-vllm.json").read_text(encoding="utf-8")
    )
    measure, report = (shlex.split(line) for line in seed["reproduce"].split("\n\n"))
    assert (measure[:2], report[:2]) == (["tokenwatt", "run"], ["tokenwatt", report[1]])
    write_spec(tmp_path / measure[measure.index("--spec") + 1])

    code, said = run(*measure[1:], cwd=tmp_path)
    assert code == 0, said
    found, _ = load_run(tmp_path / measure[measure.index("--out") + 1])
    assert found.configs[0].label == "dsv41flash-h200x4-tp4dp1-tpot50"
    assert found.configs[0].key == "baseline"
    # what the new document says to repeat it is what was typed, the spec's name and all
    typed, _ = found.reproduce.split("\n\n")
    assert shlex.split(typed) == measure

    code, said = run(*report[1:], cwd=tmp_path)
    assert code == 0, said
    joined, _ = load_run(tmp_path / f"{found.id}.json")
    assert joined.title == seed["title"]
