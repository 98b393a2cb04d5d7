"""The one rule for every random draw: a keyed hash of the spec's seed, a purpose and an index."""

import random
from hashlib import blake2b

_KEY = b"tokenwatt-site"


def derive_seed(seed: int, purpose: str, index: int = 0) -> int:
    """Return the 64-bit seed of one stream of draws.

    Streams of different purposes ("schedule", "prompts") or indices (the window's) are independent,
    so that a resumed or repeated run draws what the first one drew.
    """
    digest = blake2b(f"{seed}/{purpose}/{index}".encode(), digest_size=8, key=_KEY)
    return int.from_bytes(digest.digest(), "big")


def rng(seed: int, purpose: str, index: int = 0) -> random.Random:
    """Return the generator of one stream of draws, see :func:`derive_seed`."""
    return random.Random(derive_seed(seed, purpose, index))  # noqa: S311 - load, not secrets


def open_unit(source: random.Random) -> float:
    """Return a uniform draw from the open interval (0, 1): safe for a logarithm and a quantile."""
    return (source.getrandbits(52) + 0.5) / 2**52
