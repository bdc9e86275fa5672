import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.interpolate import CubicSpline

import calibrant as cb
from calibrant.experiments.synthetic import sample as paper_sample
from calibrant.numerics.cumulative_splines import slopes_of_splines

RUNOUTS = ("natural", "parabolic", "cubic")


def second_derivatives(knots, heights, runout):
    """Solve the textbook equations for the second derivatives at equidistant knots."""
    k, step = knots.size, knots[1] - knots[0]
    left, right = np.zeros((k, k)), np.zeros(k)
    for i in range(1, k - 1):
        left[i, i - 1 : i + 2] = [1, 4, 1]
        right[i] = 6 / step**2 * (heights[i - 1] - 2 * heights[i] + heights[i + 1])
    ends = {"natural": [1, 0, 0], "parabolic": [1, -1, 0], "cubic": [1, -2, 1]}[runout]
    left[0, :3], left[-1, -3:] = ends, ends[::-1]
    return np.linalg.solve(left, right)


def direct(p, y, knots, runout):
    """Fit the curve at all rows by least squares, and take the slope at each."""
    n = p.size
    x, at = np.linspace(0, 1, n), np.linspace(0, 1, knots)
    step = at[1]
    piece = np.minimum((x / step).astype(int), knots - 2)
    u = (x - at[piece]) / step
    columns, slopes = [], []
    for unit in np.eye(knots):
        m = second_derivatives(at, unit, runout)
        m0, m1, h0, h1 = m[piece], m[piece + 1], unit[piece], unit[piece + 1]
        columns.append(
            (1 - u) * h0
            + u * h1
            + step**2 / 6 * (((1 - u) ** 3 - (1 - u)) * m0 + (u**3 - u) * m1)
        )
        slopes.append(
            (h1 - h0) / step
            + step / 6 * ((1 - 3 * (1 - u) ** 2) * m0 + (3 * u**2 - 1) * m1)
        )
    curve = np.cumsum(y - p) / n
    heights = np.linalg.lstsq(np.array(columns).T, curve, rcond=None)[0]
    return p + heights @ np.array(slopes)


@pytest.mark.parametrize("runout", RUNOUTS)
@pytest.mark.parametrize("knots", [4, 6, 11])
def test_the_fit_is_that_of_the_direct_definition(runout, knots):
    p, y, _ = paper_sample("stairs", 0.05, 3000, seed=1)
    expected = direct(p, y, knots, runout)
    slopes = slopes_of_splines(np.ones((1, 3000)), (y - p)[np.newaxis], knots, runout)
    # Rows are steps of width 1/n here and points there.
    assert_allclose(p + slopes[0], expected, atol=1e-3)
    map_ = cb.make_calibrator(f"spline-{runout}", knots=knots, ensemble="refit")
    found = map_.fit(p, y).transform(p)
    assert np.abs(found - np.clip(expected, 0, 1)).mean() < 1e-3


def test_the_nearest_spline_is_that_of_a_fine_integral():
    rng = np.random.default_rng(0)
    weight, rise = rng.random((1, 9)), rng.normal(size=(1, 9))
    share = weight[0] / weight.sum()
    corners = np.append(0, np.cumsum(share))
    curve = np.append(0, np.cumsum(rise[0])) / weight.sum()
    x = (np.arange(200_000) + 0.5) / 200_000
    at = np.linspace(0, 1, 5)
    units = CubicSpline(at, np.eye(5), bc_type="natural")
    heights = np.linalg.lstsq(units(x), np.interp(x, corners, curve), rcond=None)[0]
    spline = CubicSpline(at, heights, bc_type="natural")
    expected = np.diff(spline(corners)) / share
    found = slopes_of_splines(weight, rise, 5, "natural")[0]
    assert_allclose(found, expected, atol=1e-7)


@pytest.mark.parametrize("runout", RUNOUTS)
def test_cross_validation_takes_more_knots_for_a_harder_map(runout):
    method = f"spline-{runout}"
    fits = {
        shape: cb.make_calibrator(method).fit(*paper_sample(shape, e, 10_000, 0)[:2])
        for shape, e in (("square", 0.0), ("stairs", 0.1))
    }
    easy, hard = (fits[shape].fit_ for shape in ("square", "stairs"))
    assert easy.n_pieces < hard.n_pieces
    assert hard.losses.size == 17 - {"natural": 2, "parabolic": 3, "cubic": 4}[runout]


def test_folds_and_refit_differ_little(smooth_sample):
    p, y = smooth_sample
    folds, refit = (
        cb.make_calibrator("spline-natural", knots=4, ensemble=ensemble).fit(p, y)
        for ensemble in ("folds", "refit")
    )
    gap = np.abs(folds.transform(p) - refit.transform(p)).max()
    assert 0 < gap < 0.01


def test_few_values_keep_their_shares_of_positives():
    p = np.repeat([0.2, 0.7], 50)
    y = np.arange(100) % 5 == 0
    y[50:] = np.arange(50) % 2 == 0
    assert_allclose(
        cb.make_calibrator("spline-cubic").fit(p, y).transform([0.1, 0.2, 0.7, 1]),
        [0.2, 0.2, 0.5, 0.5],
    )


@pytest.mark.parametrize("runout", RUNOUTS)
@pytest.mark.parametrize("slope", [0.2, 2.5])
def test_few_rows_whose_map_is_no_shift_are_not_taken_for_calibrated(runout, slope):
    rng = np.random.default_rng(4)
    found, truth = [], []
    for _ in range(12):
        p = rng.random(120)
        c = np.clip(slope * (p - 0.5) + 0.5, 0.0, 1.0)
        y = rng.random(p.size) < c
        found.append(cb.calibration_error(y, p, method=f"spline-{runout}"))
        truth.append(np.abs(c - p).mean())
    assert_allclose(np.mean(found), np.mean(truth), rtol=0.25)
