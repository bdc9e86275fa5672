"""``calibrant demo``: bundled predictions measured, repaired, drawn and reported."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.plot import check_figure_path, write_figure
from calibrant.cli.progress import progress_bar
from calibrant.cli.results import print_results

FIGURE_NAME = "calibrant-demo.png"
REPAIRED = "bayes"


def demo(
    out: Annotated[
        Path | None,
        typer.Option(
            help=f"File to write the figure to; default: {FIGURE_NAME}. The report is "
            "written beside it.",
        ),
    ] = None,
) -> None:
    """Measure and repair bundled classifiers; write a figure and a report."""
    from calibrant.calibrators.registry import make_calibrator
    from calibrant.datasets import BINARY_FILE, CLASSIFIERS, load_binary
    from calibrant.displays.grid import ReliabilityGrid
    from calibrant.measures.evaluation import evaluate
    from calibrant.predictions.predictions import Predictions
    from calibrant.report.report import Report, check_outputs

    path = out or Path(FIGURE_NAME)
    check_figure_path(path, named=out is not None)
    page = path.with_suffix(".html")
    check_outputs(page, "html", named=False)
    typer.echo("Is a handwritten digit even? Five classifiers on 1797 unseen digits.\n")
    preds = Predictions.from_table(BINARY_FILE, y="even", p=list(CLASSIFIERS))
    print_results(evaluate(preds, methods="smooth"), "table")

    p, y = load_binary(REPAIRED)
    calibrator = make_calibrator().fit(p[::2], y[::2])
    both = {"before": p[1::2], "after": calibrator.transform(p[1::2])}
    typer.echo(f"\nRepair {REPAIRED} on half of the rows, and measure the other half:")
    typer.echo(str(evaluate(y[1::2], both, methods="smooth")))
    axes = ReliabilityGrid.from_predictions(y[1::2], both).overlay()
    write_figure(axes.figure, path)
    with progress_bar("writing the report"):
        Report.from_predictions(preds).save(page)
    typer.echo(f"wrote {page}", err=True)
    _open_on_desktop(page)


def _open_on_desktop(page: Path) -> None:
    """Open a page in the browser where a person sits in front of a screen."""
    desktop = sys.platform in ("darwin", "win32") or "DISPLAY" in os.environ
    if desktop and sys.stdout.isatty():
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
