"""``calibrant export``: a map as SQL or as Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli.data_options import split_list
from calibrant.core.array_types import Scale
from calibrant.exceptions import OptionError
from calibrant.maps.grouped import GroupedMap
from calibrant.maps.languages import DIALECTS
from calibrant.maps.multiclass import MulticlassMap
from calibrant.maps.sql_and_python import ACCURACY


def export(
    map_file: Annotated[
        Path,
        typer.Argument(help="Map written by 'calibrant calibrate'.", metavar="MAP"),
    ],
    dialect: Annotated[
        str, typer.Option(help=f"SQL dialect: {', '.join(DIALECTS)}.")
    ] = "ansi",
    p: Annotated[
        str | None,
        typer.Option(
            help="Column of predictions in the SQL; by default, the column that the "
            "map was fitted on.",
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            help="Column(s) of groups in the SQL, a,b; by default, those that the map "
            "was fitted on.",
        ),
    ] = None,
    scale: Annotated[
        Scale | None,
        typer.Option(
            help="What the column, or p in Python, contains.",
            show_default="what the map was fitted to",
        ),
    ] = None,
    python: Annotated[
        bool,
        typer.Option(
            "--python", help="Print a Python function without imports instead of SQL."
        ),
    ] = False,
    accuracy: Annotated[
        float,
        typer.Option(
            help="Maximum error of tables, which replace long formulas; 0 writes the "
            "formulas themselves.",
        ),
    ] = ACCURACY,
) -> None:
    """Print a map as a SQL expression, or as a Python function.

    Both take predictions on the scale that the map was fitted to, such as percentages,
    and give calibrated probabilities from 0 to 1.
    """
    from calibrant.maps.stored import load_map

    map_: Any = load_map(map_file)
    if python:
        typer.echo(map_.to_python(accuracy=accuracy, scale=scale), nl=False)
        return
    if isinstance(map_, MulticlassMap):
        raise OptionError(
            f"{map_file} calibrates {map_.n_classes} classes; only maps of one event "
            "can be written as SQL. Use --python, or 'calibrant apply'."
        )
    groups = {}
    if by is not None:
        if not isinstance(map_, GroupedMap):
            raise OptionError("this map does not differ by group; remove --by.")
        groups["by"] = split_list(by)
    column = p or _fitted_column(map_file)
    typer.echo(map_.to_sql(column, dialect, accuracy=accuracy, scale=scale, **groups))


def _fitted_column(map_file: Path) -> str:
    from calibrant.maps.stored import load_columns

    columns = load_columns(map_file)
    if not columns:
        raise OptionError(
            f"--p must name the column of predictions: {map_file} does not say which "
            "column it was fitted on."
        )
    return columns[0]
