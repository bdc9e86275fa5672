"""The scorer of the guide gives the right numbers in scikit-learn's searches."""

import re
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_predict, cross_validate

import calibrant as cb

GUIDE = Path(__file__).parents[1] / "docs" / "guides" / "ml_engineer.md"
FOLDS = StratifiedKFold(3)


@pytest.fixture(scope="module")
def error():
    """The function that the guide passes as a scorer."""
    text = GUIDE.read_text(encoding="utf-8")
    code = re.search(r">>> (def error.*\n(?:\.\.\. .*\n)+)", text)
    names = {"cb": cb}
    exec(code[1].replace("\n... ", "\n"), names)  # noqa: S102
    return names["error"]


@pytest.fixture(scope="module")
def rows():
    return make_classification(900, weights=[0.8], flip_y=0.1, random_state=0)


LABELS = [(0, 1), ("stayed", "churned"), ("alive", "churned")]
"""The label of other rows, and that of the event: once first, else last when sorted."""


@pytest.mark.parametrize("labels", LABELS, ids=str)
@pytest.mark.parametrize("names", [["error"], ["error", "loss"], ["loss", "error"]])
def test_scores_are_those_of_held_out_predictions(error, rows, labels, names):
    X, y = rows
    word = np.array(labels)[y]
    scorers = {"error": error, "loss": "neg_log_loss"}
    scores = cross_validate(
        LogisticRegression(),
        X,
        word,
        scoring={name: scorers[name] for name in names},
        cv=FOLDS,
        error_score="raise",
    )
    p = cross_val_predict(LogisticRegression(), X, y, cv=FOLDS, method="predict_proba")[
        :, 1
    ]
    for fold, (_, test) in enumerate(FOLDS.split(X, y)):
        expected = cb.calibration_error(y[test], p[test])
        assert_allclose(scores["test_error"][fold], -expected, rtol=0.02)
        if "loss" in names:
            loss = -np.log(np.where(y[test] == 1, p[test], 1.0 - p[test])).mean()
            assert_allclose(scores["test_loss"][fold], -loss)
