import pytest

from tokenwatt_site.documents.spec_workload import SpecWorkload
from tokenwatt_site.method.workload_look import LengthLook, look_at
from tokenwatt_site.method.workloads import workload_of


def test_chat_mix_looks_as_it_is_defined() -> None:
    look = look_at(workload_of(SpecWorkload()), 5.0, 0, 20_000)
    assert len(look.schedule) == pytest.approx(20_000, rel=0.03)
    quantiles = look.input.quantiles()
    assert quantiles["p50"] == pytest.approx(1024, rel=0.03)
    assert quantiles["p90"] == pytest.approx(4096, rel=0.05)
    assert look.output.drawn_mean == pytest.approx(look.output.nominal_mean, rel=0.03)
    assert look.gap_cv == pytest.approx(1, abs=0.05)
    assert look.dispersion == pytest.approx(1, abs=0.35)
    assert look.length_correlation == pytest.approx(0, abs=0.03)
    assert look.shared_pct == 0
    assert sum(look.counts) == len(look.schedule)


def test_the_first_requests_are_those_of_the_first_window() -> None:
    """The same digest as in the schedule's own test: seed 0, window 0, 5 requests/s, 100 s."""
    look = look_at(workload_of(SpecWorkload()), 5.0, 0, 500)
    assert look.schedule.digest() == (
        "f74af4ed037c748c62b43cb8702aa0c278aca92402a0f7f4e5077c4a61c054e1"
    )
    assert look.sample()[:2] == [(0.126687, 85, 138), (0.138063, 8192, 160)]


def test_equal_lengths_have_no_correlation_and_one_bin() -> None:
    spec = SpecWorkload.model_validate(
        {"trace": None, "input_tokens": {"fixed": 9}, "output_tokens": {"median": 5, "p90": 9}}
    )
    look = look_at(workload_of(spec), 1.0, 0, 100)
    assert look.length_correlation is None
    assert look.input.histogram() == [(8, 15, len(look.schedule))]


def test_a_histogram_holds_every_request() -> None:
    look = LengthLook("", 0, 0, 9, (1, 2, 3, 9))
    assert look.histogram() == [(1, 1, 1), (2, 3, 2), (4, 7, 0), (8, 15, 1)]


def test_shared_tokens_are_counted() -> None:
    spec = SpecWorkload.model_validate({"shared_prefix": {"share": 0.25}})
    assert 20 < look_at(workload_of(spec), 5.0, 0, 1000).shared_pct < 25
