"""The conformance suite over real connections: facts only, for times are a busy machine's too.

The times of every case are exact in ``test_stream_traps.py``, in virtual time.
"""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from click.testing import CliRunner

from tests.support.raw_http import RawClient, Reply, request
from tokenwatt_site.cli.conformance import conformance
from tokenwatt_site.errors import UsageError
from tokenwatt_site.load.conformance.cases import rows
from tokenwatt_site.load.conformance.listing import row_id
from tokenwatt_site.load.conformance.server import HOST, serving
from tokenwatt_site.load.loop import new_loop

T = TypeVar("T")
ROWS = [row_id(case, api) for case, api in rows()]


def run(main: Coroutine[Any, Any, T]) -> T:
    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(main)


@pytest.fixture(scope="module")
def checked() -> dict[str, dict[str, Any]]:
    """What ``conformance check`` prints, by row; its exit code depends on the times too."""
    result = CliRunner().invoke(conformance, ["check", "--json", "--tolerance-ms", "10000"])
    lines = [json.loads(line, parse_constant=pytest.fail) for line in result.stdout.splitlines()]
    return {row["id"]: row for row in lines}


@pytest.mark.parametrize("name", ROWS)
def test_the_client_sees_what_is_so(name: str, checked: dict[str, dict[str, Any]]) -> None:
    expected, seen = checked[name]["expected"], checked[name]["seen"]
    for fact in ("outcome", "reason", "tokens"):
        assert seen[fact] == expected[fact]


def test_no_row_is_left_out(checked: dict[str, dict[str, Any]]) -> None:
    assert list(checked) == ROWS


def asked(ask: Callable[[RawClient], Coroutine[Any, Any, T]]) -> T:
    """Serve, connect a bare client and return what it got."""

    async def main() -> T:
        async with serving() as url:
            port = int(url.rpartition(":")[2])
            loop = asyncio.get_running_loop()
            _, client = await loop.create_connection(RawClient, HOST, port)
            try:
                return await ask(client)
            finally:
                client.close()

    return run(main())


def got(path: str, body: Any = None) -> Reply:
    return asked(lambda client: client.ask("GET" if body is None else "POST", path, body))


def test_the_list_tells_how_to_ask_and_what_is_so() -> None:
    cases = got("/cases").json()["cases"]
    assert len(cases) == len(rows())
    (plain,) = [case for case in cases if case["id"] == "chat/plain"]
    assert plain["path"] == "/plain/v1/chat/completions"
    assert plain["base_url"] == "/plain/v1"
    assert plain["body"] == {
        "max_tokens": 8,
        "stream": True,
        "ignore_eos": True,
        "stream_options": {"include_usage": True},
    }
    truth = plain["truth"]
    assert (truth["outcome"], truth["tokens"]) == ("ok", 8)
    assert (truth["ttft_ms"], truth["tpot_ms"], truth["end_ms"]) == (300, 50, 650)
    (never,) = [case for case in cases if case["id"] == "chat/silent"]
    assert (never["truth"]["reason"], never["truth"]["ttft_ms"]) == ("timeout", None)


def test_a_case_is_told_by_its_path_or_by_the_model() -> None:
    by_path = got("/error-first/v1/chat/completions", {"model": "any"})
    by_model = got("/v1/chat/completions?x=1", {"model": "error-first"})
    assert by_path.events() == by_model.events()
    assert "error" in by_path.events()[0]


def test_models_are_listed_for_clients_that_ask() -> None:
    assert [each["id"] for each in got("/plain/v1/models").json()["data"]] == ["plain"]
    names = {each["id"] for each in got("/v1/models").json()["data"]}
    assert names == {case.name for case, _ in rows()}
    assert got("/health").status == 200


@pytest.mark.parametrize(
    "path, body",
    [
        ("/nope", None),
        ("/nope/v1/chat/completions", {}),
        ("/role-empty/v1/completions", {}),  # a case of chat alone
        ("/v1/chat/completions", {"model": "nope"}),
        ("/v1/chat/completions", []),
        ("/v1/embeddings", {}),
    ],
)
def test_what_there_is_not_is_a_404_that_says_where_to_look(path: str, body: Any) -> None:
    reply = got(path, body)
    assert reply.status == 404
    assert "/cases" in reply.json()["error"]["message"]


def test_what_is_no_http_is_hung_up_on() -> None:
    async def ask(client: RawClient) -> bool:
        client.write(b"\x16\x03\x01 no request\r\n\r\n")
        await client.answered(1)
        return client.closed

    assert asked(ask)


def test_a_body_without_end_is_hung_up_on() -> None:
    async def ask(client: RawClient) -> bool:
        client.write(request("POST", "/v1/chat/completions", b"x" * (9 * 2**20)))
        await client.answered(1)
        return client.closed

    assert asked(ask)


def test_a_kept_connection_takes_one_request_after_the_other() -> None:
    async def ask(client: RawClient) -> list[int]:
        first = await client.ask("POST", "/503/v1/chat/completions", {})
        second = await client.ask("POST", "/400/v1/responses", {})
        return [first.status, second.status]

    assert asked(ask) == [503, 400]


def test_a_port_that_is_taken_is_a_usage_error() -> None:
    async def main() -> None:
        async with serving() as url:
            with pytest.raises(UsageError, match="can't listen on"):
                async with serving(int(url.rpartition(":")[2])):
                    raise AssertionError

    run(main())


def test_the_list_is_strict_json() -> None:
    json.loads(got("/cases").body, parse_constant=pytest.fail)
