"""The doors: what a spec file or a run document may be, and what is said of one that isn't."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.shared import shared_path
from tokenwatt_site.documents import doors, yamlfile
from tokenwatt_site.errors import DocumentError, UsageError

SPEC = """\
name: mine
engine:
  endpoint: http://127.0.0.1:8000/v1
model:
  name: tiny
sweep:
  start_rps: 2
power:
  source: board
"""


def spec_error(tmp_path: Path, text: str) -> str:
    path = tmp_path / "my.spec.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        doors.load_spec(path)
    return str(caught.value).replace(str(path), "FILE")


def test_a_minimal_spec_is_read(tmp_path: Path) -> None:
    path = tmp_path / "my.spec.yaml"
    path.write_text(SPEC, encoding="utf-8")
    spec = doors.load_spec(path)
    assert (spec.name, spec.sweep.start_rps, spec.sweep.growth) == ("mine", 2, 2.0)
    assert doors.dump(spec) == yamlfile.load(path).data


def test_the_seed_spec_saved_as_yaml_is_a_spec(tmp_path: Path) -> None:
    seed = json.loads(
        shared_path("seed/h200x4-deepseek-v4.1-flash-fp8-vllm.json").read_text(encoding="utf-8")
    )
    path = tmp_path / "seed.spec.yaml"
    path.write_text(yamlfile.dumps(seed["spec"]), encoding="utf-8")
    assert doors.dump(doors.load_spec(path)) == seed["spec"]


@pytest.mark.parametrize(
    "change,said",
    [
        (
            ("start_rps: 2", "start_rsp: 2"),
            "FILE:7: sweep.start_rsp: unknown key; did you mean 'start_rps'?",
        ),
        (("start_rps: 2", "start_rps: -1"), "FILE:7: sweep.start_rps: should be greater than 0"),
        (("start_rps: 2", "start_rps: .inf"), "FILE:7: sweep.start_rps: "),
        (("start_rps: 2", "start_rps: .nan"), "FILE:7: sweep.start_rps: "),
        (
            ("  source: board", "  sauce: board"),
            "FILE:9: power.sauce: unknown key; did you mean 'source'?",
        ),
        (("power:\n  source: board", "power: 3"), "FILE:8: power: should be a valid"),
        (("name: mine\n", ""), "FILE:1: name: this key is required"),
        (
            ("name: mine", "name: mine\nwindow_s: 3"),
            "FILE:2: window_s: unknown key; did you mean 'measurement.window_s'?",
        ),
        (
            ("name: mine", "name: mine\nname: other"),
            'FILE:2:1: not YAML: found duplicate key "name"',
        ),
        (("name: mine", "name: [mine"), "not YAML"),
        (("name: mine", "name: !!python/name:os.system x"), "FILE:1:7: not YAML"),
        (("name: mine", "name: yes"), None),
    ],
)
def test_a_fault_names_file_line_and_field(
    tmp_path: Path, change: tuple[str, str], said: str | None
) -> None:
    text = SPEC.replace(*change)
    assert text != SPEC
    if said is None:  # YAML 1.2: yes is a string
        path = tmp_path / "a.yaml"
        path.write_text(text, encoding="utf-8")
        assert doors.load_spec(path).name == "yes"
        return
    assert said in spec_error(tmp_path, text)


def test_a_union_is_told_by_its_nearest_branch(tmp_path: Path) -> None:
    text = SPEC + "workload:\n  trace: null\n  input_tokens: {fixed: 0}\n"
    message = spec_error(tmp_path, text)
    assert "FILE:12: workload.input_tokens.fixed: should be greater than 0" in message
    assert "median" not in message


def test_a_spec_that_explodes_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [1, 2, 3, 4, 5, 6, 7, 8, 9]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    assert "more than 50000 values" in spec_error(tmp_path, "\n".join(lines))


def test_a_spec_in_latin_1_names_the_byte(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_bytes(b"name: caf\xe9\n")
    with pytest.raises(UsageError, match="not UTF-8 at byte 9"):
        doors.load_spec(path)


def test_a_missing_spec_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        doors.load_spec(tmp_path / "none.yaml")


@pytest.fixture
def seed() -> dict[str, Any]:
    path = shared_path("seed/h200x4-deepseek-v4.1-flash-fp8-vllm.json")
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def test_the_seed_document_keeps_every_key_and_number(seed: dict[str, Any]) -> None:
    run = doors.parse_run(seed, "seed")
    assert json.dumps(doors.dump(run)) == json.dumps(seed)


@pytest.mark.parametrize(
    "pointer,value,said",
    [
        ("configs/0/mbu_pct", "60.9", "/configs/0/mbu_pct: "),
        ("configs/0/extra", 1, "/configs/0/extra: unknown key"),
        ("published", "yesterday", "/published: "),
        ("id", "Not A Slug", "/id: "),
        ("id", "../../etc", "/id: "),
        ("runs", True, "/runs: "),
        ("configs", [], "/configs: "),
    ],
)
def test_a_fault_of_a_document_names_the_pointer(
    seed: dict[str, Any], pointer: str, value: Any, said: str
) -> None:
    changed = copy.deepcopy(seed)
    *parents, last = pointer.split("/")
    place: Any = changed
    for part in parents:
        place = place[int(part) if part.isdigit() else part]
    place[last] = value
    with pytest.raises(DocumentError) as caught:
        doors.parse_run(changed, "x.json")
    assert f"x.json: {said}" in str(caught.value)
