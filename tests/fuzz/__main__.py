"""Run random cases for some minutes and print what failed, or one case again."""

import argparse
import os
import sys
from pathlib import Path
from traceback import extract_tb

import pytest

from fuzz.driver import NAMES, Outcome, check_category, explore, seed_of_the_day

SHOWN = 5
"""How many failures of a category are printed."""


def main() -> None:
    options = _options()
    for name in options.category:
        check_category(name)  # pytest must be the first to import a category
    if "-" in options.seed:
        sys.exit(_run_again(options.seed, options.category))
    seconds = 60.0 * options.minutes / len(options.category)
    outcomes = [_explored(name, options.seed, seconds) for name in options.category]
    sys.stdout.write(_table(outcomes, options.seed))
    sys.exit(any(outcome.failures for outcome in outcomes))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--seed", default=seed_of_the_day())
    parser.add_argument("--category", nargs="*", default=NAMES)
    return parser.parse_args()


def _run_again(seed: str, names: list[str]) -> int:
    """Run one case by pytest, which shows the values that an assertion compared."""
    os.environ["CALIBRANT_FUZZ_SEED"] = seed
    file = Path(__file__).with_name("test_categories.py")
    tests = [f"{file}::test_no_random_case_fails[{name}]" for name in names]
    return int(pytest.main([*tests, "--showlocals", "-p", "no:cacheprovider"]))


def _explored(name: str, seed: str, seconds: float) -> Outcome:
    outcome = explore(name, seed, seconds)
    for case, error in list(outcome.failures.items())[:SHOWN]:
        where = extract_tb(error.__traceback__)[-1]
        what = " ".join(str(error).split())[:200] or where.line
        place = f"{Path(where.filename).name}:{where.lineno}"
        sys.stdout.write(f"{case}\n    {place}: {type(error).__name__}: {what}\n")
    return outcome


def _table(outcomes: list[Outcome], seed: str) -> str:
    width = max(map(len, NAMES))
    lines = [f"seed {seed}", f"{'category':{width}}   cases  failures"]
    lines += [
        f"{found.category:{width}} {found.cases:7,} {len(found.failures):9,}"
        for found in outcomes
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
