"""Run the designs of a study, write its tables beside the results, and print them."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from enum import StrEnum
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from calibrant.cli.output import Format, print_frame
from calibrant.cli.progress import progress_bar
from calibrant.core.atomic_write import atomic_write
from calibrant.exceptions import CalibrantError, FailedCellsWarning

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from calibrant.core.array_types import Frame
    from calibrant.experiments.design import Design
    from calibrant.experiments.tables import ResultTable

ENDINGS = {"markdown": ".md", "latex": ".tex", "html": ".html"}
HIDDEN = {"--out", "--format", "--retry-failures"}
"""Options that do not change the numbers."""

FOLDERS = {"--data", "--pseudo-real"}


class TableFormat(StrEnum):
    """How tables are printed."""

    markdown = "markdown"
    latex = "latex"
    html = "html"
    csv = "csv"
    json = "json"


def run_designs(
    designs: Mapping[str, Design], out: Path, *, jobs: int, retry_failures: bool
) -> dict[str, Frame]:
    """Run designs into one folder; failures are reported by `show_tables`."""
    from calibrant.experiments.runner import run

    rows: dict[str, Frame] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FailedCellsWarning)
        for name, design in designs.items():
            retry = retry_failures and not rows  # the first run drops all failures
            with progress_bar(f"fitting: {name}") as progress:
                rows[name] = run(
                    design, out, jobs=jobs, progress=progress, retry_failures=retry
                )
    return rows


def show_tables(
    ctx: typer.Context,
    title: str,
    rows: Frame,
    tables: list[ResultTable],
    *notes: str,
    out: Path,
    output: TableFormat,
) -> None:
    """Write tables in all formats and print them in one; raise if cells failed."""
    from calibrant.experiments.runner import describe_failures

    texts = _texts(title, tables, [_made_by(ctx), _times(rows, out), *notes])
    for name, text in texts.items():
        path = out / f"tables{ENDINGS[name]}"
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        typer.echo(f"wrote {path}", err=True)
    _print_tables(tables, texts, output)
    if failures := describe_failures(rows):
        raise CalibrantError(
            f"{failures}\nAll messages are in the column failure of "
            f"{out / 'results.parquet'}; --retry-failures runs these cells again."
        )


def _made_by(ctx: typer.Context) -> str:
    """Return a sentence with the command, the date and the versions."""
    from calibrant.experiments.runner import versions

    command = " ".join(["calibrant reproduce", str(ctx.info_name), *_given(ctx)])
    today = datetime.now(UTC).date()
    return f"Made by `{command}` on {today} with {versions()}."


def _given(ctx: typer.Context) -> Iterator[str]:
    """Yield the options that were given; folders by their names only."""
    for option in ctx.command.params:
        name, key = option.opts[0], str(option.name)
        source = ctx.get_parameter_source(key)
        if source is None or source.name != "COMMANDLINE" or name in HIDDEN:
            continue
        value = ctx.params[key]
        for entry in value if isinstance(value, list | tuple) else [value]:
            text = Path(entry).name if name in FOLDERS else entry
            yield name if entry is True else f"{name} {text}"


def _times(rows: Frame, folder: Path) -> str:
    """Return a sentence with the CPU time of each method."""
    from calibrant.experiments.store import Store

    methods = dict(zip(rows["key"].tolist(), rows["method"].tolist(), strict=True))
    seconds = Store(folder).seconds(methods)
    totals = dict.fromkeys(methods.values(), 0.0)
    for key, method in methods.items():
        totals[method] += seconds[key]
    each = ", ".join(f"{method} {total:.0f}" for method, total in totals.items())
    return (
        f"{len(seconds)} cells took {sum(seconds.values()):.0f} seconds of one core: "
        f"{each}. The log beside the results has the time of day."
    )


def _texts(title: str, tables: list[ResultTable], notes: list[str]) -> dict[str, str]:
    """Return all tables as one text in each format, by its name."""
    from calibrant.experiments import rendering

    comments = [f"% {note}" for note in notes]
    return {
        "markdown": "\n\n".join([f"# {title}", *notes, *_chapters(tables)]),
        "latex": "\n".join([*comments, *map(rendering.as_latex, tables)]),
        "html": rendering.html_page(title, notes, list(map(rendering.as_html, tables))),
    }


def _chapters(tables: list[ResultTable]) -> Iterator[str]:
    """Yield tables in Markdown, with a heading wherever another study begins."""
    from calibrant.experiments.rendering import as_markdown

    for study, group in groupby(tables, key=lambda table: table.study):
        yield from [f"## {study}"] if study else []
        yield from map(as_markdown, group)


def _print_tables(
    tables: list[ResultTable], texts: dict[str, str], output: TableFormat
) -> None:
    from calibrant.experiments.tables import concatenate

    if output in texts:
        typer.echo(texts[output], nl=False)
    else:
        print_frame(concatenate(t.frame() for t in tables), Format(output))
