"""Cox's, Spiegelhalter's and Hosmer and Lemeshow's tests by their formulas."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logit
from scipy.stats import chi2, norm

import calibrant as cb
from fuzz import draws
from fuzz.definitions import rows_by_bin, size_edges

EPS = 2.0**-52


def deviance(line, y, count):
    """Return minus twice the log-likelihood of labels, given logits."""
    each = np.where(y == 1.0, np.logaddexp(0.0, -line), np.logaddexp(0.0, line))
    return 2.0 * np.sum(count * each)


def check_cox(p, y, count, given):
    x = logit(np.clip(p, EPS, 1.0 - EPS))
    centre, spread = x.mean(), max(x.std(), 1e-3)

    def loss(theta):
        return deviance(theta[0] + theta[1] * (x - centre) / spread, y, count)

    start = np.array([centre, spread])
    best = min(
        minimize(loss, first, method=method).fun
        for first in (start, np.zeros(2))
        for method in ("BFGS", "Nelder-Mead")
    )
    found = cb.calibration_test(y, p, method="cox", **given)
    gain = max(loss(start) - best, 0.0)
    # A search may stop early, never too late.
    assert found.statistic >= gain - 1e-6 * (1.0 + gain)
    assert found.statistic <= gain + 1e-2 * (1.0 + gain)
    assert found.pvalue == pytest.approx(chi2.sf(found.statistic, 2), rel=1e-9)


def check_spiegelhalter(p, y, count, given):
    off = np.sum(count * ((y - p) ** 2 - p * (1.0 - p)))
    variance = np.sum(count * (1.0 - 2.0 * p) ** 2 * p * (1.0 - p))
    found = cb.calibration_test(y, p, method="spiegelhalter", **given)
    if variance > 1e-12:
        assert found.statistic == pytest.approx(off / variance**0.5, rel=1e-7, abs=1e-7)
        wanted = 2.0 * norm.sf(abs(found.statistic))
        assert found.pvalue == pytest.approx(wanted, rel=1e-9)


def check_hosmer_lemeshow(p, y, count, given, groups):
    bins = rows_by_bin(p, size_edges(p.repeat(count), min(groups, count.sum())))
    statistic = 0.0
    for rows in bins:
        n, seen, told = (np.sum(count[rows] * v[rows]) for v in (p >= 0, y, p))
        statistic += (seen - told) ** 2 / max(told * (1.0 - told / n), 1e-300)
    found = cb.calibration_test(y, p, method="hosmer-lemeshow", groups=groups, **given)
    if statistic < 1e6:  # beyond, a certain prediction failed
        assert found.statistic == pytest.approx(statistic, rel=1e-6, abs=1e-9)
        wanted = chi2.sf(found.statistic, len(bins))
        assert found.pvalue == pytest.approx(wanted, rel=1e-9)
    else:
        assert found.pvalue < 1e-9


def case(rng):
    p, y = draws.sample(rng, least=2, most=150)
    weighted = rng.random() < 0.3
    count = draws.counts(rng, p.size) if weighted else np.ones(p.size, int)
    p, y, count = (v[count > 0] for v in (p, y, count))
    given = {"sample_weight": count} if weighted else {}
    check_spiegelhalter(p, y, count, given)
    check_hosmer_lemeshow(p, y, count, given, int(rng.integers(2, 12)))
    if np.diff(np.unique(p)).min(initial=1.0) > 1e-9:  # no search parts neighbours
        check_cox(p, y, count, given)
