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
    "all without one",
    "an error says so",
    "are had",
    "as if the model was",
    "as it stands there",
    "bias taken out",
    "can be told from chance",
    "cannot be told from",
    "cells add up",
    "cells of days",
    "cumulated",
    "equally many",
    "equals the row twice",
    "evaluate_table",
    "file by file",
    "fitted already",
    "gather_table",
    "hardly known",
    "how far it is off",
    "how honest",
    "how surely",
    "in a kernel's eyes",
    "intercept a class",
    "is had",
    "leave out --",
    "limits that hold the",
    "left half-written",
    "makes certainty of",
    "means that the event happened",
    "moves all predictions together",
    "must not hold",
    "no ending",
    "no spare rows",
    "not object, the",
    "nobody",
    "positive somewhere",
    "process of its own",
    "runs these cells again",
    "share of positives",
    "share that happens",
    "shares of positives",
    "slopes of their own",
    "somebody",
    "speak up",
    "speaks up",
    "spoke up",
    "take their turn",
    "that was tried",
    "that were tried",
    "these very rows",
    "to the last closed side",
    "told apart",
    "told from noise",
    "told to be better",
    "travels between",
    "turn out alike",
    "weights that are none",
    "what is better",
    "what tells it apart",
    "where it says",
    "where they live",
    "whole or not at all",
)
PAGES = [
    *sorted(ROOT.glob("*.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "benchmarks").glob("*.py")),
    *sorted((ROOT / "examples").rglob("*.py")),
    *sorted((ROOT / "src" / "calibrant" / "report" / "templates").iterdir()),
    *sorted((ROOT / "src" / "calibrant").rglob("*.py")),
]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_banned_phrases_are_not_used(path):
    text = re.sub(r"\s+", " ", path.read_text(encoding="utf-8")).lower()
    assert [phrase for phrase in BANNED if phrase in text] == []
