"""MBU from what a client sees, against the bytes that the step model really read."""

import pytest

from tests.support.configs import config_path, real_model
from tests.support.windows import spec_of
from tokenwatt_site.documents.model_config import load_model_config
from tokenwatt_site.method.draw import draw
from tokenwatt_site.method.mbu import Machine, Step, mbu
from tokenwatt_site.method.models.model import Model
from tokenwatt_site.method.probe import Probe
from tokenwatt_site.method.profiles import shape_of
from tokenwatt_site.method.shape import Shape
from tokenwatt_site.method.step_model import StepModel
from tokenwatt_site.method.utilisation import utilisation
from tokenwatt_site.method.virtual import trace
from tokenwatt_site.method.window import Window, judge

PEAK_TBS = 4.8
WARMUP_S, END_S = 60.0, 300.0


def server_of(profile: str, model: Model, tp: int) -> Shape:
    """Return a server whose steps read the bytes of a real model."""
    read = {True: 0.0, False: 0.0}
    for module in model.geometry.modules:
        read[module.group == "experts"] += module.read_params * model.precision(module)[0].bytes
    a_token = mbu(model, Step(1, 1000, 1), Machine(PEAK_TBS, tensor_parallel=tp)).kv_bytes / 1000
    shape = model.geometry
    experts = {
        "expert_bytes": read[True],
        "experts": shape.experts,
        "experts_per_token": shape.top_k,
    }
    return shape_of(
        profile,
        {
            "dense_bytes": read[False],
            "kv_bytes": a_token,
            "gpus": tp,
            "bandwidth_share": 0.9,
            "noise_sd": 0.0,
            **(experts if shape.experts else {}),
        },
    )


@pytest.mark.parametrize(
    "name, tp, profile, rate_rps",
    [
        ("Qwen--Qwen3-8B", 1, "d8", 2.0),
        ("Qwen--Qwen3-8B", 1, "d8", 4.0),
        ("Qwen--Qwen3-30B-A3B", 1, "cal", 4.0),
        ("Qwen--Qwen3-235B-A22B-FP8", 4, "cal", 2.0),
        ("Qwen--Qwen3-235B-A22B-FP8", 4, "cal", 4.0),
    ],
)
def test_within_three_percent_of_what_was_read(
    name: str, tp: int, profile: str, rate_rps: float
) -> None:
    spec = spec_of(
        workload={"trace": "chat-mix-v1", "seed": 3},
        model={"name": name, "config": "config.json", "tensor_parallel": tp},
    )
    server = StepModel(server_of(profile, real_model(name), tp))
    probe = Probe(rate_rps, "confirm", END_S - WARMUP_S, WARMUP_S, 1, 0)
    traces = trace(server, draw(spec, probe, None), END_S)
    window = Window(0, "confirm", rate_rps, WARMUP_S, END_S, WARMUP_S)
    stats = judge(traces, window, spec.slo, END_S)
    found = utilisation(spec, load_model_config(config_path(name)), PEAK_TBS, [stats])
    read_pct = 100 * server.bytes_read / (END_S * PEAK_TBS * 1e12 * tp)
    assert found.pct == pytest.approx(read_pct, rel=0.03)
