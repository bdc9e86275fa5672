"""
Bins with slanted tops
======================

The classical ECE is the mean distance to the diagonal of a map with slope 1 in each
bin. Filled up to that map, the area shows exactly what is measured; flat bars do not.
"""

import matplotlib.pyplot as plt

import calibrant as cb

p, y = cb.datasets.load_binary("bayes")
figure, axes = plt.subplots(1, 3, figsize=(10.0, 4.0), layout="constrained")
for ax, kind in zip(axes, ("bars", "centres", "diagonal"), strict=True):
    cb.ReliabilityDisplay.from_predictions(
        y, p, method="es10", kind=kind, histogram=False, name=kind, ax=ax
    )
