"""One page per check, written from its rule in the code."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.checks.rule_texts import RULES

if TYPE_CHECKING:
    from sphinx.application import Sphinx

    from calibrant.checks.rule_texts import Rule

INDEX = """# Checks

`cb.diagnose(y, p)`, `calibrant evaluate ... --explain` and every report explain in
words what is wrong with predicted probabilities. Each check has a code whose meaning
never changes, so that you can mute it (`--mute CAL008`) or let it fail a build
(`--fail-on severe`, `--fail-on CAL001,CAL010`: exit code 1). `calibrant rule CAL004`
prints the text of these pages. [How the checks work](how_checks_work.md) describes the
tests and their false-alarm rates.

| code | title | reported if |
| --- | --- | --- |
"""


def _page(rule: Rule) -> str:
    parts = {
        "What it finds": rule.finds,
        "Why it matters": rule.matters,
        "Example": f"> {rule.finding().message}",
        "What to do": rule.remedy,
        "Known limits": rule.limits,
    }
    sections = (f"## {title}\n\n{text}" for title, text in parts.items())
    return "\n\n".join([f"# {rule.code}: {rule.title}", *sections]) + "\n"


def _write(app: Sphinx) -> None:
    folder = Path(app.srcdir, "checks")
    lines = [f"| [{r.code}]({r.code}.md) | {r.title} | {r.finds} |" for r in RULES]
    names = "\n".join(["how_checks_work", *(rule.code for rule in RULES)])
    tree = f"\n\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"
    pages = {rule.code: _page(rule) for rule in RULES}
    pages["index"] = INDEX + "\n".join(lines) + tree
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the pages before any is read."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True}
