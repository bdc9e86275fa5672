"""Class probabilities from scores, and temperature.

Tempering turns a row of logits into q = (1 - u) softmax(b logits) + u / k. The share u
of the uniform distribution keeps log q of predictions that are far too certain within
what n labels can tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.optimize import minimize

from calibrant.core.probabilities import row_sums, softmax
from calibrant.numerics.links import CLIP

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector, Scale

MIN_INVERSE = 1e-6
"""Smallest inverse temperature, in units of one over the spread of the logits."""
MAX_STEPS = 200
FLAT = 1e-11
"""Slope of the loss by the logarithm of the temperature that counts as 0."""

INVERSE_SPREAD = 0.5
"""Scale of the Cauchy prior of the logarithm of the inverse temperature: temperatures
near 1 are likely, but scores of any size may be given as logits."""
MIN_EVENTS = 0.2
"""Labels that the uniform distribution explains at least."""
TYPICAL_UNIFORM = 0.1
"""Mean of the exponential prior of the share."""
MAX_UNIFORM = 0.5
LOG_INVERSE = (-250.0, 6.0)
LARGE_UNIFORM = 0.05
"""Where a search starts besides the smallest share, as far too certain predictions
need."""


def log_softmax(scores: FloatMatrix) -> FloatMatrix:
    """Return the logarithm of the softmax of each row, safe at any size of scores."""
    if scores.shape[1] == 2:  # noqa: PLR2004  (maxima and sums of pairs are slow)
        total = np.logaddexp(scores[:, 0], scores[:, 1])
        return np.asarray(scores - total[:, np.newaxis])
    shifted = scores - scores.max(axis=1, keepdims=True)
    total = np.exp(shifted).sum(axis=1, keepdims=True)
    return np.asarray(shifted - np.log(total))


def class_probabilities(scores: FloatMatrix, scale: Scale) -> FloatMatrix:
    """Return probabilities from probabilities or logits that a user gave.

    Probabilities that sum to 1 but for rounding stay as they are.

    Examples
    --------
    >>> class_probabilities(np.array([[0.7, 0.1, 0.2], [0.333, 0.333, 0.333]]), "prob")
    array([[0.7       , 0.1       , 0.2       ],
           [0.33333333, 0.33333333, 0.33333333]])
    """
    if scale == "logit":
        return softmax(scores)
    total = row_sums(scores)
    rounded = np.abs(total - 1.0) <= scores.shape[1] * CLIP
    return np.asarray(scores / np.where(rounded, 1.0, total))


def log_probabilities(
    scores: FloatMatrix, scale: Scale, floor: float = CLIP
) -> FloatMatrix:
    """Return logarithms of `class_probabilities`, those below `floor` raised to it."""
    if scale == "logit":
        return log_softmax(scores)
    return np.asarray(np.log(np.maximum(class_probabilities(scores, scale), floor)))


def half_resolution(prob: FloatMatrix) -> float:
    """Return half of the smallest prediction above 0, which 0 may be rounded from."""
    return max(CLIP, 0.5 * float(prob[prob > 0.0].min()))


def logits_of(scores: FloatMatrix, scale: Scale) -> FloatMatrix:
    """Return logits, up to a constant per row, from validated scores."""
    return scores if scale == "logit" else log_probabilities(scores, scale)


def centred(log_prob: FloatMatrix) -> FloatMatrix:
    """Return logits with mean 0 in each row: the same whatever constant was added."""
    return np.asarray(log_prob - log_prob.mean(axis=1, keepdims=True))


def weight_shares(weight: FloatVector | None, n: int) -> FloatVector:
    """Return each row's share of the total weight."""
    return np.full(n, 1.0 / n) if weight is None else weight / weight.sum()


def mean_log_loss(
    log_prob: FloatMatrix, column: IntVector, share: FloatVector
) -> float:
    """Return the mean of minus the log-probability of the true class."""
    return float(-(share @ log_prob[np.arange(column.size), column]))


def inverse_temperature(
    logits: FloatMatrix, column: IntVector, share: FloatVector
) -> float:
    """Return the b > 0 for which softmax(b * logits) has the smallest log-loss.

    Newton steps on the slope of the loss, which rises with b, kept within a bracket.
    Where all rows are right with a margin the loss falls for ever; the search then
    ends where it is flat. Where no b above 0 helps, b is nearly 0, but keeps the order
    of the classes. `column` is the true class, `share` each row's share of the weight.
    """
    spread = logits - logits.max(axis=1, keepdims=True)
    size = float(np.sqrt(share @ np.square(spread).mean(axis=1)))
    if size == 0.0:
        return 1.0
    spread /= size
    own = float(share @ spread[np.arange(column.size), column])
    low, high, b = MIN_INVERSE, np.inf, size
    for _ in range(MAX_STEPS):
        raised = b * spread
        np.exp(raised, out=raised)
        total = raised.sum(axis=1)
        raised *= spread
        mean = raised.sum(axis=1) / total
        square = np.einsum("ij,ij->i", raised, spread) / total
        slope, curvature = float(share @ mean) - own, float(share @ (square - mean**2))
        low, high = (low, b) if slope > 0.0 else (b, high)
        if abs(slope) * b <= FLAT or high <= low * (1.0 + 1e-15):
            break
        step = b - slope / curvature if curvature > 0.0 else np.inf
        if not low < step < high:
            step = 4.0 * b if np.isinf(high) else np.sqrt(low * high)
        b = step
    return float(b / size)


def tempered_inputs(logits: FloatMatrix, inverse: float, uniform: float) -> FloatMatrix:
    """Return logarithms of probabilities after a temperature, mixed with uniform."""
    mixed = (1.0 - uniform) * softmax(inverse * logits) + uniform / logits.shape[1]
    return np.asarray(np.log(mixed))


def tempering_loss(
    point: FloatVector, logits: FloatMatrix, column: IntVector, weight: FloatVector
) -> tuple[float, FloatVector]:
    """Return minus the log-density of log inverse temperature and share; slopes."""
    inverse, uniform = np.exp(point)
    rows, even = np.arange(column.size), 1.0 / logits.shape[1]
    prob = softmax(inverse * logits)
    true = prob[rows, column]
    mixed = (1.0 - uniform) * true + uniform * even
    mean = np.einsum("ij,ij->i", prob, logits)
    rise = true * (logits[rows, column] - mean)
    push = weight / mixed
    square = 1.0 + (point[0] / INVERSE_SPREAD) ** 2
    by_inverse = 2.0 * point[0] / INVERSE_SPREAD**2 / square
    by_inverse -= inverse * (1.0 - uniform) * float(push @ rise)
    by_uniform = uniform * (float(push @ (true - even)) + 1.0 / TYPICAL_UNIFORM)
    surprise = float(np.log(square)) + uniform / TYPICAL_UNIFORM
    loss = surprise - float(weight @ np.log(mixed))
    return loss, np.array([by_inverse, by_uniform])


def fit_tempering(
    logits: FloatMatrix, column: IntVector, weight: FloatVector
) -> tuple[float, float, float]:
    """Return the most probable inverse temperature and share, and their loss.

    The loss is minus the log-density, with a Cauchy prior of the log temperature and
    an exponential one of the share. Of each row, `column` is the true class and
    `weight` how many rows it stands for.
    """
    total = float(weight.sum())
    bounds = [LOG_INVERSE, (np.log(min_uniform(total)), np.log(MAX_UNIFORM))]
    rows = logits, column, weight
    scaled = np.log(inverse_temperature(logits, column, weight / total))
    starts = ((0.0, bounds[1][0]), (scaled, np.log(LARGE_UNIFORM)))
    tried = [
        minimize(tempering_loss, start, rows, "L-BFGS-B", jac=True, bounds=bounds)
        for start in starts
    ]
    best = min(tried, key=lambda found: float(found.fun))
    inverse, uniform = np.exp(best.x).tolist()
    return inverse, uniform, float(best.fun)


def min_uniform(total: float) -> float:
    """Return the smallest share of the uniform distribution, for `total` rows."""
    return MIN_EVENTS / (MIN_EVENTS + total)
