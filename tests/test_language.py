"""Words that readers had to decode stay out of what users read."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BANNED = (
    "a row a group",
    "a row a model",
    "a diagram a model",
    "can be told from chance",
    "cannot be told from",
    "cells add up",
    "cells of days",
    "how far it is off",
    "in a kernel's eyes",
    "it is had to",
    "told apart",
    "told to be better",
    "no spare rows",
    "share that happens",
    "speaks up",
    "these very rows",
    "to the last closed side",
    "told from noise",
    "weights that are none",
    "what tells it apart",
    "where it says",
)
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(p for p in (ROOT / "docs").glob("*.md") if not p.stem.endswith("_tables")),
    *sorted((ROOT / "src" / "calibrant" / "report" / "templates").iterdir()),
    *sorted((ROOT / "src" / "calibrant").rglob("*.py")),
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_banned_phrases_are_not_used(path):
    text = re.sub(r"\s+", " ", path.read_text(encoding="utf-8")).lower()
    assert [phrase for phrase in BANNED if phrase in text] == []
