"""Two figures of the paper, drawn with calibrant.

1. Six instances: the classical ECE equals the error of a fit with slope-1 tops (0.133),
   not with flat tops (0.167).
2. Three classifiers with the same bars but different errors (0.002, 0.090, 0.070): bin
   centres and diagonal filling show the difference.

Run from the root of the project: ``python examples/paper_figures.py [folder]``.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np

import calibrant as cb

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SIX_P = np.array([0.1, 0.3, 0.65, 0.75, 0.85, 0.95])
SIX_Y = np.array([0, 1, 0, 1, 1, 1])

SHARES = np.array([0.10, 0.25, 0.55, 0.75, 0.90])
GAPS = np.array([0.02, 0.13, -0.13, -0.12, -0.05])
EVEN = np.full(5, 200)
UNEVEN = np.array([300, 140, 120, 120, 320])


def six_instances() -> Figure:
    """Draw the four panels of the figure with six instances."""
    panels: dict[str, dict[str, Any]] = {
        "(a) classical": {"kind": "centres"},
        "(b) fitted flat": {"kind": "diagonal", "tops": "flat", "instances": 6},
        "(c) fitted, slope 1": {"kind": "diagonal", "instances": 6},
        "(d) diagonal filling": {"kind": "diagonal"},
    }
    raw = cb.calibration_error(SIX_Y, SIX_P, method="ew2", debias=False)
    print(f"ECE of six instances: {raw:.3f}")
    figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), layout="constrained")
    for ax, (name, options) in zip(axes, panels.items(), strict=True):
        display = cb.ReliabilityDisplay.from_predictions(
            SIX_Y, SIX_P, method="ew2", histogram=False, **options
        )
        display.plot(ax, title=False)
        error = display.error if "tops" in options else raw
        ax.set_title(f"{name}, error {error:.3f}", fontsize=8)
    return figure


def classifier(gaps: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return predictions and labels with given observed rates and gaps in five bins."""
    p, y = [], []
    for share, gap, count in zip(SHARES, gaps, counts, strict=True):
        p.append(share + gap + np.tile([-0.01, 0.01], count // 2))
        y.append(np.arange(count) < round(share * count))
    return np.concatenate(p), np.concatenate(y).astype(int)


def three_classifiers() -> Figure:
    """Draw three kinds of diagrams of three classifiers with equal bars."""
    models = {
        "classifier 1": classifier(np.full(5, 0.002), EVEN),
        "classifier 2": classifier(GAPS, EVEN),
        "classifier 3": classifier(GAPS, UNEVEN),
    }
    kinds = ("bars", "centres", "diagonal")
    figure, axes = plt.subplots(3, 3, figsize=(9, 11.4), layout="constrained")
    for (name, (p, y)), column in zip(models.items(), axes.T, strict=True):
        error = cb.calibration_error(y, p, method="ew5", debias=False)
        print(f"{name}: {error:.3f}")
        for kind, ax in zip(kinds, column, strict=True):
            display = cb.ReliabilityDisplay.from_predictions(
                y, p, method="ew5", kind=kind
            )
            display.plot(ax, title=False)
            ax.set_title(f"{name}, error {error:.3f}", fontsize=8)
    print(f"bars of all three: {display.frame()['observed'].round(3)}")
    return figure


def main() -> None:
    """Draw both figures into a folder."""
    mpl.use("Agg")
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")
    with warnings.catch_warnings():
        # Six rows are an illustration, not a measurement.
        warnings.simplefilter("ignore", cb.exceptions.SmallSampleWarning)
        six_instances().savefig(folder / "six_instances.png", dpi=130)
    three_classifiers().savefig(folder / "three_classifiers.png", dpi=110)
    print(f"wrote {folder}/six_instances.png and {folder}/three_classifiers.png")


if __name__ == "__main__":
    main()
