import asyncio

import pytest

from tests.support.virtual_loop import VirtualClock, run_virtual
from tokenwatt_site.load.alarm import Alarms
from tokenwatt_site.load.clock import RealClock
from tokenwatt_site.load.loop import new_loop


async def turns(counted: list[int]) -> None:
    while True:
        counted[0] += 1
        await asyncio.sleep(0)


async def wait_and_count(ahead_s: float) -> tuple[float, int]:
    """Return by how much a wait ended early, and how often another task ran meanwhile."""
    counted = [0]
    other = asyncio.create_task(turns(counted))
    clock = RealClock()
    due_s = clock.now() + ahead_s
    await clock.sleep_until(due_s)
    early_s = due_s - clock.now()
    other.cancel()
    return early_s, counted[0]


@pytest.mark.parametrize("alarms", [True, False])
@pytest.mark.parametrize("ahead_s", [-1.0, 0.0, 0.0002, 0.0005, 0.005])
def test_a_wait_never_ends_early_and_lets_others_run(
    ahead_s: float, monkeypatch: pytest.MonkeyPatch, *, alarms: bool
) -> None:
    if not alarms:
        monkeypatch.setattr(Alarms, "available", lambda: False)
    with asyncio.Runner(loop_factory=new_loop) as runner:
        early_s, others = runner.run(wait_and_count(ahead_s))
    assert early_s <= 0
    assert others >= 1


def test_the_loop_is_uvloop_where_it_is_installed() -> None:
    loop = new_loop()
    loop.close()
    assert type(loop).__module__.startswith("uvloop")


def test_a_missing_uvloop_gives_asyncio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "uvloop", None)
    loop = new_loop()
    loop.close()
    assert type(loop).__module__.startswith("asyncio")


def test_virtual_time_passes_only_by_waiting() -> None:
    async def main() -> list[float]:
        clock = VirtualClock()
        start_s = clock.now()
        await clock.sleep_until(start_s + 3600)
        await asyncio.sleep(0.25)
        return [clock.now() - start_s, asyncio.get_running_loop().time() - start_s]

    assert run_virtual(main()) == pytest.approx([3600.25, 3600.25])


def test_virtual_time_that_nothing_can_move_is_an_error() -> None:
    async def main() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(RuntimeError, match="stands still"):
        run_virtual(main())
