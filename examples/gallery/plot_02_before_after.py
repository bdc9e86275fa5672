"""
Before and after a repair
=========================

Fit a calibrator on one half of the rows, and look at the other half. Both curves share
one diagram.
"""

import calibrant as cb

p, y = cb.datasets.load_binary("forest")
calibrator = cb.make_calibrator().fit(p[:900], y[:900])
both = {"before": p[900:], "after": calibrator.transform(p[900:])}
cb.ReliabilityGrid.from_predictions(y[900:], both).overlay()
