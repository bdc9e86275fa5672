"""
Groups as small multiples
=========================

A model can be calibrated on average and wrong for a group. Here the observed rate of
clinic B is lower than predicted.
"""

import numpy as np

import calibrant as cb

rng = np.random.default_rng(2)
p = rng.random(6000)
clinic = rng.choice(["A", "B", "C", "D"], p.size)
y = rng.random(p.size) < np.where(clinic == "B", p**1.8, p)
cb.ReliabilityGrid.from_predictions(y, {"risk": p}, groups=clinic).plot()
