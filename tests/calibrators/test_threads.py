"""Fits solve small systems: in one thread, whoever asks for them."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from threadpoolctl import threadpool_info, threadpool_limits

import calibrant as cb
from calibrant.calibrators import auto
from calibrant.calibrators.logistic import Platt
from calibrant.calibrators.registry import METHODS
from calibrant.calibrators.smooth import Smooth
from calibrant.calibrators.temperature import Temperature
from calibrant.core.threads import one_blas_thread
from calibrant.numerics import smooth_curve_fits
from calibrant.numerics.smooth_curves import SmoothCurve

SEEN: list[int] = []


def threads():
    np.linalg.solve(np.eye(2), np.ones(2))
    return {
        one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"
    }


class WatchedPlatt(Platt):
    def fit_event(self, sample):
        SEEN.extend(threads())
        return super().fit_event(sample)


class WatchedSmooth(Smooth):
    def fit_event(self, sample):
        SEEN.extend(threads())
        return super().fit_event(sample)

    def fit_each(self, samples):
        SEEN.extend(threads())
        return super().fit_each(samples)

    def fit_classes(self, sample):
        SEEN.extend(threads())
        return super().fit_classes(sample)


class WatchedTemperature(Temperature):
    def fit_classes(self, sample):
        SEEN.extend(threads())
        return super().fit_classes(sample)


@pytest.fixture
def watched(monkeypatch):
    """Two methods that note how many threads they are fitted by; the user set two."""
    for name, one in {"platt": WatchedPlatt, "temperature": WatchedTemperature}.items():
        monkeypatch.setitem(METHODS, name, replace(METHODS[name], calibrator=one))
    monkeypatch.setattr(auto, "Smooth", WatchedSmooth)
    SEEN.clear()
    with threadpool_limits(2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("this machine's linear algebra has one thread only")
        yield SEEN
        assert threads() == {2}


def forest():
    p, y = cb.datasets.load_binary("forest")
    return y, p


def digits():
    prob, digit = cb.datasets.load_multiclass("forest")
    return digit, prob


def fit_a_model():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 200)
    X = rng.normal(y, 1.0, (3, 200)).T
    cb.CalibratedClassifier(GaussianNB(), "platt", cv=3).fit(X, y)


DOORS = {
    "one event": lambda: cb.make_calibrator("platt").fit(*forest()[::-1]),
    "classes": lambda: cb.make_calibrator("temperature").fit(*digits()[::-1]),
    "model": fit_a_model,
    "error": lambda: cb.calibration_error(*forest(), method="platt"),
    "score": lambda: cb.decompose_score(*forest(), recalibration="platt"),
    "diagram": lambda: cb.ReliabilityDisplay.from_predictions(
        *forest(), method="platt"
    ),
    "repairs": lambda: cb.Report.from_predictions(*forest(), methods="es15"),
    "repairs of classes": lambda: cb.Report.from_predictions(
        *digits(), task="confidence", methods="es15"
    ),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_fit_is_by_one_thread_and_leaves_the_setting(door, watched):
    DOORS[door]()
    assert set(watched) == {1}


def two_models():
    y, p = forest()
    return y, {"a": p, "b": p**2}


CURVE_DOORS = {
    "error": lambda: cb.calibration_error(*forest()),
    "errors": lambda: cb.evaluate(*forest(), methods=["es15", "smooth"]),
    "comparison": lambda: cb.compare(*two_models(), n_resamples=20),
    "summary": lambda: cb.summary(*forest()),
    "diagnosis": lambda: cb.diagnose(*forest(), groups=forest()[0]),
    "decisions": lambda: cb.decision_curve(*forest()).lost(),
    "diagram": lambda: cb.ReliabilityDisplay.from_predictions(*forest()),
    "report": lambda: cb.Report.from_predictions(*forest(), groups=forest()[0]),
    "report of models": lambda: cb.Report.from_predictions(
        *two_models(), n_resamples=20
    ),
    "repair": lambda: cb.make_calibrator("auto").fit(*forest()[::-1]),
    "repair of groups": lambda: cb.make_calibrator("auto").fit(
        *forest()[::-1], groups=forest()[0]
    ),
}


@pytest.mark.parametrize("door", CURVE_DOORS)
def test_every_curve_is_fitted_and_its_posterior_found_by_one_thread(
    door, watched, monkeypatch
):
    """The mathematics sets no threads: whoever asks for curves does."""

    def noting(work):
        def noted(*args, **options):
            SEEN.extend(threads())
            return work(*args, **options)

        return noted

    for name in ("_fit_terms", "_few_rows_curves"):
        work = noting(getattr(smooth_curve_fits, name))
        monkeypatch.setattr(smooth_curve_fits, name, work)
    drawn = noting(SmoothCurve._drawn)
    monkeypatch.setattr(SmoothCurve, "_drawn", drawn)
    CURVE_DOORS[door]()
    assert set(watched) == {1}


@pytest.mark.parametrize(
    ("file", "y", "p", "method"),
    [
        (cb.datasets.BINARY_FILE, "even", "forest", "platt"),
        (cb.datasets.MULTICLASS_FILE, "digit", "forest_*", "temperature"),
    ],
)
def test_the_command_fits_by_one_thread(file, y, p, method, watched, run, tmp_path):
    out = ("--method", method, "--out", tmp_path / "map.json")
    assert run("calibrate", file, "--y", y, "--p", p, *out)[0] == 0
    assert set(watched) == {1}


def test_experiments_fit_by_one_thread(watched, run, tmp_path):
    options = ("--quick", "--seeds", "1", "--methods", "platt", "--jobs", "1")
    assert run("reproduce", "synthetic", *options, "--out", tmp_path)[0] == 0
    assert set(watched) == {1}


@pytest.mark.usefixtures("watched")
def test_a_fit_that_fails_leaves_the_setting(monkeypatch):
    def fail(*_):
        raise RuntimeError("no fit")

    monkeypatch.setattr(WatchedPlatt, "fit_event", fail)
    p, y = cb.datasets.load_binary("forest")
    with pytest.raises(RuntimeError, match="no fit"):
        cb.make_calibrator("platt").fit(p, y)
    assert threads() == {2}


def in_a_thread(work):
    worker = threading.Thread(target=work)
    worker.start()
    return worker


def test_fits_that_overlap_restore_the_setting():
    """The first to enter leaves first: what the second found is not the setting."""
    first_in, second_in, first_out = (threading.Event() for _ in range(3))

    def first():
        with one_blas_thread():
            first_in.set()
            second_in.wait()
        first_out.set()

    def second():
        first_in.wait()
        with one_blas_thread():
            second_in.set()
            first_out.wait()

    before = threads()
    # Set by a thread that ends, the number belongs to nobody, as by the environment.
    in_a_thread(lambda: threadpool_limits(2, user_api="blas")).join()
    for worker in [in_a_thread(first), in_a_thread(second)]:
        worker.join()
    after = threads()
    in_a_thread(lambda: threadpool_limits(max(before), user_api="blas")).join()
    assert after == {2}
