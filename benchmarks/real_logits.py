"""Multi-class methods on the logits of real networks, as a markdown table.

Maps are fitted on validation rows and evaluated on test rows; files without these
splits are divided into halves. "fit NLL" is the log-loss of the fitted rows; the other
columns are for the test rows: log-loss, accuracy, confidence and classwise ECE (es15,
not debiased), the last three in percent. Rows with missing values are dropped and
counted.

Run ``python benchmarks/real_logits.py FOLDER [--methods a,b] [--files x,y]``, with the
folder of ``.npz`` files with logits_val, y_val, logits_test, y_test, or logits, y.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
from scipy.special import softmax

import calibrant as cb

FILES = (
    "nn_calibration_valtest/probs_resnet110_c10_logits",
    "nn_calibration_valtest/probs_densenet40_c10_logits",
    "focalcal_valtest/cifar10_resnet50",
    "focalcal_valtest/focal_cifar10_resnet50",
    "cifar10_zoo_saurabh/L1711",
    "cifar10_zoo_saurabh/L2914",
    "focalcal_valtest/cifar100_resnet50",
)
METHODS = (*cb.calibrator_names("multi-class"), "ovr-pl", "top-pl3")
KEEP_ORDER = {"temperature", "iop-oi", "iop-op", "iop-diag"}


def load(path: Path):
    stored = np.load(path)
    if "logits_val" in stored:
        parts = [(stored[f"logits_{p}"], stored[f"y_{p}"]) for p in ("val", "test")]
    else:
        half = len(stored["y"]) // 2
        logits, y = stored["logits"], stored["y"]
        parts = [(logits[:half], y[:half]), (logits[half:], y[half:])]
    return [_whole(logits, y) for logits, y in parts]


def _whole(logits, y):
    good = np.isfinite(logits).all(axis=1)
    if not good.all():
        print(f"({(~good).sum()} of {good.size} rows have missing values)")
    return logits[good].astype(np.float64), y.reshape(-1)[good].astype(int)


def log_loss(prob, y):
    return -np.log(np.maximum(prob[np.arange(y.size), y], 1e-16)).mean()


def errors(prob, y):
    return [
        100 * cb.calibration_error(y, prob, method="es15", debias=False, task=task)
        for task in ("confidence", "classwise")
    ]


def print_row(name, method, fitted, judged) -> None:
    (fit_prob, fit_y), (prob, y) = fitted, judged
    accuracy = 100 * (prob.argmax(axis=1) == y).mean()
    confidence, classwise = errors(prob, y)
    print(
        f"| {name} | {method} | {log_loss(fit_prob, fit_y):.4f} "
        f"| {log_loss(prob, y):.4f} | {accuracy:.2f} "
        f"| {confidence:.2f} | {classwise:.3f} |",
        flush=True,
    )


def compare(path: Path, methods) -> None:
    (logits, y), (new, new_y) = load(path)
    name = f"{path.parent.name.split('_')[0]}/{path.stem.removeprefix('probs_')}"
    before = softmax(logits, axis=1), softmax(new, axis=1)
    print_row(name, "none", (before[0], y), (before[1], new_y))
    for method in methods:
        calibrator = cb.make_calibrator(method, scale="logit").fit(logits, y)
        fitted, judged = calibrator.transform(logits), calibrator.transform(new)
        print_row("", method, (fitted, y), (judged, new_y))
        if method[:4] not in ("ovr-", "top-"):
            assert log_loss(fitted, y) <= log_loss(before[0], y), method
        if method in KEEP_ORDER:
            assert (judged.argmax(axis=1) == new.argmax(axis=1)).all(), method


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--files", default=",".join(FILES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| network | method | fit NLL | NLL | accuracy | conf-ECE | cw-ECE |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for name in options.files.split(","):
        compare(options.folder / f"{name}.npz", options.methods.split(","))


if __name__ == "__main__":
    main()
