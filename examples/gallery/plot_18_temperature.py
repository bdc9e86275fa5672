"""
Temperature scaling of ten classes
==================================

A forest with ten classes is under-confident: its temperature is below 1. The diagram
shows the top label before and after.
"""

import calibrant as cb

prob, digit = cb.datasets.load_multiclass("forest")
calibrator = cb.make_calibrator("temperature").fit(prob[:900], digit[:900])
both = {"before": prob[900:], "after": calibrator.transform(prob[900:])}
grid = cb.ReliabilityGrid.from_predictions(digit[900:], both, task="confidence")
grid.overlay()
