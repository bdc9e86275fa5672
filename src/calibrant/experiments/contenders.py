"""Contenders: methods that take part in a study, and the oracle beside them.

The oracle knows the shape of synthetic data and estimates only how much of it is mixed
in, by maximum likelihood. A method that has to find the shape as well can hardly do
better: the ratio of its error to the oracle's shows how much is left to gain.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.calibrators.fitting import fit_family
from calibrant.calibrators.registry import find_evaluator, find_method
from calibrant.core.options import check_count
from calibrant.core.sample import BinarySample
from calibrant.exceptions import OptionError
from calibrant.experiments.assessment import measure_errors, measure_map
from calibrant.experiments.prediction_truths import EventSample, class_sample
from calibrant.experiments.synthetic import SyntheticTruth, mix
from calibrant.numerics.class_probabilities import class_probabilities
from calibrant.numerics.links import clip_probability
from calibrant.numerics.scores import mean_gap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.core.array_types import FloatVector
    from calibrant.experiments.assessment import KnownSample
    from calibrant.experiments.design import Truth
    from calibrant.experiments.shapes import Shape

ORACLE = "oracle"

THINNING = 20
"""Continuous maps are compared with the truth at every 20th of the unseen rows.

Compared with all rows this changes a map error by less than 1e-6, a tenth of the last
printed digit; maps that jump or rise steeply are compared at all rows.
"""

GRID = (1.0 - np.cos(np.linspace(0.0, np.pi, 2**15 + 1))) / 2.0
"""Values of c from which a mixture is inverted, denser towards 0 and 1: accurate to
about 1e-9."""

FIRST_AMOUNTS = np.linspace(0.0, 1.0, 17)
"""The search starts at the best of these, since there may be several optima."""


@dataclass(frozen=True)
class MixedShapeMap:
    """The true map of a shape that is mixed with the identity by some amount."""

    shape: Shape
    amount: float

    def __call__(self, p: FloatVector) -> FloatVector:
        """Return c at predictions."""
        at = (1.0 - self.amount) * GRID + self.amount * _on_grid(self.shape)
        return np.interp(p, at, GRID)


@cache
def _on_grid(shape: Shape) -> FloatVector:
    return mix(shape, 1.0, GRID)


@dataclass(frozen=True)
class OracleFit:
    """The most likely mixture."""

    map: MixedShapeMap
    pieces: int = 1

    def debiases(self, alpha: float) -> bool:  # noqa: ARG002
        """Return False: the bias is not known."""
        return False

    def error(self, sample: BinarySample, *, alpha: float, debias: bool) -> float:  # noqa: ARG002
        """Return the mean of abs(map(p) - p) ** alpha."""
        return mean_gap(self.map(sample.p), sample.p, sample.weight, alpha)


@dataclass(frozen=True)
class MixedShape:
    """All mixtures of one shape with the identity."""

    shape: Shape

    def fit(self, sample: BinarySample) -> OracleFit:
        """Return the mixture that makes the labels most likely."""
        from scipy.optimize import minimize_scalar

        weight = np.ones(sample.n) if sample.weight is None else sample.weight

        def loss(amount: float) -> float:
            c = clip_probability(MixedShapeMap(self.shape, amount)(sample.p))
            likelihood = np.where(sample.y > 0.0, c, 1.0 - c)
            return -float(weight @ np.log(likelihood))

        best = int(np.argmin([loss(amount) for amount in FIRST_AMOUNTS]))
        last = FIRST_AMOUNTS.size - 1
        bounds = FIRST_AMOUNTS[[max(best - 1, 0), min(best + 1, last)]]
        inner = float(minimize_scalar(loss, bounds=bounds, method="bounded").x)
        # A bounded search comes close to its bounds without reaching them.
        amount = min([inner, *FIRST_AMOUNTS[[0, last]].tolist()], key=loss)
        return OracleFit(MixedShapeMap(self.shape, amount))


@dataclass(frozen=True)
class Oracle:
    """Knows the shape of every synthetic truth."""

    def family_of(self, truth: Truth) -> MixedShape:
        """Return the mixtures of the truth's shape."""
        if not isinstance(truth, SyntheticTruth):
            raise OptionError(
                f"the oracle knows only the shapes of SyntheticTruth; {truth.name!r} "
                f"is another kind of truth. Remove the oracle from the design."
            )
        return MixedShape(truth.function)


@dataclass(frozen=True)
class Contender:
    """A method that takes part.

    Parameters
    ----------
    name : str
        Column of the tables.
    family : Family
        Anything with ``fit(sample)`` that returns a fit: an object with ``pieces``,
        ``debiases(alpha)``, ``error(sample, alpha=, debias=)`` and, unless it only
        estimates errors, ``map``. Its repr is part of the key of stored results.
    every : int
        The map is compared with the truth at every so many of the unseen rows, in
        order of p.
    squared : bool
        Whether the method estimates only the squared error.

    Examples
    --------
    >>> Contender.of("es-cv", random_state=1).name
    'es-cv'
    >>> Contender.of("pl", name="pl, folds", ensemble="folds").family.ensemble
    'folds'
    """

    name: str
    family: Any
    every: int = 1
    squared: bool = False

    def __post_init__(self) -> None:
        check_count(self.every, name="every")
        if " at 0x" in repr(self.family):
            raise OptionError(
                f"family of {self.name!r} must have a repr that shows its parameters, "
                f"since it is part of the key of stored results; make it a dataclass. "
                f"Got {self.family!r}."
            )

    @classmethod
    def of(
        cls, method: str, *, name: str | None = None, every: int = 1, **params: Any
    ) -> Contender:
        """Return a method of the library, with hyper-parameters."""
        evaluator = find_evaluator(method)
        family = evaluator.build(**params)
        return cls(name or method, family, every, evaluator.squared)

    @classmethod
    def oracle(cls) -> Contender:
        """Return the oracle, which knows the shape and is not ranked."""
        return cls(ORACLE, Oracle(), every=THINNING)

    def measure(
        self, data: KnownSample, unseen: KnownSample, truth: Truth
    ) -> dict[str, float]:
        """Fit on data of a truth and return measures by name."""
        is_oracle = isinstance(self.family, Oracle)
        family = self.family.family_of(truth) if is_oracle else self.family
        sample = BinarySample(data.p, data.y)
        fit = fit_family(family, sample)
        measures = {"pieces": float(fit.pieces), **data.true_errors()}
        measures |= measure_errors(fit, sample, squared_only=self.squared)
        map_ = getattr(fit, "map", None)
        if map_ is None or not unseen.p.size:
            return measures
        rows = unseen.thin(self.every)
        return measures | measure_map(map_(unseen.p[rows]), unseen, rows)


@dataclass(frozen=True)
class ClassContender(Contender):
    """A calibrator of all classes that is assessed by one event.

    Its value for an event is the calibrated probability of the class that the event
    is about; for the top class, of the class that was the top one before.

    Examples
    --------
    >>> ClassContender.of("vector").name
    'vector'
    """

    @classmethod
    def of(
        cls, method: str, *, name: str | None = None, every: int = 1, **params: Any
    ) -> ClassContender:
        """Return a multi-class method of the library, with hyper-parameters."""
        return cls(name or method, find_method(method).build(**params), every)

    def measure(
        self, data: KnownSample, unseen: KnownSample, _truth: Truth
    ) -> dict[str, float]:
        """Fit on a data set and return measures by name."""
        if not (isinstance(data, EventSample) and isinstance(unseen, EventSample)):
            raise OptionError(
                f"{self.name!r} calibrates all classes at once: it needs predictions "
                f"of all classes, which this truth does not have."
            )
        map_ = _class_map(self.family, data)
        rows = unseen.thin(self.every)
        scores = unseen.split.take(unseen.rows[rows])
        before = class_probabilities(scores, unseen.split.scale)
        column = unseen.event.columns(before)
        c_hat = map_(scores)[np.arange(column.size), column]
        return measure_map(c_hat, unseen, rows)


@lru_cache(maxsize=512)
def _class_map(family: Any, data: EventSample) -> Any:
    """Return the map fitted on some rows, which all events share."""
    return fit_family(family, class_sample(data.split, data.rows)).map


def calibrator_contenders(
    methods: Sequence[str], *, every: int = 1
) -> list[Contender | ClassContender]:
    """Return calibrators of one event or of all classes by name."""
    kinds = {"binary": Contender, "multi-class": ClassContender}
    return [kinds[find_method(name).kind].of(name, every=every) for name in methods]
