"""Hypothesis strategies for predictions, as they come in real life."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatVector

probability = st.floats(0.0, 1.0, allow_subnormal=False)
"""Any probability, 0 and 1 included."""

rounded_probability = st.integers(0, 20).map(lambda i: i / 20)
"""Rounded to steps of 0.05: heavy ties, and values on the edges of bins."""


@st.composite
def binary_samples(
    draw: Any, *, min_size: int = 1, max_size: int = 60
) -> tuple[FloatVector, FloatVector]:
    """Draw predictions and labels, with or without ties."""
    n = draw(st.integers(min_size, max_size))
    elements = draw(st.sampled_from([probability, rounded_probability]))
    p = draw(arrays(np.float64, n, elements=elements))
    y = draw(arrays(np.float64, n, elements=st.sampled_from([0.0, 1.0])))
    return p, y


counts = st.integers(1, 4).map(float)
"""Weights that are counts."""
