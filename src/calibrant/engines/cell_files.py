"""Aggregated cells in Parquet files, which describe and check themselves."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import astuple, fields
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.core.output_files import AGGREGATES, atomic_write, check_named
from calibrant.engines.cells import (
    AggregatedCells,
    CellOrigin,
    ExactLimits,
    merge_cells,
)
from calibrant.engines.files import PARQUET, first_line, load_polars
from calibrant.engines.groups import numbered_keys
from calibrant.exceptions import CalibrantError, OptionError, SourceError
from calibrant.numerics.cell_grid import ROOTS, WIDTHS

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

KEY = "calibrant_cells"
VERSION = 6
GRID = f"{WIDTHS} widths, {ROOTS} fourth roots"
"""Only cells of the same grid add up."""


def save_cells(cells: AggregatedCells, path: str | os.PathLike[str]) -> None:
    """Write cells to a Parquet file, atomically."""
    target = Path(path)
    check_cell_path(target)
    pl = load_polars("writing cells")
    origin = cells.origin
    group = cells.columns["group"]
    by = {
        f"by.{name}": pl.Series([key[place] for key in cells.groups]).gather(group)
        for place, name in enumerate(origin.by)
    }
    own = {name: values for name, values in cells.columns.items() if name != "group"}
    frame = pl.DataFrame(by | own)
    description = vars(origin) | {
        "version": VERSION,
        "grid": GRID,
        "dropped": cells.dropped,
        "limits": astuple(origin.limits),
    }
    description["checksum"] = _checksum(description, frame)
    with atomic_write(target) as temporary:
        try:
            frame.write_parquet(temporary, metadata={KEY: json.dumps(description)})
        except pl.exceptions.PolarsError as error:
            raise SourceError(
                f"{path} cannot be written: {first_line(error)}"
            ) from None


def _checksum(description: Mapping[str, Any], frame: Any) -> str:
    """Return what tells whether anything in a file has changed since it was written."""
    stored = {name: value for name, value in description.items() if name != "checksum"}
    summed = sha256(json.dumps(stored, sort_keys=True).encode())
    for column in frame:
        if column.name.startswith("by."):
            summed.update(repr((column.name, column.to_list())).encode())
        else:
            summed.update(f"{column.name} {column.dtype}".encode())
            summed.update(column.to_numpy().tobytes())
    return summed.hexdigest()


def check_cell_path(path: Path) -> None:
    """Raise where cells cannot be written under that name."""
    if path.suffix.lower() not in PARQUET:
        raise OptionError(
            f"{path}: aggregated predictions are written as .parquet; choose a "
            "name with that extension."
        )
    check_named(path, AGGREGATES)


def holds_cells(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file contains cells."""
    return Path(path).suffix.lower() in PARQUET and KEY in _metadata(path)


def load_cells(*paths: str | os.PathLike[str]) -> AggregatedCells:
    """Read one or several files of cells, added up."""
    return merge_cells(_read_one(path) for path in paths)


def _metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    pl = load_polars("reading .parquet files")
    failures = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
    try:
        metadata: dict[str, str] = pl.read_parquet_metadata(path)
    except failures as error:
        what = first_line(error)
        raise SourceError(f"{path} cannot be read as parquet: {what}") from None
    return metadata


def _read_one(path: str | os.PathLike[str]) -> AggregatedCells:
    pl = load_polars("reading .parquet files")
    text = _metadata(path).get(KEY)
    if text is None:
        raise SourceError(
            f"{path} contains no aggregated predictions; read files of rows "
            "separately, as a table."
        )
    with _damage_reported(path):
        stored = json.loads(text)
        if (stored["version"], stored["grid"]) != (VERSION, GRID):
            raise SourceError(
                "contains aggregates of another version of calibrant; aggregate the "
                "rows again."
            )
        frame = pl.read_parquet(path, glob=False)
        if stored["checksum"] != _checksum(stored, frame):
            raise ValueError("its content has changed since it was written")
        stored |= {"by": tuple(stored["by"]), "limits": ExactLimits(*stored["limits"])}
        stored["events"] = tuple(map(tuple, stored["events"]))
        own = {one.name: stored[one.name] for one in fields(CellOrigin)}
        origin = CellOrigin(**own)
        columns = {
            name: frame[name].to_numpy() for name in origin.columns if name != "group"
        }
        by = [frame[f"by.{name}"].to_list() for name in origin.by]
        groups, columns["group"] = numbered_keys(by, origin.by, len(frame))
        return AggregatedCells.of_columns(origin, groups, columns, stored["dropped"])


@contextmanager
def _damage_reported(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn whatever is wrong with a file into one clear error."""
    pl = load_polars("reading .parquet files")
    try:
        yield
    except SourceError as error:
        raise SourceError(f"{path} {error}") from None
    except (
        CalibrantError,
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        OSError,
        LookupError,
        TypeError,
        ValueError,
        OverflowError,
        RecursionError,
    ) as error:
        raise SourceError(
            f"{path} is a damaged file of aggregated predictions: "
            f"{first_line(error).rstrip('.')}. Aggregate the rows again."
        ) from None
