"""``calibrant demo``: the bundled predictions, from table to figure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli.figures import check_figure_path, write_figure
from calibrant.cli.output import Format
from calibrant.cli.results import print_results

FIGURE_NAME = "calibrant-demo.png"


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help=f"Where to write the figure; without, {FIGURE_NAME}."
        ),
    ] = None,
) -> None:
    """Evaluate five real classifiers on bundled data and draw their diagrams."""
    from calibrant.datasets import BINARY_FILE, CLASSIFIERS
    from calibrant.displays.tables import reliability_of_table
    from calibrant.measures.tables import evaluate_table

    path = out or Path(FIGURE_NAME)
    check_figure_path(path, named=out is not None)
    typer.echo("Is a handwritten digit even? Five classifiers on 1797 unseen digits.\n")
    columns: dict[str, Any] = {"y": "even", "p": list(CLASSIFIERS)}
    found = evaluate_table(BINARY_FILE, **columns, methods=["pl", "es15"])
    print_results(found, Format.table)
    write_figure(reliability_of_table(BINARY_FILE, **columns).plot(), path)
