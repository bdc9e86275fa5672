"""Record the log-losses of the peers' multi-class calibrators on small fixed data.

Rebuild ``class_peers.json`` with ``make golden``, after ``make bench`` has installed
the peers. The adapters are those of ``benchmarks/class_peers.py``.
"""

from __future__ import annotations

import json
import sys
import warnings
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).with_name("class_peers.json")
ADAPTERS = Path(__file__).parents[2] / "benchmarks"
PEERS = ("netcal", "probmetrics", "dirichletcal", "scikit-learn", "jax", "torch")


def sample(n=400, k=4, seed=0):
    """Draw over-confident logits whose classes are confused and biased."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    truth = rng.normal(size=(n, k)) + 1.5 * np.eye(k)[y]
    logits = 2.0 * truth @ (np.eye(k) + 0.2 * rng.normal(size=(k, k)))
    return np.round(logits + rng.normal(size=k), 6), y


def versions():
    found = {}
    for name in PEERS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def main():
    sys.path.insert(0, str(ADAPTERS))
    warnings.simplefilter("ignore")
    peers = import_module("class_peers")
    logits, y = sample()
    golden = {
        "rebuild": "make golden",
        "versions": versions(),
        "penalty": peers.PENALTY,
        "logits": logits.tolist(),
        "y": y.tolist(),
        "losses": {
            method: {
                who: peers.log_loss(fit(logits, y), y) for who, fit in rivals.items()
            }
            for method, rivals in peers.RIVALS.items()
        },
    }
    GOLDEN.write_text(json.dumps(golden) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
