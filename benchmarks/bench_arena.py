"""The arena with calibrators of other libraries: accuracy, harm and time.

Other libraries are fitted and tested on the same rows as `calibrant reproduce arena`
fits and tests ours. All get probabilities, as in CalArena. Libraries that are not
installed are named and skipped. With the same folder as that command, only what is
missing is run.

Run ``python benchmarks/bench_arena.py [--data FOLDER] [--out FOLDER] [--quick]``.
"""

from __future__ import annotations

import argparse
import os
import warnings
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np

from calibrant.experiments import arena, run, train_models
from calibrant.experiments.runner import describe_failures, versions
from calibrant.experiments.tables import markdown_page

CLIP = 1e-15
"""The nearest that logits for scikit-learn come to 0 and 1, as in its own scaling."""


def sklearn_one_vs_rest(prob, y, *, method, logits=False):
    """Fit each class against the rest and normalise, as CalibratedClassifierCV does.

    That class wants several rows of each class for its folds, even if it does not use
    them; so its own calibrators are called.
    """
    columns = range(1, 2) if prob.shape[1] == 2 else range(prob.shape[1])
    fits = [
        sklearn_calibrator(method).fit(column_of(prob, k, logits=logits), y == k)
        for k in columns
    ]

    def predict(new):
        parts = [
            fit.predict(column_of(new, k, logits=logits))
            for k, fit in zip(columns, fits, strict=True)
        ]
        if len(parts) == 1:
            return two_columns(parts[0])
        q = np.column_stack(parts)
        total = q.sum(axis=1, keepdims=True)
        return np.where(
            total > 0.0, q / np.where(total > 0.0, total, 1.0), 1 / len(parts)
        )

    return predict


def sklearn_calibrator(method):
    if method == "isotonic":
        return import_module("sklearn.isotonic").IsotonicRegression(
            out_of_bounds="clip"
        )
    return import_module("sklearn.calibration")._SigmoidCalibration()  # noqa: SLF001


def column_of(prob, k, *, logits):
    if not logits:
        return prob[:, k]
    p = np.clip(prob[:, k], CLIP, 1.0 - CLIP)
    return np.log(p) - np.log1p(-p)


def sklearn_temperature(prob, y):
    scaling = import_module("sklearn.calibration")._TemperatureScaling()  # noqa: SLF001
    return scaling.fit(prob, y).predict


def probmetrics_method(prob, y, *, name):
    calibrators = import_module("probmetrics.calibrators")
    options = {f"{name}_print_init_info": False} if name in {"svs", "sms"} else {}
    calibrator = calibrators.get_calibrator(name, **options)
    calibrator.fit(prob, y)
    return calibrator.predict_proba


def betacal_method(prob, y):
    calibrator = import_module("betacal").BetaCalibration("abm")
    calibrator.fit(prob[:, 1:], y)
    return lambda new: two_columns(calibrator.predict(new[:, 1:]))


def venn_abers_method(prob, y):
    calibrator = import_module("venn_abers").VennAbers()
    calibrator.fit(p_cal=prob, y_cal=y)
    return lambda new: calibrator.predict_proba(p_test=new)[0]


def netcal_method(prob, y, *, module, name):
    calibrator = getattr(import_module(f"netcal.{module}"), name)()
    binary = prob.shape[1] == 2
    calibrator.fit(prob[:, 1] if binary else prob, y)
    if not binary:
        return calibrator.transform
    return lambda new: two_columns(np.ravel(calibrator.transform(new[:, 1])))


def two_columns(p):
    return np.column_stack([1.0 - p, p])


SKLEARN = {
    "sklearn sigmoid": (sklearn_one_vs_rest, {"method": "sigmoid"}),
    "sklearn sigmoid on logits": (
        sklearn_one_vs_rest,
        {"method": "sigmoid", "logits": True},
    ),
    "sklearn isotonic": (sklearn_one_vs_rest, {"method": "isotonic"}),
    "sklearn temperature": (sklearn_temperature, {}),
}
NETCAL_TEMPERATURE = (
    netcal_method,
    {"module": "scaling", "name": "TemperatureScaling"},
)
PEERS: dict[str, dict[str, tuple[Any, dict[str, Any]]]] = {
    "binary": {
        **SKLEARN,
        "probmetrics quadratic": (probmetrics_method, {"name": "quadratic-scaling"}),
        "betacal": (betacal_method, {}),
        "venn_abers": (venn_abers_method, {}),
        "netcal temperature": NETCAL_TEMPERATURE,
        "netcal bbq": (netcal_method, {"module": "binning", "name": "BBQ"}),
    },
    "multi-class": {
        **SKLEARN,
        "probmetrics temp-scaling": (probmetrics_method, {"name": "temp-scaling"}),
        "probmetrics svs": (probmetrics_method, {"name": "svs"}),
        "probmetrics sms": (probmetrics_method, {"name": "sms"}),
        "netcal temperature": NETCAL_TEMPERATURE,
    },
}
"""What other libraries offer, by kind; a name begins with the module."""


@dataclass(frozen=True)
class Peer:
    """A calibrator of another library."""

    kind: str
    name: str

    def fit(self, p, y):
        """Return the fitted calibrator."""
        warnings.simplefilter("ignore")
        function, options = PEERS[self.kind][self.name]
        return FittedPeer(function(_matrix(p), y, **options))


@dataclass(frozen=True)
class FittedPeer:
    """Calibrated probabilities of another library."""

    predict: Any

    def transform(self, p):
        """Return probabilities of the event, or of all classes."""
        q = np.asarray(self.predict(_matrix(p)), dtype=np.float64)
        return q if p.ndim > 1 else q[:, 1]


def _matrix(p):
    return p if p.ndim > 1 else two_columns(p)


def installed(kind):
    """Return the contenders of the libraries that are installed."""
    here = [name for name in PEERS[kind] if find_spec(name.split()[0]) is not None]
    for name in PEERS[kind].keys() - set(here):
        print(f"{name}: not installed, skipped")
    return [arena.ArenaContender(name, Peer(kind, name)) for name in here]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, action="append", default=[])
    parser.add_argument("--out", type=Path, default=Path("calibrant-arena"))
    parser.add_argument("--quick", action="store_true", help="200 rows, few data sets")
    parser.add_argument("--methods", help="ours, a,b,c")
    parser.add_argument("--kinds", default=",".join(arena.KINDS))
    parser.add_argument("--sizes", default=",".join(map(str, arena.SIZES)))
    parser.add_argument("--seeds", type=int, default=arena.SEEDS)
    parser.add_argument("--every", type=int, default=1, help="only some models")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    folders = [train_models(quick=options.quick, jobs=options.jobs), *options.data]
    sizes = [int(size) for size in options.sizes.split(",")]
    study = arena.arena_study(
        [one for folder in folders for one in arena.arena_sets(folder)],
        kinds=options.kinds.split(","),
        methods=options.methods.split(",") if options.methods else None,
        sizes=sizes[:1] if options.quick else sizes,
        seeds=1 if options.quick else options.seeds,
        every=options.every,
    )
    results = {}
    for kind, design in study.designs.items():
        everyone = [*design.contenders, *installed(kind)]
        design = replace(design, contenders=everyone)  # noqa: PLW2901
        results[kind] = run(design, options.out, jobs=options.jobs)
        print(describe_failures(results[kind]))
    notes = [f"With {versions()}."]
    print(markdown_page("Arena with other libraries", notes, study.tables(results)))


if __name__ == "__main__":
    main()
