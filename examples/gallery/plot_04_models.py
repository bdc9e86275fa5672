"""
Several models side by side
===========================

One diagram per model, on the same axes.
"""

import calibrant as cb

models = ("bayes", "boosting", "forest", "logistic", "network")
y = cb.datasets.load_binary("bayes")[1]
prob = {name: cb.datasets.load_binary(name)[0] for name in models}
cb.ReliabilityGrid.from_predictions(y, prob).plot()
