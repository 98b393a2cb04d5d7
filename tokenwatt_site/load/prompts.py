"""Prompts that no server has seen: random token ids, or random words where the API takes text."""

from array import array
from collections.abc import Sequence
from random import Random
from typing import Self

from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.load.api import Prompt
from tokenwatt_site.load.facts import UNCALIBRATED, Calibration, ServerFacts
from tokenwatt_site.method.rng import rng
from tokenwatt_site.method.sharing import Shared

_MARGIN_MOST = 2048
_TEXT = (
    "about above across after again against air all almost along already also always among animal "
    "another answer apple area around autumn away baby back ball bank bear beautiful because bed "
    "been before began begin behind being below best better between big bird black blue boat body "
    "book both box boy bread bring brother brown build busy but call came can car care carry "
    "center chair change child city class clear close cloud coast cold color come common could "
    "country course cover cow cross cut dark day deep did different do dog done door down draw "
    "drive dry during each early earth east eat egg end enough even ever every example eye face "
    "fact fall family far farm fast father feel feet few field fight figure fill final find fire "
    "first fish five floor flower fly follow food foot force forest form found four free friend "
    "from full game garden gave get girl give glass go gold good got grass great green ground "
    "group grow had half hand happy hard has have head hear heart heat heavy help here high hill "
    "him his hold home horse hot hour house how hundred ice idea important inch inside into island "
    "it job just keep kind king knew know lake land language large last late laugh lead learn "
    "leave left letter life light like line list little live long look low machine made make man "
    "many map mark may mean measure milk mind minute money month moon more morning most mother "
    "mountain move much music must name near need never new next night north note nothing notice "
    "now number ocean off often old once one only open order other our out over own page paper "
    "part pass people perhaps person picture piece place plain plan plant play point poor power "
    "problem put question quick rain ran read ready real red remember rest right river road rock "
    "room round rule run said salt same sand saw say school science sea season second see seem"
)
_WORDS = _TEXT.split()


class PromptMaker:
    """Makes the prompts of one window after the other; each window has prompts of its own.

    >>> prompts = PromptMaker(seed=0, vocab_size=32000)
    >>> prompts.begin(0, [3, 5])
    >>> len(prompts.prompt(1)), prompts.prompt(1) == prompts.prompt(1)
    (5, True)
    """

    def __init__(
        self, seed: int, vocab_size: int | None, calibration: Calibration = UNCALIBRATED
    ) -> None:
        """Take the spec's seed; ids are drawn below ``vocab_size``, None makes text."""
        self._seed = seed
        self._vocab_size = vocab_size
        self._calibration = calibration
        self._input_tokens: Sequence[int] = ()
        self._purpose = ""
        self._shared: Shared | None = None
        self._blocks = ""

    @classmethod
    def of(cls, spec: Spec, facts: ServerFacts) -> Self:
        """Return the prompts of a measurement: ids where spec and server take them, else text."""
        vocab_size = spec.model.vocab_size if facts.ids_ok else None
        return cls(spec.workload.seed, vocab_size, facts.calibration)

    def begin(self, window: int, input_tokens: Sequence[int], shared: Shared | None = None) -> None:
        """Start a window whose request i has a prompt of ``input_tokens[i]`` tokens.

        Args:
            window: the window's index; no other window has a prompt of this one.
            input_tokens: prompt lengths.
            shared: what the prompts have in common; None: nothing.
        """
        self._purpose = f"prompts/{window}"
        self._blocks = f"blocks/{window}"
        self._input_tokens = input_tokens
        self._shared = shared

    def prompt(self, index: int) -> Prompt:
        """Return the prompt of a request of this window: the same one each time it is asked for."""
        tokens = self._input_tokens[index]
        draw = rng(self._seed, self._purpose, index)
        if self._shared is not None:
            return self._sharing(index, self._shared, draw)
        if self._vocab_size is None:
            return random_text(self._calibration.words(tokens), draw)
        return random_ids(tokens, self._vocab_size, draw)

    def _sharing(self, index: int, shared: Shared, draw: Random) -> Prompt:
        """Return a prompt that begins with blocks of its window and ends with tokens of its own."""
        left, tokens = shared.tokens[index], self._input_tokens[index]
        ids, words = list[int](), list[str]()
        for block in shared.blocks[index]:
            take = min(shared.block_tokens, left)
            left -= take
            same = rng(self._seed, self._blocks, block)
            if self._vocab_size is None:
                words += random_words(self._calibration.more(take), same)
            else:
                ids += random_ids(take, self._vocab_size, same)
        if self._vocab_size is None:
            own = max(1, self._calibration.words(tokens) - len(words))
            return " ".join(words + random_words(own, draw))
        return ids + random_ids(tokens - len(ids), self._vocab_size, draw)


def random_ids(tokens: int, vocab_size: int, draw: Random) -> list[int]:
    """Return random ids, away from both ends of the vocabulary, where the special ones are."""
    margin = min(_MARGIN_MOST, vocab_size // 32)
    span = vocab_size - 2 * margin
    words = array("I", draw.randbytes(4 * tokens))
    return [margin + (word * span >> 32) for word in words]


def random_text(words: int, draw: Random) -> str:
    """Return random words. The first ones differ already, so that no prefix is in a cache."""
    return " ".join(random_words(words, draw))


def random_words(words: int, draw: Random) -> list[str]:
    """Return random words; more of the same draw begin with the same ones."""
    return draw.choices(_WORDS, k=words)
