"""Each category for some seconds; ``make fuzz`` takes minutes."""

import numpy as np
import pytest

from fuzz.driver import (
    NAMES,
    CaseId,
    explore,
    find_case,
    seconds_per_category,
    seed_of_the_day,
)


@pytest.mark.parametrize("category", NAMES)
def test_no_random_case_fails(category):
    seed = seed_of_the_day()
    found = explore(category, seed, seconds_per_category())
    print(f"{category}: {found.cases} cases of seed {seed}")  # noqa: T201
    for error in found.failures.values():
        raise error


def test_a_seed_draws_the_same_case_again(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        "fuzz.driver.find_case", lambda _: lambda r: drawn.append(r.random())
    )
    for _ in range(2):
        CaseId("sweep", 20240501, 3).run()
    CaseId("sweep", 20240501, 4).run()
    CaseId("isotonic", 20240501, 3).run()
    assert drawn[0] == drawn[1]
    assert len(set(drawn)) == 3


def test_a_failure_tells_how_to_run_its_case_again(monkeypatch):
    def fails_sometimes(rng):
        assert rng.random() < 0.5, "half of them"

    monkeypatch.setattr("fuzz.driver.find_case", lambda _: fails_sometimes)
    found = explore("sweep", "7", 0.2)
    assert 0.4 < len(found.failures) / found.cases < 0.6
    case, error = next(iter(found.failures.items()))
    assert error.__notes__ == [f"To run this case again: {case}"]
    again = explore("sweep", f"7-{case.number}", 1.0)
    assert list(again.failures) == [case]


def test_other_warnings_are_failures(monkeypatch):
    def divides(_):
        np.log(np.zeros(1))

    monkeypatch.setattr("fuzz.driver.find_case", lambda _: divides)
    found = explore("sweep", "7-0", 1.0)
    assert isinstance(next(iter(found.failures.values())), RuntimeWarning)


def test_unknown_categories_are_named():
    with pytest.raises(SystemExit, match="unknown category 'x'; known: "):
        find_case("x")
