"""``calibrant reproduce``: run the studies and draw the figures of the paper."""

from __future__ import annotations

import warnings
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli.data_options import split_list
from calibrant.cli.output import Format, print_frame
from calibrant.cli.plot import check_figure_path, write_figure
from calibrant.cli.progress import progress_bar
from calibrant.core.output_files import atomic_write
from calibrant.core.parameters import check_choice
from calibrant.exceptions import CalibrantError, FailedCellsWarning, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from calibrant.core.array_types import Frame
    from calibrant.experiments.design import Design
    from calibrant.experiments.prediction_sets import PredictionSet
    from calibrant.experiments.result_tables import ResultTable

reproduce = typer.Typer(
    no_args_is_help=True,
    help="Rerun the paper's studies or a new one, and draw the paper's figures.",
)

CIFAR_EVENTS = "1=cars,3=cats,5=dogs,confidence"
DIGIT_EVENTS = "1,3,8,confidence"
SIZES = "1000,3000,10000"

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


Quick = Annotated[
    bool, typer.Option("--quick", help="Run only a small part, in about a minute.")
]
Out = Annotated[Path, typer.Option(help="Folder for results, tables and the log.")]
Seeds = Annotated[int, typer.Option(min=1, help="Number of samples of each size.")]
Sizes = Annotated[
    str, typer.Option(help="Sizes (rows) of the samples to evaluate, a,b,c.")
]
Jobs = Annotated[int, typer.Option(help="Number of processes; -1 uses all cores.")]
Output = Annotated[TableFormat, typer.Option("--format", help="Output format.")]
Retry = Annotated[bool, typer.Option("--retry-failures", help="Rerun failed cells.")]
Methods = Annotated[
    str | None,
    typer.Option(
        help="Methods, a,b,c, instead of the default; see 'calibrant methods'."
    ),
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
            help="Number of label draws per size; the paper's 5 give noisy tables, "
            "100 stable ones.",
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
    from calibrant.experiments import studies
    from calibrant.experiments.result_tables import KINDS, result_table

    make = studies.quick_design if quick else studies.paper_design
    design = make(**({} if seeds is None else {"seeds": seeds}), as_printed=as_printed)
    if methods is not None:
        names = split_list(methods)
        contenders = studies.named_contenders(names, as_printed=as_printed)
        design = replace(design, contenders=contenders)
    rows = _run({"synthetic": design}, out, jobs, retry=retry_failures)["synthetic"]
    tables = [result_table(rows, design, name) for name in KINDS]
    _show_tables(ctx, "Synthetic experiments", rows, tables, out, output)


@reproduce.command()
def fresh(
    ctx: typer.Context,
    out: Out = Path("calibrant-fresh"),
    seeds: Seeds = 40,
    methods: Methods = None,
    studies: Annotated[
        str | None,
        typer.Option(help="Studies to run, out of paper,other,skewed,polarised."),
    ] = None,
    jobs: Jobs = 1,
    output: Output = TableFormat.markdown,
    retry_failures: Retry = False,
) -> None:
    """Compare methods on seeds, shapes and distributions that are not in the paper.

    The oracle, which knows the shape, runs beside them. The same command continues an
    interrupted run.
    """
    from calibrant.experiments.result_tables import concatenate
    from calibrant.experiments.studies import FRESH_METHODS, FRESH_STUDIES
    from calibrant.experiments.study_tables import fresh_tables

    names = FRESH_METHODS if methods is None else split_list(methods)
    designs = {}
    for name in FRESH_STUDIES if studies is None else split_list(studies):
        study = FRESH_STUDIES[check_choice(name, FRESH_STUDIES, name="study")]
        designs[name] = study.design(seeds=seeds, methods=names)
    results = _run(designs, out, jobs, retry=retry_failures)
    tables = fresh_tables(results, designs)
    rows = concatenate(results.values())
    _show_tables(ctx, "Fresh experiments", rows, tables, out, output)


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
        int, typer.Option(min=1, help="Number of samples to fit calibrators on.")
    ] = 20,
    seeds: Seeds = 5,
    sizes: Sizes = SIZES,
    variants: Annotated[
        int,
        typer.Option(
            min=0,
            help="Number of samples for the slowest part: variants of pl and pl3, and "
            "order-preserving networks (which need torch); 0 omits them.",
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
    from calibrant.experiments.prediction_sets import Event
    from calibrant.experiments.result_tables import concatenate
    from calibrant.experiments.studies import PseudoRealStudy, has_torch
    from calibrant.experiments.study_tables import pseudo_real_tables

    texts = split_list(events or (CIFAR_EVENTS if data else DIGIT_EVENTS))
    study = PseudoRealStudy(
        _models(data, quick=quick),
        [Event.of(text) for text in texts],
        calibration_sets=calibration_sets,
        seeds=seeds,
        sizes=_counts(sizes),
        variant_seeds=variants,
    )
    study = study.quick() if quick else study
    results = _run(study.designs(), out, jobs, retry=retry_failures)
    rows = concatenate(results.values())
    without = study.variant_seeds and not has_torch()
    notes = ["Networks (iop-*) are omitted: torch is not installed."] if without else []
    title, tables = "Pseudo-real experiments", pseudo_real_tables(rows)
    _show_tables(ctx, title, rows, tables, out, output, *notes)


@reproduce.command()
def real(
    ctx: typer.Context,
    data: Data = None,
    beside: Annotated[
        Path | None,
        typer.Option(
            "--pseudo-real",
            help="Folder of models with a very large hold-out, whose biases are used "
            "to centre those of real data. Without it (and with --data) rows are "
            "centred at 0.",
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
    """Compare evaluators on real predictions, whose true map is unknown.

    Models are calibrated in five ways, and subsets of their test rows are evaluated. A
    table shows biases up to a constant per row; a figure shows how evaluators rank
    the five.
    """
    from calibrant.experiments.figures import ordering_figure
    from calibrant.experiments.result_tables import concatenate
    from calibrant.experiments.studies import SUBSETS, RealStudy
    from calibrant.experiments.study_tables import bias_table

    counts = [check_choice(n, SUBSETS, name="sizes") for n in _counts(sizes)]
    models = _models(data, quick=quick)
    known = _models([beside], quick=quick) if beside else [] if data else models
    subsets = {n: SUBSETS[n] for n in counts}
    study = RealStudy(models, known, seeds=seeds, subsets=subsets)
    designs = (study.quick() if quick else study).designs()
    results = _run(designs, out, jobs, retry=retry_failures)
    rows = concatenate(results.values())
    if (rows["failure"] == "").any():
        write_figure(ordering_figure(rows), out / "ordering.png")
    _show_tables(ctx, "Real experiments", rows, [bias_table(rows)], out, output)


@reproduce.command()
def arena(
    ctx: typer.Context,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="Folder of real predictions, searched with its subfolders, in "
            "addition to the models that are trained here; can be repeated."
        ),
    ] = None,
    quick: Quick = False,
    out: Out = Path("calibrant-arena"),
    kinds: Annotated[
        str, typer.Option(help="Kinds of calibration to compare: binary,multi-class.")
    ] = "binary,multi-class",
    methods: Annotated[
        str | None,
        typer.Option(
            help="Methods, a,b,c, instead of the default; 'all' selects all that do "
            "not need torch. See 'calibrant methods'."
        ),
    ] = None,
    sizes: Annotated[
        str, typer.Option(help="Numbers of calibration rows, a,b,c.")
    ] = "200,500,2000,5000",
    every: Annotated[int, typer.Option(help="Use only every n-th model.", min=1)] = 1,
    seeds: Seeds = 1,
    jobs: Jobs = 1,
    output: Output = TableFormat.markdown,
    retry_failures: Retry = False,
) -> None:
    """Compare calibrators by test log-loss on many models, data sets and sizes.

    A dozen classifiers are trained once on many data sets. Every finished cell is
    saved immediately, so the same command continues an interrupted run.
    """
    from calibrant.experiments import arena as study
    from calibrant.experiments.arena_models import train_models
    from calibrant.experiments.arena_sets import find_sets
    from calibrant.experiments.arena_tables import add_times, arena_tables
    from calibrant.experiments.result_tables import concatenate
    from calibrant.experiments.runner import Store

    names: Any = split_list(kinds)
    chosen = [check_choice(name, study.KINDS, name="kinds") for name in names]
    with progress_bar("training") as progress:
        trained = train_models(quick=quick, jobs=jobs, progress=progress)
    designs = study.arena_designs(
        [one for folder in [trained, *(data or [])] for one in find_sets(folder)],
        kinds=chosen,
        methods=None if methods is None else split_list(methods),
        sizes=_counts(sizes)[: 1 if quick else None],
        seeds=1 if quick else seeds,
        every=every,
    )
    found = _run(designs, out, jobs, retry=retry_failures)
    results = {kind: add_times(rows, Store(out)) for kind, rows in found.items()}
    rows, tables = concatenate(results.values()), arena_tables(results)
    _show_tables(ctx, "Arena of calibrators", rows, tables, out, output)


@reproduce.command()
def figures(
    out: Annotated[Path, typer.Option(help="Folder for the figures.")] = Path(
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
    if not all(part.isdecimal() for part in split_list(text)):
        raise OptionError(f"--sizes must be numbers separated by commas; got {text!r}.")
    return [int(part) for part in split_list(text)]


def _run(
    designs: Mapping[str, Design], out: Path, jobs: int, *, retry: bool
) -> dict[str, Frame]:
    """Run designs into one folder; failures are reported by `_show_tables`."""
    from calibrant.experiments.runner import run

    rows: dict[str, Frame] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FailedCellsWarning)
        for name, design in designs.items():
            again = retry and not rows  # the first run drops all failures
            with progress_bar(f"fitting: {name}") as progress:
                rows[name] = run(
                    design, out, jobs=jobs, progress=progress, retry_failures=again
                )
    return rows


def _show_tables(
    ctx: typer.Context,
    title: str,
    rows: Frame,
    tables: list[ResultTable],
    out: Path,
    output: TableFormat,
    *notes: str,
) -> None:
    """Write tables in all formats and print them in one; raise if cells failed."""
    from calibrant.experiments import result_tables as formats
    from calibrant.experiments.runner import describe_failures, versions

    command = " ".join(["calibrant reproduce", str(ctx.info_name), *_given(ctx)])
    today = datetime.now(UTC).date()
    made_by = f"Made by `{command}` on {today} with {versions()}."
    notes = (made_by, _describe_times(rows, out), *notes)
    texts = {
        "markdown": formats.markdown_page(title, notes, tables),
        "latex": formats.latex_page(notes, tables),
        "html": formats.html_page(title, notes, tables),
    }
    for name, text in texts.items():
        path = out / f"tables{ENDINGS[name]}"
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        typer.echo(f"wrote {path}", err=True)
    if output in texts:
        typer.echo(texts[output], nl=False)
    else:
        frame = formats.concatenate(table.frame() for table in tables)
        print_frame(frame, Format(output))
    if failures := describe_failures(rows):
        raise CalibrantError(
            f"{failures}\nAll messages are in the column failure of "
            f"{out / 'results.parquet'}; --retry-failures reruns these cells."
        )


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


def _describe_times(rows: Frame, folder: Path) -> str:
    """Return a sentence with the CPU time of each method."""
    from calibrant.experiments.runner import Store

    methods = dict(zip(rows["key"].tolist(), rows["method"].tolist(), strict=True))
    seconds = Store(folder).seconds(methods)
    totals = dict.fromkeys(methods.values(), 0.0)
    for key, method in methods.items():
        totals[method] += seconds[key]
    each = ", ".join(f"{method} {total:.0f}" for method, total in totals.items())
    return (
        f"{len(seconds)} cells took {sum(seconds.values()):.0f} CPU seconds: "
        f"{each}. The log next to the results has wall-clock times."
    )
