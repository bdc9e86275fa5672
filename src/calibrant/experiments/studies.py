"""The paper's pseudo-real and real studies as designs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from calibrant.experiments.class_contenders import calibrator_contenders
from calibrant.experiments.design import (
    PAPER_SEEDS,
    PAPER_SIZES,
    THINNED,
    Contender,
    Design,
)
from calibrant.experiments.pseudo_real import PseudoRealTruth, check_samples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.experiments.predictions import Event, PredictionSet

CALIBRATION_ROWS = 5000
CALIBRATION_SETS = 20
"""The paper has one set of 5,000 rows, which leaves all to chance."""

CALIBRATORS = (
    "platt",
    "beta",
    "isotonic",
    "scaling-binning",
    "temperature",
    "one-temp",
    "vector",
    "dirichlet-l2",
    "dirichlet-odir",
    "matrix-odir",
    "spline-natural",
    "spline-cubic",
    "spline-parabolic",
    "kde",
    "es15",
    "es-cv",
    "es-sweep",
    "ew15",
    "ew-cv",
    "ew-sweep",
    "pl",
    "pl3",
    "smooth",
)
"""All calibrators but variants of pl, and the networks that need torch."""

NETWORKS = ("iop-oi", "iop-op", "iop-diag")
"""Order-preserving networks, of which one fit takes as long as a hundred others."""

BEST_CALIBRATORS = (
    "beta",
    "vector",
    "platt",
    "pl3",
    "scaling-binning",
    "isotonic",
)
"""The six whose predictions evaluators are compared on."""

REAL_CALIBRATORS = (
    "temperature",
    "vector",
    "matrix-odir",
    "dirichlet-l2",
    "dirichlet-odir",
)
"""The five of the paper's real experiments."""

EVALUATORS = (
    "es15",
    "es-sweep",
    "es-cv",
    "pl3",
    "pl",
    "platt",
    "beta",
    "isotonic",
    "spline-natural",
    "smooth",
    "es10",
    "es20",
    "es25",
    "es30",
    "ew10",
    "ew15",
    "ew20",
    "ew-cv",
    "kde",
    "kce",
)
"""Evaluators of the paper's tables, and smooth."""

REAL_EVALUATORS = (
    "es15",
    "es-sweep",
    "es-cv",
    "pl3",
    "pl",
    "pl-mse",
    "pl-de",
    "beta",
    "isotonic",
    "platt",
    "smooth",
)

VARIANT_SEEDS = 5
"""Samples for what is slow: variants of pl and pl3, and networks."""

SUBSETS = {1000: 10, 3000: 3, 10_000: 1}
"""Rows and number of subsets of the test split in the real experiments."""


def variants() -> list[Contender]:
    """Return the fits that the supplementary tables compare.

    "best" takes the number of pieces with the least loss, "fewest" the fewest within
    0.1 percent of it (the paper's trick).

    Examples
    --------
    >>> [variant.name for variant in variants()][:4]
    ['pl-mse', 'pl3-mse', 'pl-de', 'pl-de2']
    """
    plain = [Contender.of(name, every=THINNED) for name in PIECE_VARIANTS]
    options: dict[str, dict[str, Any]] = {
        "pl": {"ensemble": "folds"},
        "pl3": {"ensemble": "folds"},
        "pl-de": {"ensemble": "refit"},
        "es-cv": {"random_state": 1},
    }
    return plain + [
        Contender.of(
            method, name=f"{method} {end}", every=THINNED, tolerance=tolerance, **given
        )
        for method, given in options.items()
        for end, tolerance in (("best", 0.0), ("fewest", 1e-3))
    ]


PIECE_VARIANTS = ("pl-mse", "pl3-mse", "pl-de", "pl-de2")


def has_torch() -> bool:
    """Tell whether networks can be fitted here."""
    return find_spec("torch") is not None


def evaluator(method: str) -> Contender:
    """Return an evaluator, set as in the paper's tables."""
    papers: dict[str, dict[str, Any]] = {
        "es-cv": {"random_state": 1},
        "ew-cv": {"random_state": 1},
        "platt": {"smoothing": True},
    }
    return Contender.of(method, every=THINNED, **papers.get(method, {}))


@dataclass(frozen=True)
class PseudoRealStudy:
    """Which calibrator finds the map of a model, which evaluator what is left.

    Parameters
    ----------
    models : sequence of PredictionSet
        Models with a vast hold-out.
    events : sequence of Event
        Classes against the rest, and the top class.
    calibration_sets, seeds : int
        Samples that calibrators and evaluators are fitted on.
    sizes : sequence of int
        Rows that evaluators are fitted on.
    variant_seeds : int
        Samples that variants of pl and pl3, and order-preserving networks, are fitted
        on; 0 leaves them out.
    quick : bool
        Small samples, few of them, and the quickest methods.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from calibrant.experiments import Event, find_predictions
    >>> prob, label = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0, 1])
    >>> rows = {"probs_cal": prob, "y_cal": label, "probs_test": prob, "y_test": label}
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(folder + "/forest.npz", **rows)
    ...     models = find_predictions(folder)
    ...     design = PseudoRealStudy(models, [Event("confidence")]).calibrators()
    >>> [truth.shape for truth in design.truths], design.sizes
    (['forest | confidence'], (5000,))
    """

    models: Sequence[PredictionSet]
    events: Sequence[Event]
    calibration_sets: int = CALIBRATION_SETS
    seeds: int = PAPER_SEEDS
    sizes: Sequence[int] = PAPER_SIZES
    variant_seeds: int = VARIANT_SEEDS
    quick: bool = False

    def calibrators(self) -> Design:
        """Return study 1: all calibrators on events as the models predict them."""
        chosen = QUICK_CALIBRATORS if self.quick else CALIBRATORS
        return Design(
            contenders=calibrator_contenders(chosen, every=THINNED),
            truths=self._truths([None]),
            sizes=[QUICK_ROWS if self.quick else CALIBRATION_ROWS],
            seeds=range(self.calibration_sets),
            together=len(self.events),
        )

    def evaluators(self) -> Design:
        """Return study 2: evaluators on predictions that were calibrated before."""
        chosen = QUICK_EVALUATORS if self.quick else EVALUATORS
        return Design(
            contenders=[evaluator(method) for method in chosen],
            truths=self._truths(BEST_CALIBRATORS),
            sizes=[QUICK_ROWS] if self.quick else self.sizes,
            seeds=range(self.seeds),
        )

    def variants(self) -> list[Design]:
        """Return both studies for variants of pl and pl3, and the slow networks."""
        if self.quick or not self.variant_seeds:
            return []
        slow = (*PIECE_VARIANTS, *NETWORKS) if has_torch() else PIECE_VARIANTS
        calibrators = calibrator_contenders(slow, every=THINNED)
        return [
            replace(
                design, contenders=contenders, seeds=design.seeds[: self.variant_seeds]
            )
            for design, contenders in (
                (self.calibrators(), calibrators),
                (self.evaluators(), variants()),
            )
        ]

    def designs(self) -> list[Design]:
        """Return all designs of the study, or raise where a hold-out is too small."""
        found = [self.calibrators(), self.evaluators(), *self.variants()]
        for model in self.models:
            for design in found:
                for n in design.sizes:
                    check_samples(model, n, len(design.seeds))
        return found

    def _truths(self, calibrators: Sequence[str | None]) -> list[PseudoRealTruth]:
        return [
            PseudoRealTruth(model, event, calibrator)
            for model in self.models
            for event in self.events
            for calibrator in calibrators
        ]


QUICK_ROWS = 1000
QUICK_CALIBRATORS = ("platt", "beta", "isotonic", "temperature", "vector", "smooth")
QUICK_EVALUATORS = ("es15", "es-sweep", "es-cv", "platt", "beta", "isotonic", "smooth")
