"""The built site in a browser, and its links; ``make docs`` builds it."""

import os
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).parents[1]
SITE = ROOT / "docs" / "_build" / "html"
PAGES = (
    "index",
    "guides/ml_engineer",
    "api/generated/calibrant.evaluate",
    "gallery/index",
)
SERIOUS = ("serious", "critical")


@pytest.fixture(scope="module")
def site():
    """The folder of the built site; without it the tests are skipped."""
    if not (SITE / "index.html").exists():
        reason = "the site is not built (make docs)"
        if os.environ.get("CALIBRANT_REQUIRE_BROWSER"):
            pytest.fail(reason)
        pytest.skip(reason)
    return SITE


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_serious_fault(browser, site, name, scheme):
    from axe_playwright_python.sync_playwright import Axe

    page = browser.new_page(color_scheme=scheme)
    page.goto((site / f"{name}.html").as_uri())
    page.wait_for_timeout(300)
    found = Axe().run(page).response["violations"]
    page.close()
    assert [
        (v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in SERIOUS
    ] == []


@pytest.mark.parametrize("name", PAGES)
def test_nothing_sticks_out_of_a_phone(browser, site, name):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto((site / f"{name}.html").as_uri())
    width = page.evaluate("document.documentElement.scrollWidth")
    page.close()
    assert width <= 390


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_follows_the_theme_switch(browser, site, scheme):
    def serve(route):
        route.fulfill(path=site / urlsplit(route.request.url).path[1:])

    def lightness():
        colour = report.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3

    page = browser.new_page(color_scheme=scheme)
    page.route("http://site/**", serve)  # pages opened as files are kept apart
    page.goto("http://site/index.html")
    report = page.frame(url="http://site/_static/report.html")
    for theme in ("dark", "light"):
        page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
        page.wait_for_timeout(100)
        assert (lightness() < 128) == (theme == "dark")
    page.close()


def test_internal_links_lead_to_pages(site):
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        for link in re.findall(r'<a [^>]*href="([^"#?]+\.html)[^"]*"', text):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_language_models_find_an_index(site):
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert "[Get started](get_started.html)" in text
