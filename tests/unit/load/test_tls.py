"""A server behind TLS, its certificate signed by an authority of our own, from the first look."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.load.conftest import Certificates
from tokenwatt_site.documents.doors import load_spec
from tokenwatt_site.documents.spec import Spec
from tokenwatt_site.errors import ServerError, UsageError
from tokenwatt_site.first_spec import new_spec
from tokenwatt_site.method.overrides import split
from tokenwatt_site.method.profiles import shape_of
from tokenwatt_site.method.step_model import StepModel
from tokenwatt_site.simulator.app import App
from tokenwatt_site.simulator.engine import Engine


@pytest.fixture
def endpoint(certificates: Certificates) -> Iterator[str]:
    """The embedded engine behind TLS, on a thread of its own."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.server)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()

    async def begin() -> tuple[Engine, asyncio.Server]:
        engine = Engine(StepModel(shape_of("demo", {}), 0), loop)
        app = App(engine, split({}).meter)
        return engine, await loop.create_server(app.connection, "127.0.0.1", 0, ssl=context)

    async def end() -> None:
        engine.close()
        server.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    engine, server = asyncio.run_coroutine_threadsafe(begin(), loop).result()
    try:
        yield f"https://localhost:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        asyncio.run_coroutine_threadsafe(end(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def written(folder: Path, endpoint: str, ca_file: Path | None) -> Spec:
    text, _ = new_spec(
        endpoint=endpoint,
        model="",
        api="completions",
        api_key_env=None,
        name="",
        ca_file=str(ca_file) if ca_file else None,
    )
    file = folder / "new.spec.yaml"
    file.write_text(text)
    return load_spec(file)


def test_a_spec_of_it_names_the_authority(
    tmp_path: Path, endpoint: str, certificates: Certificates
) -> None:
    spec = written(tmp_path, endpoint, certificates.authority)
    assert spec.engine.ca_file == str(certificates.authority)
    assert spec.engine.endpoint == endpoint


def test_without_the_authority_it_is_refused(tmp_path: Path, endpoint: str) -> None:
    with pytest.raises(ServerError, match="can't be verified") as refused:
        written(tmp_path, endpoint, None)
    assert "engine.ca_file" in refused.value.hint


def test_a_file_that_is_not_there_is_named(endpoint: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ca_file .* can't be read"):
        written(tmp_path, endpoint, tmp_path / "nope.pem")
