"""Check whether the probabilities of `compare` are reliable.

Two models predict the same rows. If their true errors are equal, the probability
that one is better should rarely be extreme; if they differ, it should be extreme often.
Run ``python benchmarks/study_comparison.py --method es15``.
"""

from __future__ import annotations

import argparse
import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from scipy.special import expit, logit

import calibrant as cb

EXTREME = 0.05


def tilted(p, constant):
    """Return predictions whose logits are shifted by a constant."""
    return expit(constant + logit(np.clip(p, 1e-9, 1.0 - 1e-9)))


def one_feature(rng, n):
    p = rng.beta(0.6, 0.6, n)
    return rng.random(n) < p, p


def two_features(rng, n):
    """Return labels, and calibrated predictions from each of two features."""
    x = rng.beta(0.4, 0.4, (2, n))
    return rng.random(n) < x.mean(axis=0), *((feature + 0.5) / 2.0 for feature in x)


def independent(rng, n, constants):
    y, a, b = two_features(rng, n)
    return y, tilted(a, constants[0]), tilted(b, constants[1])


def same_feature(rng, n, constants):
    y, p = one_feature(rng, n)
    return y, tilted(p, constants[0]), tilted(p, constants[1])


def rounded(rng, n):
    p = rng.random(n)
    return rng.random(n) < p, p, (np.floor(3.0 * p) + 0.5) / 3.0


SETTINGS = {
    "both calibrated, independent": (independent, [(0.0, 0.0)]),
    "both tilted, independent": (independent, [(0.4, 0.4)]),
    "mirrored, 0.02": (same_feature, [(0.15, -0.15)]),
    "mirrored, 0.08": (same_feature, [(0.6, -0.6)]),
    "calibrated, 3 values against all": (rounded, []),
    "0 against 0.04": (same_feature, [(0.0, 0.3)]),
    "0.02 against 0.04": (same_feature, [(0.15, 0.3)]),
    "0 against 0.04, independent": (independent, [(0.0, 0.18)]),
}


def study(name, options, runs, rows):
    draw, arguments = SETTINGS[name]
    found = []
    for seed in range(runs):
        y, a, b = draw(np.random.default_rng(5000 + seed), rows, *arguments)
        comparison = cb.compare(y, {"a": a, "b": b}, **options)
        value = {s.model: s.estimate.value for s in comparison.standings}
        (pair,) = comparison.differences
        better = pair.probability if pair.model_a == "a" else 1.0 - pair.probability
        found.append((value["a"], value["b"], better))
    a, b, better = np.array(found).T
    low, high = np.mean(better < EXTREME), np.mean(better > 1.0 - EXTREME)
    shares = " | ".join(f"{100 * share:.1f} %" for share in (low, high, low + high))
    means = f"{a.mean():.3f}, {b.mean():.3f}"
    print(f"| `{options['method']}` | {name} | {means} | {shares} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--method", default="smooth")
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--resamples", type=int, default=200)
    given = parser.parse_args()
    options = {"method": given.method, "n_resamples": given.resamples}
    print("| method | models | mean estimates | a worse | a better | either |")
    print("| --- | --- | --- | ---: | ---: | ---: |")
    for name in SETTINGS:
        study(name, options, given.runs, given.rows)


if __name__ == "__main__":
    main()
