import numpy as np
import pytest

import calibrant as cb


@pytest.mark.parametrize("classifier", cb.datasets.CLASSIFIERS)
def test_bundled_predictions_are_probabilities_of_real_classifiers(classifier):
    p, even = cb.datasets.load_binary(classifier)
    prob, digit = cb.datasets.load_multiclass(classifier)
    assert np.array_equal(even, digit % 2 == 0)
    assert np.abs(prob.sum(axis=1) - 1).max() < 1e-3
    assert ((p > 0.5) == even).mean() > 0.8
    assert (prob.argmax(axis=1) == digit).mean() > 0.85


def test_unknown_classifier_lists_the_known():
    with pytest.raises(cb.exceptions.UnknownNameError, match="did you mean 'forest'"):
        cb.datasets.load_binary("forrest")


def test_the_files_are_small():
    size = (
        cb.datasets.BINARY_FILE.stat().st_size
        + cb.datasets.MULTICLASS_FILE.stat().st_size
    )
    assert size < 300_000
