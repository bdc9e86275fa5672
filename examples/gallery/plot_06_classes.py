"""
One diagram per class
=====================

The ten classes of a random forest, each against the rest.
"""

import calibrant as cb

prob, digit = cb.datasets.load_multiclass("forest")
cb.ReliabilityGrid.from_predictions(digit, prob, task="classwise").plot()
