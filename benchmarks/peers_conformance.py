"""Run calibrant and other libraries through the conformance suite.

Run ``python benchmarks/peers_conformance.py`` after ``make bench``, which installs the
libraries. It rewrites ``docs/conformance.md``.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path

import peers

import calibrant as cb

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from conformance import (
    CASES,
    MAP_CASES,
    WEIGHT_CASES,
    conformance,
    map_conformance,
)

PAGE = ROOT / "docs" / "conformance.md"
WEIGHTED = ("calibrant", "probcal")
NO_WEIGHTS = "no weights"
MARKS = {True: "✓", False: "✗"}

INTRO = """\
# Conformance

The suite in `tests/conformance.py` runs any estimate of a calibration error through
small cases whose correct outcome does not depend on the method. This page shows the
results of calibrant and other libraries, each with 15 bins and without debiasing; the
calls are in `benchmarks/peers.py`. calibrant does not accept more bins than rows, so a
single row is evaluated with one bin. relplot's smooth error is not in the tables,
because it is exact only up to its own grid and the cases need more digits. In cases
with "map" or "levels" in their name the true error is known, and an estimate must lie
within two standard errors of it.

✓ correct, ✗ not correct, - does not accept weights. A ✗ is not always a mistake: some
libraries leave checks to their users, or reject data that others accept. The outcome of
each failed case is listed below its table.
"""

MAPS = """
## Maps where there are few data or none

Its second part checks calibration maps between neighbouring predictions of the data,
beyond the outermost ones, and of few rows.
"""
MAP_METHODS = ("smooth", "isotonic", "platt", "beta", "quadratic", "pl", "pl3", "es15")

ANY_RAISED = "raised"
REASONS = {
    ("calibrant es-cv", "repeated_rows"): (
        "copies of a row fall into different folds, a row of weight 2 into one"
    ),
    ("probcal", "one_class_only"): "it requires both classes",
    ("probcal", "one_row"): "it requires both classes",
    ("probcal", "zero_weight"): "it requires positive weights",
    ("netcal", ANY_RAISED): "its edges are quantiles, two of which coincide",
}
"""Known reasons why a case fails; printed only if it fails."""


def calibrant_measure(method):
    """Return a measure of the raw error, with at most as many bins as rows."""

    def measure(y, p, weight=None):
        name = method.replace("15", str(min(15, max(1, len(p)))))
        return cb.calibration_error(
            y, p, method=name, debias=False, sample_weight=weight
        )

    return measure


def calibrant_map(method):
    """Return a function that fits a map."""

    def fit(p, y):
        return cb.make_calibrator(method).fit(p, y).transform

    return fit


def tables():
    """Return the evaluators of each table by column name."""

    def table(methods, measures):
        ours = {f"calibrant {name}": calibrant_measure(name) for name in methods}
        return ours | peers.installed(measures)

    return {
        "Bins of equal width": table(["ew15"], peers.EQUAL_WIDTH),
        "Bins of equal size": table(["es15"], peers.EQUAL_SIZE),
        "Number of bins chosen from the data": table(
            ["es-sweep", "es-cv"], peers.SWEEP
        ),
    }


def described(suite):
    """Return what the page says about each case: these lines are written by hand."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    known = {line.partition(": ")[0]: line for line in lines if line[:2] == "- "}
    return [known[f"- {words(case)}"] for case in suite]


def findings(evaluators):
    """Return the findings by column and case."""
    return {
        name: {
            finding.case: finding
            for finding in conformance(run, weights=name.startswith(WEIGHTED))
        }
        for name, run in evaluators.items()
    }


def words(case):
    return case.replace("_", " ")


def mark(finding):
    return "-" if finding.detail == NO_WEIGHTS else MARKS[finding.passed]


def row(cells):
    return "| " + " | ".join(cells) + " |"


def table_lines(found, suite=(*CASES, *WEIGHT_CASES)):
    yield row(["case", *found])
    yield row(["---", *(":---:" for _ in found)])
    for name in suite:
        yield row([words(name), *(mark(cases[name]) for cases in found.values())])
    yield row(["passed", *(score(cases.values()) for cases in found.values())])


def score(found):
    marks = [mark(finding) for finding in found]
    return f"{marks.count('✓')} of {len(marks) - marks.count('-')}"


def failure_lines(found):
    """Describe failures, grouping cases with the same outcome."""
    together = {}
    for name, cases in found.items():
        for finding in cases.values():
            if mark(finding) == "✗":
                outcome = finding.detail + reason(name, finding)
                together.setdefault((name, outcome), []).append(words(finding.case))
    for (name, outcome), cases in together.items():
        yield f"- {name}, {', '.join(cases)}: {outcome}"


def reason(name, finding):
    known = REASONS.get((name, finding.case))
    if known is None and finding.detail.startswith("raised"):
        known = REASONS.get((name, ANY_RAISED))
    return f" ({known})" if known else ""


def page():
    versions = peers.versions("calibrant", "numpy", "torch")
    today = datetime.now(tz=UTC).date()
    yield INTRO
    yield f"{today:%d %B %Y}: " + ", ".join(f"{k} {v}" for k, v in versions.items())
    yield "\nCommand: `python benchmarks/peers_conformance.py`, after `make bench`.\n"
    yield "## The cases\n"
    yield from described((*CASES, *WEIGHT_CASES))
    for title, evaluators in tables().items():
        found = findings(evaluators)
        yield f"\n## {title}\n"
        yield from table_lines(found)
        yield ""
        yield from failure_lines(found)
    yield from map_lines()


def map_lines():
    """Return the section about maps, which needs no other library."""
    yield MAPS
    yield from described(MAP_CASES)
    yield ""
    found = {
        f"calibrant {method}": {
            finding.case: finding for finding in map_conformance(calibrant_map(method))
        }
        for method in MAP_METHODS
    }
    yield from table_lines(found, MAP_CASES)
    yield ""
    yield from failure_lines(found)


def main():
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text("\n".join(page()) + "\n", encoding="utf-8")
    print(f"wrote {PAGE.name}")


if __name__ == "__main__":
    main()
