import pytest

from tokenwatt_site.method.update_period import UpdatePeriod, update_period


def readings(hz: float, period_s: float, seconds: float) -> tuple[list[float], list[float]]:
    times_s = [k / hz for k in range(int(seconds * hz))]
    return times_s, [500.0 + (int(t_s / period_s + 1e-9) * 37) % 11 for t_s in times_s]


@pytest.mark.parametrize("period_s", [0.1, 0.5, 1.0])
def test_the_period_is_found_between_readings(period_s: float) -> None:
    found = update_period(*readings(50, period_s, 10))
    assert found is not None
    assert found.seconds == pytest.approx(period_s, abs=0.021)
    assert not found.at_most


def test_a_meter_that_is_new_at_every_reading_may_be_faster() -> None:
    found = update_period(*readings(10, 0.01, 5))
    assert found == UpdatePeriod(pytest.approx(0.1), at_most=True)


def test_a_value_that_comes_back_by_chance_changes_nothing() -> None:
    times_s = [k / 10 for k in range(60)]
    values = [float(k // 5) for k in range(60)]
    values[20:25] = [3.0] * 5  # as before
    found = update_period(times_s, values)
    assert found is not None
    assert found.seconds == pytest.approx(0.5)


@pytest.mark.parametrize("values", [[], [1.0], [1.0] * 30, [1.0, 2.0, 3.0]])
def test_too_few_changes_say_nothing(values: list[float]) -> None:
    assert update_period([k / 10 for k in range(len(values))], values) is None
