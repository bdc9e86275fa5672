"""The figure of the README: one model before and after repair, on rows not seen.

Naive Bayes is over-confident. A calibrator fitted on one half of the digits repairs
its predictions of the other half; curves, bands and errors are those of that half.

Run from the root of the project: ``python examples/hero_figure.py [folder]``.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl

import calibrant as cb


def before_and_after() -> cb.ReliabilityGrid:
    """Return both diagrams: fitted on even rows, measured on odd ones."""
    p, y = cb.datasets.load_binary("bayes")
    calibrator = cb.make_calibrator().fit(p[::2], y[::2])
    models = {"before": p[1::2], "after": calibrator.transform(p[1::2])}
    return cb.ReliabilityGrid.from_predictions(y[1::2], models)


def main() -> None:
    """Draw the figure into a folder, at the width of one column."""
    mpl.use("Agg")
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures") / "hero.png"
    grid = before_and_after()
    grid.overlay(width=3.5).figure.savefig(path, dpi=240)  # type: ignore[union-attr]
    print(grid)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
