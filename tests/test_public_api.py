import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import calibrant as cb

ROOT = Path(__file__).parents[1]


def run_python(code):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_all_names_resolve_and_are_listed():
    assert dir(cb) == sorted(cb.__all__)
    for name in cb.__all__:
        assert getattr(cb, name) is not None


def test_names_and_signatures_are_as_recorded():
    """A change of the surface is recorded by tests/golden/record_public_api.py."""
    recorder = runpy.run_path(str(ROOT / "tests" / "golden" / "record_public_api.py"))
    recorded = recorder["RECORD"].read_text(encoding="utf-8").splitlines()
    assert recorder["surface"]() == recorded


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = cb.nonsense


def test_importing_loads_nothing_heavy_and_says_nothing():
    heavy = {"numpy", "scipy", "sklearn", "matplotlib", "polars", "narwhals", "typer"}
    code = f"import calibrant, sys; print({heavy} & set(sys.modules))"
    assert run_python(code) == "set()\n"


def test_evaluating_arrays_does_not_load_scikit_learn():
    code = (
        "import calibrant as cb, sys; p, y = cb.datasets.load_binary('forest');"
        "cb.evaluate(y, p); print('sklearn' in sys.modules)"
    )
    assert run_python(code) == "False\n"


def test_every_public_thing_has_an_example():
    for name in cb.__all__:
        thing = getattr(cb, name)
        if callable(thing) and not isinstance(thing, type):
            assert ">>>" in thing.__doc__, name
            assert "Parameters\n" in thing.__doc__ or name == "calibrator_names"


def test_names_of_the_readme_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in set(re.findall(r"\bcb\.([A-Za-z_]+)", text)):
        assert hasattr(cb, name), name
