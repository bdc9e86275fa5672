"""Columns and labels as users type them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def listed(text: str | None) -> list[str]:
    """Return the parts of a list with commas.

    Examples
    --------
    >>> listed("a, b,,c")
    ['a', 'b', 'c']
    """
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def typed_label(column: NDArray[Any], text: str | None) -> Any:
    """Return a label that was typed as text in the type of the label column."""
    from calibrant.measures.table_models import typed_like

    return None if text is None else typed_like(column, text)


def typed_labels(column: NDArray[Any], text: str | None) -> list[Any] | None:
    """Return labels that were typed as a list, None where there are none."""
    return [typed_label(column, part) for part in listed(text)] or None
