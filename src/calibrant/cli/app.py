"""All commands, and how they run."""

from __future__ import annotations

import signal
import sys
import warnings
from functools import cache
from inspect import cleandoc, signature
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from calibrant.__about__ import __version__
from calibrant.cli import options
from calibrant.cli.apply import apply
from calibrant.cli.calibrate import calibrate, export
from calibrant.cli.draw import demo, plot, report
from calibrant.cli.measure import aggregate, compare, evaluate, summary
from calibrant.cli.process import end_with
from calibrant.cli.reproduce import reproduce
from calibrant.cli.results import print_frame
from calibrant.core.wording import visible
from calibrant.exceptions import Argument, CalibrantError, CalibrantWarning, Setting

if TYPE_CHECKING:
    from collections.abc import Callable


def unwrapped(command: Callable[..., None]) -> str:
    """Return the help of a command, whose paragraphs are wrapped where it is shown."""
    paragraphs = cleandoc(command.__doc__ or "").split("\n\n")
    return "\n\n".join(" ".join(lines.split()) for lines in paragraphs)


def methods(
    output: options.Output = "table",
) -> None:
    """List the methods; the number in es15 and ew15 is the number of bins.

    Multi-class methods calibrate all classes at once; evaluate takes them with --task
    canonical. To calibrate several classes by a binary method, put "ovr-" (each class
    against the rest) or "top-" (the top label) before its name.
    """
    from calibrant.calibrators.registry import EVALUATORS, METHODS

    every = [*METHODS.values(), *EVALUATORS.values()]
    print_frame(
        {
            "method": np.array([method.name for method in every]),
            "kind": np.array([" or ".join(method.kinds) for method in every]),
            "what": np.array([method.summary for method in every]),
            "fitted by": np.array([method.loss for method in every]),
        },
        output,
    )


def rule(
    code: Annotated[
        str | None,
        typer.Argument(
            help="Code of the check, such as CAL004; without it, all checks."
        ),
    ] = None,
) -> None:
    """Explain a check: what it finds, why it matters, and what to do."""
    from calibrant.checks.rule_texts import RULES, find_rule

    if code is not None:
        typer.echo(str(find_rule(code)))
        return
    for one in RULES:
        typer.echo(f"{one.code}  {one.title}")


app = typer.Typer(
    name="calibrant",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help="Can I trust this classifier's probabilities, and if not, how do I fix them?",
)
COMMANDS = (
    evaluate,
    compare,
    summary,
    plot,
    report,
    calibrate,
    apply,
    export,
    aggregate,
    methods,
    rule,
    demo,
)
for command in COMMANDS:
    app.command(help=unwrapped(command))(command)
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
            help="Show the version and exit.",
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
    except CalibrantError as error:
        end_with(error, visible(error.text(write_option), keep="\n"))
    except OSError as error:
        end_with(error, visible(str(error), keep="\n"))


def _leave(number: int, _frame: object) -> None:
    """Leave as after an interrupt, so that unfinished files are taken away."""
    sys.exit(128 + number)


EXAMPLES = {"labels": "a,b,c"}
"""What an option that takes any value is shown with."""
OPTIONS = {
    "random_state": "seed",
    "output": "format",
    "groups": "by",
    "clusters": "cluster",
}
"""Options that are called otherwise than the parameter."""


def write_option(setting: Argument) -> str:
    """Return a setting of the library as an option of the command line.

    >>> write_option(Setting("bad_rows", "drop")), write_option(Setting("task", None))
    ('--bad-rows drop', 'no --task')
    >>> write_option(Argument("random_state")), write_option(Setting("id", ["q", "k"]))
    ('--seed', '--id q,k')
    """
    name = OPTIONS.get(setting.name, setting.name)
    if name not in _known_options():
        return str(setting)
    option = f"--{name.replace('_', '-')}"
    if not isinstance(setting, Setting):
        return option
    if setting.value is None:
        return f"no {option}"
    value = EXAMPLES.get(setting.name, "") if setting.value is ... else setting.value
    text = ",".join(map(str, value)) if isinstance(value, list) else value
    return f"{option} {text}".rstrip()


@cache
def _known_options() -> set[str]:
    """Return the names of the options of all commands, as Python writes them."""
    commands = [command.callback for command in app.registered_commands]
    named = (name for one in commands if one for name in signature(one).parameters)
    return {name.strip("_") for name in named} | {"format"}


def _once() -> Callable[..., None]:
    """Return what shows each warning once: groups and models may repeat it."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        text = visible(str(message), keep="\n")
        if text not in shown:
            shown.add(text)
            typer.echo(f"warning: {text}", err=True)

    return show
