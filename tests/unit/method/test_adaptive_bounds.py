from typing import Any

import pytest

from tokenwatt_site.documents.spec import SpecMeasurement, SpecSlo, SpecSweep
from tokenwatt_site.method.adaptive_bounds import bounds
from tokenwatt_site.method.adaptive_setting import Setting
from tokenwatt_site.method.ladder import Bounds
from tokenwatt_site.method.workloads import WORKLOADS


def bounds_of(**sweep: Any) -> Bounds:
    setting = Setting(
        workload=WORKLOADS["chat-mix-v1"],
        slo=SpecSlo(),
        seed=0,
        sweep=SpecSweep(strategy="adaptive", **sweep),
        measurement=SpecMeasurement(),
    )
    return bounds(setting, tail_s=40.0)


def test_the_least_is_a_rung_a_knee_and_the_confirm_windows() -> None:
    found = bounds_of(start_rps=5)
    assert found.windows_min == 5
    assert found.minutes_best == pytest.approx((12 + 30 + 5 + 20 + 90 + 10 + 3 * 220) / 60)


def test_the_most_is_hours_unless_the_spec_sets_a_bound() -> None:
    assert bounds_of(start_rps=5).minutes_worst > 240
    assert bounds_of(start_rps=5, max_minutes=90).minutes_worst == 90
    assert bounds_of(start_rps=0.5).minutes_worst > bounds_of(start_rps=5).minutes_worst


def test_a_quick_search_costs_less() -> None:
    quick, standard = bounds_of(mode="quick"), bounds_of()
    assert quick.minutes_best < standard.minutes_best
    assert quick.windows_max < standard.windows_max
