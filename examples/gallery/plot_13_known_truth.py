"""
An estimate and the truth
=========================

The true calibration map of synthetic data is known. The band of `smooth` should contain
it.
"""

import numpy as np

import calibrant as cb

rng = np.random.default_rng(5)
p = rng.random(2000)
y = rng.random(p.size) < p**2
display = cb.ReliabilityDisplay.from_predictions(
    y, p, true_map=np.square, name="2,000 rows", band="simultaneous"
)
display.plot()
