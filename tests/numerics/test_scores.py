import numpy as np
from numpy.testing import assert_allclose
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as sklearn_log_loss

from calibrant.numerics.links import logit
from calibrant.numerics.scores import brier_score, count_quantiles, log_loss


def test_scores_are_scikit_learns(sample):
    p, y = sample
    weight = np.arange(p.size) % 4 + 1.0
    assert_allclose(
        brier_score(p, y, weight), brier_score_loss(y, p, sample_weight=weight)
    )
    expected = sklearn_log_loss(y, p, sample_weight=weight)
    assert_allclose(log_loss(p, y, weight), expected, rtol=1e-9)


def test_logit_of_zero_and_one_is_finite():
    assert_allclose(logit(np.array([0.0, 1.0])), [-36.0437, 36.0437], rtol=1e-4)


def test_rows_that_count_less_than_one_give_quantiles_within_the_values():
    values, weight = np.array([[0.1], [0.5]]), np.array([0.2, 0.3])
    found = count_quantiles(values, weight, (0.5, 1.0))[:, 0]
    assert found.tolist() == [0.1, 0.5]
