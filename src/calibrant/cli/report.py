"""``calibrant report``: a file of predictions to one page for people."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli import options
from calibrant.cli.columns import listed, models, reading
from calibrant.cli.findings import fail_on_findings, read_fail_on
from calibrant.cli.progress import progress_bar
from calibrant.exceptions import OptionError


class ReportFormat(StrEnum):
    """What a report is written as."""

    html = "html"
    json = "json"
    markdown = "markdown"


SUFFIXES = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown"}


def report(
    source: options.Source,
    y: options.LabelColumn,
    p: options.ModelColumns,
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
    task: options.TaskName = None,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods", help="a,b,c; the verdict is about the first, kce aside."
        ),
    ] = None,
    weight: options.WeightColumn = None,
    pos_label: options.PositiveLabel = None,
    labels: options.ClassLabels = None,
    scale: options.InputScale = options.Holds.prob,
    confidence: options.Confidence = 0.95,
    mute: options.Mute = None,
    fail_on: options.FailOn = None,
    seed: options.RandomSeed = 0,
) -> None:
    """Make one page: verdict, diagram, numbers, groups, checks and what to do."""
    from calibrant.engines.memory import open_table
    from calibrant.report.making import REPORT_METHODS, report_table

    failing = read_fail_on(fail_on)
    written = _format(out, output)
    if written == "html":
        out = out or Path("report.html")
    _check_folder(out)
    _refuse_own_source(out, source)
    table = open_table(source)
    with progress_bar("reporting") as progress:
        found = report_table(
            table,
            y=y,
            p=models(p, task),
            by=listed(by),
            methods=listed(methods) or REPORT_METHODS,
            sample_weight=weight,
            **reading(table, y, task, pos_label, labels),
            scale=scale.value,
            confidence=confidence,
            mute=listed(mute),
            random_state=seed,
            title=source.name,
            file=source.name,
            progress=progress,
        )
    if out is None:
        typer.echo(found.text(written))
    else:
        for path in found.save(out, output=written):
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


def _refuse_own_source(out: Path | None, source: Path) -> None:
    names = [] if out is None else [out, out.with_suffix(".json")]
    if any(name.exists() and name.samefile(source) for name in names):
        raise OptionError("--out is the file that is read; choose another name.")


def _check_folder(out: Path | None) -> None:
    """Refuse a name that cannot be written, before any work is done."""
    if out is None:
        return
    if out.is_dir():
        raise OptionError(f"{out} is a folder; name a file in it.")
    if not out.resolve().parent.is_dir():
        raise OptionError(f"{out}: the folder {out.parent} does not exist.")
