"""Several meters at once, in virtual time: a node around two boards, read by three of them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.virtual_loop import run_virtual
from tests.support.virtual_run import VirtualRun, spec_of
from tokenwatt_site.documents.spec import Scope, Spec
from tokenwatt_site.measure import exit_code
from tokenwatt_site.method.identity import same_set_up
from tokenwatt_site.method.meters import HostFacts
from tokenwatt_site.method.samples import PowerSample
from tokenwatt_site.restore import take_up
from tokenwatt_site.session import Session
from tokenwatt_site.verify import verify

BOARD_W, NODE_DC_W, NODE_AC_W = 250.0, 900.0, 1000.0
IDLE = 0.4
"""Share of its power that a machine draws without load."""


@dataclass(slots=True)
class Truth:
    """A meter whose devices draw so much under load, and a share of it before and after."""

    scope: Scope
    devices: tuple[str, ...]
    watts: float
    hz: float = 10.0
    gain_pct: float | None = 1.0
    busy: Callable[[float], bool] = lambda _: True
    fails: Callable[[float, str], str | None] = lambda _t_s, _device: None
    name: str = "truth"
    hosts: tuple[HostFacts, ...] = ()
    source: str = field(init=False)

    def __post_init__(self) -> None:
        self.source = f"A meter of {self.scope}"

    @property
    def meter(self) -> "Truth":
        return self

    def between(self, start_s: float, end_s: float) -> list[PowerSample]:
        first = int(start_s * self.hz)
        times_s = [k / self.hz for k in range(first, int(end_s * self.hz) + 1)]
        return [self.sample(t_s, device) for t_s in times_s for device in self.devices]

    def sample(self, t_s: float, device: str) -> PowerSample:
        error = self.fails(t_s, device)
        if error is not None:
            return PowerSample(t_s, device, error=error)
        return PowerSample(t_s, device, power_w=self.watts * (1 if self.busy(t_s) else IDLE))

    def recent(self) -> list[PowerSample]:
        return []


def spec(**measurement: Any) -> Spec:
    meters = [
        {"source": "board"},
        {"source": "redfish", "url": "https://bmc.example"},
        {"source": "ipmi"},
    ]
    asked = {"repeats": 3, "idle_s": 4, "window_s": 3, "warmup_s": 1} | measurement
    return Spec.model_validate(
        spec_of(sweep={"rates": [60]}, measurement=asked).model_dump() | {"power": meters}
    )


def meters(**changes: Any) -> tuple[Truth, ...]:
    return (
        Truth("board", ("GPU-0", "GPU-1"), BOARD_W, **changes),
        Truth("node_dc", ("node",), NODE_DC_W),
        Truth("node_ac", ("wall",), NODE_AC_W, hz=1.0),
    )


def measured(out: Path, samplers: tuple[Truth, ...], asked: Spec | None = None) -> Session:
    return run_virtual(VirtualRun(out, asked or spec(), samplers=samplers).measure())


def test_three_meters_stand_side_by_side_with_their_scopes(tmp_path: Path) -> None:
    session = measured(tmp_path / "a.json", meters())
    config = session.document().configs[0]
    assert config.energy is not None
    assert config.meters is not None
    every = [config.energy, *(each.energy for each in config.meters)]
    assert [energy.scope for energy in every] == ["board", "node_dc", "node_ac"]
    watts = [2 * BOARD_W, NODE_DC_W, NODE_AC_W]
    assert [e.joules for e in every] == pytest.approx(
        [e.seconds * w for e, w in zip(every, watts, strict=True)]
    )
    assert config.energy.node_minus_boards_w == pytest.approx(NODE_DC_W - 2 * BOARD_W)
    assert config.output_tok_s is not None
    assert every[2].j_per_output_token == pytest.approx(NODE_AC_W / config.output_tok_s)
    assert [each.verdict for each in config.meters] == [None, None]  # scopes are never compared
    assert config.windows is not None
    assert config.windows[0].meters is not None
    assert len(config.windows[0].meters) == 2
    assert session.done is not None
    assert exit_code(session.done, session.windows) == 0


def test_every_figure_of_three_meters_is_recomputed(tmp_path: Path) -> None:
    measured(tmp_path / "a.json", meters())
    names = sorted(path.name for path in (tmp_path / "a").glob("power*"))
    assert names == ["power-2.jsonl.gz", "power-3.jsonl.gz", "power.jsonl.gz"]
    assert verify(tmp_path / "a.json").holds()


def test_idle_power_is_read_before_and_after_and_net_figures_follow(tmp_path: Path) -> None:
    rests_s: list[float] = []
    rest_s = 4 + 2 * 2.0  # and settling on both sides, two readings of the slowest meter

    def told(event: dict[str, Any]) -> None:
        if "idle power" in event.get("text", ""):
            rests_s.append(asyncio.get_running_loop().time())

    def busy(t_s: float) -> bool:
        return rests_s[0] + rest_s < t_s < rests_s[1] + 1

    run = VirtualRun(tmp_path / "a.json", spec(), samplers=meters(busy=busy), tell=told)
    samplers = run.samplers
    run.samplers = meters()
    run_virtual(run.measure())  # once to know the times, which are the same again
    run.out = tmp_path / "b.json"
    run.samplers, run.tell = samplers, lambda _: None
    energy = run_virtual(run.measure()).document().configs[0].energy
    assert energy is not None
    assert energy.joules == pytest.approx(2 * BOARD_W * energy.seconds)
    assert energy.idle_w == pytest.approx(IDLE * 2 * BOARD_W)
    assert energy.idle_s == 8
    assert energy.idle_drift_w == pytest.approx(0.0, abs=1e-6)
    assert energy.j_per_output_token is not None
    net = energy.j_per_output_token * (1 - IDLE)
    assert energy.net_j_per_output_token == pytest.approx(net)


def test_no_idle_asked_is_no_idle_power(tmp_path: Path) -> None:
    energy = measured(tmp_path / "a.json", meters(), spec(idle_s=0)).document().configs[0].energy
    assert energy is not None
    assert (energy.idle_w, energy.idle_s, energy.net_j_per_output_token) == (None, None, None)


def test_a_second_meter_that_dies_spoils_no_figure_of_the_first(tmp_path: Path) -> None:
    board, node, wall = meters()
    node.fails = lambda t_s, _: "timeout" if t_s > 12 else None
    session = measured(tmp_path / "a.json", (board, node, wall))
    config = session.document().configs[0]
    assert config.energy is not None
    assert config.energy.valid
    assert config.energy.j_per_output_token is not None
    assert config.energy.node_minus_boards_w is None
    assert config.meters is not None
    dead, alive = (each.energy for each in config.meters)
    assert (dead.valid, dead.joules, dead.j_per_output_token) == (False, None, None)
    assert "timeout" in dead.reasons
    assert alive.valid
    assert session.done is not None
    assert exit_code(session.done, session.windows) == 5  # it was asked for
    assert verify(tmp_path / "a.json").holds()


@pytest.mark.parametrize("factor, verdict", [(1.01, "agree"), (1.04, "warn"), (0.9, "disagree")])
def test_a_second_meter_of_the_same_scope_is_held_against_the_first(
    tmp_path: Path, factor: float, verdict: str
) -> None:
    second = Truth("board", ("GPU-0", "GPU-1"), factor * BOARD_W)
    _, _, wall = meters()
    session = measured(tmp_path / "a.json", (meters()[0], second, wall))
    config = session.document().configs[0]
    assert config.energy is not None
    assert config.meters is not None
    assert config.meters[0].verdict == verdict
    assert config.meters[0].difference_pct == pytest.approx(100 * (factor - 1))
    assert config.energy.valid == (verdict != "disagree")
    assert ("second_meter_disagrees" in config.energy.reasons) == (verdict == "disagree")
    assert (config.energy.joules is None) == (verdict == "disagree")
    if verdict == "disagree":
        assert config.energy.net_j_per_output_token is None
        assert config.energy.uncertainty is None
    assert session.done is not None
    assert exit_code(session.done, session.windows) == (5 if verdict == "disagree" else 0)


HOSTS = (
    HostFacts("node0", "prefill"),
    HostFacts("node1", "decode", clock_offset_ms=-3.0, clock_error_ms=0.4),
    HostFacts("node2", "decode", clock_offset_ms=9.0, clock_error_ms=0.2),
)


def deployment(**changes: Any) -> tuple[Spec, Truth]:
    asked = spec().model_dump()
    asked["power"] = None
    asked["hosts"] = [
        {"name": host.name, "role": host.role, "power": [{"source": "board"}]} for host in HOSTS
    ]
    boards = Truth("board", ("node0/a", "node1/a", "node2/a"), BOARD_W, hosts=HOSTS, **changes)
    return Spec.model_validate(asked), boards


def test_energy_of_several_hosts_is_summed_by_host_and_role(tmp_path: Path) -> None:
    asked, boards = deployment()
    session = measured(tmp_path / "a.json", (boards,), asked)
    energy = session.document().configs[0].energy
    assert energy is not None
    assert energy.hosts is not None
    assert energy.joules == pytest.approx(3 * BOARD_W * energy.seconds)
    assert [host.joules for host in energy.hosts] == pytest.approx(3 * [BOARD_W * energy.seconds])
    assert energy.roles == pytest.approx(
        {"prefill": BOARD_W * energy.seconds, "decode": 2 * BOARD_W * energy.seconds}
    )
    assert [(host.clock_offset_ms, host.clock_error_ms) for host in energy.hosts] == [
        (None, None),
        (-3.0, 0.4),
        (9.0, 0.2),
    ]
    assert verify(tmp_path / "a.json").holds()


def test_a_missing_host_leaves_no_energy(tmp_path: Path) -> None:
    asked, boards = deployment(
        fails=lambda t_s, device: "unreachable" if device == "node2/a" and t_s > 12 else None
    )
    energy = measured(tmp_path / "a.json", (boards,), asked).document().configs[0].energy
    assert energy is not None
    assert (energy.valid, energy.joules, energy.roles) == (False, None, None)
    assert energy.hosts is not None
    assert [host.joules for host in energy.hosts] == [None, None, None]
    assert "unreachable" in energy.reasons


def test_a_run_over_several_hosts_goes_on_though_its_clocks_were_measured_anew(
    tmp_path: Path,
) -> None:
    asked, boards = deployment()
    session = measured(tmp_path / "a.json", (boards,), asked)
    later = tuple(replace(host, clock_offset_ms=77.0, clock_error_ms=3.0) for host in HOSTS)
    store, rebuilt = take_up(tmp_path / "a.json")
    store.close()
    begun, now = session.meters(), [replace(session.meters()[0], hosts=later)]
    same_set_up(rebuilt.begin, rebuilt.begin.resolved, now, rebuilt.begin.server)
    resumed = VirtualRun(tmp_path / "a.json", asked, samplers=(replace(boards, hosts=later),))
    document = run_virtual(resumed.measure()).document()
    assert document.configs[0].energy is not None
    assert document.configs[0].energy.hosts is not None
    told = [host.clock_offset_ms for host in document.configs[0].energy.hosts]
    assert told == [host.clock_offset_ms for host in begun[0].hosts]
    assert verify(tmp_path / "a.json").holds()
