"""The paper's theorems, checked numerically."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from calibrant.maps.binned import BinnedMap
from calibrant.numerics.binning import size_edges, tabulate, width_edges
from strategies import binary_samples, probability


def ece_by_definition(p, y, edges, alpha):
    """Equation 2 of the paper, bin by bin; the last bin reaches beyond 1."""
    upper = np.append(edges[1:-1], np.inf)
    total = 0.0
    for left, right in zip(edges[:-1], upper, strict=True):
        inside = (p >= left) & (p < right)
        if inside.any():
            total += inside.sum() * abs(y[inside].mean() - p[inside].mean()) ** alpha
    return total / p.size


@st.composite
def binned_samples(draw):
    p, y = draw(binary_samples())
    bins = draw(st.integers(1, p.size))
    kind = draw(st.sampled_from(["width", "size", "free"]))
    if kind == "free":
        inner = draw(st.lists(probability, max_size=6))
        inner = np.unique([edge for edge in inner if 0.0 < edge < 1.0])
        return p, y, np.concatenate([[0.0], inner, [1.0]])
    return p, y, width_edges(bins) if kind == "width" else size_edges(p, None, bins)


@given(binned_samples(), st.sampled_from([0.5, 1.0, 2.0, 3.7]))
def test_theorem_2_slope_one_fit_on_test_is_ece(drawn, alpha):
    p, y, edges = drawn
    map_ = BinnedMap.of_table(tabulate(p, y, None, edges), "slope-1")
    plug_in = np.mean(np.abs(map_(p) - p) ** alpha)
    assert_allclose(plug_in, ece_by_definition(p, y, edges, alpha), atol=1e-12)


def test_theorem_2_the_map_minimises_the_brier_score(smooth_sample):
    p, y = smooth_sample
    edges = width_edges(4)
    map_ = BinnedMap.of_table(tabulate(p, y, None, edges), "slope-1")
    which = np.searchsorted(edges[1:-1], p, side="right")

    def brier(heights):
        return np.mean((heights[which] + p - y) ** 2)

    best = minimize(brier, np.zeros(4), method="BFGS", tol=1e-9)
    assert_allclose(map_.intercepts, best.x, atol=1e-5)


def squared(prediction, truth):
    return (prediction - truth) ** 2


def kullback_leibler(prediction, truth):
    def part(a, b):
        return np.where(a > 0, a * np.log(np.where(a > 0, a, 1.0) / b), 0.0)

    return part(truth, prediction) + part(1 - truth, 1 - prediction)


@pytest.mark.parametrize("divergence", [squared, kullback_leibler])
def test_theorem_1_less_loss_is_a_better_map_by_as_much(divergence):
    grid = np.linspace(0.01, 0.99, 23)
    truth, first, second = np.meshgrid(grid, grid, grid)

    def expected_loss(c):
        return truth * divergence(c, np.ones_like(c)) + (1 - truth) * divergence(
            c, np.zeros_like(c)
        )

    gained = expected_loss(first) - expected_loss(second)
    nearer = divergence(first, truth) - divergence(second, truth)
    assert_allclose(gained, nearer, atol=1e-12)
