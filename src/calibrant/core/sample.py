"""Validated samples, of one event or of several classes: what every fit works on."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from calibrant.core.arrays import as_array, check_same_length, check_vector
from calibrant.core.labels import (
    check_class_labels,
    check_second_column,
    event_labels,
    is_missing,
)
from calibrant.core.probabilities import (
    check_class_scores,
    event_probabilities,
    has_two_columns,
)
from calibrant.core.warn import warn
from calibrant.core.weights import check_weights
from calibrant.core.wording import CLASS_CALIBRATOR_WORDING, MEASURE_WORDING, Wording
from calibrant.exceptions import (
    DROP_ROWS,
    LabelError,
    MissingValueError,
    OptionError,
    SmallSampleWarning,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from calibrant.core.array_types import (
        ArrayLike,
        BoolVector,
        FloatMatrix,
        FloatVector,
        IntVector,
        Scale,
    )


class Sized(Protocol):
    """A sample of events or of classes."""

    @property
    def total(self) -> float:
        """Return the rows that the sample stands for."""
        ...

    @property
    def clusters(self) -> IntVector | None:
        """Return the number of each row's cluster, where rows belong together."""
        ...


FEW_ROWS = 30
"""Below this many rows the noise of a calibration error exceeds what is measured."""
FEW_CLUSTERS = 10
"""Below this many clusters intervals that allow for them are rough."""


@dataclass(frozen=True, eq=False)
class BinarySample:
    """Predicted probabilities of an event, whether it happened, and weights."""

    p: FloatVector  # predicted probability of the event
    # 1.0 where the event happened, 0.0 where not. Rows that stand for many may hold the
    # share in between
    y: FloatVector
    # how many rows each row stands for; None where each stands for itself
    weight: FloatVector | None = None
    # how many rows of the data each row stands for, which folds may split; None where
    # each row is one row of the data
    row_counts: IntVector | None = None
    # a number for each row, the same for rows that belong together; None where rows are
    # independent
    clusters: IntVector | None = None
    # what was computed from the rows, by name (numerics/sample_cache.py)
    cache: dict[str, Any] = field(default_factory=dict, init=False, repr=False)

    @cached_property
    def n(self) -> int:
        """Return the number of rows."""
        return self.p.size

    @cached_property
    def n_data(self) -> int:
        """Return the number of rows of the data, before any were aggregated."""
        return self.n if self.row_counts is None else int(self.row_counts.sum())

    @cached_property
    def total(self) -> float:
        """Return the sum of weights: the rows that the sample stands for."""
        return float(self.p.size if self.weight is None else self.weight.sum())

    @property
    def weights(self) -> FloatVector:
        """Return the weight of each row, also where all are 1."""
        return np.ones(self.n) if self.weight is None else self.weight

    def mean(self, values: FloatVector) -> float:
        """Return the weighted mean of values, one per row."""
        return float(np.average(values, weights=self.weight))

    def weighted(
        self,
        weight: FloatVector | None,
        rows: IntVector | slice,
        clusters: IntVector | None,
    ) -> BinarySample:
        """Return some of the rows, with weights and clusters; none of weight 0."""
        return weighted_sample(self.p[rows], self.y[rows], weight, clusters)

    def take(self, rows: BoolVector | IntVector) -> BinarySample:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return BinarySample(self.p[rows], self.y[rows], weight)


def weighted_sample(
    p: FloatVector,
    y: FloatVector,
    weight: FloatVector | None,
    clusters: IntVector | None = None,
) -> BinarySample:
    """Return the sample without the rows that have no weight."""
    if weight is not None and not weight.all():
        used = weight > 0.0
        p, y, weight = p[used], y[used], weight[used]
        clusters = None if clusters is None else clusters[used]
    return BinarySample(p, y, weight, clusters=clusters)


def join_samples(samples: Sequence[BinarySample]) -> BinarySample:
    """Return the rows of several samples as one."""
    weighted = any(sample.weight is not None for sample in samples)
    return BinarySample(
        np.concatenate([sample.p for sample in samples]),
        np.concatenate([sample.y for sample in samples]),
        np.concatenate([sample.weights for sample in samples]) if weighted else None,
        clusters=_joined([sample.clusters for sample in samples]),
    )


def _joined(clusters: Sequence[IntVector | None]) -> IntVector | None:
    """Return the clusters of several samples, if all have them."""
    known = [one for one in clusters if one is not None]
    return np.concatenate(known) if len(known) == len(clusters) else None


def warn_if_small(sample: Sized, name: str | None = None) -> None:
    """Warn where a sample has too few rows or clusters to mean much.

    The name, if there is one, says which sample it is.
    """
    which = f"{name}: " if name else ""
    if sample.clusters is not None:
        count = np.count_nonzero(np.bincount(sample.clusters))
        if 1 < count < FEW_CLUSTERS:  # a single one is an error
            warn(
                f"{which}only {count} clusters: with so few, intervals and p-values "
                f"are rough (use at least {FEW_CLUSTERS}, preferably 30).",
                SmallSampleWarning,
            )
    if sample.total < FEW_ROWS:
        rows = "1 row" if sample.total == 1.0 else f"{sample.total:g} rows"
        warn(
            f"{which}only {rows}: with so few, a calibration error is mostly noise "
            f"(use at least {FEW_ROWS}, preferably 1000).",
            SmallSampleWarning,
        )


def check_binary_sample(
    y_true: ArrayLike,
    y_prob: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
    scale: Scale = "prob",
    wording: Wording = MEASURE_WORDING,
) -> BinarySample:
    """Validate labels, probabilities and weights of a binary event together."""
    p, y = event_of_arrays(
        as_array(y_true, name=wording.label),
        as_array(y_prob, name=wording.prob),
        pos_label=pos_label,
        scale=scale,
        wording=wording,
    )
    weight = check_weights(sample_weight, name=wording.weight)
    check_same_length(**{wording.label: y, wording.prob: p, wording.weight: weight})
    return weighted_sample(p, y, weight)


def event_of_arrays(
    labels: NDArray[Any],
    scores: NDArray[Any],
    *,
    pos_label: Any,
    scale: Scale,
    wording: Wording,
) -> tuple[FloatVector, FloatVector]:
    """Validate probabilities and labels of a binary event; return them as numbers."""
    p = event_probabilities(scores, scale=scale, wording=wording)
    labels = check_vector(labels, name=wording.label)
    try:
        y = event_labels(labels, pos_label=pos_label, wording=wording)
    except LabelError as error:
        if not _are_swapped(labels, p):
            raise
        remedy = f"Are {wording.label} and {wording.prob} swapped?"
        raise error.with_remedy(remedy) from None
    if pos_label is not None and has_two_columns(scores):
        check_second_column(labels, pos_label, wording=wording)
    check_same_length(**{wording.label: y, wording.prob: p})
    return p, y


def _are_swapped(labels: NDArray[Any], p: FloatVector) -> bool:
    """Tell whether labels look like predictions, and predictions like labels."""
    fractions = labels.dtype.kind == "f" and bool(((labels >= 0) & (labels <= 1)).all())
    return fractions and bool(np.isin(p, (0.0, 1.0)).all())


@dataclass(frozen=True, eq=False)
class ClassSample:
    """Predictions of k classes, which class happened, and weights."""

    scores: FloatMatrix  # logits as they were given, or else probabilities
    column: IntVector  # the class that happened, as a column number
    # how many rows each row stands for; None where each stands for itself
    weight: FloatVector | None = None
    scale: Scale = "prob"  # what was given; all but "logit" have become probabilities
    # a number for each row, the same for rows that belong together; None where rows are
    # independent
    clusters: IntVector | None = None

    @property
    def n(self) -> int:
        """Return the number of rows."""
        return self.column.size

    @property
    def total(self) -> float:
        """Return the sum of weights: the rows that the sample stands for."""
        return float(self.n if self.weight is None else self.weight.sum())

    @property
    def n_classes(self) -> int:
        """Return the number of classes."""
        return int(self.scores.shape[1])

    def rows(self, which: BoolVector | IntVector) -> ClassSample:
        """Return some of the rows."""
        weight = None if self.weight is None else self.weight[which]
        return ClassSample(self.scores[which], self.column[which], weight, self.scale)

    def weighted(
        self,
        weight: FloatVector | None,
        rows: IntVector | slice,
        clusters: IntVector | None,
    ) -> ClassSample:
        """Return some of the rows, with weights and clusters; none of weight 0."""
        scores, column = self.scores[rows], self.column[rows]
        if weight is not None and not weight.all():
            used = weight > 0.0
            scores, column, weight = scores[used], column[used], weight[used]
            clusters = None if clusters is None else clusters[used]
        return ClassSample(scores, column, weight, self.scale, clusters)


def check_class_sample(
    scores: ArrayLike,
    y: ArrayLike,
    *,
    scale: Scale = "prob",
    labels: Sequence[Any] | None = None,
    sample_weight: ArrayLike | None = None,
) -> ClassSample:
    """Validate predictions, labels and weights together; drop rows of weight 0."""
    wording = CLASS_CALIBRATOR_WORDING
    matrix = check_class_scores(scores, scale=scale, wording=wording)
    column = check_class_labels(
        y, n_classes=matrix.shape[1], labels=labels, wording=wording
    )
    weight = check_weights(sample_weight, name=wording.weight)
    check_same_length(
        **{wording.label: column, wording.prob: matrix, wording.weight: weight}
    )
    sample = ClassSample(matrix, column, weight, scale)
    if weight is None or weight.all():
        return sample
    return sample.rows(np.flatnonzero(weight))


@dataclass(frozen=True, eq=False)
class ClusterSums:
    """Sums over clusters, by cells of predictions.

    They add up over data that share no cluster, if the cells are those of one grid.
    """

    p: FloatVector  # mean prediction of each cell
    # sum of weights and of weighted labels of each cell
    weight: FloatVector
    label_sum: FloatVector
    # products of the sums that a cluster has in two cells, summed over clusters: of
    # weights, of labels (row) and weights (column), and of labels
    weights: FloatMatrix
    mixed: FloatMatrix
    labels: FloatMatrix
    # sums over clusters of the second and fourth power of their sum of label less
    # prediction
    second: float
    fourth: float
    count: int  # number of clusters


def cluster_codes(values: NDArray[Any], *, name: str) -> IntVector:
    """Return a number for each row, the same for rows of one cluster.

    Examples
    --------
    >>> cluster_codes(np.array(["b", "a", "b"]), name="clusters")
    array([0, 1, 0])
    """
    first: dict[Any, int] = {}
    try:
        codes = [first.setdefault(value, len(first)) for value in values.tolist()]
    except TypeError:
        raise OptionError(
            f"{name} must contain simple values (text, numbers or dates), the same for "
            "rows that belong together."
        ) from None
    missing = next((value for value in first if is_missing(value)), first)
    if missing is not first:
        row = codes.index(first[missing])
        raise MissingValueError.of(
            name,
            "must not contain missing values",
            f"row {row} has no value",
            DROP_ROWS,
            place=(row,),
            value=missing,
        )
    return np.array(codes, dtype=np.intp)
