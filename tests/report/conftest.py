"""Reports that several tests look at."""

from datetime import UTC, datetime

import numpy as np
import pytest

import calibrant as cb
from calibrant.checks.check import Finding

HOSTILE = "</script><img src=x onerror=window.hacked=1>{{7*7}}'\"&"
FORMULA = "=HYPERLINK(1)"
FAST = {
    "methods": ["es15"],
    "n_resamples": 20,
    "created": datetime(2024, 5, 17, 12, 0, tzinfo=UTC),
}


def _rows(n=3000):
    rng = np.random.default_rng(2)
    truth = rng.beta(1, 1.5, n)
    y = (rng.random(n) < truth).astype(int)
    bold = 1 / (1 + np.exp(-2.0 * np.log(truth / (1 - truth))))
    region = rng.choice([HOSTILE, FORMULA, "north"], n)
    return {"label": y, "good": truth, HOSTILE: bold, "region": region}


def _fault(code="CAL001", severity="severe", **options):
    fields = {"message": "m", "remedy": "platt makes it.", "calibrator": "platt"}
    return Finding(code, "t", severity, **fields | options)


@pytest.fixture(scope="session")
def fault():
    """Make a finding."""
    return _fault


@pytest.fixture(scope="session")
def hostile():
    """A name that would be markup, script and template if it could."""
    return HOSTILE


@pytest.fixture(scope="session")
def fast():
    """Options of a report that is made in no time."""
    return FAST


@pytest.fixture(scope="session")
def rows():
    """Two models, one calibrated and one over-confident, with hostile names."""
    return _rows


@pytest.fixture(scope="session")
def report():
    """A report of both models and of groups, with all methods of a page."""
    return cb.Report.from_predictions(
        cb.Predictions.from_table(_rows(), y="label", p=["good", HOSTILE], by="region"),
        title=HOSTILE,
        **FAST | {"methods": ["smooth", "pl", "es15", "ew15"], "n_resamples": 50},
    )
