"""Real predictions: subsets of test rows, of which no truth is known."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from calibrant._validation.options import check_choice
from calibrant.exceptions import SourceError
from calibrant.experiments.design import PAPER_SEEDS, Design
from calibrant.experiments.predictions import Event
from calibrant.experiments.pseudo_real import (
    SEPARATOR,
    PseudoRealTruth,
    calibrated_outcomes,
    check_samples,
)
from calibrant.experiments.studies import (
    QUICK_EVALUATORS,
    REAL_CALIBRATORS,
    REAL_EVALUATORS,
    SUBSETS,
    evaluator,
)
from calibrant.experiments.truths import KnownSample

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.experiments.predictions import Outcomes, PredictionSet

CONFIDENCE = Event("confidence")
QUICK_CALIBRATORS = ("temperature", "vector")
QUICK_SUBSETS = {1000: 2, 10_000: 1}
SHUFFLE_SEED = 0


@dataclass(frozen=True)
class RealTruth:
    """Test rows of a calibrated model; its true map and errors are NaN.

    Parameters
    ----------
    predictions : PredictionSet
        A model with a calibration and a test split.
    calibrator : str
        Method of all classes that is fitted on the calibration split before.
    event : Event
        By default whether the top class is right.

    Examples
    --------
    >>> from calibrant.experiments import StoredPredictions
    >>> model = StoredPredictions("models/wide32")  # read when needed
    >>> RealTruth(model, "temperature").shape
    'wide32 | confidence | temperature'
    """

    predictions: PredictionSet
    calibrator: str
    event: Event = CONFIDENCE

    @property
    def shape(self) -> str:
        """Return model, event and calibrator, which tables take apart again."""
        parts = (self.predictions.name, self.event.label, self.calibrator)
        return SEPARATOR.join(parts)

    @property
    def error(self) -> float:
        """Return NaN: nobody knows."""
        return float("nan")

    @property
    def name(self) -> str:
        """Return what the rows depend on, the content of the files included."""
        prints = (
            self.predictions.calibration().fingerprint,
            self.predictions.test().fingerprint,
        )
        return SEPARATOR.join(["real", self.shape, *prints])

    def draw(self, n: int, seed: int) -> KnownSample:
        """Return subset number `seed` of `n` rows; subsets share no row."""
        rows = _outcomes(self)
        order = np.random.default_rng(SHUFFLE_SEED).permutation(rows.p.size)
        here = order[seed * n : (seed + 1) * n]
        if here.size < n:
            raise SourceError(
                f"{self.predictions.name} has {rows.p.size} test rows, too few for "
                f"{seed + 1} subsets of {n}."
            )
        return KnownSample(rows.p[here], rows.y[here], np.full(n, np.nan))

    def unseen(self) -> KnownSample:
        """Return no rows: maps cannot be compared with a truth."""
        none = np.empty(0)
        return KnownSample(none, none, none)


@lru_cache(maxsize=8)
def _outcomes(truth: RealTruth) -> Outcomes:
    return calibrated_outcomes(
        truth.predictions, truth.predictions.test(), truth.event, truth.calibrator
    )


@dataclass(frozen=True)
class RealStudy:
    """How evaluators judge calibrated models on real data.

    Parameters
    ----------
    models : sequence of PredictionSet
        Real predictions.
    known : sequence of PredictionSet
        Models with a vast hold-out, whose biases centre those of real data.
    quick : bool
        Fewer calibrators, evaluators and subsets.
    seeds : int
        Samples of each size that are drawn from a vast hold-out.
    sizes : sequence of int
        Rows of subsets; each must be a key of `SUBSETS`.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from calibrant.experiments import find_predictions
    >>> prob = np.tile([[0.9, 0.1], [0.3, 0.7]], (1500, 1))
    >>> label = np.tile([0, 1], 1500)
    >>> rows = {"probs_cal": prob, "y_cal": label, "probs_test": prob, "y_test": label}
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(folder + "/forest.npz", **rows)
    ...     designs = RealStudy(find_predictions(folder)).designs()
    >>> [(design.sizes, len(design.seeds)) for design in designs]
    [((1000,), 3), ((3000,), 1)]
    """

    models: Sequence[PredictionSet]
    known: Sequence[PredictionSet] = ()
    quick: bool = False
    seeds: int = PAPER_SEEDS
    sizes: Sequence[int] = tuple(SUBSETS)

    def designs(self) -> list[Design]:
        """Return a design a subset size, then those of models with a hold-out.

        Raises where a hold-out is too small for its samples.
        """
        methods = QUICK_EVALUATORS if self.quick else REAL_EVALUATORS
        calibrators = QUICK_CALIBRATORS if self.quick else REAL_CALIBRATORS
        contenders = [evaluator(method) for method in methods]
        subsets = self._subsets()
        real = [RealTruth(m, c) for m in self.models for c in calibrators]
        designs = [
            Design(contenders=contenders, truths=real, sizes=[n], seeds=range(count))
            for n, count in subsets.items()
        ]
        if self.known:
            pseudo = [
                PseudoRealTruth(model, CONFIDENCE, calibrator)
                for model in self.known
                for calibrator in calibrators
            ]
            sizes = list(subsets)[:1] if self.quick else list(subsets)
            seeds = range(min(self.seeds, 2) if self.quick else self.seeds)
            for model in self.known:
                check_samples(model, max(sizes), len(seeds))
            designs.append(
                Design(contenders=contenders, truths=pseudo, sizes=sizes, seeds=seeds)
            )
        return designs

    def _subsets(self) -> dict[int, int]:
        """Return how many subsets of each size all test splits can give."""
        rows = min(model.test().rows for model in self.models)
        for n in self.sizes:
            check_choice(n, SUBSETS, name="sizes")
        wanted = QUICK_SUBSETS if self.quick else {n: SUBSETS[n] for n in self.sizes}
        found = {n: min(count, rows // n) for n, count in wanted.items() if n <= rows}
        if not found:
            raise SourceError(
                f"test splits must have at least {min(wanted)} rows; the smallest has "
                f"{rows}."
            )
        return found
