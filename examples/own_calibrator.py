"""Use your own calibrator in tables and diagrams.

Run ``python examples/own_calibrator.py``.
"""

import numpy as np

import calibrant as cb


class OddsShift:
    """Multiply the odds of every prediction by one factor (a changed base rate)."""

    def fit(self, p, y, sample_weight=None):
        weight = np.ones(len(p)) if sample_weight is None else sample_weight
        low, high = -10.0, 10.0
        for _ in range(60):  # the mean prediction rises with the factor
            self.shift = 0.5 * (low + high)
            above = np.average(self.transform(p) - y, weights=weight) > 0.0
            low, high = (low, self.shift) if above else (self.shift, high)
        return self

    def transform(self, p):
        p = np.clip(p, 1e-12, 1.0 - 1e-12)
        odds = np.exp(self.shift) * p / (1.0 - p)
        return odds / (1.0 + odds)


def main():
    predictions, even = cb.datasets.load_binary("bayes")
    print(cb.evaluate(even, predictions, methods=["smooth", "platt", OddsShift()]))
    display = cb.ReliabilityDisplay.from_predictions(
        even, predictions, method=OddsShift()
    )
    print(display)


if __name__ == "__main__":
    main()
