"""Real faults of real tools, each played through the whole client against a server of known truth.

The streams are those of ``conformance serve``; here in virtual time, so that their times are exact.
"""

from array import array
from collections import Counter

import pytest

from tests.support.scripted import ScriptedServer
from tests.support.virtual_loop import MemoryConnector, VirtualClock, run_virtual
from tokenwatt_site.load.conformance.case import Case
from tokenwatt_site.load.conformance.cases import rows
from tokenwatt_site.load.conformance.cases.endings import TIMEOUT_S
from tokenwatt_site.load.conformance.writer import WORDS, WRITERS
from tokenwatt_site.load.player import Played, play
from tokenwatt_site.load.target import Target
from tokenwatt_site.method.schedule import Schedule
from tokenwatt_site.method.trace import RequestTrace

ROWS = [pytest.param(case, api, id=f"{api}/{case.name}") for case, api in rows()]


def played(case: Case, api: str) -> Played:
    server = ScriptedServer(lambda *_: case.script(WRITERS[api]))

    async def run() -> Played:
        clock = VirtualClock()
        schedule = Schedule(array("d", [0.1]), array("q", [5]), array("q", [case.asked]), 0, 1.0)
        target = Target("http://server/v1", api, "m", timeout_s=TIMEOUT_S, extra_body=case.extra)
        connector = MemoryConnector(server)
        return await play(
            target, schedule, lambda _: "hi", clock, connector, lambda *_: False, clock.now() + 1
        )

    return run_virtual(run())


def tpot_s(trace: RequestTrace) -> float | None:
    """(last − first token)/(n − tokens of the first event), as the method defines it."""
    decoded = (trace.n_output or 0) - trace.n_first
    if trace.outcome != "ok" or trace.coalesced or decoded < 1:
        return None
    return (trace.events_s[-1] - trace.events_s[0]) / decoded


@pytest.mark.parametrize("case, api", ROWS)
def test_trap(case: Case, api: str) -> None:
    (trace,) = played(case, api).traces
    truth = case.truth
    assert (trace.outcome, trace.reason) == (truth.outcome, truth.reason)
    assert (trace.n_output, trace.n_source) == (truth.tokens, truth.source)
    assert trace.t_end_s is not None
    assert trace.t_end_s - trace.t_sched_s == pytest.approx(truth.end_s, abs=1e-6)
    ttft_s = trace.events_s[0] - trace.t_sched_s if trace.events_s else None
    assert ttft_s == pytest.approx(truth.ttft_s, abs=1e-6)
    assert tpot_s(trace) == pytest.approx(truth.tpot_s, abs=1e-6)
    if truth.outcome == "ok":
        assert trace.coalesced is truth.coalesced
        answer_s = (trace.t_answer_s or 0.0) - trace.t_sched_s
        assert answer_s == pytest.approx(truth.answer_s or truth.ttft_s, abs=1e-6)


@pytest.mark.parametrize("api", WRITERS)
@pytest.mark.parametrize(
    "name, reason", [("error-object", "error"), ("200-json-error", "error"), ("400", "http_400")]
)
def test_a_failed_request_still_has_its_words(name: str, reason: str, api: str) -> None:
    case = next(case for case, _ in rows() if case.name == name)
    assert played(case, api).messages == {reason: WORDS}


def test_a_timeout_counts_from_sending() -> None:
    never = next(case for case, _ in rows() if case.name == "silent")
    trace = played(never, "chat").traces[0]
    assert trace.t_send_s is not None
    assert trace.t_end_s == pytest.approx(trace.t_send_s + TIMEOUT_S)


def test_no_row_is_named_twice() -> None:
    assert [name for name, n in Counter((c.name, api) for c, api in rows()).items() if n > 1] == []
