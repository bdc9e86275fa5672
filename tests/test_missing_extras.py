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


def test_reading_files_names_the_data_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(
        ImportError, match=r"reading .csv files needs polars.*calibrant\[data\]"
    ):
        cb.evaluate_table(cb.datasets.BINARY_FILE, y="even", p="forest")
