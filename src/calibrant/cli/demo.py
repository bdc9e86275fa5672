"""``calibrant demo``: the bundled predictions, from table to figure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from calibrant.cli.figures import check_figure_path, write_figure
from calibrant.cli.output import Format
from calibrant.cli.results import print_results


def demo(
    out: Annotated[
        Path, typer.Option("--out", help="Where to write the figure.")
    ] = Path("calibrant-demo.png"),
) -> None:
    """Evaluate five real classifiers on bundled data and draw their diagrams."""
    from calibrant.datasets import BINARY_FILE, CLASSIFIERS
    from calibrant.displays.tables import reliability_of_table
    from calibrant.measures.tables import evaluate_table

    check_figure_path(out)
    typer.echo("Is a handwritten digit even? Five classifiers on 1797 unseen digits.\n")
    columns: dict[str, Any] = {"y": "even", "p": list(CLASSIFIERS)}
    found = evaluate_table(BINARY_FILE, **columns, methods=["pl", "es15"])
    print_results(found, Format.table)
    write_figure(reliability_of_table(BINARY_FILE, **columns).plot(), out)
