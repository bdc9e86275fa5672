"""As many bins as leave the shares of positives rising, found one by one."""

import itertools
from fractions import Fraction

import pytest

import calibrant as cb
from fuzz import draws
from fuzz.definitions import binned_error, rows_by_bin, size_edges, width_edges


def rises(p, y, count, edges):
    """Tell whether no share of positives is below that of the bin before."""
    shares = []
    for rows in rows_by_bin(p, edges):
        total = int(count[rows].sum())
        if total:
            shares.append(Fraction(int((count[rows] * y[rows]).sum()), total))
    return all(a <= b for a, b in itertools.pairwise(shares))


def swept(p, y, count, make_edges, most):
    """Return the largest number of bins before the shares first fall."""
    for bins in range(1, most + 1):
        if not rises(p, y, count, make_edges(bins)):
            return bins - 1
    return most


def case(rng):
    p, y = draws.sample(rng, most=150)
    weighted = rng.random() < 0.4
    count = draws.counts(rng, p.size) if weighted else (p >= 0).astype(int)
    copies = p.repeat(count)
    most = min(copies.size, 1000)
    spacing = str(rng.choice(["es", "ew"]))

    def make_edges(bins):
        return width_edges(bins) if spacing == "ew" else size_edges(copies, bins)

    bins = swept(p, y, count, make_edges, most)
    given = {"sample_weight": count} if weighted else {}
    found = cb.make_calibrator(f"{spacing}-sweep").fit(p, y, **given)
    if found.fit_.n_pieces != bins:  # coinciding edges are counted once
        assert found.fit_.n_pieces < bins
        assert spacing == "es"
    error = cb.calibration_error(y, p, method=f"{spacing}-sweep", debias=False, **given)
    wanted = binned_error(p, y, count.astype(float), make_edges(bins), 1.0)
    assert error == pytest.approx(wanted, abs=1e-12)
