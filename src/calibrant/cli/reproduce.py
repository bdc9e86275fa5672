"""``calibrant reproduce``: the paper's studies and figures, anew."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli.columns import listed
from calibrant.cli.figures import check_figure_path, write_figure
from calibrant.cli.progress import progress_bar
from calibrant.cli.reproduce_studies import pseudo_real, real
from calibrant.cli.study_output import TableFormat, made_by, show_tables, times

reproduce = typer.Typer(
    no_args_is_help=True,
    help="Run the paper's studies anew, or a fresh one; draw its figures.",
)
reproduce.command("pseudo-real")(pseudo_real)
reproduce.command()(real)

FRESH_TABLES = ("calmap", "ece", "bias")
"""Which tables of the fresh study are shown."""


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
    from calibrant.experiments.table_kinds import KINDS
    from calibrant.experiments.tables import result_table

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
    notes = [made_by("synthetic", options, jobs), times([rows], out)]
    tables = [result_table(rows, design, name) for name in KINDS]
    show_tables("Synthetic experiments", tables, notes, out, output)


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
    notes = [made_by("fresh", options, jobs), times(list(rows.values()), out)]
    tables = [overall_table(rows, designs, name) for name in FRESH_TABLES]
    for study, design in zip(chosen, designs, strict=True):
        found = [result_table(rows[study.name], design, name) for name in FRESH_TABLES]
        tables += [replace(table, study=study.title) for table in found]
    show_tables("Fresh experiments", tables, notes, out, output)


@reproduce.command()
def figures(
    out: Annotated[Path, typer.Option("--out", help="Folder of the figures.")] = Path(
        "calibrant-figures"
    ),
) -> None:
    """Draw the figures of the paper that are made of synthetic data."""
    from calibrant.experiments.figures import FIGURES

    out.mkdir(parents=True, exist_ok=True)
    paths = {name: out / f"{name}.png" for name in FIGURES}
    for path in paths.values():
        check_figure_path(path, named=False)
    for name, draw in FIGURES.items():
        write_figure(draw(), paths[name])
