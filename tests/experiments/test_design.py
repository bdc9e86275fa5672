"""Designs: what they refuse."""

import pytest

from calibrant.exceptions import OptionError
from calibrant.experiments import Design


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"contenders": []}, "contenders must have at least one"),
        ({"sizes": [10, 10]}, "sizes must have at least one entry and no duplicates"),
        ({"sizes": [0]}, "sizes must be a whole number of at least 1"),
        ({"seeds": [-1]}, "seeds must be a whole number of at least 0"),
    ],
)
def test_designs_are_checked(small_design, change, words):
    design = small_design()
    kept = {
        name: getattr(design, name)
        for name in ("contenders", "truths", "sizes", "seeds")
    }
    with pytest.raises(OptionError, match=words):
        Design(**(kept | change))
