"""Names for the types that recur."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatVector: TypeAlias = NDArray[np.float64]
FloatMatrix: TypeAlias = NDArray[np.float64]
IntVector: TypeAlias = NDArray[np.intp]
IntMatrix: TypeAlias = NDArray[np.intp]
BoolVector: TypeAlias = NDArray[np.bool_]
BoolMatrix: TypeAlias = NDArray[np.bool_]

ArrayLike: TypeAlias = Any
"""A list, NumPy array, or a pandas, polars or pyarrow column or table."""

Frame: TypeAlias = dict[str, NDArray[Any]]
"""Equally long columns by name; any data-frame library takes it as it is."""

Scale: TypeAlias = Literal["prob", "logit", "percent", "logprob"]
"""What predictions that come in are: probabilities, logits, percentages or logarithms
of probabilities."""
Space: TypeAlias = Literal["prob", "logit"]
"""Where maps are made of lines, and axes of diagrams."""
Spacing: TypeAlias = Literal["size", "width"]
Tops: TypeAlias = Literal["slope-1", "flat"]
Debias: TypeAlias = bool | Literal["auto"]
FoldEnsemble: TypeAlias = Literal["folds", "refit"]
"""The mean of the maps of the folds, or one map refitted to all rows."""
Task: TypeAlias = Any
"""None, "confidence", "classwise", "canonical", "multilabel", or a class.

A class is its label or its column number."""

Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None
JsonObject: TypeAlias = Mapping[str, Any]
