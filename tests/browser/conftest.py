"""A site in a folder, a server on it, and Debian's Chromium, all once a session."""

import functools
import http.server
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.shared import require
from tests.support.site import site_content
from tokenwatt_site.publish.render import render

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves without a line on the terminal for each request."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that holds the whole site below a sub-folder, as on a project's pages."""
    folder = tmp_path_factory.mktemp("site") / "repo"
    for path, data in render(site_content(base_url="https://example.org/repo/")):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder


@pytest.fixture(scope="session")
def server(site_folder: Path) -> Iterator[str]:
    """Return the address of the site served from a sub-folder on 127.0.0.1."""
    handler = functools.partial(_Quiet, directory=str(site_folder.parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}/repo/"
        running.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    """Return a headless Chromium of this machine."""
    path = require("chromium", "chromium-browser", "google-chrome")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def messages() -> list[str]:
    """Return what the page says on the console: nothing, if all is well."""
    return []


@pytest.fixture
def requests() -> list[str]:
    """Return the addresses that the page asks for."""
    return []


@pytest.fixture
def page(chromium: Browser, messages: list[str], requests: list[str]) -> Generator[Page]:
    """Return a page at 1,280 px whose console and requests are listened to."""
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    made = context.new_page()
    made.on("console", lambda message: messages.append(message.text))
    made.on("pageerror", lambda error: messages.append(str(error)))
    made.on("request", lambda request: requests.append(request.url))
    yield made
    context.close()


@pytest.fixture(params=["disk", "server"])
def address(request: pytest.FixtureRequest, site_folder: Path, server: str) -> str:
    """Return the site's address: from the disk, and over HTTP below a sub-folder."""
    return f"{site_folder.as_uri()}/" if request.param == "disk" else server
