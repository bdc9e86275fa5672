"""
A clinical validation with 30 events
====================================

With 150 patients the band is wide, and that is the message of the figure. It has the
width of one journal column.
"""

import numpy as np
from scipy.special import expit, logit

import calibrant as cb

rng = np.random.default_rng(6)
risk = expit(rng.normal(-1.7, 1.2, 150))
died = rng.random(risk.size) < expit(0.6 * logit(risk) - 0.2)
display = cb.ReliabilityDisplay.from_predictions(died, risk, name="risk of death")
display.plot(width=3.5)
