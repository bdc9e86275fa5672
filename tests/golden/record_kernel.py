"""Record what peers give for kernel errors and classical tests.

Rebuild ``kernel.json`` with ``make golden``, after ``make bench`` has installed the
peers.
"""

from __future__ import annotations

import json
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.special import logit

import calibrant as cb

GOLDEN = Path(__file__).with_name("kernel.json")
KERNELS = {"laplace": "laplace", "rbf": "gaussian"}
BANDWIDTHS = (1.0, 0.3, 0.05)
KINDS = {"unbiased": "uq", "biased": "biased"}


def skce(y, p):
    peer = import_module("probcal.metrics")
    return {
        f"{ours} {bandwidth} {name}": peer.skce(
            y, p, estimator=kind, kernel=theirs, bandwidth=bandwidth
        )
        for ours, theirs in KERNELS.items()
        for bandwidth in BANDWIDTHS
        for name, kind in KINDS.items()
    }


def cox(y, p):
    """Return twice the gain in log-likelihood over the predictions themselves."""
    sm, line = import_module("statsmodels.api"), logit(p)
    fitted = sm.Logit(y, sm.add_constant(line)).fit(disp=False, tol=1e-12)
    null = float((y * np.log(p) + (1 - y) * np.log1p(-p)).sum())
    return 2.0 * (float(fitted.llf) - null)


def grouped(y, p, groups):
    """Return statsmodels' Hosmer-Lemeshow statistic over groups of sorted rows."""
    rows = np.array_split(np.argsort(p, kind="stable"), groups)
    counts = np.array([[(y[r] == 0).sum(), (y[r] == 1).sum()] for r in rows])
    mean = np.array([p[r].mean() for r in rows])
    size = counts.sum(axis=1)
    expected = np.c_[size * (1 - mean), size * mean]
    peer = import_module("statsmodels.stats.diagnostic_gen")
    found = peer.test_chisquare_binning(counts, expected, sort_var=mean)
    return float(found.statistic)


def values(y, p):
    peer = import_module("probcal.metrics")
    spiegelhalter = peer.spiegelhalter_z(y, p)
    hosmer = peer.hosmer_lemeshow(y, p, n_bins=10)
    inside = (p > 0) & (p < 1)
    return {
        "skce": skce(y, p),
        "spiegelhalter": [spiegelhalter.z, spiegelhalter.p_value],
        "hosmer-lemeshow": [hosmer.statistic, hosmer.p_value],
        "hosmer-lemeshow statsmodels": grouped(y, p, 10),
        "cox inside": cox(y[inside], p[inside]),
    }


def drawn():
    rng = np.random.default_rng(5)
    p = np.round(rng.beta(0.8, 1.2, 600), 6)
    return p, (rng.random(600) < p**1.2).astype(int)


def main():
    p, y = drawn()
    found = {"drawn": (p, y), "forest": cb.datasets.load_binary("forest")}
    golden = {
        "rebuild": "make golden",
        "versions": {name: version(name) for name in ("probcal", "statsmodels")},
        "data": {"p": p.tolist(), "y": y.tolist()},
        "values": {
            name: values(np.asarray(y).astype(int), p) for name, (p, y) in found.items()
        },
    }
    GOLDEN.write_text(json.dumps(golden) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
