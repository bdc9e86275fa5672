"""The examples of guides run next to the files that they read."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _next_to_the_inputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[1] / "data" / "inputs")
