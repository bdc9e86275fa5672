"""Errors and maps over bins of equal size and width, ties and edges included."""

from bisect import bisect_right

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import TooFewRowsError
from fuzz import draws
from fuzz.definitions import binned_error, rows_by_bin, size_edges, width_edges


def case(rng):
    p, y = draws.sample(rng)
    count = draws.counts(rng, p.size) if rng.random() < 0.4 else np.ones(p.size, int)
    rows, bins = np.repeat(np.arange(p.size), count), int(rng.integers(1, 41))
    spacing = rng.choice(["es", "ew"])
    method = f"{spacing}{bins}"
    alpha = float(rng.choice([1.0, 2.0, 0.5, 3.0]))
    options = {"method": method, "alpha": alpha, "debias": False}
    if not (count == 1).all():
        options["sample_weight"] = count
    if bins > rows.size:
        with pytest.raises(TooFewRowsError, match=f"got {bins} bins for {rows.size}"):
            cb.calibration_error(y, p, **options)
        return
    edges = size_edges(p[rows], bins) if spacing == "es" else width_edges(bins)
    wanted = binned_error(p, y, count.astype(float), edges, alpha)
    digits = 1e-12 if alpha >= 1.0 else 1e-7  # the root of a gap of 1e-15
    assert cb.calibration_error(y, p, **options) == pytest.approx(wanted, abs=digits)
    _check_map(rng, method, p[rows], y[rows], edges)


def _check_map(rng, method, p, y, edges):
    tops = str(rng.choice(["slope-1", "flat"]))
    map_ = cb.make_calibrator(method, tops=tops).fit(p, y).map_
    at = np.concatenate([p, rng.random(5), edges])
    found, bins = map_(at), rows_by_bin(p, edges)
    shares = {bisect_right(edges, p[rows[0]]): rows for rows in bins}
    for value, place in zip(found, at, strict=True):
        rows = shares.get(bisect_right(edges, place))
        if rows is None:
            wanted = place
        elif tops == "flat":
            wanted = y[rows].mean()
        else:
            wanted = place + y[rows].mean() - p[rows].mean()
        assert_allclose(value, wanted, atol=1e-12)
