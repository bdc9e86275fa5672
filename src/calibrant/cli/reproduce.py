"""``calibrant reproduce``: the paper's synthetic study and its figures, anew."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from calibrant._atomic import replacing
from calibrant.cli.columns import listed
from calibrant.cli.figures import write_figure
from calibrant.cli.output import Format, print_frame
from calibrant.cli.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from calibrant._typing import Frame
    from calibrant.experiments.tables import ResultTable

reproduce = typer.Typer(
    no_args_is_help=True,
    help="Run the paper's synthetic study anew, or a fresh one; draw its figures.",
)


FRESH_TABLES = ("calmap", "ece", "bias")
"""Which tables of the fresh study are shown."""

ENDINGS = {"markdown": ".md", "latex": ".tex", "html": ".html"}


class TableFormat(StrEnum):
    """How tables are printed."""

    markdown = "markdown"
    latex = "latex"
    html = "html"
    csv = "csv"
    json = "json"


@reproduce.command()
def synthetic(
    quick: Annotated[
        bool, typer.Option("--quick", help="A small part of the grid, in a minute.")
    ] = False,
    out: Annotated[
        Path, typer.Option("--out", help="Folder of results, tables and log.")
    ] = Path("calibrant-synthetic"),
    seeds: Annotated[
        int | None,
        typer.Option(
            "--seeds",
            min=1,
            help="Draws of labels for each size; the paper's 5 leave much to chance, "
            "100 little.",
        ),
    ] = None,
    jobs: Annotated[
        int, typer.Option("--jobs", help="Processes; -1 for one a core.")
    ] = 1,
    output: Annotated[
        TableFormat, typer.Option("--format", help="How to print.")
    ] = TableFormat.markdown,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            help="a,b,c instead of the paper's; see 'calibrant methods'.",
        ),
    ] = None,
    as_printed: Annotated[
        bool,
        typer.Option(
            "--as-printed",
            help="Choose pieces of pl, pl-mse and pl-de as in the paper.",
        ),
    ] = False,
    retry_failures: Annotated[
        bool, typer.Option("--retry-failures", help="Do failed cells again.")
    ] = False,
) -> None:
    """Compare all methods of the paper on its synthetic data.

    Every finished cell is on disk at once: the same command goes on where a run was
    stopped. Tables of all formats are written beside the results.
    """
    from calibrant.experiments.design import (
        chosen_contenders,
        paper_design,
        quick_design,
    )
    from calibrant.experiments.runner import run
    from calibrant.experiments.tables import KINDS, result_table

    make = quick_design if quick else paper_design
    chosen = {} if seeds is None else {"seeds": seeds}
    design = make(**chosen, as_printed=as_printed)
    if methods is not None:
        contenders = chosen_contenders(listed(methods), as_printed=as_printed)
        design = replace(design, contenders=contenders)
    with progress_bar("fitting") as progress:
        rows = run(
            design, out, jobs=jobs, progress=progress, retry_failures=retry_failures
        )
    options = {
        "--quick": quick,
        "--seeds": seeds,
        "--methods": methods,
        "--as-printed": as_printed,
    }
    notes = [_made_by("synthetic", options, jobs), _times([rows], out)]
    tables = [result_table(rows, design, name) for name in KINDS]
    texts = _texts("Synthetic experiments", tables, notes)
    _write_tables(texts, out)
    _print_tables(tables, texts, output)


@reproduce.command()
def fresh(
    out: Annotated[
        Path, typer.Option("--out", help="Folder of results, tables and log.")
    ] = Path("calibrant-fresh"),
    seeds: Annotated[
        int, typer.Option("--seeds", min=1, help="Draws of labels for each size.")
    ] = 40,
    jobs: Annotated[
        int, typer.Option("--jobs", help="Processes; -1 for one a core.")
    ] = 1,
    output: Annotated[
        TableFormat, typer.Option("--format", help="How to print.")
    ] = TableFormat.markdown,
    methods: Annotated[
        str | None,
        typer.Option("--methods", help="a,b,c instead of those that are quick."),
    ] = None,
    studies: Annotated[
        str | None,
        typer.Option("--studies", help="Some of paper,other,skewed,polarised."),
    ] = None,
) -> None:
    """Compare methods on other seeds, shapes and distributions than the paper's.

    The oracle, which knows the shape, runs beside them. The same command goes on where
    a run was stopped.
    """
    from calibrant.experiments.fresh import FRESH_METHODS, chosen_studies, fresh_design
    from calibrant.experiments.runner import run
    from calibrant.experiments.tables import overall_table, result_table

    names = FRESH_METHODS if methods is None else listed(methods)
    chosen = chosen_studies(None if studies is None else listed(studies))
    designs = [fresh_design(s, seeds=seeds, methods=names) for s in chosen]
    rows = {}
    for study, design in zip(chosen, designs, strict=True):
        with progress_bar(f"fitting: {study.name}") as progress:
            rows[study.name] = run(design, out, jobs=jobs, progress=progress)
    options = {"--seeds": seeds, "--methods": methods, "--studies": studies}
    notes = [_made_by("fresh", options, jobs), _times(list(rows.values()), out)]
    tables = [overall_table(rows, designs, name) for name in FRESH_TABLES]
    for study, design in zip(chosen, designs, strict=True):
        found = [result_table(rows[study.name], design, name) for name in FRESH_TABLES]
        tables += [replace(table, study=study.title) for table in found]
    texts = _texts("Fresh experiments", tables, notes)
    _write_tables(texts, out)
    _print_tables(tables, texts, output)


@reproduce.command()
def figures(
    out: Annotated[Path, typer.Option("--out", help="Folder of the figures.")] = Path(
        "calibrant-figures"
    ),
) -> None:
    """Draw the figures of the paper that are made of synthetic data."""
    from calibrant.experiments.figures import FIGURES

    out.mkdir(parents=True, exist_ok=True)
    for name, draw in FIGURES.items():
        write_figure(draw(), out / f"{name}.png")


def _made_by(
    study: str, options: Mapping[str, bool | int | str | None], jobs: int
) -> str:
    """Say by which command, when and with what the tables were made."""
    from calibrant.experiments.runner import versions

    given = [
        name if value is True else f"{name} {value}"
        for name, value in {**options, "--jobs": jobs if jobs != 1 else None}.items()
        if value
    ]
    command = " ".join(["calibrant reproduce", study, *given])
    today = datetime.now(UTC).date()
    return f"Made by `{command}` on {today} with {versions()}."


def _times(parts: list[Frame], folder: Path) -> str:
    """Say how long the cells of each method took."""
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
        f"{told}. "
        f"The log beside the results has the time of day."
    )


def _texts(title: str, tables: list[ResultTable], notes: list[str]) -> dict[str, str]:
    """Return all tables as one text in each language, by its name."""
    from calibrant.experiments import rendering

    told = [f"% {note}" for note in notes]
    return {
        "markdown": "\n\n".join(
            [f"# {title}", *notes, *map(rendering.as_markdown, tables)]
        ),
        "latex": "\n".join([*told, *map(rendering.as_latex, tables)]),
        "html": rendering.html_page(
            title, notes, [rendering.as_html(table) for table in tables]
        ),
    }


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
