"""``calibrant report``: a file of predictions to a report for people."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from calibrant.cli import options
from calibrant.cli.data_options import (
    DataOptions,
    check_not_source,
    named_list,
    takes_predictions,
)
from calibrant.cli.progress import progress_bar
from calibrant.cli.results import fail_on_findings, read_checks
from calibrant.core.defaults import DEFAULT_CONFIDENCE, DEFAULT_METHODS
from calibrant.core.output_files import check_place

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
    fail_on_findings(
        [finding for model in made.summary["models"] for finding in model["findings"]],
        failing,
    )
