import json
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from calibrant.numerics.random_effects import pool

GOLDEN = Path(__file__).parents[1] / "golden" / "summary.json"


def test_pooled_values_are_those_of_metafor():
    r = json.loads(GOLDEN.read_text(encoding="utf-8"))["pooled"]
    found = pool(np.array(r["values"]), np.array(r["errors"]), 0.95)
    np.testing.assert_allclose(astuple(found), r["results"], atol=1e-9)


def test_centres_that_agree_have_no_variance_between_them():
    found = pool(np.array([1.0, 1.01, 0.99]), np.full(3, 0.2), 0.95)
    assert found.tau == 0.0
    assert found.prediction_low < found.low
    assert found.prediction_high > found.high


def test_two_centres_do_not_say_where_a_third_may_lie():
    found = pool(np.array([0.8, 1.3]), np.full(2, 0.2), 0.95)
    assert found.low < 1.05 < found.high
    assert np.isnan([found.prediction_low, found.prediction_high]).all()


def test_intervals_cover_the_mean_and_new_centres():
    """400 meta-analyses of 8 centres that vary by 0.3 around 1."""
    rng = np.random.default_rng(0)
    inside = np.zeros(2)
    for _ in range(400):
        errors = rng.uniform(0.1, 0.3, 8)
        true = rng.normal(1.0, 0.3, 9)
        found = pool(rng.normal(true[:8], errors), errors, 0.95)
        inside += [
            found.low <= 1.0 <= found.high,
            found.prediction_low <= true[8] <= found.prediction_high,
        ]
    # The prediction interval takes the variance between centres as known.
    assert inside[0] / 400 == pytest.approx(0.95, abs=0.03)
    assert inside[1] / 400 == pytest.approx(0.92, abs=0.03)
