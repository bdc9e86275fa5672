"""
A changed base rate
===================

A model was trained on balanced data, but the event happens in one of ten cases.
`adjust_prior` corrects that without any labels.
"""

import numpy as np
from scipy.special import expit

import calibrant as cb

rng = np.random.default_rng(9)
score = rng.normal(-2.85, 1.3, 5000)
y = rng.random(score.size) < expit(score)
p = expit(score + np.log(0.9 / 0.1))
both = {"raw": p}
both["adjusted"] = cb.adjust_prior(0.1, old_rate=0.5)(p)
cb.ReliabilityGrid.from_predictions(y, both).overlay()
