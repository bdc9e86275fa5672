"""How messages are worded: names of arguments, remedies, and values as text."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.exceptions import Setting, Text

if TYPE_CHECKING:
    from calibrant.core.array_types import Scale


@dataclass(frozen=True, kw_only=True)
class Wording:
    """What an interface calls its arguments, and which remedies it offers."""

    # names of the arguments or columns
    label: str = "y_true"
    prob: str = "y_prob"
    weight: str = "sample_weight"
    # whether there is a parameter `scale`, for values outside [0, 1]
    takes_scale: bool = True
    # for labels that are not 0 and 1
    two_labels: Text = ("State by ", Setting("pos_label"), " which one is the event.")
    several_labels: Text = (
        "For several classes pass one column of probabilities per class, and a task.",
    )
    # for a table where a vector is needed
    columns: Text = (
        "Pass the column of the positive class, or choose a task: ",
        Setting("task", "confidence"),
        ", ",
        Setting("task", "classwise"),
        ", a class or, for several labels per row, ",
        Setting("task", "multilabel"),
        ".",
    )
    purpose: str = "task"  # what a table of classes is needed for
    # for rows that do not sum to 1
    independent: Text = (
        "; if a row can have several labels (sigmoid outputs), pass ",
        Setting("task", "multilabel"),
    )
    # for a vector where a table is needed
    vector: Text = (
        "For the probabilities of one event, use ",
        Setting("task", None),
        ".",
    )

    def pass_scale(self, scale: Scale) -> Text:
        """Return what to do with predictions that are on another scale."""
        if self.takes_scale:
            return ("pass ", Setting("scale", scale))
        return (BY_HAND[scale],)


BY_HAND: dict[Scale, str] = {
    "prob": "pass them as they are",
    "logit": "convert them to probabilities first",
    "percent": "divide them by 100 first",
    "logprob": "take their exponentials first",
}
"""What to do where there is no parameter for it."""

MEASURE_WORDING = Wording()

CALIBRATOR_WORDING = Wording(
    label="y",
    prob="p",
    takes_scale=False,
    several_labels=("Convert them to 0 and 1 first (one class against the rest).",),
    columns=("Pass the column of the positive class.",),
)

CLASS_CALIBRATOR_WORDING = Wording(
    label="y",
    prob="p",
    purpose="multi-class method",
    independent=(),
    vector=(
        "For the probabilities of one event, use a binary method, such as smooth.",
    ),
)


def shown(value: Any) -> str:
    """Return a value as a message shows it, NumPy's numbers as plain ones.

    >>> shown(np.float64(1.0000001)), shown(np.str_("a"))
    ('1.0000001', "'a'")
    """
    return repr(value.item() if isinstance(value, np.generic) else value)


HIDDEN = {*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C}
"""Signs that turn the direction of text around them."""
UNSEEN = ("Cc", "Cs", "Zl", "Zp")
"""Kinds of signs that control a terminal, break lines or cannot be written."""


def visible(text: str, *, keep: str = "") -> str:
    r"""Return text with invisible characters, such as escapes, written out.

    >>> print(visible("a\u202eb\x1b[31m"), visible("a\nb"), visible("\ud800"))
    a\u202eb\x1b[31m a\nb \ud800
    """
    if text.isprintable():
        return text

    def hidden(sign: str) -> bool:
        return ord(sign) in HIDDEN or unicodedata.category(sign) in UNSEEN

    return "".join(
        sign.encode("unicode_escape").decode("ascii")
        if sign not in keep and hidden(sign)
        else sign
        for sign in text
    )


def shown_place(place: tuple[int, ...]) -> str:
    """Return where a value stands, as a message shows it."""
    row = f"row {place[0]}"
    return row if len(place) == 1 else f"{row}, column {place[1]}"
