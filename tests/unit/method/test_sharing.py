from array import array

from tests.support.traces import request
from tokenwatt_site.documents.spec_workload import SharedShare, SharedTokens
from tokenwatt_site.method.sharing import Shared, shared_blocks, shared_prefix


def test_every_prompt_but_the_first_begins_with_what_is_known() -> None:
    shared = shared_prefix(SharedTokens(tokens=50), [100, 200, 80])
    assert shared is not None
    assert list(shared.tokens) == [50, 50, 50]
    assert list(shared.known) == [0, 50, 50]


def test_a_prompt_keeps_a_token_of_its_own() -> None:
    shared = shared_prefix(SharedTokens(tokens=50), [30, 100, 1, 40])
    assert shared is not None
    assert list(shared.tokens) == [29, 50, 0, 39]
    assert list(shared.known) == [0, 29, 0, 39]


def test_a_share_grows_with_the_prompt() -> None:
    shared = shared_prefix(SharedShare(share=0.25), [100, 400, 200])
    assert shared is not None
    assert list(shared.tokens) == [25, 100, 50]
    assert list(shared.known) == [0, 25, 50]


def test_nothing_asked_shares_nothing() -> None:
    assert shared_prefix(None, [100]) is None
    empty = shared_prefix(SharedTokens(tokens=5), [])
    assert empty is not None
    assert len(empty.known) == 0


def test_a_block_is_known_with_all_before_it() -> None:
    shared = shared_blocks(
        [(0, 1), (0, 1), (0, 2), (3, 5), (0, 1, 4)], [1000, 1000, 700, 1024, 1100]
    )
    assert list(shared.tokens) == [1000, 1000, 700, 1024, 1100]
    # 1000 tokens cut block 1 after 488: the last prompt goes on where the first ones ended
    assert list(shared.known) == [0, 1000, 512, 0, 1000]


def test_a_longer_cut_of_a_block_is_known_as_far_as_it_was_seen() -> None:
    shared = shared_blocks([(0,), (0,), (0, 1)], [100, 300, 600])
    assert list(shared.known) == [0, 100, 300]


def test_a_workers_share_goes_with_its_requests() -> None:
    shared = Shared.of(10, [(1,), (2,), (1,)], [10, 10, 7])
    stripe = shared.stripe(0, 2)
    assert (stripe.blocks, stripe.known) == (((1,), (1,)), array("q", [0, 7]))


def test_traces_are_told_what_a_cache_may_hold() -> None:
    shared = Shared.of(10, [(1,), (1,)], [10, 10])
    traces = [request(0.0), request(1.0)]
    traces[0].index, traces[1].index = 1, 0
    shared.mark(traces)
    assert [trace.n_planned for trace in traces] == [10, 0]
