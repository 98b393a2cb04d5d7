"""What the prompts of a window have in common, by plan: whatever a server may find in its cache."""

from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from tokenwatt_site.documents.spec_workload import SharedShare, SharedTokens
from tokenwatt_site.method.replay import BLOCK_TOKENS
from tokenwatt_site.method.trace import RequestTrace


@dataclass(frozen=True, slots=True)
class Shared:
    """Blocks that prompts begin with, one after the other; equal ids stand for equal tokens.

    The columns hold one entry a request.
    """

    block_tokens: int
    """Tokens of a block; the last one of a prompt may be cut."""
    blocks: tuple[tuple[int, ...], ...]
    tokens: "array[int]"
    """How many tokens of the prompt come from blocks; the rest is its own."""
    known: "array[int]"
    """Leading tokens with which an earlier prompt of the window begins too."""

    @classmethod
    def of(
        cls, block_tokens: int, blocks: Sequence[tuple[int, ...]], tokens: Sequence[int]
    ) -> "Shared":
        """Count what earlier prompts begin with too: an id stands for all before it as well."""
        seen: dict[int, int] = {}
        known = array("q")
        for ids, total in zip(blocks, tokens, strict=True):
            known.append(_known(seen, block_tokens, ids, total))
        return cls(block_tokens, tuple(blocks), array("q", tokens), known)

    def stripe(self, number: int, of: int) -> "Shared":
        """Return the columns of one worker's share, see ``Schedule.stripe``."""
        return replace(
            self,
            blocks=self.blocks[number::of],
            tokens=self.tokens[number::of],
            known=self.known[number::of],
        )

    def after(self, count: int) -> "Shared":
        """Return the columns with as many prompts before them that share nothing."""
        none = array("q", bytes(8 * count))
        return replace(
            self,
            blocks=((),) * count + self.blocks,
            tokens=none + self.tokens,
            known=none + self.known,
        )

    def mark(self, traces: Iterable[RequestTrace]) -> None:
        """Note in the traces of a load what a cache may hold of their prompts."""
        for trace in traces:
            trace.n_planned = self.known[trace.index]


def _known(seen: dict[int, int], block_tokens: int, ids: tuple[int, ...], total: int) -> int:
    """Return the leading tokens of a prompt that were seen, and note all of its own."""
    known, whole = 0, True
    for number, block in enumerate(ids):
        taken = min(block_tokens, total - number * block_tokens)
        before = seen.get(block, 0)
        if whole:
            known += min(taken, before)
            whole = before >= taken
        seen[block] = max(taken, before)
    return known


def shared_prefix(
    prefix: SharedTokens | SharedShare | None, input_tokens: Sequence[int]
) -> Shared | None:
    """Return the common beginning of a window's prompts; each keeps one token of its own.

    Args:
        prefix: what the spec asks for; None shares nothing.
        input_tokens: prompt lengths in the order of the arrivals.
    """
    if prefix is None:
        return None
    wanted = (
        [prefix.tokens] * len(input_tokens)
        if isinstance(prefix, SharedTokens)
        else [round(prefix.share * tokens) for tokens in input_tokens]
    )
    tokens = [min(want, have - 1) for want, have in zip(wanted, input_tokens, strict=True)]
    return Shared.of(max(1, *tokens, 1), [(0,)] * len(tokens), tokens)


def shared_blocks(blocks: Sequence[tuple[int, ...]], input_tokens: Sequence[int]) -> Shared:
    """Return the recorded blocks of a window's prompts.

    Args:
        blocks: hash ids of each prompt, in the order of the arrivals.
        input_tokens: prompt lengths.
    """
    tokens = [
        min(have, len(ids) * BLOCK_TOKENS) for ids, have in zip(blocks, input_tokens, strict=True)
    ]
    return Shared.of(BLOCK_TOKENS, blocks, tokens)
