"""Record what probmetrics and venn-abers give on the data of the other records.

Rebuild ``scaling_peers.json`` with ``make golden``, after ``make bench`` has installed
the peers. ``tests/test_scaling_peers.py`` compares with it.
"""

from __future__ import annotations

import json
import warnings
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.special import softmax

FOLDER = Path(__file__).parent
GOLDEN = FOLDER / "scaling_peers.json"
PEERS = ("probmetrics", "venn-abers", "scikit-learn", "torch")
GRID = np.linspace(0.01, 0.99, 50)
ROWS = 100
"""Of calibrated probabilities of all classes the first so many rows are kept."""
SAGA = {"opt": "saga", "tol": 1e-10, "max_iter": 3000, "print_init_info": False}
"""The solver of probmetrics that comes nearer to its optimum than the default."""


def two_columns(p):
    return np.column_stack([1 - p, p])


def probmetrics(name, p, y, at, **options):
    make = import_module("probmetrics.calibrators").get_calibrator
    options = {f"{name}_{option}": value for option, value in options.items()}
    return make(name, **options).fit(p, y).predict_proba(at)


def venn_abers(p, y, at):
    fit = import_module("venn_abers").VennAbers()
    fit.fit(two_columns(p), y)
    prob, limits = fit.predict_proba(two_columns(at))
    return {"values": rounded(prob[:, 1]), "limits": [rounded(row) for row in limits.T]}


def rounded(values):
    return [float(f"{value:.12g}") for value in values]


def of_event(p, y):
    rows = np.sort(p)[::20]
    at = np.concatenate([GRID, rows])
    scaled = {
        name: rounded(probmetrics(name, two_columns(p), y, two_columns(at))[:, 1])
        for name in ("quadratic-scaling", "linear-scaling")
    }
    return {"at": rounded(at), "venn-abers": venn_abers(p, y, at), **scaled}


def of_classes(logits, y):
    prob = softmax(logits, axis=1)
    fitted = {name: probmetrics(name, prob, y, prob, **SAGA) for name in ("svs", "sms")}
    return {name: [rounded(r) for r in rows[:ROWS]] for name, rows in fitted.items()}


def main():
    warnings.simplefilter("ignore")
    events = json.loads((FOLDER / "calibrators.json").read_text())["data"]
    classes = json.loads((FOLDER / "class_peers.json").read_text())
    golden = {
        "rebuild": "make golden",
        "versions": {name: version(name) for name in PEERS},
        "events": {
            name: of_event(np.array(data["p"]), np.array(data["y"]))
            for name, data in events.items()
        },
        "classes": of_classes(np.array(classes["logits"]), np.array(classes["y"])),
    }
    GOLDEN.write_text(json.dumps(golden) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
