"""The page and the text of a report: a summary laid out by templates."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from calibrant.core import formatting
from calibrant.core.wording import visible
from calibrant.exceptions import MissingDependencyError
from calibrant.numerics.links import CLIP

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from jinja2 import Environment

UNSAFE = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
"""What could end a script, or a line of one, as JSON may write it instead."""
DIGITS = re.compile(r"([0-9]+)")
GIVEN_AS = {
    "prob": "probabilities",
    "logit": "logits",
    "percent": "percentages",
    "logprob": "natural logarithms of probabilities",
}
"""What the scales of predictions are called."""
SHOWN_THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7)
"""Thresholds of which tables show net benefits."""
CITATION = (
    "M. Kängsepp, K. Valk, M. Kull (2025), On the usefulness of the fit-on-test view "
    "on evaluating calibration of classifiers, Machine Learning 114, "
    "doi:10.1007/s10994-024-06652-6"
)
"""What to cite together with calibrant."""
MIN_LOSS = 0.00005
"""A smaller loss of net benefit is printed as none."""
MARKDOWN_SIGNS = re.compile(r"([\\`*_{}\[\]<>|#~!&])")


def render_page(summary: Mapping[str, Any]) -> str:
    """Return the page of a summary."""
    environment = _environment("an HTML report")
    summary = _make_visible(summary)
    from markupsafe import Markup

    from calibrant.report import svg

    script, style = _asset("page.js"), _asset("page.css") + svg.SWITCHES
    text: str = environment.get_template("page.html.j2").render(
        report=summary,
        data=Markup(json_for_script(_pointed_at(summary))),  # noqa: S704  (cannot end it)
        script=Markup(script),  # noqa: S704  (our own)
        style=Markup(style),  # noqa: S704
        # Browsers may run this script and this style only, by their hashes.
        policy=f"default-src 'none'; script-src '{_digest(script)}'; "
        f"style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'",
    )
    return text


def render_markdown(summary: Mapping[str, Any]) -> str:
    """Return a summary as Markdown; what users wrote stays text."""
    template = _environment("a Markdown report").get_template("report.md.j2")
    text: str = template.render(report=summary)
    return text + "\n"


def _make_visible(content: Any) -> Any:
    """Return a summary with hidden signs, other than ends of lines, written out."""
    if isinstance(content, str):
        return content if content.isprintable() else visible(content, keep="\n")
    if isinstance(content, dict):
        return {_make_visible(name): _make_visible(v) for name, v in content.items()}
    if isinstance(content, list):
        return [_make_visible(value) for value in content]
    return content


def shared_notes(models: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return notes on the data that several models have, to be written once.

    Each is the first model's finding, with the names of models by "messages".
    """
    notes: dict[str, list[tuple[str, Mapping[str, Any]]]] = {}
    for model in models:
        for finding in model["findings"]:
            if finding["severity"] == "note" and not finding["where"]:
                notes.setdefault(finding["code"], []).append((model["name"], finding))
    shared = []
    for same in notes.values():
        messages: dict[str, list[str]] = {}
        for name, finding in same:
            messages.setdefault(finding["message"], []).append(name)
        if len(same) > 1:
            shared.append({**same[0][1], "messages": messages})
    return shared


def _pointed_at(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the script reads: the numbers below the pointer in diagrams."""
    drawn = ("method", "p", "calibrated", "low", "high")
    models = [
        {
            "name": model["name"],
            "diagrams": [
                {
                    "event": panel["event"],
                    "bins": panel["bins"],
                    "curves": [
                        {name: one[name] for name in drawn if name in one}
                        for one in panel["curves"]
                    ],
                }
                for panel in model["diagrams"]
            ],
        }
        for model in summary["models"]
    ]
    confidence = summary["measured"]["confidence"]
    return {"measured": {"confidence": confidence}, "models": models}


def json_for_script(content: Mapping[str, Any]) -> str:
    r"""Return JSON that may stand in a script element whatever strings it holds.

    >>> print(json_for_script({"name": "</script><b>"}))
    {"name":"\u003c/script\u003e\u003cb\u003e"}
    """
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.translate(UNSAFE)


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@cache
def _asset(name: str) -> str:
    folder = files("calibrant.report") / "templates"
    return (folder / name).read_text(encoding="utf-8")


@cache
def _environment(purpose: str) -> Environment:
    try:
        import jinja2
    except ImportError:
        raise MissingDependencyError.for_extra(purpose, "jinja2", "report") from None
    from calibrant.report import svg

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=jinja2.select_autoescape(
            disabled_extensions=("md.j2",), default=True
        ),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": formatting.format_number,
        "probability": formatting.format_probability,
        "rows": formatting.format_count,
        "pvalue": formatting.format_pvalue,
        "capitalise": capitalise,
        "unbroken": unbroken,
        "in_order": in_order,
        "markdown": escape_markdown,
        "fenced": fence_code,
    }
    environment.globals |= {
        "reliability_svg": svg.reliability_svg,
        "mini_svg": svg.mini_svg,
        "repair_svg": svg.repair_svg,
        "decision_svg": svg.decision_svg,
        "overview_svg": svg.overview_svg,
        "interval_svg": svg.interval_svg,
        "shared_notes": shared_notes,
        "given_as": GIVEN_AS,
        "citation": CITATION,
        "loss_sentence": loss_sentence,
        "shown_thresholds": SHOWN_THRESHOLDS,
        "scales": {"prob": "probability", "logit": "logit"},
        "clip": f"{CLIP:.1e}",
    }
    return environment


def loss_sentence(lost: Mapping[str, float], confidence: float) -> str:
    """Return what miscalibration costs decisions at the worst threshold.

    >>> lost = {"threshold": 0.3, "lost": 0.004, "low": 0.0, "high": 0.02}
    >>> loss_sentence(lost, 0.95).partition(": ")[2]
    '0.0040 (95 % interval 0.0000 to 0.0200).'
    """
    if lost["lost"] < MIN_LOSS:
        return "the calibration curve shows no net benefit lost to miscalibration."
    value, low, high = (f"{lost[name]:.4f}" for name in ("lost", "low", "high"))
    return (
        "most net benefit is lost to miscalibration at threshold "
        f"{lost['threshold']:.2f}: {value} ({100 * confidence:g} % interval "
        f"{low} to {high})."
    )


def capitalise(text: str) -> str:
    """Return a sentence with its first letter large, the others as they are."""
    return text[:1].upper() + text[1:]


def unbroken(text: str) -> str:
    r"""Return text whose numbers stay on one line with what belongs to them.

    >>> unbroken("95 % sure").replace("\u00a0", "_")
    '95_% sure'
    """
    space = "\N{NO-BREAK SPACE}"
    sign = "\N{PLUS-MINUS SIGN}"
    return text.replace(" %", f"{space}%").replace(f" {sign} ", f"{space}{sign}{space}")


def in_order(names: Iterable[str]) -> list[str]:
    """Return names in alphabetical order, but 9 before 10.

    >>> in_order(["site 10", "Site 9", "a"])
    ['a', 'Site 9', 'site 10']
    """

    def parts(name: str) -> list[str | int]:
        split = DIGITS.split(name.casefold())
        return [int(part) if k % 2 else part for k, part in enumerate(split)]

    return sorted(names, key=parts)


def escape_markdown(text: str) -> str:
    r"""Return text that Markdown and HTML show as it is.

    >>> print(escape_markdown("a|b <i>"))
    a\|b \<i\>
    """
    return MARKDOWN_SIGNS.sub(r"\\\1", visible(" ".join(str(text).split())))


def fence_code(code: str) -> str:
    """Return code as a block of Markdown that no name in it can end."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}\n{code}\n{fence}"
