"""Record the training losses of pwlf, for the tests of pl-de and pl-de2.

Rebuild ``pwlf.json`` with ``make golden``, after ``make bench`` has installed pwlf.
Takes about two minutes.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import calibrant as cb

GOLDEN = Path(__file__).with_name("pwlf.json")
SAMPLES = [
    ("square", 0.08, 300, 0),
    ("stairs", 0.08, 300, 1),
    ("beta2", 0.08, 500, 2),
    ("stairs", 0.05, 1000, 0),
    ("sqrt", 0.02, 200, 3),
    ("beta1", 0.10, 400, 4),
]
PIECES = {1: (2, 3, 4, 5), 2: (2, 3, 4)}
FURTHER = [
    (SAMPLES[0], 1, 6),
    (SAMPLES[1], 1, 6),
    (SAMPLES[4], 1, 7),
    (SAMPLES[4], 2, 5),
]


def main():
    import pwlf

    cases = [
        (sample, degree, pieces)
        for degree, counts in PIECES.items()
        for pieces in counts
        for sample in SAMPLES
    ]
    recorded = []
    for (shape, error, n, seed), degree, pieces in cases + FURTHER:
        p, y, _ = cb.experiments.synthetic.sample(shape, error, n, seed)
        np.random.seed(0)  # pwlf draws from the global generator
        model = pwlf.PiecewiseLinFit(p, y, degree=degree)
        model.fit(pieces)
        data = {"shape": shape, "error": error, "n": n, "seed": seed}
        fit = {"degree": degree, "pieces": pieces, "squares": float(model.ssr)}
        recorded.append(data | fit)
    GOLDEN.write_text(json.dumps(recorded, indent=0) + "\n", encoding="ascii")


if __name__ == "__main__":
    main()
