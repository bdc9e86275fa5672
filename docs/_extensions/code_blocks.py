"""Blocks of code without the empty line that ends the output of a doctest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from docutils import nodes

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def _strip(_app: Sphinx, document: nodes.document) -> None:
    for block in document.findall(nodes.literal_block):
        text = block.astext().rstrip("\n")
        block.rawsource = text
        block.children = [nodes.Text(text)]


def setup(app: Sphinx) -> dict[str, bool]:
    """Strip every page when it has been read."""
    app.connect("doctree-read", _strip)
    return {"parallel_read_safe": True}
