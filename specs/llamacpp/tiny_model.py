"""Make a tiny language model with random weights: a Qwen2 that llama.cpp serves in milliseconds.

It speaks no language; it costs time like a model does. The same file comes out byte for byte on
every machine: the weights are taken from PCG64's raw output, whose stream numpy guarantees, and the
vocabulary is built from syllables, not learned from files that differ from one Python to the next.

    python specs/llamacpp/tiny_model.py OUT.gguf
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import gguf
import numpy as np
from numpy.typing import NDArray

NAME = "tiny-qwen2"
# About a millisecond a token on one core: slow enough that a client on a busy machine still reads
# the tokens one by one, fast enough for a confirm window of 300 requests within half a minute.
HIDDEN = 256
LAYERS = 4
HEADS = 8
KV_HEADS = 4
FEED_FORWARD = 512
CONTEXT = 16_384
SEED = 0

CONTROL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
CHAT_TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)

Weights = NDArray[np.float32]


class Vocabulary(NamedTuple):
    """Tokens by id, and the merges that make them out of single bytes, in order of priority."""

    tokens: list[str]
    merges: list[str]


def byte_letters() -> list[str]:
    """Return the printable letter that stands for each byte in a GPT-2 style vocabulary.

    Printable bytes stand for themselves; the others are shifted to U+0100 and on, in order.
    """
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    shifted = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(shifted)) for byte in range(0x100)]


def vocabulary() -> Vocabulary:
    """Return 256 bytes, syllables such as "ba", " ba" and "ban", and the control tokens last."""
    letters = byte_letters()
    space = letters[ord(" ")]
    consonants, vowels = "bdfghklmnprstvz", "aeiou"
    open_ = [(c, v) for c in consonants for v in vowels]
    merges = [
        *open_,
        *((space, c + v) for c, v in open_),
        *((c + v, end) for c, v in open_ for end in consonants),
    ]
    tokens = [*letters, *(left + right for left, right in merges), *CONTROL]
    return Vocabulary(tokens, [f"{left} {right}" for left, right in merges])


class RandomWeights:
    """Uniform numbers of a given spread, from one seeded stream."""

    def __init__(self, seed: int) -> None:
        self._bits = np.random.PCG64(seed)

    def draw(self, *shape: int, spread: float = 0.05) -> Weights:
        """Return an array with mean 0 and standard deviation ``spread``."""
        raw = self._bits.random_raw(int(np.prod(shape))) >> 40  # 24 bits: all that a float32 holds
        unit = raw.astype(np.float32) / np.float32(2**24) - np.float32(0.5)
        return (unit * np.float32(12**0.5 * spread)).reshape(shape)


def tensors(vocab: Vocabulary) -> Iterator[tuple[str, Weights]]:
    """Yield the tensors by their name in a GGUF file; the output layer shares the embedding."""
    weights = RandomWeights(SEED)
    ones = np.ones(HIDDEN, np.float32)
    kv = HIDDEN // HEADS * KV_HEADS
    embedding = weights.draw(len(vocab.tokens), HIDDEN, spread=0.5)
    # Small rows are never the likeliest next token. So are kept out of answers: control tokens, as
    # one would end the answer, and bytes of half a character, as the server holds those back.
    embedding[0x80:0x100] *= np.float32(0.01)
    embedding[-len(CONTROL) :] *= np.float32(0.01)
    yield "token_embd.weight", embedding
    yield "output_norm.weight", ones
    for layer in range(LAYERS):
        block = f"blk.{layer}"
        yield f"{block}.attn_norm.weight", ones
        for name, rows in (("attn_q", HIDDEN), ("attn_k", kv), ("attn_v", kv)):
            yield f"{block}.{name}.weight", weights.draw(rows, HIDDEN)
            yield f"{block}.{name}.bias", weights.draw(rows)
        yield f"{block}.attn_output.weight", weights.draw(HIDDEN, HIDDEN)
        yield f"{block}.ffn_norm.weight", ones
        yield f"{block}.ffn_gate.weight", weights.draw(FEED_FORWARD, HIDDEN)
        yield f"{block}.ffn_up.weight", weights.draw(FEED_FORWARD, HIDDEN)
        yield f"{block}.ffn_down.weight", weights.draw(HIDDEN, FEED_FORWARD)


def add_shape(writer: gguf.GGUFWriter) -> None:
    """Write what llama.cpp needs to know about the architecture."""
    writer.add_name(NAME)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FEED_FORWARD)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_rope_freq_base(10_000.0)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)


def add_vocabulary(writer: gguf.GGUFWriter, vocab: Vocabulary) -> None:
    """Write the tokenizer: byte-level BPE, Qwen2's way of splitting words, a chat template."""
    end_of_text, _, end_of_turn = range(len(vocab.tokens) - len(CONTROL), len(vocab.tokens))
    kinds = [gguf.TokenType.NORMAL] * end_of_text + [gguf.TokenType.CONTROL] * len(CONTROL)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("qwen2")
    writer.add_token_list(vocab.tokens)
    writer.add_token_types(kinds)
    writer.add_token_merges(vocab.merges)
    writer.add_bos_token_id(end_of_text)
    writer.add_eos_token_id(end_of_turn)
    writer.add_pad_token_id(end_of_text)
    writer.add_add_bos_token(value=False)
    writer.add_chat_template(CHAT_TEMPLATE)


def write(path: Path) -> None:
    """Write the model as one GGUF file; it appears under its name only when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    vocab = vocabulary()
    writer = gguf.GGUFWriter(part, "qwen2")
    add_shape(writer)
    add_vocabulary(writer, vocab)
    for name, values in tensors(vocab):
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    part.replace(path)


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 - the program and its one argument
        sys.exit(__doc__)
    write(Path(sys.argv[1]))
