"""``calibrant reproduce``: run the studies and draw the figures of the paper."""

from __future__ import annotations

import warnings
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from calibrant.cli.draw import check_figure_path, write_figure
from calibrant.cli.options import split_list
from calibrant.cli.process import progress_bar
from calibrant.cli.results import print_frame
from calibrant.core.output_files import atomic_write
from calibrant.core.parameters import check_choice
from calibrant.engines.files import load_polars
from calibrant.exceptions import CalibrantError, FailedCellsWarning, OptionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from calibrant.experiments import StoredPredictions, Study

reproduce = typer.Typer(
    no_args_is_help=True,
    help="Rerun the paper's studies or a new one, and draw the paper's figures.",
)

CIFAR_EVENTS = "1=cars,3=cats,5=dogs,confidence"
DIGIT_EVENTS = "1,3,8,confidence"
HIDDEN = {"--out", "--format"}
"""Options that do not change the numbers."""
FOLDERS = {"--data", "--pseudo-real"}


TableFormat: TypeAlias = Literal["markdown", "latex", "csv", "json"]
Quick = Annotated[
    bool, typer.Option("--quick", help="Run only a small part, in about a minute.")
]
Out = Annotated[Path, typer.Option(help="Folder for results, tables and the log.")]
Seeds = Annotated[int, typer.Option(min=1, help="Number of samples of each size.")]
Sizes = Annotated[str, typer.Option(help="Sizes (rows) of the samples, a,b,c.")]
Jobs = Annotated[int, typer.Option(help="Number of processes; -1 uses all cores.")]
Output = Annotated[TableFormat, typer.Option("--format", help="Output format.")]
Methods = Annotated[str, typer.Option(help="Methods, a,b,c, instead of the default.")]
Data = Annotated[
    list[Path],
    typer.Option(
        help="Folder with predictions of models; may be given several times. By "
        "default, models are trained here; in the arena, these always take part."
    ),
]


@reproduce.command()
def synthetic(
    ctx: typer.Context,
    quick: Quick = False,
    out: Out = Path("calibrant-synthetic"),
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Label draws per size; the paper uses 5.")
    ] = None,
    methods: Methods = "",
    as_printed: Annotated[
        bool,
        typer.Option("--as-printed", help="Choose numbers of pieces as in the paper."),
    ] = False,
    jobs: Jobs = 1,
    output: Output = "markdown",
) -> None:
    """Compare all methods of the paper on its synthetic data.

    Every finished cell is saved immediately: the same command continues an interrupted
    run. Tables are written beside the results.
    """
    from calibrant.experiments import synthetic_study

    chosen = {"methods": split_list(methods)} if methods else {}
    study = synthetic_study(seeds, quick=quick, as_printed=as_printed, **chosen)
    _carry_out(ctx, study, out, jobs, output)


@reproduce.command()
def fresh(
    ctx: typer.Context,
    out: Out = Path("calibrant-fresh"),
    seeds: Seeds = 40,
    methods: Methods = "",
    studies: Annotated[
        str, typer.Option(help="Studies to run, a,b,c.")
    ] = "paper,other,skewed,polarised",
    jobs: Jobs = 1,
    output: Output = "markdown",
) -> None:
    """Compare methods on seeds, shapes and distributions that are not in the paper.

    The oracle, which knows the shape, runs beside them. The same command continues an
    interrupted run.
    """
    from calibrant.experiments import fresh_study

    chosen = {"methods": split_list(methods)} if methods else {}
    study = fresh_study(seeds, parts=split_list(studies), **chosen)
    _carry_out(ctx, study, out, jobs, output)


@reproduce.command("pseudo-real")
def pseudo_real(
    ctx: typer.Context,
    data: Data = [],  # noqa: B006
    quick: Quick = False,
    out: Out = Path("calibrant-pseudo-real"),
    events: Annotated[
        str,
        typer.Option(
            help="Classes as number or number=name, and confidence. With --data "
            f"{CIFAR_EVENTS}, else {DIGIT_EVENTS}.",
        ),
    ] = "",
    seeds: Seeds = 5,
    sizes: Sizes = "1000,3000,10000",
    variants: Annotated[
        int,
        typer.Option(min=0, help="Samples for the slowest methods; 0 omits them."),
    ] = 5,
    jobs: Jobs = 1,
    output: Output = "markdown",
) -> None:
    """Compare calibrators and evaluators on models whose true map is known.

    The true map is estimated on a very large hold-out. Every finished cell is saved
    immediately: the same command continues an interrupted run. Tables are written
    beside the results.
    """
    from calibrant.experiments import Event, pseudo_real_study

    texts = split_list(events or (CIFAR_EVENTS if data else DIGIT_EVENTS))
    study = pseudo_real_study(
        _models(data, quick=quick),
        [Event.of(text) for text in texts],
        quick=quick,
        seeds=seeds,
        sizes=_counts(sizes),
        variants=variants,
    )
    _carry_out(ctx, study, out, jobs, output)


@reproduce.command()
def real(
    ctx: typer.Context,
    data: Data = [],  # noqa: B006
    beside: Annotated[
        Path | None,
        typer.Option(
            "--pseudo-real",
            help="Folder of models with a very large hold-out, whose biases are the "
            "centre of the table; without it (and with --data), the centre is 0.",
        ),
    ] = None,
    quick: Quick = False,
    out: Out = Path("calibrant-real"),
    seeds: Seeds = 5,
    jobs: Jobs = 1,
    output: Output = "markdown",
) -> None:
    """Compare evaluators on real predictions, whose true map is unknown.

    Models are calibrated in five ways, and subsets of their test rows are evaluated. A
    table shows biases up to a constant per row.
    """
    from calibrant.experiments import real_study

    models = _models(data, quick=quick)
    known = _models([beside], quick=quick) if beside else [] if data else models
    study = real_study(models, known, quick=quick, seeds=seeds)
    _carry_out(ctx, study, out, jobs, output)


@reproduce.command()
def arena(
    ctx: typer.Context,
    data: Data = [],  # noqa: B006
    quick: Quick = False,
    out: Out = Path("calibrant-arena"),
    kinds: Annotated[
        str, typer.Option(help="Kinds to compare: binary,multi-class.")
    ] = "binary,multi-class",
    methods: Methods = "",
    sizes: Sizes = "200,500,2000,5000",
    every: Annotated[int, typer.Option(help="Use only every n-th model.", min=1)] = 1,
    seeds: Seeds = 1,
    jobs: Jobs = 1,
    output: Output = "markdown",
) -> None:
    """Compare calibrators by test log-loss on many models, data sets and sizes.

    A dozen classifiers are trained once on many data sets. Every finished cell is
    saved immediately, so the same command continues an interrupted run. The method
    'all' stands for all methods that do not need torch.
    """
    from calibrant.experiments import arena_sets, arena_study, train_models
    from calibrant.experiments.arena import KINDS

    names: Any = split_list(kinds)
    chosen = [check_choice(name, KINDS, name="kinds") for name in names]
    with progress_bar("training") as progress:
        trained = train_models(quick=quick, jobs=jobs, progress=progress)
    study = arena_study(
        [one for folder in [trained, *data] for one in arena_sets(folder)],
        kinds=chosen,
        methods=split_list(methods) if methods else None,
        sizes=_counts(sizes)[: 1 if quick else None],
        seeds=1 if quick else seeds,
        every=every,
    )
    _carry_out(ctx, study, out, jobs, output)


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


def _models(data: Sequence[Path], *, quick: bool) -> list[StoredPredictions]:
    """Return the models of folders, or of the embedded digits."""
    from calibrant.experiments import digit_models, find_predictions

    if not data:
        return digit_models(quick=quick)
    return [model for folder in data for model in find_predictions(folder)]


def _counts(text: str) -> list[int]:
    """Return the numbers of a comma-separated list."""
    if not all(part.isdecimal() for part in split_list(text)):
        raise OptionError(f"--sizes must be numbers separated by commas; got {text!r}.")
    return [int(part) for part in split_list(text)]


def _carry_out(
    ctx: typer.Context, study: Study, out: Path, jobs: int, output: TableFormat
) -> None:
    """Run a study, write and print its tables, and raise if cells failed."""
    from calibrant.experiments.runner import describe_failures, run, versions
    from calibrant.experiments.tables import concatenate, latex_page, markdown_page

    results = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FailedCellsWarning)  # named below
        for name, design in study.designs.items():
            with progress_bar(f"fitting: {name}") as progress:
                results[name] = run(design, out, jobs=jobs, progress=progress)
    tables = study.tables(results)
    command = " ".join(["calibrant reproduce", str(ctx.info_name), *_given(ctx)])
    made_by = f"Made by `{command}` on {datetime.now(UTC).date()} with {versions()}."
    notes = (made_by, *study.notes)
    texts = {
        "markdown": markdown_page(study.title, notes, tables),
        "latex": latex_page(notes, tables),
    }
    frame = concatenate(t.frame() for t in tables)
    data = load_polars("writing tables").DataFrame(frame)
    writers = {
        "tables.md": partial(Path.write_text, data=texts["markdown"], encoding="utf-8"),
        "tables.tex": partial(Path.write_text, data=texts["latex"], encoding="utf-8"),
        "tables.parquet": data.write_parquet,
    }
    for name, write in writers.items():
        with atomic_write(out / name) as temporary:
            write(temporary)
        typer.echo(f"wrote {out / name}", err=True)
    if output in texts:
        typer.echo(texts[output], nl=False)
    else:
        print_frame(frame, output)
    if failures := describe_failures(concatenate(results.values())):
        raise CalibrantError(
            f"{failures}\nAll messages are in the column failure of "
            f"{out / 'results.parquet'}; the same command reruns these cells."
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
