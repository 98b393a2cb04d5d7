"""What is planned to be cached is what a cache that forgets nothing would find, id by id."""

from itertools import takewhile

from hypothesis import given, settings
from hypothesis import strategies as st

from tokenwatt_site.documents.spec_workload import SharedShare, SharedTokens
from tokenwatt_site.load.prompts import PromptMaker
from tokenwatt_site.method.sharing import Shared, shared_prefix

LENGTHS = st.lists(st.integers(1, 60), min_size=1, max_size=12)


def cached(shared: Shared, lengths: list[int]) -> list[int]:
    """Return the longest common beginning of each prompt and any before it."""
    maker = PromptMaker(0, 2**31)
    maker.begin(0, lengths, shared)
    prompts = [list(maker.prompt(index)) for index in range(len(lengths))]
    assert [len(prompt) for prompt in prompts] == lengths
    return [
        max((_common(prompt, before) for before in prompts[:index]), default=0)
        for index, prompt in enumerate(prompts)
    ]


def _common(one: list[int | str], two: list[int | str]) -> int:
    pairs = zip(one, two, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


@settings(max_examples=40)
@given(LENGTHS, st.integers(1, 50))
def test_a_common_beginning_is_found(lengths: list[int], tokens: int) -> None:
    shared = shared_prefix(SharedTokens(tokens=tokens), lengths)
    assert shared is not None
    assert cached(shared, lengths) == list(shared.known)


@settings(max_examples=40)
@given(LENGTHS, st.floats(0.01, 0.99))
def test_a_common_share_is_found(lengths: list[int], share: float) -> None:
    shared = shared_prefix(SharedShare(share=share), lengths)
    assert shared is not None
    assert cached(shared, lengths) == list(shared.known)


@settings(max_examples=40)
@given(st.data(), LENGTHS)
def test_recorded_blocks_are_found(data: st.DataObject, lengths: list[int]) -> None:
    """Ids are those of a tree: each stands for its block and all before it."""
    nodes: dict[tuple[int, ...], int] = {}
    blocks: list[tuple[int, ...]] = []
    for length in lengths:
        path = data.draw(st.lists(st.integers(0, 1), min_size=-(-length // 10), max_size=10))
        ids = [tuple(path[: depth + 1]) for depth in range(-(-length // 10))]
        blocks.append(tuple(nodes.setdefault(each, len(nodes)) for each in ids))
    shared = Shared.of(10, blocks, lengths)
    assert cached(shared, lengths) == list(shared.known)
