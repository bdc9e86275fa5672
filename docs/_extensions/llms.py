"""llms.txt: what language models should read first, one line per page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

HEAD = """# calibrant

> Can I trust this classifier's probabilities, and if not, how do I fix them? A Python
> library, command line and report for measuring, testing and repairing calibration.

"""


def _write(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    titles = app.env.titles
    lines = [
        f"- [{titles[name].astext()}]({name}.html)"
        for name in sorted(titles)
        if not name.startswith(("api/generated", "gallery/"))
    ]
    Path(app.outdir, "llms.txt").write_text(HEAD + "\n".join(lines) + "\n")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the file when all pages are there."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}
