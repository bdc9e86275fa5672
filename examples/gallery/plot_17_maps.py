"""
Calibration maps of several repairs
===================================

What would each repair do to a prediction? All maps were fitted to the same 400 rows of
an over-confident model; the dashed line leaves predictions as they are.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit, logit

import calibrant as cb

rng = np.random.default_rng(8)
chance = rng.beta(1.5, 1.5, 400)
y = rng.random(chance.size) < chance
p = expit(1.8 * logit(chance))
grid = np.linspace(0.001, 0.999, 500)

figure, ax = plt.subplots(figsize=(5.0, 5.0), layout="constrained")
ax.axline((0, 0), slope=1, color="0.6", linestyle="--", linewidth=1)
for name in ("platt", "beta", "isotonic", "smooth", "auto"):
    map_ = cb.make_calibrator(name).fit(p, y).map_
    ax.plot(grid, map_(grid), label=name)
ax.set(xlabel="Prediction", ylabel="Calibrated probability", xlim=(0, 1), ylim=(0, 1))
ax.legend(frameon=False)
