"""Brier score and log-loss, and their parts by isotonic or binned recalibration."""

from bisect import bisect_right

import numpy as np
import pytest

import calibrant as cb
from fuzz import draws
from fuzz.definitions import (
    isotonic_at,
    mean_score,
    rows_by_bin,
    size_edges,
    width_edges,
)


def recalibrated(method, p, y, count):
    """Return the share of positives of each row's bin, or its isotonic value."""
    if method == "isotonic":
        return isotonic_at(p, y, count)
    bins = int(method[2:])
    edges = width_edges(bins)
    if method.startswith("es"):
        edges = size_edges(p.repeat(count), bins)
    shares = {
        bisect_right(edges, p[rows[0]]): np.average(y[rows], weights=count[rows])
        for rows in rows_by_bin(p, edges)
    }
    return np.array([shares[bisect_right(edges, value)] for value in p.tolist()])


def case(rng):
    p, y = draws.sample(rng)
    weighted = rng.random() < 0.4
    count = draws.counts(rng, p.size) if weighted else np.ones(p.size, int)
    given = {"sample_weight": count} if weighted else {}
    p_used, y_used, count_used = (v[count > 0] for v in (p, y, count))
    bins = int(rng.integers(1, min(count.sum(), 15) + 1))
    method = str(rng.choice(["isotonic", f"es{bins}", f"ew{bins}"]))
    name = str(rng.choice(["brier", "log-loss"]))
    after = np.clip(recalibrated(method, p_used, y_used, count_used), 0.0, 1.0)
    rate = np.full(y_used.size, np.average(y_used, weights=count_used))
    found = cb.decompose_score(y, p, score=name, recalibration=method, **given)
    score, left, unknown = (
        mean_score(name, values, y_used, count_used) for values in (p_used, after, rate)
    )
    assert found.score == pytest.approx(score, rel=1e-10, abs=1e-12)
    assert found.uncertainty == pytest.approx(unknown, rel=1e-10, abs=1e-12)
    assert found.calibration == pytest.approx(score - left, rel=1e-10, abs=1e-12)
    assert found.refinement == pytest.approx(left, rel=1e-10, abs=1e-12)
    if method == "isotonic":
        assert min(found.calibration, found.discrimination) >= 0.0
