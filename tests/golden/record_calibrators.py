"""Record what the peers' calibrators give on small fixed data.

Rebuild ``calibrators.json`` with ``make golden``, after ``make bench`` has installed
the peers. ``tests/test_peer_calibrators.py`` compares with it.
"""

from __future__ import annotations

import json
import warnings
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.special import logit
from sklearn.calibration import _SigmoidCalibration
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import calibrant as cb

GOLDEN = Path(__file__).with_name("calibrators.json")
PEERS = (
    "scikit-learn",
    "betacal",
    "netcal",
    "uncertainty-calibration",
    "model-diagnostics",
    "KDEpy",
)
BUNDLED = ("forest", "bayes")
GRID = np.linspace(0.01, 0.99, 50)
CLIP = np.finfo(float).eps
EVERY = 7
TIGHT = {"tol": 1e-12, "max_iter": 10_000}


def drawn(seed, power, n=600):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 6)
    return p, (rng.random(n) < p**power).astype(int)


def data_sets():
    """Return predictions and labels by name; the JSON holds those not bundled."""
    own = {"over": drawn(3, 1.6), "under": drawn(4, 0.6), "falling": drawn(5, 1.0)}
    p, y = own["falling"]
    own["falling"] = p, 1 - y  # beta's constraints bind
    return own | {name: cb.datasets.load_binary(name) for name in BUNDLED}


def odds(p):
    return logit(np.clip(p, CLIP, 1 - CLIP)).reshape(-1, 1)


def sklearn_platt(p, y, at):
    fit = LogisticRegression(C=np.inf, **TIGHT).fit(odds(p), y)
    return fit.predict_proba(odds(at))[:, 1]


def sklearn_smoothed(p, y, at):
    fit = _SigmoidCalibration().fit(odds(p).ravel(), y)
    return fit.predict(odds(at).ravel())


def sklearn_isotonic(p, y, at):
    fit = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(p, y)
    return fit.predict(at)


def betacal(variant):
    def fitted(p, y, at):
        fit = import_module("betacal").BetaCalibration(parameters=variant)
        return fit.fit(p.reshape(-1, 1), y).predict(at.reshape(-1, 1))

    return fitted


def netcal_beta(p, y, at):
    fit = import_module("netcal.scaling").BetaCalibration(method="mle")
    fit.fit(p, y)
    return np.asarray(fit.transform(at)).ravel()


def scaling_binning(p, y, at):
    calibration = import_module("calibration")
    fit = calibration.PlattBinnerCalibrator(len(p), num_bins=15)
    fit.train_calibration(p, y)
    return np.asarray(fit.calibrate(at))


def kernel_density(p, y, at):
    """Give the ratio of densities, as KDEpy sums kernels one by one."""
    kdepy = import_module("KDEpy")
    bandwidth = p.std() * (2 * p.size) ** -0.2

    def density(values):
        image = np.where(values < 0.5, -values, 2 - values)
        both = np.concatenate([values, image])
        fit = kdepy.NaiveKDE(kernel="triweight", bw=bandwidth).fit(both)
        return values.size * fit.evaluate(at)

    return density(p[y == 1]) / density(p)


def decomposition(p, y):
    scoring = import_module("model_diagnostics.scoring")
    found = {}
    for name, score in (
        ("brier", scoring.SquaredError()),
        ("log-loss", scoring.LogLoss()),
    ):
        held = np.clip(p, CLIP, 1 - CLIP) if name == "log-loss" else p
        weight = np.arange(p.size) % 3 + 1.0
        table = scoring.decompose(y, held, weights=weight, scoring_function=score)
        found[name] = {k: float(table[k][0]) for k in table.columns if k != "model"}
    return found


CALIBRATORS = {
    "sklearn platt": sklearn_platt,
    "sklearn smoothed platt": sklearn_smoothed,
    "sklearn isotonic": sklearn_isotonic,
    "betacal abm": betacal("abm"),
    "betacal ab": betacal("ab"),
    "betacal am": betacal("am"),
    "netcal beta": netcal_beta,
    "uncertainty-calibration scaling-binning": scaling_binning,
    "KDEpy kde": kernel_density,
}


def log_loss(c, y):
    held = np.clip(c, CLIP, 1 - CLIP)
    return -np.mean(np.where(y == 1, np.log(held), np.log1p(-held)))


def rounded(values):
    return [float(f"{value:.12g}") for value in np.nan_to_num(values)]


def peer_values(p, y):
    found = {"model-diagnostics": decomposition(p, y)}
    for name, fitted in CALIBRATORS.items():
        # Bins may end anywhere between rows, so steps are compared at rows.
        at = np.sort(p)[::EVERY] if fitted is scaling_binning else GRID
        found[name] = {
            "values": rounded(fitted(p, y, at)),
            "log-loss": float(log_loss(fitted(p, y, p), y)),
        }
    return found


def main():
    warnings.simplefilter("ignore")
    found = data_sets()
    golden = {
        "rebuild": "make golden",
        "versions": {name: version(name) for name in PEERS},
        "grid": GRID.tolist(),
        "values": {name: peer_values(p, y) for name, (p, y) in found.items()},
        "data": {
            name: {"p": p.tolist(), "y": y.tolist()}
            for name, (p, y) in found.items()
            if name not in BUNDLED
        },
    }
    GOLDEN.write_text(json.dumps(golden) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
