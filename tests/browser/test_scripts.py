"""What the scripts add: Explore, copy, theme, sorting, filters, tips."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.test_pages import COMPARISON, RICH, SEED

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("chart", ["sweep-tpot", "cdf-ttft", "timeline", "energy-rate"])
def test_explore_draws_the_chart_without_leaving_the_site(
    page: Page, address: str, chart: str, messages: list[str], requests: list[str]
) -> None:
    page.goto(address + RICH)
    assert not any("plotly" in url for url in requests)
    page.click(f"#{chart} [data-explore]")
    page.wait_for_selector(f"#{chart} .plot .main-svg")
    assert page.locator(f"#{chart} .plot .trace").count() > 0
    assert page.locator(f"#{chart} svg.c").first.is_visible() is False
    assert messages == []
    assert all(url.startswith((address, "data:")) for url in requests)
    assert sum("plotly-basic" in url for url in requests) == 1
    assert page.locator(f"#{chart} .modebar-btn[data-title*='hare']").count() == 0
    page.click(f"#{chart} [data-explore]")
    assert page.locator(f"#{chart} svg.c").first.is_visible()


def test_explore_loads_plotly_once_for_many_charts(
    page: Page, address: str, requests: list[str]
) -> None:
    page.goto(address + RICH)
    for chart in ("sweep-tpot", "sweep-ttft", "energy-rate"):
        page.click(f"#{chart} [data-explore]")
        page.wait_for_selector(f"#{chart} .plot .main-svg")
    assert sum("plotly-basic" in url for url in requests) == 1


def test_explore_follows_the_theme(page: Page, server: str) -> None:
    page.goto(server + RICH)
    page.click("#sweep-tpot [data-explore]")
    line = page.locator("#sweep-tpot .plot .scatterlayer .js-line").first
    line.wait_for()
    stroke = "e => getComputedStyle(e).stroke"
    before = line.evaluate(stroke)
    page.click("[data-toggle]")
    page.wait_for_function(
        f"({stroke})(document.querySelector('#sweep-tpot .plot .js-line')) !== {json.dumps(before)}"
    )
    assert before == "rgb(66, 74, 195)"


def test_the_copy_button_copies_the_commands(chromium: Browser, server: str) -> None:
    context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(server + SEED)
    page.click("[data-copy=repro]")
    page.wait_for_function("document.querySelector('[data-copy=repro]').textContent === 'Copied'")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator("#repro").text_content()
    assert copied.startswith("tokenwatt run --spec lambda-deepseek")
    context.close()


def test_the_theme_button_overrides_the_system_and_is_remembered(
    chromium: Browser, server: str
) -> None:
    context = chromium.new_context(color_scheme="light")
    page = context.new_page()
    ground = "getComputedStyle(document.documentElement).backgroundColor"
    page.goto(server)
    assert page.evaluate(ground) == "rgb(253, 253, 251)"
    page.click("[data-toggle]")
    assert page.evaluate(ground) == "rgb(19, 21, 23)"
    page.goto(server + SEED)
    assert page.evaluate(ground) == "rgb(19, 21, 23)"
    assert page.locator("[data-toggle]").inner_text() == "Light"
    context.close()


def test_the_system_theme_is_followed_while_the_page_is_open(page: Page, server: str) -> None:
    page.goto(server)
    page.emulate_media(color_scheme="dark")
    ground = page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert ground == "rgb(19, 21, 23)"
    assert page.locator("[data-toggle]").inner_text() == "Light"


def test_the_table_sorts_by_value_and_says_so(page: Page, server: str) -> None:
    page.goto(server)
    column = page.locator("#results thead th", has_text="Goodput")
    column.locator("button").click()
    assert column.get_attribute("aria-sort") == "ascending"
    values = "rows => rows.map(row => Number(row.cells[4].dataset.v))"
    shown = page.locator("#results tbody tr:not(.grp)").evaluate_all(values)
    assert shown == sorted(shown)
    column.locator("button").click()
    assert column.get_attribute("aria-sort") == "descending"
    shown = page.locator("#results tbody tr:not(.grp)").evaluate_all(values)
    assert shown == sorted(shown, reverse=True)


def test_the_filters_narrow_the_table_and_stand_in_the_address(
    page: Page, server: str, chromium: Browser
) -> None:
    page.goto(server)
    page.click("label:has-text('quick')")
    assert page.locator("#count").inner_text() == "1 of 4 runs"
    assert page.url.endswith("?mode=quick")
    other = chromium.new_page()
    other.goto(page.url)
    assert other.locator("#results tbody tr:not(.grp):visible").count() == 1
    other.close()


def test_a_filter_of_the_address_that_is_no_value_changes_nothing(
    page: Page, server: str, messages: list[str]
) -> None:
    page.goto(server + 'index.html?mode="><script>alert(1)</script>&x=1')
    assert page.locator("#count").inner_text() == "4 runs"
    assert messages == []


def test_the_nearest_point_tells_its_numbers(page: Page, server: str) -> None:
    page.goto(server + RICH)
    mark = page.locator("#sweep-tpot .mk").nth(3)
    mark.scroll_into_view_if_needed()
    box = mark.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 12, box["y"] + 10)
    tip = page.locator(".tip")
    assert tip.is_visible()
    assert tip.inner_text().replace("\u2060", "").replace("\u00a0", " ") == (
        "6.00 requests/s: p99 TPOT 39.5 ms, p99 TTFT 791 ms, within the SLO"
    )


def test_the_comparison_is_walked_by_keyboard(page: Page, site_folder: Path) -> None:
    page.goto(f"{site_folder.as_uri()}/{COMPARISON}")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.add(
            page.evaluate(
                "document.activeElement.tagName + ' ' + document.activeElement.textContent"
            )
        )
    assert "SUMMARY Data" in seen
    assert "BUTTON Explore" in seen
