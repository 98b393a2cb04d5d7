"""The server's page is read beside the load, and a page that can't be had is a gap."""

from collections.abc import Iterator

import httpx

from tokenwatt_site.load.address import Address
from tokenwatt_site.load.control import Control
from tokenwatt_site.load.scrape import EVERY_S, Scraper


def scraper(answers: Iterator[httpx.Response], looks: int = 0) -> Scraper:
    """Return a scraper whose clock moves only while it waits, ``looks`` times."""
    now = [0.0]

    def wait(seconds: float) -> bool:
        now[0] += seconds
        return now[0] > looks * EVERY_S

    control = Control(
        Address.of("http://127.0.0.1:1/v1"), {}, httpx.MockTransport(lambda _: next(answers))
    )
    return Scraper(control, clock=lambda: now[0], wait=wait)


def page(running: int) -> httpx.Response:
    return httpx.Response(200, text=f"vllm:num_requests_running {running}\n")


def test_the_page_stands_beside_the_api() -> None:
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(str(request.url))
        return page(1)

    control = Control(Address.of("http://127.0.0.1:1/v1"), {}, httpx.MockTransport(answer))
    assert Scraper(control).look()
    assert asked == ["http://127.0.0.1:1/metrics"]


def test_a_server_without_a_page_that_we_know_is_not_looked_at() -> None:
    answers = [httpx.Response(404), httpx.Response(200, text="process_cpu_seconds_total 1\n")]
    found = scraper(iter(answers))
    assert [found.look(), found.look()] == [False, False]
    assert found.between(0.0, 1e9) == []


def test_it_is_read_every_two_seconds_and_a_failure_is_a_gap() -> None:
    found = scraper(iter([page(1), httpx.Response(500), page(3)]), looks=3)
    found.run()
    assert [(p.t_s, p.values["running"]) for p in found.between(0.0, 1e9)] == [(2.0, 1), (6.0, 3)]
    assert [p.t_s for p in found.between(6.0, 6.0)] == [6.0]
