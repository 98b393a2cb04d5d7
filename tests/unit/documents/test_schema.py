"""The exported schemas say what the models say, and both take the published contract unchanged."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.support.shared import ROOT, shared_path
from tokenwatt_site.documents import yamlfile
from tokenwatt_site.documents.doors import dump, load_run, load_spec, run_faults
from tokenwatt_site.documents.run import Run
from tokenwatt_site.documents.schema import MODELS, files, schema

SEED = "seed/h200x4-deepseek-v4.1-flash-fp8-vllm.json"


@cache
def seed() -> Any:
    return json.loads(shared_path(SEED).read_bytes())


@cache
def validator() -> Draft202012Validator:
    return Draft202012Validator(schema("run"))


def accepted_by_both(document: Any) -> tuple[bool, bool]:
    return isinstance(run_faults(document), Run), validator().is_valid(document)


@pytest.mark.parametrize("name", files())
def test_schema_files_are_those_of_the_models(name: str) -> None:
    """Stale: run `make schemas`."""
    assert (ROOT / "schemas" / name).read_text(encoding="utf-8") == files()[name]


def test_schema_folder_holds_nothing_else() -> None:
    assert {path.name for path in (ROOT / "schemas").iterdir()} == set(files())


@pytest.mark.parametrize("name", MODELS)
def test_schema_is_valid_draft_2020_12(name: str) -> None:
    exported = schema(name)
    Draft202012Validator.check_schema(exported)
    assert exported["$schema"] == Draft202012Validator.META_SCHEMA["$id"]


def test_seed_is_accepted_unchanged_by_both() -> None:
    assert accepted_by_both(seed()) == (True, True)


def test_seed_round_trips_byte_for_byte() -> None:
    """Same keys in the same order, and every number as it was written."""
    run, raw = load_run(shared_path(SEED))
    text = json.dumps(dump(run), indent=2)
    assert text.encode() == raw.rstrip(b"\n")


def test_seed_spec_saved_as_yaml_is_a_spec_file(tmp_path: Path) -> None:
    file = tmp_path / "seed.spec.yaml"
    file.write_text(yamlfile.dumps(seed()["spec"]), encoding="utf-8")
    assert dump(load_spec(file)) == seed()["spec"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "specs").rglob("*.spec.yaml")), ids=lambda p: p.name
)
def test_ready_specs_are_accepted_by_both(path: Path) -> None:
    data = yamlfile.load(path).data
    load_spec(path)
    assert [error.message for error in Draft202012Validator(schema("spec")).iter_errors(data)] == []


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    yield path
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from places(child, (*path, key))


def with_value(document: Any, path: tuple[str | int, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(document))
    target = copy
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    return copy


WRONG = [None, True, -1, 0, 1, 0.5, 1.5e9, "", "words", [], ["words"], {}, {"a": 1}]


@given(st.data())
def test_pydantic_and_jsonschema_judge_a_changed_seed_alike(data: st.DataObject) -> None:
    """One value anywhere is replaced; both doors open, or neither."""
    path = data.draw(st.sampled_from([place for place in places(seed()) if place]))
    value = data.draw(st.sampled_from(WRONG))
    by_pydantic, by_schema = accepted_by_both(with_value(seed(), path, value))
    assert by_pydantic == by_schema


@given(st.data())
def test_an_unknown_key_is_refused_by_both(data: st.DataObject) -> None:
    free = {
        "overrides",
        "extra_body",
        "geometry",
        "throttle_counts",
    }  # maps of the publisher's keys
    objects = [
        place
        for place in places(seed())
        if isinstance(at(seed(), place), dict) and not free & set(place)
    ]
    path = data.draw(st.sampled_from(objects))
    assert accepted_by_both(with_value(seed(), (*path, "unheard_of"), 1)) == (False, False)


def at(document: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        document = document[key]
    return document
