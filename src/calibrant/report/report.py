"""A report: a summary that can be looked at, saved and passed on."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant._atomic import replacing
from calibrant._outputs import (
    REPORT_DATA,
    REPORT_PAGE,
    REPORT_TEXT,
    check_derived,
    check_named,
)
from calibrant._validation.options import check_choice
from calibrant._validation.wording import visible
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    import os

FORMATS = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown"}
KINDS = {"html": REPORT_PAGE, "json": REPORT_DATA, "markdown": REPORT_TEXT}
FRAME_HEIGHT = 900


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """What was found out about predictions, as data and as a page.

    Made by `report_table` and `report_predictions`.

    Attributes
    ----------
    summary : dict
        Everything that the page shows; `calibrant.report.summary` says what is in it.
    """

    summary: dict[str, Any]

    def to_html(self) -> str:
        """Return one page that needs no network and no other file."""
        from calibrant.report.page import page

        return page(self.summary)

    def to_json(self) -> str:
        """Return the summary as JSON."""
        return json.dumps(self.summary, indent=1, allow_nan=False)

    def to_markdown(self) -> str:
        """Return verdicts and tables as Markdown."""
        from calibrant.report.markdown import markdown

        return markdown(self.summary)

    def text(self, output: str) -> str:
        """Return the report as "html", "json" or "markdown"."""
        check_choice(output, set(FORMATS.values()), name="format")
        made = {"html": self.to_html, "json": self.to_json}
        return made.get(output, self.to_markdown)()

    def save(
        self, path: str | os.PathLike[str], *, output: str | None = None
    ) -> list[Path]:
        """Write the report, whole or not at all; beside a page, its data as JSON.

        These data never overwrite a file that no report wrote, such as a map.

        Parameters
        ----------
        path : path
            What it is called decides the format: .html, .json or .md.
        output : {"html", "json", "markdown"}, optional
            The format, whatever the name.

        Returns
        -------
        list of Path
            What was written: beside ``report.html`` also ``report.json``.
        """
        found = output or FORMATS.get(Path(path).suffix.lower(), "html")
        paths = check_outputs(Path(path), found)
        texts = [self.text(found), self.to_json()]
        for name, text in zip(paths, texts, strict=False):  # data beside a page only
            with replacing(name) as temporary:
                temporary.write_text(text, encoding="utf-8")
        return paths

    def _repr_html_(self) -> str:
        # A frame of its own keeps the notebook's style and the page's apart.
        return (
            f'<iframe title="Calibration report" width="100%" height="{FRAME_HEIGHT}" '
            f'frameborder="0" sandbox="allow-scripts allow-downloads" '
            f'srcdoc="{html.escape(self.to_html(), quote=True)}"></iframe>'
        )

    def __repr__(self) -> str:
        return f"<Report of {len(self.summary['models'])} models>\n{self}"

    def __str__(self) -> str:
        return "\n".join(map(_told, self.summary["models"]))


def check_outputs(path: Path, output: str, *, named: bool = True) -> list[Path]:
    """Return the files that a report is written to, or raise where that cannot be.

    Parameters
    ----------
    path : Path
        Where the report goes.
    output : {"html", "json", "markdown"}
        What it is written as; a page has its data beside it.
    named : bool
        Whether the user has named the path: what nobody named is replaced only if a
        report wrote it.
    """
    check_choice(output, set(FORMATS.values()), name="format")
    (check_named if named else check_derived)(path, KINDS[output])
    if output != "html":
        return [path]
    data = path.with_suffix(".json")
    if data == path:
        raise OptionError(
            f"{path}: a page has its data beside it, under that name; call the page "
            f".html, or write the data alone as json."
        )
    check_derived(data, REPORT_DATA, beside=path.name)
    return [path, data]


def _told(model: dict[str, Any]) -> str:
    name = f"{visible(model['name'])}: " if model["name"] else ""
    verdict = model["verdict"]
    return f"{name}{verdict['headline']}. {' '.join(verdict['sentences'])}"
