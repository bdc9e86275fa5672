"""Large errors of few levels are found by every method that can follow them."""

import numpy as np

import calibrant as cb

METHODS = ("smooth", "pl", "pl-mse", "pl3", "pl3-mse", "pl-de", "pl-de2", "isotonic")
METHODS += ("es5", "ew10", "es-sweep", "beta", "platt", "kde", "scaling-binning")
METHODS += ("spline-natural", "spline-cubic", "spline-parabolic")


def case(rng):
    levels = np.sort(rng.choice(np.arange(1, 20) / 20, int(rng.integers(2, 6)), False))
    steep = 1.0 / (1.0 + np.exp(-rng.uniform(2.0, 5.0) * np.log(levels / (1 - levels))))
    flat = 0.5 + rng.uniform(0.0, 0.4) * (levels - 0.5)
    moved = np.clip(levels + rng.choice([-1.0, 1.0]) * rng.uniform(0.2, 0.4), 0, 1)
    truth = (steep, flat, moved)[int(rng.integers(3))]
    p = np.repeat(levels, int(rng.integers(60, 300)))
    y = (rng.random(p.size) < np.repeat(truth, p.size // levels.size)).astype(float)
    # What is found is what happened, so that noise does not matter.
    shares = np.array([y[p == level].mean() for level in levels])
    error = np.abs(shares - levels).mean()
    if error < 0.1 or (np.diff(shares) < 0).any():
        return
    for method in rng.choice(METHODS, 3, replace=False):
        found = cb.calibration_error(y, p, method=str(method), debias=False)
        assert 0.6 * error <= found <= 1.2 * error, (method, found, error)
