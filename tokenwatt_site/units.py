"""The one place that rounds and formats for people.

A title, an axis, a tooltip, a table cell and a badge take their digits from here, so that they
can't disagree. Files for machines (CSV, JSON) carry the exact value: `exact`.
"""

import math
import re
from dataclasses import dataclass

NBSP = "\u00a0"
WORD_JOINER = "\u2060"
MINUS = "\u2212"


@dataclass(frozen=True, slots=True)
class Quantity:
    """How one physical quantity is written.

    ``decimals`` holds while the number then has at least ``least`` and at most ``most``
    significant digits; digits before the point are never rounded away.
    """

    unit: str
    decimals: int = 0
    least: int = 3
    most: int = 3

    def digits(self, value: float) -> int:
        """Return the number of digits after the point that ``value`` is written with."""
        if value == 0:
            return 0
        places = math.floor(math.log10(abs(value)))
        fewest, greatest = self.least - 1 - places, self.most - 1 - places
        return max(0, min(max(self.decimals, fewest), greatest))


QUANTITIES: dict[str, Quantity] = {
    "j_per_token": Quantity("J/token", decimals=3, least=3, most=4),
    "j_per_total_token": Quantity("J/token", decimals=4, least=3, most=4),
    "j_per_request": Quantity("J"),
    "tok_s_kw": Quantity("tok/s/kW"),
    "tok_s": Quantity("tok/s"),
    "rps": Quantity("requests/s", decimals=2, least=2, most=4),
    "ms": Quantity("ms"),
    "s": Quantity("s"),
    "w": Quantity("W"),
    "kw": Quantity("kW"),
    "j": Quantity("J"),
    "kwh": Quantity("kWh"),
    "kwh_mtok": Quantity("kWh/Mtok", decimals=4, least=3, most=4),
    "money_mtok": Quantity("/Mtok"),
    "g_mtok": Quantity("g/Mtok"),
    "pct": Quantity("%", decimals=1, least=2, most=3),
    "share_pct": Quantity("%", decimals=2, least=2, most=4),
    "pts": Quantity("points", decimals=2, least=2, most=4),
    "tb_s": Quantity("TB/s"),
    "hz": Quantity("Hz"),
    "tokens": Quantity("tokens"),
    "count": Quantity("", least=1),
    "mean_count": Quantity(""),
}


@dataclass(frozen=True, slots=True)
class Text:
    """A number as people read it: the number, its unit and the exact value for a tooltip."""

    number: str
    unit: str
    exact: str

    def __str__(self) -> str:
        """Return number and unit with a no-break space between them."""
        return f"{self.number}{NBSP}{self.unit}" if self.unit else self.number


def fixed(value: float, digits: int, *, signed: bool = False) -> str:
    """Write ``value`` with ``digits`` decimals, thousands commas and a true minus."""
    text = f"{abs(value):,.{digits}f}"
    if value < 0 and text.strip("0,."):
        return MINUS + text
    return "+" + text if signed and text.strip("0,.") else text


def fmt(value: float, quantity: str) -> Text:
    """Write ``value``, in the unit of ``quantity``, for people.

    Args:
        value: finite, in the unit that the quantity is named after.
        quantity: a key of `QUANTITIES`.
    """
    rule = QUANTITIES[quantity]
    exactly = f"{significant(value)} {rule.unit}".strip()
    return Text(fixed(value, rule.digits(value)), rule.unit, exactly)


def number(value: float, quantity: str) -> str:
    """Write ``value`` without its unit."""
    return fmt(value, quantity).number


def half_width(value: float, half: float, quantity: str) -> str:
    """Write ``± half`` with the decimals of ``value``, more where that would show nothing."""
    digits = QUANTITIES[quantity].digits(value)
    while half > 0 and digits < 12 and float(f"{half:.{digits}f}") == 0:  # noqa: PLR2004
        digits += 1
    return f"±{NBSP}{fixed(half, digits)}"


def span(low: float, high: float, quantity: str) -> str:
    """Write a range with an en dash, both ends with the decimals of the larger."""
    digits = QUANTITIES[quantity].digits(max(abs(low), abs(high)))
    return f"{fixed(low, digits)}–{fixed(high, digits)}"


def difference(pct: float) -> str:
    """Write a difference in percent: sign and one decimal."""
    return fixed(pct, 1, signed=True)


def exact(value: float | None) -> str:
    """Write ``value`` for a machine: every digit, no separators, empty for what is missing."""
    return "" if value is None else repr(value)


def significant(value: float, digits: int = 9) -> str:
    """Write ``value`` with thousands commas and up to ``digits`` significant digits."""
    if isinstance(value, int):
        return f"{value:,}"
    if value and not 1e-6 < abs(value) < 1e15:  # noqa: PLR2004 - beyond it, an exponent reads better
        return f"{value:.{digits}g}"
    places = math.floor(math.log10(abs(value))) if value else 0
    text = f"{value:,.{max(0, digits - 1 - places)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def bytes_text(size: int) -> str:
    """Write a file size."""
    for unit, scale in (("MB", 1e6), ("kB", 1e3)):
        if size >= scale:
            return f"{fixed(size / scale, 1 if size < 100 * scale else 0)}{NBSP}{unit}"
    return f"{size}{NBSP}B"


def duration_text(seconds: float) -> str:
    """Write a duration: 45 s, 2 min, 54 min 20 s, 1 h 12 min."""
    whole = round(seconds)
    if whole < 120:  # noqa: PLR2004
        return f"{significant(seconds, 3)}{NBSP}s"
    hours, rest = divmod(whole, 3600)
    minutes, left = divmod(rest, 60)
    parts = ((hours, "h"), (minutes, "min"), (0 if hours else left, "s"))
    return " ".join(f"{n}{NBSP}{unit}" for n, unit in parts if n)


_WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def count_word(count: int) -> str:
    """Write a small count as a word."""
    return _WORDS[count] if count < len(_WORDS) else f"{count:,}"


def plural(count: int, noun: str) -> str:
    """Write a count and its noun: 1 error, 4 errors."""
    return f"{count:,}{NBSP}{noun}{'' if count == 1 else 's'}"


_SLASH = re.compile(r"\b(requests|tok|J|kWh|kW|g|TB|GB|1)/(?=[a-zA-Z])")
_BEFORE = re.compile(r"(?<=[±≤≥×÷]) (?=[\w.])| (?=[×÷] ?\w)|(?<=\bn) (?==)|(?<=\bn =) (?=\d)")
_UNIT = re.compile(
    r"(?<=\d) (?=(?:%|‰|(?:µs|ms|s|min|h|W|kW|kWh|J|tok|requests|TB|GB|MB|kB|Hz|points?|GPUs?)\b))"
)


def tidy(text: str) -> str:
    """Keep numbers with their units and units in one piece when a line breaks.

    No-break spaces before units and around ± ≤ ≥ × and ``n =``, a word joiner after the slash of
    requests/s, J/token and tok/s/kW. Only spaces are exchanged and joiners added.
    """
    text = _SLASH.sub(lambda m: f"{m[1]}/{WORD_JOINER}", text)
    text = text.replace(f"{WORD_JOINER}s/kW", f"{WORD_JOINER}s/{WORD_JOINER}kW")
    return _UNIT.sub(NBSP, _BEFORE.sub(NBSP, text))
