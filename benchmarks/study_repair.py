"""How often calibrated samples are repaired, and what harm that does.

Predictions come from five beta distributions, or with ``--classes`` from five Dirichlet
distributions of three to ten classes, and labels from the predictions, so that every
repair is harm: the expected log-loss that it adds is known up to 20,000 drawn
predictions. The seeds took no part in choosing anything.

Run ``python benchmarks/study_repair.py [--samples 1000] [--classes] [--out FILE.csv]``.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
from scipy.special import rel_entr

import calibrant as cb

SHAPES = ((1, 1), (0.3, 0.3), (0.5, 3), (5, 1), (2, 2))
CLASS_SHAPES = ((0.1, 3), (0.3, 5), (1, 10), (0.3, 10), (2, 3))
"""Parameters of Dirichlet distributions, the same for all classes, and classes."""
SIZES = (200, 500, 1000, 2000)
NEW_ROWS = 20_000
FIRST_SEED = 31_000


def harm_of_event(number):
    """Return size, shape, whether the sample was changed, and the log-loss added."""
    rng = np.random.default_rng(FIRST_SEED + number)
    shape = SHAPES[number % len(SHAPES)]
    n = SIZES[number % len(SIZES)]
    p = rng.beta(*shape, n)
    calibrator = cb.make_calibrator().fit(p, rng.random(n) < p)
    new_p = rng.beta(*shape, NEW_ROWS)
    repaired = calibrator.transform(new_p)
    added = rel_entr(new_p, repaired) + rel_entr(1.0 - new_p, 1.0 - repaired)
    return n, shape, calibrator.certificate_.changed, float(added.mean())


def harm_of_classes(number):
    """Return the same of a sample of several classes."""
    rng = np.random.default_rng(FIRST_SEED + number)
    shape = CLASS_SHAPES[number % len(CLASS_SHAPES)]
    n = SIZES[number % len(SIZES)]
    prob = rng.dirichlet(np.full(shape[1], shape[0]), n + NEW_ROWS)
    below = prob[:n].cumsum(axis=1)[:, :-1]
    label = (rng.random((n, 1)) > below).sum(axis=1)
    every = range(shape[1])
    calibrator = cb.make_calibrator("auto", labels=every).fit(prob[:n], label)
    added = rel_entr(prob[n:], calibrator.transform(prob[n:])).sum(axis=1)
    return n, shape, calibrator.certificate_.changed, float(added.mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--classes", action="store_true", help="several classes")
    parser.add_argument("--out", help="file for one line per sample, .csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    harm_of = harm_of_classes if options.classes else harm_of_event
    results = [harm_of(number) for number in range(options.samples)]
    if options.out:
        names = "concentration,classes" if options.classes else "a,b"
        with open(options.out, "w", encoding="utf-8") as file:  # noqa: PTH123
            print(f"n,{names},changed,harm", file=file)
            for n, (a, b), changed, harm in results:
                print(f"{n},{a},{b},{int(changed)},{harm:.3e}", file=file)
    print("| rows | samples | left as they are | mean log-loss added | its error |")
    print("|---:|---:|---:|---:|---:|")
    for size in (*SIZES, "all"):
        part = [r for r in results if size in ("all", r[0])]
        left = 100 * np.mean([not changed for *_, changed, _ in part])
        harm = np.array([r[-1] for r in part])
        error = harm.std() / np.sqrt(len(part))
        print(
            f"| {size} | {len(part)} | {left:.1f} % | {harm.mean():.1e} | {error:.0e} |"
        )


if __name__ == "__main__":
    main()
