"""A small design, and families that count or fail."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from calibrant.calibrators.binned import FixedBins
from calibrant.experiments import Contender, Design, SyntheticTruth


@dataclass(frozen=True)
class CountedBins:
    """Five bins; every fit leaves a line in a file."""

    path: str
    pause: float = 0.0

    def fit(self, sample):
        with Path(self.path).open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(self.pause)
        return FixedBins(bins=5).fit(sample)


@dataclass(frozen=True)
class Failing:
    """Cannot be fitted on samples of even size."""

    def fit(self, sample):
        if sample.n % 2 == 0:
            raise ZeroDivisionError("even")
        return FixedBins(bins=5).fit(sample)


@pytest.fixture
def small_design():
    """Return a function that makes a design of given contenders, quickly done."""

    def make(*contenders, sizes=(101, 200), seeds=(0, 1), errors=(0.0, 0.05)):
        return Design(
            contenders=contenders or [Contender.of("es15"), Contender.of("pl")],
            truths=[
                SyntheticTruth.of(shape, error, test_rows=2000)
                for shape in ("square", "beta2")
                for error in errors
            ],
            sizes=sizes,
            seeds=seeds,
        )

    return make


@pytest.fixture
def counted_bins():
    return CountedBins


@pytest.fixture
def failing():
    return Failing()


@pytest.fixture(scope="session")
def small_digits(tmp_path_factory):
    """The embedded digits with few rows, in a folder of their own."""
    from calibrant.experiments.embedded import embedded_predictions

    rows = {"train": 300, "cal": 600, "test": 2500, "holdout": 12_000}
    return embedded_predictions(rows=rows, folder=tmp_path_factory.mktemp("digits"))
