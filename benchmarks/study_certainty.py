"""Error rates of tests, coverage of intervals and bands, with a known true map.

    python benchmarks/study_certainty.py size --draws 4000
    python benchmarks/study_certainty.py power --draws 1000
    python benchmarks/study_certainty.py coverage --seeds 200
    python benchmarks/study_certainty.py bands --seeds 60
    python benchmarks/study_certainty.py small --runs 200 --csv small.csv
    python benchmarks/study_certainty.py methods --runs 400 --csv methods.csv
    python benchmarks/study_certainty.py classes --runs 100 --csv small.csv

Tables are printed as Markdown. The labels are drawn with seeds on which no method was
tuned.
"""

import argparse
import csv
import os
import platform
import sys
from datetime import UTC, datetime
from itertools import product
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import scipy
from scipy.special import expit, logit, softmax

import calibrant as cb
from calibrant.calibrators.kernel_error import KernelError
from calibrant.calibrators.smooth import smooth_fit
from calibrant.core.sample import BinarySample
from calibrant.experiments.synthetic import (
    PAPER_SHAPES,
    mixing_amount,
    predictions,
    sample,
)
from calibrant.numerics.clustered_test import smooth_p_value
from calibrant.numerics.posterior_limits import PosteriorLimits

FIRST_SEED = 20_000
LEVELS = (0.5, 0.8, 0.9, 0.95)
CASES = [("any", 0.0), *product(PAPER_SHAPES, (0.025, 0.05, 0.1))]
DISTRIBUTIONS = {
    "uniform": (1.0, 1.0),
    "Beta(0.5, 2)": (0.5, 2.0),
    "Beta(0.3, 5)": (0.3, 5.0),
    "Beta(0.2, 0.2)": (0.2, 0.2),
    "Beta(5, 1)": (5.0, 1.0),
}


def over_confident(p):
    return expit(0.5 * logit(p))


def beta(a, b):
    return lambda rng, n: np.clip(rng.beta(a, b, n), 1e-6, 1.0 - 1e-6)


def few_positives(rng, n):
    """Return predictions that expect 10 events."""
    return beta(1.0, n / 10.0 - 1.0)(rng, n)


def exact_ends(rng, n):
    """Return predictions of which one in five is exactly 0 or 1."""
    p = beta(1.0, 1.0)(rng, n)
    return np.where(rng.random(n) < 0.2, np.round(p), p)


SMALL_CASES = {  # how predictions are drawn, and the true map
    "calibrated": (beta(1.0, 1.0), lambda p: p),
    "calibrated, rare": (beta(1.0, 19.0), lambda p: p),
    "shifted": (beta(1.0, 1.0), lambda p: expit(logit(p) - 0.7)),
    "over-confident": (beta(0.5, 0.5), over_confident),
    "under-confident": (beta(2.0, 2.0), lambda p: expit(2.5 * logit(p))),
    "rare, doubled": (beta(1.0, 19.0), lambda p: 0.5 * p),
    "calibrated, 10 events": (few_positives, lambda p: p),
    "10 events, doubled": (few_positives, lambda p: 0.5 * p),
    "over-confident, 9 levels": (
        lambda rng, n: rng.integers(1, 10, n) / 10.0,
        over_confident,
    ),
    "wrong certainties": (exact_ends, lambda p: np.clip(p, 0.05, 0.95)),
}
CLASS_CASES = {
    "calibrated": (0.0, 0.0),
    "over-confident": (0.0, 0.25),
    "under-confident": (0.25, 0.0),
}
"""How far predictions, and true probabilities of classes, are moved to equal ones."""
SMALL_METHODS = ("smooth", "es15", "es-sweep", "ew15", "kce")
SMALL_COLUMNS = (
    "n",
    "case",
    "method",
    "runs",
    "held",
    "standard error",
    "mean width",
    "width 0",
    "estimate outside",
)
METHOD_COLUMNS = SMALL_COLUMNS[:6]
CHECKED = 5
"""So many runs of each case evaluate all methods even where this cannot matter."""
TESTS = ("smooth", "kce", "spiegelhalter", "hosmer-lemeshow", "cox")


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


def head(*cells):
    row(*cells)
    row(*["---"] * len(cells))


def percent(values):
    return f"{100 * np.mean(values):.1f}"


def study_size(draws, sizes=(300, 1000, 10_000)):
    """How often the smooth test rejects calibrated predictions."""
    head("predictions", "n", "at 10 %", "at 5 %", "at 1 %")
    for (name, (a, b)), n in product(DISTRIBUTIONS.items(), sizes):
        rng = np.random.default_rng(FIRST_SEED)
        found = []
        for _ in range(draws):
            p = rng.beta(a, b, n)
            found.append(cb.calibration_test(rng.random(n) < p, p).pvalue)
        row(name, n, *[percent(np.array(found) <= at) for at in (0.1, 0.05, 0.01)])


def study_power(draws, sizes=(1000, 3000, 10_000)):
    """How often miscalibrated predictions are rejected at 5 %."""
    head("shape", "error", "n", *TESTS)
    errors = {1000: (0.025, 0.05), 3000: (0.0125, 0.025), 10_000: (0.0125,)}
    for n in sizes:
        for error, shape in product(errors[n], PAPER_SHAPES):
            rng = np.random.default_rng(FIRST_SEED)
            amount = mixing_amount(shape, error)
            found = {method: [] for method in TESTS}
            for _ in range(draws):
                c = rng.random(n)
                p = predictions(shape, amount, c)
                y = rng.random(n) < c
                for method in TESTS:
                    options = {"n_resamples": 199} if method == "kce" else {}
                    test = cb.calibration_test(y, p, method=method, **options)
                    found[method].append(test.pvalue <= 0.05)
            row(shape, error, n, *[f"{100 * np.mean(v):.0f}" for v in found.values()])


def known(shape, error, n, k):
    """Return sample `k` of a case; the labels of all cases differ."""
    seed = FIRST_SEED + 1000 * CASES.index((shape, error)) + k
    p, y, c = sample("square" if shape == "any" else shape, error, n, seed)
    return BinarySample(p, y), c


def study_coverage(seeds, sizes=(1000, 3000, 10_000)):
    """How often intervals of smooth contain the true error, for alpha 1 and 2."""
    levels = [f"{100 * level:.0f} %" for level in LEVELS]
    squared = [f"squared, {level}" for level in levels]
    head("n", "shape", "error", *levels, "width at 90 %", *squared)
    kept = {}
    for n, (shape, error) in product(sizes, CASES):
        found = [held(shape, error, n, k) for k in range(seeds)]
        means = np.mean(found, axis=0)
        kept[n, shape, error] = means
        rates = [f"{100 * share:.0f}" for share in means]
        row(n, shape, error, *rates[:4], f"{means[4]:.4f}", *rates[5:])
    own = [means for (_, _, error), means in kept.items() if error > 0.0]
    for name, means in (("mean", np.mean(own, axis=0)), ("least", np.min(own, axis=0))):
        rates = (100 * means).round(1)
        row("all", name, "> 0", *rates[:4], "", *rates[5:])


def held(shape, error, n, k):
    """Whether intervals of all levels contain the true error, and the 90 % width."""
    rows, c = known(shape, error, n, k)
    fit, tests, found = smooth_fit(rows), [smooth_p_value(rows)], []
    tails = [0.5 * (1.0 - level) for level in LEVELS]
    levels = (*tails, *(1.0 - tail for tail in tails))
    for alpha in (1.0, 2.0):
        value = fit.error(rows, alpha=alpha, debias=False)
        truth = float(np.mean(np.abs(c - rows.p) ** alpha))
        drawn = fit.curve.error_quantiles(
            levels, n_draws=500, random_state=k, alpha=alpha
        )
        intervals = [
            PosteriorLimits(level, low, high, tests).interval(value, slice(None))
            for level, low, high in zip(LEVELS, *drawn.reshape(2, -1, 1), strict=True)
        ]
        found += [low - 1e-12 <= truth <= high for low, high in intervals]
        found += [intervals[2][1] - intervals[2][0]]
    return found[:-1]


def study_bands(seeds, sizes=(1000, 3000, 10_000)):
    """Coverage of point-wise 90 % bands over rows, of simultaneous ones over maps."""
    head("n", "shape", "error", "point-wise", "simultaneous", "middle 99 %")
    for n, (shape, error) in product(sizes, CASES):
        found = []
        for k in range(seeds):
            rows, c = known(shape, error, n, k)
            fit = smooth_fit(rows)
            step = max(n // 500, 1)
            p, c = rows.p[::step], c[::step]
            held = []
            for simultaneous in (False, True):
                low, high = fit.band(p, 0.9, simultaneous=simultaneous)
                held.append((low <= c + 1e-12) & (c <= high + 1e-12))
            edge = max(p.size // 200, 1)
            found.append([held[0].mean(), held[1].all(), held[1][edge:-edge].all()])
        row(n, shape, error, *[percent(v) for v in zip(*found, strict=True)])


def study_small(runs, sizes=(20, 50, 100, 300, 1000, 10_000), *, methods, csv_file):
    """How often 90 % intervals contain the true error.

    The true error is the mean of abs(c(p) - p) over the drawn predictions; for kce, its
    squared kernel norm.
    """
    head(*SMALL_COLUMNS)
    methods = methods or SMALL_METHODS
    for n, case in product(sizes, SMALL_CASES):
        if (str(n), case) not in written_cases(csv_file):
            found = [small_run(case, n, k, methods) for k in range(runs)]
            write_coverage(n, case, methods, found, csv_file)


def study_methods(runs, sizes=(50, 100, 300, 1000, 10_000), *, methods, csv_file):
    """How often intervals of every method that prints one contain the true error.

    All methods but kce share the limits of smooth, widened to contain their own
    estimate. Where these limits contain the true error, so do all intervals; estimates
    of other methods are computed only where they do not, and in the first runs.
    """
    head(*METHOD_COLUMNS)
    known = (*cb.calibrator_names("binary"), "kce")
    methods = methods or [name for name in known if name != "smooth"]
    for n, case in product(sizes, SMALL_CASES):
        if (str(n), case) in written_cases(csv_file, METHOD_COLUMNS):
            continue
        held = np.mean([held_by(case, n, k, methods) for k in range(runs)], axis=0)
        errors = np.sqrt(held * (1.0 - held) / runs)
        each = zip(("smooth", *methods), held, errors, strict=True)
        lines = [(n, case, name, runs, percent(h), percent(e)) for name, h, e in each]
        write_lines(lines, csv_file)


def held_by(case, n, k, methods):
    """Return whether the interval of smooth, and of each method, holds the truth."""
    y, p, truth = drawn_rows(case, n, k, ("smooth", *methods))
    limits = cb.evaluate(y, p, methods="smooth", confidence=0.9).frame()
    held = against_truth(limits, truth[:1])[0, 0]
    value, low, high = (limits[name][0] for name in ("value", "low", "high"))
    shared = np.array([name != "kce" for name in methods])
    certain = shared & bool(held and low < value < high)
    found = certain.copy()
    asked = np.ones_like(certain) if k < CHECKED else ~certain
    if asked.any():
        names = [name for name, ask in zip(methods, asked, strict=True) if ask]
        frame = cb.evaluate(y, p, methods=names, confidence=0.9).frame()
        found[asked] = against_truth(frame, truth[1:][asked])[:, 0]
    if not found[certain].all():
        message = f"an interval is inside that of smooth: {case}, {n} rows, run {k}"
        raise AssertionError(message)
    return np.append(held, found)


def study_classes(runs, sizes=(300, 1000), *, methods, csv_file):
    """How often intervals do so for several classes, each with a straight true map.

    Maps of 100 classes take long, so that there are fewer runs of them.
    """
    head(*SMALL_COLUMNS)
    methods = methods or ("smooth", "es15")
    each = product(("top-label", "classwise"), (10, 100), sizes, CLASS_CASES)
    for task, n_classes, n, case in each:
        count = runs if task == "top-label" else 10 * runs // n_classes
        name = f"{task}, {n_classes} classes, {case}"
        if (str(n), name) not in written_cases(csv_file):
            asked = task, n_classes, case, n
            found = [class_run(*asked, k, methods) for k in range(count)]
            write_coverage(n, name, methods, found, csv_file)


def write_coverage(n, case, methods, found, csv_file):
    """Print and write the means of what runs found, one line for each method."""
    written, runs = [], len(found)
    for method, one in zip(methods, zip(*found, strict=True), strict=True):
        held, width, empty, outside = np.mean(one, axis=0)
        error = np.sqrt(held * (1.0 - held) / runs)
        cells = n, case, method, runs, percent(held), percent(error)
        written.append((*cells, f"{width:.3f}", percent(empty), percent(outside)))
    write_lines(written, csv_file)


def write_lines(lines, csv_file):
    """Print lines of a table, and append them to a file if there is one."""
    for line in lines:
        row(*line)
    if csv_file is not None:
        with Path(csv_file).open("a", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(lines)


def written_cases(csv_file, columns=SMALL_COLUMNS):
    """Return size and name of the cases in a file, which is started if it is new."""
    if csv_file is None:
        return set()
    if not Path(csv_file).exists():
        with Path(csv_file).open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerow(columns)
    with Path(csv_file).open(newline="", encoding="utf-8") as file:
        return {(line["n"], line["case"]) for line in csv.DictReader(file)}


def small_run(case, n, k, methods):
    """Return per method: covered, width, whether width is 0, estimate outside."""
    y, p, truth = drawn_rows(case, n, k, methods)
    found = cb.evaluate(y, p, methods=list(methods), confidence=0.9)
    return against_truth(found.frame(), truth)


def drawn_rows(case, n, k, methods):
    """Return labels and predictions of a run, and the true error for each method."""
    rng = np.random.default_rng([FIRST_SEED, list(SMALL_CASES).index(case), n, k])
    draw, true_map = SMALL_CASES[case]
    p = draw(rng, n)
    c = true_map(p)
    y = rng.random(n) < c
    truth = np.full(len(methods), np.abs(c - p).mean())
    if "kce" in methods:
        kernel = KernelError().fit_sample(BinarySample(p, c)).kernel
        norms = kernel.errors(p, c[np.newaxis], np.ones(n), debias=False)
        truth[np.array(methods) == "kce"] = norms[0]
    return y, p, truth


def class_run(task, n_classes, case, n, k, methods):
    """Return the same for drawn probabilities of classes."""
    place = list(CLASS_CASES).index(case)
    rng = np.random.default_rng([FIRST_SEED, n_classes, place, n, k])
    drawn = softmax(rng.normal(0.0, 1.5, (n, n_classes)), axis=1)
    p, c = ((1.0 - part) * drawn + part / n_classes for part in CLASS_CASES[case])
    y = (rng.random((n, 1)) > np.cumsum(c, axis=1)).sum(axis=1).clip(0, n_classes - 1)
    gaps = np.abs(c - p)
    if task == "top-label":
        gaps = gaps[np.arange(n), p.argmax(axis=1)]
    options = {"task": task, "methods": list(methods), "confidence": 0.9}
    return against_truth(cb.evaluate(y, p, **options).frame(), gaps.mean())


def against_truth(frame, truth):
    """Compare intervals with the truth, and with their own estimate."""
    value, low, high = (frame[name] for name in ("value", "low", "high"))
    held = (low - 1e-12 <= truth) & (truth <= high)
    outside = (value < low) | (value > high)
    return np.stack([held, high - low, high <= low, outside], axis=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parts = ["size", "power", "coverage", "bands", "small", "methods", "classes"]
    parser.add_argument("part", choices=parts)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="*")
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--csv")
    given = parser.parse_args()
    print(f"{' '.join(sys.argv)}, {datetime.now(UTC):%Y-%m-%d}:", end=" ")
    print(f"calibrant {cb.__version__}, Python {platform.python_version()},", end=" ")
    print(f"NumPy {np.__version__}, SciPy {scipy.__version__}\n")
    sizes = {"sizes": tuple(given.sizes)} if given.sizes else {}
    study = globals()[f"study_{given.part}"]
    if given.part in {"small", "methods", "classes"}:
        study(given.runs, **sizes, methods=given.methods, csv_file=given.csv)
        return
    study(given.draws if given.part in {"size", "power"} else given.seeds, **sizes)


if __name__ == "__main__":
    main()
