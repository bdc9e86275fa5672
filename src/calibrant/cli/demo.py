"""``calibrant demo``: the bundled predictions, from table to figure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.output import Format
from calibrant.cli.plot import check_figure_path, write_figure
from calibrant.cli.results import print_results

FIGURE_NAME = "calibrant-demo.png"


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help=f"File to write the figure to; default: {FIGURE_NAME}."
        ),
    ] = None,
) -> None:
    """Evaluate five real classifiers on bundled data and draw their diagrams."""
    from calibrant.datasets import BINARY_FILE, CLASSIFIERS
    from calibrant.displays.grid import ReliabilityGrid
    from calibrant.measures.evaluation import evaluate
    from calibrant.predictions.predictions import Predictions

    path = out or Path(FIGURE_NAME)
    check_figure_path(path, named=out is not None)
    typer.echo("Is a handwritten digit even? Five classifiers on 1797 unseen digits.\n")
    preds = Predictions.from_table(BINARY_FILE, y="even", p=list(CLASSIFIERS))
    print_results(evaluate(preds, methods=["smooth", "es15"]), Format.table)
    write_figure(ReliabilityGrid.from_predictions(preds).plot(), path)
