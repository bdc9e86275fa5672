"""
What noise looks like
=====================

Perfectly calibrated predictions, drawn four times. Binned diagrams of such data look
alarming; the curve stays near the diagonal, because nothing supports a departure.
"""

import matplotlib.pyplot as plt
import numpy as np

import calibrant as cb

rng = np.random.default_rng(12)
figure, axes = plt.subplots(1, 4, figsize=(12.0, 3.6), layout="constrained")
for ax in axes:
    p = rng.random(300)
    y = rng.random(p.size) < p
    cb.ReliabilityDisplay.from_predictions(y, p, histogram=False, ax=ax)
