"""Isotonic regression by pooling exact fractions."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from fuzz import draws
from fuzz.definitions import isotonic, isotonic_at


def case(rng):
    p, y = draws.sample(rng)
    weighted = rng.random() < 0.4
    count = draws.counts(rng, p.size) if weighted else np.ones(p.size, int)
    given = {"sample_weight": count} if weighted else {}
    used = count > 0
    wanted = isotonic_at(p[used], y[used], count[used])
    for evaluation in ("interpolate", "step"):
        calibrator = cb.make_calibrator("isotonic", evaluation=evaluation)
        map_ = calibrator.fit(p, y, **given).map_
        assert_allclose(map_(p[used]), wanted, atol=1e-12)
        _check_between(rng, map_, isotonic(p, y, count), evaluation)
    error = np.average(np.abs(wanted - p[used]), weights=count[used])
    found = cb.calibration_error(y, p, method="isotonic", **given)
    assert found == pytest.approx(error, abs=1e-12)


def _check_between(rng, map_, ties, evaluation):
    """Between rows lines are straight and steps halfway; both are flat beyond."""
    knots = np.array([end for first, last, _ in ties for end in (first, last)])
    values = np.array([value for *_, value in ties for _ in range(2)])
    at = np.sort(np.concatenate([rng.random(20), rng.uniform(knots[0], knots[-1], 20)]))
    found = map_(at)
    assert (np.diff(found) >= -1e-15).all()
    if evaluation == "interpolate":
        assert_allclose(found, np.interp(at, knots, values), atol=1e-9)
        return
    apart = np.abs(at[:, np.newaxis] - 0.5 * (knots[1:] + knots[:-1])).min(1, initial=1)
    nearest = values[np.abs(at[:, np.newaxis] - knots).argmin(axis=1)]
    far = apart > 1e-12
    assert_allclose(found[far], nearest[far], atol=1e-12)
