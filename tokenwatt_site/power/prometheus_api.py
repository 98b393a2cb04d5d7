"""Instant queries to a Prometheus server: short, bounded, and never at another host."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

import httpx

from tokenwatt_site.documents.spec import SpecPower
from tokenwatt_site.power.web import (
    UnansweredError,
    base_url,
    client,
    exchange,
    password,
    status_code,
)

Kind = Literal["vector", "matrix", "scalar"]


@dataclass(frozen=True, slots=True)
class Series:
    """One series of an answer, its values as the server wrote them."""

    labels: dict[str, str]
    points: list[tuple[float, str]]
    """Time on the server's clock, s, and value; one of them in an instant vector."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an instant query gave."""

    kind: Kind
    series: list[Series]


class PrometheusApi:
    """Asks one server."""

    def __init__(self, power: SpecPower, transport: httpx.BaseTransport | None = None) -> None:
        """Take address and rights from a spec; nothing is sent yet.

        With ``username`` it is basic authentication, with ``password_env`` alone a bearer token.

        Raises:
            UsageError: no usable address, or a password variable that isn't set.
        """
        where = base_url(power, "a Prometheus server", "http://prometheus.example:9090")
        self._url = f"{where}/api/v1/query"
        self._client = client(power, transport)
        secret = password(power)
        if power.username is not None:
            self._client.auth = httpx.BasicAuth(power.username, secret or "")
        elif secret is not None:
            self._client.headers["Authorization"] = f"Bearer {secret}"

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def ask(self, query: str) -> Answer:
        """Return the answer to an instant query, evaluated at the server's now.

        Raises:
            UnansweredError: timeout, unreachable, unauthorized, redirected or bad_answer.
        """
        request = self._client.build_request("GET", self._url, params={"query": query})
        response, data = exchange(self._client, request)
        status_code(response)
        try:
            return _answer(json.loads(data))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            status = response.status_code
            raise UnansweredError("bad_answer", f"status {status}, no answer to a query") from None


def _answer(body: Mapping[str, Any]) -> Answer:
    """Return what a query gave.

    Raises:
        UnansweredError: the server says why there is nothing.
        ValueError, LookupError, TypeError, AttributeError: it has another shape.
    """
    if body["status"] != "success":
        raise UnansweredError("bad_answer", f"{body.get('errorType')}: {body.get('error')}")
    kind, result = body["data"]["resultType"], body["data"]["result"]
    if kind == "scalar":
        return Answer("scalar", [Series({}, [_point(result)])])
    if kind not in {"vector", "matrix"}:
        raise ValueError(f"no numbers: {kind}")
    return Answer(
        cast("Kind", kind),
        [
            Series(
                {str(name): str(value) for name, value in entry["metric"].items()},
                [_point(pair) for pair in entry.get("values") or [entry["value"]]],
            )
            for entry in result
        ],
    )


def _point(pair: Sequence[Any]) -> tuple[float, str]:
    time_s, value = pair
    return float(time_s), str(value)
