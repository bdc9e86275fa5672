"""The pseudo-real and the real study as designs.

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

from calibrant.exceptions import SourceError
from calibrant.experiments.contenders import (
    THINNING,
    Contender,
    calibrator_contenders,
)
from calibrant.experiments.design import Design
from calibrant.experiments.prediction_truths import (
    TOP_LABEL,
    PseudoRealTruth,
    RealTruth,
    check_holdout,
)
from calibrant.experiments.synthetic_studies import (
    PAPER_SEEDS,
    PAPER_SETTINGS,
    PAPER_SIZES,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.experiments.design import Truth
    from calibrant.experiments.predictions import Event, PredictionSet

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


def evaluator(method: str) -> Contender:
    """Return an evaluator with the settings of the paper's pseudo-real tables."""
    return Contender.of(method, every=THINNING, **PAPER_SETTINGS.get(method, {}))


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
            contenders=calibrator_contenders(self.calibrators, every=THINNING),
            truths=self._truths([None]),
            sizes=[self.calibration_rows],
            seeds=range(self.calibration_sets),
            truths_per_task=len(self.events),
        )

    def evaluator_design(self) -> Design:
        """Return evaluators on predictions that were calibrated first."""
        return Design(
            contenders=[evaluator(method) for method in self.evaluators],
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
            contenders=calibrator_contenders(slow, every=THINNING),
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
        for model, design in product(self.models, designs.values()):
            for n in design.sizes:
                check_holdout(model, n, len(design.seeds))
        return designs

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
        grid = product(self.models, self.calibrators)
        truths: list[Truth] = [RealTruth(*place) for place in grid]
        subsets = self._feasible_subsets()
        designs = {
            f"real, {n}": self._design(truths, [n], count)
            for n, count in subsets.items()
        }
        if self.known:
            sizes = self.known_sizes or list(subsets)
            designs["pseudo-real"] = self._known_design(sizes)
        return designs

    def _known_design(self, sizes: Sequence[int]) -> Design:
        for model in self.known:
            check_holdout(model, max(sizes), self.seeds)
        grid = product(self.known, [TOP_LABEL], self.calibrators)
        return self._design([PseudoRealTruth(*p) for p in grid], sizes, self.seeds)

    def _design(self, truths: list[Truth], sizes: Sequence[int], seeds: int) -> Design:
        contenders = [evaluator(method) for method in self.evaluators]
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
