"""config.json files of strangers: found, bounded, read."""

import hashlib
import os
from pathlib import Path

import pytest

from tokenwatt_site.documents.model_config import MAX_BYTES, load_model_config, spec_model_config
from tokenwatt_site.errors import DocumentError, RefusedError, TokenwattError, UsageError


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


def test_a_spec_names_a_config_in_its_folder(tmp_path: Path) -> None:
    inner = tmp_path / "specs" / "models"
    inner.mkdir(parents=True)
    (inner / "config.json").write_text('{"a": 1}', encoding="utf-8")
    found = spec_model_config("models/config.json", tmp_path / "specs")
    assert found is not None
    assert found.config == {"a": 1}
    assert spec_model_config("models", tmp_path / "specs") == found
    assert spec_model_config(None, tmp_path) is None


@pytest.mark.parametrize(
    "name", ["../config.json", "/etc/passwd", "C:\\config.json", "a\0b", "out"]
)
def test_and_none_outside(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.json").write_text("{}", encoding="utf-8")
    folder = tmp_path / "specs"
    folder.mkdir()
    (folder / "out").symlink_to(tmp_path)
    with pytest.raises(RefusedError, match=r"model\.config"):
        spec_model_config(name, folder)


def test_no_pipe_is_waited_on(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config.json")
    with pytest.raises(UsageError, match="not a file"):
        load_model_config(tmp_path / "config.json")
