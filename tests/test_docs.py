"""What must hold for the site before it is built."""

import re
from pathlib import Path

import pytest

import calibrant as cb

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if "_build" not in p.parts)


def test_the_reference_lists_every_public_name():
    text = (DOCS / "api" / "index.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^(?:   |\.\. data:: )(\w+)$", text, re.MULTILINE))
    assert listed == set(cb.__all__) - {"__version__"}


@pytest.mark.parametrize("page", [ROOT / "README.md", *PAGES], ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    generated = re.compile(r"CAL\d{3}\.md|checks/index\.md|gallery/index")
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
        if "://" in target or generated.search(target):
            continue
        assert (page.parent / target).exists(), target


def test_pages_import_nothing_that_the_extra_all_does_not_install():
    for page in (ROOT / "README.md", *PAGES):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"import pandas|\bpd\.", text), page.name


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_gallery_has_at_least_twenty_figures():
    assert len(list((ROOT / "examples" / "gallery").glob("plot_*.py"))) >= 20
