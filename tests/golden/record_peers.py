"""Record what the peers give on small fixed data, for ``tests/test_peers.py``.

Rebuild ``peers.json`` with ``make golden``, after ``make bench`` has installed the
peers. The adapters are those of ``benchmarks/peers.py``.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
from sklearn.calibration import calibration_curve

import calibrant as cb

GOLDEN = Path(__file__).with_name("peers.json")
ADAPTERS = Path(__file__).parents[2] / "benchmarks"
BINS = 15
BUNDLED = ("forest", "bayes")
MONTE_CARLO_RUNS = 100


def uniform(n, seed):
    """Draw predictions that are distinct and off the edges of 15 equal bins."""
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 8)
    y = (rng.random(n) < p**1.3).astype(int)
    assert np.unique(p).size == n
    assert np.abs(p * BINS - np.round(p * BINS)).min() > 1e-9
    return p, y


def on_edges():
    """Put ten rows on edges, neighbours wrong in opposite directions.

    Whoever pools other neighbours than we do gets another number.
    """
    p = np.array([0, 1, 10, 10, 11, 11, 14, 14, 15, 15]) / BINS
    return p, np.array([1, 0, 1, 1, 0, 0, 1, 1, 0, 1])


def data_sets():
    """Return predictions and labels by name; the JSON holds those not bundled."""
    drawn = {
        "uniform_500": uniform(500, seed=0),
        "uniform_510": uniform(510, seed=1),  # 15 bins of 34 rows
        "on_edges": on_edges(),
    }
    return drawn | {name: cb.datasets.load_binary(name) for name in BUNDLED}


def curve(y, p, strategy):
    prob_true, prob_pred = calibration_curve(y, p, n_bins=BINS, strategy=strategy)
    return {"prob_true": prob_true.tolist(), "prob_pred": prob_pred.tolist()}


def attempt(measure, y, p):
    """Return the number, or nothing where the peer refuses the data.

    netcal refuses equal edges, uncertainty-calibration bins of a single row.
    """
    try:
        return measure(y, p)
    except ValueError:
        return None


def monte_carlo(measure, y, p):
    """Return mean and standard error of a measure that draws random numbers."""
    np.random.seed(0)
    draws = [attempt(measure, y, p) for _ in range(MONTE_CARLO_RUNS)]
    if None in draws:
        return None
    error = np.std(draws, ddof=1) / np.sqrt(MONTE_CARLO_RUNS)
    return {"mean": float(np.mean(draws)), "standard_error": float(error)}


def peer_values(peers, y, p):
    debiased_l1 = peers.uncertainty_calibration_debiased_l1
    debiased_l2 = peers.uncertainty_calibration_debiased_l2
    return {
        "sklearn uniform": curve(y, p, "uniform"),
        "sklearn quantile": curve(y, p, "quantile"),
        "netcal width": attempt(peers.netcal_width, y, p),
        "netcal size": attempt(peers.netcal_size, y, p),
        "torchmetrics": attempt(peers.torchmetrics_width, y, p),
        "uncertainty-calibration L2": attempt(debiased_l2, y, p),
        "uncertainty-calibration L1": monte_carlo(debiased_l1, y, p),
    }


def main():
    sys.path.insert(0, str(ADAPTERS))
    peers, found = import_module("peers"), data_sets()
    golden = {
        "rebuild": "make golden",
        "versions": peers.versions("numpy", "scikit-learn", "torch"),
        "values": {name: peer_values(peers, y, p) for name, (p, y) in found.items()},
        "data": {
            name: {"p": p.tolist(), "y": y.tolist()}
            for name, (p, y) in found.items()
            if name not in BUNDLED
        },
    }
    GOLDEN.write_text(json.dumps(golden) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
