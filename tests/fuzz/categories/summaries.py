"""Summaries hold their estimates, and no weights, clusters or groups break them."""

import numpy as np

import calibrant as cb
from calibrant.exceptions import OptionError
from fuzz import draws, tables

RANGES = dict.fromkeys(("ICI", "E50", "E90", "Emax", "Brier", "AUROC"), (0.0, 1.0))


def case(rng):
    p, y = draws.sample(rng, most=60)
    options = _options(rng, p.size)
    try:
        found = cb.summary(y, p, n_resamples=50, **options)
    except OptionError:
        return  # one cluster
    _check(found, str(options))
    order = rng.permutation(p.size)
    rows = {k: v[order] for k, v in options.items() if k != "confidence"}
    again = cb.summary(
        y[order], p[order], n_resamples=50, confidence=options["confidence"], **rows
    )
    if "groups" not in options:
        values = [
            {k: v for k, v in one.frame().items() if k in ("measure", "value")}
            for one in (again, found)
        ]
        tables.assert_same_frame(*values, "order of rows", 1e-5)


def _options(rng, n):
    """Draw weights, clusters, groups and a level, most of them now and then."""
    options = {"confidence": float(rng.choice([0.5, 0.95, 0.999]))}
    if rng.random() < 0.4:
        weight = draws.counts(rng, n) * rng.choice([1.0, 0.37])
        options["sample_weight"] = weight
    if rng.random() < 0.4:
        options["clusters"] = rng.integers(0, int(rng.choice([1, 2, n])), n)
    if rng.random() < 0.3:
        options["groups"] = rng.choice(["a", "b"], n)
    return options


def _check(found, what):
    assert found.sentence()
    assert found.table("latex")
    assert str(found)
    for unit in found.units:
        for one in unit.measures:
            told = f"{what}: {one}"
            assert np.isnan(one.low) == np.isnan(one.high), told
            if np.isnan(one.value):
                assert np.isnan(one.low), told
                assert one.missing, told
                continue
            least, most = RANGES.get(one.measure, (-np.inf, np.inf))
            assert least <= one.value <= most, told
            if not np.isnan(one.low):
                assert least <= one.low <= one.value <= one.high <= most, told
