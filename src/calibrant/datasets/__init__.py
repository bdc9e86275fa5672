"""Bundled predictions of real classifiers, for examples and tests.

Five classifiers were trained on the handwritten digits that scikit-learn ships; each
row was predicted by a model that had not seen it (10-fold cross-validation). The
script that made the files is ``examples/make_datasets.py``.
"""

from __future__ import annotations

from calibrant.datasets.digits import (
    BINARY_FILE,
    CLASSIFIERS,
    MULTICLASS_FILE,
    load_binary,
    load_multiclass,
)

__all__ = [
    "BINARY_FILE",
    "CLASSIFIERS",
    "MULTICLASS_FILE",
    "load_binary",
    "load_multiclass",
]
