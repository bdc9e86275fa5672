"""Record what R says about ten data sets, for tests of `summary`.

Needs R with the packages rms, pROC, metafor and jsonlite. Run
``python tests/golden/record_summary.py``.
"""

import subprocess
import tempfile
from pathlib import Path

import numpy as np

import calibrant as cb
from calibrant.numerics.links import logit_within, regression_ends

HERE = Path(__file__).parent
SIMULATED = {  # rows, mean and spread of logits, intercept, slope, decimals, seed
    "clinic": (150, -1.6, 1.2, 0.1, 0.8, None, 1),
    "rare": (2000, -4.0, 1.0, 0.2, 1.1, None, 2),
    "credit": (3000, -3.0, 1.3, -0.4, 0.7, None, 3),
    "tied": (500, 0.0, 1.5, 0.0, 1.0, 1, 4),
    "flat": (400, 0.5, 2.0, 0.3, 0.4, None, 5),
}


def simulated(rows, mean, spread, intercept, slope, decimals, seed):
    """Return predictions and labels along a line of logits."""
    rng = np.random.default_rng(seed)
    p = 1.0 / (1.0 + np.exp(-rng.normal(mean, spread, rows)))
    if decimals is not None:
        p = np.clip(np.round(p, decimals), 0.05, 0.95)
    true = intercept + slope * np.log(p / (1.0 - p))
    y = (rng.random(rows) < 1.0 / (1.0 + np.exp(-true))).astype(int)
    return p, y


def data_sets():
    """Return predictions and labels of each data set by name."""
    bundled = ("logistic", "forest", "bayes", "boosting", "network")
    sets = {name: cb.datasets.load_binary(name) for name in bundled}
    return sets | {name: simulated(*how) for name, how in SIMULATED.items()}


def main():
    """Write the data for R, and have it write its results."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (p, y) in data_sets().items():
            x = logit_within(p, regression_ends(p, np.ones(p.size)))
            table = np.column_stack([p, x, y])
            path = Path(folder, f"{name}.csv")
            np.savetxt(path, table, "%.17g", ",", header="p,x,y", comments="")
        command = ["Rscript", HERE / "record_summary.R", folder, HERE / "summary.json"]
        subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
