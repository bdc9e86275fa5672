"""A report: a summary that can be looked at, saved and passed on."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.checks.diagnosis import check_muted
from calibrant.core.defaults import DEFAULT_CONFIDENCE, DEFAULT_METHODS
from calibrant.core.output_files import (
    REPORT_DATA,
    REPORT_PAGE,
    REPORT_PRINT,
    REPORT_TEXT,
    atomic_write,
    check_derived,
    check_named,
)
from calibrant.core.parameters import check_choice, whole_seed
from calibrant.core.tasks import check_events
from calibrant.core.threads import one_blas_thread
from calibrant.core.wording import visible
from calibrant.exceptions import OptionError, Setting
from calibrant.measures.estimate import ErrorSettings
from calibrant.measures.evaluation import check_methods
from calibrant.predictions.predictions import as_predictions
from calibrant.report.model_summary import ReportSettings
from calibrant.report.pdf import find_browser, print_page
from calibrant.report.summary import summarise

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from calibrant.core.array_types import ArrayLike, Debias, Scale, Seed, Task
    from calibrant.predictions.predictions import Predictions

KINDS = {
    "html": REPORT_PAGE,
    "json": REPORT_DATA,
    "markdown": REPORT_TEXT,
    "pdf": REPORT_PRINT,
}
FORMATS = {end: name for name, kind in KINDS.items() for end in kind.suffixes}
TEXTS = ("html", "json", "markdown")
FRAME_HEIGHT = 900


@dataclass(frozen=True, eq=False, repr=False)
class Report:
    """All results about predictions, as data and as a page.

    Made by `from_predictions`.

    Attributes
    ----------
    summary : dict
        Everything that the page shows; `calibrant.report.summary` says what is in it.

    See Also
    --------
    diagnose : the checks alone.
    evaluate : the errors alone.

    Examples
    --------
    >>> import calibrant as cb
    >>> p, y = cb.datasets.load_binary("forest")
    >>> report = cb.Report.from_predictions(y, {"forest": p})
    >>> report.summary["models"][0]["name"]
    'forest'
    """

    summary: dict[str, Any]

    @classmethod
    def from_predictions(  # noqa: PLR0913
        cls,
        y_true: ArrayLike | Predictions,
        y_prob: ArrayLike | Mapping[str, ArrayLike] | None = None,
        *,
        methods: Sequence[str] | str = DEFAULT_METHODS,
        alpha: float = 1,
        debias: Debias = "auto",
        confidence: float = DEFAULT_CONFIDENCE,
        n_resamples: int = 1000,
        mute: Sequence[str] | str = (),
        task: Task = None,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        clusters: ArrayLike | None = None,
        pos_label: Any = None,
        labels: Sequence[Any] | None = None,
        scale: Scale | Mapping[str, Scale] = "prob",
        random_state: Seed = 0,
        title: str = "",
        created: datetime | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Report:
        """Make a report of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n,) or Predictions
            Labels: 0 and 1, booleans, or with `pos_label` any two values; classes for
            multi-class tasks. Or `Predictions`, which need no other data.
        y_prob : array-like of shape (n,) or (n, k), or dict
            Predicted probability of the event, or of each class; a dict has those of
            each model.
        methods : str or sequence of str
            Estimates of the error; the verdict uses the first other than "kce".
            Methods with more bins than there are rows are skipped with a warning.
        alpha : float
            Exponent of the error: 1 for the absolute, 2 for the squared error.
        debias : {"auto", True, False}
            "auto" subtracts the estimated bias if it is known for the method; False
            gives the raw, classical error, as in `evaluate`.
        confidence : float
            Level of intervals and bands.
        n_resamples : int
            Number of bootstrap resamples, or of draws from a posterior.
        mute : str or sequence of str
            Codes of checks to skip; see `diagnose`.
        task : None, "confidence", "classwise", "multilabel", or a class
            None: binary. "confidence" or "top-label": the top class and whether it is
            right. A class, by label or column number: that class against the rest.
            "classwise": the mean over classes. "multilabel": the same for labels of
            which a row can have several, with a matrix of 0 and 1 as `y_true`.
        sample_weight : array-like of shape (n,), optional
            Counts: a weight of 2 counts the row twice.
        groups : array-like of shape (n,), optional
            The group of each row; all rows are judged together, and each group too.
        clusters : array-like of shape (n,), optional
            Which rows belong together, such as those of one patient: intervals allow
            for that, and repairs are measured on clusters that they were not fitted on.
        pos_label : object, optional
            The label that counts as the event.
        labels : sequence, optional
            The label of each column of `y_prob`, in order; by default 0 .. k-1.
        scale : {"prob", "logit", "percent", "logprob"} or dict
            What `y_prob` holds, for all models or for each.
        random_state : int, generator or None
            Seeds folds and resamples, the same for all models.
        title : str, optional
            What the report is about.
        created : datetime, optional
            The time that the report names; by default now.
        progress : callable, optional
            Called with the number of finished and of all parts.

        Returns
        -------
        Report
            ``save("report.html")`` writes it; ``summary`` is all that it shows, as
            data.

        See Also
        --------
        evaluate : the numbers alone.
        diagnose : the checks alone.

        Examples
        --------
        >>> import calibrant as cb
        >>> p, y = cb.datasets.load_binary("forest")
        >>> report = cb.Report.from_predictions(y, {"forest": p}, methods="es15")
        >>> report.summary["models"][0]["verdict"]["grade"]
        'poor'
        """
        names = check_methods(methods)
        settings = ReportSettings(
            methods=names,
            errors=ErrorSettings(
                alpha=alpha,
                debias=debias,
                confidence=confidence,
                n_resamples=n_resamples,
                random_state=whole_seed(random_state),
            ),
            confidence=confidence,
            mute=check_muted(mute),
            default_methods=names == DEFAULT_METHODS,
        )
        preds = as_predictions(
            y_true,
            y_prob,
            task=task,
            sample_weight=sample_weight,
            groups=groups,
            clusters=clusters,
            pos_label=pos_label,
            labels=labels,
            scale=scale,
        )
        check_events(preds.task, "a report")
        with one_blas_thread():
            return cls(
                summarise(
                    preds, settings, title=title, created=created, progress=progress
                )
            )

    def to_html(self) -> str:
        """Return a self-contained HTML page."""
        from calibrant.report.page import render_page

        return render_page(self.summary)

    def to_json(self) -> str:
        """Return the summary as JSON."""
        return json.dumps(self.summary, indent=1, allow_nan=False)

    def to_markdown(self) -> str:
        """Return verdicts and tables as Markdown."""
        from calibrant.report.page import render_markdown

        return render_markdown(self.summary)

    def text(self, output: str) -> str:
        """Return the report as text.

        Parameters
        ----------
        output : {"html", "json", "markdown"}
            The format.

        Returns
        -------
        str
            What `save` would write.
        """
        check_choice(output, TEXTS, name="format")
        return self._text(output)

    def _text(self, output: str) -> str:
        writers = {"html": self.to_html, "json": self.to_json}
        return writers.get(output, self.to_markdown)()

    def save(
        self, path: str | os.PathLike[str], *, output: str | None = None
    ) -> list[Path]:
        """Write the report atomically; for HTML, also its data as JSON.

        The JSON file never replaces a file that is not a report, such as a map.

        Parameters
        ----------
        path : path
            The extension determines the format: .html, .json, .md or .pdf; the last is
            printed by an installed Chromium, Chrome or Edge.
        output : {"html", "json", "markdown", "pdf"}, optional
            The format, whatever the name.

        Returns
        -------
        list of Path
            What was written: beside ``report.html`` also ``report.json``.
        """
        output = output or format_of(Path(path))
        paths = check_outputs(Path(path), output)
        if output == "pdf":
            with atomic_write(paths[0]) as temporary:
                print_page(self.to_html(), temporary)
            return paths
        texts = [self._text(output), self.to_json()]
        for name, text in zip(paths, texts, strict=False):  # data beside a page only
            with atomic_write(name) as temporary:
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
        from calibrant.report.page import capitalise

        lines = []
        for model in self.summary["models"]:
            name = f"{visible(model['name'])}: " if model["name"] else ""
            verdict = model["verdict"]
            text = f"{verdict['headline']}. {' '.join(verdict['sentences'])}"
            lines.append(name + text if name else capitalise(text))
        return "\n".join(lines)


def format_of(path: Path) -> str:
    """Return the format that a file name stands for, or raise."""
    if path.suffix.lower() not in FORMATS:
        raise OptionError(
            f"{path}: reports are written as {', '.join(FORMATS)}; got "
            f"{path.suffix or 'no extension'!r}. Rename the file, or state the "
            "format: ",
            Setting("output", "html"),
        )
    return FORMATS[path.suffix.lower()]


def check_outputs(path: Path, output: str, *, named: bool = True) -> list[Path]:
    """Return the files that a report is written to, or raise where that cannot be.

    A page has its data beside it. A file that the user has not `named` is replaced only
    if a report wrote it.
    """
    check_choice(output, KINDS, name="format")
    (check_named if named else check_derived)(path, KINDS[output])
    if output == "pdf":
        find_browser()
    if output != "html":
        return [path]
    data = path.with_suffix(".json")
    if data == path:
        raise OptionError(
            f"{path}: the data of an HTML report is saved beside it under this "
            "name; name the report .html, or write only the data, as json."
        )
    check_derived(data, REPORT_DATA, beside=path.name)
    return [path, data]
