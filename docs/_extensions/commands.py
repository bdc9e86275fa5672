"""Commands that are run while the documentation is built, with what they print.

.. code-block:: markdown

    ```{calibrant} evaluate preds.csv --y label --p score
    ```

runs the command in a copy of docs/data/inputs and shows it with its output.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives

if TYPE_CHECKING:
    from sphinx.application import Sphinx

INPUTS = Path(__file__).parents[1] / "data" / "inputs"
WIDTH = 88
"""Columns that fit onto a page."""


class Command(Directive):
    """Show a command and what it prints."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {"exit": directives.nonnegative_int}

    def run(self) -> list[nodes.Node]:
        """Run the command; raise where it does not end as it should."""
        words = shlex.split(self.arguments[0])
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "calibrant", *words],
            cwd=_folder().name,
            env={**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != self.options.get("exit", 0):
            raise self.error(f"calibrant {self.arguments[0]}: {done.stderr}")
        printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
        if done.returncode:
            printed += done.stderr
        text = f"$ {_wrapped(f'calibrant {self.arguments[0]}')}\n{printed}"
        return [nodes.literal_block(text, text, language="console")]


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Copy the inputs to where commands may write files that later ones read."""
    folder = tempfile.TemporaryDirectory()
    shutil.copytree(INPUTS, folder.name, dirs_exist_ok=True)
    return folder


def _wrapped(command: str) -> str:
    """Break a long command before an option, as a shell allows."""
    lines = [""]
    for part in re.split(r" (?=--)", command):
        if len(lines[-1]) + len(part) > WIDTH - len(" \\"):
            lines.append("   ")
        lines[-1] += f" {part}" if lines[-1] else part
    return " \\\n".join(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("calibrant", Command)
    return {"parallel_read_safe": True}
