"""Tests of calibration with clusters: closed forms, copies of rows and error rates."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp
from tests.numerics.test_cluster_dependence import copies, correlated

from calibrant.core.sample import BinarySample
from calibrant.numerics.clustered_test import cluster_t, smooth_p_value


def test_t_of_clusters_is_students():
    rng = np.random.default_rng(0)
    scores, code = rng.standard_normal(60), rng.integers(0, 12, 60)
    reference = ttest_1samp(np.bincount(code, scores, minlength=12), 0.0)
    assert cluster_t(scores, code) == pytest.approx(
        (reference.statistic, reference.pvalue)
    )


def test_copies_of_rows_are_no_more_evidence():
    once, many = copies(400, 5)
    plain, clustered = smooth_p_value(once).outcome, smooth_p_value(many).outcome
    assert np.log(clustered.pvalue) == pytest.approx(np.log(plain.pvalue), rel=0.1)


@pytest.mark.parametrize("constant", [True, False])
def test_calibrated_predictions_are_rarely_rejected(constant):
    samples = [correlated(40, 10, 0.5, k, constant=constant) for k in range(200)]
    found = [smooth_p_value(sample).rejects(0.05) for sample in samples]
    naive = [smooth_p_value(BinarySample(s.p, s.y)).rejects(0.05) for s in samples]
    assert np.mean(found) <= 0.09
    assert np.mean(naive) >= 0.15


def test_a_shift_is_found():
    sample = correlated(100, 10, 0.2, seed=5)
    shifted = BinarySample(sample.p**2, sample.y, clusters=sample.clusters)
    assert smooth_p_value(shifted).outcome.pvalue < 1e-4
