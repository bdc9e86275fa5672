"""Predictions of one model, in memory or in files.

What a study on real or pseudo-real data needs. Anything with the members of
`PredictionSet` can take part: files, the embedded digits, or a source of your own.

In files a model is one npz file, or one folder of npy or Parquet files. The name of a
file or array says what it contains:

========================  ==========================================================
``logits_<split>``        logits, or ``probs_<split>`` for probabilities, (n, k)
``y_<split>``             column numbers of the true classes, (n,)
``posterior_<split>``     exact class probabilities, where known, (n, k)
``<split>.parquet``       columns ``logit_0``.. or ``prob_0``.. and ``y``
========================  ==========================================================

Splits are ``cal`` (or ``val``), ``test`` and ``holdout``. If ``realtest`` exists, it is
the test split and ``test`` the hold-out; a model without ``holdout`` uses its test
split. npy files and uncompressed npz are memory-mapped, not read.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from calibrant.exceptions import MissingDependencyError, ShapeError, SourceError
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

SCALES: dict[str, Scale] = {"logit": "logit", "prob": "prob"}
"""What arrays ``<name>s_<split>`` and columns ``<name>_0``.. contain."""

NPZ, NPY, PARQUET = ".npz", ".npy", ".parquet"
LOCAL_HEADER = 30
"""Bytes of a zip entry's header before its name; the last four hold two lengths."""


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

    Parameters
    ----------
    path : str
        An npz file, or a folder of npy or Parquet files; read when needed.

    Examples
    --------
    >>> StoredPredictions("models/wide32.npz").name
    'wide32'
    """

    path: str

    @property
    def name(self) -> str:
        """Return the name of the file or folder."""
        return Path(self.path).stem

    def calibration(self) -> Split:
        """Return the rows that calibrators are fitted on."""
        return _first_split(self.path, "cal", "val")

    def test(self) -> Split:
        """Return the rows on which calibration is measured."""
        return _first_split(self.path, "realtest", "test")

    def holdout(self) -> Split:
        """Return the hold-out, or the test split where there is none."""
        return _first_split(self.path, "holdout", "test")


def find_predictions(folder: str | os.PathLike[str]) -> list[StoredPredictions]:
    """Return all models of a folder, in order of their names.

    Parameters
    ----------
    folder : path
        Contains npz files, or folders of npy or Parquet files; or is itself one model.

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
    models = [path for path in sorted(root.iterdir()) if _is_model(path)]
    if not models and _is_model(root):
        models = [root]
    if not models:
        raise SourceError(
            f"{root} contains no predictions: neither npz files nor folders of npy or "
            f"Parquet files."
        )
    return [StoredPredictions(os.fspath(path)) for path in models]


def _is_model(path: Path) -> bool:
    if path.is_dir():
        return bool({file.suffix for file in path.iterdir()} & {NPY, PARQUET})
    return path.suffix == NPZ


@lru_cache(maxsize=16)
def _first_split(path: str, *names: str) -> Split:
    """Return the first of these splits that exists."""
    for name in names:
        split = _read_split(Path(path), name)
        if split is not None:
            return split.check(f"{path}, {name}")
    raise SourceError(
        f"{path} has no split {' or '.join(names)}: it needs arrays such as "
        f"logits_{names[0]} (or probs_{names[0]}) and y_{names[0]}."
    )


def _read_split(path: Path, name: str) -> Split | None:
    if any(path.glob(f"*{PARQUET}")):
        file = path / f"{name}{PARQUET}"
        return _read_parquet(file) if file.exists() else None
    labels = _read_array(path, f"y_{name}")
    for word, scale in SCALES.items():
        scores = _read_array(path, f"{word}s_{name}")
        if scores is not None and labels is not None:
            return Split(scores, labels, scale, _read_array(path, f"posterior_{name}"))
    return None


def _read_array(path: Path, name: str) -> Any:
    """Return an array of a folder or npz file; None where it has no such array."""
    try:
        if not path.is_dir():
            return _read_npz(path, name)
        path /= f"{name}{NPY}"
        return np.load(path, "r", allow_pickle=False) if path.exists() else None
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        kind = "npy" if path.suffix == NPY else "npz"
        raise SourceError(f"{path} cannot be read as {kind}: {error}.") from None


def _read_npz(path: Path, name: str) -> Any:
    with zipfile.ZipFile(path) as archive:
        if f"{name}{NPY}" not in archive.namelist():
            return None
        entry = archive.getinfo(f"{name}{NPY}")
    if entry.compress_type == zipfile.ZIP_STORED:
        return _map_entry(path, entry)
    with np.load(path, allow_pickle=False) as arrays:
        return arrays[name]


def _map_entry(path: Path, entry: zipfile.ZipInfo) -> Any:
    """Memory-map an uncompressed entry of an npz file."""
    with path.open("rb") as file:
        file.seek(entry.header_offset)
        header = file.read(LOCAL_HEADER)
        lengths = np.frombuffer(header[-4:], dtype="<u2")
        file.seek(entry.header_offset + LOCAL_HEADER + int(lengths.sum()))
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[np.lib.format.read_magic(file)]
        shape, is_fortran, dtype = read_header(file)
        if dtype.hasobject:
            raise ValueError(f"{entry.filename} contains objects, not numbers")
        order: Any = "F" if is_fortran else "C"
        return np.memmap(path, dtype, "r", file.tell(), shape, order)


def _read_parquet(file: Path) -> Split:
    """Read ``<split>.parquet``, a file or a folder of files."""
    try:
        import polars as pl
    except ImportError:
        raise MissingDependencyError.for_extra(
            "reading Parquet files", "polars", "data"
        ) from None
    frame = pl.read_parquet(file / f"*{PARQUET}" if file.is_dir() else file)
    for word, scale in SCALES.items():
        start = f"{word}_"
        columns = [column for column in frame.columns if column.startswith(start)]
        if columns and "y" in frame.columns:
            columns.sort(key=lambda column: int(column.removeprefix(start)))
            scores = frame.select(columns).to_numpy()
            return Split(scores, frame["y"].to_numpy(), scale)
    raise SourceError(
        f"{file} must have the columns y and logit_0, logit_1, .. or prob_0, "
        f"prob_1, ..; it has {', '.join(frame.columns)}."
    )
