import numpy as np
from numpy.testing import assert_allclose

import calibrant as cb


def test_each_bin_predicts_the_mean_of_its_scaled_values(smooth_sample):
    p, y = smooth_sample
    order = np.argsort(p)
    scaled = cb.make_calibrator("platt").fit(p, y).transform(p[order])
    expected = np.repeat([part.mean() for part in np.array_split(scaled, 15)], 40)
    found = cb.make_calibrator("scaling-binning").fit(p, y).transform(p[order])
    assert_allclose(found, expected, atol=1e-12)


def test_bins_and_smoothing_are_parameters(smooth_sample):
    p, y = smooth_sample
    few = cb.make_calibrator("scaling-binning", bins=4).fit(p, y)
    assert np.unique(few.transform(p)).size == few.fit_.pieces == 4
    smoothed = cb.make_calibrator("scaling-binning", bins=4, smoothing=True).fit(p, y)
    assert not np.allclose(few.transform(p), smoothed.transform(p), atol=1e-6)


def test_the_map_may_be_taken_to_any_place(smooth_sample):
    fitted = cb.make_calibrator("scaling-binning").fit(*smooth_sample)
    assert (np.diff(fitted.transform(np.linspace(0, 1, 500))) >= 0).all()
