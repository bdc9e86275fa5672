"""The exchange of knots, against least squares written out."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calibrant.numerics.global_knots import (
    fitted_values,
    fold_knots,
    node_heights,
    search_knots,
    truncated_powers,
)
from calibrant.numerics.knot_exchange import (
    KnotProblems,
    _Eliminated,
    exchange,
    insert,
)
from calibrant.numerics.weighted_points import WeightedPoints


def random_points(problems=1, m=60, seed=0):
    rng = np.random.default_rng(seed)
    x = np.sort(rng.random(m))
    y = (rng.random((problems, m)) < x**1.5).astype(float)
    weight = rng.integers(1, 4, (problems, m)).astype(float)
    return WeightedPoints(x, weight, weight * y)


def slow_fit(points, knots, degree, problem=0):
    """Fitted values and mean squared error of one problem, from the definition."""
    design = truncated_powers(points.p, points.p[knots], degree)
    root = np.sqrt(points.share[problem])
    target = root * points.rate[problem]
    weights = np.linalg.lstsq(design * root[:, np.newaxis], target, rcond=None)[0]
    values = design @ weights
    return values, (points.share[problem] * (values - points.rate[problem]) ** 2).sum()


@pytest.mark.parametrize("degree", [1, 2])
@pytest.mark.parametrize("offsets", [(0,), (0, 1), (0, 3), (0, 2, 4)])
def test_gain_of_further_knots_is_that_of_a_new_fit(degree, offsets):
    points = random_points()
    problems = KnotProblems.of(points, degree)
    base = _Eliminated.of(problems, np.array([[20, 41]]))
    gain = base.gain(offsets)[0]
    _, left = slow_fit(points, [20, 41], degree)
    assert_allclose(base.left, left, rtol=1e-10)
    for place in range(1, points.p.size - offsets[-1] - 3):
        further = [place + o for o in offsets]
        if not {20, 41} & set(further):
            _, after = slow_fit(points, [20, 41, *further], degree)
            assert_allclose(gain[place], left - after, atol=1e-5)


@pytest.mark.parametrize("degree", [1, 2])
def test_no_exchange_goes_up_and_the_loss_is_that_of_the_knots(degree):
    points = random_points(problems=4)
    problems = KnotProblems.of(points, degree)
    start = np.array([[5, 20, 40], [3, 4, 5], [10, 30, 55], [0, 1, 59]])
    before = _Eliminated.of(problems, start).left
    knots, loss = exchange(problems, start)
    jumped, jumped_loss = exchange(problems, knots, together=2)
    assert (loss <= before + 1e-9).all()
    assert (jumped_loss <= loss + 1e-9).all()
    for b in range(4):
        assert_allclose(jumped_loss[b], slow_fit(points, jumped[b], degree, b)[1])
        assert_allclose(
            fitted_values(problems, jumped)[b],
            slow_fit(points, jumped[b], degree, b)[0],
            atol=1e-7,
        )


def test_after_an_exchange_no_single_knot_can_do_better():
    points = random_points()
    problems = KnotProblems.of(points, 1)
    knots, loss = exchange(problems, np.array([[15, 30, 45]]))
    for j in range(3):
        for place in range(points.p.size):
            other = knots[0].copy()
            other[j] = place
            assert slow_fit(points, other, 1)[1] >= loss[0] - 1e-9


def test_problems_of_a_batch_do_not_see_each_other():
    points = random_points(problems=3)
    together = list(fold_knots(KnotProblems.of(points, 1), 4))[-1]
    for b in range(3):
        alone = points.take([b])
        assert np.array_equal(
            list(fold_knots(KnotProblems.of(alone, 1), 4))[-1][0], together[b]
        )


def test_inserting_the_best_knot_beats_all_other_places():
    points = random_points()
    knots = insert(KnotProblems.of(points, 1), np.zeros((1, 0), dtype=np.intp))
    best = min(slow_fit(points, [place], 1)[1] for place in range(points.p.size))
    assert_allclose(slow_fit(points, knots[0], 1)[1], best)


@pytest.mark.parametrize("degree", [1, 2])
def test_knots_of_a_function_without_noise_are_found(degree):
    x = np.linspace(0.0, 1.0, 80)
    true = np.array([0.2468, 0.6123])
    weights = np.array([0.2, 0.5, *[0.3] * (degree - 1), *[-1.0, 0.7] * degree])
    y = truncated_powers(x, true, degree) @ weights
    points = WeightedPoints(x, np.ones((1, 80)), y[np.newaxis])
    rng = np.random.default_rng(0)
    found = search_knots(points, 3, degree=degree, starts=8, rng=rng)
    assert_allclose(found, true, atol=1e-4)
    nodes, heights = node_heights(points, true, degree=degree)
    assert_allclose(heights, truncated_powers(nodes, true, degree) @ weights)
