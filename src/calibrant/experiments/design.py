"""What is to be compared: methods on truths, of which sizes, how often."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from calibrant._validation.options import check_count
from calibrant.calibrators.registry import find_evaluator
from calibrant.exceptions import OptionError
from calibrant.experiments.cells import measured
from calibrant.experiments.oracle import Oracle
from calibrant.experiments.shapes import PAPER_SHAPES
from calibrant.experiments.truths import SyntheticTruth

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calibrant._validation.sample import BinarySample
    from calibrant.experiments.truths import KnownSample, Truth

PAPER_ERRORS = tuple(np.arange(0.0, 0.1001, 0.005).round(3).tolist())
PAPER_SIZES = (1000, 3000, 10_000)
PAPER_SEEDS = 5

ORACLE = "oracle"

THINNED = 20
"""Continuous maps are compared with the truth at every 20th of the million rows.

Against all rows this changes a map error by less than 1e-6, a tenth of the last printed
digit; maps that jump or rise steeply are compared at all rows.
"""


class AssessedFit(Protocol):
    """What the bench asks of a fit; `map`, where there is one, is compared too."""

    @property
    def pieces(self) -> int:
        """Return the number of bins or pieces."""
        ...

    def debiases(self, alpha: float) -> bool:
        """Tell whether the bias of the error is known for this exponent."""
        ...

    def error(self, sample: BinarySample, *, alpha: float, debias: bool) -> float:
        """Return the mean of abs(map(p) - p) ** alpha, less its bias if asked."""
        ...


class AssessedFamily(Protocol):
    """Whatever can be fitted: families of the library, and others."""

    def fit(self, sample: BinarySample) -> AssessedFit:
        """Estimate the calibration map of a sample."""
        ...


@dataclass(frozen=True)
class Contender:
    """A method that takes part.

    Parameters
    ----------
    name : str
        Column of the tables.
    family : AssessedFamily or Oracle
        What is fitted; anything with ``fit(sample)`` that gives a fit. Its repr is
        part of the key by which results are found again.
    every : int
        Which of the unseen rows, in order of p, the map is compared at.
    squared : bool
        Whether the method estimates the squared error alone.

    Examples
    --------
    >>> Contender.of("es-cv", random_state=1).name
    'es-cv'
    >>> Contender.of("pl", name="pl, folds", ensemble="folds").family.ensemble
    'folds'
    """

    name: str
    family: AssessedFamily | Oracle
    every: int = 1
    squared: bool = False

    def __post_init__(self) -> None:
        check_count(self.every, name="every")
        if " at 0x" in repr(self.family):
            raise OptionError(
                f"family of {self.name!r} must have a repr that tells what it is, "
                f"since results are found again by it; make it a dataclass. Got "
                f"{self.family!r}."
            )

    @classmethod
    def of(
        cls, method: str, *, name: str | None = None, every: int = 1, **params: Any
    ) -> Contender:
        """Return a method of the library, with hyper-parameters."""
        found = find_evaluator(method)
        return cls(name or method, found.build(**params), every, found.squared)

    @classmethod
    def oracle(cls) -> Contender:
        """Return the oracle, which is told the shape and out of competition."""
        return cls(ORACLE, Oracle(), every=THINNED)

    def family_for(self, truth: Truth) -> AssessedFamily:
        """Return what is fitted on data of a truth, which the oracle alone knows."""
        if isinstance(self.family, Oracle):
            return self.family.family_of(truth)
        return self.family

    def measured(
        self, data: KnownSample, unseen: KnownSample, truth: Truth
    ) -> dict[str, float]:
        """Fit on a data set of a truth and return what can be measured, by name."""
        return measured(self, data, unseen, truth)


@dataclass(frozen=True, kw_only=True)
class Design:
    """An experiment: every contender on every truth, size and seed.

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
    together : int
        How many truths in a row one worker does together, because calibrators of all
        classes share their fits between them.

    Examples
    --------
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
    together: int = 1

    def __post_init__(self) -> None:
        check_count(self.together, name="together")
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
                    f"{name} must hold at least one, and none twice; got {values!r}."
                )

    @property
    def size(self) -> int:
        """Return the number of cells."""
        return (
            len(self.contenders) * len(self.truths) * len(self.sizes) * len(self.seeds)
        )

    @property
    def shapes(self) -> list[str]:
        """Return the shapes in order, which are rows of the tables."""
        return list(dict.fromkeys(truth.shape for truth in self.truths))

    @property
    def is_papers_grid(self) -> bool:
        """Tell whether shapes, errors and sizes are the paper's, whatever the seeds."""
        wanted = {
            SyntheticTruth.of(shape, error).name
            for shape in PAPER_SHAPES
            for error in PAPER_ERRORS
        }
        return (
            self.sizes == PAPER_SIZES
            and len(self.truths) == len(wanted)
            and {truth.name for truth in self.truths} == wanted
        )

    def cells(self) -> Iterator[Cell]:
        """Give all cells, those of one truth and size together."""
        for truth in self.truths:
            for n in self.sizes:
                for seed in self.seeds:
                    for contender in self.contenders:
                        yield Cell(contender, truth, n, seed)


@dataclass(frozen=True)
class Cell:
    """One contender on one data set: the smallest piece of work."""

    contender: Contender
    truth: Truth
    n: int
    seed: int

    @property
    def key(self) -> str:
        """Return a name that depends on all that the result depends on."""
        who = self.contender
        told = (who.name, repr(who.family), who.every, self.truth.name)
        return hashlib.sha256(repr((*told, self.n, self.seed)).encode()).hexdigest()[
            :32
        ]


def paper_contenders(*, as_printed: bool = False) -> list[Contender]:
    """Return the twelve methods of the paper's synthetic tables, in their order.

    Folds, smoothing and the like are the paper's. The pieces of ``pl``, ``pl-mse`` and
    ``pl-de`` are weighed against each other, which is this library's remedy; with
    `as_printed` they are chosen as in the paper.
    """
    folds: dict[str, Any] = {"ensemble": "folds"} if as_printed else {}
    refit: dict[str, Any] = {"ensemble": "refit"} if as_printed else {}
    return [
        Contender.of("es15"),
        Contender.of("es-sweep"),
        Contender.of("es-cv", random_state=1),
        Contender.of("kce"),
        Contender.of("pl3", every=THINNED),
        Contender.of("pl3-mse", every=THINNED),
        Contender.of("pl", every=THINNED, **folds),
        Contender.of("pl-mse", every=THINNED, **folds),
        Contender.of("pl-de", every=THINNED, **refit),
        Contender.of("platt", every=THINNED, smoothing=True),
        Contender.of("beta", every=THINNED),
        Contender.of("isotonic"),
    ]


def chosen_contenders(
    methods: Sequence[str], *, as_printed: bool = False
) -> list[Contender]:
    """Return methods by name: the paper's as in its tables, others as they are.

    Examples
    --------
    >>> [found.every for found in chosen_contenders(["platt", "kde"])]
    [20, 1]
    """
    papers = {found.name: found for found in paper_contenders(as_printed=as_printed)}
    return [papers[name] if name in papers else Contender.of(name) for name in methods]


def paper_design(seeds: int = PAPER_SEEDS, *, as_printed: bool = False) -> Design:
    """Return the grid of the paper's synthetic experiments.

    Five shapes, 21 expected errors and three sizes; labels depend on size and seed
    alone, so that five seeds make no more than 15 independent draws of labels.

    Examples
    --------
    >>> paper_design().size
    18900
    """
    return Design(
        contenders=paper_contenders(as_printed=as_printed),
        truths=[
            SyntheticTruth.of(shape, error)
            for shape in PAPER_SHAPES
            for error in PAPER_ERRORS
        ],
        sizes=PAPER_SIZES,
        seeds=range(check_count(seeds, name="seeds")),
    )


def quick_design(seeds: int = 2, *, as_printed: bool = False) -> Design:
    """Return a small part of the paper's grid: 1,000 rows, three errors."""
    return Design(
        contenders=paper_contenders(as_printed=as_printed),
        truths=[
            SyntheticTruth.of(shape, error)
            for shape in PAPER_SHAPES
            for error in (0.0, 0.05, 0.1)
        ],
        sizes=PAPER_SIZES[:1],
        seeds=range(check_count(seeds, name="seeds")),
    )
