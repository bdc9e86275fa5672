"""Predictions of models, in memory or in files of many layouts.

A folder is searched with all its subfolders. A model is an npz file with the arrays

========================  ==========================================================
``logits_<split>``        logits, or ``probs_<split>`` for probabilities, (n, k)
``y_<split>``             column numbers of the true classes, (n,)
``posterior_<split>``     exact class probabilities, where known, (n, k)
========================  ==========================================================

Splits are ``cal`` (or ``val``), ``test`` and ``holdout``. If ``realtest`` exists, it is
the test split and ``test`` the hold-out; a model without ``holdout`` uses its test
split.

Other npz files contain ``logits`` or ``probs`` and ``y``; one event, ``p`` and ``y``;
the top class, ``conf``, ``y_true`` and ``y_pred``; or one event predicted by several
models, ``<model>_val``, ``<model>_test``, ``y_val`` and ``y_test``. Parquet files have
columns ``p`` and ``y``; ``task``, ``project`` and ``horizon`` divide them into data
sets, ``model``, ``prompt`` and ``shots`` into models. Predictions without splits are
divided at random into halves.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.engines.file_formats import array_names, read_array
from calibrant.engines.files import load_polars
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
SHUFFLE_SEED = 0
CONFIDENCE = "confidence"

SCALES: dict[str, Scale] = {"logits": "logit", "probs": "prob"}
"""What arrays of these names contain."""

SPLITS = ("cal", "val", "test", "realtest", "holdout")
HALVES = ("cal", "test")
DATA_COLUMNS = ("task", "project", "horizon")
MODEL_COLUMNS = ("model", "prompt", "shots")

NPZ, PARQUET = ".npz", ".parquet"


@dataclass(frozen=True, eq=False)
class Split:
    """Predictions of k classes and the true classes.

    Parameters
    ----------
    scores : array of shape (n, k)
        Logits or probabilities of any floating type.
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
                f"scores and labels must have the same number of rows; they have "
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
            invalid = ~np.isfinite(scores).all(axis=1)
            if self.scale != "logit":
                invalid |= (scores < 0.0).any(axis=1)
                invalid |= np.abs(scores.sum(axis=1) - 1.0) > SUM_TOLERANCE
            if invalid.any():
                row = start + int(np.argmax(invalid))
                what = "finite" if self.scale == "logit" else "probabilities of sum 1"
                raise SourceError(f"{name}: scores must be {what}; row {row} is not.")
        return self

    def chunks(self, size: int = CHUNK) -> Iterator[tuple[int, FloatMatrix]]:
        """Yield (first row, scores as float64) for some rows at a time."""
        for start in range(0, self.rows, size):
            yield start, np.asarray(self.scores[start : start + size], np.float64)

    def take(self, rows: IntVector) -> FloatMatrix:
        """Return the scores of some rows as float64."""
        return np.asarray(self.scores[rows], dtype=np.float64)

    def part(self, rows: IntVector) -> Split:
        """Return some rows, without exact probabilities."""
        return Split(self.scores[rows], self.labels[rows], self.scale)

    def shuffled(self) -> IntVector:
        """Return the numbers of all rows in random order, always the same."""
        return np.random.default_rng(SHUFFLE_SEED).permutation(self.rows)

    def at_most(self, count: int) -> Split:
        """Return a random sample of so many rows, or all where there are fewer."""
        if self.rows <= count:
            return self
        return self.part(np.sort(self.shuffled()[:count]))

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
    """
    p, y = np.empty(split.rows), np.empty(split.rows)
    exact = None if split.posterior is None else np.empty(split.rows)
    for start, scores in split.chunks(chunk):
        raw = map_ is None
        prob = class_probabilities(scores, split.scale) if raw else map_(scores)
        column = event.columns(prob)
        row, rows = np.arange(column.size), slice(start, start + column.size)
        p[rows] = prob[row, column]
        y[rows] = np.asarray(split.labels[rows]) == column
        if exact is not None:
            exact[rows] = np.asarray(split.posterior[rows], np.float64)[row, column]
    return Outcomes(p, y, exact)


@dataclass(frozen=True)
class StoredPredictions:
    """The predictions of one model in files.

    Studies accept any hashable object with its `name` and its three methods, each of
    which returns a `Split`.

    Parameters
    ----------
    path : str
        An npz or Parquet file; read when needed.
    part : tuple of (column, value)
        Which rows of a Parquet file, or ``(("model", name),)`` in an npz file of
        several models.

    Examples
    --------
    >>> StoredPredictions("models/wide32.npz").name
    'wide32'
    """

    path: str
    part: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """Return the name of the model: of the file, or from its part."""
        if not self.part:
            return Path(self.path).stem
        return " ".join(self._of(MODEL_COLUMNS)) or "forecasts"

    @property
    def data(self) -> str:
        """Return the name of the data set: models of one data set are dependent."""
        path = Path(self.path)
        if not self.part:
            return path.parent.name
        return " ".join([path.stem, *self._of(DATA_COLUMNS)])

    def _of(self, columns: tuple[str, ...]) -> list[str]:
        part = dict(self.part)
        return [part[name] for name in columns if name in part]

    def calibration(self) -> Split:
        """Return the rows that calibrators are fitted on."""
        return _first_split(self, "cal", "val")

    def test(self) -> Split:
        """Return the rows on which calibration is measured."""
        return _first_split(self, "realtest", "test")

    def holdout(self) -> Split:
        """Return the hold-out, or the test split where there is none."""
        return _first_split(self, "holdout", "test")


def find_predictions(folder: str | os.PathLike[str]) -> list[StoredPredictions]:
    """Return all models in a folder and its subfolders, in order of their names.

    Parameters
    ----------
    folder : path
        Contains npz or Parquet files, perhaps in subfolders.

    Returns
    -------
    list of StoredPredictions
        At least one; a folder without models raises an error.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     prob, label = np.array([[0.9, 0.1], [0.3, 0.7]]), np.array([0, 1])
    ...     np.savez(Path(folder) / "forest.npz", probs_test=prob, y_test=label)
    ...     (model,) = find_predictions(folder)
    ...     model.name, model.test().rows
    ('forest', 2)
    """
    root = Path(folder)
    if not root.is_dir():
        raise SourceError(f"{root} is not a folder; name a folder of predictions.")
    files = sorted(path for end in (NPZ, PARQUET) for path in root.rglob(f"*{end}"))
    if models := [model for path in files for model in _found(path)]:
        return models
    raise SourceError(
        f"{root} contains no predictions: no npz or Parquet files of a known layout."
    )


ARRAYS_OF_SPLITS = {f"{word}_{split}" for word in SCALES for split in SPLITS}
ARRAYS_WITHOUT_SPLITS = (
    {"p", "y"},
    {"conf", "y_true", "y_pred"},
    {"logits", "y"},
    {"probs", "y"},
)
"""Arrays of npz files without splits."""


def _found(path: Path) -> Iterator[StoredPredictions]:
    """Yield the models of a file."""
    file = os.fspath(path)
    if path.suffix == PARQUET:
        yield from (StoredPredictions(file, part) for part in _groups(path))
        return
    names = set(array_names(path))
    if names & ARRAYS_OF_SPLITS or any(
        names >= known for known in ARRAYS_WITHOUT_SPLITS
    ):
        yield StoredPredictions(file)
    elif names >= {"y_val", "y_test"}:
        models = {name.removesuffix("_val") for name in names if name[-4:] == "_val"}
        for model in sorted(models - {"y", "idx"}):
            yield StoredPredictions(file, (("model", model),))


def _groups(path: Path) -> Iterator[tuple[tuple[str, str], ...]]:
    """Yield each combination of groups of a Parquet file; one () if it has none."""
    pl = load_polars("reading Parquet files")
    table = pl.scan_parquet(path)
    columns = table.collect_schema().names()
    if not ARRAYS_WITHOUT_SPLITS[0].issubset(columns):
        return
    groups = [name for name in (*DATA_COLUMNS, *MODEL_COLUMNS) if name in columns]
    texts = table.select(pl.col(groups).cast(pl.String)).unique().sort(groups)
    rows = texts.collect().iter_rows(named=True) if groups else [{}]
    yield from (tuple(row.items()) for row in rows)


@lru_cache(maxsize=16)
def _first_split(model: StoredPredictions, *names: str) -> Split:
    """Return the first of these splits that exists."""
    for name in names:
        split = _read_split(model, name)
        if split is not None:
            return split.check(f"{model.path}, {name}")
    raise SourceError(
        f"{model.path} has no split {' or '.join(names)}: it needs arrays such as "
        f"logits_{names[0]} (or probs_{names[0]}) and y_{names[0]}."
    )


def _read_split(model: StoredPredictions, name: str) -> Split | None:
    labels = _read_array(model, f"y_{name}")
    if labels is None:
        whole = _read_whole(model) if name in HALVES else None
        if whole is None:
            return None
        return whole.part(np.array_split(whole.shuffled(), 2)[HALVES.index(name)])
    if model.part:
        return _event(_read_array(model, f"{model.name}_{name}"), labels)
    for word, scale in SCALES.items():
        scores = _read_array(model, f"{word}_{name}")
        if scores is not None:
            return Split(scores, labels, scale, _read_array(model, f"posterior_{name}"))
    return None


def _read_whole(model: StoredPredictions) -> Split | None:
    """Return all rows of a file without splits; None where it has other contents."""
    if model.path.endswith(PARQUET):
        return _read_table(model)
    names = set(array_names(Path(model.path)))
    known = next((known for known in ARRAYS_WITHOUT_SPLITS if names >= known), set())
    arrays = {name: _read_array(model, name) for name in known}
    if "p" in arrays:
        return _event(arrays["p"], arrays["y"])
    if "conf" in arrays:
        return _event(arrays["conf"], arrays["y_true"] == arrays["y_pred"])
    for word in known & SCALES.keys():
        return Split(arrays[word], arrays["y"], SCALES[word])
    return None


def _read_table(model: StoredPredictions) -> Split:
    pl = load_polars("reading Parquet files")
    rows = pl.scan_parquet(model.path)
    for name, value in model.part:
        rows = rows.filter(pl.col(name).cast(pl.String) == value)
    table = rows.select("p", "y").collect()
    return _event(table["p"].to_numpy(), table["y"].to_numpy())


def _event(p: Any, y: Any) -> Split:
    """Return one event as predictions of two classes."""
    p = np.asarray(p, dtype=np.float64)
    return Split(np.column_stack([1.0 - p, p]), np.asarray(y, np.intp), "prob")


def _read_array(model: StoredPredictions, name: str) -> Any:
    """Return an array of an npz file; None where there is no such array."""
    path = Path(model.path)
    missing = path.suffix == PARQUET or name not in array_names(path)
    return None if missing else read_array(path, name)
