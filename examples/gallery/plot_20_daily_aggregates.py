"""
A week of daily aggregates
==========================

Each day is aggregated where its rows are. The sum of all days can be evaluated and
drawn like the rows themselves.
"""

import numpy as np

import calibrant as cb

rng = np.random.default_rng(10)
days = []
for _ in range(7):
    p = rng.beta(0.8, 2.0, 20_000)
    y = rng.random(p.size) < 0.8 * p + 0.02
    days.append(cb.Predictions.from_arrays(y, p).aggregate())
cb.ReliabilityDisplay.from_predictions(sum(days[1:], days[0]), name="the week").plot()
