"""Rows of predictions as commands name them: files, columns, labels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from calibrant._validation.options import check_choice
from calibrant._validation.scales import MAX_DROPPED
from calibrant.cli import options
from calibrant.cli.columns import listed, models, reading, scales
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from calibrant.engines.gathering import Table
    from calibrant.engines.memory import MemoryTable
    from calibrant.measures.named_events import RowsWanted


def read_rows(
    source: list[str], *, engine: str, bad_rows: str, max_dropped: float, **columns: Any
) -> tuple[Table, dict[str, Any]]:
    """Open files of rows; return the table, and what the library wants to know."""
    from calibrant.engines.opening import Engine, open_source

    if columns["y"] is None or not columns["p"]:
        raise OptionError("--y and --p must name columns, of labels and probabilities.")
    check_choice(engine, get_args(Engine), name="--engine")
    table = open_source(_files(source), engine, bad_rows=bad_rows)  # type: ignore[arg-type]
    return columns_of(table, bad_rows=bad_rows, max_dropped=max_dropped, **columns)


def columns_of(
    table: Table,
    *,
    y: str | dict[str, str],
    p: list[str],
    task: str | None,
    weight: str | None,
    by: str | None,
    pos_label: str | None,
    labels: str | None,
    scale: list[str] | None,
    bad_rows: str,
    max_dropped: float,
) -> tuple[Any, dict[str, Any]]:
    """Return a table, and what the library wants to know of its columns.

    Of tables in memory bad rows are dropped here, if at all; engines do it themselves.
    """
    from calibrant.engines.gathering import BadRows
    from calibrant.engines.memory import MemoryTable

    check_choice(bad_rows, get_args(BadRows), name="--bad-rows")
    first = y if isinstance(y, str) else next(iter(y.values()))
    wanted: dict[str, Any] = {
        "y": y,
        "p": models(p, task),
        "sample_weight": weight,
        "by": listed(by),
        "scale": scales(scale),
        **reading(table, first, task, pos_label, labels),
    }
    if bad_rows == "drop" and isinstance(table, MemoryTable):
        table = _without_bad_rows(table, wanted, max_dropped)
    return table, wanted


def open_any(
    source: list[str],
    *,
    by: str | None,
    bad_rows: str,
    max_dropped: float,
    engine: str | None = None,
    again: bool = True,
    **columns: Any,
) -> tuple[Any, dict[str, Any]]:
    """Open rows or cells; return them, and what the library wants to know.

    Parameters
    ----------
    source, by, bad_rows, max_dropped, **columns
        As typed.
    engine : str, optional
        As typed; without, memory for what fits comfortably into it.
    again : bool
        Whether rows are looked at more than once. Then they are gathered into cells,
        if they are not in memory.
    """
    from calibrant.engines.memory import MemoryTable
    from calibrant.engines.opening import open_cells
    from calibrant.measures.gathered import gather_table
    from calibrant.measures.named_events import refuse_with_cells

    cells = open_cells(_files(source))
    if cells is not None:
        given = {f"--{n.replace('_', '-')}": v or None for n, v in columns.items()}
        if given["--scale"] == [options.Holds.prob.value]:
            del given["--scale"]
        given["--bad-rows"] = None if bad_rows == "raise" else bad_rows
        given["--max-dropped"] = None if max_dropped == MAX_DROPPED else max_dropped
        given["--engine"] = None if engine == "auto" else engine
        refuse_with_cells(**given)
        return cells, {} if by is None else {"by": listed(by)}
    table, wanted = read_rows(
        source,
        by=by,
        engine=engine or _usual_engine(source),
        bad_rows=bad_rows,
        max_dropped=max_dropped,
        **columns,
    )
    if isinstance(table, MemoryTable):
        return table, wanted
    wanted |= {"bad_rows": bad_rows, "max_dropped": max_dropped}
    return (gather_table(table, **wanted), {}) if again else (table, wanted)


def _usual_engine(source: list[str]) -> str:
    """Return "memory" for files that fit comfortably into it together, else "auto"."""
    from calibrant.engines.opening import LARGEST
    from calibrant.engines.source_files import find_files

    if source[0].endswith(".npz"):
        return "memory"
    files = find_files(source)
    return "memory" if files.size <= LARGEST else "auto"


def open_rows(source: list[str], what: str) -> MemoryTable:
    """Read all rows of files into memory, where `what` cannot be told from cells."""
    from calibrant.engines.opening import open_cells, open_source

    if open_cells(_files(source)) is not None:
        raise OptionError(
            f"{source[0]} holds cells, from which {what} cannot be told; name the "
            f"files of rows that were gathered. 'calibrant evaluate' takes cells."
        )
    table: Any = open_source(_files(source), "memory")
    return cast("MemoryTable", table)


def _files(source: list[str]) -> str | list[str]:
    return source[0] if len(source) == 1 else source


def _without_bad_rows(
    table: MemoryTable, wanted: dict[str, Any], max_dropped: float
) -> MemoryTable:
    from calibrant.measures.events import Reading
    from calibrant.measures.named_events import RowsWanted, drop_invalid_rows

    how = {name: wanted[name] for name in ("task", "pos_label", "labels", "scale")}
    rows = RowsWanted(
        wanted["y"],
        wanted["p"],
        Reading(**how),
        tuple(wanted["by"]),
        weight=wanted["sample_weight"],
        bad_rows="drop",
        max_dropped=max_dropped,
    )
    each = [rows] if isinstance(rows.y, str) else _of_each_model(table, rows)
    return drop_invalid_rows(table, *each, stacklevel=3)


def _of_each_model(table: MemoryTable, rows: RowsWanted) -> list[RowsWanted]:
    """Return what is wanted of each model, where they have labels of their own."""
    from calibrant.measures.comparison import labels_by_model
    from calibrant.measures.table_models import models_of_table

    names = [model.name for model in models_of_table(table, rows.p, rows.reading)]
    columns = labels_by_model(rows.y, names, name="--y")
    entries: Any = rows.p if isinstance(rows.p, dict) else {n: n for n in names}
    return [
        replace(
            rows,
            y=columns[name],
            p={name: entries[name]},
            reading=rows.reading.of_model(name),
        )
        for name in names
    ]


def class_counts(table: Any, wanted: dict[str, Any]) -> dict[str, int]:
    """Return how many classes each model has, where models have several.

    Of cells it is not known.
    """
    from calibrant.measures.events import Reading
    from calibrant.measures.table_models import models_of_table

    if "p" not in wanted or wanted["task"] is None:
        return {}
    spec = Reading(task=wanted["task"], scale=wanted["scale"])
    models = models_of_table(table, wanted["p"], spec)
    return {m.name: len(m.columns) for m in models if len(m.columns) > 1}


def dropping_options(bad_rows: str, max_dropped: float) -> list[str]:
    """Return what was typed about invalid rows, for commands that are printed.

    Examples
    --------
    >>> dropping_options("drop", 0.5), dropping_options("raise", 0.5)
    (['--bad-rows', 'drop', '--max-dropped', '0.5'], [])
    """
    if bad_rows != "drop":
        return []
    share = [] if max_dropped == MAX_DROPPED else ["--max-dropped", f"{max_dropped:g}"]
    return ["--bad-rows", bad_rows, *share]


def told_source(source: list[str]) -> str:
    """Return what to call files: names without folders, which are nobody's business.

    Examples
    --------
    >>> told_source(["data/monday.csv", "data/tuesday.csv"])
    'monday.csv and 1 more'
    """
    more = f" and {len(source) - 1} more" if len(source) > 1 else ""
    return Path(source[0]).name + more


def refuse_own_source(source: list[str], *written: Path) -> None:
    """Raise if a file that would be written is one of those that are read."""
    from calibrant.engines.source_files import find_files

    there = [name for name in written if name.exists()]
    if there:
        npz = source[0].endswith(".npz")
        read = source if npz else find_files(source).paths
        if any(name.samefile(path) for name in there for path in read):
            raise OptionError("--out is a file that is read; choose another name.")
