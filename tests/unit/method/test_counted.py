"""What counts alone show."""

import pytest

from tokenwatt_site.documents.spec import SpecSlo
from tokenwatt_site.method.counted import met, misses, requests, shown_by_counts
from tokenwatt_site.method.probe import Measured, Probe, Record
from tokenwatt_site.method.twin_scores import Limits

LIMITS = Limits.of(SpecSlo(ttft_p99_ms=1000, tpot_p99_ms=50))


def window(late_at_s: list[float], length_s: float = 300.0, rate_rps: float = 10.0) -> Measured:
    """Return a window of evenly spaced requests; those that arrive at ``late_at_s`` are late."""
    probe = Probe(rate_rps, "confirm", length_s, 0.0, 0, 0)
    late = {round(at_s * rate_rps) for at_s in late_at_s}
    facts = {"finished": True, "failed": False, "injected": False}
    records = [
        Record(i / rate_rps, (i + (15 if i in late else 1)) / rate_rps, i + 20.0, 9, 1, 1, **facts)
        for i in range(round(length_s * rate_rps))
    ]
    n = len(records)
    return Measured(
        probe, len(late) <= n / 100, True, n=n, miss_ttft=len(late),  # noqa: FBT003
        w0_s=0.0, w1_s=length_s, look_s=length_s + 10, records=records,
    )  # fmt: skip


def test_pooled_counts() -> None:
    windows = [window([1.0, 2.0]), window([3.0])]
    assert (misses(windows), requests(windows), met(windows)) == (3, 6000, True)
    assert not met([])
    many = [window([i * 0.2 for i in range(31)])]
    assert (misses(many), met(many)) == (31, False)


@pytest.mark.parametrize(
    "what, windows, shown",
    [
        ("a few, evenly", [window([i * 30.0 + 5 for i in range(10)])], True),
        ("no block with a miss proves nothing", [window([])], False),
        ("all in one burst", [window([60 + i / 10 for i in range(25)])], False),
        ("a third of what is allowed", [window([i * 15.4 for i in range(19)])], True),
        ("too few blocks", [window([5.0, 35.0], length_s=240.0)], False),
        ("too many", [window([i * 7.0 for i in range(42)])], False),
    ],
)
def test_what_is_shown(what: str, windows: list[Measured], *, shown: bool) -> None:
    assert shown_by_counts(windows, LIMITS) is shown, what
