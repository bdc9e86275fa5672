"""Intervals lie in [0, 1], hold their estimate and have a width."""

import calibrant as cb
from calibrant.exceptions import TooFewRowsError
from fuzz import draws

METHODS = ("es2", "es15", "ew3", "ew15", "es-sweep", "ew-sweep", "es-cv", "ew-cv")
METHODS += ("platt", "beta", "isotonic", "kde", "scaling-binning", "smooth")
METHODS += ("quadratic", "venn-abers")
METHODS += ("pl", "pl3", "pl-de", "pl-de2", "spline-natural", "kce")


def case(rng):
    p, y = draws.sample(rng, most=200)
    weight = draws.counts(rng, p.size) if rng.random() < 0.2 else None
    method = str(rng.choice(METHODS))
    settings = {
        "confidence": float(rng.choice([0.5, 0.9, 0.95, 0.99])),
        "alpha": int(rng.integers(1, 3)),
        "debias": bool(rng.integers(2)) and "auto",
        "n_resamples": int(rng.choice([2, 50, 200])),
    }
    try:
        found = cb.evaluate(y, p, methods=method, sample_weight=weight, **settings)
    except TooFewRowsError:
        return
    value, low, high = (float(found.frame()[k][0]) for k in ("value", "low", "high"))
    told = f"{method}, {settings}: {value} [{low}, {high}]"
    assert 0.0 <= low <= value <= high <= 1.0, told
    if settings["n_resamples"] > 2:
        assert low < high, told
