"""Commands that draw: ``plot``, ``report``, ``demo``; figures on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from calibrant.__about__ import __version__
from calibrant.cli import options
from calibrant.cli.data_options import DataOptions, check_not_source, takes_predictions
from calibrant.cli.options import named_list
from calibrant.cli.process import progress_bar
from calibrant.cli.results import (
    end_if_failed,
    findings_failing,
    print_results,
    read_checks,
)
from calibrant.core.defaults import DEFAULT_CONFIDENCE, DEFAULT_METHOD, DEFAULT_METHODS
from calibrant.core.output_files import (
    FIGURE,
    atomic_write,
    check_derived,
    check_named,
    check_place,
)
from calibrant.core.parameters import check_choice
from calibrant.exceptions import OptionError

Kind: TypeAlias = Literal["curve", "diagonal", "centres", "bars"]
Axes: TypeAlias = Literal["prob", "logit", "auto"]


@takes_predictions("engine", "id_")
def plot(
    data: DataOptions,
    out: Annotated[Path, typer.Option(help="File to write: .png, .svg or .pdf.")],
    method: options.MethodName = DEFAULT_METHOD,
    kind: Annotated[
        Kind,
        typer.Option(
            metavar="KIND",
            help="curve: the map with its band, and bins with intervals; diagonal: "
            "filled between map and diagonal; bars: bars of observed rates; centres: "
            "bars with dots and lines to the diagonal.",
        ),
    ] = "curve",
    axes: Annotated[
        Axes,
        typer.Option(
            metavar="AXES",
            help="prob: probabilities; logit: log-odds, which stretch both ends; auto: "
            "logit for rare events.",
        ),
    ] = "prob",
    histogram: Annotated[
        bool,
        typer.Option(
            "--histogram/--no-histogram",
            help="Show how the predictions are distributed.",
        ),
    ] = True,
    overlay: Annotated[
        bool,
        typer.Option(
            "--overlay", help="All curves in one diagram, such as before and after."
        ),
    ] = False,
    style: Annotated[
        str, typer.Option(metavar="STYLE", help="colour, or grey for print.")
    ] = "colour",
    width: Annotated[
        float | None,
        typer.Option(help="Inches: 3.5 for one column of a journal, 7 for two."),
    ] = None,
    debias: options.Debiased = True,
    seed: options.RandomSeed = 0,
) -> None:
    """Draw one reliability diagram per model, class and group."""
    from calibrant.displays.grid import ReliabilityGrid
    from calibrant.displays.style import STYLES, check_width

    check_choice(style, STYLES, name="--style")
    check_figure_path(out)
    check_not_source(data.files, out)
    if width is not None:
        check_width(width)
    look: dict[str, Any] = {"style": style, "width": width}
    with progress_bar("drawing"):
        grid = ReliabilityGrid.from_predictions(
            data.predictions(prefer_memory=True),
            kind=kind,
            axes=axes,
            method=method,
            histogram=histogram,
            debias="auto" if debias else False,
            random_state=seed,
        )
        figure = grid.overlay(**look).figure if overlay else grid.plot(**look)
        write_figure(figure, out)


DPI = 200
SOFTWARE = {".png": "Software", ".svg": "Creator", ".pdf": "Creator"}
"""What formats call the program that made a figure."""


def check_figure_path(path: Path | None, *, named: bool = True) -> None:
    """Raise where a figure cannot be written, before any work is done.

    `named` says whether the user has named the file.
    """
    if path is None:
        return
    if path.suffix.lower() not in FIGURE.suffixes:
        raise OptionError(
            f"{path}: figures are written as {', '.join(FIGURE.suffixes)}, not as "
            f"{path.suffix or 'files without extension'}."
        )
    (check_named if named else check_derived)(path, FIGURE)


def write_figure(figure: Any, path: Path) -> None:
    """Write a figure and say where."""
    made_by = {SOFTWARE[path.suffix.lower()]: f"calibrant {__version__}"}
    import matplotlib as mpl

    # Journals refuse fonts of type 3, the default in PDF.
    with mpl.rc_context({"pdf.fonttype": 42}), atomic_write(path) as temporary:
        figure.savefig(temporary, dpi=DPI, metadata=made_by)
    typer.echo(f"wrote {path}", err=True)


ReportFormat: TypeAlias = Literal["html", "json", "markdown", "pdf"]


@takes_predictions("engine")
def report(
    data: DataOptions,
    out: Annotated[
        Path | None,
        typer.Option(
            help="File to write: .html, .json, .md or .pdf. By default, HTML goes to "
            "report.html, PDF to report.pdf, and text to standard output.",
        ),
    ] = None,
    title: Annotated[
        str, typer.Option(help="Title; by default the name of the file.")
    ] = "",
    output: Annotated[
        ReportFormat | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="Output format: html, json, markdown or pdf; by default inferred from "
            "the file name.",
        ),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(
            metavar="METHODS",
            help="Methods, a,b,c; the verdict uses the first one other than kce.",
        ),
    ] = None,
    confidence: options.Confidence = DEFAULT_CONFIDENCE,
    debias: options.Debiased = True,
    mute: options.Mute = None,
    fail_on: options.FailOn = None,
    seed: options.RandomSeed = 0,
) -> None:
    """Write a single-file report: verdict, diagrams, groups, checks and repairs."""
    from calibrant.report.report import Report, check_outputs, format_of

    failing, muted = read_checks(fail_on, mute)
    written = output or ("html" if out is None else format_of(out))
    page = out
    if out is None and written in ("html", "pdf"):
        page = Path(f"report.{written}")
    if page is not None:
        target = check_place(page)
        check_not_source(data.files, target)
        check_outputs(page, written, named=out is not None)
    with progress_bar("reporting") as progress:
        preds = data.predictions(prefer_memory=True)
        made = Report.from_predictions(
            preds,
            methods=named_list(methods, "--methods") or DEFAULT_METHODS,
            debias="auto" if debias else False,
            confidence=confidence,
            mute=muted,
            random_state=seed,
            title=title or data.describe(),
            progress=progress,
        )
    data.say_if_pooled(preds)
    if page is None:
        typer.echo(made.text(written))
    else:
        for path in made.save(page, output=written):
            typer.echo(f"wrote {path}", err=True)
        typer.echo(str(made))
    models = made.summary["models"]
    findings = [finding for model in models for finding in model["findings"]]
    end_if_failed(findings_failing(findings, failing))


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
