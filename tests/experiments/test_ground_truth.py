"""The true map of a hold-out, and how sure it is."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from calibrant.exceptions import SourceError
from calibrant.experiments.ground_truth import GroundTruth, Parts, agreement
from calibrant.experiments.predictions import Outcomes


@pytest.fixture(scope="module")
def outcomes():
    rng = np.random.default_rng(0)
    p = rng.beta(0.5, 1.0, 20_000)
    return Outcomes(p, (rng.random(p.size) < p**1.5).astype(float), p**1.5)


def test_parts_share_no_row_and_leave_none_out():
    parts = Parts.of(1001)
    together = np.concatenate([parts.drawn, parts.fitted, parts.measured])
    np.testing.assert_array_equal(np.sort(together), np.arange(1001))


def test_samples_of_one_size_share_no_row():
    parts = Parts.of(2000)
    samples = [parts.sample(50, seed) for seed in range(6)]
    rows = np.concatenate(samples)
    assert np.unique(rows).size == 300
    assert np.isin(rows, parts.drawn).all()
    with pytest.raises(SourceError, match=r"300 of its rows .* 6 samples of 50 rows"):
        parts.sample(50, 6)


def test_three_estimates_against_their_definitions(outcomes):
    truth = GroundTruth.of(outcomes)
    at = truth.at(outcomes.p)
    sklearn = IsotonicRegression(y_min=0, y_max=1).fit(outcomes.p, outcomes.y)
    np.testing.assert_allclose(at["isotonic"], sklearn.predict(outcomes.p), atol=1e-12)
    order = np.argsort(outcomes.p)
    for rows in np.array_split(order, 100):
        share = outcomes.y[rows].mean()
        np.testing.assert_allclose(at["flat"][rows], share, rtol=1e-12)
        tilted = outcomes.p[rows] + share - outcomes.p[rows].mean()
        np.testing.assert_allclose(at["slope"][rows], tilted, atol=1e-12)
    np.testing.assert_allclose(at["exact"], outcomes.exact, atol=1e-12)  # it rises


def test_labels_agree_with_exact_probabilities_as_n_implies(outcomes):
    found = agreement(outcomes)
    # the sum of k squared standard normal numbers: mean k, variance 2 k
    k = found.scores.size
    assert k > 60
    assert abs((found.scores**2).sum() - k) < 4.0 * np.sqrt(2.0 * k)
    wrong = Outcomes(outcomes.p, outcomes.y, np.clip(outcomes.exact + 0.05, 0.0, 1.0))
    assert (agreement(wrong).scores ** 2).sum() > 200.0
    with pytest.raises(SourceError, match="not known"):
        agreement(Outcomes(outcomes.p, outcomes.y))
