"""The streaming client on a real stream, before anything simulated is believed."""

import asyncio
from dataclasses import dataclass

import pytest

from tests.real.server import Server
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.load.clock import RealClock
from tokenwatt_site.load.connector import TcpConnector
from tokenwatt_site.load.loop import new_loop
from tokenwatt_site.load.player import Played, play
from tokenwatt_site.load.preflight import preflight
from tokenwatt_site.load.prompts import PromptMaker
from tokenwatt_site.load.target import Target
from tokenwatt_site.method.schedule import poisson_schedule
from tokenwatt_site.method.trace import RequestTrace
from tokenwatt_site.method.workloads import workload_of

pytestmark = pytest.mark.real

INPUT, OUTPUT = 64, 32
RATE_RPS, LOAD_S = 10.0, 4.0


@dataclass(frozen=True)
class Load:
    """What the client saw of a few seconds of load, and what the server counted meanwhile."""

    traces: list[RequestTrace]
    predicted: float
    prompted: float


def spec_of(url: str, api: str) -> Spec:
    return Spec.model_validate(
        {
            "name": "real",
            "engine": {"endpoint": url, "api": api},
            "model": {"name": "tiny", "vocab_size": 1534},
            "workload": {
                "trace": None,
                "input_tokens": {"fixed": INPUT},
                "output_tokens": {"fixed": OUTPUT},
            },
        }
    )


def loaded(llama: Server, api: str) -> Load:
    """Play a schedule and wait until every request is answered."""
    spec = spec_of(llama.url, api)
    facts = preflight(spec, llama.url)
    target = Target.of(spec, llama.url, facts)
    schedule = poisson_schedule(workload_of(spec.workload), RATE_RPS, LOAD_S, seed=1)
    prompts = PromptMaker.of(spec, facts)
    prompts.begin(0, schedule.input_tokens)
    clock = RealClock()

    async def run() -> Played:
        return await play(
            target,
            schedule,
            prompts.prompt,
            clock,
            TcpConnector(target),
            lambda _traces, _now_s: False,
            clock.now() + 0.5,
        )

    before = llama.idle_counters()
    with asyncio.Runner(loop_factory=new_loop) as runner:
        traces = runner.run(run()).traces
    after = llama.idle_counters()
    assert len(traces) == len(schedule)
    return Load(
        traces,
        after["tokens_predicted_total"] - before["tokens_predicted_total"],
        after["prompt_tokens_total"] - before["prompt_tokens_total"],
    )


@pytest.fixture(scope="module")
def by_ids(llama: Server) -> Load:
    return loaded(llama, "completions")


@pytest.fixture(scope="module")
def by_chat(llama: Server) -> Load:
    return loaded(llama, "chat")


@pytest.fixture(scope="module")
def by_responses(llama: Server) -> Load:
    return loaded(llama, "responses")


@pytest.fixture(params=["by_ids", "by_chat", "by_responses"])
def load(request: pytest.FixtureRequest) -> Load:
    found: Load = request.getfixturevalue(request.param)
    return found


def test_every_request_is_answered_to_the_token(load: Load) -> None:
    assert {(trace.outcome, trace.reason) for trace in load.traces} == {("ok", "")}
    assert {(trace.n_output, trace.n_source) for trace in load.traces} == {(OUTPUT, "usage")}


def test_usage_sums_up_to_the_servers_own_counters(load: Load) -> None:
    assert sum(trace.n_output or 0 for trace in load.traces) == load.predicted
    assert sum(trace.n_prompt or 0 for trace in load.traces) == load.prompted


def test_nothing_comes_from_a_cache(load: Load) -> None:
    assert {trace.n_cached for trace in load.traces} == {0}


def test_stamps_are_in_the_order_of_a_stream(load: Load) -> None:
    for trace in load.traces:
        assert trace.t_send_s is not None
        assert trace.t_end_s is not None
        stamps = [trace.t_sched_s, trace.t_send_s, *trace.events_s, trace.t_end_s]
        assert stamps == sorted(stamps)
        assert trace.events_s[0] < trace.events_s[-1]
        assert len(trace.events_s) <= OUTPUT


def test_ids_arrive_as_they_were_sent(by_ids: Load) -> None:
    assert {trace.n_prompt for trace in by_ids.traces} == {INPUT}


def test_text_has_the_asked_length_in_the_mean(by_chat: Load) -> None:
    counted = [trace.n_prompt or 0 for trace in by_chat.traces]

    assert len(set(counted)) > 1  # words are of several tokens, so single lengths differ
    assert sum(counted) / len(counted) == pytest.approx(INPUT, rel=0.1)
