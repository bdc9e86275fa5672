"""Options that several commands share, each said once."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from calibrant.cli.output import Format


class ScaleChoice(StrEnum):
    """What columns of predictions hold."""

    prob = "prob"
    logit = "logit"
    percent = "percent"
    logprob = "logprob"


class AxesScale(StrEnum):
    """What the axes of a diagram show."""

    prob = "prob"
    logit = "logit"


Sources = Annotated[
    list[str],
    typer.Argument(
        help="CSV, TSV, Parquet, JSON lines or npz file; several, a folder or a "
        "pattern, 'lake/*.parquet'; 'evaluate', 'report' and 'plot' also take what "
        "'calibrant aggregate' wrote.",
        metavar="FILE...",
    ),
]
_LABELS = typer.Option("--y", help="Column of labels.")
LabelColumn = Annotated[str, _LABELS]
LabelColumnUnlessCells = Annotated[str | None, _LABELS]
LabelColumns = Annotated[
    list[str],
    typer.Option(
        "--y",
        help="Column of labels; where each model has its own, name=column for each.",
    ),
]
_MODELS = typer.Option(
    "--p",
    help="Column(s) of probabilities, a,b,c. Each is a model; with --task they "
    "are the classes of one model. Repeat for several models. 'forest_*' "
    "stands for all columns that match, name=... names a model; names with a "
    "comma or = go in quotes, '\"a,b\"'.",
)
ModelColumns = Annotated[list[str], _MODELS]
ModelColumnsUnlessCells = Annotated[list[str] | None, _MODELS]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        help="memory, duckdb or spark; auto: memory for one file up to 256 MiB.",
    ),
]
MaxDropped = Annotated[
    float,
    typer.Option(
        "--max-dropped",
        min=0.0,
        max=1.0,
        help="With --bad-rows drop: the largest share of rows that may be dropped.",
    ),
]
BadRowsRule = Annotated[
    str,
    typer.Option(
        "--bad-rows", help="What to do with rows that cannot be used: error or drop."
    ),
]
TaskName = Annotated[
    str | None, typer.Option("--task", help="confidence, classwise, or a class.")
]
MethodName = Annotated[str, typer.Option("--method", help="See 'calibrant methods'.")]
Alpha = Annotated[float, typer.Option("--alpha", help="1: absolute, 2: squared error.")]
Debiased = Annotated[
    bool, typer.Option("--debias/--raw", help="Take out known bias, or not.")
]
GroupColumns = Annotated[
    str | None, typer.Option("--by", help="Column(s) of groups, a,b.")
]
ModelColumn = Annotated[
    str | None,
    typer.Option("--model", help="Column that names the model of each row."),
]
IdColumn = Annotated[
    str | None,
    typer.Option(
        "--id", help="With --model: column that says which rows belong together."
    ),
]
WeightColumn = Annotated[
    str | None, typer.Option("--weight", help="Column of sample weights.")
]
PositiveLabel = Annotated[
    str | None, typer.Option("--pos-label", help="Label of the event.")
]
ClassLabels = Annotated[
    str | None, typer.Option("--labels", help="Label of each class column, a,b,c.")
]
InputScale = Annotated[
    list[str] | None,
    typer.Option(
        "--scale",
        help="What the columns contain: prob, logit, percent (0 to 100) or logprob; "
        "where models differ, name=logit for each.",
        show_default="prob",
    ),
]
OneScale = Annotated[
    ScaleChoice,
    typer.Option("--scale", help="What the columns contain; percent is 0 to 100."),
]
Confidence = Annotated[
    float, typer.Option("--confidence", help="Level of the intervals.")
]
RandomSeed = Annotated[int, typer.Option("--seed", help="For folds and resamples.")]
Output = Annotated[Format, typer.Option("--format", help="How to print.")]
FailAbove = Annotated[
    float | None,
    typer.Option(
        "--fail-above",
        min=0.0,
        help="Exit with 1 if the error by the first method is larger.",
    ),
]
Mute = Annotated[
    str | None, typer.Option("--mute", help="Checks to leave out, CAL008,CAL009.")
]
FailOn = Annotated[
    str | None,
    typer.Option(
        "--fail-on",
        help="Exit with 1 at findings: minor, moderate or severe ones and worse, or by "
        "code, CAL001,CAL010.",
    ),
]
