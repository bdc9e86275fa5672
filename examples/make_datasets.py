"""Make the bundled predictions: five classifiers on scikit-learn's digits.

Run from the root of the project: ``python examples/make_datasets.py``.
"""

from __future__ import annotations

import csv
import gzip
import io
from typing import TYPE_CHECKING

import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import BernoulliNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calibrant.datasets import BINARY_FILE, CLASSIFIERS, MULTICLASS_FILE

if TYPE_CHECKING:
    from pathlib import Path

DIGITS_KEPT = 5
"""Rounding keeps the files small and puts some predictions at exactly 0 or 1."""


def classifiers() -> dict[str, object]:
    """Return the five classifiers by column name."""
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=2000))
    network = make_pipeline(
        StandardScaler(), MLPClassifier((32,), max_iter=400, random_state=0)
    )
    models = {
        "logistic": logistic,
        "forest": RandomForestClassifier(200, random_state=0),
        "bayes": BernoulliNB(binarize=8),  # pixels run from 0 to 16
        "boosting": HistGradientBoostingClassifier(random_state=0),
        "network": network,
    }
    return {name: models[name] for name in CLASSIFIERS}


def unseen_probabilities(
    pixels: np.ndarray, target: np.ndarray
) -> dict[str, np.ndarray]:
    """Return each classifier's probabilities for held-out rows."""
    folds = StratifiedKFold(10, shuffle=True, random_state=0)
    return {
        name: cross_val_predict(model, pixels, target, cv=folds, method="predict_proba")
        for name, model in classifiers().items()
    }


def write_csv(path: Path, columns: dict[str, np.ndarray]) -> None:
    """Write columns as CSV, compressed if the name ends with .gz."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow([f"{value:.{DIGITS_KEPT}g}" for value in row])
    content = text.getvalue().encode("ascii")
    if path.suffix == ".gz":
        content = gzip.compress(content, mtime=0)  # the same bytes on every run
    path.write_bytes(content)


def main() -> None:
    """Train the classifiers and write their predictions."""
    pixels, digit = load_digits(return_X_y=True)
    even = (digit % 2 == 0).astype(int)
    binary = {"even": even}
    for name, prob in unseen_probabilities(pixels, even).items():
        binary[name] = np.round(prob[:, 1], DIGITS_KEPT)
    write_csv(BINARY_FILE, binary)

    multiclass = {"digit": digit}
    for name, prob in unseen_probabilities(pixels, digit).items():
        for column in range(10):
            multiclass[f"{name}_{column}"] = np.round(prob[:, column], DIGITS_KEPT)
    write_csv(MULTICLASS_FILE, multiclass)
    for path in (BINARY_FILE, MULTICLASS_FILE):
        print(f"{path}: {path.stat().st_size / 1024:.0f} KB")


if __name__ == "__main__":
    main()
