"""
The same data by several methods
================================

A diagram is the graph of a calibration map that was fitted to the test data. Each
method fits a different family of maps: bins jump, isotonic regression has steps, and
`smooth` follows the data no more closely than they justify.
"""

import matplotlib.pyplot as plt

import calibrant as cb

p, y = cb.datasets.load_binary("bayes")
figure, axes = plt.subplots(2, 2, figsize=(7.0, 7.6), layout="constrained")
for ax, method in zip(axes.ravel(), ("smooth", "es15", "isotonic", "pl"), strict=True):
    cb.ReliabilityDisplay.from_predictions(
        y, p, method=method, histogram=False, name=method, ax=ax
    )
