import asyncio
import gc
import os
import time
from collections.abc import Callable

import pytest

from tokenwatt_site.load import alarm
from tokenwatt_site.load.alarm import Alarms
from tokenwatt_site.load.loop import new_loop

pytestmark = pytest.mark.skipif(not Alarms.available(), reason="not a system that has them")
LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, new_loop])
Loop = Callable[[], asyncio.AbstractEventLoop]


@LOOPS
@pytest.mark.parametrize("ahead_s", [-1.0, 0.0, 0.0002, 0.003])
def test_it_never_rings_early(loop: Loop, ahead_s: float) -> None:
    async def early_s() -> float:
        due_s = time.monotonic() + ahead_s
        await Alarms().wait(due_s)
        return due_s - time.monotonic()

    with asyncio.Runner(loop_factory=loop) as runner:
        assert runner.run(early_s()) <= 0


@LOOPS
def test_waits_side_by_side_end_in_order(loop: Loop) -> None:
    ended: list[int] = []

    async def wait(alarms: Alarms, number: int, due_s: float) -> None:
        await alarms.wait(due_s)
        ended.append(number)

    async def main() -> None:
        alarms, now_s = Alarms(), time.monotonic()
        await asyncio.gather(*[wait(alarms, n, now_s + 0.004 * n) for n in (3, 1, 2)])

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())
    assert ended == [1, 2, 3]


@LOOPS
def test_a_wait_given_up_leaves_its_descriptor_for_the_next(
    loop: Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    new = alarm._new

    def counted() -> int:
        made.append(new())
        return made[-1]

    async def main() -> None:
        alarms = Alarms()
        waiting = asyncio.create_task(alarms.wait(time.monotonic() + 3600))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        await alarms.wait(time.monotonic() + 0.001)

    monkeypatch.setattr(alarm, "_new", counted)
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(main())
    assert len(made) == 1
    gc.collect()
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(made[0])


def test_a_failed_call_is_an_error_with_the_systems_words() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        alarm._set(-1, 1.0)
