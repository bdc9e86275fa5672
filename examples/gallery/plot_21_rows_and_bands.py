"""
More rows, narrower bands
=========================

The same model on 100, 1,000 and 10,000 rows.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cb

rng = np.random.default_rng(11)
figure, axes = plt.subplots(1, 3, figsize=(10.0, 4.0), layout="constrained")
for ax, n in zip(axes, (100, 1000, 10_000), strict=True):
    p = rng.random(n)
    y = rng.random(n) < p**1.5
    cb.ReliabilityDisplay.from_predictions(
        y, p, histogram=False, name=f"{n:,} rows", ax=ax
    )
