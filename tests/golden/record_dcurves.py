"""Record the net benefits that dcurves gives for the bundled predictions.

Rebuild ``dcurves.json`` where calibrant, dcurves and pandas are installed::

    python tests/golden/record_dcurves.py
"""

from __future__ import annotations

import json
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import calibrant as cb

GOLDEN = Path(__file__).with_name("dcurves.json")
THRESHOLDS = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.95]
MODELS = ("logistic", "forest", "bayes", "boosting", "network")


def net_benefits():
    """Return the net benefit of each model at each threshold."""
    pandas, dcurves = import_module("pandas"), import_module("dcurves")
    columns = {name: cb.datasets.load_binary(name)[0] for name in MODELS}
    table = pandas.DataFrame({"even": cb.datasets.load_binary("forest")[1], **columns})
    curve = dcurves.dca(
        data=table, outcome="even", modelnames=list(MODELS), thresholds=THRESHOLDS
    )
    return {
        name: [float(value) for value in rows.sort_values("threshold")["net_benefit"]]
        for name, rows in curve.groupby("model")
    }


if __name__ == "__main__":
    recorded = {
        "dcurves": version("dcurves"),
        "thresholds": THRESHOLDS,
        "net_benefit": net_benefits(),
    }
    GOLDEN.write_text(json.dumps(recorded, indent=1) + "\n")
