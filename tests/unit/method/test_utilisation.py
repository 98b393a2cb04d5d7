"""MBU of measured windows, by hand, and every reason why there is none."""

import math
from typing import Any

import pytest

from tests.support.configs import TINY
from tests.support.traces import request, steady
from tests.support.windows import spec_of
from tokenwatt_site.documents.model_config import ModelConfig
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import UsageError
from tokenwatt_site.method.mbu import distinct_experts
from tokenwatt_site.method.utilisation import Utilisation, utilisation
from tokenwatt_site.method.window import Window, WindowStats, judge

FILES = ModelConfig(TINY, None, "f" * 64)


def asked(**model: Any) -> Spec:
    return spec_of(model={"name": "Tiny", "config": "config.json", **model})


def window(index: int = 0, **timing: float) -> WindowStats:
    """200 answers of 11 tokens in 10 s: 220 token events a second, 20 ms each unless told."""
    traces = [steady(i / 20, **timing) for i in range(-20, 220)]
    return judge(traces, Window(index, "confirm", 20.0, 0.0, 10.0, 2.0), spec_of().slo, 30.0)


def found(spec: Spec, *windows: WindowStats, peak_tbs: float | None = 1e-3) -> Utilisation:
    return utilisation(spec, FILES, peak_tbs, windows)


def test_batch_context_and_experts_follow_from_the_windows() -> None:
    result = found(asked(), window())
    block = result.block
    assert block is not None
    assert result.missing is None
    assert block["tpot_ms"] == pytest.approx(20)
    assert block["batch"] == pytest.approx(220 * 0.020, rel=0.01)
    assert block["ctx_tokens"] == pytest.approx(100 + 11 / 2)
    begun = 20 * 0.020
    alone, mixed = (distinct_experts(4, 2, block["batch"] + x) for x in (0, 100))
    assert block["distinct_experts"] == pytest.approx((1 - begun) * alone + begun * mixed)
    assert result.pct == pytest.approx(
        100 * (block["weight_bytes"] + block["kv_bytes"]) / 0.020 / 1e9
    )


def test_replicas_share_the_sequences_and_each_reads_the_weights() -> None:
    one, two = found(asked(), window()).block, found(asked(replicas=2), window()).block
    assert one is not None
    assert two is not None
    assert two["batch"] == pytest.approx(one["batch"] / 2)
    assert two["accelerators"] == 2


def test_windows_are_pooled_by_tokens_and_seconds() -> None:
    fast, slow = window(0, tpot_s=0.01), window(1, tpot_s=0.03)
    both = found(asked(), fast, slow).block
    assert both is not None
    assert both["tpot_ms"] == pytest.approx(20)
    tokens = math.fsum(each.output_tok_s for each in (fast, slow)) / 2
    assert both["batch"] == pytest.approx(tokens * 0.020)


def test_a_draft_that_the_spec_tells_of_is_counted() -> None:
    drafted = asked(geometry={"tokens_verified": 4, "tokens_accepted": 2})
    plain, two = found(asked(), window()), found(drafted, window())
    assert plain.pct is not None
    assert two.pct is not None
    assert two.pct < plain.pct
    for wrong in ({"tokens_accepted": 2}, {"tokens_verified": "3"}, {"tokens_verified": 0}):
        with pytest.raises(UsageError, match="geometry"):
            found(asked(geometry=wrong), window())


def test_more_than_can_be_read_is_no_figure() -> None:
    result = found(asked(), window(), peak_tbs=1e-9)
    assert result.pct is None
    assert result.missing is not None
    assert result.missing[0] == "MBU_IMPOSSIBLE"
    assert result.block is not None


@pytest.mark.parametrize(
    "files, peak_tbs, windows, code",
    [
        (None, 1.0, [window()], "NO_CONFIG"),
        (FILES, None, [window()], "NO_BANDWIDTH"),
        (FILES, 1.0, [], "NO_CONFIRMED_RATE"),
        (
            FILES,
            1.0,
            [
                judge(
                    [request(i / 20, [i / 20 + 0.1]) for i in range(200)],
                    Window(0, "confirm", 20.0, 0.0, 10.0, 2.0),
                    spec_of().slo,
                    30.0,
                )
            ],
            "NO_TPOT",
        ),
    ],
)
def test_what_is_missing_says_why(
    files: ModelConfig | None, peak_tbs: float | None, windows: list[WindowStats], code: str
) -> None:
    result = utilisation(asked(), files, peak_tbs, windows)
    assert (result.pct, result.block) == (None, None)
    assert result.missing is not None
    assert result.missing[0] == code
