"""``calibrant summary``: a file of predictions to what a validation study reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli import options
from calibrant.cli.data_options import DataOptions, takes_predictions
from calibrant.cli.output import Format, print_frame
from calibrant.cli.progress import progress_bar
from calibrant.core.defaults import DEFAULT_CONFIDENCE
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from calibrant.core.array_types import Frame


@takes_predictions("id_")
def summary(
    data: DataOptions,
    smoother: Annotated[
        str,
        typer.Option(
            help="Curve for ICI, E50, E90 and Emax: smooth, or R's loess or lowess.",
        ),
    ] = "smooth",
    confidence: options.Confidence = DEFAULT_CONFIDENCE,
    pooled: Annotated[
        bool,
        typer.Option(
            "--pooled", help="With --by: the mean over groups, by random effects."
        ),
    ] = False,
    sentence: Annotated[
        bool, typer.Option("--sentence", help="Print a sentence for a manuscript.")
    ] = False,
    seed: options.RandomSeed = 0,
    output: options.Output = "table",
) -> None:
    """Report slope, intercepts, O:E, ICI, scores and AUROC, with intervals."""
    from calibrant.measures.summary import summary as summarise

    if sentence and (pooled or output != "table"):
        raise OptionError("--sentence cannot be combined with --pooled or --format.")
    if pooled and data.by is None:
        raise OptionError("--pooled requires --by.")
    with progress_bar("summarising") as progress:
        preds = data.predictions()
        result = summarise(
            preds,
            smoother=smoother,  # type: ignore[arg-type]
            confidence=confidence,
            random_state=seed,
            progress=progress,
        )
    data.say_if_pooled(preds)
    if sentence:
        typer.echo(result.sentence())
    elif pooled:
        _print_pooled(result.pooled(), output, confidence)
    elif output == "table":
        typer.echo(str(result))
    elif output in ("markdown", "latex"):
        typer.echo(result.table(output))
    else:
        print_frame(result.frame(), output, {"confidence": confidence})


def _print_pooled(frame: Frame, output: Format, confidence: float) -> None:
    from calibrant.measures.pooled_summary import pooled_table

    if output in ("json", "csv"):
        print_frame(frame, output)
        return
    level = f"{100 * confidence:g} % interval"
    if output == "table":
        typer.echo(
            f"Mean over {frame['groups'].max()} groups by random effects. The "
            "prediction interval is for a new group;\ntau is the standard deviation "
            "between groups (of the logarithm of O:E, and of the logit of AUROC)"
        )
    style: Any = "text" if output == "table" else output
    typer.echo(pooled_table(frame, level, style))
