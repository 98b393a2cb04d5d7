"""What ipmitool prints, and what of it is a reading."""

import pytest

from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.errors import RefusedError, UsageError
from tokenwatt_site.power.ipmi import dcmi_w, open_ipmi, sensors_w

PRINTED = """
    Instantaneous power reading:                  {} Watts
    Minimum during sampling period:               1180 Watts
    Maximum during sampling period:               6021 Watts
    Average power reading over sample period:     4977 Watts
    IPMI timestamp:                           S+ 00:00:00    Sampling period: 00000060 Seconds.
    Power reading state is:                   {}

"""
SUPPLY = "PS{} Power In     | 7{} h | ok  | 10.{} | {}\n"


def test_the_reading_of_the_moment() -> None:
    assert dcmi_w(PRINTED.format(5312, "activated")) == (5312, None)
    assert dcmi_w(PRINTED.format(0, "activated")) == (None, "not_supported")
    assert dcmi_w(PRINTED.format(65535, "activated")) == (None, "bad_answer")
    assert dcmi_w(PRINTED.format(5312, "deactivated")) == (None, "no_data")
    assert dcmi_w("") == (None, "bad_answer")


@pytest.mark.parametrize(
    "readings, right",
    [
        (("310 Watts", "297 Watts"), (607, None)),
        (("310 Watts", "0 Watts"), (310, None)),
        (("310 Watts", "no reading"), (None, "device_missing")),
        (("0 Watts", "0 Watts"), (None, "zero_power")),
        ((), (None, "not_supported")),
    ],
)
def test_supplies_are_summed_only_whole(
    readings: tuple[str, ...], right: tuple[float | None, str | None]
) -> None:
    rows = "".join(SUPPLY.format(n, n, n, reading) for n, reading in enumerate(readings))
    assert sensors_w("Current 1 | 6A h | ok | 10.1 | 1.20 Amps\n" + rows) == right


@pytest.mark.parametrize("host", ["-oX", "a b", "", "bmc:0", "bmc:99999", "bmc;id", "$(id)"])
def test_a_host_is_no_option(host: str) -> None:
    with pytest.raises(UsageError, match=r"power\.host"):
        _open(host)


def test_a_password_that_isnt_set_is_named() -> None:
    with pytest.raises(RefusedError, match="NO_SUCH_VARIABLE_HERE isn't set"):
        _open("bmc.example")


def _open(host: str) -> None:
    given = {"host": host, "username": "u", "password_env": "NO_SUCH_VARIABLE_HERE"}
    asked = SpecPower.model_validate({"source": "ipmi", **given})
    open_ipmi(asked, gpus=None, count=0, simulator_url=None)
