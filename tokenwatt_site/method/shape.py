"""The shape of a server: every number that its steps depend on."""

import math
from dataclasses import dataclass, fields

from tokenwatt_site.errors import UsageError

ADMIT_SHARE = 0.98
"""A prompt is admitted only below this share of the memory, so that decoding has room to grow."""

_POSITIVE = frozenset(
    {
        "bandwidth_share",
        "budget_tokens",
        "context_tokens",
        "drift_speed",
        "experts",
        "experts_per_token",
        "gpus",
        "kv_capacity_tokens",
        "limit_w",
        "max_sequences",
        "noise_tau_s",
        "rated_bw_tbs_per_gpu",
        "vocab_size",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A server and its accelerators. Times and bytes are those of all accelerators together.

    A letter before a text is the field's name in the formulas of
    :class:`tokenwatt_site.method.step_model.StepModel`.
    """

    name: str
    """Name of the profile."""
    about: str
    """What it stands for, in a line."""
    accelerator: str
    """Name of one accelerator, for readers."""
    gpus: int = 1
    """Accelerators that serve the model together."""
    rated_bw_tbs_per_gpu: float = 4.8
    """Rated memory bandwidth of one accelerator, TB/s."""
    bandwidth_share: float = 0.75
    """Share of the rated bandwidth that is reached."""
    fixed_s: float
    """t0: time of a step, whatever it does."""
    sequence_s: float
    """ts: time for each decoding sequence."""
    dense_bytes: float
    """wd: weights that each step reads."""
    expert_bytes: float = 0.0
    """we: weights of all experts, of which a step reads those that its tokens choose."""
    experts: int = 1
    """E: experts of a layer."""
    experts_per_token: int = 1
    """k: experts that a token chooses."""
    kv_bytes: float
    """wk: cache read for a token of context, all ranks together."""
    prefill_token_s: float
    """cp: compute time of a prompt token."""
    prefill_attention_s: float
    """ca: compute time of a prompt token for each token before it."""
    decode_token_s: float
    """cd: compute time of a decoded token."""
    budget_tokens: int = 8192
    """Tokens of one step: first a token of each decoding sequence, then prompts."""
    max_sequences: int = 256
    """Sequences in the batch."""
    kv_capacity_tokens: int
    """Tokens of context that fit in the memory."""
    context_tokens: int = 32_768
    """Longest prompt and answer together."""
    vocab_size: int = 32_000
    """Token ids are below this."""
    idle_w: float = 113.0
    """Power of one accelerator that does nothing."""
    limit_w: float = 700.0
    """Power limit of one accelerator."""
    memory_w: float = 508.0
    """pm: power above idle of one accelerator while it reads."""
    compute_w: float = 780.0
    """pc: power above idle of one accelerator while it computes."""
    noise_sd: float = 0.0
    """Standard deviation of ln(step time): an AR(1) process."""
    noise_tau_s: float = 20.0
    """Time constant of the noise."""
    stalls_per_s: float = 0.0
    """Pauses a second, at random."""
    stall_s: float = 0.0
    """Mean length of a pause, exponentially distributed."""
    drift_speed: float = 1.0
    """Speed after the change, relative to the speed before."""
    drift_after_s: float = math.inf
    """Time of the change."""
    exclusive_prefill: bool = False
    """A step that prefills decodes nothing."""

    def __post_init__(self) -> None:
        """Refuse what is no server.

        Raises:
            UsageError: naming the field and what it must be.
        """
        for name in (field.name for field in fields(self)):
            value = getattr(self, name)
            if isinstance(value, str):
                continue
            if math.isnan(value) or value < 0:
                raise UsageError(f"simulator value {name} is {value}", "give a number of 0 or more")
            if not value and name in _POSITIVE:
                raise UsageError(f"simulator value {name} is 0", "give a number above 0")
        if self.experts_per_token > self.experts:
            raise UsageError("simulator value experts_per_token is over experts", "lower it")
        if self.limit_w <= self.idle_w:
            raise UsageError("simulator value limit_w is not over idle_w", "raise the limit")
        if not self.fixed_s + self.weight_bytes(1):
            raise UsageError("a step would take no time", "give fixed_s or dense_bytes")

    @property
    def bandwidth_bytes_s(self) -> float:
        """Bandwidth that reading reaches, bytes/s of all accelerators together."""
        return self.bandwidth_share * self.rated_bw_tbs_per_gpu * 1e12 * self.gpus

    @property
    def longest_tokens(self) -> int:
        """Tokens of prompt and answer together that a request may have."""
        return min(self.context_tokens, int(ADMIT_SHARE * self.kv_capacity_tokens))

    def weight_bytes(self, tokens: int) -> float:
        """Return the weights that a step of ``tokens`` tokens reads.

        Of the experts these are we·(1 − (1 − k/E)^tokens), with a router that has no favourites.
        """
        unread = (1 - self.experts_per_token / self.experts) ** tokens
        return self.dense_bytes + self.expert_bytes * (1 - unread)
