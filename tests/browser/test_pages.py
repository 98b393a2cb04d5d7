"""Pages in a real browser: from a disk and a server, with and without scripts, in both themes."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

SEED = "runs/h200x4-deepseek-v4.1-flash-fp8-vllm/index.html"
RICH = "runs/sim-llama-70b-h200x4-bf16kv/index.html"
JOINED = "runs/sim-llama-70b-power-limit/index.html"
COMPARISON = "compare/power-limit/index.html"
PAGES = (
    *("index.html", SEED, RICH, JOINED, COMPARISON, "compare/index.html", "changes/index.html"),
    *("hardware/h200/index.html", "models/llama-3.1-70b/index.html", "method/index.html"),
)
TEXTS_OVERLAP = """() => {
  const found = [];
  for (const chart of document.querySelectorAll("svg.c")) {
    const texts = [...chart.querySelectorAll("text:not(.wm)")];
    const shown = texts.map(t => [t, t.getBoundingClientRect()]).filter(([, box]) => box.width > 0);
    shown.forEach(([a, p], i) => shown.slice(i + 1).forEach(([b, q]) => {
      const wide = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const high = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (wide > 2 && high > 5) found.push(a.textContent + " | " + b.textContent);
    }));
    shown.forEach(([t, box]) => {
      if (box.right > innerWidth + 1 || box.left < -1) found.push("outside: " + t.textContent);
    });
  }
  return found;
}"""
CONTRAST = """() => {
  const parse = text => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = rgb => {
    const linear = v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
    const [r, g, b] = rgb.map(v => linear(v / 255));
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const ratio = (a, b) => (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  const ground = light(parse(getComputedStyle(document.documentElement).backgroundColor));
  const low = [];
  const texts = "h1, h2, p, td, th, dt, .n, .big, figcaption span, svg.c .t";
  for (const element of document.querySelectorAll(texts)) {
    const style = getComputedStyle(element);
    const ink = element.closest("svg") ? style.fill : style.color;
    const value = ratio(light(parse(ink)), ground);
    if (value < 4.5) low.push(element.className + " " + value.toFixed(2));
  }
  return low;
}"""


@pytest.mark.parametrize("path", PAGES)
def test_a_page_says_nothing_on_the_console_and_asks_only_its_own_site(
    page: Page, address: str, path: str, messages: list[str], requests: list[str]
) -> None:
    page.goto(address + path)
    assert messages == []
    assert all(url.startswith((address, "data:,")) for url in requests)
    assert len([url for url in requests if not url.startswith("data:")]) <= 4


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 360, 1280])
def test_no_page_is_wider_than_the_screen_and_no_label_covers_another(
    chromium: Browser, site_folder: Path, width: int, theme: str
) -> None:
    context = chromium.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if theme == "dark" else "light",
    )
    page = context.new_page()
    for path in PAGES:
        page.goto(f"{site_folder.as_uri()}/{path}")
        over = page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        assert over <= 0, path
        assert page.evaluate(TEXTS_OVERLAP) == [], path
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_readable_in_both_themes(chromium: Browser, site_folder: Path, theme: str) -> None:
    context = chromium.new_context(color_scheme="dark" if theme == "dark" else "light")
    page = context.new_page()
    for path in PAGES:
        page.goto(f"{site_folder.as_uri()}/{path}")
        assert page.evaluate(CONTRAST) == [], path
    context.close()


def test_without_scripts_every_number_table_chart_and_link_is_there(
    chromium: Browser, site_folder: Path
) -> None:
    """The pages with scripts and without show the same text, but for the scripts' own buttons."""
    texts = []
    for scripts in (True, False):
        context = chromium.new_context(java_script_enabled=scripts)
        page = context.new_page()
        shown = {}
        for path in PAGES:
            page.goto(f"{site_folder.as_uri()}/{path}")
            body = page.locator("main")
            shown[path] = (
                page.locator("main svg.c").count(),
                page.locator("main table").count(),
                body.locator("dl.heads").all_inner_texts(),
                body.locator("tbody td, tbody th, h1, h2, figcaption").all_text_contents(),
            )
            assert all(box["width"] > 100 for box in _boxes(page)), path
        texts.append(shown)
        context.close()
    assert texts[0] == texts[1]
    assert texts[1][RICH][0] == 8


def _boxes(page: Page) -> list[dict[str, float]]:
    boxes = [chart.bounding_box() for chart in page.locator("main svg.c").all()]
    return [dict(box) for box in boxes if box is not None]


def test_without_scripts_no_button_that_needs_one_is_shown(
    chromium: Browser, site_folder: Path
) -> None:
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{site_folder.as_uri()}/{RICH}")
    assert [b for b in page.locator("button").all() if b.is_visible()] == []
    context.close()


def test_the_links_of_a_page_on_the_disk_lead_on(page: Page, site_folder: Path) -> None:
    page.goto(f"{site_folder.as_uri()}/index.html")
    page.click("#results .id a >> text=DeepSeek-V4.1-Flash")
    assert page.locator("h1").inner_text().startswith("DeepSeek-V4.1-Flash")
    page.click(".crumb a >> text=NVIDIA H200")
    assert page.locator("h1").inner_text() == "NVIDIA H200"
    page.click(".top nav a >> text=Method")
    assert page.locator("h1").inner_text() == "Method"


def test_the_page_for_what_is_not_found_is_styled_at_any_depth(page: Page, server: str) -> None:
    page.goto(f"{server}404.html")
    assert page.evaluate("getComputedStyle(document.querySelector('h1')).fontWeight") == "650"
    assert page.locator("h1 ~ p a").first.get_attribute("href") == "/repo/"


def test_print_shows_the_tables_that_are_folded_and_no_buttons(
    page: Page, site_folder: Path
) -> None:
    page.goto(f"{site_folder.as_uri()}/{RICH}")
    page.emulate_media(media="print", color_scheme="dark")
    assert (
        page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    assert not page.locator("#sweep-tpot .ff").is_visible()
    assert not page.locator(".top nav").is_visible()
