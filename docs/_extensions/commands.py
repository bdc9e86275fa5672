"""Commands that are run while the documentation is built, with what they print.

.. code-block:: markdown

    ```{calibrant} evaluate preds.csv --y label --p score
    ```

runs the command in docs/data/inputs and shows it with its output.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = Path(__file__).parents[1] / "data" / "inputs"
WIDTH = "96"
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
            cwd=FOLDER,
            env={**os.environ, "COLUMNS": WIDTH, "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != self.options.get("exit", 0):
            raise self.error(f"calibrant {self.arguments[0]}: {done.stderr}")
        printed = "\n".join(line.rstrip() for line in done.stdout.splitlines())
        if done.returncode:
            printed += done.stderr
        text = f"$ calibrant {self.arguments[0]}\n{printed}"
        return [nodes.literal_block(text, text, language="console")]


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("calibrant", Command)
    return {"parallel_read_safe": True}
