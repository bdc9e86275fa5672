"""Bundled predictions of real classifiers, for examples and tests.

Five classifiers were trained on the handwritten digits that scikit-learn ships; each
row was predicted by a model that had not seen it (10-fold cross-validation). The
script that made the files is ``examples/make_datasets.py``.
"""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibrant.core.parameters import check_choice

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector

__all__ = [
    "BINARY_FILE",
    "CLASSIFIERS",
    "MULTICLASS_FILE",
    "load_binary",
    "load_multiclass",
]

FOLDER = Path(__file__).parent / "data"
BINARY_FILE = FOLDER / "digits_even.csv"
MULTICLASS_FILE = FOLDER / "digits.csv.gz"
CLASSIFIERS = ("logistic", "forest", "bayes", "boosting", "network")


def load_binary(classifier: str) -> tuple[FloatVector, IntVector]:
    """Load predicted probabilities that a digit is even, and whether it is.

    Parameters
    ----------
    classifier : {"logistic", "forest", "bayes", "boosting", "network"}
        Whose predictions.

    Returns
    -------
    p : ndarray of shape (1797,)
        Predicted probability that the digit is even.
    y : ndarray of shape (1797,)
        1 where it is, 0 where not.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> p.shape, round(float(y.mean()), 3)
    ((1797,), 0.496)
    """
    check_choice(classifier, CLASSIFIERS, name="classifier")
    columns = _columns(BINARY_FILE)
    return columns[classifier], columns["even"].astype(np.intp)


def load_multiclass(classifier: str) -> tuple[FloatMatrix, IntVector]:
    """Load predicted probabilities of the ten digits, and the digit.

    Parameters
    ----------
    classifier : {"logistic", "forest", "bayes", "boosting", "network"}
        Whose predictions.

    Returns
    -------
    prob : ndarray of shape (1797, 10)
        Predicted probability of each digit.
    y : ndarray of shape (1797,)
        The digit.

    Examples
    --------
    >>> import calibrant as cb
    >>> prob, y = cb.datasets.load_multiclass("bayes")
    >>> prob.shape
    (1797, 10)
    """
    check_choice(classifier, CLASSIFIERS, name="classifier")
    columns = _columns(MULTICLASS_FILE)
    digits = [columns[f"{classifier}_{digit}"] for digit in range(10)]
    return np.stack(digits, axis=1), columns["digit"].astype(np.intp)


def _columns(path: Path) -> dict[str, FloatVector]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="ascii", newline="") as file:
        rows = list(csv.reader(file))
    table = np.ascontiguousarray(np.array(rows[1:], dtype=np.float64).T)
    return dict(zip(rows[0], table, strict=True))
