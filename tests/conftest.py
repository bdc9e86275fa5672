"""Fixtures that several tests share."""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

mpl.use("Agg")
BROWSER_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_report_header():
    """Name the seed of the random cases."""
    from fuzz.driver import seed_of_the_day

    return f"seed of the random cases in tests/fuzz: {seed_of_the_day()}"


@pytest.fixture
def sample():
    """Predictions with ties and exact 0 and 1, labels that are over-confident."""
    rng = np.random.default_rng(7)
    p = np.round(rng.beta(0.7, 0.9, 500), 2)
    y = (rng.random(500) < 0.1 + 0.8 * p).astype(float)
    return p, y


@pytest.fixture
def smooth_sample():
    """Predictions without ties."""
    rng = np.random.default_rng(11)
    p = rng.random(600)
    y = (rng.random(600) < p**1.5).astype(float)
    return p, y


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real predictions, which is not part of the project."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    folder = Path(os.environ.get("CALIBRANT_SHARED_DATA", beside))
    if not folder.is_dir():
        pytest.skip("the shared data folder is not here (CALIBRANT_SHARED_DATA)")
    return folder


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command in this process; give exit code, stdout and stderr."""
    from calibrant.__main__ import main

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["calibrant", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        out = capsys.readouterr()
        return stopped.value.code or 0, out.out, out.err

    return call


def pytest_runtest_setup(item):
    """Skip what fits order-preserving networks where torch is missing, and say so."""
    params = getattr(item, "callspec", None)
    values = params.params.values() if params else ()
    if find_spec("torch") is None and any(str(v).startswith("iop") for v in values):
        pytest.skip("torch is not installed (make heavy)")


@pytest.fixture(scope="session")
def browser():
    """Chromium; without it the tests are skipped, unless they are required."""
    path = os.environ.get("CALIBRANT_CHROMIUM") or shutil.which("chromium")
    if path is None:
        told = "chromium is not installed (make browser)"
        if os.environ.get("CALIBRANT_REQUIRE_BROWSER"):
            pytest.fail(told)
        pytest.skip(told)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=BROWSER_FLAGS)
        yield chromium
        chromium.close()
