"""Strict JSON from strangers."""

from pathlib import Path

import pytest

from tokenwatt_site.documents import jsonfile
from tokenwatt_site.errors import DocumentError


@pytest.mark.parametrize(
    "data,said",
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b'{"a": 1', "x.json:1:8: not JSON"),
        (b'{"a": NaN}', "NaN is not JSON"),
        (b'{"a": -Infinity}', "-Infinity is not JSON"),
        (b'{"a": 1e400}', "out of range"),
        (b'{"a": 1, "a": 2}', "'a' stands twice"),
        (b'{"a": "\\ud800"}', "lone surrogate"),
        (b'{"\\ud800": 1}', "lone surrogate"),
        (b'{"a": "caf\xe9"}', "not UTF-8 at byte 10"),
        (b"[" * 200 + b"]" * 200, "deep"),
        (b"[" * 200_000, "deep"),
    ],
)
def test_what_is_refused_names_the_file(data: bytes, said: str) -> None:
    with pytest.raises(DocumentError) as caught:
        jsonfile.loads(data, "x.json")
    assert str(caught.value).startswith("x.json")
    assert said in str(caught.value)


def test_a_byte_order_mark_is_accepted() -> None:
    assert jsonfile.loads(b'\xef\xbb\xbf{"a": 1}', "x.json") == {"a": 1}


def test_big_integers_stay_exact() -> None:
    assert jsonfile.loads(b'{"seed": 18446744073709551615}', "x") == {"seed": 2**64 - 1}


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.json"
    with path.open("wb") as file:
        file.truncate(jsonfile.MAX_BYTES + 1)
    with pytest.raises(DocumentError, match="larger than"):
        jsonfile.load(path)


def test_a_folder_is_no_document(tmp_path: Path) -> None:
    with pytest.raises(DocumentError):
        jsonfile.load(tmp_path)


def test_nan_is_never_written() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        jsonfile.dumps({"a": float("nan")})
