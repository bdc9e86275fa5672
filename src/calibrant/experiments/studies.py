"""The studies as designs: synthetic (the paper's and a fresh one), pseudo-real, real.

The fresh study exists because anyone who develops a method looks at the paper's grid,
and its 15 draws of labels leave much to chance: methods are compared on draws that the
paper does not have, on shapes that no method was tuned on, and on predictions that are
concentrated at one end or at both.

The pseudo-real study asks two questions about the same predictions (paper, section
7.2). As the model predicts it, the probability of an event is far from calibrated:
which calibrator finds its map? After a calibrator it is nearly calibrated: which
evaluator finds the error that is left?
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.parameters import check_count
from calibrant.exceptions import SourceError
from calibrant.experiments.design import THINNING, Contender, Design
from calibrant.experiments.prediction_truths import (
    TOP_LABEL,
    ClassContender,
    PseudoRealTruth,
    RealTruth,
    divide_holdout,
    is_of_classes,
)
from calibrant.experiments.synthetic import (
    OTHER_SHAPES,
    PAPER_SHAPES,
    UNIFORM,
    Distribution,
    SyntheticTruth,
    square,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from calibrant.experiments.design import Truth
    from calibrant.experiments.prediction_sets import Event, PredictionSet

PAPER_ERRORS = tuple(np.arange(0.0, 0.1001, 0.005).round(3).tolist())
QUICK_ERRORS = (0.0, 0.05, 0.1)
PAPER_SIZES = (1000, 3000, 10_000)
PAPER_SEEDS = 5

PAPER_METHODS = (
    "es15", "es-sweep", "es-cv", "kce", "pl3", "pl3-mse", "pl", "pl-mse", "pl-de",
    "platt", "beta", "isotonic",
)  # fmt: skip
"""The methods of the paper's synthetic tables, in their order."""

CONTINUOUS_METHODS = ("pl3", "pl3-mse", "pl", "pl-mse", "pl-de", "platt", "beta")
"""Those whose maps are compared at every 20th row."""

PAPER_SETTINGS: dict[str, dict[str, Any]] = {
    "es-cv": {"random_state": 1},
    "ew-cv": {"random_state": 1},
    "platt": {"smoothing": True},
}
PRINTED_ENSEMBLES = {"pl": "folds", "pl-mse": "folds", "pl-de": "refit"}
"""How the paper chose numbers of pieces; this library averages over them instead."""

FRESH_SEEDS = 40
FIRST_FRESH_SEED = 200
"""The paper has seeds 0 to 4; methods of this library were developed looking at seeds
below 200 and from 500 on."""

FRESH_METHODS = (
    "smooth", "es15", "es-sweep", "es-cv", "pl3", "pl", "platt", "beta", "isotonic",
    "spline-natural", "kde",
)  # fmt: skip
"""Those of the paper's methods that are fast enough, and others."""

CALIBRATORS = (
    "platt", "beta", "isotonic", "scaling-binning", "temperature", "one-temp", "vector",
    "dirichlet-l2", "dirichlet-odir", "matrix-odir", "spline-natural", "spline-cubic",
    "spline-parabolic", "kde", "es15", "es-cv", "es-sweep", "ew15", "ew-cv", "ew-sweep",
    "pl", "pl3", "smooth",
)  # fmt: skip
"""All calibrators except variants of pl, and the networks that need torch."""

NETWORKS = ("iop-oi", "iop-op", "iop-diag")
"""Order-preserving networks; one fit takes as long as a hundred others."""

BEST_CALIBRATORS = ("beta", "vector", "platt", "pl3", "scaling-binning", "isotonic")
"""The six after which evaluators are compared."""

EVALUATORS = (
    "es15", "es-sweep", "es-cv", "pl3", "pl", "platt", "beta", "isotonic",
    "spline-natural", "smooth", "es10", "es20", "es25", "es30", "ew10", "ew15", "ew20",
    "ew-cv", "kde", "kce",
)  # fmt: skip
"""Evaluators of the paper's pseudo-real tables, and smooth."""

PIECE_VARIANTS = ("pl-mse", "pl3-mse", "pl-de", "pl-de2")

QUICK_ROWS = 1000
QUICK_CALIBRATORS = ("platt", "beta", "isotonic", "temperature", "vector", "smooth")
QUICK_EVALUATORS = ("es15", "es-sweep", "es-cv", "platt", "beta", "isotonic", "smooth")

REAL_CALIBRATORS = (
    "temperature", "vector", "matrix-odir", "dirichlet-l2", "dirichlet-odir",
)  # fmt: skip
REAL_EVALUATORS = (
    "es15", "es-sweep", "es-cv", "pl3", "pl", "pl-mse", "pl-de", "beta", "isotonic",
    "platt", "smooth",
)  # fmt: skip
"""Calibrators and evaluators of the paper's real study, and smooth."""

SUBSETS = {1000: 10, 3000: 3, 10_000: 1}
"""Rows and number of subsets of the test split in the real study."""

QUICK_SUBSETS = {1000: 2, 10_000: 1}


def _with_settings(method: str, *, every: int, as_printed: bool = False) -> Contender:
    """Return a method with the paper's folds, smoothing and the like."""
    settings = dict(PAPER_SETTINGS.get(method, {}))
    if as_printed and method in PRINTED_ENSEMBLES:
        settings["ensemble"] = PRINTED_ENSEMBLES[method]
    return Contender.of(method, every=every, **settings)


def paper_contenders(*, as_printed: bool = False) -> list[Contender]:
    """Return the twelve methods of the paper's synthetic tables, in their order.

    Folds, smoothing and the like are the paper's. ``pl``, ``pl-mse`` and ``pl-de``
    average over numbers of pieces, as is the default of this library; with
    `as_printed` the number is chosen as in the paper.
    """
    every = dict.fromkeys(CONTINUOUS_METHODS, THINNING)
    return [
        _with_settings(method, every=every.get(method, 1), as_printed=as_printed)
        for method in PAPER_METHODS
    ]


def named_contenders(
    methods: Sequence[str], *, as_printed: bool = False
) -> list[Contender]:
    """Return methods by name: the paper's with its settings, others with defaults."""
    paper = {c.name: c for c in paper_contenders(as_printed=as_printed)}
    return [paper.get(name) or Contender.of(name) for name in methods]


def paper_design(seeds: int = PAPER_SEEDS, *, as_printed: bool = False) -> Design:
    """Return the grid of the paper's synthetic study.

    Five shapes, 21 expected errors and three sizes. Labels depend only on size and
    seed, so that five seeds are just 15 independent draws of labels.

    Examples
    --------
    >>> paper_design().size
    18900
    """
    return Design(
        contenders=paper_contenders(as_printed=as_printed),
        truths=_synthetic_truths(PAPER_SHAPES, PAPER_ERRORS),
        sizes=PAPER_SIZES,
        seeds=range(check_count(seeds, name="seeds")),
    )


def quick_design(seeds: int = 2, *, as_printed: bool = False) -> Design:
    """Return a small part of the paper's grid: 1,000 rows, three errors."""
    truths = _synthetic_truths(PAPER_SHAPES, QUICK_ERRORS)
    design = paper_design(seeds, as_printed=as_printed)
    return replace(design, truths=truths, sizes=PAPER_SIZES[:1])


def is_paper_grid(design: Design) -> bool:
    """Return whether shapes, errors and sizes are the paper's, whatever the seeds."""
    paper = [truth.name for truth in _synthetic_truths(PAPER_SHAPES, PAPER_ERRORS)]
    names = [truth.name for truth in design.truths]
    return design.sizes == PAPER_SIZES and sorted(names) == sorted(paper)


def _synthetic_truths(
    shapes: Iterable[str], errors: Iterable[float], **options: Any
) -> list[Truth]:
    grid = product(shapes, errors)
    return [SyntheticTruth.of(shape, error, **options) for shape, error in grid]


@dataclass(frozen=True)
class FreshStudy:
    """One table of the fresh study."""

    title: str
    shapes: tuple[str, ...]  # rows of the table
    errors: tuple[float, ...]  # expected errors of each shape
    distribution: Distribution = UNIFORM  # of c
    sizes: tuple[int, ...] = PAPER_SIZES
    test_rows: int = 100_000  # unseen rows on which maps are compared with the truth

    def design(
        self, *, seeds: int = FRESH_SEEDS, methods: Sequence[str] = FRESH_METHODS
    ) -> Design:
        """Return the design: calibrated predictions, and each shape with each error.

        The oracle takes part beside the methods.
        """
        data: Any = {"distribution": self.distribution, "test_rows": self.test_rows}
        # All shapes are equal at error 0; the oracle gets the square.
        calibrated = SyntheticTruth("calibrated", 0.0, square, **data)
        last = FIRST_FRESH_SEED + check_count(seeds, name="seeds")
        return Design(
            contenders=[*named_contenders(methods), Contender.oracle()],
            truths=[calibrated, *_synthetic_truths(self.shapes, self.errors, **data)],
            sizes=self.sizes,
            seeds=range(FIRST_FRESH_SEED, last),
        )


FRESH_STUDIES = {
    "paper": FreshStudy("The paper's shapes, c uniform", PAPER_SHAPES, (0.03, 0.08)),
    "other": FreshStudy("Five other shapes, c uniform", OTHER_SHAPES, (0.03, 0.08)),
    **{
        name: FreshStudy(
            f"All ten shapes, c from Beta({a:g}, {b:g})",
            PAPER_SHAPES + OTHER_SHAPES,
            errors=(0.05,),
            distribution=(a, b),
            sizes=PAPER_SIZES[::2],
        )
        for name, a, b in (("skewed", 2.0, 5.0), ("polarised", 0.5, 0.5))
    },
}


def piece_variants() -> list[Contender]:
    """Return the fits that the supplementary tables compare.

    "best" takes the number of pieces with the lowest loss, "fewest" the smallest number
    within 0.1 percent of it (the paper's trick).
    """
    settings: dict[str, dict[str, Any]] = {
        "pl": {"ensemble": "folds"},
        "pl3": {"ensemble": "folds"},
        "pl-de": {"ensemble": "refit"},
        "es-cv": {"random_state": 1},
    }
    tolerances = {"best": 0.0, "fewest": 1e-3}
    variants = [Contender.of(name, every=THINNING) for name in PIECE_VARIANTS]
    for method, end in product(settings, tolerances):
        options = {"tolerance": tolerances[end], **settings[method]}
        name = f"{method} {end}"
        variants.append(Contender.of(method, name=name, every=THINNING, **options))
    return variants


def has_torch() -> bool:
    """Return whether order-preserving networks can be fitted."""
    return find_spec("torch") is not None


def _calibrators(methods: Sequence[str]) -> list[Contender]:
    """Return calibrators of one event or of all classes by name."""
    return [
        (ClassContender if is_of_classes(name) else Contender).of(name, every=THINNING)
        for name in methods
    ]


def _evaluators(methods: Sequence[str]) -> list[Contender]:
    return [_with_settings(method, every=THINNING) for method in methods]


def _check_holdouts(models: Iterable[PredictionSet], design: Design) -> Design:
    """Return the design, or raise where a hold-out is too small for its samples."""
    for model, n in product(models, design.sizes):
        divide_holdout(model.holdout().rows).sample(n, len(design.seeds) - 1)
    return design


@dataclass(frozen=True)
class PseudoRealStudy:
    """Which calibrator finds the map of a model, and which evaluator the rest.

    Parameters
    ----------
    models : sequence of PredictionSet
        Models with a very large hold-out.
    events : sequence of Event
        Classes against the rest, and the top class.
    calibration_sets, seeds : int
        Numbers of samples that calibrators and evaluators are fitted on.
    sizes : sequence of int
        Rows that evaluators are fitted on.
    variant_seeds : int
        Samples that variants of pl and pl3, and order-preserving networks, are fitted
        on; 0 omits them.
    calibration_rows : int
        Rows that calibrators are fitted on.
    calibrators, evaluators : sequence of str
        Methods.

    Examples
    --------
    >>> from calibrant.experiments import Event, StoredPredictions
    >>> models = [StoredPredictions("models/wide32")]  # read when needed
    >>> study = PseudoRealStudy(models, [Event("confidence")])
    >>> len(study.calibrators), study.sizes
    (23, (1000, 3000, 10000))
    """

    models: Sequence[PredictionSet]
    events: Sequence[Event]
    calibration_sets: int = 20  # the paper has one, which leaves much to chance
    seeds: int = PAPER_SEEDS
    sizes: Sequence[int] = PAPER_SIZES
    variant_seeds: int = 5
    calibration_rows: int = 5000
    calibrators: Sequence[str] = CALIBRATORS
    evaluators: Sequence[str] = EVALUATORS

    def quick(self) -> PseudoRealStudy:
        """Return the same with few small samples and the fastest methods."""
        return replace(
            self,
            calibration_sets=min(self.calibration_sets, 2),
            seeds=min(self.seeds, 2),
            sizes=[QUICK_ROWS],
            variant_seeds=0,
            calibration_rows=QUICK_ROWS,
            calibrators=QUICK_CALIBRATORS,
            evaluators=QUICK_EVALUATORS,
        )

    def calibrator_design(self) -> Design:
        """Return all calibrators on events as the models predict them."""
        return Design(
            contenders=_calibrators(self.calibrators),
            truths=self._truths([None]),
            sizes=[self.calibration_rows],
            seeds=range(self.calibration_sets),
            truths_per_task=len(self.events),
        )

    def evaluator_design(self) -> Design:
        """Return evaluators on predictions that were calibrated first."""
        return Design(
            contenders=_evaluators(self.evaluators),
            truths=self._truths(BEST_CALIBRATORS),
            sizes=self.sizes,
            seeds=range(self.seeds),
        )

    def variant_designs(self) -> dict[str, Design]:
        """Return both for variants of pl and pl3, and the slow networks."""
        if not self.variant_seeds:
            return {}
        slow = (*PIECE_VARIANTS, *NETWORKS) if has_torch() else PIECE_VARIANTS
        calibrators = replace(
            self.calibrator_design(),
            contenders=_calibrators(slow),
            seeds=range(min(self.calibration_sets, self.variant_seeds)),
        )
        evaluators = replace(
            self.evaluator_design(),
            contenders=piece_variants(),
            seeds=range(min(self.seeds, self.variant_seeds)),
        )
        return {"slow calibrators": calibrators, "slow evaluators": evaluators}

    def designs(self) -> dict[str, Design]:
        """Return all designs by name, or raise where a hold-out is too small."""
        designs = {
            "calibrators": self.calibrator_design(),
            "evaluators": self.evaluator_design(),
            **self.variant_designs(),
        }
        return {n: _check_holdouts(self.models, d) for n, d in designs.items()}

    def _truths(self, calibrators: Sequence[str | None]) -> list[Truth]:
        grid = product(self.models, self.events, calibrators)
        return [PseudoRealTruth(*place) for place in grid]


@dataclass(frozen=True)
class RealStudy:
    """How evaluators judge calibrated models on real data.

    Parameters
    ----------
    models : sequence of PredictionSet
        Real predictions.
    known : sequence of PredictionSet
        Models with a very large hold-out, whose biases centre those of real data.
    seeds : int
        Samples of each size that are drawn from a hold-out.
    subsets : dict
        Number of subsets of the test rows, by their size; fewer if rows are too few.
    known_sizes : sequence of int
        Rows of samples from a hold-out; by default those of the subsets.
    calibrators, evaluators : sequence of str
        Methods.

    Examples
    --------
    >>> RealStudy([]).quick().calibrators
    ('temperature', 'vector')
    """

    models: Sequence[PredictionSet]
    known: Sequence[PredictionSet] = ()
    seeds: int = PAPER_SEEDS
    subsets: dict[int, int] = field(default_factory=SUBSETS.copy)
    known_sizes: Sequence[int] = ()
    calibrators: Sequence[str] = REAL_CALIBRATORS
    evaluators: Sequence[str] = REAL_EVALUATORS

    def quick(self) -> RealStudy:
        """Return the same with few subsets and the fastest methods."""
        return replace(
            self,
            seeds=min(self.seeds, 2),
            subsets=QUICK_SUBSETS,
            known_sizes=[QUICK_ROWS],
            calibrators=REAL_CALIBRATORS[:2],
            evaluators=QUICK_EVALUATORS,
        )

    def designs(self) -> dict[str, Design]:
        """Return one design per size of subsets, and one for models with a hold-out.

        Raises where a hold-out is too small for its samples.
        """
        subsets = self._feasible_subsets()
        truths = [RealTruth(*place) for place in product(self.models, self.calibrators)]
        designs = {
            f"real, {n}": self._design(truths, [n], count)
            for n, count in subsets.items()
        }
        if self.known:
            grid = product(self.known, [TOP_LABEL], self.calibrators)
            known = [PseudoRealTruth(*place) for place in grid]
            sizes = self.known_sizes or list(subsets)
            design = self._design(known, sizes, self.seeds)
            designs["pseudo-real"] = _check_holdouts(self.known, design)
        return designs

    def _design(
        self, truths: Sequence[Truth], sizes: Sequence[int], seeds: int
    ) -> Design:
        contenders = _evaluators(self.evaluators)
        return Design(
            contenders=contenders, truths=truths, sizes=sizes, seeds=range(seeds)
        )

    def _feasible_subsets(self) -> dict[int, int]:
        """Return how many subsets of each size all test splits can provide."""
        rows = min(model.test().rows for model in self.models)
        counts = {n: min(k, rows // n) for n, k in self.subsets.items() if n <= rows}
        if not counts:
            raise SourceError(
                f"test splits must have at least {min(self.subsets)} rows; the "
                f"smallest has {rows}."
            )
        return counts
