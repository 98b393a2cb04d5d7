"""What people read: digits, separators, signs, units."""

import pytest

from tokenwatt_site import units


@pytest.mark.parametrize(
    "value, quantity, expected",
    [
        (1.1609846634756274, "j_per_token", "1.161"),
        (0.79361, "j_per_token", "0.794"),
        (0.07941, "j_per_token", "0.0794"),
        (12.3456, "j_per_token", "12.35"),
        (1234.56, "j_per_token", "1,235"),
        (0.23243, "j_per_total_token", "0.2324"),
        (467.1, "j_per_request", "467"),
        (2047.4, "tok_s", "2,047"),
        (861.34, "tok_s_kw", "861"),
        (45.26, "tok_s", "45.3"),
        (5.09, "rps", "5.09"),
        (6.5, "rps", "6.50"),
        (0.0512, "rps", "0.051"),
        (81.44, "rps", "81.44"),
        (45.3, "ms", "45.3"),
        (379.0, "ms", "379"),
        (1004.4, "ms", "1,004"),
        (2377.0, "w", "2,377"),
        (594.25, "w", "594"),
        (2.377, "kw", "2.38"),
        (38.03, "kw", "38.0"),
        (0.32249574, "kwh_mtok", "0.3225"),
        (60.9, "pct", "60.9"),
        (0.414, "pct", "0.41"),
        (100, "pct", "100"),
        (21.25, "share_pct", "21.25"),
        (0, "share_pct", "0"),
        (-0.3, "pts", "−0.30"),
        (0.0, "ms", "0"),
        (-0.0, "ms", "0"),
    ],
)
def test_a_number_has_the_digits_of_its_quantity(
    value: float, quantity: str, expected: str
) -> None:
    assert units.number(value, quantity) == expected


def test_a_number_stands_with_its_unit_and_its_exact_value() -> None:
    text = units.fmt(2047.4, "tok_s")
    assert (str(text), text.exact) == ("2,047\u00a0tok/s", "2,047.4 tok/s")


def test_a_count_has_no_unit() -> None:
    assert str(units.fmt(1952, "count")) == "1,952"


@pytest.mark.parametrize(
    "value, half, quantity, expected",
    [
        (2047.4, 34.8, "tok_s", "±\u00a035"),
        (0.794, 0.0053, "j_per_token", "±\u00a00.005"),
        (46.2, 0.04, "ms", "±\u00a00.04"),
        (46.2, 0.0, "ms", "±\u00a00.0"),
    ],
)
def test_an_interval_has_the_decimals_of_its_value(
    value: float, half: float, quantity: str, expected: str
) -> None:
    assert units.half_width(value, half, quantity) == expected


@pytest.mark.parametrize(
    "pct, expected", [(-12.34, "−12.3"), (14.1, "+14.1"), (0.04, "0.0"), (-0.04, "0.0")]
)
def test_a_difference_has_its_sign(pct: float, expected: str) -> None:
    assert units.difference(pct) == expected


def test_a_range_has_an_en_dash_and_one_precision() -> None:
    assert units.span(32201.8, 33315.0, "tok_s") == "32,202–33,315"
    assert units.span(9.6, 11.3, "pct") == "9.6–11.3"


@pytest.mark.parametrize(
    "value, expected",
    [(2047.4, "2047.4"), (5, "5"), (None, ""), (0.1 + 0.2, "0.30000000000000004")],
)
def test_a_machine_gets_every_digit(value: float | None, expected: str) -> None:
    assert units.exact(value) == expected


@pytest.mark.parametrize(
    "value, expected",
    [
        (1.1609846634756274, "1.16098466"),
        (2047.4, "2,047.4"),
        (594.25, "594.25"),
        (1234567, "1,234,567"),
        (0, "0"),
        (1.5e-9, "1.5e-09"),
    ],
)
def test_a_tooltip_shows_nine_significant_digits(value: float, expected: str) -> None:
    assert units.significant(value) == expected


@pytest.mark.parametrize(
    "size, expected",
    [
        (90, "90\u00a0B"),
        (5468, "5.5\u00a0kB"),
        (140_000, "140\u00a0kB"),
        (2_100_000, "2.1\u00a0MB"),
    ],
)
def test_a_file_size(size: int, expected: str) -> None:
    assert units.bytes_text(size) == expected


@pytest.mark.parametrize(
    "seconds, expected",
    [
        (45, "45\u00a0s"),
        (120, "2\u00a0min"),
        (3260, "54\u00a0min 20\u00a0s"),
        (4320, "1\u00a0h 12\u00a0min"),
        (7204, "2\u00a0h"),
    ],
)
def test_a_duration(seconds: float, expected: str) -> None:
    assert units.duration_text(seconds) == expected


def test_counts_in_words() -> None:
    assert (units.count_word(2), units.count_word(1234)) == ("two", "1,234")
    assert (units.plural(1, "error"), units.plural(11, "warning")) == (
        "1\u00a0error",
        "11\u00a0warnings",
    )


@pytest.mark.parametrize(
    "text, expected",
    [
        ("5.09 requests/s", "5.09\u00a0requests/\u2060s"),
        ("1,260 tok/s/kW", "1,260\u00a0tok/\u2060s/\u2060kW"),
        ("± 35, n = 2", "±\u00a035, n\u00a0=\u00a02"),
        ("p99 TTFT ≤ 2 s", "p99 TTFT ≤\u00a02\u00a0s"),
        ("4 × H200", "4\u00a0×\u00a0H200"),
        ("80 % of 2 stories", "80\u00a0% of 2 stories"),
        ("see /runs/a", "see /runs/a"),
    ],
)
def test_numbers_keep_their_units_when_a_line_breaks(text: str, expected: str) -> None:
    assert units.tidy(text) == expected


def test_tidying_twice_changes_nothing_more() -> None:
    once = units.tidy("1,260 tok/s/kW at 4 × 2 GPUs, n = 3")
    assert units.tidy(once) == once
