"""The real server that these tests share."""

import importlib.util
from collections.abc import Iterator

import pytest

from tests.real.server import Server, llamacpp
from tests.support.shared import lacking


@pytest.fixture(scope="session")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return llama.cpp's own server with the tiny model, of 1 thread and 8 slots."""
    if not importlib.util.find_spec("xllamacpp"):
        lacking("no xllamacpp (pip install -e '.[llamacpp]')")
    with llamacpp(tmp_path_factory.mktemp("llamacpp"), "--slots", "8", "--ctx", "16384") as server:
        yield server
