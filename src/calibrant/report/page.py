"""The page: a summary laid out by templates. Nothing is computed here."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from calibrant.core.wording import visible
from calibrant.exceptions import MissingDependencyError
from calibrant.numerics.links import CLIP
from calibrant.report.words import (
    capitalise,
    chance,
    counted,
    format_or_dash,
    shown,
    unbroken,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import Environment

UNSAFE = {ord(sign): f"\\u{ord(sign):04x}" for sign in "<>&\u2028\u2029"}
"""What could end a script, or a line of one, as JSON may write it instead."""


def page(summary: Mapping[str, Any]) -> str:
    """Return the page of a summary."""
    environment = _environment()
    summary = _all_visible(summary)
    from markupsafe import Markup

    script, style = _asset("page.js"), _asset("page.css")
    text: str = environment.get_template("page.html.j2").render(
        report=summary,
        data=Markup(json_for_script(summary)),  # noqa: S704  (cannot end the script)
        script=Markup(script),  # noqa: S704  (our own)
        style=Markup(style),  # noqa: S704
        policy=_policy(script, style),
    )
    return text


def _all_visible(content: Any) -> Any:
    """Return a summary whose text holds no sign that nobody sees, but ends of lines."""
    if isinstance(content, str):
        return visible(content, keep="\n")
    if isinstance(content, dict):
        return {_all_visible(name): _all_visible(v) for name, v in content.items()}
    if isinstance(content, list):
        return [_all_visible(value) for value in content]
    return content


def json_for_script(content: Mapping[str, Any]) -> str:
    r"""Return JSON that may stand in a script element whatever strings it holds.

    Examples
    --------
    >>> print(json_for_script({"name": "</script><b>"}))
    {"name":"\u003c/script\u003e\u003cb\u003e"}
    """
    text = json.dumps(content, allow_nan=False, separators=(",", ":"))
    return text.translate(UNSAFE)


def _policy(script: str, style: str) -> str:
    """Return what browsers may run: this script and this style, by their hashes."""
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; "
        f"style-src '{_digest(style)}'; base-uri 'none'; form-action 'none'"
    )


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


@cache
def _asset(name: str) -> str:
    folder = files("calibrant.report") / "templates"
    return (folder / name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    try:
        import jinja2
    except ImportError:
        raise MissingDependencyError.for_extra(
            "an HTML report", "jinja2", "report"
        ) from None
    from calibrant.report import drawing

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "shown": shown,
        "told": format_or_dash,
        "counted": counted,
        "chance": chance,
        "capitalise": capitalise,
        "unbroken": unbroken,
    }
    environment.globals |= {
        "reliability_svg": drawing.reliability_svg,
        "overview_svg": drawing.overview_svg,
        "interval_svg": drawing.interval_svg,
        "scales": drawing.scale_names(),
        "clip": f"{CLIP:.1e}",
    }
    return environment
