"""All commands."""

from __future__ import annotations

import signal
import sys
import warnings
from typing import TYPE_CHECKING, Annotated

import typer

from calibrant.__about__ import __version__
from calibrant.cli.aggregate import aggregate
from calibrant.cli.apply import apply
from calibrant.cli.calibrate import calibrate
from calibrant.cli.compare import compare
from calibrant.cli.demo import demo
from calibrant.cli.ending import end_with
from calibrant.cli.evaluate import evaluate
from calibrant.cli.methods import methods
from calibrant.cli.options import ScaleChoice
from calibrant.cli.plot import plot
from calibrant.cli.report import report
from calibrant.cli.reproduce import reproduce
from calibrant.core.wording import visible
from calibrant.exceptions import CalibrantError, CalibrantWarning

if TYPE_CHECKING:
    from collections.abc import Callable

app = typer.Typer(
    name="calibrant",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Can I trust this classifier's probabilities, and if not, how do I fix them?",
)
app.command()(evaluate)
app.command()(compare)
app.command()(plot)
app.command()(report)
app.command()(calibrate)
app.command()(apply)
app.command()(aggregate)
app.command()(methods)
app.command()(demo)
app.add_typer(reproduce, name="reproduce")


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"calibrant {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version and leave.",
        ),
    ] = False,
) -> None:
    pass


def run() -> None:
    """Run a command; errors in the data or in its use end in one line and exit 2."""
    warnings.showwarning = _once()
    warnings.simplefilter("always", CalibrantWarning)
    signal.signal(signal.SIGTERM, _leave)
    try:
        app()
    except (CalibrantError, OSError) as error:
        end_with(error, _told(str(error)))


def _told(message: str) -> str:
    """Return a message of the library as the command line shows it."""
    return visible(_as_options(message), keep="\n")


def _leave(number: int, _frame: object) -> None:
    """Leave as after an interrupt, so that unfinished files are taken away."""
    sys.exit(128 + number)


OPTIONS = {
    **{f'scale="{scale}"': f"--scale {scale}" for scale in ScaleChoice},
    "max_dropped=": "--max-dropped ",
    "pos_label=...": "--pos-label",
    "pos_label=": "--pos-label ",
    "labels=[...]": "--labels a,b,c",
    "For several classes pass class probabilities and a task.": (
        "For several classes name their columns by --p, and a --task."
    ),
    "leave task=None": "leave out --task",
    'task="confidence"': "--task confidence",
    'task="classwise"': "--task classwise",
    'bad_rows="drop"': "--bad-rows drop",
    'engine="duckdb"': "--engine duckdb",
}
"""What library messages recommend, as it is written on the command line."""


def _as_options(message: str) -> str:
    for python, option in OPTIONS.items():
        message = message.replace(python, option)
    return message


def _once() -> Callable[..., None]:
    """Return what shows each warning once: groups and models may repeat it."""
    told: set[str] = set()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        text = _told(str(message))
        if text not in told:
            told.add(text)
            typer.echo(f"warning: {text}", err=True)

    return show
