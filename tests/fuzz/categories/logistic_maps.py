"""Platt scaling and beta calibration: at the best map the gradient is 0."""

import numpy as np
from numpy.testing import assert_allclose
from scipy.special import expit

import calibrant as cb
from fuzz import draws


def case(rng):
    p, y = draws.sample(rng, least=3)
    count = draws.counts(rng, p.size) if rng.random() < 0.4 else np.ones(p.size, int)
    used = count > 0
    for method in ("platt", "beta"):
        map_ = cb.make_calibrator(method).fit(p, y, sample_weight=count).map_
        held = np.clip(p, *map_.ends)
        parts = np.log(held), -np.log1p(-held)
        line = map_.a * parts[0] + map_.b * parts[1] + map_.intercept
        assert_allclose(map_(p), expit(line), rtol=1e-9, atol=1e-12)
        off = count * (expit(line) - y) / count.sum()
        loss = np.average(np.logaddexp(0.0, line) - y * line, weights=count)
        if np.ptp(y[used]) == 0.0:
            assert_allclose(map_(p[used]), y[used], atol=1e-9)
            continue
        if method == "platt":
            assert map_.a == map_.b
            slopes = [off @ (parts[0] + parts[1])]
        else:
            assert min(map_.a, map_.b) >= 0.0
            slopes = [
                off @ part if own > 0.0 else min(off @ part, 0.0)
                for own, part in zip((map_.a, map_.b), parts, strict=True)
            ]
        assert abs(off.sum()) < 1e-6
        assert np.abs(slopes).max() < 1e-5 * (1.0 + loss)
