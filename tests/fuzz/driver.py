"""Run random cases of a category, each of which its seed draws again."""

import os
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from itertools import count
from pathlib import Path
from zlib import crc32

import numpy as np

from calibrant.exceptions import CalibrantWarning

Case = Callable[[np.random.Generator], None]

FOLDER = Path(__file__).parent / "categories"
NAMES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))


def seed_of_the_day() -> str:
    """Return the date as a number, so that every day has cases of its own."""
    today = datetime.now(UTC).strftime("%Y%m%d")
    return os.environ.get("CALIBRANT_FUZZ_SEED", today)


def seconds_per_category() -> float:
    """Return how long the tests look for a case that fails."""
    return float(os.environ.get("CALIBRANT_FUZZ_SECONDS", "8"))


def check_category(name: str) -> None:
    """Stop where there is no such category."""
    if name not in NAMES:
        raise SystemExit(f"unknown category {name!r}; known: {', '.join(NAMES)}")


def find_case(name: str) -> Case:
    """Return the function that draws and checks one case of a category."""
    check_category(name)
    case: Case = import_module(f"fuzz.categories.{name}").case
    return case


@dataclass(frozen=True)
class CaseId:
    """One of the cases that a seed gives a category."""

    category: str
    seed: int
    number: int

    def __str__(self) -> str:
        return f"make fuzz CATEGORY={self.category} SEED={self.seed}-{self.number}"

    def run(self) -> None:
        """Draw the case and check it; warnings other than ours are errors."""
        numbers = [self.seed, crc32(self.category.encode()), self.number]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", CalibrantWarning)
            find_case(self.category)(np.random.default_rng(numbers))


@dataclass
class Outcome:
    """What the cases of a category showed."""

    category: str
    cases: int = 0
    failures: dict[CaseId, Exception] = field(default_factory=dict)


def explore(category: str, seed: str, seconds: float) -> Outcome:
    """Run as many cases as fit into the time, at least one.

    A seed such as "20240501" has a case for each of the numbers 0, 1, 2, ...;
    "20240501-37" is number 37 alone.
    """
    outcome = Outcome(category)
    find_case(category)  # imports take no time from cases
    for case in _cases(category, seed, time.monotonic() + seconds):
        outcome.cases += 1
        try:
            case.run()
        except Exception as error:  # noqa: BLE001  (whatever comes out is a failure)
            error.add_note(f"To run this case again: {case}")
            outcome.failures[case] = error
    return outcome


def _cases(category: str, seed: str, end: float) -> Iterator[CaseId]:
    series, _, only = seed.partition("-")
    for number in [int(only)] if only else count():
        yield CaseId(category, int(series), number)
        if time.monotonic() > end:
            return
