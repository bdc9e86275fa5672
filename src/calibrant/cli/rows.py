"""Rows of predictions as commands name them: files, columns, labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from calibrant._validation.options import check_choice
from calibrant.cli.columns import listed, typed_label, typed_labels
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from calibrant.engines.gathering import Table

ENGINE_HELP = "memory, duckdb or spark; auto: memory for one file up to 256 MiB."
BAD_ROWS_HELP = "What to do with rows that cannot be used: raise or drop."


def read_rows(
    source: str | list[str],
    *,
    y: str | None,
    p: list[str] | None,
    task: str | None,
    weight: str | None,
    by: str | None,
    pos_label: str | None,
    labels: str | None,
    engine: str,
    bad_rows: str,
) -> tuple[Any, dict[str, Any]]:
    """Open files of rows; return the table, and what the library wants to know."""
    from calibrant.engines.gathering import BadRows
    from calibrant.engines.opening import Engine, open_source

    if y is None or not p:
        raise OptionError("--y and --p must name columns, of labels and probabilities.")
    check_choice(engine, get_args(Engine), name="--engine")
    check_choice(bad_rows, get_args(BadRows), name="--bad-rows")
    table = open_source(source, engine, bad_rows=bad_rows)  # type: ignore[arg-type]
    wanted: dict[str, Any] = {
        "y": y,
        "p": _models(p, task),
        "sample_weight": weight,
        "by": listed(by),
        **_reading(table, y, task, pos_label, labels),
    }
    return table, wanted


def _models(p: list[str], task: str | None) -> list[str] | dict[str, list[str]] | str:
    """Return what `evaluate_table` takes for the given --p options."""
    if len(p) == 1 and "=" not in p[0]:
        columns = listed(p[0])
        return columns[0] if len(columns) == 1 else columns
    if task is None and not any("=" in entry for entry in p):
        return [column for entry in p for column in listed(entry)]
    models: dict[str, list[str]] = {}
    for entry in p:
        name, equals, columns_text = entry.partition("=")
        if name in models:
            raise OptionError(f"--p names the model {name!r} twice.")
        models[name] = listed(columns_text if equals else entry)
    return models


def _reading(
    table: Table,
    y: str,
    task: str | None,
    pos_label: str | None,
    labels: str | None,
) -> dict[str, Any]:
    """Read labels that were typed as text in the type of the label column."""
    column = table.like(y)
    return {
        "task": _task(table, y, task),
        "pos_label": typed_label(column, pos_label),
        "labels": typed_labels(column, labels),
    }


def _task(table: Table, y: str, task: str | None) -> Any:
    """Return a class as its label if the column has it, else as a column number."""
    from calibrant.measures.table_models import NOT_A_CLASS, typed_like

    if task in NOT_A_CLASS:
        return task
    label = typed_like(table.like(y), str(task))
    is_number = str(task).isdecimal() and not table.has(y, label)
    return int(str(task)) if is_number else label
