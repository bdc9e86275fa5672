"""Phrases that readers had to decode are not used in texts and code."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BANNED = (
    " anew",
    "a column a class",
    "a diagram a model",
    "a row a group",
    "a row a model",
    "a row each",
    "are had",
    "can be told from chance",
    "cannot be told from",
    "cells add up",
    "cells of days",
    "cumulated",
    "equally many",
    "evaluate_table",
    "gather_table",
    "how far it is off",
    "how honest",
    "how surely",
    "in a kernel's eyes",
    "intercept a class",
    "is had",
    "nobody",
    "told apart",
    "told to be better",
    "no spare rows",
    "process of its own",
    "share of positives",
    "share that happens",
    "shares of positives",
    "somebody",
    "speak up",
    "speaks up",
    "spoke up",
    "take their turn",
    "these very rows",
    "to the last closed side",
    "told from noise",
    "travels between",
    "weights that are none",
    "what tells it apart",
    "where it says",
)
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "benchmarks").glob("*.py")),
    *sorted((ROOT / "examples").glob("*.py")),
    *sorted((ROOT / "src" / "calibrant" / "report" / "templates").iterdir()),
    *sorted((ROOT / "src" / "calibrant").rglob("*.py")),
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_banned_phrases_are_not_used(path):
    text = re.sub(r"\s+", " ", path.read_text(encoding="utf-8")).lower()
    assert [phrase for phrase in BANNED if phrase in text] == []
