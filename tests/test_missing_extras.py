"""Without an extra, what needs it says which one."""

import sys

import pytest

import calibrant as cb
from calibrant.exceptions import MissingDependencyError


def test_drawing_names_the_plot_extra(monkeypatch, sample):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    p, y = sample
    display = cb.ReliabilityDisplay.from_predictions(y, p)
    with pytest.raises(MissingDependencyError, match=r"calibrant\[plot\]"):
        display.plot()


@pytest.mark.parametrize("method", ["iop-oi", "iop-op", "iop-diag"])
def test_order_preserving_networks_name_the_torch_extra(monkeypatch, method):
    monkeypatch.setitem(sys.modules, "torch", None)
    prob, digit = cb.datasets.load_multiclass("forest")
    calibrator = cb.make_calibrator(method)
    with pytest.raises(
        MissingDependencyError,
        match=rf"fitting {method} needs torch.*pip install 'calibrant\[torch\]'",
    ):
        calibrator.fit(prob, digit)


def test_fitted_order_preserving_maps_need_no_torch(monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed (make heavy)")
    prob, digit = cb.datasets.load_multiclass("forest")
    fitted = cb.make_calibrator("iop-diag", folds=2, max_steps=10).fit(prob, digit)
    stored = fitted.map_.to_dict()
    monkeypatch.setitem(sys.modules, "torch", None)
    again = cb.map_from_dict(stored).transform(prob)
    assert (again == fitted.transform(prob)).all()


def test_reading_files_names_the_data_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(
        ImportError, match=r"reading .csv files needs polars.*calibrant\[data\]"
    ):
        cb.evaluate(
            cb.Predictions.from_table(cb.datasets.BINARY_FILE, y="even", p="forest")
        )


@pytest.mark.parametrize(
    ("engine", "package", "extra"),
    [("duckdb", "duckdb", "data"), ("spark", "pyspark", "spark")],
)
def test_engines_name_their_extra(monkeypatch, engine, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingDependencyError, match=rf"calibrant\[{extra}\]"):
        cb.Predictions.from_table(
            cb.datasets.BINARY_FILE, y="even", p="bayes", engine=engine
        ).aggregate()
