"""
Decision curves
===============

The net benefit of acting on predictions above a threshold, compared with acting on all
rows and on none.
"""

import calibrant as cb

y = cb.datasets.load_binary("bayes")[1]
prob = {name: cb.datasets.load_binary(name)[0] for name in ("forest", "bayes")}
cb.DecisionCurveDisplay.from_predictions(y, prob).plot()
