"""The fit of a twin: to the records of a twin whose steps are known."""

from dataclasses import replace

import pytest

from tests.support.twin_server import SERVER, TwinServer
from tokenwatt_site.method.probe import Measured, Probe
from tokenwatt_site.method.twin_fit import fit
from tokenwatt_site.method.twin_player import UNLIMITED, TwinParams


def measured(rate_rps: float, params: TwinParams = SERVER, window_s: float = 120.0) -> Measured:
    """Return a window of a quiet server."""
    probe = Probe(rate_rps, "search", window_s, 10.0, 0, 0, tail_s=5.0, inject=15)
    return TwinServer(params).measure(probe)


def decode_s(params: TwinParams, sequences: float) -> float:
    """Return the time of a step that only decodes."""
    return params.fixed_s + params.sequence_s * sequences + params.root_s * sequences**0.5


def test_it_finds_the_steps_again() -> None:
    """Time means are not means over steps, hence some percent of slack."""
    found = fit([measured(1.0), measured(2.5)], 8192)
    assert found is not None
    for sequences in (5, 10, 20):
        assert decode_s(found, sequences) == pytest.approx(decode_s(SERVER, sequences), rel=0.05)
    prompt = 700
    wanted = SERVER.prefill_s + SERVER.token_s * prompt + SERVER.square_s * prompt**2 / 2
    prefill_s = found.prefill_s + found.token_s * prompt + found.square_s * prompt**2 / 2
    assert prefill_s == pytest.approx(wanted, rel=0.15)
    assert (found.budget_tokens, found.max_sequences) == (8192, UNLIMITED)


def test_a_limit_on_sequences_is_seen_while_requests_wait() -> None:
    limited = replace(SERVER, max_sequences=12)
    found = fit([measured(2.5, limited)], 8192)
    assert found is not None
    assert found.max_sequences == 12
    easy = fit([measured(0.8, limited)], 8192)
    assert easy is not None
    assert easy.max_sequences == UNLIMITED


def test_of_two_replicas_each_has_half_of_the_batch() -> None:
    one = fit([measured(2.2)], 8192)
    two = fit([measured(2.2)], 8192, replicas=2)
    assert one is not None
    assert two is not None
    assert two.sequence_s == pytest.approx(2 * one.sequence_s, rel=1e-6)
    assert two.token_s == pytest.approx(2 * one.token_s, rel=1e-6)
    assert two.fixed_s == pytest.approx(one.fixed_s, rel=1e-6)


def test_few_requests_fit_nothing() -> None:
    assert fit([measured(0.2, window_s=20.0)], 8192) is None
    assert fit([], 8192) is None
