import resource

import pytest

from tokenwatt_site.errors import UsageError
from tokenwatt_site.load.descriptors import raise_descriptors

SOFT_AND_HARD = resource.getrlimit(resource.RLIMIT_NOFILE)


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[int, int]]:
    """The kernel's limits, as this test sees and sets them."""
    held = {"now": (1024, 4096)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: held["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: held.update(now=pair))
    return held


def test_the_soft_limit_is_raised_to_the_hard_one(limits: dict[str, tuple[int, int]]) -> None:
    assert raise_descriptors(3840) == 4096
    assert limits["now"] == (4096, 4096)


def test_too_many_are_refused_with_the_command(limits: dict[str, tuple[int, int]]) -> None:
    with pytest.raises(UsageError, match="needs 4097 open files, and this shell allows 4096") as no:
        raise_descriptors(3841)
    assert "lower it to 3840" in no.value.hint
    assert "--nofile=4097:4097" in no.value.hint
    assert limits["now"] == (1024, 4096)


def test_without_a_hard_limit_as_many_as_needed(limits: dict[str, tuple[int, int]]) -> None:
    limits["now"] = (1024, resource.RLIM_INFINITY)
    assert raise_descriptors(8192) == 8448
    assert raise_descriptors(10) == 8448


def test_the_real_limit_can_be_raised() -> None:
    try:
        assert raise_descriptors(1) >= 257
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, SOFT_AND_HARD)
