"""A conformance suite for calibration errors, ours and anybody's.

Each case is a property that any estimate of a calibration error should have, whatever
its method: inputs at the edges of the domain, known errors of few rows and of few
distinct predictions, array layouts, weights, and input that must be refused.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.core.array_types import FloatVector

Evaluator: TypeAlias = "Callable[..., float]"
"""Called as ``evaluator(y, p)`` or ``evaluator(y, p, weight)``; gives the raw error."""

CLOSE = 1e-9
FLOAT32_CLOSE = 1e-3


@dataclass(frozen=True)
class Finding:
    """How an evaluator did in one case.

    Attributes
    ----------
    case : str
        Name of the case.
    passed : bool
        Whether it did as it should.
    detail : str
        What it did instead, empty where it passed.
    """

    case: str
    passed: bool
    detail: str = ""

    def __str__(self) -> str:
        return f"{self.case}: {'passed' if self.passed else self.detail}"


def _example(seed: int = 7, n: int = 400) -> tuple[FloatVector, FloatVector]:
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(0.7, 0.9, n), 2)  # ties, and some exactly 0 and 1
    y = (rng.random(n) < p**1.3).astype(np.float64)
    return y, p


def _expect(found: float, wanted: float, close: float = CLOSE) -> str:
    return "" if abs(found - wanted) <= close else f"gave {found:.6g}, not {wanted:.6g}"


def zero_and_one(evaluate: Evaluator) -> str:
    """Certain predictions, half of them wrong at each end: the error is 1/2."""
    p = np.repeat([0.0, 1.0], 100)
    y = np.tile([0.0, 1.0], 100)
    return _expect(evaluate(y, p), 0.5)


def one_inside_the_last_bin(evaluate: Evaluator) -> str:
    """Move p = 1 to the number just below: it has no bin of its own to lose."""
    p = np.repeat([0.95, 1.0], 100)
    y = np.repeat([1.0, 1.0, 0.0], [100, 50, 50])
    return _expect(evaluate(y, np.minimum(p, np.nextafter(1.0, 0.0))), evaluate(y, p))


def on_inner_edges(evaluate: Evaluator) -> str:
    """Put predictions on i/15 and i/10: all go into the bin on the same side."""
    rng = np.random.default_rng(3)
    edges = np.concatenate([np.arange(1, 15) / 15, np.arange(1, 10) / 10])
    p = np.repeat(np.concatenate([edges, edges - 0.02, edges + 0.02]), 20)
    y = (rng.random(p.size) < p).astype(np.float64)
    found = evaluate(y, p)
    sides = (evaluate(y, np.nextafter(p, 1.0)), evaluate(y, np.nextafter(p, 0.0)))
    return min((_expect(found, wanted) for wanted in sides), key=len)


def row_order(evaluate: Evaluator) -> str:
    """Shuffle the rows: their order does not matter, ties or not."""
    y, p = _example()
    order = np.random.default_rng(1).permutation(p.size)
    return _expect(evaluate(y[order], p[order]), evaluate(y, p))


def constant_prediction(evaluate: Evaluator) -> str:
    """One prediction for all rows: the error is its distance to the base rate."""
    y = np.repeat([1.0, 0.0], [60, 140])
    return _expect(evaluate(y, np.full(200, 0.4)), 0.1)


def one_class_only(evaluate: Evaluator) -> str:
    """Labels all 0: every prediction is too high, by itself."""
    p = np.linspace(0.0, 1.0, 201)
    return _expect(evaluate(np.zeros(201), p), 0.5)


def separable(evaluate: Evaluator) -> str:
    """Certain and right: no error."""
    y = np.repeat([0.0, 1.0], 100)
    return _expect(evaluate(y, y), 0.0)


def one_row(evaluate: Evaluator) -> str:
    """Take a single row: it is off by its distance to its label."""
    return _expect(evaluate(np.array([1.0]), np.array([0.7])), 0.3)


def five_values(evaluate: Evaluator) -> str:
    """Five distinct predictions, each off by 0.1, as rounded confidences are."""
    values = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    p = np.repeat(values, 50)
    share = np.repeat(values - 0.1, 50)
    y = (np.tile(np.arange(50), 5) < np.round(share * 50)).astype(np.float64)
    return _expect(evaluate(y, p), 0.1)


STEEP, FLAT, SHIFTED = (3.0, 0.0), (0.1, 0.0), (1.0, -1.5)
"""Slope and shift on the logit of maps for predictions that are under-confident,
over-confident, or too high. Mean distances to the diagonal are 0.12 to 0.27."""

ROWS = (50, 100, 200, 300)
ROWS_OF_LEVELS = {2: 60, 3: 60, 4: 120, 5: 300}


def _even_labels(c: FloatVector) -> FloatVector:
    """Return labels whose sum over the first rows is never 1/2 off its expectation."""
    return np.diff(np.floor(np.cumsum(c) + 0.5), prepend=0.0)


def _near_the_truth(
    evaluate: Evaluator, p: FloatVector, line: tuple[float, float]
) -> str:
    """Compare an estimate with the known error, within two of its standard errors.

    A mean of labels with probabilities c has the variance mean(c (1 - c)) / n, and so
    has the error where all predictions are too high or all too low.
    """
    slope, shift = line
    odds = (p / (1.0 - p)) ** slope * np.exp(shift)
    c = odds / (1.0 + odds)
    truth = float(np.abs(c - p).mean())
    tolerance = 2.0 * float(np.sqrt((c * (1.0 - c)).mean() / p.size))
    different = _expect(evaluate(_even_labels(c), p), truth, tolerance)
    return different and f"{different} +- {tolerance:.2g} on {p.size} rows"


def _maps(evaluate: Evaluator, line: tuple[float, float]) -> str:
    """Look at few rows whose predictions are all different."""
    found = (_near_the_truth(evaluate, (np.arange(n) + 0.5) / n, line) for n in ROWS)
    return next(filter(None, found), "")


def _levels(evaluate: Evaluator, line: tuple[float, float]) -> str:
    """Look at few rows with two to five distinct predictions."""
    levels = {k: np.linspace(0.2, 0.8, k) for k in ROWS_OF_LEVELS}
    found = (
        _near_the_truth(evaluate, np.repeat(levels[k], n // k), line)
        for k, n in ROWS_OF_LEVELS.items()
    )
    return next(filter(None, found), "")


def steep_map(evaluate: Evaluator) -> str:
    """Take 50 to 300 rows of under-confident predictions: the error is found."""
    return _maps(evaluate, STEEP)


def flat_map(evaluate: Evaluator) -> str:
    """Take 50 to 300 rows of over-confident predictions: the error is found."""
    return _maps(evaluate, FLAT)


def shifted_map(evaluate: Evaluator) -> str:
    """Take 50 to 300 rows of predictions that are too high: the error is found."""
    return _maps(evaluate, SHIFTED)


def steep_levels(evaluate: Evaluator) -> str:
    """Take two to five distinct predictions, under-confident: the error is found."""
    return _levels(evaluate, STEEP)


def flat_levels(evaluate: Evaluator) -> str:
    """Take two to five distinct predictions, over-confident: the error is found."""
    return _levels(evaluate, FLAT)


def shifted_levels(evaluate: Evaluator) -> str:
    """Take two to five distinct predictions that are too high: the error is found."""
    return _levels(evaluate, SHIFTED)


def zero_weight(evaluate: Evaluator) -> str:
    """Give rows weight 0: they might as well not be there."""
    y, p = _example()
    weight = (np.arange(p.size) % 3 > 0).astype(np.float64)
    used = weight > 0
    return _expect(evaluate(y, p, weight), evaluate(y[used], p[used], weight[used]))


def repeated_rows(evaluate: Evaluator) -> str:
    """Two copies of all rows change nothing in what is estimated."""
    y, p = np.tile(_example(), 2)
    weight = np.ones(p.size // 2)
    return _expect(
        evaluate(y[: weight.size], p[: weight.size], 2 * weight), evaluate(y, p)
    )


def huge_weights(evaluate: Evaluator) -> str:
    """Equal weights of 1e12 are counts of a very large sample: still finite."""
    y, p = _example()
    found = evaluate(y, p, np.full(p.size, 1e12))
    return "" if 0.0 <= found <= 1.0 else f"gave {found:.6g}"


def single_precision(evaluate: Evaluator) -> str:
    """float32 predictions give nearly the same."""
    y, p = _example()
    q = 0.01 + 0.97 * p + 0.003  # off the edges of bins, where rounding decides
    single = q.astype(np.float32)
    return _expect(evaluate(y, single), evaluate(y, q), FLOAT32_CLOSE)


def big_endian(evaluate: Evaluator) -> str:
    """Arrays read from foreign files have another byte order."""
    y, p = _example()
    return _expect(evaluate(y.astype(">f8"), p.astype(">f8")), evaluate(y, p))


def read_only(evaluate: Evaluator) -> str:
    """Arrays that must not be written to are left as they are."""
    y, p = _example()
    before = evaluate(y.copy(), p.copy())
    y.flags.writeable = p.flags.writeable = False
    return _expect(evaluate(y, p), before)


def strided(evaluate: Evaluator) -> str:
    """Every other entry of a larger array."""
    y, p = _example()
    wide = np.stack([p, np.zeros_like(p)], axis=1)
    return _expect(evaluate(y, wide[:, 0]), evaluate(y, p))


def _refuses(evaluate: Evaluator, y: Any, p: Any) -> str:
    try:
        found = evaluate(y, p)
    except Exception:  # noqa: BLE001  (any refusal will do)
        return ""
    return f"gave {found:.6g} instead of an error"


def refuses_nan(evaluate: Evaluator) -> str:
    """Leave a prediction missing: an error, not a number."""
    y, p = _example()
    p[5] = np.nan
    return _refuses(evaluate, y, p)


def refuses_masked(evaluate: Evaluator) -> str:
    """Mask a prediction: it is missing too."""
    y, p = _example()
    return _refuses(evaluate, y, np.ma.masked_greater(p, 0.9))


def refuses_outside(evaluate: Evaluator) -> str:
    """1.2 is not a probability."""
    y, p = _example()
    p[5] = 1.2
    return _refuses(evaluate, y, p)


def refuses_labels(evaluate: Evaluator) -> str:
    """Labels 0, 1 and 2 are not binary."""
    y, p = _example()
    y[5] = 2.0
    return _refuses(evaluate, y, p)


def refuses_lengths(evaluate: Evaluator) -> str:
    """One label too few."""
    y, p = _example()
    return _refuses(evaluate, y[1:], p)


def refuses_empty(evaluate: Evaluator) -> str:
    """Nothing in, nothing out."""
    return _refuses(evaluate, np.empty(0), np.empty(0))


CASES: tuple[Callable[[Evaluator], str], ...] = (
    zero_and_one,
    one_inside_the_last_bin,
    on_inner_edges,
    row_order,
    constant_prediction,
    one_class_only,
    separable,
    one_row,
    five_values,
    steep_map,
    flat_map,
    shifted_map,
    steep_levels,
    flat_levels,
    shifted_levels,
    single_precision,
    big_endian,
    read_only,
    strided,
    refuses_nan,
    refuses_masked,
    refuses_outside,
    refuses_labels,
    refuses_lengths,
    refuses_empty,
)
WEIGHT_CASES: tuple[Callable[[Evaluator], str], ...] = (
    zero_weight,
    repeated_rows,
    huge_weights,
)


def conformance(
    evaluator: Evaluator,
    *,
    weights: bool = True,
    skip: tuple[str, ...] = (),
) -> list[Finding]:
    """Run an evaluator through every case.

    Parameters
    ----------
    evaluator : callable
        ``evaluator(y, p)`` and, with `weights`, ``evaluator(y, p, weight)``: the
        calibration error as a float, not debiased.
    weights : bool
        Whether it takes weights; without, these cases count as not passed.
    skip : tuple of str
        Names of cases that do not apply.

    Returns
    -------
    list of Finding
        One per case.

    Examples
    --------
    >>> import calibrant as cb
    >>> def es15(y, p, weight=None):
    ...     bins = min(15, len(p))
    ...     return cb.calibration_error(
    ...         y, p, method=f"es{bins}", debias=False, sample_weight=weight
    ...     )
    >>> all(finding.passed for finding in cb.testing.conformance(es15))
    True
    """
    findings = [
        run_case(case, evaluator) for case in CASES if case.__name__ not in skip
    ]
    for case in WEIGHT_CASES:
        if case.__name__ in skip:
            continue
        if weights:
            findings.append(run_case(case, evaluator))
        else:
            findings.append(Finding(case.__name__, passed=False, detail="no weights"))
    return findings


def run_case(case: Callable[[Any], str], candidate: Any) -> Finding:
    """Return how an evaluator, or whatever the case is about, did in one case."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            detail = case(candidate)
    except Exception as error:  # noqa: BLE001  (a crash is a finding)
        detail = f"raised {type(error).__name__}"
    return Finding(case.__name__, passed=not detail, detail=detail)
