"""Time binary calibrators and the decomposition of scores, with other libraries.

Everything of one size is timed in one run with interleaved rounds, in CPU seconds as
ratios to ``np.argsort`` of the same predictions. A dash: not timed, because one call
took more than 5 CPU seconds at the previous size, or the library is not installed.

Run ``python benchmarks/bench_calibrators.py [--quick]``.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from importlib import import_module
from importlib.util import find_spec

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np
from scipy.special import logit
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import calibrant as cb

METHODS = (
    "smooth",
    "temperature",
    "platt",
    "beta",
    "quadratic",
    "isotonic",
    "venn-abers",
    "scaling-binning",
    "spline-natural",
    "spline-cubic",
    "spline-parabolic",
    "kde",
)
ROUNDS = 3
TOO_SLOW = 5.0
CLIP = np.finfo(float).eps


def sample(n):
    rng = np.random.default_rng(0)
    p = rng.random(n)
    return p, (rng.random(n) < p**1.3).astype(float)


def ours(method):
    def fit(p, y):
        cb.make_calibrator(method).fit(p, y)

    return fit


def ours_as_evaluator(method):
    def error(p, y):
        cb.calibration_error(y, p, method=method)

    return error


def sklearn_logistic(p, y):
    x = logit(np.clip(p, CLIP, 1 - CLIP)).reshape(-1, 1)
    LogisticRegression(C=np.inf).fit(x, y)


def sklearn_isotonic(p, y):
    IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(p, y)


def betacal_abm(p, y):
    import_module("betacal").BetaCalibration("abm").fit(p.reshape(-1, 1), y)


def netcal_beta(p, y):
    import_module("netcal.scaling").BetaCalibration(method="mle").fit(p, y)


def uncertainty_calibration(p, y):
    fit = import_module("calibration").PlattBinnerCalibrator(len(p), num_bins=15)
    fit.train_calibration(p, y)


def split(score):
    def run(p, y):
        cb.decompose_score(y, p, score=score)

    return run


def model_diagnostics(p, y):
    scoring = import_module("model_diagnostics.scoring")
    scoring.decompose(y, p, scoring_function=scoring.SquaredError())


def probcal_split(p, y):
    import_module("probcal").corp_reliability(y, p, bands=None)


def probcal_fit(name):
    def fit(p, y):
        getattr(import_module("probcal"), name)().fit(p, y)

    return fit


CANDIDATES = {
    "calibrant auto": ours("auto"),
    **{f"calibrant {method}": ours(method) for method in METHODS},
    **{f"calibrant {m}, fit and error": ours_as_evaluator(m) for m in METHODS},
    "scikit-learn, logistic regression on logits": sklearn_logistic,
    "scikit-learn, isotonic": sklearn_isotonic,
    "betacal, abm": betacal_abm,
    "netcal, beta": netcal_beta,
    "uncertainty-calibration, scaling-binning": uncertainty_calibration,
    "probcal, Platt": probcal_fit("PlattCalibrator"),
    "probcal, beta": probcal_fit("BetaCalibrator"),
    "probcal, isotonic": probcal_fit("IsotonicCalibrator"),
    "probcal, scaling-binning": probcal_fit("ScalingBinningCalibrator"),
    "probcal, spline": probcal_fit("SplineCalibrator"),
    "calibrant decompose_score (CORP), Brier": split("brier"),
    "calibrant decompose_score (CORP), log-loss": split("log-loss"),
    "model-diagnostics decompose, Brier": model_diagnostics,
    "probcal CORP, Brier": probcal_split,
}
MODULES = {
    "betacal": "betacal",
    "netcal": "netcal",
    "uncertainty-calibration": "calibration",
    "model-diagnostics": "model_diagnostics",
    "probcal": "probcal",
}


def is_here(name):
    module = next((m for peer, m in MODULES.items() if name.startswith(peer)), None)
    return module is None or find_spec(module) is not None


def cpu_seconds(call, *args):
    start = time.process_time()
    call(*args)
    return time.process_time() - start


def time_size(n, rounds, left_out):
    """Return the minimum CPU seconds of each candidate, including argsort."""
    p, y = sample(n)
    calls = {"argsort": lambda p, _: np.argsort(p)}
    calls |= {name: f for name, f in CANDIDATES.items() if name not in left_out}
    found = {}
    for _ in range(rounds):
        for name, call in calls.items():
            if name not in left_out:
                seconds = cpu_seconds(call, p, y)
                found[name] = min(found.get(name, np.inf), seconds)
            if name != "argsort" and found.get(name, 0.0) > TOO_SLOW:
                left_out.add(name)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="up to 100,000 rows")
    sizes = [10**k for k in range(4, 6 if parser.parse_args().quick else 8)]
    warnings.simplefilter("ignore")
    left_out = {name for name in CANDIDATES if not is_here(name)}
    for name in CANDIDATES.keys() - left_out:  # load modules that load at first use
        CANDIDATES[name](*sample(2000))
    columns = [time_size(n, ROUNDS if n < 10**7 else 1, left_out) for n in sizes]
    heads = " | ".join(f"n = {n:.0e}" for n in sizes)
    print(f"| ratio to `np.argsort(p)` | {heads} |")
    print("| --- |" + " ---: |" * len(sizes))
    for name in CANDIDATES:
        cells = [
            f"{column[name] / column['argsort']:.2f}" if name in column else "-"
            for column in columns
        ]
        print(f"| {name} | {' | '.join(cells)} |")
    times = ", ".join(f"{1e3 * column['argsort']:.3g}" for column in columns)
    print(f"\n`np.argsort(p)` itself took {times} ms.")


if __name__ == "__main__":
    main()
