"""``calibrant reproduce``: run the studies and draw the figures of the paper."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.cli.columns import listed
from calibrant.cli.figures import check_figure_path, write_figure
from calibrant.cli.study_output import TableFormat, run_designs, show_tables
from calibrant.core.options import check_choice
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from calibrant.experiments.predictions import PredictionSet

reproduce = typer.Typer(
    no_args_is_help=True,
    help="Run the paper's studies again, or a fresh one; draw its figures.",
)

FRESH_TABLES = ("calmap", "ece", "bias")
CIFAR_EVENTS = "1=cars,3=cats,5=dogs,confidence"
DIGIT_EVENTS = "1,3,8,confidence"
SIZES = "1000,3000,10000"

Quick = Annotated[bool, typer.Option("--quick", help="A small part, in a minute.")]
Out = Annotated[Path, typer.Option(help="Folder of results, tables and log.")]
Seeds = Annotated[int, typer.Option(min=1, help="Samples of each size.")]
Sizes = Annotated[str, typer.Option(help="Rows of samples that are evaluated.")]
Jobs = Annotated[int, typer.Option(help="Number of processes; -1 uses all cores.")]
Output = Annotated[TableFormat, typer.Option("--format", help="How to print.")]
Retry = Annotated[bool, typer.Option("--retry-failures", help="Rerun failed cells.")]
Methods = Annotated[
    str | None,
    typer.Option(help="a,b,c instead of the default; see 'calibrant methods'."),
]
Data = Annotated[
    list[Path] | None,
    typer.Option(
        help="Folder of predictions, with one npz file or one folder of npy or Parquet "
        "files per model; may be given several times. Default: the embedded digits."
    ),
]


@reproduce.command()
def synthetic(
    ctx: typer.Context,
    quick: Quick = False,
    out: Out = Path("calibrant-synthetic"),
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Draws of labels for each size; the paper's 5 leave much to chance, "
            "100 little.",
        ),
    ] = None,
    methods: Methods = None,
    as_printed: Annotated[
        bool,
        typer.Option(
            "--as-printed",
            help="Choose the number of pieces of pl, pl-mse and pl-de as in the paper.",
        ),
    ] = False,
    jobs: Jobs = 1,
    output: Output = TableFormat.markdown,
    retry_failures: Retry = False,
) -> None:
    """Compare all methods of the paper on its synthetic data.

    Every finished cell is saved immediately: the same command continues an interrupted
    run. Tables in all formats are written beside the results.
    """
    from calibrant.experiments import synthetic_studies as studies
    from calibrant.experiments.tables import KINDS, result_table

    make = studies.quick_design if quick else studies.paper_design
    design = make(**({} if seeds is None else {"seeds": seeds}), as_printed=as_printed)
    if methods is not None:
        names = listed(methods)
        contenders = studies.named_contenders(names, as_printed=as_printed)
        design = replace(design, contenders=contenders)
    designs = {"synthetic": design}
    results = run_designs(designs, out, jobs=jobs, retry_failures=retry_failures)
    rows = results["synthetic"]
    tables = [result_table(rows, design, name) for name in KINDS]
    title = "Synthetic experiments"
    show_tables(ctx, title, rows, tables, out=out, output=output)


@reproduce.command()
def fresh(
    ctx: typer.Context,
    out: Out = Path("calibrant-fresh"),
    seeds: Seeds = 40,
    methods: Methods = None,
    studies: Annotated[
        str | None, typer.Option(help="Some of paper,other,skewed,polarised.")
    ] = None,
    jobs: Jobs = 1,
    output: Output = TableFormat.markdown,
    retry_failures: Retry = False,
) -> None:
    """Compare methods on other seeds, shapes and distributions than the paper's.

    The oracle, which knows the shape, runs beside them. The same command continues an
    interrupted run.
    """
    from calibrant.experiments.synthetic_studies import FRESH_METHODS, FRESH_STUDIES
    from calibrant.experiments.tables import concatenate, overall_table, result_table

    names = FRESH_METHODS if methods is None else listed(methods)
    chosen = FRESH_STUDIES if studies is None else listed(studies)
    designs = {}
    for name in chosen:
        study = FRESH_STUDIES[check_choice(name, FRESH_STUDIES, name="study")]
        designs[name] = study.design(seeds=seeds, methods=names)
    results = run_designs(designs, out, jobs=jobs, retry_failures=retry_failures)
    tables = [overall_table(results, designs, kind) for kind in FRESH_TABLES]
    for name, kind in product(designs, FRESH_TABLES):
        table = result_table(results[name], designs[name], kind)
        tables.append(replace(table, study=FRESH_STUDIES[name].title))
    rows = concatenate(results.values())
    show_tables(ctx, "Fresh experiments", rows, tables, out=out, output=output)


@reproduce.command("pseudo-real")
def pseudo_real(
    ctx: typer.Context,
    data: Data = None,
    quick: Quick = False,
    out: Out = Path("calibrant-pseudo-real"),
    events: Annotated[
        str | None,
        typer.Option(
            help="Classes against the rest, as number or number=name, and "
            f"confidence. With --data {CIFAR_EVENTS}, else {DIGIT_EVENTS}.",
        ),
    ] = None,
    calibration_sets: Annotated[
        int, typer.Option(min=1, help="Samples that calibrators are fitted on.")
    ] = 20,
    seeds: Seeds = 5,
    sizes: Sizes = SIZES,
    variants: Annotated[
        int,
        typer.Option(
            min=0,
            help="Samples for variants of pl and pl3 and for order-preserving "
            "networks (which need torch), the slowest part; 0 omits them.",
        ),
    ] = 5,
    jobs: Jobs = 1,
    output: Output = TableFormat.markdown,
    retry_failures: Retry = False,
) -> None:
    """Compare calibrators and evaluators on models whose true map is known.

    The true map is estimated on a very large hold-out. Every finished cell is saved
    immediately: the same command continues an interrupted run. Tables in all formats
    are written beside the results.
    """
    from calibrant.experiments.prediction_studies import PseudoRealStudy, has_torch
    from calibrant.experiments.prediction_tables import pseudo_real_tables
    from calibrant.experiments.predictions import Event
    from calibrant.experiments.tables import concatenate

    texts = listed(events or (CIFAR_EVENTS if data else DIGIT_EVENTS))
    study = PseudoRealStudy(
        _models(data, quick=quick),
        [Event.of(text) for text in texts],
        calibration_sets=calibration_sets,
        seeds=seeds,
        sizes=_counts(sizes),
        variant_seeds=variants,
    )
    study = study.quick() if quick else study
    designs = study.designs()
    results = run_designs(designs, out, jobs=jobs, retry_failures=retry_failures)
    rows = concatenate(results.values())
    without = study.variant_seeds and not has_torch()
    notes = ["Networks (iop-*) are omitted: torch is not installed."] if without else []
    title, made = "Pseudo-real experiments", pseudo_real_tables(rows)
    show_tables(ctx, title, rows, made, *notes, out=out, output=output)


@reproduce.command()
def real(
    ctx: typer.Context,
    data: Data = None,
    beside: Annotated[
        Path | None,
        typer.Option(
            "--pseudo-real",
            help="Folder of models with a very large hold-out, whose biases centre "
            "those of real data. Without it (and with --data) rows are centred at 0.",
        ),
    ] = None,
    quick: Quick = False,
    out: Out = Path("calibrant-real"),
    seeds: Seeds = 5,
    sizes: Sizes = SIZES,
    jobs: Jobs = 1,
    output: Output = TableFormat.markdown,
    retry_failures: Retry = False,
) -> None:
    """Compare evaluators on real predictions, whose truth is not known.

    Models are calibrated in five ways, and subsets of their test rows are evaluated. A
    table shows biases up to a constant per row, a figure how evaluators order the five.
    """
    from calibrant.experiments.figures import ordering_figure
    from calibrant.experiments.prediction_studies import SUBSETS, RealStudy
    from calibrant.experiments.prediction_tables import bias_table
    from calibrant.experiments.tables import concatenate

    counts = [check_choice(n, SUBSETS, name="sizes") for n in _counts(sizes)]
    models = _models(data, quick=quick)
    known = _models([beside], quick=quick) if beside else [] if data else models
    subsets = {n: SUBSETS[n] for n in counts}
    study = RealStudy(models, known, seeds=seeds, subsets=subsets)
    designs = (study.quick() if quick else study).designs()
    results = run_designs(designs, out, jobs=jobs, retry_failures=retry_failures)
    rows = concatenate(results.values())
    if (rows["failure"] == "").any():
        write_figure(ordering_figure(rows), out / "ordering.png")
    title, made = "Real experiments", [bias_table(rows)]
    show_tables(ctx, title, rows, made, out=out, output=output)


@reproduce.command()
def figures(
    out: Annotated[Path, typer.Option(help="Folder of the figures.")] = Path(
        "calibrant-figures"
    ),
) -> None:
    """Draw the figures of the paper that show synthetic data."""
    from calibrant.experiments.figures import FIGURES

    out.mkdir(parents=True, exist_ok=True)
    paths = {name: out / f"{name}.png" for name in FIGURES}
    for path in paths.values():
        check_figure_path(path, named=False)
    for name, draw in FIGURES.items():
        write_figure(draw(), paths[name])


def _models(data: Sequence[Path] | None, *, quick: bool) -> list[PredictionSet]:
    """Return the models of folders, or of the embedded digits."""
    from calibrant.experiments import embedded_predictions, find_predictions

    if not data:
        return list(embedded_predictions(quick=quick))
    return [model for folder in data for model in find_predictions(folder)]


def _counts(text: str) -> list[int]:
    """Return the numbers of a comma-separated list."""
    if not all(part.isdecimal() for part in listed(text)):
        raise OptionError(f"--sizes must be numbers with commas; got {text!r}.")
    return [int(part) for part in listed(text)]
