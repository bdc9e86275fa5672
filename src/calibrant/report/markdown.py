"""A report as Markdown: verdicts, tables, findings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from calibrant.core.wording import visible
from calibrant.report.words import chance, counted, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_ALIKE = 3
SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~!&])")


def markdown(summary: Mapping[str, Any]) -> str:
    """Return a summary as Markdown; what users wrote stays text."""
    data, measured = summary["data"], summary["measured"]
    source = f" of {plain(data['source'])}" if data["source"] else ""
    parts = [
        f"# Calibration report{source}",
        (
            f"{counted(data['rows'])} rows, label {plain(data['label'])}, task "
            f"{plain(data['task'])}."
        ),
        *(note for note in summary["notes"]),
    ]
    for model in summary["models"]:
        parts += _model(model, measured)
    parts.append(
        f"Errors by {measured['method']} with {100 * measured['confidence']:g} % "
        f"intervals. calibrant {summary['made']['calibrant']}, "
        f"{summary['made']['time']}."
    )
    return "\n\n".join(parts) + "\n"


def plain(text: str) -> str:
    r"""Return text that Markdown and HTML show as it is.

    Examples
    --------
    >>> print(plain("a|b <i>"))
    a\|b \<i\>
    """
    return SPECIAL.sub(r"\\\1", visible(" ".join(str(text).split())))


def _model(model: Mapping[str, Any], measured: Mapping[str, Any]) -> list[str]:
    verdict = model["verdict"]
    errors = [
        (row["method"], shown(row["value"], 4), _interval(row))
        for row in model["errors"]
    ]
    parts = [
        f"## {plain(model['name'] or 'Verdict')}",
        f"**{verdict['headline'].capitalize()}.** {' '.join(verdict['sentences'])}",
        _table(("method", "error", "interval"), errors),
    ]
    if model["findings"]:
        parts += ["### What the checks found", "\n".join(_findings(model["findings"]))]
    if model["groups"]:
        parts += ["### Groups", _groups(model["groups"])]
    if model["classes"]:
        parts += [f"### Classes, by {measured['method']}", _classes(model["classes"])]
    if model["repairs"]:
        parts += ["### What to do", *_repairs(model["repairs"])]
    return parts


def _groups(groups: Sequence[Mapping[str, Any]]) -> str:
    names = (
        "group",
        "rows",
        "mean prediction",
        "observed rate",
        "error",
        "interval",
        "p-value",
    )
    rows = (
        (
            plain(row["group"]),
            counted(row["rows"]),
            shown(row["mean_prob"]),
            shown(row["base_rate"]),
            shown(row["error"]),
            _interval(row),
            chance(row["pvalue"]),
        )
        for row in groups
    )
    return _table(names, rows)


def _classes(classes: Sequence[Mapping[str, Any]]) -> str:
    rows = (
        (plain(row["class"]), shown(row["error"], 4), _interval(row)) for row in classes
    )
    return _table(("class", "error", "interval"), rows)


def _repairs(repairs: Mapping[str, Any]) -> list[str]:
    rows = (
        (row["method"], *(shown(row[n], 4) for n in ("error", "brier", "log_loss")))
        for row in repairs["rows"]
    )
    best = f"Best on rows left out: {repairs['advised']}."
    return [
        f"{best} Scores are about {repairs['scored']}.",
        _table(("repair", "error left", "Brier score", "log-loss"), rows),
        *_code(repairs.get("command")),
        *_code(repairs.get("python")),
    ]


def _findings(findings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line a finding; of many with the same code the worst, and how many."""
    lines = []
    for code in dict.fromkeys(finding["code"] for finding in findings):
        same = [finding for finding in findings if finding["code"] == code]
        for f in same[:MAX_ALIKE]:
            place = "".join(f", {kind} {plain(v)}" for kind, v in f["where"].items())
            told = f"{plain(f['message'])} {plain(f['remedy'])}"
            lines.append(f"- {code} ({f['severity']}{place}): {told}")
        if len(same) > MAX_ALIKE:
            lines.append(f"- {code}: {len(same) - MAX_ALIKE} more like this")
    return lines


def _code(text: str | None) -> list[str]:
    """Return commands as a block that ends where they end, whatever names hold."""
    if not text:
        return []
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return [f"{fence}\n{text}\n{fence}"]


def _interval(row: Mapping[str, Any]) -> str:
    if row["low"] is None:
        return shown(None)
    return f"{shown(row['low'], 4)} to {shown(row['high'], 4)}"


def _table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])
