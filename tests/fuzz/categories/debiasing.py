"""The bias that is taken out of binned errors, by integrals instead of formulas."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import calibrant as cb
from fuzz import draws
from fuzz.definitions import rows_by_bin, size_edges, width_edges


def expected_distance(mean, sd):
    """Return the mean of abs(X), X normal, by quadrature on either side of 0."""
    if sd == 0.0:
        return abs(mean)

    def part(u):  # 12 standard deviations hold all but 1e-32
        return abs(mean + sd * u) * norm.pdf(u)

    kink = min(max(-mean / sd, -12.0), 12.0)
    ends = [(-12.0, kink), (kink, 12.0)]
    return sum(quad(part, *side, epsabs=1e-11, limit=200)[0] for side in ends)


def debiased(p, y, weight, edges, alpha):
    """Return the mean over bins of the distance less its bias."""
    total = 0.0
    for rows in rows_by_bin(p, edges):
        n = weight[rows].sum()
        share = np.average(y[rows], weights=weight[rows])
        gap = share - np.average(p[rows], weights=weight[rows])
        variance = share * (1.0 - share)
        if alpha == 1:
            bias = expected_distance(gap, np.sqrt(variance / n)) - abs(gap)
        else:
            bias = variance / (n - 1.0) if n > 1.0 else 0.0
        total += n * (abs(gap) ** alpha - bias)
    return total / weight.sum()


def case(rng):
    p, y = draws.sample(rng, least=2, most=120)
    alpha = int(rng.integers(1, 3))
    bins = int(rng.integers(1, min(p.size, 12) + 1))
    weight, given = np.ones(p.size), {}
    if spacing_is_width := rng.random() < 0.5:
        edges = width_edges(bins)
        if rng.random() < 0.5:
            weight = rng.uniform(1.0, 6.0, p.size)
            given = {"sample_weight": weight}
    else:
        edges = size_edges(p, bins)
    method = f"{'ew' if spacing_is_width else 'es'}{bins}"
    debias = bool(rng.integers(2)) or "auto"
    found = cb.calibration_error(
        y, p, method=method, alpha=alpha, debias=debias, **given
    )
    assert found == pytest.approx(debiased(p, y, weight, edges, alpha), abs=1e-8)
