"""What tables of results show: which value of a row, its scale and which is best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant._typing import FloatVector, Frame

THOUSANDTHS = 1000.0


@dataclass(frozen=True)
class TableKind:
    """What a table shows.

    Attributes
    ----------
    name : str
        Short name, as in the paper's file names.
    title : str
        What is measured, for people.
    column : callable
        From result rows to one value a row; None for rank correlations.
    scale : float
        What values are multiplied by for show.
    digits : int
        Digits after the point.
    best : {"least", "most", "nearest 0"}
        Which value ranks first.
    truth : str
        For rank correlations, the column of true errors.
    signed : bool
        Whether values may lie on both sides of 0, so that ratios say nothing.
    """

    name: str
    title: str
    column: Callable[[Frame], FloatVector] | None
    scale: float = THOUSANDTHS
    digits: int = 2
    best: str = "least"
    truth: str = "true_error"
    signed: bool = False


def _distance(end: str) -> Callable[[Frame], FloatVector]:
    def distance(rows: Frame) -> FloatVector:
        return np.asarray(np.abs(rows["estimate" + end] - rows["true_error" + end]))

    return distance


def _bias(rows: Frame) -> FloatVector:
    return np.asarray(rows["estimate"] - rows["true_error"])


KINDS = {
    kind.name: kind
    for kind in (
        TableKind(
            "calmap",
            "Map error |c_hat - c*| on unseen rows (CMEE), in thousandths",
            lambda rows: rows["map_error"],
        ),
        TableKind(
            "ece", "Error of the error, |ECE - CE|, in thousandths", _distance("")
        ),
        TableKind(
            "ece_sq",
            "Error of the squared error, |ECE^2 - CE^2|, in thousandths",
            _distance("_sq"),
        ),
        TableKind(
            "spearman",
            "Spearman's rank correlation of estimated and true errors",
            None,
            scale=1.0,
            digits=4,
            best="most",
        ),
        TableKind(
            "bias",
            "Bias, mean of ECE - CE, in thousandths",
            _bias,
            best="nearest 0",
            signed=True,
        ),
        TableKind(
            "ceac",
            "Calibration error after calibration (CEAC), in thousandths",
            lambda rows: rows["error_after"],
        ),
    )
}
"""The four tables of the paper, and two that it has not."""
