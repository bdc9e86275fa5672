"""
Net benefit lost to miscalibration
==================================

What would the same model gain at each threshold if its predictions were recalibrated?
An over-confident model loses most where the costs of the two errors differ most.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logit

import calibrant as cb

rng = np.random.default_rng(3)
chance = rng.beta(1.0, 3.0, 5000)
y = rng.random(chance.size) < chance
bold = expit(2.0 * logit(chance))
lost = cb.decision_curve(y, {"over-confident": bold}).lost()

figure, ax = plt.subplots(figsize=(5.2, 3.6), layout="constrained")
ax.fill_between(lost["threshold"], lost["low"], lost["high"], alpha=0.2, lw=0)
ax.plot(lost["threshold"], lost["lost"])
ax.set(xlabel="Threshold probability", ylabel="Net benefit lost", xlim=(0, 1))
