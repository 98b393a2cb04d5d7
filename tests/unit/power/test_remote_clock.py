import pytest

from tokenwatt_site.power.remote_clock import RemoteClock


def test_the_quickest_answer_sets_the_clock() -> None:
    clock = RemoteClock()
    clock.see(10.0, 10.4, 110.3)  # slow, and answered late in it
    clock.see(20.0, 20.01, 120.005)
    clock.see(30.0, 30.2, 130.0)
    assert clock.offset_s == pytest.approx(100.0)
    assert clock.error_s == pytest.approx(0.005)
    assert clock.ours(150.0) == pytest.approx(50.0)
