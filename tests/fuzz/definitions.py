"""Definitions of docs/methods.md, written down once more, plainly and slowly."""

from bisect import bisect_right
from fractions import Fraction
from math import fsum, log, log1p

import numpy as np

EPS = 2.0**-52
TIE = 1e-15


def width_edges(bins):
    """Return the inner edges of bins of equal width."""
    return [i / bins for i in range(1, bins)]


def size_edges(p, bins):
    """Return the inner edges of bins of equal size: the first prediction of each."""
    return [float(part[0]) for part in np.array_split(np.sort(p), bins)[1:]]


def rows_by_bin(p, edges):
    """Return the row numbers of each bin that has any; bins are closed on the left."""
    found = {}
    for row, value in enumerate(p.tolist()):
        found.setdefault(bisect_right(edges, value), []).append(row)
    return [np.array(found[bin_]) for bin_ in sorted(found)]


def binned_error(p, y, weight, edges, alpha):
    """Return the weighted mean over bins of abs(mean y - mean p) ** alpha."""
    parts = []
    for rows in rows_by_bin(p, edges):
        total = fsum(weight[rows])
        gap = fsum(weight[rows] * (y[rows] - p[rows])) / total if total else 0.0
        parts.append(total * abs(gap) ** alpha)
    return fsum(parts) / fsum(weight)


def pooled(y, weight):
    """Return isotonic regression by pooling adjacent violators, in exact fractions."""
    blocks = []
    for label, own in zip(y, weight, strict=True):
        blocks.append([own * label, own, 1])
        while len(blocks) > 1 and blocks[-2][0] * blocks[-1][1] >= (
            blocks[-1][0] * blocks[-2][1]
        ):
            last = blocks.pop()
            blocks[-1] = [a + b for a, b in zip(blocks[-1], last, strict=True)]
    return [label / own for label, own, rows in blocks for _ in range(rows)]


def isotonic(p, y, count):
    """Return first prediction, last prediction and value of each tie, ascending.

    Weights are counts. Predictions less than 1e-15 above the first of a tie are part
    of it.
    """
    ties = []
    for value, label, own in sorted(
        zip(p.tolist(), y.astype(int).tolist(), count.tolist(), strict=True)
    ):
        if own == 0:
            continue
        if not ties or value - ties[-1][0] >= TIE:
            ties.append([value, value, 0, 0])
        ties[-1][1] = value
        ties[-1][2] += own
        ties[-1][3] += own * label
    values = pooled(
        [Fraction(tie[3], tie[2]) for tie in ties], [Fraction(tie[2]) for tie in ties]
    )
    return [
        (first, last, float(value))
        for (first, last, _, _), value in zip(ties, values, strict=True)
    ]


def isotonic_at(p, y, count):
    """Return the isotonic value of each row."""
    ties = isotonic(p, y, count)
    firsts = [first for first, _, _ in ties]
    return np.array([ties[bisect_right(firsts, v) - 1][2] for v in p.tolist()])


def log_loss(p, y):
    """Return minus the log of the probability given to what happened, clipped."""
    held = min(max(p, EPS), 1.0 - EPS)
    return -log(held) if y else -log1p(-held)


def mean_score(name, p, y, weight):
    """Return the weighted mean Brier score or log-loss."""
    pairs = zip(p.tolist(), y.tolist(), strict=True)
    each = [(a - b) ** 2 if name == "brier" else log_loss(a, b) for a, b in pairs]
    return fsum(weight * np.array(each)) / fsum(weight)
