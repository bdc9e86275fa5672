"""Commands that are run while the documentation is built, with what they print.

.. code-block:: markdown

    ```{calibrant} evaluate preds.csv --y label --p score
    ```

runs the command in a copy of docs/data/inputs and shows it with its output. With the
option ``:figure:``, which describes it, the file that `plot` writes is shown, too.
"""

from __future__ import annotations

import base64
import functools
import html
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive, directives

if TYPE_CHECKING:
    from sphinx.application import Sphinx

INPUTS = Path(__file__).parents[1] / "data" / "inputs"
WIDTH = 80
"""Columns that fit onto a page."""


class Command(Directive):
    """Show a command and what it prints."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {
        "exit": directives.nonnegative_int,
        "figure": directives.unchanged_required,
    }

    def run(self) -> list[nodes.Node]:
        """Run the command; raise where it does not end as it should."""
        words = shlex.split(self.arguments[0])
        done = self._calibrant(words)
        printed = "\n".join(map(_wrapped_line, done.stdout.splitlines()))
        if done.returncode:
            printed += done.stderr
        text = f"$ {_wrapped(f'calibrant {self.arguments[0]}')}\n{printed}"
        shown: list[nodes.Node] = [nodes.literal_block(text, text, language="console")]
        if "figure" in self.options:
            picture = Path(_folder().name, words[-1]).with_suffix(".png")
            if picture.name != words[-1]:
                self._calibrant([*words[:-1], picture.name])
            shown.append(_figure(picture, self.options["figure"]))
        return shown

    def _calibrant(self, words: list[str]) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "calibrant", *words],
            cwd=_folder().name,
            env={**os.environ, "COLUMNS": str(WIDTH), "NO_COLOR": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != self.options.get("exit", 0):
            raise self.error(f"calibrant {shlex.join(words)}: {done.stderr}")
        return done


@functools.cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    """Copy the inputs to where commands may write files that later ones read."""
    folder = tempfile.TemporaryDirectory()
    shutil.copytree(INPUTS, folder.name, dirs_exist_ok=True)
    return folder


def _figure(path: Path, text: str) -> nodes.Node:
    """Return a picture that is part of the page."""
    content = path.read_bytes()
    width = int.from_bytes(content[16:20]) // 2  # of 200 dots per inch
    data = base64.b64encode(content).decode("ascii")
    source = f'src="data:image/png;base64,{data}" alt="{html.escape(text)}"'
    tag = f'<img class="command-figure" width="{width}" {source}>'
    return nodes.raw("", tag, format="html")


def _wrapped_line(line: str) -> str:
    """Wrap a sentence; lines of tables stay as they are."""
    line = line.rstrip()
    sentence = line.lstrip()
    if "  " in sentence or sentence.startswith(("|", "─")):
        return line
    indent = line[: len(line) - len(sentence)]
    return textwrap.fill(
        sentence, WIDTH, initial_indent=indent, subsequent_indent=indent
    )


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
