"""Which of several models is better calibrated, on the same rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant._validation.arrays import as_array
from calibrant._validation.options import check_fraction, generator, whole_seed
from calibrant._validation.sample import warn_if_small
from calibrant._validation.wording import MEASURES
from calibrant.calibrators.smooth_fits import SmoothFit
from calibrant.exceptions import LengthMismatchError, OptionError
from calibrant.measures.estimate import Estimate, Estimator
from calibrant.measures.events import Reading
from calibrant.measures.fitted import FittedEvents
from calibrant.measures.frames import columns_of
from calibrant.numerics.paired import paired_differences, ranks, told_apart
from calibrant.numerics.resampling import gather

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant._typing import (
        ArrayLike,
        Debias,
        FloatVector,
        Frame,
        Scale,
        Seed,
        Task,
    )
    from calibrant._validation.sample import BinarySample
    from calibrant._validation.wording import Wording
    from calibrant.calibrators.base import ErrorFit
    from calibrant.numerics.resampling import RowGroups

DEFAULT_METHOD = "smooth"
FEWEST_MODELS = 2
ENDS = ("value", "low", "high")


@dataclass(frozen=True)
class Standing:
    """One model among others.

    Attributes
    ----------
    model : str
        Its name.
    rank : int
        1 plus the number of models that are told to be better calibrated.
    estimate : Estimate
        Its error with interval, as `evaluate` gives it.
    """

    model: str
    rank: int
    estimate: Estimate


@dataclass(frozen=True)
class PairedDifference:
    """Two models on the same rows.

    Attributes
    ----------
    model_a, model_b : str
        Their names.
    difference : float
        Error of a less that of b; errors that debiasing took below 0 count as 0.
    low, high : float
        Ends of the interval of the difference.
    probability : float
        How probable it is that a is the better calibrated one.
    distinct : bool
        Whether the data can tell them apart, all pairs being looked at (Holm).
    """

    model_a: str
    model_b: str
    difference: float
    low: float
    high: float
    probability: float
    distinct: bool

    def __str__(self) -> str:
        told = "" if self.distinct else ", not told apart"
        return (
            f"{self.model_a} - {self.model_b}: {self.difference:z.4f} "
            f"[{self.low:z.4f}, {self.high:z.4f}], better with probability "
            f"{self.probability:.3f}{told}"
        )


@dataclass(frozen=True, repr=False)
class Comparison:
    """Models in the order of their ranks, and every pair of them.

    Attributes
    ----------
    standings : tuple of Standing
        One per model, best first.
    differences : tuple of PairedDifference
        One per pair, the model that stands first as a.
    alpha, confidence : float
        Exponent of the error and level of all intervals.
    key : dict
        The group of rows, where there are several.

    Examples
    --------
    >>> import calibrant as cb
    >>> forest, y = cb.datasets.load_binary("forest")
    >>> network, y = cb.datasets.load_binary("network")
    >>> found = compare(y, {"forest": forest, "network": network}, method="es15")
    >>> found.frame()["model"].tolist(), found.frame()["rank"].tolist()
    (['network', 'forest'], [1, 2])
    >>> found.pairs()["difference"].round(4)
    array([-0.0802])
    """

    standings: tuple[Standing, ...]
    differences: tuple[PairedDifference, ...]
    alpha: float
    confidence: float
    key: dict[str, Any] = field(default_factory=dict)

    def frame(self) -> Frame:
        """Return one row a model, best first, as columns.

        Columns: model, rank, method, task, value, low, high, n, debiased, bins.
        """
        return columns_of(
            [
                {**self.key, "model": s.model, "rank": s.rank, **asdict(s.estimate)}
                for s in self.standings
            ]
        )

    def pairs(self) -> Frame:
        """Return one row a pair of models as columns.

        Columns: model_a, model_b, difference, low, high, probability, distinct.
        """
        return columns_of([{**self.key, **asdict(pair)} for pair in self.differences])

    def __repr__(self) -> str:
        return f"<Comparison, alpha = {self.alpha:g}>\n{self}"

    def __str__(self) -> str:
        lines = [f"{s.rank}. {s.model}  {s.estimate}" for s in self.standings]
        return "\n".join([*lines, *map(str, self.differences)])


def compare(  # noqa: PLR0913
    y_true: ArrayLike | Mapping[str, ArrayLike],
    models: Mapping[str, ArrayLike],
    *,
    method: str = DEFAULT_METHOD,
    alpha: float = 1,
    debias: Debias = "auto",
    task: Task = None,
    confidence: float = 0.9,
    n_resamples: int = 1000,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    labels: Sequence[Any] | None = None,
    scale: Scale | Mapping[str, Scale] = "prob",
    random_state: Seed = 0,
) -> Comparison:
    """Tell which of several models is better calibrated, and how surely.

    All models predict the same rows. Rows are resampled once for all models, so that
    what makes rows easy or hard for all of them does not blur their difference.

    Parameters
    ----------
    y_true : array-like of shape (n,) or dict
        Labels as in `calibration_error`. A single vector assumes that the event is the
        same for all models: what happened in a row does not depend on the model. Where
        it does, as whether each model's own answer is right, pass a dict with the
        labels of each model. Row i must be the same case, such as the same question,
        for all models.
    models : dict
        Predictions of each model by its name, at least two.
    scale : {"prob", "logit", "percent", "logprob"} or dict
        What predictions hold, as in `calibration_error`; a dict says it of each model.
    alpha, debias, task, sample_weight, pos_label, labels
        As in `calibration_error`.
    method : str
        How errors are estimated; see `calibrator_names`. Also "kce".
    confidence : float
        Level of the intervals, and of what is told apart.
    n_resamples : int
        Number of bootstrap resamples.
    random_state : int, generator or None
        Seeds cross-validation and resampling.

    Returns
    -------
    Comparison
        ``frame()`` has one row a model, best first; ``pairs()`` one a pair of models
        with their difference and the probability that the first is better calibrated.

    Notes
    -----
    A difference is taken as normal with its standard deviation over the resamples.
    Where noise alone can explain a model's error (its interval begins at 0), it is
    hardly told to be worse than any other. Ranks count the models that are told to be
    better, all pairs together wrong with a chance of at most 1 - `confidence` (Holm):
    models that share a rank are beaten by equally many, and rank 1 by none. A model
    of rank 1 may have a larger error than one of rank 2, if it is far less certain.

    Examples
    --------
    >>> import calibrant as cb
    >>> names = ("bayes", "forest", "logistic")
    >>> y = cb.datasets.load_binary("bayes")[1]
    >>> models = {name: cb.datasets.load_binary(name)[0] for name in names}
    >>> found = cb.compare(y, models)
    >>> dict(zip(found.frame()["model"].tolist(), found.frame()["rank"].tolist()))
    {'logistic': 1, 'bayes': 2, 'forest': 2}

    Two models that answer the same questions are right on different ones:

    >>> rng = np.random.default_rng(0)
    >>> said = {"plain": rng.random(2000), "bold": rng.random(2000)}
    >>> right = {
    ...     "plain": rng.random(2000) < said["plain"],
    ...     "bold": rng.random(2000) < 0.5 * said["bold"],
    ... }
    >>> cb.compare(right, said).frame()["model"].tolist()
    ['plain', 'bold']
    """
    predictions = check_models(models)
    estimator = Estimator(
        alpha=alpha,
        debias=debias,
        confidence=check_fraction(confidence, name="confidence"),
        n_resamples=n_resamples,
        random_state=whole_seed(random_state),
    )
    reading = Reading(task=task, pos_label=pos_label, labels=labels, scale=scale)
    reading.check_scales(list(predictions))
    happened = labels_by_model(y_true, list(predictions))
    own = "y_true[{!r}]" if isinstance(y_true, Mapping) else "y_true"
    events = {
        name: reading.of_model(name, _wording(name, own.format(name))).events(
            happened[name], prob, sample_weight
        )
        for name, prob in predictions.items()
    }
    refuse_unpaired(happened)
    warn_if_small(next(iter(events.values())).samples[0], stacklevel=3)
    fitted = {name: FittedEvents(one, estimator) for name, one in events.items()}
    return compare_events(fitted, method)


def _wording(model: str, label: str) -> Wording:
    """Return what messages call the arguments of a model."""
    return replace(MEASURES, prob=f"models[{model!r}]", label=label)


def labels_by_model(
    y: Any, models: Sequence[str], *, name: str = "y_true"
) -> dict[str, Any]:
    """Return the labels of each model, which may be the same for all.

    Examples
    --------
    >>> labels_by_model("right", ["a", "b"])
    {'a': 'right', 'b': 'right'}
    """
    if not isinstance(y, Mapping):
        return dict.fromkeys(models, y)
    found = {str(model): labels for model, labels in y.items()}
    if set(found) != set(models):
        raise OptionError(
            f"{name} must have the labels of each model by its name, "
            f"{', '.join(map(repr, models))}; it has {', '.join(map(repr, found))}."
        )
    return found


def refuse_unpaired(labels: Mapping[str, ArrayLike]) -> None:
    """Raise where models have different numbers of rows."""
    rows = {model: len(as_array(y, name="y_true")) for model, y in labels.items()}
    if len(set(rows.values())) > 1:
        told = ", ".join(f"{model!r} has {count:,}" for model, count in rows.items())
        raise LengthMismatchError(
            f"y_true must have as many labels for each model; {told}. Models are "
            f"compared on the same cases, row by row: keep the cases that all of them "
            f"have, in the same order."
        )


def check_models(
    models: Mapping[str, ArrayLike], *, least: int = FEWEST_MODELS, name: str = "models"
) -> dict[str, ArrayLike]:
    """Return the predictions by name, `least` models or more with different names."""
    if not isinstance(models, Mapping):
        raise OptionError(
            f"{name} must be a dict of predictions by name, such as "
            f'{{"a": p_a, "b": p_b}}; got {type(models).__name__}.'
        )
    if not models and least == 1:
        raise OptionError(f'{name} holds no model; name one, such as {{"a": p_a}}.')
    if len(models) < least:
        raise OptionError(
            f"{name} must hold at least {least} models to compare; got "
            f"{len(models)}. For one model use evaluate."
        )
    named = {str(model): prob for model, prob in models.items()}
    if len(named) < len(models):
        raise OptionError(
            f"{name} must have different names; as text they are "
            f"{', '.join(map(repr, map(str, models)))}."
        )
    return named


def compare_events(
    models: Mapping[str, FittedEvents],
    method: str,
    key: dict[str, Any] | None = None,
) -> Comparison:
    """Compare models whose events lie on the same rows, by one estimator."""
    first = next(iter(models.values()))
    estimator = first.estimator
    level = estimator.confidence
    if level is None:
        raise OptionError("confidence must be given to compare models.")
    rng = generator(estimator.random_state)
    shared = estimator.shared_rows(first.events, rng)
    found = {name: _estimate(fitted, method, shared) for name, fitted in models.items()}
    # Whatever the order of the models was, numbers and order are the same.
    names = sorted(found, key=lambda name: (found[name][0].value, name))
    estimates = [found[name][0] for name in names]
    value, low, high = (np.array([getattr(e, end) for e in estimates]) for end in ENDS)
    low, high = np.nan_to_num(low, nan=0.0), np.nan_to_num(high, nan=1.0)
    draws = np.stack([found[name][1] for name in names])
    paired = paired_differences(value, low, high, draws, level)
    apart = told_apart(paired.probability, 1.0 - level)
    rank = ranks(paired.difference, apart)
    order = np.argsort(rank, kind="stable").tolist()

    def pair(a: int, b: int) -> PairedDifference:
        return PairedDifference(
            model_a=names[a],
            model_b=names[b],
            difference=float(paired.difference[a, b]),
            low=float(paired.low[a, b]),
            high=float(paired.high[a, b]),
            probability=float(paired.probability[a, b]),
            distinct=bool(apart[a, b]),
        )

    return Comparison(
        standings=tuple(Standing(names[i], int(rank[i]), estimates[i]) for i in order),
        differences=tuple(pair(a, b) for a, b in combinations(order, 2)),
        alpha=float(estimator.alpha),
        confidence=level,
        key=key or {},
    )


def _estimate(
    fitted: FittedEvents, method: str, shared: RowGroups
) -> tuple[Estimate, FloatVector]:
    """Return the estimate of one model, and its errors on the shared resamples."""
    estimate = fitted.estimates(method)[0]

    def resampled(fit: ErrorFit, sample: BinarySample) -> FloatVector:
        free = fit.loosened(sample) if isinstance(fit, SmoothFit) else fit
        cells = gather(sample.p, sample.y, sample.weight, free.edges)
        return free.resampled_errors(
            cells,
            shared.weights(cells),
            alpha=fitted.estimator.alpha,
            debias=estimate.debiased,
        )

    errors = [
        resampled(fit, sample)
        for fit, sample in zip(fitted.fits(method), fitted.events.samples, strict=True)
    ]
    return estimate, np.mean(errors, axis=0)
