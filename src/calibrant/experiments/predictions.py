"""Predictions of one model: what an experiment on real or pseudo-real data needs.

Anything with the members of `PredictionSet` takes part: files (see
`calibrant.experiments.prediction_files`), the embedded digits, or a source of one's
own.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from calibrant.exceptions import ShapeError, SourceError
from calibrant.numerics.softmax import class_probabilities

if TYPE_CHECKING:
    from collections.abc import Iterator

    from calibrant._typing import FloatMatrix, FloatVector, IntVector, Scale

CHUNK = 1 << 16
"""Rows that are turned into probabilities at once, so that millions take no memory."""

SUM_TOLERANCE = 0.01
"""Rows of probabilities may miss the sum 1 by this, as those of 16 bits do."""

FINGERPRINT_ROWS = 1000


@dataclass(frozen=True, eq=False)
class Split:
    """Predictions of k classes and the class that happened, perhaps on disk.

    Parameters
    ----------
    scores : array of shape (n, k)
        Logits or probabilities of any floating type; may be a memory map.
    labels : array of shape (n,)
        Column numbers of the classes that happened.
    scale : {"logit", "prob"}
        What `scores` holds.
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
                f"scores must have rows and columns, labels one number a row; their "
                f"shapes are {self.scores.shape} and {self.labels.shape}."
            )
        lengths = {self.scores.shape[0], self.labels.shape[0]}
        if self.posterior is not None:
            lengths.add(self.posterior.shape[0])
        if len(lengths) > 1:
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

    def checked(self, name: str) -> Split:
        """Return itself, or raise where scores or labels cannot be."""
        labels = np.asarray(self.labels)
        wrong = (labels < 0) | (labels >= self.classes) | (labels != np.floor(labels))
        if wrong.any():
            row = int(np.argmax(wrong))
            raise SourceError(
                f"{name}: labels must be column numbers from 0 to {self.classes - 1}; "
                f"row {row} holds {labels[row].item()!r}."
            )
        for start, part in self.chunks():
            bad = ~np.isfinite(part).all(axis=1)
            if self.scale == "prob":
                bad |= (part < 0.0).any(axis=1)
                bad |= np.abs(part.sum(axis=1) - 1.0) > SUM_TOLERANCE
            if bad.any():
                row = start + int(np.argmax(bad))
                what = "finite" if self.scale == "logit" else "probabilities of sum 1"
                raise SourceError(f"{name}: scores must be {what}; row {row} is not.")
        return self

    def chunks(self) -> Iterator[tuple[int, FloatMatrix]]:
        """Give (first row, scores as float64) of some rows at a time."""
        for start in range(0, self.rows, CHUNK):
            yield start, np.asarray(self.scores[start : start + CHUNK], np.float64)

    def some(self, rows: IntVector) -> FloatMatrix:
        """Return the scores of some rows as float64."""
        return np.asarray(self.scores[rows], dtype=np.float64)

    @property
    def fingerprint(self) -> str:
        """Return a short name of the content, by which results are found again."""
        every = slice(None, None, max(self.rows // FINGERPRINT_ROWS, 1))
        told = hashlib.sha256(f"{self.scores.shape} {self.scale}".encode())
        told.update(np.asarray(self.scores[every], np.float64).tobytes())
        told.update(np.asarray(self.labels[every], np.int64).tobytes())
        if self.posterior is not None:
            told.update(np.asarray(self.posterior[every], np.float64).tobytes())
        return told.hexdigest()[:12]


class PredictionSet(Protocol):
    """Predictions of one model on a calibration split, a test split, perhaps more.

    Equal if they are the same: what was computed from them is kept for a while.
    """

    def __hash__(self) -> int: ...

    @property
    def name(self) -> str:
        """Return what tables call the model."""
        ...

    def calibration(self) -> Split:
        """Return the rows that calibrators are fitted on."""
        ...

    def test(self) -> Split:
        """Return the rows that calibration is measured on."""
        ...

    def holdout(self) -> Split:
        """Return a vast number of further rows; raise where there are none."""
        ...


@dataclass(frozen=True)
class Event:
    """What one asks about: whether a class, or the top class, is right.

    Parameters
    ----------
    label : str
        What tables call it.
    column : int or None
        The class against the rest; None for the top class, whichever it is.

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
        if text == "confidence":
            return cls("confidence")
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
        """Return which class of each row is meant."""
        if self.column is None:
            return np.asarray(prob.argmax(axis=1))
        return np.full(prob.shape[0], self.column)


@dataclass(frozen=True, eq=False)
class Outcomes:
    """An event in many rows.

    Attributes
    ----------
    p : ndarray of shape (n,)
        Predicted probability.
    y : ndarray of shape (n,)
        1.0 where it happened, else 0.0.
    exact : ndarray of shape (n,) or None
        Its exact probability given the inputs, where it is known.
    """

    p: FloatVector
    y: FloatVector
    exact: FloatVector | None = None


def outcomes_of(split: Split, event: Event, map_: Any = None) -> Outcomes:
    """Return an event in all rows, of the model or of the model after a map.

    Parameters
    ----------
    split : Split
        Predictions.
    event : Event
        Which event.
    map_ : callable, optional
        From scores of all classes to calibrated probabilities of all classes.

    Returns
    -------
    Outcomes
        Probabilities and what happened; a chunk of rows is worked on at a time.

    Examples
    --------
    >>> split = Split(np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0, 0]), "prob")
    >>> outcomes_of(split, Event("confidence")).y
    array([1., 0.])
    """
    p, y = np.empty(split.rows), np.empty(split.rows)
    exact = None if split.posterior is None else np.empty(split.rows)
    for start, scores in split.chunks():
        prob = (
            class_probabilities(scores, split.scale) if map_ is None else map_(scores)
        )
        column = event.columns(prob)
        row, rows = np.arange(column.size), slice(start, start + column.size)
        p[rows] = prob[row, column]
        y[rows] = np.asarray(split.labels[rows]) == column
        if exact is not None:
            exact[rows] = np.asarray(split.posterior[rows], np.float64)[row, column]
    return Outcomes(p, y, exact)
