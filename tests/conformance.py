"""Conformance suites for calibration errors and calibration maps, ours and anybody's.

A case of the first suite is a property that any estimate of a calibration error should
have, whatever its method: inputs at the edges of the domain, known errors of few rows
and of few distinct predictions, array layouts, weights, and input that must be refused.

The second suite is about calibration maps where there are few data or none. Between two
neighbouring predictions of the data nothing speaks for a value that is higher or lower
than both of theirs (by more than 0.02). Beyond the last prediction nothing speaks for
another correction than the one there, or for less of one. Each case is a sample with
gaps, ties, or predictions of exactly 0 and 1; or so small that only the least can be
asked for: probabilities, and those of higher predictions not lower.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy.special import expit, logit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from calibrant.core.array_types import FloatVector

Evaluator: TypeAlias = Callable[..., float]
"""Called as ``evaluator(y, p)`` or ``evaluator(y, p, weight)``; gives the raw error."""
Map: TypeAlias = "Callable[[FloatVector], FloatVector]"
Fitter: TypeAlias = "Callable[[FloatVector, FloatVector], Map]"
"""Called as ``fitter(p, y)``; gives the fitted map."""
Change: TypeAlias = "Callable[[FloatVector, FloatVector], tuple[Any, Any]]"
"""From labels and predictions to those that are passed instead."""
Case: TypeAlias = Callable[[Any], str]
"""Takes an evaluator or a fitter; gives what is wrong, empty where nothing is."""

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


def _example() -> tuple[FloatVector, FloatVector]:
    rng = np.random.default_rng(7)
    p = np.round(rng.beta(0.7, 0.9, 400), 2)  # ties, and some exactly 0 and 1
    y = (rng.random(400) < p**1.3).astype(np.float64)
    return y, p


def _expect(value: float, expected: float, close: float = CLOSE) -> str:
    is_close = abs(value - expected) <= close
    return "" if is_close else f"gave {value:.6g}, not {expected:.6g}"


def _knows_error(evaluate: Evaluator, y: Any, p: Any, expected: float) -> str:
    return _expect(evaluate(np.array(y, dtype=float), np.array(p)), expected)


LEVEL_VALUES = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
KNOWN_ERRORS: dict[str, tuple[Any, Any, float]] = {  # labels, predictions, error
    # only 0 and 1, half of them wrong
    "zero_and_one": (np.tile([0, 1], 100), np.repeat([0.0, 1.0], 100), 0.5),
    # one prediction: the distance to the base rate
    "constant_prediction": (np.repeat([1, 0], [60, 140]), np.full(200, 0.4), 0.1),
    # all labels 0: the mean prediction
    "one_class_only": (np.zeros(201), np.linspace(0.0, 1.0, 201), 0.5),
    # only 0 and 1, all correct
    "separable": (np.repeat([0, 1], 100), np.repeat([0.0, 1.0], 100), 0.0),
    # a single row: the distance to its label
    "one_row": ([1], [0.7], 0.3),
    # five distinct predictions, each wrong by 0.1, as if rounded
    "five_values": (
        np.tile(np.arange(50), 5) < np.round(np.repeat(LEVEL_VALUES - 0.1, 50) * 50),
        np.repeat(LEVEL_VALUES, 50),
        0.1,
    ),
}


def one_inside_the_last_bin(evaluate: Evaluator) -> str:
    """Replace p = 1 by the next smaller number: the error does not change."""
    p = np.repeat([0.95, 1.0], 100)
    y = np.repeat([1.0, 1.0, 0.0], [100, 50, 50])
    return _expect(evaluate(y, np.minimum(p, np.nextafter(1.0, 0.0))), evaluate(y, p))


def on_inner_edges(evaluate: Evaluator) -> str:
    """Put predictions at i/15 and i/10: all fall on the same side of the edge."""
    rng = np.random.default_rng(3)
    edges = np.concatenate([np.arange(1, 15) / 15, np.arange(1, 10) / 10])
    p = np.repeat(np.concatenate([edges, edges - 0.02, edges + 0.02]), 20)
    y = (rng.random(p.size) < p).astype(np.float64)
    value = evaluate(y, p)
    sides = (evaluate(y, np.nextafter(p, 1.0)), evaluate(y, np.nextafter(p, 0.0)))
    return min((_expect(value, side) for side in sides), key=len)


STEEP, FLAT, SHIFTED = (3.0, 0.0), (0.1, 0.0), (1.0, -1.5)
"""Slope and shift on the logit of maps for predictions that are under-confident,
over-confident, or too high. Mean distances to the diagonal are 0.12 to 0.27."""

DISTINCT = [(np.arange(n) + 0.5) / n for n in (50, 100, 200, 300)]
"""Few rows whose predictions are all different."""
LEVELS = [
    np.repeat(np.linspace(0.2, 0.8, k), n // k)
    for k, n in {2: 60, 3: 60, 4: 120, 5: 300}.items()
]
"""Few rows with two to five distinct predictions."""


def _finds_errors(
    evaluate: Evaluator, samples: list[FloatVector], line: tuple[float, float]
) -> str:
    """Compare estimates with known errors, within two of their standard errors.

    A mean of labels with probabilities c has the variance mean(c (1 - c)) / n, and so
    has the error where all predictions are too high or all too low. The sum of labels
    over the first rows is never more than 1/2 off its expectation.
    """
    slope, shift = line
    for p in samples:
        odds = (p / (1.0 - p)) ** slope * np.exp(shift)
        c = odds / (1.0 + odds)
        y = np.diff(np.floor(np.cumsum(c) + 0.5), prepend=0.0)
        tolerance = 2.0 * float(np.sqrt((c * (1.0 - c)).mean() / p.size))
        truth = float(np.abs(c - p).mean())
        if detail := _expect(evaluate(y, p), truth, tolerance):
            return f"{detail} +- {tolerance:.2g} on {p.size} rows"
    return ""


FOUND_ERRORS = {
    f"{name}_{end}": (samples, line)
    for end, samples in (("map", DISTINCT), ("levels", LEVELS))
    for name, line in (("steep", STEEP), ("flat", FLAT), ("shifted", SHIFTED))
}


def zero_weight(evaluate: Evaluator) -> str:
    """Give rows weight 0: the result is as if they were absent."""
    y, p = _example()
    weight = (np.arange(p.size) % 3 > 0).astype(np.float64)
    used = weight > 0
    return _expect(evaluate(y, p, weight), evaluate(y[used], p[used], weight[used]))


def repeated_rows(evaluate: Evaluator) -> str:
    """Give all rows weight 2: the result is as for two copies of all rows."""
    y, p = _example()
    twice = evaluate(np.tile(y, 2), np.tile(p, 2))
    return _expect(evaluate(y, p, np.full(p.size, 2.0)), twice)


def huge_weights(evaluate: Evaluator) -> str:
    """Give all rows weight 1e12: the result is finite."""
    y, p = _example()
    value = evaluate(y, p, np.full(p.size, 1e12))
    return "" if 0.0 <= value <= 1.0 else f"gave {value:.6g}"


def single_precision(evaluate: Evaluator) -> str:
    """Pass float32 predictions: the error is nearly the same."""
    y, p = _example()
    q = 0.01 + 0.97 * p + 0.003  # off the edges of bins, where rounding decides
    single = q.astype(np.float32)
    return _expect(evaluate(y, single), evaluate(y, q), FLOAT32_CLOSE)


def _is_same(evaluate: Evaluator, change: Change) -> str:
    """Pass the same rows in another way: the error does not change."""
    y, p = _example()
    before = evaluate(y.copy(), p.copy())
    return _expect(evaluate(*change(y, p)), before)


def _shuffled(y: FloatVector, p: FloatVector) -> tuple[Any, Any]:
    order = np.random.default_rng(1).permutation(p.size)
    return y[order], p[order]


def _read_only(y: FloatVector, p: FloatVector) -> tuple[Any, Any]:
    y.flags.writeable = p.flags.writeable = False
    return y, p


SAME_ERRORS: dict[str, Change] = {
    "row_order": _shuffled,  # which does not matter, even with ties
    "big_endian": lambda y, p: (y.astype(">f8"), p.astype(">f8")),
    "read_only": _read_only,
    "strided": lambda y, p: (y, np.stack([p, np.zeros_like(p)], axis=1)[:, 0]),
}


def _refuses(evaluate: Evaluator, change: Change) -> str:
    """Pass rows that are wrong: an error is raised."""
    try:
        value = evaluate(*change(*_example()))
    except Exception:  # noqa: BLE001  (any refusal will do)
        return ""
    return f"gave {value:.6g} instead of an error"


def _with(values: FloatVector, wrong: float) -> FloatVector:
    return np.where(np.arange(values.size) == 5, wrong, values)


REFUSED: dict[str, Change] = {
    "nan": lambda y, p: (y, _with(p, np.nan)),
    "masked": lambda y, p: (y, np.ma.masked_greater(p, 0.9)),
    "outside": lambda y, p: (y, _with(p, 1.2)),
    "labels": lambda y, p: (_with(y, 2.0), p),
    "lengths": lambda y, p: (y[1:], p),
    "empty": lambda y, p: (y[:0], p[:0]),
}

CASES: dict[str, Case] = {
    **{
        name: partial(_knows_error, y=y, p=p, expected=expected)
        for name, (y, p, expected) in KNOWN_ERRORS.items()
    },
    "one_inside_the_last_bin": one_inside_the_last_bin,
    "on_inner_edges": on_inner_edges,
    **{
        name: partial(_finds_errors, samples=samples, line=line)
        for name, (samples, line) in FOUND_ERRORS.items()
    },
    "single_precision": single_precision,
    **{name: partial(_is_same, change=how) for name, how in SAME_ERRORS.items()},
    **{
        f"refuses_{what}": partial(_refuses, change=how)
        for what, how in REFUSED.items()
    },
}
WEIGHT_CASES: dict[str, Case] = {
    case.__name__: case for case in (zero_weight, repeated_rows, huge_weights)
}


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
    >>> all(finding.passed for finding in conformance(es15))
    True
    """
    findings = _run_cases(CASES, evaluator, skip)
    if weights:
        return findings + _run_cases(WEIGHT_CASES, evaluator, skip)
    return findings + [
        Finding(name, passed=False, detail="no weights")
        for name in WEIGHT_CASES
        if name not in skip
    ]


def _run_cases(
    cases: Mapping[str, Case], candidate: Any, skip: tuple[str, ...]
) -> list[Finding]:
    findings = []
    for name, case in cases.items():
        if name in skip:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                detail = case(candidate)
        except Exception as error:  # noqa: BLE001  (a crash is a finding)
            detail = f"raised {type(error).__name__}"
        findings.append(Finding(name, passed=not detail, detail=detail))
    return findings


SEEDS, FEW_SEEDS = range(6), range(2)
BETWEEN = np.linspace(0.0, 1.0, 22)[1:-1]
MARGIN = 0.02
"""How far values between neighbours may leave theirs, and how far a map may fall."""
SHIFT_MARGIN = 1e-6
"""How much a correction may grow beyond the data, in logits."""
EVERYWHERE = np.unique(np.append(np.linspace(0.0, 1.0, 201), expit(np.arange(-20, 21))))
BEYOND = np.array([0.5, 0.1, 0.01])
"""Distances to 0 and 1 beyond the data, as parts of the last distance."""


def _samples(
    draw: Callable[[np.random.Generator], FloatVector], seeds: range = SEEDS
) -> Iterator[tuple[FloatVector, FloatVector]]:
    """Draw samples that are too high, too extreme and not extreme enough."""
    for seed in seeds:
        for shift, slope in ((-1.0, 1.0), (0.3, 0.3), (0.0, 2.5)):
            rng = np.random.default_rng(seed)
            p = draw(rng)
            share = expit(shift + slope * logit(np.clip(p, 0.01, 0.99)))
            yield p, np.asarray(rng.random(p.size) < share, dtype=np.float64)


def _levels(rng: np.random.Generator) -> FloatVector:
    """Confidences as people and language models give them, exact 0 and 1 included."""
    values = np.array([0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0])
    return rng.choice(values, 400, p=np.array([1, 1, 1, 2, 3, 4, 4, 3, 2, 3]) / 24)


def _two_heaps(rng: np.random.Generator) -> FloatVector:
    """Scores of a class that is nearly always clear: next to none in between."""
    logits = np.append(rng.normal(-9.0, 2.2, 450), rng.normal(8.0, 1.0, 50))
    return np.asarray(expit(logits))


def _gap(rng: np.random.Generator) -> FloatVector:
    """Uniform predictions, but none between 0.4 and 0.8."""
    return np.append(rng.uniform(0.0, 0.4, 200), rng.uniform(0.8, 1.0, 200))


def _describe_leaving(p: FloatVector, map_: Map) -> str:
    """Return how far values leave those at the neighbouring predictions."""
    known = np.unique(p)
    between = known[:-1, np.newaxis] + BETWEEN * np.diff(known)[:, np.newaxis]
    at, values = map_(known), map_(between.ravel()).reshape(between.shape)
    low, high = np.minimum(at[:-1], at[1:]), np.maximum(at[:-1], at[1:])
    over = np.maximum(values - high[:, np.newaxis], low[:, np.newaxis] - values)
    if over.max() <= MARGIN:
        return ""
    worst = between.ravel()[over.argmax()]
    return f"leaves the values next to {worst:.4g} by {over.max():.2g}"


def _correction(p: FloatVector, map_: Map) -> FloatVector:
    tiny = np.finfo(float).tiny
    value = map_(p)
    odds = np.log(np.maximum(value, tiny)) - np.log(np.maximum(1.0 - value, tiny))
    return np.asarray(odds - logit(p))


def _describe_growth(p: FloatVector, map_: Map) -> str:
    """Return how far corrections grow beyond the last predictions."""
    low, high = p.min(), p.max()
    ends = ((low, low * BEYOND), (high, 1.0 - (1.0 - high) * BEYOND))
    for end, beyond in ends:
        last = abs(_correction(np.array([end]), map_)[0])
        grown = np.abs(_correction(beyond, map_)) - last
        if grown.max() > SHIFT_MARGIN:
            return (
                f"moves {beyond[grown.argmax()]:.4g} by {grown.max():.2g} logits more "
                f"than {end:.4g}, the last prediction"
            )
    return ""


def _stays_between(
    fit: Fitter, draw: Callable[[np.random.Generator], FloatVector]
) -> str:
    """Draw predictions with gaps: the map stays between neighbouring values."""
    details = (_describe_leaving(p, fit(p, y)) for p, y in _samples(draw))
    return next(filter(None, details), "")


def beyond_the_data(fit: Fitter) -> str:
    """Predictions from 0.2 to 0.8: beyond them, logits are shifted no farther."""
    samples = _samples(lambda rng: rng.uniform(0.2, 0.8, 300))
    details = (_describe_growth(p, fit(p, y)) for p, y in samples)
    return next(filter(None, details), "")


def _percentages(rng: np.random.Generator) -> FloatVector:
    """Confidences in steps of 0.01, a tenth of them exactly 0 and a fifth exactly 1."""
    p = np.round(rng.beta(4.0, 1.5, 300), 2)
    p[:30], p[30:90] = 0.0, 1.0
    return p


def _small_samples() -> Iterator[tuple[str, FloatVector, FloatVector]]:
    """Draw samples of few rows, few levels, exact predictions, or only one class."""
    draws: dict[str, Callable[[np.random.Generator], FloatVector]] = {
        "30 rows": lambda rng: rng.uniform(0.0, 1.0, 30),
        "five values": lambda rng: rng.choice([0.1, 0.3, 0.5, 0.7, 0.9], 60),
        "exact 0 and 1": _percentages,
        "only 0 and 1": lambda rng: rng.choice([0.0, 1.0], 60),
    }
    for name, draw in draws.items():
        for p, y in _samples(draw, FEW_SEEDS):
            yield name, p, y
        for label in (0.0, 1.0):
            yield f"{name}, all labels {label:g}", p, np.full(p.size, label)


def gives_probabilities(fit: Fitter) -> str:
    """Few rows, five values, exact 0 and 1, one class: values lie in [0, 1]."""
    for name, p, y in _small_samples():
        values = fit(p, y)(EVERYWHERE)
        if not ((values >= -CLOSE) & (values <= 1.0 + CLOSE)).all():  # NaN is neither
            return f"gave {values.min():.3g} to {values.max():.3g} for {name}"
    return ""


def does_not_fall(fit: Fitter) -> str:
    """Few rows, levels or classes: higher predictions have no lower values."""
    for name, p, y in _small_samples():
        values = fit(p, y)(EVERYWHERE)
        falls = np.maximum.accumulate(values) - values
        if not falls.max() <= MARGIN:
            worst = EVERYWHERE[falls.argmax()]
            return f"falls by {falls.max():.2g} up to {worst:.4g} for {name}"
    return ""


MAP_CASES: dict[str, Case] = {
    "between_levels": partial(_stays_between, draw=_levels),
    "between_percentages": partial(_stays_between, draw=_percentages),
    "between_two_heaps": partial(_stays_between, draw=_two_heaps),
    "across_a_gap": partial(_stays_between, draw=_gap),
    "beyond_the_data": beyond_the_data,
    "gives_probabilities": gives_probabilities,
    "does_not_fall": does_not_fall,
}


def map_conformance(fitter: Fitter, *, skip: tuple[str, ...] = ()) -> list[Finding]:
    """Run a calibrator through every case about few data or none.

    Parameters
    ----------
    fitter : callable
        ``fitter(p, y)`` gives the fitted map, a function of predictions.
    skip : tuple of str
        Names of cases that do not apply.

    Returns
    -------
    list of Finding
        One per case.

    Examples
    --------
    >>> import calibrant as cb
    >>> def isotonic(p, y):
    ...     return cb.make_calibrator("isotonic").fit(p, y).map_
    >>> findings = map_conformance(isotonic)
    >>> [finding.case for finding in findings if not finding.passed]
    ['beyond_the_data']
    """
    return _run_cases(MAP_CASES, fitter, skip)
