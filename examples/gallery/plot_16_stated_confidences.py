"""
Confidences that a language model states
========================================

Stated confidences have few distinct values, many of them exactly 100 %. Dots show
these levels; between neighbouring levels the curve is straight on the log-odds scale.
"""

import numpy as np
from scipy.special import expit

import calibrant as cb

rng = np.random.default_rng(7)
skill = rng.normal(0.9, 1.0, 1500)
right = rng.random(skill.size) < expit(skill)
stated = 10.0 * np.round(10.0 * expit(2.2 * skill))
display = cb.ReliabilityDisplay.from_predictions(
    right, stated, scale="percent", name="stated confidence"
)
display.plot()
