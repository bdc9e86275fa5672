"""Verbs with clusters: wider intervals, fewer false alarms, errors that say why."""

import numpy as np
import pytest
from tests.numerics.test_cluster_dependence import copies, correlated

import calibrant as cb


@pytest.fixture(scope="module")
def rows():
    sample = correlated(60, 20, 0.4, seed=11)
    return sample.y, sample.p, sample.clusters


def width(frame):
    return float(frame["high"][0] - frame["low"][0])


@pytest.mark.parametrize("method", ["smooth", "es15", "kce"])
def test_intervals_are_wider_with_clusters(rows, method):
    y, p, clusters = rows
    plain = cb.evaluate(y, p**2, methods=method).frame()
    clustered = cb.evaluate(y, p**2, methods=method, clusters=clusters).frame()
    assert width(clustered) > 1.2 * width(plain)


def test_differences_are_less_certain_with_clusters(rows):
    y, p, clusters = rows
    models = {"a": p, "b": p**2}
    plain = cb.compare(y, models, n_resamples=300).pairs()
    clustered = cb.compare(y, models, n_resamples=300, clusters=clusters).pairs()
    assert width(clustered) > 1.2 * width(plain)


@pytest.mark.parametrize("method", ["smooth", "cox", "spiegelhalter"])
def test_copies_of_rows_are_no_more_evidence(method):
    once, many = copies(600, 4, seed=3)
    alone = cb.calibration_test(once.y, once.p, method=method)
    four = cb.calibration_test(many.y, many.p, method=method, clusters=many.clusters)
    assert np.log(four.pvalue) == pytest.approx(np.log(alone.pvalue), rel=0.15)


@pytest.mark.parametrize("method", ["kce", "hosmer-lemeshow"])
def test_tests_of_independent_rows_refuse_clusters(rows, method):
    y, p, clusters = rows
    with pytest.raises(cb.exceptions.OptionError, match="independent; with clusters"):
        cb.calibration_test(y, p, method=method, clusters=clusters)


def test_bands_and_dots_are_wider_with_clusters(rows):
    y, p, clusters = rows
    plain = cb.ReliabilityDisplay.from_predictions(y, p)
    clustered = cb.ReliabilityDisplay.from_predictions(y, p, clusters=clusters)
    for part in ("bins", "band"):
        narrow, wide = plain.frame(part), clustered.frame(part)
        assert np.mean(wide["high"] - wide["low"]) > 1.1 * np.mean(
            narrow["high"] - narrow["low"]
        )


def test_groups_have_the_clusters_of_their_rows(rows):
    y, p, clusters = rows
    half = clusters % 2
    both = cb.evaluate(y, p, groups=half, clusters=clusters, methods="smooth").frame()
    first = cb.evaluate(
        y[half == 0], p[half == 0], clusters=clusters[half == 0], methods="smooth"
    ).frame()
    assert both["high"][0] == first["high"][0]


def test_a_group_of_one_cluster_is_skipped(rows):
    y, p, clusters = rows
    groups = np.where(clusters == 0, "one", "many")
    with pytest.warns(cb.exceptions.SmallSampleWarning, match="at least 2 clusters"):
        found = cb.evaluate(y, p, groups=groups, clusters=clusters, methods="smooth")
    assert found.frame()["group"].tolist() == ["many"]
