"""Predictions in files: npz, folders of npy, folders of Parquet.

A model is one npz file, or one folder of npy or Parquet files. The name of a file or
array says what it contains:

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
    from calibrant.core.array_types import Scale

SCORES: dict[str, Scale] = {"logits": "logit", "probs": "prob"}
COLUMNS: dict[str, Scale] = {"logit_": "logit", "prob_": "prob"}
NPZ, NPY, PARQUET = ".npz", ".npy", ".parquet"
LOCAL_HEADER = 30
"""Bytes of a zip entry's header before its name; the last four hold two lengths."""


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
    read = _read_npy if path.is_dir() else _read_npz
    labels = read(path, f"y_{name}")
    for start, scale in SCORES.items():
        scores = read(path, f"{start}_{name}")
        if scores is not None and labels is not None:
            return Split(scores, labels, scale, read(path, f"posterior_{name}"))
    return None


def _read_npy(folder: Path, name: str) -> Any:
    path = folder / f"{name}{NPY}"
    if not path.exists():
        return None
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError) as error:
        raise SourceError(f"{path} cannot be read as npy: {error}.") from None


def _read_npz(path: Path, name: str) -> Any:
    try:
        with zipfile.ZipFile(path) as archive:
            if f"{name}{NPY}" not in archive.namelist():
                return None
            entry = archive.getinfo(f"{name}{NPY}")
            if entry.compress_type == zipfile.ZIP_STORED:
                return _map_entry(path, entry)
        with np.load(path, allow_pickle=False) as arrays:
            return arrays[name]
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise SourceError(f"{path} cannot be read as npz: {error}.") from None


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
