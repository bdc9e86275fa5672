"""Tables of a study: written beside the results, and printed."""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import typer

from calibrant._atomic import replacing
from calibrant.cli.output import Format, print_frame

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from calibrant._typing import Frame
    from calibrant.experiments.tables import ResultTable

ENDINGS = {"markdown": ".md", "latex": ".tex", "html": ".html"}


class TableFormat(StrEnum):
    """How tables are printed."""

    markdown = "markdown"
    latex = "latex"
    html = "html"
    csv = "csv"
    json = "json"


def made_by(study: str, options: Mapping[str, Any], jobs: int) -> str:
    """Say by which command, when and with what the tables were made."""
    from calibrant.experiments.runner import versions

    given = [
        name if value is True else f"{name} {value}"
        for name, value in {**options, "--jobs": jobs if jobs != 1 else None}.items()
        if value
    ]
    command = " ".join([f"calibrant reproduce {study}", *given])
    today = datetime.now(UTC).date()
    return f"Made by `{command}` on {today} with {versions()}."


def times(parts: list[Frame], folder: Path) -> str:
    """Say how long the cells of each method took, in all parts of the results."""
    from calibrant.experiments.store import Store

    method = {
        key: name
        for rows in parts
        for key, name in zip(rows["key"].tolist(), rows["method"].tolist(), strict=True)
    }
    seconds = Store(folder).seconds(method)
    totals = dict.fromkeys(method.values(), 0.0)
    for key, name in method.items():
        totals[name] += seconds[key]
    told = ", ".join(f"{name} {total:.0f}" for name, total in totals.items())
    return (
        f"{len(seconds)} cells took {sum(seconds.values()):.0f} seconds of one core: "
        f"{told}. The log beside the results has the time of day."
    )


def _texts(title: str, tables: list[ResultTable], notes: list[str]) -> dict[str, str]:
    """Return all tables as one text in each language, by its name."""
    from calibrant.experiments import rendering

    told = [f"% {note}" for note in notes]
    return {
        "markdown": "\n\n".join([f"# {title}", *notes, *_chapters(tables)]),
        "latex": "\n".join([*told, *map(rendering.as_latex, tables)]),
        "html": rendering.html_page(
            title, notes, [rendering.as_html(table) for table in tables]
        ),
    }


def _chapters(tables: list[ResultTable]) -> Iterator[str]:
    """Give tables in Markdown, with a heading wherever another study begins."""
    from calibrant.experiments.rendering import as_markdown

    for study, alike in groupby(tables, key=lambda table: table.study):
        yield from [f"## {study}"] if study else []
        yield from map(as_markdown, alike)


def show_tables(
    title: str,
    tables: list[ResultTable],
    notes: list[str],
    folder: Path,
    output: TableFormat,
) -> None:
    """Write tables in all languages, and print them in one."""
    texts = _texts(title, tables, notes)
    _write_tables(texts, folder)
    _print_tables(tables, texts, output)


def _write_tables(texts: dict[str, str], folder: Path) -> None:
    for name, text in texts.items():
        path = folder / f"tables{ENDINGS[name]}"
        with replacing(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        typer.echo(f"wrote {path}", err=True)


def _print_tables(
    tables: list[ResultTable], texts: dict[str, str], output: TableFormat
) -> None:
    if output in texts:
        typer.echo(texts[output], nl=False)
        return
    frames = [table.frame() for table in tables]
    together = {name: np.concatenate([f[name] for f in frames]) for name in frames[0]}
    print_frame(together, Format(output))
