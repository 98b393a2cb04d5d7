import pytest

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.load.facts import Calibration, ServerFacts
from tokenwatt_site.load.prompts import PromptMaker

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
