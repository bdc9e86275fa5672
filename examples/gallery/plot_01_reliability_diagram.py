"""
A reliability diagram
=====================

The calibration curve of a random forest with its 95 % band. A forest averages many
trees, so its predictions are not extreme enough: the curve is steeper than the
diagonal. Dots are bins with exact intervals; the histogram shows events above the line
and other rows below it.
"""

import calibrant as cb

p, y = cb.datasets.load_binary("forest")
cb.ReliabilityDisplay.from_predictions(y, p, name="forest").plot()
