"""Predictions of one model: what a study on real or pseudo-real data needs.

Anything with the members of `PredictionSet` can take part: files (see
`calibrant.experiments.prediction_files`), the embedded digits, or a source of your
own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from calibrant.exceptions import ShapeError, SourceError
from calibrant.numerics.class_probabilities import class_probabilities

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calibrant.core.array_types import FloatMatrix, FloatVector, IntVector, Scale

CHUNK = 1 << 16
"""Rows that are converted at once, so that millions of rows need little memory."""

SUM_TOLERANCE = 0.01
"""Allowed deviation of a row of probabilities from the sum 1; 16-bit floats need it."""

FINGERPRINT_ROWS = 1000
CONFIDENCE = "confidence"


@dataclass(frozen=True, eq=False)
class Split:
    """Predictions of k classes and the true classes, in memory or on disk.

    Parameters
    ----------
    scores : array of shape (n, k)
        Logits or probabilities of any floating type; may be a memory map.
    labels : array of shape (n,)
        Column numbers of the true classes.
    scale : {"logit", "prob"}
        What `scores` contains.
    posterior : array of shape (n, k), optional
        The exact probabilities of the classes given the inputs, where they are known.

    Examples
    --------
    >>> split = Split(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0, 1]), "prob")
    >>> split.rows, split.classes
    (2, 2)
    """

    scores: Any
    labels: Any
    scale: Scale
    posterior: Any = None

    def __post_init__(self) -> None:
        if self.scores.ndim != 2 or self.labels.ndim != 1:  # noqa: PLR2004
            raise ShapeError(
                f"scores must have rows and columns, labels one number per row; their "
                f"shapes are {self.scores.shape} and {self.labels.shape}."
            )
        arrays = (self.scores, self.labels, self.posterior)
        if len({array.shape[0] for array in arrays if array is not None}) > 1:
            raise ShapeError(
                f"scores and labels must have equally many rows; they have "
                f"{self.scores.shape[0]} and {self.labels.shape[0]}."
            )

    @property
    def rows(self) -> int:
        """Return the number of rows."""
        return int(self.scores.shape[0])

    @property
    def classes(self) -> int:
        """Return the number of classes."""
        return int(self.scores.shape[1])

    def check(self, name: str) -> Split:
        """Return itself, or raise where a label or a score is invalid."""
        labels = np.asarray(self.labels)
        wrong = (labels < 0) | (labels >= self.classes) | (labels != np.floor(labels))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise SourceError(
                f"{name}: labels must be column numbers from 0 to {self.classes - 1}; "
                f"row {row} has {labels[row].item()!r}."
            )
        for start, scores in self.chunks():
            wrong = self._are_invalid(scores)
            if wrong.any():
                row = start + int(np.argmax(wrong))
                what = "finite" if self.scale == "logit" else "probabilities of sum 1"
                raise SourceError(f"{name}: scores must be {what}; row {row} is not.")
        return self

    def _are_invalid(self, scores: FloatMatrix) -> Any:
        finite = np.isfinite(scores).all(axis=1)
        if self.scale == "logit":
            return ~finite
        negative = (scores < 0.0).any(axis=1)
        return ~finite | negative | (np.abs(scores.sum(axis=1) - 1.0) > SUM_TOLERANCE)

    def chunks(self, size: int = CHUNK) -> Iterator[tuple[int, FloatMatrix]]:
        """Yield (first row, scores as float64) for some rows at a time."""
        for start in range(0, self.rows, size):
            yield start, np.asarray(self.scores[start : start + size], np.float64)

    def take(self, rows: IntVector) -> FloatMatrix:
        """Return the scores of some rows as float64."""
        return np.asarray(self.scores[rows], dtype=np.float64)

    @property
    def fingerprint(self) -> str:
        """Return a short hash of the content, part of the key of stored results."""
        every = slice(None, None, max(self.rows // FINGERPRINT_ROWS, 1))
        digest = hashlib.sha256(f"{self.scores.shape} {self.scale}".encode())
        digest.update(np.asarray(self.scores[every], np.float64).tobytes())
        digest.update(np.asarray(self.labels[every], np.int64).tobytes())
        if self.posterior is not None:
            digest.update(np.asarray(self.posterior[every], np.float64).tobytes())
        return digest.hexdigest()[:12]


class PredictionSet(Protocol):
    """Predictions of one model on a calibration, a test and perhaps a hold-out split.

    Hashable, with equal objects for equal predictions, since results are cached.
    """

    def __hash__(self) -> int: ...

    @property
    def name(self) -> str:
        """Return the name of the model in tables."""
        ...

    def calibration(self) -> Split:
        """Return the rows that calibrators are fitted on."""
        ...

    def test(self) -> Split:
        """Return the rows on which calibration is measured."""
        ...

    def holdout(self) -> Split:
        """Return a very large number of further rows; raise where there are none."""
        ...


@dataclass(frozen=True)
class Event:
    """Whether a class, or the top class, is the true one.

    Parameters
    ----------
    label : str
        Name of the event in tables.
    column : int or None
        The class against the rest; None for the top class.

    Examples
    --------
    >>> Event.of("3=cats")
    Event(label='cats vs rest', column=3)
    >>> Event.of("confidence").column is None
    True
    """

    label: str
    column: int | None = None

    @classmethod
    def of(cls, text: str) -> Event:
        """Return the event of "confidence", a class number, or number=name."""
        if text == CONFIDENCE:
            return cls(CONFIDENCE)
        number, _, name = text.partition("=")
        try:
            column = int(number)
        except ValueError:
            raise SourceError(
                f"an event is 'confidence', a class number or number=name, such as "
                f"3=cats; got {text!r}."
            ) from None
        return cls(f"{name or number} vs rest", column)

    def columns(self, prob: FloatMatrix) -> IntVector:
        """Return the class that the event is about, for each row."""
        if self.column is None:
            return np.asarray(prob.argmax(axis=1))
        return np.full(prob.shape[0], self.column)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """An event in many rows."""

    p: FloatVector  # predicted probability
    y: FloatVector  # 1.0 where the event occurred, else 0.0
    exact: FloatVector | None = None  # exact probability given the inputs, if known


def outcomes_of(
    split: Split, event: Event, map_: Any = None, *, chunk: int = CHUNK
) -> Outcomes:
    """Return an event in all rows of a split, `chunk` rows at a time.

    With `map_`, from scores to calibrated probabilities of all classes, calibrated
    probabilities replace the predictions.

    Examples
    --------
    >>> split = Split(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0, 0]), "prob")
    >>> outcomes_of(split, Event("confidence")).y
    array([1., 0.])
    """
    p, y = np.empty(split.rows), np.empty(split.rows)
    exact = None if split.posterior is None else np.empty(split.rows)
    for start, scores in split.chunks(chunk):
        plain = map_ is None
        prob = class_probabilities(scores, split.scale) if plain else map_(scores)
        column = event.columns(prob)
        row, rows = np.arange(column.size), slice(start, start + column.size)
        p[rows] = prob[row, column]
        y[rows] = np.asarray(split.labels[rows]) == column
        if exact is not None:
            exact[rows] = np.asarray(split.posterior[rows], np.float64)[row, column]
    return Outcomes(p, y, exact)
