"""A report: a summary that can be looked at, saved and passed on."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant._atomic import replacing
from calibrant._validation.options import check_choice
from calibrant._validation.wording import visible
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    import os

FORMATS = {".html": "html", ".htm": "html", ".json": "json", ".md": "markdown"}
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
        target = Path(path)
        found = output or FORMATS.get(target.suffix.lower(), "html")
        texts = {target: self.text(found)}
        if found == "html":
            beside = target.with_suffix(".json")
            if beside == target:
                raise OptionError(
                    f"{target}: a page has its data beside it, under that name; call "
                    f"the page .html, or write the data alone as json."
                )
            texts[beside] = self.to_json()
        for name, text in texts.items():
            with replacing(name) as temporary:
                temporary.write_text(text, encoding="utf-8")
        return list(texts)

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


def _told(model: dict[str, Any]) -> str:
    name = f"{visible(model['name'])}: " if model["name"] else ""
    verdict = model["verdict"]
    return f"{name}{verdict['headline']}. {' '.join(verdict['sentences'])}"
