"""The batched solver, against a slow twin, closed forms and general optimisers."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from calibrant.numerics.line_fits import (
    _system,
    fit_lines,
    search_lines,
    spread_apart,
    usual_start,
)
from calibrant.numerics.line_problems import (
    PiecewiseFits,
    PointProblems,
    SquareProblems,
    point_losses,
    values_at,
)
from calibrant.numerics.links import logit
from calibrant.numerics.weighted_points import WeightedPoints

SPACES = [
    (scale, loss) for scale in ("prob", "logit") for loss in ("log-loss", "brier")
]


def batch(x, weight, rate):
    return WeightedPoints(x, weight, weight * rate)


def one_problem(p, y, scale="prob", weight=None):
    x = logit(p) if scale == "logit" else p
    order = np.argsort(x)
    weight = np.ones(p.size) if weight is None else weight
    return batch(x[order], weight[order][np.newaxis], y[order][np.newaxis])


def ends_of(points, scale):
    return (0.0, 1.0) if scale == "prob" else (points.p[0], points.p[-1])


def random_problem(seed, n=300, scale="prob"):
    rng = np.random.default_rng(seed)
    p = np.sort(rng.beta(0.8, 1.1, n))
    bend = rng.uniform(0.2, 0.8)
    c = np.clip(
        np.where(p < bend, p * rng.uniform(0.3, 1.5), p - 0.2 * rng.random()),
        0.02,
        0.98,
    )
    y = (rng.random(n) < c).astype(float)
    return one_problem(p, y, scale)


def slow_loss(points, knots, heights, scale, loss):
    """Mean loss point by point, as the definition says."""
    total = 0.0
    for x, w, y in zip(points.p, points.weight[0], points.rate[0], strict=True):
        f = values_at(np.array([x]), knots, heights)
        total += w * point_losses(f, np.array([y]), scale, loss)[0][0]
    return total / points.weight.sum()


@pytest.mark.parametrize(("scale", "loss"), SPACES)
def test_loss_and_gradient_are_those_of_the_definition(scale, loss):
    points = random_problem(1, n=80, scale=scale)
    low, high = ends_of(points, scale)
    # Off the points: on them the loss has a kink in the knot.
    start = PiecewiseFits(
        low + (high - low) * np.array([[0, 0.3141, 0.6535, 1]]), np.zeros((1, 4))
    )
    rng = np.random.default_rng(0)
    inside = (
        0.2 + 0.6 * rng.random((1, 4)) if scale == "prob" else rng.normal(size=(1, 4))
    )
    lines = PiecewiseFits(start.knots, inside)
    local = PointProblems(points, scale, loss).expand(lines)
    assert_allclose(
        local.value[0], slow_loss(points, lines.knots[0], inside[0], scale, loss)
    )
    gradient, _ = _system(local)
    step = 1e-6
    for i in range(8):
        moved = []
        for sign in (1, -1):
            both = np.concatenate([inside[0], lines.knots[0]])
            both[i] += sign * step
            moved.append(slow_loss(points, both[4:], both[:4], scale, loss))
        slope = (moved[0] - moved[1]) / (2 * step)
        if i not in (4, 7):  # the outer knots stay where they are
            assert_allclose(gradient[0, i], slope, atol=2e-5)


def test_matrix_is_that_of_the_jacobian():
    points = random_problem(2, n=60)
    start = PiecewiseFits(np.array([[0, 0.3141, 0.6535, 1]]), np.zeros((1, 4)))
    heights = np.array([[0.1, 0.5, 0.4, 0.9]])
    local = PointProblems(points, "prob", "brier").expand(
        PiecewiseFits(start.knots, heights)
    )
    _, matrix = _system(local)
    jacobian = []
    for i in range(8):
        both = np.concatenate([heights[0], start.knots[0]])
        both[i] += 1e-7
        ahead = values_at(points.p, both[4:], both[:4])
        jacobian.append(
            (ahead - values_at(points.p, start.knots[0], heights[0])) / 1e-7
        )
    expected = 2 * np.array(jacobian) @ np.array(jacobian).T / 60
    inner = [0, 1, 2, 3, 5, 6]
    assert_allclose(
        matrix[0][np.ix_(inner, inner)], expected[np.ix_(inner, inner)], atol=1e-5
    )


@pytest.mark.parametrize(("scale", "loss"), SPACES)
def test_no_step_goes_up(scale, loss):
    points = random_problem(3, scale=scale)
    start = usual_start(points, 4, ends_of(points, scale))
    values = [
        fit_lines(points, start, scale=scale, loss=loss, max_steps=steps)[1][0]
        for steps in range(1, 25)
    ]
    assert (np.diff(values) <= 1e-15).all()


def test_problems_of_a_batch_do_not_see_each_other():
    rng = np.random.default_rng(4)
    x = np.sort(rng.random(200))
    weight = rng.integers(0, 3, (5, 200)).astype(float)
    label = (rng.random((5, 200)) < x).astype(float)
    together = batch(x, weight, label)
    start = usual_start(together, 3, (0.0, 1.0))
    lines, _ = fit_lines(together, start, scale="prob", loss="log-loss")
    for b in range(5):
        alone = batch(x, weight[b : b + 1], label[b : b + 1])
        one = PiecewiseFits(start.knots[b : b + 1], start.heights[b : b + 1])
        fitted, _ = fit_lines(alone, one, scale="prob", loss="log-loss")
        assert_allclose(fitted.heights[0], lines.heights[b], atol=1e-9)


def test_one_piece_between_logits_is_logistic_regression():
    points = random_problem(5, n=400, scale="logit")
    start = usual_start(points, 1, ends_of(points, "logit"))
    lines, _ = fit_lines(points, start, scale="logit", loss="log-loss", max_steps=200)
    model = LogisticRegression(C=np.inf, tol=1e-10).fit(
        points.p[:, np.newaxis], points.rate[0]
    )
    expected = model.predict_proba(points.p[:, np.newaxis])[:, 1]
    found = expit(values_at(points.p, lines.knots[0], lines.heights[0]))
    assert_allclose(found, expected, atol=1e-4)


def test_one_piece_under_brier_is_least_squares_within_zero_and_one():
    rng = np.random.default_rng(6)
    p = rng.random(300)
    y = (rng.random(300) < 0.2 + 0.5 * p).astype(float)
    points = one_problem(p, y)
    lines, _ = fit_lines(
        points, usual_start(points, 1, (0, 1)), scale="prob", loss="brier"
    )
    slope, intercept = np.polyfit(p, y, deg=1)
    assert_allclose(lines.heights[0], [intercept, intercept + slope], atol=1e-6)


@pytest.mark.parametrize(("scale", "loss"), SPACES)
def test_identity_is_a_fixed_point_on_expected_labels(scale, loss):
    p = np.linspace(0.01, 0.99, 200)
    points = one_problem(p, p, scale)
    lines, _ = fit_lines(
        points,
        usual_start(points, 3, ends_of(points, scale)),
        scale=scale,
        loss=loss,
    )
    assert_allclose(lines.heights, lines.knots, atol=1e-6)


def general_optimum(points, pieces, scale, loss, rng, starts=4):
    """Return the least loss that scipy finds from random starts, knots by softmax."""
    low, high = ends_of(points, scale)

    def objective(theta):
        widths = np.exp(theta[:pieces] - theta[:pieces].max())
        knots = low + (high - low) * np.concatenate(
            [[0], np.cumsum(widths / widths.sum())]
        )
        if (np.diff(knots) < 1e-3 * (high - low)).any():
            return 10.0
        heights = theta[pieces:] if scale == "logit" else expit(theta[pieces:])
        f = values_at(points.p, knots, heights)
        return float(
            np.average(
                point_losses(f, points.rate[0], scale, loss)[0],
                weights=points.weight[0],
            )
        )

    best = np.inf
    for _ in range(starts):
        theta = np.concatenate([rng.normal(0, 1, pieces), rng.normal(0, 1, pieces + 1)])
        best = min(best, minimize(objective, theta, method="L-BFGS-B").fun)
    return best


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "loss"), SPACES)
def test_loss_is_that_of_a_general_optimiser(scale, loss):
    """Never worse by more than 0.1 % in 95 % of the sets (here: in all but one)."""
    rng = np.random.default_rng(7)
    worse = 0
    for seed in range(9):
        pieces = 2 + seed % 3
        points = random_problem(seed, n=150, scale=scale)
        found = search_lines(
            points, pieces, ends_of(points, scale), scale=scale, loss=loss
        )[1][0]
        worse += found > 1.001 * general_optimum(points, pieces, scale, loss, rng)
    assert worse <= 1


def test_monotone_heights_do_not_fall_and_are_optimal():
    rng = np.random.default_rng(8)
    p = np.sort(rng.random(400))
    y = (rng.random(400) < 0.5 + 0.3 * np.sin(7 * p)).astype(float)
    points = one_problem(p, y)
    start = usual_start(points, 4, (0.0, 1.0))
    lines, value = fit_lines(points, start, scale="prob", loss="brier", monotone=True)
    free = fit_lines(points, start, scale="prob", loss="brier")[1]
    assert (np.diff(lines.heights) >= 0).all()
    assert (
        np.diff(fit_lines(points, start, scale="prob", loss="brier")[0].heights) < 0
    ).any()
    assert value > free
    constraints = [{"type": "ineq", "fun": np.diff}]

    def brier(heights):
        return np.mean((values_at(p, lines.knots[0], heights) - y) ** 2)

    best = minimize(
        brier, lines.heights[0], constraints=constraints, bounds=[(0, 1)] * 5
    )
    assert value[0] <= best.fun + 1e-5


@pytest.mark.parametrize("weight", [(1, 1, 1), (9, 10, 11), (11, 10, 9), (1, 8, 1)])
@pytest.mark.parametrize("loss", ["log-loss", "brier"])
def test_three_pieces_meet_three_levels_of_any_weight(weight, loss):
    p, rates = np.array([0.2, 0.5, 0.8]), np.array([[0.02, 0.5, 0.98]])
    points = batch(p, np.array([weight], dtype=float), rates)
    start = usual_start(points, 3, (0.0, 1.0))
    lines, _ = fit_lines(points, start, scale="prob", loss=loss)
    assert_allclose(values_at(p, lines.knots[0], lines.heights[0]), rates[0], atol=5e-3)


def test_crowded_knots_are_spread():
    knots = np.array([[0.0, 0.5, 0.5, 0.5, 1.0], [0.0, 1.0, 1.0, 1.0, 1.0]])
    spread = spread_apart(knots, 0.1)
    assert (np.diff(spread) >= 0.1 - 1e-12).all()
    assert_allclose(spread[:, [0, -1]], [[0, 1], [0, 1]])


def test_running_sums_give_what_points_give():
    rng = np.random.default_rng(9)
    x = np.sort(rng.random(300))
    points = batch(x, rng.integers(0, 3, (4, 300)) + 0.5, rng.random((4, 300)))
    knots = np.sort(rng.random((4, 6)), axis=1)
    knots[:, 0], knots[:, -1] = 0.0, 1.0
    lines = PiecewiseFits(knots, rng.random((4, 6)))
    slow = PointProblems(points, "prob", "brier").expand(lines)
    fast = SquareProblems.of(points).expand(lines)
    assert_allclose(fast.value, slow.value)
    assert_allclose(fast.sums, slow.sums, atol=1e-10)
