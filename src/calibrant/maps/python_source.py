"""Source text of functions in plain Python, without imports."""

from __future__ import annotations

import re
from textwrap import indent
from typing import TYPE_CHECKING

from calibrant.maps.languages import PYTHON
from calibrant.numerics.links import CLIP

if TYPE_CHECKING:
    from collections.abc import Iterable

    from calibrant.core.array_types import Scale
    from calibrant.numerics.polynomial_pieces import Piece

TAB = " " * 4
PROBABILITY_GUARD = ("if p is None or not 0.0 <= p <= 1.0:", f"{TAB}return None")

# From the number of binary digits, by Halley's steps: each triples correct digits.
LOGARITHM = """\
def logarithm(x):
    top, bottom = x.as_integer_ratio()
    y = 0.6931471805599453 * (top.bit_length() - bottom.bit_length())
    for _ in range(4):
        power = 2.718281828459045 ** y
        y += 2.0 * (x - power) / (x + power)
    return y
"""
SOFTMAX = """\
def softmax(x):
    top = max(x)
    raised = [2.718281828459045 ** (v - top) for v in x]
    total = sum(raised)
    return [v / total for v in raised]
"""
LOG_SOFTMAX = """\
def log_softmax(x):
    top = max(x)
    total = logarithm(sum(2.718281828459045 ** (v - top) for v in x))
    return [v - top - total for v in x]
"""
CENTRED = """\
def centred(x):
    mean = sum(x) / len(x)
    return [v - mean for v in x]
"""
HELPERS = {
    "centred": CENTRED,
    "log_softmax": LOG_SOFTMAX,
    "softmax": SOFTMAX,
    "logarithm": LOGARITHM,
}

PREDICTIONS: dict[Scale, tuple[str, str]] = {
    "prob": ("probabilities", "0.0 <= v <= 1.0"),
    "percent": ("percentages", "0.0 <= v <= 100.0"),
    "logprob": ("log-probabilities", "v <= 0.0"),
    "logit": ("logits", "-1e999 < v < 1e999"),
}
"""What predictions on a scale are, and what holds for each."""


def function(name: str, purpose: str, body: Iterable[str]) -> str:
    """Return a function of p, with the functions that it calls inside.

    Examples
    --------
    >>> print(function("half", "Return half of p.", ["return p / 2"]), end="")
    def half(p):
        \"\"\"Return half of p.\"\"\"
        return p / 2
    """
    text = "\n".join(body) + "\n"
    # Functions within have helpers of their own.
    calls = "\n".join(line for line in text.splitlines() if line[:1] != " ")
    for helper, source in HELPERS.items():
        if re.search(rf"\b{helper}\(", calls):
            text, calls = source + text, calls + source
    return f"def {name}(p):\n" + indent(f'"""{purpose}"""\n{text}', TAB)


def function_of_classes(name: str, classes: int, scale: Scale, body: str) -> str:
    """Return a function of the predictions of all classes."""
    what, holds = PREDICTIONS[scale]
    purpose = f"Return calibrated probabilities of {classes} classes from their {what}."
    guard = f"if any(v is None or not {holds} for v in p):\n{TAB}return None"
    return function(name, purpose, [guard, body])


def probabilities_text(scale: Scale) -> str:
    """Return the expression of the classes' probabilities."""
    if scale in ("logit", "logprob"):
        return "softmax(p)"
    return "[v / total for total in [sum(p)] for v in p]"


def log_probabilities_text(scale: Scale, floor: float = CLIP) -> str:
    """Return the expression of their logarithms."""
    if scale == "logit":
        return "log_softmax(p)"
    return f"[logarithm(max(v, {floor!r})) for v in {probabilities_text(scale)}]"


def logits_text(scale: Scale) -> str:
    """Return the expression of the classes' logits, up to a constant."""
    return "p" if scale == "logit" else log_probabilities_text(scale)


def lines_of_pieces(pieces: list[Piece]) -> list[str]:
    r"""Return statements that set c to the value of the piece that p lies in.

    Examples
    --------
    >>> from calibrant.numerics.polynomial_pieces import Piece
    >>> pieces = [Piece(0.5, 0.0, (0.1,)), Piece(1.0, 0.0, (0.2, 0.5))]
    >>> print("\n".join(lines_of_pieces(pieces)))
    if p < 0.5:
        c = 0.1
    else:
        c = 0.2+0.5*p
    """
    if len(pieces) == 1:
        return [f"c = {PYTHON.polynomial(pieces[0], 'p')}"]
    half = len(pieces) // 2
    below, above = lines_of_pieces(pieces[:half]), lines_of_pieces(pieces[half:])
    return [
        f"if p < {pieces[half - 1].end!r}:",
        *(TAB + line for line in below),
        "else:",
        *(TAB + line for line in above),
    ]
