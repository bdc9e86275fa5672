"""Logits and back; the only place where probabilities are kept off 0 and 1."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logit as _logit

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector

CLIP = float(np.finfo(np.float64).eps)
"""Nearest to 0 and 1 that a probability counts in logarithms, as in scikit-learn."""


def clipped(p: FloatVector, clip: float = CLIP) -> FloatVector:
    """Return probabilities held between `clip` and 1 - `clip`."""
    return np.clip(p, clip, 1.0 - clip)


def logit(p: FloatVector, clip: float = CLIP) -> FloatVector:
    """Return log(p / (1 - p)) of the clipped probabilities.

    Examples
    --------
    >>> logit(np.array([0.5, 1.0])).round(2)
    array([ 0.  , 36.04])
    """
    return np.asarray(_logit(clipped(p, clip)), dtype=np.float64)


def log_odds_parts(p: FloatVector) -> tuple[FloatVector, FloatVector]:
    """Return log(p) and -log(1 - p) of the clipped probabilities; they add to logits.

    Examples
    --------
    >>> np.round(log_odds_parts(np.array([0.5, 0.75])), 2)
    array([[-0.69, -0.29],
           [ 0.69,  1.39]])
    """
    held = clipped(p)
    return np.log(held), -np.log1p(-held)
