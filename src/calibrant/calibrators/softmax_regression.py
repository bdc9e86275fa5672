"""Softmax regression: vector and matrix scaling, Dirichlet calibration.

All are convex problems; they differ in their inputs, in the number of weights and in
the penalties.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from calibrant.calibrators.base import ClassCalibrator
from calibrant.calibrators.fits import MulticlassFit
from calibrant.core.array_types import FoldEnsemble
from calibrant.core.parameters import (
    check_choice,
    check_count,
    check_penalties,
    legacy_generator,
)
from calibrant.maps.multiclass import multiclass_mean
from calibrant.maps.softmax import Inputs, SoftmaxMap, TemperedSoftmaxMap, linear_inputs
from calibrant.numerics.class_probabilities import (
    inverse_temperature,
    log_softmax,
    logits_of,
    mean_log_loss,
    tempered_inputs,
    weight_shares,
)
from calibrant.numerics.cross_validation import class_fold_numbers
from calibrant.numerics.softmax_regression import ClassTerms, SoftmaxProblem, minimise

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector, Seed
    from calibrant.core.sample import ClassSample
    from calibrant.maps.multiclass import MulticlassMap

Structure: TypeAlias = Literal["vector", "matrix"]
Regularisation: TypeAlias = Literal["odir", "l2"]
"""Off-diagonal weights and intercepts are penalised, or all weights."""

GRID = (1e4, 1e3, 100.0, 10.0, 1.0, 0.1, 0.01, 0.001)
ANCHOR = 1e-9
"""A penalty on all parameters that matters only where the data leave them free."""
TOLERANCE = 1e-7
ROUGH_TOLERANCE = 1e-5
"""Norms of the gradient: of a map, and of those that are only compared."""
RISES = 2
MUCH_WORSE = 1.01
"""A path ends where the held-out loss exceeds the least twice, or by one percent."""


@dataclass(frozen=True, eq=False)
class _Rows:
    """Inputs in units of their own size, with labels and weights."""

    x: FloatMatrix
    column: IntVector
    share: FloatVector
    size: float

    @classmethod
    def of(cls, sample: ClassSample, inputs: Inputs) -> _Rows:
        x = linear_inputs(sample.scores, sample.scale, inputs)
        share = weight_shares(sample.weight, sample.n)
        size = float(np.sqrt(share @ np.square(x).mean(axis=1))) or 1.0
        return cls(x / size, sample.column, share, size)

    def some(self, which: IntVector) -> _Rows:
        share = self.share[which]
        return _Rows(self.x[which], self.column[which], share / share.sum(), self.size)

    @property
    def tolerance(self) -> float:
        """Return what keeps the gradient by the weights of raw inputs small enough."""
        return 1.0 / max(1.0, self.size)


@dataclass(kw_only=True, eq=False, repr=False)
class VectorScaling(ClassCalibrator):
    """One slope and one intercept per class (Guo et al. 2017)."""

    def fit_classes(self, sample: ClassSample) -> MulticlassFit:
        """Fit slopes and intercepts."""
        rows = _Rows.of(sample, "centred")
        terms = ClassTerms.vector(rows.x)
        start = terms.identity * rows.size  # its intercepts are 0
        penalty = np.full_like(start, ANCHOR)
        problem = SoftmaxProblem(terms, rows.column, rows.share, penalty, start)
        solution = minimise(problem, start, tolerance=TOLERANCE * rows.tolerance)
        slopes, intercepts = solution.parameters.reshape(-1, 2).T
        return MulticlassFit(
            SoftmaxMap(slopes / rows.size, intercepts, "centred", sample.scale)
        )


@dataclass(kw_only=True, eq=False, repr=False)
class MatrixScaling(ClassCalibrator):
    """A full matrix of weights and one intercept per class.

    Parameters
    ----------
    inputs : {"centred", "log-prob"}
        Logits with mean 0 in each row (matrix scaling, Guo et al. 2017), or
        log-probabilities (Dirichlet calibration, Kull et al. 2019).
    regularisation : {"odir", "l2"}
        "odir" adds ``penalty * mean(w_ij ** 2, i != j)`` and ``intercept_penalty *
        mean(b_j ** 2)`` to the mean log-loss; "l2" adds ``penalty`` times the mean
        square of all weights and intercepts.
    penalty : float or sequence of float
        One penalty, or those to choose from by cross-validation.
    intercept_penalty : float, sequence of float or None
        The same for intercepts; None takes that of the weights. "l2" has none.
    folds : int
        Number of folds of the cross-validation.
    ensemble : {"folds", "refit"}
        The mean of the folds' maps, as in Kull et al., or one map refitted on all
        rows.
    random_state : int, generator or None
        Shuffles rows into folds; rows are sorted first, so that their order does not
        matter.
    """

    inputs: Inputs = "centred"
    regularisation: Regularisation = "odir"
    penalty: float | tuple[float, ...] = GRID
    intercept_penalty: float | tuple[float, ...] | None = None
    folds: int = 5
    ensemble: FoldEnsemble = "folds"
    random_state: Seed = 0

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_choice(self.inputs, get_args(Inputs), name="inputs")
        check_choice(
            self.regularisation, get_args(Regularisation), name="regularisation"
        )
        check_choice(self.ensemble, get_args(FoldEnsemble), name="ensemble")
        check_count(self.folds, name="folds", least=2)
        check_penalties(self.penalty, name="penalty")
        if self.intercept_penalty is not None:
            check_penalties(self.intercept_penalty, name="intercept_penalty")

    def fit_classes(self, sample: ClassSample) -> MulticlassFit:
        """Fit the map; choose penalties by cross-validation where there is a choice."""
        rows = _Rows.of(sample, self.inputs)
        paths = list(self._paths())
        folds = min(self.folds, sample.n)
        only = paths[0][0] if folds == 1 or sum(map(len, paths)) == 1 else None
        if only is not None:  # nothing to choose, or nothing to hold out
            return MulticlassFit(self._map([self._solve(rows, only)], rows, sample))
        rng = legacy_generator(self.random_state)
        fold = class_fold_numbers(rows.x, rows.column, rows.share, folds, rng)
        parts = list(_parts(rows, fold))
        tried = [step for path in paths for step in self._walk(path, parts)]
        losses = np.array([step.loss for step in tried])
        best = tried[int(losses.argmin())]
        if self.ensemble == "refit":
            solutions = [self._solve(rows, best.penalties)]
        else:
            solutions = [
                self._solve(training, best.penalties, start)
                for (training, _), start in zip(parts, best.parameters, strict=True)
            ]
        map_ = self._map(solutions, rows, sample)
        return MulticlassFit(map_, losses, best.penalties)

    def _paths(self) -> Iterator[list[tuple[float, float]]]:
        """Yield lists of penalties, each from strong to weak."""
        weights = sorted(check_penalties(self.penalty, name="penalty"), reverse=True)
        if self.intercept_penalty is None or self.regularisation == "l2":
            yield [(penalty, penalty) for penalty in weights]
            return
        for own in check_penalties(self.intercept_penalty, name="intercept_penalty"):
            yield [(penalty, own) for penalty in weights]

    def _walk(
        self, path: list[tuple[float, float]], parts: list[tuple[_Rows, _Rows]]
    ) -> Iterator[_Tried]:
        """Fit all folds along a path, each from the fit before, until it gets worse."""
        least, rises = np.inf, 0
        starts: list[FloatVector | None] = [None] * len(parts)
        for penalties in path:
            solutions, fold_losses = [], []
            for (training, held_out), start in zip(parts, starts, strict=True):
                solution = self._solve(
                    training, penalties, start, tolerance=ROUGH_TOLERANCE
                )
                solutions.append(solution)
                fold_losses.append(_loss(held_out, solution))
            loss = float(np.mean(fold_losses))
            yield _Tried(penalties, loss, solutions)
            rises = 0 if loss < least else rises + 1
            if rises == RISES or loss > MUCH_WORSE * least:
                return
            least, starts = min(least, loss), list(solutions)

    def _solve(
        self,
        rows: _Rows,
        penalties: tuple[float, float],
        start: FloatVector | None = None,
        *,
        tolerance: float = TOLERANCE,
    ) -> FloatVector:
        terms = ClassTerms.matrix(rows.x)
        identity = terms.identity * rows.size  # its intercepts are 0
        anchor = np.zeros_like(identity) if self.regularisation == "l2" else identity
        penalty = self._penalty(rows, penalties).reshape(-1)
        problem = SoftmaxProblem(terms, rows.column, rows.share, penalty, anchor)
        start = identity if start is None else start
        return minimise(problem, start, tolerance=tolerance * rows.tolerance).parameters

    def _penalty(self, rows: _Rows, penalties: tuple[float, float]) -> FloatMatrix:
        k = rows.x.shape[1]
        size = np.append(np.full(k, rows.size**2), 1.0)
        if self.regularisation == "l2":
            row = np.asarray(penalties[0] / (k * (k + 1)) / size + ANCHOR)
            return row * np.ones((k, 1))
        off_diagonal = np.full((k, k), penalties[0] / (k * (k - 1)))
        np.fill_diagonal(off_diagonal, 0.0)
        intercepts = np.full(k, penalties[1] / k)
        return np.asarray(np.column_stack([off_diagonal, intercepts]) / size + ANCHOR)

    def _map(
        self, solutions: list[FloatVector], rows: _Rows, sample: ClassSample
    ) -> MulticlassMap:
        matrices = (p.reshape(sample.n_classes, -1) for p in solutions)
        maps = tuple(
            SoftmaxMap(m[:, :-1] / rows.size, m[:, -1], self.inputs, sample.scale)
            for m in matrices
        )
        return multiclass_mean(maps)


@dataclass(frozen=True, eq=False)
class _Tried:
    """Penalties, their cross-validated loss and the parameters of each fold."""

    penalties: tuple[float, float]
    loss: float
    parameters: list[FloatVector]


def _parts(rows: _Rows, fold: IntVector) -> Iterator[tuple[_Rows, _Rows]]:
    for i in range(int(fold.max()) + 1):
        yield rows.some(np.flatnonzero(fold != i)), rows.some(np.flatnonzero(fold == i))


def _loss(rows: _Rows, parameters: FloatVector) -> float:
    scores = ClassTerms.matrix(rows.x).scores(parameters)
    return mean_log_loss(log_softmax(scores), rows.column, rows.share)


@dataclass(kw_only=True, eq=False, repr=False)
class StructuredScaling(ClassCalibrator):
    """A vector or a matrix on log-probabilities after temperature scaling.

    Temperature scaling is fitted first, without a penalty, and its probabilities are
    mixed with 1 / (n + 1) of the uniform distribution. Then the mean log-loss of
    softmax(W x + b) is minimised, with x the logarithms of these probabilities, plus
    k / n times the squares of intercepts and of the diagonal of W - I, and
    k (k - 1) / n times the squares of the other weights, for n rows and k classes.

    Parameters
    ----------
    structure : {"vector", "matrix"}
        Whether W is diagonal.

    References
    ----------
    E. Berta, D. Holzmüller, M. I. Jordan, F. Bach (2025). Structured matrix scaling
    for multi-class calibration. doi:10.48550/arXiv.2511.03685
    """

    structure: Structure = "matrix"

    def check_parameters(self) -> None:
        """Raise where a parameter is invalid."""
        check_choice(self.structure, get_args(Structure), name="structure")

    def fit_classes(self, sample: ClassSample) -> MulticlassFit:
        """Fit the temperature, then weights and intercepts."""
        logits = logits_of(sample.scores, sample.scale)
        share = weight_shares(sample.weight, sample.n)
        inverse = inverse_temperature(logits, sample.column, share)
        uniform = 1.0 / (sample.total + 1.0)
        x = tempered_inputs(logits, inverse, uniform)
        vector = self.structure == "vector"
        terms = ClassTerms.vector(x) if vector else ClassTerms.matrix(x)
        start = terms.identity
        penalty = self._penalty(sample.n_classes).reshape(-1) / sample.total
        problem = SoftmaxProblem(terms, sample.column, share, penalty, start)
        tolerance = TOLERANCE / max(1.0, float(np.sqrt(np.mean(x**2))))
        solution = minimise(problem, start, tolerance=tolerance).parameters
        *columns, intercepts = solution.reshape(sample.n_classes, -1).T
        weights = columns[0] if vector else np.column_stack(columns)
        map_ = TemperedSoftmaxMap(
            weights, intercepts, "log-prob", sample.scale, inverse, uniform
        )
        return MulticlassFit(map_)

    def _penalty(self, k: int) -> FloatMatrix:
        """Return the penalties for a single row, shaped as the parameters."""
        if self.structure == "vector":
            return np.full((k, 2), float(k))
        weights = np.full((k, k), k * (k - 1.0))
        np.fill_diagonal(weights, k)
        return np.column_stack([weights, np.full(k, k)])
