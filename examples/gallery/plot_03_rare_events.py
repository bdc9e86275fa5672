"""
Rare events on logit axes
=========================

If nearly all predictions are small, probability axes hide them in a corner. Logit axes
stretch both ends; ``axes="auto"`` chooses them if at least 90 % of the predictions are
below 0.05 or above 0.95.
"""

import numpy as np

import calibrant as cb

rng = np.random.default_rng(1)
p = rng.beta(0.5, 60.0, 20_000)
y = rng.random(p.size) < p**0.9
cb.ReliabilityDisplay.from_predictions(y, p, axes="auto").plot()
