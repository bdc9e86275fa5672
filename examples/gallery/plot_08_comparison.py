"""
Which model is better calibrated?
=================================

Errors with intervals, and for each pair of models the probability that one is better
calibrated than the other. All models are compared on the same rows.
"""

import calibrant as cb

models = ("bayes", "boosting", "forest", "logistic", "network")
y = cb.datasets.load_binary("bayes")[1]
prob = {name: cb.datasets.load_binary(name)[0] for name in models}
comparison = cb.compare(y, prob)
cb.ComparisonDisplay.from_comparison(comparison).plot()
