"""Token-weighted TPOT and the mean context of a batch."""

import pytest

from tests.support.traces import steady
from tokenwatt_site.method.decoding import Decoding
from tokenwatt_site.method.rng import rng
from tokenwatt_site.method.workloads import WORKLOADS


def test_time_is_weighted_by_tokens() -> None:
    """100 tokens at 10 ms and 2 at 100 ms: 1.2 s over 102 tokens, not 55 ms."""
    fast, slow = steady(0, n=101, tpot_s=0.01), steady(0, n=3, tpot_s=0.1)
    found = Decoding.of([fast, slow])
    assert found.tpot_ms == pytest.approx(1200 / 102)
    assert found.decoded == 102


def test_long_answers_are_in_the_batch_more_often() -> None:
    """E[in] + E[out²] / (2 E[out]) of 10 and 90 tokens: 41 beyond the prompt, not 25."""
    found = Decoding.of([steady(0, n=10), steady(0, n=90)])
    assert found.ctx_tokens == pytest.approx(
        (found.mean_input_tokens or 0) + (10**2 + 90**2) / (2 * 100)
    )


def test_chat_mix_has_the_methods_context() -> None:
    mix, source = WORKLOADS["chat-mix-v1"], rng(7, "test")
    pairs = [mix.draw(source) for _ in range(20_000)]
    inputs, outputs = (sum(pair[i] for pair in pairs) for i in (0, 1))
    found = Decoding(len(pairs), inputs, outputs, sum(out * out for _, out in pairs))
    assert found.ctx_tokens == pytest.approx(2154, rel=0.03)


def test_windows_are_put_together_by_their_sums() -> None:
    traces = [steady(0, n=n) for n in (5, 9, 40)]
    parts = [Decoding.of(traces[:1]), Decoding.of(traces[1:])]
    assert Decoding.together(parts) == Decoding.of(traces)


def test_nothing_finished_says_nothing() -> None:
    none = Decoding.of([])
    assert (none.tpot_ms, none.ctx_tokens, none.mean_input_tokens) == (None, None, None)
    assert Decoding.of([steady(0, n=1)]).tpot_ms is None
