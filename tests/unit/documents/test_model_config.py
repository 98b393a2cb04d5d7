"""config.json files of strangers: found, bounded, read."""

import hashlib
from pathlib import Path

import pytest

from tokenwatt_site.documents.model_config import MAX_BYTES, load_model_config
from tokenwatt_site.errors import DocumentError, TokenwattError, UsageError


def test_a_config_and_the_file_beside_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"time_step_limit": [0.0, Infinity]}', encoding="utf-8")
    (tmp_path / "hf_quant_config.json").write_text('{"quantization": {}}', encoding="utf-8")
    found = load_model_config(tmp_path / "config.json")
    assert found.config == {"time_step_limit": [0.0, None]}
    assert found.quant == {"quantization": {}}
    assert found.sha256 == hashlib.sha256((tmp_path / "config.json").read_bytes()).hexdigest()
    assert load_model_config(tmp_path) == found


def test_another_name_takes_no_strangers_file(tmp_path: Path) -> None:
    (tmp_path / "llama.json").write_text("{}", encoding="utf-8")
    (tmp_path / "hf_quant_config.json").write_text('{"quantization": {}}', encoding="utf-8")
    assert load_model_config(tmp_path / "llama.json").quant is None


@pytest.mark.parametrize("text", ["[]", "3", '"x"'])
def test_no_object(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="no object"):
        load_model_config(tmp_path)


@pytest.mark.parametrize(
    "text", ["", "{", '{"a": 1, "a": 2}', '{"a": ' + "[" * 500, '{"a": 1e999}']
)
def test_no_json(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(DocumentError):
        load_model_config(tmp_path)


def test_too_large_or_missing(tmp_path: Path) -> None:
    with pytest.raises(TokenwattError, match=r"config\.json"):
        load_model_config(tmp_path)
    (tmp_path / "config.json").write_bytes(b"{}" + b" " * MAX_BYTES)
    with pytest.raises(UsageError, match="more than a config"):
        load_model_config(tmp_path)
