"""Weights of pooled predictions are those of the smallest log-loss."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit

from calibrant.numerics.pooling import (
    PENALTY,
    RepairedRows,
    brier_scores,
    log_losses,
)


def rows(seed=0, n=300, k=3, maps=3):
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 1, (n, k))
    moves = tuple(rng.normal(0, 0.3, (n, k)) for _ in range(maps))
    target = np.eye(k)[rng.integers(0, k, n)]
    return RepairedRows(scores, moves, target, rng.integers(1, 4, n).astype(float))


def penalised(some, weights):
    loss = some.weight @ log_losses(some.pooled(weights), some.target)
    return loss + PENALTY * np.sum((weights - [1, 0, 0]) ** 2)


@pytest.mark.parametrize("k", [2, 3])
def test_weights_are_those_of_a_general_optimiser(k):
    for seed in range(5):
        some = rows(seed, k=k)

        def loss(free, some=some):
            shares = np.exp(np.append(free, 0.0))
            weights = shares / shares.sum()
            return penalised(some, weights)

        best = min(
            (minimize(loss, start, method="Nelder-Mead").fun
             for start in (np.zeros(2), np.full(2, -3.0), np.array([3.0, -3]))),
        )  # fmt: skip
        assert penalised(some, some.best_weights()) <= best * (1 + 1e-4)


def test_a_map_that_knows_the_labels_gets_all_the_weight():
    some = rows()
    moves = (some.moves[0], 9.0 * some.target)
    weights = RepairedRows(some.scores, moves, some.target, some.weight).best_weights()
    assert_allclose(weights, [0.0, 1.0], atol=0.1)


@pytest.mark.parametrize("penalty", [2.0, 2000.0])
def test_predictions_may_keep_some_of_the_weight(penalty):
    """Both maps go twice as far as they should; weights near (1, 0) cost less."""
    rng = np.random.default_rng(0)
    logit = rng.normal(0.0, 1.5, 2000)
    target = np.eye(2)[(rng.random(2000) < expit(0.7 * logit)).astype(int)]
    scores = np.column_stack([np.zeros(2000), logit])
    moves = tuple(np.column_stack([np.zeros(2000), m * logit]) for m in (-0.6, -0.5))
    given = scores, moves, target, np.ones(2000), penalty
    weights = RepairedRows(*given, partly=True).best_weights()
    assert RepairedRows(*given).best_weights().sum() == pytest.approx(1.0)

    def loss(one, other):
        some = RepairedRows(*given)
        fit = log_losses(some.pooled([one, other]), target).sum()
        rest = 1.0 - one - other
        return fit + penalty * ((1.0 - one) ** 2 + other**2 + rest**2)

    steps = np.linspace(0.0, 1.0, 41)
    grid = [(a, b) for a in steps for b in steps if a + b <= 1.0]
    best = min(grid, key=lambda pair: loss(*pair))
    assert_allclose(weights, best, atol=0.03)
    assert (weights.sum() < 0.7) == (penalty == 2.0)


def test_scores_are_those_of_their_definition():
    log_prob, target = np.log([[0.7, 0.2, 0.1]]), np.array([[0.0, 1.0, 0.0]])
    assert_allclose(log_losses(log_prob, target), -np.log(0.2))
    assert_allclose(brier_scores(log_prob, target), 0.49 + 0.64 + 0.01)


def test_many_rows_do_not_end_the_search_early():
    rng = np.random.default_rng(0)
    n = 300_000
    logit = rng.normal(0.0, 1.5, n)
    target = np.eye(2)[(rng.random(n) < expit(0.8 * logit)).astype(int)]
    scores = np.column_stack([np.zeros(n), logit])
    moves = [np.column_stack([np.zeros(n), m * logit]) for m in (-0.2, -0.21)]
    some = RepairedRows(scores, tuple(moves), target, np.ones(n))
    grid = np.linspace(0.0, 1.0, 21)
    losses = [
        n * log_losses(some.pooled([w, 1.0 - w]), target).mean()
        + 2.0 * PENALTY * (1.0 - w) ** 2
        for w in grid
    ]
    assert some.best_weights()[0] == pytest.approx(grid[np.argmin(losses)], abs=0.05)
