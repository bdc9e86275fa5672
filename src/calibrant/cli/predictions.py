"""Options of commands, parsed into predictions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from calibrant.cli import options
from calibrant.cli.columns import label_columns, listed, models, scales, typed_options
from calibrant.core.options import check_choice
from calibrant.core.scales import MAX_DROPPED
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.engines.aggregation_spec import Table
    from calibrant.predictions.predictions import Predictions


def read_predictions(
    source: list[str],
    *,
    y: str | Sequence[str] | None,
    p: list[str] | None,
    by: str | None = None,
    bad_rows: str = "error",
    max_dropped: float = MAX_DROPPED,
    engine: str | None = None,
    rows_for: str = "",
    **columns: Any,
) -> Predictions:
    """Return the predictions in files, as the options of a command describe them.

    Parameters
    ----------
    source : list of str
        Files of rows, or of aggregated predictions.
    y, p, by, bad_rows, max_dropped, **columns
        As typed.
    engine : str, optional
        As typed; without, memory for what fits comfortably into it.
    rows_for : str
        What needs rows and cannot be had from aggregated predictions.
    """
    aggregated = open_aggregated(source, rows_for)
    if aggregated is not None:
        given = {"y": y, "p": p, **columns, "bad_rows": bad_rows}
        _check_no_column_options(given, max_dropped, engine)
        return aggregated if by is None else aggregated.grouped_by(listed(by))
    table = open_rows(source, engine, bad_rows, in_memory=bool(rows_for))
    return predictions_of(
        table, y=y, p=p, by=by, bad_rows=bad_rows, max_dropped=max_dropped, **columns
    )


def predictions_of(
    table: Table,
    *,
    y: str | Sequence[str] | None,
    p: list[str] | None,
    by: str | None,
    task: str | None,
    pos_label: str | None,
    labels: str | None,
    scale: list[str] | None,
    bad_rows: str,
    max_dropped: float,
    **columns: Any,
) -> Predictions:
    """Return the predictions in an open table, as options describe them."""
    from calibrant.predictions.predictions import Predictions

    if y is None or not y or not p:
        raise OptionError(
            f"--y and --p must name columns, of labels and probabilities. Columns are: "
            f"{', '.join(table.all_names)}."
        )
    label = y if isinstance(y, str) else label_columns(table.names, list(y))
    first = label if isinstance(label, str) else next(iter(label.values()))
    return Predictions.from_table(
        table,
        y=label,
        p=models(p, task),
        by=listed(by),
        scale=scales(scale),
        bad_rows=bad_rows,  # type: ignore[arg-type]
        max_dropped=max_dropped,
        **typed_options(table, first, task, pos_label, labels),
        **columns,
    )


def open_aggregated(source: list[str], rows_for: str = "") -> Predictions | None:
    """Return the aggregated predictions in files; None where they hold rows.

    `rows_for` says what needs rows: then an error says so.
    """
    from calibrant.engines.opening import open_cells
    from calibrant.predictions.aggregates import AggregatedPredictions
    from calibrant.predictions.predictions import Predictions

    cells = open_cells(_files(source))
    if cells is None:
        return None
    if rows_for:
        raise OptionError(
            f"{source[0]} holds aggregated predictions, from which {rows_for} "
            f"cannot be had; name the files of rows that were aggregated. 'calibrant "
            f"evaluate' takes aggregated predictions."
        )
    return Predictions(AggregatedPredictions(cells))


def _check_no_column_options(
    given: dict[str, Any], max_dropped: float, engine: str | None
) -> None:
    """Raise where something is said that aggregated predictions already fix."""
    usual = {"scale": [options.ScaleChoice.prob.value], "bad_rows": "error"}
    for name, value in given.items():
        if value and value != usual.get(name):
            raise OptionError(_fixed(name))
    if max_dropped != MAX_DROPPED:
        raise OptionError(_fixed("max_dropped"))
    if engine not in (None, "auto"):
        raise OptionError(_fixed("engine"))


def _fixed(name: str) -> str:
    return (
        f"aggregated predictions already fix columns, labels and scale; remove "
        f"--{name.replace('_', '-')}."
    )


def open_rows(
    source: list[str], engine: str | None, bad_rows: str, *, in_memory: bool = False
) -> Table:
    """Open files of rows by an engine."""
    from calibrant.engines.aggregation_spec import BadRows
    from calibrant.engines.opening import Engine, open_source

    check_choice(bad_rows, get_args(BadRows), name="--bad-rows")
    if in_memory:
        engine = "memory"
    elif engine is None:
        engine = _usual_engine(source)
    check_choice(engine, get_args(Engine), name="--engine")
    return open_source(_files(source), engine, bad_rows=bad_rows)  # type: ignore[arg-type]


def _usual_engine(source: list[str]) -> str:
    """Return "memory" for files that fit comfortably into it together, else "auto"."""
    from calibrant.engines.opening import MAX_FILES_IN_MEMORY
    from calibrant.engines.source_files import find_files

    if source[0].endswith(".npz"):
        return "memory"
    return "memory" if find_files(source).size <= MAX_FILES_IN_MEMORY else "auto"


def _files(source: list[str]) -> str | list[str]:
    return source[0] if len(source) == 1 else source


def dropping_options(bad_rows: str, max_dropped: float) -> list[str]:
    """Return what was typed about invalid rows, for commands that are printed.

    Examples
    --------
    >>> dropping_options("drop", 0.5), dropping_options("error", 0.5)
    (['--bad-rows', 'drop', '--max-dropped', '0.5'], [])
    """
    if bad_rows != "drop":
        return []
    share = [] if max_dropped == MAX_DROPPED else ["--max-dropped", f"{max_dropped:g}"]
    return ["--bad-rows", bad_rows, *share]


def describe_source(source: list[str]) -> str:
    """Return what to call files: names without folders, which are nobody's business.

    Examples
    --------
    >>> describe_source(["data/monday.csv", "data/tuesday.csv"])
    'monday.csv and 1 more'
    """
    more = f" and {len(source) - 1} more" if len(source) > 1 else ""
    return Path(source[0]).name + more


def check_not_source(source: list[str], *written: Path) -> None:
    """Raise if a file that would be written is one of those that are read."""
    from calibrant.engines.source_files import find_files

    there = [name for name in written if name.exists()]
    if there:
        npz = source[0].endswith(".npz")
        read = source if npz else find_files(source).paths
        if any(name.samefile(path) for name in there for path in read):
            raise OptionError("--out is a file that is read; choose another name.")
