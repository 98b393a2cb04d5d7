"""A model's config.json, and the hf_quant_config.json beside it: strangers' files."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenwatt_site.documents import jsonfile
from tokenwatt_site.documents.neighbour import neighbour
from tokenwatt_site.errors import UsageError

MAX_BYTES = 4 * 1024 * 1024
"""Far above the largest config.json that lists every layer."""
_NAME, _BESIDE = "config.json", "hf_quant_config.json"


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What is known of a model's files."""

    config: Mapping[str, Any]
    """config.json as parsed; in a document's evidence the keys that were used."""
    quant: Mapping[str, Any] | None
    """hf_quant_config.json; None where there is none, or nothing of it is used."""
    sha256: str
    """Of config.json, as the file was."""


def load_model_config(path: Path) -> ModelConfig:
    """Read a config.json, and ``hf_quant_config.json`` in the same folder.

    A config named ``X_config.json`` has ``X_hf_quant_config.json`` beside it.

    Raises:
        UsageError: it is a folder without one, too large, or no object.
        DocumentError: it can't be read, or isn't JSON.
    """
    return _loaded(path / _NAME if path.is_dir() else path)


def spec_model_config(config: str | None, folder: Path) -> ModelConfig | None:
    """Read the config that a spec's ``model.config`` names; None where it names none.

    Args:
        config: the value of ``model.config``.
        folder: the spec's folder, which the path doesn't leave.

    Raises:
        RefusedError: the path leaves the folder.
        UsageError, DocumentError: see ``load_model_config``.
    """
    if config is None:
        return None
    return load_model_config(neighbour(config, folder, "model.config", "config.json"))


def _loaded(path: Path) -> ModelConfig:
    data = _bytes(path)
    beside = path.with_name(path.name.removesuffix(_NAME) + _BESIDE)
    named = path.name.endswith(_NAME) and beside.is_file()
    return ModelConfig(
        _object(data, str(path)),
        _object(_bytes(beside), str(beside)) if named else None,
        hashlib.sha256(data).hexdigest(),
    )


def _bytes(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise UsageError(f"{path}: not a file", "name the model's config.json")
    data = jsonfile.read_bytes(path)
    if len(data) > MAX_BYTES:
        raise UsageError(
            f"{path}: {len(data)} bytes is more than a config.json has", "name the model's own"
        )
    return data


def _object(data: bytes, name: str) -> dict[str, Any]:
    value = jsonfile.loads(data, name, infinite=True)
    if not jsonfile.is_object(value):
        raise UsageError(f"{name}: it holds no object", "name the model's config.json")
    return value
