"""Aggregated cells in Parquet files, which describe and check themselves."""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.output_files import AGGREGATES, atomic_write, check_named
from calibrant.engines.cells import (
    COUNTS,
    AggregatedCells,
    CellOrigin,
    ExactLimits,
    merge_cells,
)
from calibrant.engines.files import PARQUET, first_line, load_polars
from calibrant.engines.groups import numbered_keys
from calibrant.exceptions import CalibrantError, OptionError, SourceError
from calibrant.numerics.cell_grid import ROOTS, WIDTHS, cell_numbers

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from numpy.typing import NDArray

KEY = "calibrant_cells"
VERSION = 4
GRID = f"{WIDTHS} widths, {ROOTS} fourth roots"
"""Only cells of the same grid add up."""
ROUNDING = 1e-9
"""Relative rounding error that sums over many rows may have."""


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
    description = vars(origin) | {
        "version": VERSION,
        "grid": GRID,
        "dropped": cells.dropped,
        "limits": astuple(origin.limits),
    }
    with atomic_write(target) as temporary:
        frame = pl.DataFrame(by | own)
        try:
            frame.write_parquet(temporary, metadata={KEY: json.dumps(description)})
        except pl.exceptions.PolarsError as error:
            raise SourceError(
                f"{path} cannot be written: {first_line(error)}"
            ) from None


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
    stored = _metadata(path).get(KEY)
    if stored is None:
        raise SourceError(
            f"{path} contains no aggregated predictions; read files of rows "
            "separately, as a table."
        )
    with _damage_reported(path):
        origin, dropped = _read_origin(json.loads(stored))
        frame = pl.read_parquet(path, glob=False)
        columns = {
            name: frame[name].to_numpy() for name in origin.columns if name != "group"
        }
        _check_sums(columns, len(origin.events))
        by = [frame[f"by.{name}"].to_list() for name in origin.by]
        groups, columns["group"] = numbered_keys(by, origin.by, len(frame))
        _check_groups(columns, len(groups), origin.limits)
        return AggregatedCells.of_columns(origin, groups, columns, dropped)


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


def _read_origin(stored: Any) -> tuple[CellOrigin, int]:
    """Return what was aggregated, and the number of rows that were dropped."""
    if (stored["version"], stored["grid"]) != (VERSION, GRID):
        raise SourceError(
            "contains aggregates of another version of calibrant; aggregate the "
            "rows again."
        )
    events = tuple((model, event) for model, event in stored["events"])
    by, weighted = tuple(stored["by"]), stored["weighted"]
    model, event, dropped = (stored[k] for k in ("model_column", "event", "dropped"))
    cluster = stored.get("cluster_column", "")  # files of 0.1 have none
    names = [stored["task"], *(name for event in events for name in event), *by]
    names += [model, cluster]
    _raise_if(not events, "it names no events")
    _raise_if(not all(isinstance(name, str) for name in names), "names must be text")
    _raise_if(not isinstance(weighted, bool), "weighted must be true or false")
    _raise_if(type(dropped) is not int or dropped < 0, "dropped must be a count")
    _raise_if(not isinstance(event, str | None), "the event must be text or null")
    _raise_if(bool(model) and model not in by, "the column of models is not a group")
    _raise_if(bool(cluster) and by[-1:] != (cluster,), "clusters are no group")
    limits = stored["limits"]
    counts = [value for value in limits if type(value) is int and value >= 0]
    _raise_if(counts != limits, "limits must be counts")
    kept = ExactLimits(*limits)
    origin = CellOrigin(
        stored["task"], events, by, weighted, model, event, kept, cluster
    )
    return origin, dropped


def _check_sums(columns: dict[str, NDArray[Any]], events: int) -> None:
    """Raise unless columns can be sums over rows of cells of the grid."""
    for name, values in columns.items():
        kinds = "iu" if name in COUNTS else "f"
        _raise_if(values.dtype.kind not in kinds, f"column {name!r} has a wrong type")
        _raise_if(not np.isfinite(values).all(), f"column {name!r} has values missing")
    cell, rows, happened = (columns[name] for name in ("cell", "rows", "happened"))
    low, high, near = (columns[name] for name in ("low", "high", "near"))
    known = np.isin(columns["event"], np.arange(events))
    _raise_if(cell.size == 0, "there are no cells")
    _raise_if(~known, "column 'event' names none")
    _raise_if(rows < 1, "column 'rows' must contain counts")
    _raise_if((happened < 0) | (happened > rows), "there are more events than rows")
    _raise_if(
        (low < 0.0) | (low > high) | (high > 1.0), "predictions are outside [0, 1]"
    )
    elsewhere = (cell_numbers(low) != cell) | (cell_numbers(high) != cell)
    _raise_if(elsewhere, "predictions are outside their cells")
    weight = rows
    if "weight" in columns:
        weight = columns["weight"]
        _check_weights(columns)
    ends = np.sort([np.minimum(low, 1.0 - low), np.minimum(high, 1.0 - high)], axis=0)
    slack = ROUNDING * weight * ends[1]
    outside = (near < weight * ends[0] - slack) | (near > weight * ends[1] + slack)
    _raise_if(outside, "mean predictions are outside their cells")


def _check_weights(columns: dict[str, NDArray[Any]]) -> None:
    weight, happened = columns["weight"], columns["weight_happened"]
    maximum = weight * (1.0 + ROUNDING)
    minimum = weight * weight / columns["rows"] * (1.0 - ROUNDING)
    impossible = (happened < 0.0) | (happened > maximum)
    _raise_if(weight <= 0.0, "weights must be above 0")
    _raise_if(impossible, "weights of events are impossible")
    _raise_if(columns["weight_squared"] < minimum, "squared weights are impossible")


def _check_groups(
    columns: dict[str, NDArray[Any]], n_groups: int, limits: ExactLimits
) -> None:
    """Raise unless all events have the rows of their group, few of them exactly."""
    events = int(columns["event"].max()) + 1
    unit = columns["group"] * events + columns["event"]
    rows = np.bincount(unit, columns["rows"], minlength=n_groups * events)
    rows = rows.reshape(-1, events)
    _raise_if(rows != rows[:, :1], "events of a group have different rows")
    exact = limits.groups(columns, n_groups)[columns["group"]]
    _raise_if(exact & (columns["low"] != columns["high"]), "few rows are not kept")


def _raise_if(wrong: Any, what: str) -> None:
    """Raise where something is wrong, be it one thing or one of many."""
    if np.any(wrong):
        raise ValueError(what)
