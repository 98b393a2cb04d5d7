"""The bounds of a spec: a slip in a number is refused at the door."""

from typing import Any

import pytest

from tokenwatt_site.documents.doors import parse_spec
from tokenwatt_site.errors import UsageError

ENGINE = {"endpoint": "simulator:"}


def parse(section: str, values: dict[str, Any]) -> None:
    base: dict[str, Any] = {"name": "s", "engine": ENGINE, "model": {"name": "m"}}
    inner = base.get(section, {})
    parse_spec(base | {section: inner | values})


@pytest.mark.parametrize(
    "section, values",
    [
        ("workload", {"input_tokens": {"fixed": 10**12}}),
        ("workload", {"output_tokens": {"fixed": 10**20}}),
        ("workload", {"input_tokens": {"median": 2**20 + 1, "p90": 2**20 + 2}}),
        ("workload", {"input_tokens": {"median": 1.0, "p90": 1e12}}),
        ("workload", {"input_tokens": {"median": 1.0, "p90": 2.0, "max": 10**12}}),
        ("hardware", {"gpus": []}),
        ("sweep", {"growth": 1.001}),
        ("sweep", {"growth": 10**400}),
        ("sweep", {"bisect_steps": 101}),
        ("sweep", {"max_backoffs": 101}),
        ("sweep", {"confirm_steps": 101}),
        ("measurement", {"repeats": 101}),
        ("power", {"source": "board", "sampling_hz": 0.009}),
        ("power", {"source": "board", "sampling_hz": 101}),
    ],
)
def test_a_value_out_of_all_measure_is_refused(section: str, values: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match=section):
        parse(section, values)


@pytest.mark.parametrize(
    "section, values",
    [
        ("workload", {"input_tokens": {"fixed": 2**20}}),
        ("workload", {"input_tokens": {"median": 1024, "p90": 4096.0, "max": 8192}}),
        ("sweep", {"growth": 1.01, "bisect_steps": 0, "confirm_steps": 100}),
        ("sweep", {"growth": 2}),
        ("power", {"source": "board", "sampling_hz": 0.01}),
        ("power", {"source": "board", "sampling_hz": 100}),
    ],
)
def test_the_bounds_themselves_are_allowed(section: str, values: dict[str, Any]) -> None:
    parse(section, values)


@pytest.mark.parametrize("key", ["sk-live-0123456789", "Bearer x", "1A", ""])
def test_a_key_where_its_variables_name_belongs_is_refused_unseen(key: str) -> None:
    with pytest.raises(UsageError, match="api_key_env") as refused:
        parse("engine", {"api_key_env": key})
    assert not key or key not in str(refused.value)
