"""Points this project's client at every case, over real connections, and judges what it saw."""

import asyncio
from array import array

from tokenwatt_site.load.clock import RealClock
from tokenwatt_site.load.conformance.case import Case
from tokenwatt_site.load.conformance.cases import rows
from tokenwatt_site.load.conformance.cases.endings import TIMEOUT_S
from tokenwatt_site.load.conformance.server import serving
from tokenwatt_site.load.conformance.verdict import Row, Seen
from tokenwatt_site.load.connector import TcpConnector
from tokenwatt_site.load.player import play
from tokenwatt_site.load.target import Target
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.slo import tpot_s, ttft_s
from tokenwatt_site.method.trace import RequestTrace

_ROUNDS = 3
_STEP_S = 0.01  # between the starts of two rows, for 60 in flight at a time
_AHEAD_S = 0.1


async def check(tolerance_s: float) -> list[Row]:
    """Return a row for each case in each dialect.

    Stub and client share this machine with whatever else runs on it. So a row whose facts are
    right and whose times aren't is played again, at most three times in all: what the machine
    held up once is on time another time, what a client misreads never is.
    """
    found: dict[tuple[str, str], Row] = {}
    left = sorted(rows(), key=lambda row: -row[0].truth.end_s)  # those that wait longest first
    async with serving() as root:
        for turn in range(_ROUNDS):
            step_s = _STEP_S * 5**turn
            played = await asyncio.gather(
                *(
                    _row(root, case, api, tolerance_s, i * step_s)
                    for i, (case, api) in enumerate(left)
                )
            )
            found |= {(row.case.name, row.api): row for row in played}
            left = [
                (row.case, row.api) for row in played if row.faults.times and not row.faults.facts
            ]
    return [found[case.name, api] for case, api in rows()]


async def _row(root: str, case: Case, api: str, tolerance_s: float, after_s: float) -> Row:
    await asyncio.sleep(after_s)
    return Row.of(case, api, seen_of(await _ask(root, case, api)), tolerance_s)


async def _ask(root: str, case: Case, api: str) -> RequestTrace:
    target = Target(
        f"{root}/{case.name}/v1", api, case.name, timeout_s=TIMEOUT_S, extra_body=case.extra
    )
    schedule = Schedule(array("d", [0.0]), array("q", [5]), array("q", [case.asked]), 0, 1.0)
    clock = RealClock()
    played = await play(
        target,
        schedule,
        lambda _: "Say something.",
        clock,
        TcpConnector(target),
        _never,
        clock.now() + _AHEAD_S,
    )
    return played.traces[0]


def _never(traces: list[RequestTrace], now_s: float) -> bool:
    """Let every request come to its end."""
    del traces, now_s
    return False


def seen_of(trace: RequestTrace) -> Seen:
    """Return what this project's client says of a request. Its times count from the schedule."""
    return Seen(
        outcome="ok" if trace.outcome == "ok" else "failed",
        reason=trace.reason,
        tokens=trace.n_output,
        ttft_s=ttft_s(trace),
        tpot_s=tpot_s(trace),
        source=trace.n_source,
        prompt_tokens=trace.n_prompt,
        answer_s=None if trace.t_answer_s is None else trace.t_answer_s - trace.t_sched_s,
        coalesced=trace.coalesced,
    )
