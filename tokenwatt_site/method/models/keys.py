"""The keys of a config.json: read by name; what nobody reads must be known as harmless."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from tokenwatt_site.documents.jsonfile import is_array, is_object
from tokenwatt_site.errors import UsageError

LARGEST = 10**9
"""No size of a model is larger; the product of a few stays far within a float."""
MOST_LAYERS = 2_000

_HARMLESS = re.compile(
    r"""
    architectures | model_type | transformers_version | auto_map | _name_or_path | torchscript
    | use_cache | hidden_act | hidden_activation | hidden_dropout | mlp_hidden_act
    | mamba_hidden_act | swiglu_alpha | swiglu_limit | output_gate_type | initializer_range
    | final_logit_softcapping | attn_logit_softcapping | query_pre_attn_scalar
    | max_position_embeddings | initial_context_length | partial_rotary_factor | rotary_dim
    | compress_rope_theta | max_window_layers | use_mrope | use_bidirectional_attention
    | n_group | topk_group | topk_method | norm_topk_prob | routed_scaling_factor
    | scoring_func | use_routing_bias | aux_loss_alpha | seq_aux | router_jitter_noise
    | ep_size | pretraining_tp | num_hash_layers | hc_sinkhorn_iters | indexer_rope_interleave
    | qk_head_dim | time_step_limit | time_step_floor | time_step_max | time_step_min
    | time_step_rank | chunk_size | expand | rescale_prenorm_residual | residual_in_fp32
    | use_mamba_kernels | num_logits_to_keep | moe_shared_expert_overlap | use_gemma_norm
    | qk_norm_type | use_mtp | num_mtp_modules | mtp_transformer_layers
    | num_nextn_predict_layers | mtp_num_hidden_layers | mtp_use_dedicated_embeddings
    | mtp_layers_block_type | mtp_num_layers | language_model_only | attn_type_list
    | temperature | top_k | top_p | typical_p | max_length | min_length | do_sample | num_beams
    | num_beam_groups | num_return_sequences | repetition_penalty | length_penalty
    | diversity_penalty | no_repeat_ngram_size | encoder_no_repeat_ngram_size | early_stopping
    | return_dict | return_dict_in_generate | id2label | label2id | is_decoder | tf_legacy_loss
    | use_bfloat16 | tokenizer_class | prefix | problem_type | task_specific_params
    | remove_invalid_values | chunk_feed_forward | chunk_size_feed_forward | pad_token_id
    | vocab_size_per_layer_input
    | rope_\w+ | \w+_dropout | \w+_eps | norm_eps | layer_norm_epsilon | \w+_coef | \w*token_id
    | \w+_token_index | output_\w+ | suppress_tokens | begin_suppress_tokens | forced_\w+
    | exponential_\w+
    """,
    re.VERBOSE,
)
"""They change no matrix, no cache and no data type. Layers for predicting several tokens (mtp,
nextn) are a draft model's, whose bytes are not counted."""
_MISSING: Any = object()


class Keys:
    """One object of a config: typed reading, and a record of what was read.

    Args:
        data: the object as parsed.
        name: its name for messages, such as ``config.json``.
    """

    def __init__(self, data: Mapping[str, Any], name: str = "config.json") -> None:
        self._data = data
        self._name = name
        self.used: dict[str, Any] = {}
        self._spare: set[str] = set()

    def raw(self, name: str) -> Any:
        """Return a value as it is, None where the key is missing or null."""
        if name in self._data:
            self.used[name] = self._data[name]
        return self._data.get(name)

    def names(self) -> tuple[str, ...]:
        """Return the keys that there are."""
        return tuple(self._data)

    def has(self, name: str) -> bool:
        """Tell whether the key is there and not null; this alone doesn't count as reading."""
        return self._data.get(name) is not None

    def count(self, *names: str, default: int = _MISSING) -> int:
        """Return a whole number ≥ 0 under the first of several names; those there must agree."""
        found = {name: value for name in names if (value := self.raw(name)) is not None}
        for name, value in found.items():
            if type(value) is not int or not 0 <= value <= LARGEST:
                raise self.refuse(name, f"{_short(value)} is no size")
        if len(set(found.values())) > 1:
            raise self.refuse(" and ".join(found), "they differ and mean the same")
        if found:
            return int(next(iter(found.values())))
        if default is _MISSING:
            raise self.refuse(names[0], "the key is missing")
        return default

    def size(self, *names: str, default: int = _MISSING) -> int:
        """Return a whole number ≥ 1."""
        value = self.count(*names, default=default)
        if value < 1:
            raise self.refuse(names[0], "0 is no size")
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Return true or false."""
        value = self.raw(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.refuse(name, f"{_short(value)} is neither true nor false")
        return value

    def text(self, name: str, default: str = "") -> str:
        """Return a text."""
        value = self.raw(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise self.refuse(name, f"{_short(value)} is no text")
        return value

    def items(self, name: str, length: int | None = None) -> list[Any] | None:
        """Return a list, of ``length`` entries where that is given; None where there is none."""
        value = self.raw(name)
        if value is None:
            return None
        if not is_array(value) or len(value) > MOST_LAYERS:
            raise self.refuse(name, "it is no list of layers")
        if length is not None and len(value) < length:
            raise self.refuse(name, f"{len(value)} entries for {length} layers")
        return value[:length]

    def words(self, name: str, length: int | None = None) -> list[str] | None:
        """Return a list of texts, as ``items`` does."""
        found = self.items(name, length)
        if found is not None and not all(isinstance(each, str) for each in found):
            raise self.refuse(name, "an entry is no text")
        return found

    def counts(self, name: str, length: int | None = None) -> list[int] | None:
        """Return a list of whole numbers ≥ 0, as ``items`` does."""
        found = self.items(name, length)
        if found is not None and not all(type(n) is int and 0 <= n <= LARGEST for n in found):
            raise self.refuse(name, "an entry is no whole number of 0 or more")
        return found

    def nested(self, name: str) -> "Keys | None":
        """Return an object within this one."""
        value = self.raw(name)
        if value is None:
            return None
        if not is_object(value):
            raise self.refuse(name, "it is no object")
        return Keys(value, f"{self._name}, {name}")

    def spare(self, *names: str) -> None:
        """Take keys as known that this kind of model has and that its layers don't need."""
        self._spare.update(names)

    def only(self, name: str, *allowed: Any) -> None:
        """Refuse every value but those whose meaning is known; a missing key passes.

        Raises:
            UsageError: naming the key.
        """
        value = self.raw(name)
        if name in self._data and not any(value is a or value == a for a in (None, *allowed)):
            raise self.refuse(name, f"what {_short(value)} means for bytes isn't known")

    def off(self, *names: str) -> None:
        """Refuse flags that are set: what they switch on isn't known."""
        for name in names:
            self.only(name, False)  # noqa: FBT003 - a value, not a switch

    def finish(self, harmless: Sequence[str] = ()) -> tuple[str, ...]:
        """Return the harmless keys that nobody read.

        Raises:
            UsageError: naming the first key that is neither read nor known as harmless.
        """
        left = [name for name in self._data if name not in self.used]
        for name in left:
            known = name in harmless or name in self._spare or _HARMLESS.fullmatch(name)
            if not known and self._data[name] is not None:
                raise self.refuse(name, "this key isn't known: it may change how much is read")
        return tuple(left)

    def refuse(self, name: str, why: str) -> UsageError:
        """Return the error that names a key."""
        return UsageError(
            f"{self._name}: {_short(name)}: {why}",
            "set the key in the spec's model.geometry (null: leave it out), or with "
            "--geometry KEY=VALUE, if you know what it comes to; or report the model",
        )


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return "".join(c if c.isprintable() else "?" for c in text)[:80]
