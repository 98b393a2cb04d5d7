"""The stub server of the suite: every case under a path of its own, on this machine only.

``/CASE/v1`` is the base URL of a case, in each dialect that it is told in; ``/v1`` takes the case
as the name of the model. ``/cases`` lists them with their truth.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from tokenwatt_site.errors import UsageError
from tokenwatt_site.load.api import DIALECTS, dialect
from tokenwatt_site.load.api.chunk import is_dict, parsed
from tokenwatt_site.load.conformance.case import Case
from tokenwatt_site.load.conformance.cases import rows
from tokenwatt_site.load.conformance.listing import listing
from tokenwatt_site.load.conformance.script import Script
from tokenwatt_site.load.conformance.stub import Request, StubConnection
from tokenwatt_site.load.conformance.writer import WRITERS

HOST = "127.0.0.1"
_BACKLOG = 1024
# the longest path first: /chat/completions ends in /completions too
_APIS = sorted(((dialect(api).PATH, api) for api in DIALECTS), key=lambda pair: -len(pair[0]))
_CASES: dict[tuple[str, str], Case] = {(api, case.name): case for case, api in rows()}


@asynccontextmanager
async def serving(port: int = 0) -> AsyncGenerator[str]:
    """Serve the cases until the context ends; yields the server's URL without a path.

    Raises:
        UsageError: the port is taken or may not be used.
    """
    loop = asyncio.get_running_loop()
    open_: set[StubConnection] = set()

    def connection() -> StubConnection:
        made = StubConnection(_answer)
        open_.add(made)
        return made

    try:
        server = await loop.create_server(connection, HOST, port, backlog=_BACKLOG)
    except OSError as error:
        raise UsageError(
            f"can't listen on {HOST}:{port}: {error.strerror}",
            "choose another port, or 0 for any free one",
        ) from None
    try:
        yield f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for each in open_:
            each.transport.abort()


def _answer(request: Request) -> Script:
    path = request.path.partition("?")[0].rstrip("/")
    if request.method == "GET":
        return _told(path)
    api = next((api for ending, api in _APIS if path.endswith(ending)), None)
    if request.method != "POST" or api is None:
        return _json(404, _error(f"no {request.method} {path}; GET /cases lists what there is"))
    body = parsed(request.body.decode("utf-8", "replace"))
    name = _case_of(path) or (str(body.get("model")) if is_dict(body) else "")
    case = _CASES.get((api, name))
    if case is None:
        return _json(404, _error(f"no case {name[:80]!r} in {api}; GET /cases lists what there is"))
    return case.script(WRITERS[api])


def _told(path: str) -> Script:
    """Answer a GET: the list of cases, or what a server is asked before a load."""
    if path == "/cases":
        return _json(200, listing())
    if path.endswith("/models"):
        names = [_case_of(path)] if _case_of(path) else sorted({name for _, name in _CASES})
        entries = [{"id": name, "object": "model", "owned_by": "conformance"} for name in names]
        return _json(200, {"object": "list", "data": entries})
    if path in ("", "/health"):
        return _json(200, {"status": "ok", "cases": "/cases"})
    return _json(404, _error(f"no {path}; GET /cases lists what there is"))


def _case_of(path: str) -> str:
    """Return the case that a path names; empty for ``/v1/…``, where the model names it."""
    first = path.lstrip("/").partition("/")[0]
    return "" if first == "v1" else first


def _error(message: str) -> dict[str, Any]:
    return {"error": {"message": message, "type": "not_found_error"}}


def _json(status: int, body: dict[str, Any]) -> Script:
    data = json.dumps(body, ensure_ascii=False).encode()
    reason = "OK" if status == 200 else "Not Found"  # noqa: PLR2004
    head = (
        f"HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(data)}\r\n\r\n"
    )
    return [(0.0, head.encode() + data)]
