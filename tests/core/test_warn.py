"""Warnings point at the line of the user."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.exceptions import FractionalWeightsWarning

Y, P, W = np.arange(60) % 2, np.linspace(0.1, 0.9, 60), np.full(60, 1.5)


@pytest.mark.parametrize(
    "call",
    [
        lambda: cb.calibration_error(Y, P, sample_weight=W),
        lambda: cb.evaluate(Y, P, sample_weight=W, methods="es2", confidence=None),
        lambda: cb.make_calibrator("platt").fit(P, Y, sample_weight=W),
    ],
)
def test_warnings_point_at_the_line_that_passed_the_weights(call):
    with pytest.warns(FractionalWeightsWarning) as caught:
        call()
    assert {one.filename for one in caught} == {__file__}
