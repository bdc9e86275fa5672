import numpy as np
from hypothesis import given
from numpy.testing import assert_allclose
from sklearn.isotonic import IsotonicRegression

import calibrant as cb
from calibrant.core.sample import BinarySample
from calibrant.numerics.sorted_rows import sorted_rows
from strategies import binary_samples

GRID = np.linspace(0, 1, 201)


def test_between_and_beyond_rows_the_map_is_scikit_learns(sample):
    p, y = sample
    weight = np.arange(p.size) % 4 + 1.0
    ours = cb.make_calibrator("isotonic").fit(p, y, sample_weight=weight)
    theirs = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip")
    theirs.fit(p, y, sample_weight=weight)
    assert_allclose(ours.transform(GRID), theirs.predict(GRID), atol=1e-12)


def test_steps_agree_with_lines_at_the_rows(smooth_sample):
    p, y = smooth_sample
    lines = cb.make_calibrator("isotonic").fit(p, y)
    steps = cb.make_calibrator("isotonic", evaluation="step").fit(p, y)
    assert_allclose(steps.transform(p), lines.transform(p), atol=1e-12)
    assert np.unique(steps.transform(GRID)).size <= steps.fit_.n_pieces
    assert np.abs(steps.transform(GRID) - lines.transform(GRID)).max() > 0.01


def test_maps_do_not_fall(smooth_sample):
    for evaluation in ("interpolate", "step"):
        fitted = cb.make_calibrator("isotonic", evaluation=evaluation)
        assert (np.diff(fitted.fit(*smooth_sample).transform(GRID)) >= 0).all()


@given(binary_samples(min_size=2))
def test_sorting_with_labels_is_sorting_by_prediction_then_label(sample):
    p, y = sample
    order = np.lexsort((y, p))
    found = sorted_rows(BinarySample(p, y))
    assert np.array_equal(found.p, p[order])
    assert np.array_equal(found.y, y[order])


def test_a_negative_zero_is_the_smallest_prediction():
    found = sorted_rows(
        BinarySample(np.array([0.5, -0.0, 0.2]), np.array([1.0, 0.0, 1.0]))
    )
    assert found.p.tolist() == [0.0, 0.2, 0.5]
