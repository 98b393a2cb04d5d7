"""What is known of a server before it is measured."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Calibration:
    """How long a text of random words is for a server, measured from two prompts."""

    tokens_per_word: float
    overhead_tokens: float
    """What the server adds to each prompt, such as its chat template."""

    def words(self, tokens: int) -> int:
        """Return how many words make about this many tokens, at least one."""
        return max(1, round((tokens - self.overhead_tokens) / self.tokens_per_word))

    def more(self, tokens: int) -> int:
        """Return how many words make about this many tokens of a prompt's text, maybe none."""
        return round(tokens / self.tokens_per_word)


UNCALIBRATED = Calibration(1.0, 0.0)


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """What the preflight found."""

    model: str
    """The model's name in the API."""
    engine_version: str = ""
    """The version that the server says, empty where it says none."""
    max_context: int | None = None
    """Longest prompt and answer together, in tokens."""
    vocab_size: int | None = None
    """Size of the vocabulary, where the server says it."""
    ids_ok: bool = False
    """Prompts go as token ids."""
    ignore_eos_ok: bool = True
    """The server takes ``ignore_eos``."""
    lengths_ok: bool = True
    """Its answers had the length that was asked for with it, by its own count."""
    usage_ok: bool = True
    """The server can be asked for usage."""
    calibration: Calibration = UNCALIBRATED
    notes: tuple[str, ...] = ()
    """What a reader of the document should know, in sentences."""
