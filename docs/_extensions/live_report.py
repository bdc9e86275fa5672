"""The report that the landing page shows, written anew at each build."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import calibrant as cb

if TYPE_CHECKING:
    from sphinx.application import Sphinx

MODELS = ("forest", "bayes", "logistic")


def _write(app: Sphinx, exception: Exception | None) -> None:
    if exception is not None or app.builder.name != "html":
        return
    preds = cb.Predictions.from_table(cb.datasets.BINARY_FILE, y="even", p=list(MODELS))
    path = Path(app.outdir, "_static", "report.html")
    cb.Report.from_predictions(preds).save(path)


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the report when all pages are there."""
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True}
