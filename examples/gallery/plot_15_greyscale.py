"""
For print: greys
================

A reliability diagram in shades of grey, legible without colours.
"""

import calibrant as cb

p, y = cb.datasets.load_binary("bayes")
display = cb.ReliabilityDisplay.from_predictions(y, p, name="naive Bayes")
display.plot(style="grey", width=3.5)
