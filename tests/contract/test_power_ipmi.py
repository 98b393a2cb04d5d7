"""Real ipmitool against a controller on pyghmi."""

import pytest

from tests.support.bmc import PASSWORD, bmc
from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.errors import RefusedError
from tokenwatt_site.power import open_meter
from tokenwatt_site.power.meter import Meter


def opened(host: str) -> Meter:
    given = {"host": host, "username": "reader", "password_env": "BMC_PASSWORD"}
    asked = SpecPower.model_validate({"source": "ipmi", **given})
    return open_meter(asked, gpus=None, count=0, simulator_url=None)


@pytest.fixture(autouse=True)
def _password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMC_PASSWORD", PASSWORD)


def test_the_reading_of_the_moment_and_a_controller_that_dies(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with bmc(5312) as (host, process):
        meter = opened(host)
        assert [(s.power_w, s.error) for s in meter.read()] == [(5312, None)]
        assert meter.scope == "node_ac"
        assert host not in meter.source
        process.kill()
        process.wait()
        monkeypatch.setattr("tokenwatt_site.power.ipmi.TIMEOUT_S", 0.5)
        assert [(s.power_w, s.error) for s in meter.read()] == [(None, "timeout")]


@pytest.mark.parametrize("watts", [0, -1])
def test_a_controller_without_power_is_refused(watts: int) -> None:
    with bmc(watts) as (host, _), pytest.raises(RefusedError, match="gives no power"):
        opened(host)


def test_a_wrong_password_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BMC_PASSWORD", "hunter2")
    with bmc(5312) as (host, _), pytest.raises(RefusedError) as raised:
        opened(host)
    assert "hunter2" not in str(raised.value) + raised.value.hint
    assert "password" in raised.value.hint
