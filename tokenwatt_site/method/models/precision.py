"""How many bytes a weight or a cached number takes."""

from dataclasses import dataclass

from tokenwatt_site.errors import UsageError


@dataclass(frozen=True, slots=True)
class Precision:
    """A data type with what its scales add."""

    name: str
    bytes: float
    """Of one weight, scales included."""


BF16 = Precision("bf16", 2.0)
MXFP4 = Precision("mxfp4", 0.53125)
"""4 bits, and an 8-bit scale for 32 of them."""
NVFP4 = Precision("nvfp4", 0.5625)
"""4 bits, and an 8-bit scale for 16 of them."""

_GROUPED = 128
_NAMES: dict[str, Precision] = {
    "bf16": BF16,
    "bfloat16": BF16,
    "fp16": Precision("fp16", 2.0),
    "float16": Precision("fp16", 2.0),
    "half": Precision("fp16", 2.0),
    "fp32": Precision("fp32", 4.0),
    "float32": Precision("fp32", 4.0),
    "float": Precision("fp32", 4.0),
    "fp8": Precision("fp8", 1.0),
    "fp8_e4m3": Precision("fp8", 1.0),
    "fp8_e5m2": Precision("fp8", 1.0),
    "float8_e4m3fn": Precision("fp8", 1.0),
    "fp8_index": Precision("fp8 + scale", 1 + 4 / 128),
    "int8": Precision("int8", 1.0),
    "mxfp8": Precision("mxfp8", 1 + 1 / 32),
    "mxfp4": MXFP4,
    "fp4": MXFP4,
    "nvfp4": NVFP4,
}


def named(text: str, key: str) -> Precision:
    """Return the precision of a name, such as ``fp8`` or ``bfloat16``, in any case.

    Args:
        text: the name.
        key: where it stands, for the message.

    Raises:
        UsageError: naming the key.
    """
    found = _NAMES.get(text.strip().lower().replace("-", "_"))
    if found is None:
        shown = "".join(c if c.isprintable() else "?" for c in text)[:40]
        raise UsageError(
            f"{key}: the data type {shown!r} isn't known",
            f"one of {', '.join(sorted(name for name in _NAMES if name != 'fp8_index'))}",
        )
    return found


def grouped(bits: int, group: int | None, kind: str, *, zero: bool = False) -> Precision:
    """Return integers of ``bits`` with a 16-bit scale, and perhaps a zero point, for a group."""
    scales = ((16 + bits * zero) / 8 / group) if group else 0.0
    name = f"{kind}{bits}" + (f", groups of {group}" if group else "")
    return Precision(name, bits / 8 + scales)


def fp8_blocks(rows: int, columns: int, scale_bytes: int) -> Precision:
    """Return FP8 with a scale for a block of rows x columns."""
    return Precision(f"fp8, {rows}×{columns} blocks", 1 + scale_bytes / (rows * columns))
