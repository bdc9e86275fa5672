"""Net benefits are those of the definition, within their intervals."""

import numpy as np
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import TooFewRowsError
from fuzz import draws


def case(rng):
    p, y = draws.sample(rng, most=60)
    weight = draws.counts(rng, p.size) * rng.choice([1.0, 0.37])
    at = np.concatenate([rng.choice(p, 3), rng.random(2)])
    at = at[(at > 1e-6) & (at < 1.0 - 1e-6)]
    options = {"sample_weight": weight, "confidence": float(rng.choice([0.5, 0.95]))}
    if rng.random() < 0.4:
        options["clusters"] = rng.integers(0, int(rng.choice([2, p.size + 1])), p.size)
    models = {"m": p, "q": draws.predictions(rng, p.size)}
    try:
        curve = cb.decision_curve(
            y, models, thresholds=at if at.size else None, **options
        )
    except TooFewRowsError:
        return  # one cluster
    _check_definition(curve, models, y, weight)
    for column, frame in (
        ("net_benefit", curve.frame()),
        ("net_benefit", curve.frame(simultaneous=True)),
        ("difference", curve.differences()),
        ("lost", curve.lost()),
    ):
        margin = 1e-9 * (1.0 + np.abs(frame[column]))
        assert (frame["low"] <= frame[column] + margin).all(), (options, frame)
        assert (frame["high"] >= frame[column] - margin).all(), (options, frame)


def _check_definition(curve, models, y, weight):
    frame = curve.frame()
    for name, p in models.items():
        own = frame["net_benefit"][frame["model"] == name]
        expected = [
            weight @ ((p >= t) * (y - t / (1.0 - t) * (1.0 - y))) / weight.sum()
            for t in curve.thresholds
        ]
        assert_allclose(own, expected, rtol=1e-9, atol=1e-9)
