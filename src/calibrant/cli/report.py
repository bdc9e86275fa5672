"""``calibrant report``: a file of predictions to one page for people."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli import options
from calibrant.cli.columns import listed
from calibrant.cli.findings import fail_on_findings, read_fail_on, read_mute
from calibrant.cli.predictions import (
    check_not_source,
    describe_source,
    dropping_options,
    read_predictions,
)
from calibrant.cli.progress import progress_bar
from calibrant.core.atomic_write import check_place
from calibrant.core.defaults import DEFAULT_CONFIDENCE, DEFAULT_METHODS
from calibrant.core.scales import MAX_DROPPED
from calibrant.exceptions import OptionError


class ReportFormat(StrEnum):
    """What a report is written as."""

    html = "html"
    json = "json"
    markdown = "markdown"


SUFFIXES = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown"}


def report(
    source: options.Sources,
    y: options.LabelColumnUnlessCells = None,
    p: options.ModelColumnsUnlessCells = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Where to write it, .html .json .md; without, a page goes to "
            "report.html and anything else to standard output.",
        ),
    ] = None,
    output: Annotated[
        ReportFormat | None,
        typer.Option("--format", help="What to write; by default by the name."),
    ] = None,
    by: options.GroupColumns = None,
    model: options.ModelColumn = None,
    id_: options.IdColumn = None,
    task: options.TaskName = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods", help="a,b,c; the verdict uses the first method other than kce."
        ),
    ] = None,
    weight: options.WeightColumn = None,
    pos_label: options.PositiveLabel = None,
    labels: options.ClassLabels = None,
    scale: options.InputScale = None,
    bad_rows: options.BadRowsRule = "error",
    max_dropped: options.MaxDropped = MAX_DROPPED,
    confidence: options.Confidence = DEFAULT_CONFIDENCE,
    mute: options.Mute = None,
    fail_on: options.FailOn = None,
    seed: options.RandomSeed = 0,
) -> None:
    """Make one page: verdict, diagram, numbers, groups, checks and what to do."""
    from calibrant.report.report import Report, check_outputs

    failing, muted = read_fail_on(fail_on), read_mute(mute)
    written = _format(out, output)
    page = Path("report.html") if out is None and written == "html" else out
    if page is not None:
        check_not_source(source, check_place(page))
        check_outputs(page, written, named=out is not None)
    with progress_bar("reporting") as progress:
        preds = read_predictions(
            source,
            y=y,
            p=p,
            by=by,
            model=model,
            id=id_,
            task=task,
            weight=weight,
            pos_label=pos_label,
            labels=labels,
            scale=scale,
            bad_rows=bad_rows,
            max_dropped=max_dropped,
        )
        found = Report.from_predictions(
            preds,
            methods=listed(methods) or DEFAULT_METHODS,
            confidence=confidence,
            mute=muted,
            random_state=seed,
            title=describe_source(source),
            files=[Path(name).name for name in source],
            fit_options=dropping_options(bad_rows, max_dropped),
            progress=progress,
        )
    if page is None:
        typer.echo(found.text(written))
    else:
        for path in found.save(page, output=written):
            typer.echo(f"wrote {path}", err=True)
        typer.echo(str(found))
    fail_on_findings(
        [finding for model in found.summary["models"] for finding in model["findings"]],
        failing,
    )


def _format(out: Path | None, output: ReportFormat | None) -> str:
    if output is not None:
        return output.value
    if out is None:
        return "html"
    if out.suffix.lower() not in SUFFIXES:
        raise OptionError(
            f"{out}: reports are written as .html, .json or .md; got "
            f"{out.suffix or 'no ending'!r}. Or say which by --format."
        )
    return SUFFIXES[out.suffix.lower()]
