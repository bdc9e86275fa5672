"""Predictions in files: npz, folders of npy, folders of Parquet.

A model is one npz file, or one folder of npy or Parquet files. What a file or array is
called says what it holds:

========================  ==========================================================
``logits_<split>``        logits, or ``probs_<split>`` for probabilities, (n, k)
``y_<split>``             column numbers of the classes that happened, (n,)
``posterior_<split>``     exact class probabilities, where known, (n, k)
``<split>.parquet``       columns ``logit_0``.. or ``prob_0``.. and ``y``
========================  ==========================================================

Splits are ``cal`` (or ``val``), ``test`` and ``holdout``. Where ``realtest`` is there,
it is the test split and ``test`` the hold-out; a model without ``holdout`` has its test
split as one. npy files and uncompressed npz are mapped, not read.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.exceptions import MissingDependencyError, SourceError
from calibrant.experiments.predictions import Split

if TYPE_CHECKING:
    from calibrant._typing import Scale

CALIBRATION = ("cal", "val")
SCORES: dict[str, Scale] = {"logits": "logit", "probs": "prob"}
COLUMNS: dict[str, Scale] = {"logit_": "logit", "prob_": "prob"}
NPZ, NPY, PARQUET = ".npz", ".npy", ".parquet"
LOCAL_HEADER = 30
"""Bytes of a zip entry's header before its name; its last four tell two lengths."""


@dataclass(frozen=True)
class StoredPredictions:
    """The predictions of one model in files.

    Parameters
    ----------
    path : str
        An npz file, or a folder of npy or Parquet files.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     np.savez(
    ...         f"{folder}/small.npz",
    ...         probs_cal=np.eye(3), y_cal=np.arange(3),
    ...         probs_test=np.eye(3), y_test=np.array([0, 1, 1]),
    ...     )
    ...     model, = find_predictions(folder)
    ...     model.name, model.test().rows
    ('small', 3)
    """

    path: str

    @property
    def name(self) -> str:
        """Return the name of the file or folder."""
        return Path(self.path).stem

    def calibration(self) -> Split:
        """Return the rows that calibrators are fitted on."""
        return _split(self.path, *CALIBRATION)

    def test(self) -> Split:
        """Return the rows that calibration is measured on."""
        return _split(self.path, "realtest", "test")

    def holdout(self) -> Split:
        """Return the vast hold-out, or the test split where there is no other."""
        return _split(self.path, "holdout", "test")


def find_predictions(folder: str | os.PathLike[str]) -> list[StoredPredictions]:
    """Return all models of a folder, in order of their names.

    Parameters
    ----------
    folder : path
        Holds npz files, or folders of npy or Parquet files; or is itself one model.

    Returns
    -------
    list of StoredPredictions
        At least one; what cannot be a model is an error that says so.

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
        raise SourceError(f"{root} is no folder; name one that holds predictions.")
    found = [path for path in sorted(root.iterdir()) if _is_model(path)]
    if not found and _is_model(root):
        found = [root]
    if not found:
        raise SourceError(
            f"{root} holds no predictions: neither npz files nor folders of npy or "
            f"Parquet files."
        )
    return [StoredPredictions(os.fspath(path)) for path in found]


def _is_model(path: Path) -> bool:
    if path.is_dir():
        endings = {inside.suffix for inside in path.iterdir()}
        return bool(endings & {NPY, PARQUET})
    return path.suffix == NPZ


@lru_cache(maxsize=16)
def _split(path: str, *names: str) -> Split:
    """Return the first of these splits that is there."""
    source = _source(Path(path))
    for name in names:
        found: Split | None = source(name)
        if found is not None:
            return found.checked(f"{path}, {name}")
    raise SourceError(
        f"{path} has no split {' or '.join(names)}: it needs arrays such as "
        f"logits_{names[0]} (or probs_{names[0]}) and y_{names[0]}."
    )


def _source(path: Path) -> Any:
    if path.is_dir():
        has_parquet = any(path.glob(f"*{PARQUET}"))
        return _ParquetFolder(path) if has_parquet else _Arrays(path, _npy)
    return _Arrays(path, _npz)


@dataclass(frozen=True)
class _Arrays:
    """Arrays by name: members of an npz file, or npy files of a folder."""

    path: Path
    read: Any

    def __call__(self, name: str) -> Split | None:
        labels = self.read(self.path, f"y_{name}")
        for start, scale in SCORES.items():
            scores = self.read(self.path, f"{start}_{name}")
            if scores is not None and labels is not None:
                posterior = self.read(self.path, f"posterior_{name}")
                return Split(scores, labels, scale, posterior)
        return None


def _npy(folder: Path, name: str) -> Any:
    path = folder / f"{name}{NPY}"
    if not path.exists():
        return None
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError) as error:
        raise SourceError(f"{path} cannot be read as npy: {error}.") from None


def _npz(path: Path, name: str) -> Any:
    try:
        with zipfile.ZipFile(path) as archive:
            if f"{name}{NPY}" not in archive.namelist():
                return None
            entry = archive.getinfo(f"{name}{NPY}")
            if entry.compress_type == zipfile.ZIP_STORED:
                return _mapped(path, entry)
        with np.load(path, allow_pickle=False) as arrays:
            return arrays[name]
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise SourceError(f"{path} cannot be read as npz: {error}.") from None


def _mapped(path: Path, entry: zipfile.ZipInfo) -> Any:
    """Map an uncompressed member of an npz file where it lies."""
    with path.open("rb") as file:
        file.seek(entry.header_offset)
        header = file.read(LOCAL_HEADER)
        lengths = np.frombuffer(header[-4:], dtype="<u2")
        file.seek(entry.header_offset + LOCAL_HEADER + int(lengths.sum()))
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, is_fortran, dtype = read(file)
        if dtype.hasobject:
            raise ValueError(f"{entry.filename} holds objects, not numbers")
        order: Any = "F" if is_fortran else "C"
        return np.memmap(path, dtype, "r", file.tell(), shape, order)


@dataclass(frozen=True)
class _ParquetFolder:
    """``<split>.parquet``, a file or a folder of that name full of files."""

    path: Path

    def __call__(self, name: str) -> Split | None:
        file = self.path / f"{name}{PARQUET}"
        if not file.exists():
            return None
        try:
            import polars as pl
        except ImportError:
            raise MissingDependencyError.for_extra(
                "reading Parquet files", "polars", "data"
            ) from None
        source = file / f"*{PARQUET}" if file.is_dir() else file
        frame = pl.read_parquet(source)
        for start, scale in COLUMNS.items():
            columns = [column for column in frame.columns if column.startswith(start)]
            if columns and "y" in frame.columns:
                columns.sort(key=lambda column: int(column.removeprefix(start)))
                scores = frame.select(columns).to_numpy()
                return Split(scores, frame["y"].to_numpy(), scale)
        raise SourceError(
            f"{file} must have the columns y and logit_0, logit_1, .. or prob_0, "
            f"prob_1, ..; it has {', '.join(frame.columns)}."
        )
