import pytest

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.documents.spec_workload import SharedShare, SharedTokens
from tokenwatt_site.load.facts import Calibration, ServerFacts
from tokenwatt_site.load.prompts import PromptMaker
from tokenwatt_site.method.sharing import Shared, shared_prefix

LENGTHS = [3, 1, 8192, 40]


def prompts(
    vocab_size: int | None = 32_000, seed: int = 0, window: int = 0
) -> list[list[int] | str]:
    maker = PromptMaker(seed, vocab_size)
    maker.begin(window, LENGTHS)
    return [maker.prompt(index) for index in range(len(LENGTHS))]


def test_each_prompt_has_its_length_in_ids() -> None:
    assert [len(prompt) for prompt in prompts()] == LENGTHS


def test_prompts_depend_on_seed_window_and_index_alone() -> None:
    maker = PromptMaker(0, 32_000)
    maker.begin(0, LENGTHS)
    assert [maker.prompt(index) for index in (3, 2, 2)] == [prompts()[i] for i in (3, 2, 2)]
    assert prompts() == prompts()


def test_windows_and_seeds_have_prompts_of_their_own() -> None:
    variants = [prompts()[2], prompts(window=1)[2], prompts(seed=1)[2]]
    starts = {tuple(prompt[:3]) for prompt in variants}
    assert len(starts) == 3


@pytest.mark.parametrize(
    "vocab_size, low, high", [(32_000, 1000, 31_000), (151_936, 2048, 149_888)]
)
def test_ids_keep_away_from_both_ends_and_fill_the_middle(
    vocab_size: int, low: int, high: int
) -> None:
    ids = prompts(vocab_size)[2]
    assert isinstance(ids, list)
    assert low <= min(ids) < low + 0.01 * vocab_size
    assert high - 0.01 * vocab_size < max(ids) < high
    assert sum(ids) / len(ids) == pytest.approx((low + high) / 2, rel=0.02)


def test_the_smallest_vocabulary_still_gives_ids_in_it() -> None:
    for vocab_size in (1, 2, 40):
        ids = prompts(vocab_size)[2]
        assert isinstance(ids, list)
        assert set(ids) <= set(range(vocab_size))


def sharing(
    shared: Shared | None, vocab_size: int | None = 32_000, window: int = 0
) -> list[list[int] | str]:
    maker = PromptMaker(0, vocab_size)
    maker.begin(window, [200, 300, 250], shared)
    return [maker.prompt(index) for index in range(3)]


def test_prompts_share_just_the_beginning_that_is_planned() -> None:
    shared = shared_prefix(SharedTokens(tokens=64), [200, 300, 250])
    one, two, three = sharing(shared)
    assert [len(prompt) for prompt in (one, two, three)] == [200, 300, 250]
    assert one[:64] == two[:64] == three[:64]
    assert one[64:68] != two[64:68]
    assert sharing(shared, window=1)[0][:64] != one[:64]


def test_a_shared_beginning_is_longer_in_a_longer_prompt() -> None:
    one, two, _ = sharing(shared_prefix(SharedShare(share=0.5), [200, 300, 250]))
    assert one[:100] == two[:100]
    assert one[100:104] != two[100:104]


def test_equal_blocks_are_equal_tokens() -> None:
    shared = Shared.of(100, [(7, 8), (7, 9, 8), (7, 8)], [200, 300, 150])
    one, two, three = sharing(shared)
    assert [len(prompt) for prompt in (one, two, three)] == [200, 300, 250]
    assert two[:100] == one[:100]
    assert two[100:104] != one[100:104]
    assert two[200:] == one[100:]
    assert three[:150] == one[:150]
    assert three[150:154] != one[150:154]


def test_text_shares_words() -> None:
    shared = shared_prefix(SharedTokens(tokens=64), [200, 300, 250])
    one, two, three = (str(prompt).split() for prompt in sharing(shared, None))
    assert [len(words) for words in (one, two, three)] == [200, 300, 250]
    assert one[:64] == two[:64] == three[:64]
    assert one[64:70] != two[64:70]


def test_text_has_a_word_a_token_until_calibrated() -> None:
    assert [len(str(prompt).split()) for prompt in prompts(None)] == LENGTHS


def test_a_calibration_turns_tokens_into_words() -> None:
    calibration = Calibration(tokens_per_word=1.5, overhead_tokens=10)
    assert [calibration.words(tokens) for tokens in (160, 10, 1)] == [100, 1, 1]


def test_ids_go_only_where_the_server_takes_them() -> None:
    spec = Spec.model_validate(
        {
            "name": "s",
            "engine": {"endpoint": "http://127.0.0.1/v1"},
            "model": {"name": "m", "vocab_size": 32_000},
        }
    )
    for ids_ok in (True, False):
        maker = PromptMaker.of(spec, ServerFacts("m", ids_ok=ids_ok))
        maker.begin(0, LENGTHS)
        assert isinstance(maker.prompt(0), list) is ids_ok
