"""Tables of cells in Parquet files, which say themselves what they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.core.output_files import AGGREGATES, atomic_write, check_named
from calibrant.engines.cell_checks import (
    GRID,
    VERSION,
    check_groups,
    check_sums,
    damaged,
    read_origin,
)
from calibrant.engines.cells import AggregatedCells, cell_table, merged
from calibrant.engines.files import PARQUET, load_polars
from calibrant.engines.groups import numbered_keys
from calibrant.exceptions import OptionError, SourceError

if TYPE_CHECKING:
    import os

KEY = "calibrant_cells"


def save_cells(cells: AggregatedCells, path: str | os.PathLike[str]) -> None:
    """Write a table of cells as a Parquet file, whole or not at all."""
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
    told = {
        "version": VERSION,
        "grid": GRID,
        "task": origin.task,
        "events": origin.events,
        "by": origin.by,
        "weighted": origin.weighted,
        "model_column": origin.model_column,
        "dropped": cells.dropped,
    }
    with atomic_write(target) as temporary:
        frame = pl.DataFrame(by | own)
        try:
            frame.write_parquet(temporary, metadata={KEY: json.dumps(told)})
        except pl.exceptions.PolarsError as error:
            what = str(error).splitlines()[0]
            raise SourceError(f"{path} cannot be written: {what}") from None


def check_cell_path(path: Path) -> None:
    """Raise where cells cannot be written under that name."""
    if path.suffix.lower() not in PARQUET:
        raise OptionError(
            f"{path}: aggregated predictions are written as .parquet; choose "
            f"such a name."
        )
    check_named(path, AGGREGATES)


def holds_cells(path: str | os.PathLike[str]) -> bool:
    """Tell whether a file is a table of cells."""
    return Path(path).suffix.lower() in PARQUET and KEY in _metadata(path)


def load_cells(*paths: str | os.PathLike[str]) -> AggregatedCells:
    """Read one or several files of cells, added up."""
    return merged(_read_one(path) for path in paths)


def _metadata(path: str | os.PathLike[str]) -> dict[str, str]:
    pl = load_polars("reading .parquet files")
    try:
        found: dict[str, str] = pl.read_parquet_metadata(path)
    except (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        OSError,
    ) as error:
        what = str(error).splitlines()[0]
        raise SourceError(f"{path} cannot be read as parquet: {what}") from None
    return found


def _read_one(path: str | os.PathLike[str]) -> AggregatedCells:
    pl = load_polars("reading .parquet files")
    stored = _metadata(path).get(KEY)
    if stored is None:
        raise SourceError(
            f"{path} holds no aggregated predictions; keep files of rows apart, and "
            f"read them as a table."
        )
    with damaged(path):
        origin, dropped = read_origin(json.loads(stored))
        frame = pl.read_parquet(path, glob=False)
        columns = {
            name: frame[name].to_numpy() for name in origin.columns if name != "group"
        }
        check_sums(columns, len(origin.events))
        by = [frame[f"by.{name}"].to_list() for name in origin.by]
        groups: tuple[tuple[Any, ...], ...] = ((),)
        columns["group"] = np.zeros(len(frame), dtype=np.int64)
        if by:
            groups, columns["group"] = numbered_keys(by, origin.by)
        check_groups(columns, groups)
        return cell_table(origin, groups, columns, dropped)
