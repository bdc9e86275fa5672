"""The design of a study: which contenders on which truths, of which sizes, how often.

A contender is a method that takes part. The oracle beside them knows the shape of
synthetic data and estimates only how much of it is mixed in, by maximum likelihood. A
method that has to find the shape as well can hardly do better: the ratio of its error
to the oracle's shows how much is left to gain.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass
from functools import cache
from itertools import product
from math import nan
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from calibrant.calibrators.registry import EVALUATORS, find_evaluator
from calibrant.core.parameters import check_count
from calibrant.core.sample import BinarySample
from calibrant.exceptions import OptionError
from calibrant.experiments.assessment import MEASURES, measure_errors, measure_map
from calibrant.experiments.synthetic import SyntheticTruth
from calibrant.numerics.links import clip_probability
from calibrant.numerics.scores import mean_gap

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calibrant.core.array_types import FloatVector
    from calibrant.experiments.assessment import KnownSample
    from calibrant.experiments.synthetic import Shape

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


class Truth(Protocol):
    """A source of data with a known calibration map.

    Anything with these members can be part of a design: a shape of the bench, or a
    data set of your own for which c is known.
    """

    @property
    def shape(self) -> str:
        """Return the name of the row in tables."""
        ...

    @property
    def error(self) -> float:
        """Return the expected error, which distinguishes truths of one shape."""
        ...

    @property
    def name(self) -> str:
        """Return a name that depends on everything the data depend on."""
        ...

    def draw(self, n: int, seed: int) -> KnownSample:
        """Draw rows to fit on; the same for the same size and seed."""
        ...

    def unseen(self) -> KnownSample:
        """Return rows to compare maps on, in ascending order of p."""
        ...


@dataclass(frozen=True)
class MixedShapeFit:
    """A shape that is mixed with the identity by some amount."""

    shape: Shape
    amount: float
    n_pieces: int = 1

    def map(self, p: FloatVector) -> FloatVector:
        """Return c at predictions."""
        at = (1.0 - self.amount) * GRID + self.amount * _on_grid(self.shape)
        return np.interp(p, at, GRID)

    def debiases(self, alpha: float) -> bool:  # noqa: ARG002
        """Return False: the bias is not known."""
        return False

    def error(self, sample: BinarySample, *, alpha: float, debias: bool) -> float:  # noqa: ARG002
        """Return the mean of abs(map(p) - p) ** alpha."""
        return mean_gap(self.map(sample.p), sample.p, sample.weight, alpha)


@cache
def _on_grid(shape: Shape) -> FloatVector:
    return shape(GRID)


@dataclass(frozen=True)
class MixedShape:
    """All mixtures of one shape with the identity."""

    shape: Shape

    def fit_sample(self, sample: BinarySample) -> MixedShapeFit:
        """Return the mixture that makes the labels most likely."""
        from scipy.optimize import minimize_scalar

        weight = sample.weights

        def loss(amount: float) -> float:
            c = clip_probability(MixedShapeFit(self.shape, amount).map(sample.p))
            likelihood = np.where(sample.y > 0.0, c, 1.0 - c)
            return -float(weight @ np.log(likelihood))

        best = int(np.argmin([loss(amount) for amount in FIRST_AMOUNTS]))
        last = FIRST_AMOUNTS.size - 1
        bounds = FIRST_AMOUNTS[[max(best - 1, 0), min(best + 1, last)]]
        inner = float(minimize_scalar(loss, bounds=bounds, method="bounded").x)
        # A bounded search comes close to its bounds without reaching them.
        amount = min([inner, *FIRST_AMOUNTS[[0, last]].tolist()], key=loss)
        return MixedShapeFit(self.shape, amount)


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
        Anything with ``fit_sample(sample)`` that returns a fit: an object with
        ``n_pieces``, ``debiases(alpha)``, ``error(sample, alpha=, debias=)`` and,
        unless it only estimates errors, ``map``. Its repr and its attributes are part
        of the key of stored results.
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
    measures: ClassVar[tuple[str, ...]] = MEASURES
    times: ClassVar[tuple[str, ...]] = ()  # measures that differ from run to run

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
        family = find_evaluator(method).measuring(**params)
        return cls(name or method, family, every, method in EVALUATORS)

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
        fit = family.fit_sample(sample)
        measures = {"pieces": float(fit.n_pieces), **data.true_errors()}
        measures |= measure_errors(fit, sample, squared_only=self.squared)
        map_ = getattr(fit, "map", None)
        if map_ is None or not unseen.p.size:
            return measures
        rows = unseen.thin(self.every)
        return measures | measure_map(map_(unseen.p[rows]), unseen, rows)


@dataclass(frozen=True, kw_only=True)
class Design:
    """A study: every contender on every truth, size and seed.

    Parameters
    ----------
    contenders : sequence of Contender
        Columns of the tables.
    truths : sequence of Truth
        Where data come from.
    sizes : sequence of int
        Numbers of rows.
    seeds : sequence of int
        One draw of labels each.
    truths_per_task : int
        How many consecutive truths one worker processes together, because calibrators
        of all classes share their fits between them.

    Examples
    --------
    >>> from calibrant.experiments import Contender, SyntheticTruth
    >>> design = Design(
    ...     contenders=[Contender.of("es15"), Contender.of("platt")],
    ...     truths=[SyntheticTruth.of("square", 0.05)],
    ...     sizes=[1000],
    ...     seeds=range(3),
    ... )
    >>> design.size
    6
    """

    contenders: Sequence[Contender]
    truths: Sequence[Truth]
    sizes: Sequence[int]
    seeds: Sequence[int]
    truths_per_task: int = 1

    def __post_init__(self) -> None:
        check_count(self.truths_per_task, name="truths_per_task")
        for name in ("contenders", "truths", "sizes", "seeds"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name, values in (
            ("contenders", [contender.name for contender in self.contenders]),
            ("truths", [truth.name for truth in self.truths]),
            ("sizes", [check_count(n, name="sizes") for n in self.sizes]),
            ("seeds", [check_count(s, name="seeds", least=0) for s in self.seeds]),
        ):
            if not values or len(set(values)) < len(values):
                raise OptionError(
                    f"{name} must have at least one entry and no duplicates; got "
                    f"{values!r}."
                )

    @property
    def size(self) -> int:
        """Return the number of cells."""
        data_sets = len(self.truths) * len(self.sizes) * len(self.seeds)
        return data_sets * len(self.contenders)

    def cells(self) -> Iterator[Cell]:
        """Yield all cells, those of one truth and size together."""
        grid = product(self.truths, self.sizes, self.seeds, self.contenders)
        for truth, n, seed, contender in grid:
            yield Cell(contender, truth, n, seed)


@dataclass(frozen=True)
class Cell:
    """One contender on one data set: the smallest unit of work."""

    contender: Contender
    truth: Truth
    n: int
    seed: int

    @property
    def key(self) -> str:
        """Return a hash of everything the result depends on."""
        who = self.contender
        content = (who.name, who.family, vars(who.family), who.every, self.truth.name)
        text = repr((*content, self.n, self.seed))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @property
    def _columns(self) -> tuple[str, ...]:
        return (*self.contender.measures, *self.contender.times)

    def assess(self, data: KnownSample, unseen: KnownSample) -> dict[str, Any]:
        """Return the row of results; an error of the method is in ``failure``."""
        started = time.thread_time()
        measures: dict[str, float] = {}
        failure = ""
        try:
            measures = self.contender.measure(data, unseen, self.truth)
        except Exception as error:  # noqa: BLE001 (one method must not stop the others)
            failure = f"{type(error).__name__}: {error}"
        return {
            "key": self.key,
            "method": self.contender.name,
            "shape": self.truth.shape,
            "error": float(self.truth.error),
            "n": self.n,
            "seed": self.seed,
            **{name: float(measures.get(name, nan)) for name in self._columns},
            "failure": failure,
            "seconds": time.thread_time() - started,
        }
