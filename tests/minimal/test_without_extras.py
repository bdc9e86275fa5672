"""What works with NumPy, SciPy, scikit-learn and narwhals alone.

`make minimal` runs this file where no extra is installed, and `make wheel` where only
the built wheel is. So nothing here may import another library.
"""

import subprocess
import sys

import numpy as np
import pytest

import calibrant as cb


@pytest.fixture(scope="module")
def forest():
    return cb.datasets.load_binary("forest")


@pytest.mark.parametrize("method", cb.calibrator_names("binary"))
def test_every_binary_method_fits_transforms_and_measures(method, forest):
    p, y = forest
    calibrated = cb.make_calibrator(method).fit(p, y).transform(p)
    assert np.mean((calibrated - y) ** 2) < np.mean((p - y) ** 2)
    assert 0.05 < cb.calibration_error(y, p, method=method) < 0.15


@pytest.mark.parametrize(
    "method",
    [m for m in cb.calibrator_names("multi-class") if not m.startswith("iop")],
)
def test_every_multiclass_method_without_torch_fits_and_transforms(method):
    prob, digit = cb.datasets.load_multiclass("forest")
    calibrated = cb.make_calibrator(method).fit(prob[:900], digit[:900])
    repaired = calibrated.transform(prob[900:])
    np.testing.assert_allclose(repaired.sum(axis=1), 1.0, atol=1e-9)


def test_intervals_tests_and_checks_need_no_extra(forest):
    p, y = forest
    columns = cb.evaluate(y, p, methods=["smooth", "es15"]).frame()
    assert (columns["low"] <= columns["value"]).all()
    assert cb.calibration_test(y, p).pvalue < 0.01
    assert "CAL002" in cb.diagnose(y, p).codes


def test_maps_are_stored_and_read_again(forest, tmp_path):
    p, y = forest
    fitted = cb.make_calibrator("smooth").fit(p, y)
    cb.save_map(fitted.map_, tmp_path / "map.json")
    again = cb.load_map(tmp_path / "map.json")
    np.testing.assert_array_equal(again.transform(p), fitted.transform(p))


def test_the_command_line_says_what_to_install_where_it_is_missing():
    done = subprocess.run(
        [sys.executable, "-m", "calibrant", "methods"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        assert done.returncode == 2
        assert "pip install 'calibrant[cli]'" in done.stderr
    else:
        assert "smooth" in done.stdout
