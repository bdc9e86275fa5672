"""
The top label
=============

Is the most probable class right as often as its probability says? This is the diagram
of most papers on neural networks.
"""

import calibrant as cb

prob, digit = cb.datasets.load_multiclass("bayes")
display = cb.ReliabilityDisplay.from_predictions(digit, prob, task="confidence")
display.plot()
