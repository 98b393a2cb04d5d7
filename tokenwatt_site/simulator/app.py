"""The embedded engine's API: which request gets which answer."""

import hmac
import time
from collections.abc import Callable
from http import HTTPStatus

from tokenwatt_site import __version__
from tokenwatt_site.method.overrides import Meter
from tokenwatt_site.simulator.answer import Answer, error_body
from tokenwatt_site.simulator.connection import JSON, Connection, HttpRequest
from tokenwatt_site.simulator.engine import Engine
from tokenwatt_site.simulator.job import BadRequestError, read_job
from tokenwatt_site.simulator.pages import metrics_page, models_page, power_page

TEXT = "text/plain; version=0.0.4; charset=utf-8"
_COMPLETIONS, _CHAT = "/v1/completions", "/v1/chat/completions"


class App:
    """Answers the requests of all connections. With ``api_key`` the API asks for it."""

    def __init__(self, engine: Engine, meter: Meter, api_key: str = "") -> None:
        self.engine = engine
        self._meter = meter
        self._api_key = api_key
        self._answers = 0
        self._pages: dict[str, tuple[str, Callable[[], bytes]]] = {
            "/health": (JSON, lambda: b"{}"),
            "/version": (JSON, f'{{"version":"{__version__}"}}'.encode),
            "/v1/models": (JSON, lambda: models_page(engine)),
            "/power": (JSON, lambda: power_page(engine, self._meter)),
            "/metrics": (TEXT, lambda: metrics_page(engine)),
        }

    def connection(self) -> Connection:
        """Return the protocol of a new connection."""
        return Connection(self)

    def handle(self, request: HttpRequest, reply: Connection) -> None:
        """Answer a request, at once or as the engine steps."""
        try:
            self._authorise(request)
            if request.path in (_COMPLETIONS, _CHAT):
                self._generate(request, reply)
            else:
                content_type, page = self._page(request)
                reply.send(HTTPStatus.OK, page(), content_type)
        except BadRequestError as error:
            reply.send(error.status, error_body(error))

    def _authorise(self, request: HttpRequest) -> None:
        given = request.headers.get("authorization", "").encode()
        wanted = f"Bearer {self._api_key}".encode()
        if (
            self._api_key
            and request.path.startswith("/v1/")
            and not hmac.compare_digest(given, wanted)
        ):
            raise BadRequestError("Unauthorized", status=HTTPStatus.UNAUTHORIZED)

    def _page(self, request: HttpRequest) -> tuple[str, Callable[[], bytes]]:
        if request.path not in self._pages:
            raise BadRequestError(f"There is no {request.path}", status=HTTPStatus.NOT_FOUND)
        if request.method != "GET":
            raise BadRequestError("Only GET is allowed here", status=HTTPStatus.METHOD_NOT_ALLOWED)
        return self._pages[request.path]

    def _generate(self, request: HttpRequest, reply: Connection) -> None:
        if request.method != "POST":
            raise BadRequestError("Only POST is allowed here", status=HTTPStatus.METHOD_NOT_ALLOWED)
        engine = self.engine
        job = read_job(request.body, engine.model.shape, chat=request.path == _CHAT)
        self._answers += 1
        answer = Answer(job, self._answers, int(time.time()))

        def stream(n: int, *, last: bool) -> None:
            reply.write(answer.token(n, last=last), last=last)

        def collect(n: int, *, last: bool) -> None:
            if last:
                reply.send(HTTPStatus.OK, answer.document(n))

        listener = stream if job.stream else collect
        key = engine.submit(job.prompt_tokens, job.output_tokens, listener)
        reply.on_close = lambda: engine.cancel(key)
        if job.stream:
            reply.begin(answer.head())
