"""Rows of predictions as commands name them: files, columns, labels."""

from __future__ import annotations

from typing import Any, get_args

from calibrant._validation.options import check_choice
from calibrant.cli.columns import listed, models, reading
from calibrant.exceptions import OptionError


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
        "p": models(p, task),
        "sample_weight": weight,
        "by": listed(by),
        **reading(table, y, task, pos_label, labels),
    }
    return table, wanted
