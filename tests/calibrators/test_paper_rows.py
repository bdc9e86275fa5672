"""Platt, beta and isotonic on the paper's synthetic data, row by row."""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.experiments.synthetic import mixing_amount, predictions, sample

ROWS = json.loads(
    (Path(__file__).parents[1] / "golden" / "paper_rows.json").read_text()
)
# betacal leaves its solver at a gradient of 1e-4.
CLOSE = {"platt": 2e-9, "isotonic": 2e-9, "beta": 2e-4}
PARAMS = {"platt": {"smoothing": True}}


@cache
def million_points():
    """The truth at the paper's million test rows, which all data sets share."""
    return sample("square", 0.0, 1_000_000, 0)[2]


def fitted(row):
    p, y, _ = sample(row["shape"], row["error"], row["n"], row["seed"])
    params = PARAMS.get(row["method"], {})
    return p, cb.make_calibrator(row["method"], **params).fit(p, y).map_


@pytest.mark.parametrize("method", CLOSE)
def test_errors_are_those_of_the_paper_s_code(method):
    rows = [row for row in ROWS if row["method"] == method]
    assert len(rows) == 18
    for row in rows:
        p, map_ = fitted(row)
        gap = np.abs(map_(p) - p)
        found = [gap.mean(), (gap**2).mean()]
        assert_allclose(found, [row["ece"], row["ece_sq"]], rtol=0, atol=CLOSE[method])


@pytest.mark.parametrize("method", CLOSE)
def test_maps_are_as_far_from_the_truth_as_the_paper_s(method):
    for row in [row for row in ROWS if row["method"] == method][::7]:
        _, map_ = fitted(row)
        c = million_points()
        p = predictions(row["shape"], mixing_amount(row["shape"], row["error"]), c)
        found = np.abs(map_(p) - c).mean()
        assert_allclose(found, row["map_error"], rtol=0, atol=CLOSE[method])
