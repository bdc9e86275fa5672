from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from scipy.stats import rankdata

from calibrant.numerics.smooth_terms import (
    CurvatureBasis,
    interpolate_rows,
    rank_scale,
    spaced_knots,
)

KNOTS = np.array([-3.0, -1.0, -0.8, 0.1, 2.0, 6.5])


def test_the_basis_is_of_natural_splines():
    basis = CurvatureBasis.over(KNOTS)
    x = np.linspace(-3.0, 6.5, 200)
    scipy = CubicSpline(KNOTS, basis.heights, bc_type="natural")
    assert_allclose(basis.at(x), scipy(x), atol=1e-12)
    assert_allclose(basis.slopes, scipy(KNOTS, 1), atol=1e-12)
    assert basis.heights.shape == (6, 4)


def test_squares_of_coefficients_are_the_curvature():
    basis = CurvatureBasis.over(KNOTS)
    coefficients = np.array([1.0, -2.0, 0.5, 3.0])
    spline = CubicSpline(KNOTS, basis.heights @ coefficients, bc_type="natural")
    bent = sum(quad(lambda x: spline(x, 2) ** 2, a, b)[0] for a, b in pairwise(KNOTS))
    assert_allclose(bent, coefficients @ coefficients)


def test_no_spline_of_the_basis_has_a_straight_part():
    heights = CurvatureBasis.over(KNOTS).heights
    assert_allclose(heights.sum(axis=0), 0, atol=1e-12)
    assert_allclose(KNOTS @ heights, 0, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2])
def test_too_few_knots_have_nothing_bent(size):
    basis = CurvatureBasis.over(np.arange(size, dtype=float))
    assert basis.at(np.zeros(7)).shape == (7, 0)


def test_knots_are_quantiles_and_keep_apart():
    x = np.linspace(0, 1, 1001)
    even = spaced_knots(x, np.ones(1001), 5)
    assert_allclose(even, [0, 0.25, 0.5, 0.75, 1], atol=1e-3)
    crowd = np.concatenate([[0.0], 0.5 + 1e-9 * np.arange(50), [1 - 1e-9, 1.0]])
    assert_allclose(spaced_knots(crowd, np.ones(53), 20), [0, 0.5, 1], atol=1e-6)
    assert spaced_knots(np.array([0.3]), np.ones(1), 20).tolist() == [0.3]


def test_ranks_are_mid_ranks_whatever_the_scale():
    x = np.sort(np.random.default_rng(0).integers(0, 30, 100)) / 30.0
    ranks = rank_scale(x, np.ones(100))(x)
    assert_allclose(ranks, (rankdata(x) - 0.5) / 100)
    assert_allclose(rank_scale(x**3, np.ones(100))(x**3), ranks)
    complement = (1.0 - x)[::-1]
    assert_allclose(rank_scale(complement, np.ones(100))(complement), 1 - ranks[::-1])
    distinct, counts = np.unique(x, return_counts=True)
    assert_allclose(rank_scale(distinct, counts)(x), ranks)


def test_interpolation_passes_over_nodes_that_coincide():
    nodes, values = np.array([1.0, 1.0, 2.0]), np.array([[3.0], [3.0], [5.0]])
    found = interpolate_rows(np.array([0.0, 1.0, 1.5]), nodes, values)
    assert found[:, 0].tolist() == [3.0, 3.0, 4.0]
