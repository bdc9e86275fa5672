"""A small design, and families that count or fail."""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from calibrant.calibrators.binned import Binned
from calibrant.experiments import Contender, Design, SyntheticTruth
from calibrant.experiments.tables import KINDS, ResultTable


@dataclass(frozen=True)
class CountedBins:
    """Five bins; every fit leaves a line in a file."""

    path: str
    pause: float = 0.0

    def fit_sample(self, sample):
        with Path(self.path).open("a") as file:
            file.write(f"{os.getpid()}\n")
        time.sleep(self.pause)
        return Binned(bins=5).fit_event(sample)


@dataclass(frozen=True)
class Failing:
    """Cannot be fitted on samples of even size."""

    def fit_sample(self, sample):
        if sample.n % 2 == 0:
            raise ZeroDivisionError("even")
        return Binned(bins=5).fit_event(sample)


@pytest.fixture
def small_design():
    """Return a function that makes a design of given contenders, quickly done."""

    def make(*contenders, sizes=(101, 200), seeds=(0, 1), errors=(0.0, 0.05)):
        return Design(
            contenders=contenders or [Contender.of("es15"), Contender.of("pl")],
            truths=[
                SyntheticTruth(shape, error, test_rows=2000)
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
    from calibrant.experiments import digit_models

    rows = {"train": 300, "cal": 600, "test": 2500, "holdout": 14_000}
    return digit_models(rows=rows, folder=tmp_path_factory.mktemp("digits"))


@pytest.fixture
def table():
    """Two shapes, three methods; the first as printed."""
    return ResultTable(
        KINDS["calmap"],
        ("square", "sqrt"),
        ("es15", "platt", "mine"),
        np.array([[24.76, 9.48, 9.0], [24.78, 12.0, 13.0]]),
        np.array([[1.0, 2.0, np.nan], [1.0, 2.0, 3.0]]),
        np.array([[24.76, 9.48, np.nan], [24.78, 11.82, np.nan]]),
        15,
        0,
    )


@pytest.fixture
def logits():
    rng = np.random.default_rng(3)
    return rng.normal(size=(200, 4)).astype(np.float32), rng.integers(0, 4, 200)
