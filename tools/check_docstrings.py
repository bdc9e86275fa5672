"""Check the docstrings of everything public by numpydoc; exit with 1 where one fails.

Run ``python tools/check_docstrings.py``.
"""

import inspect
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass

from numpydoc.validate import validate

import calibrant as cb
from calibrant.calibrators.registry import METHODS

CHECKED = {
    "GL02": "closing quotes on a line of their own",
    "GL03": "no double blank lines",
    "GL05": "no tabs",
    "GL06": "known sections",
    "GL07": "sections in order",
    "GL08": "there is a docstring",
    "SS01": "there is a summary",
    "SS02": "it starts with a capital letter",
    "SS03": "it ends with a period",
    "SS05": "it starts with an infinitive",
    "SS06": "it fits into one line",
    "PR01": "all parameters are described",
    "PR02": "no others are",
    "PR03": "in their order",
    "PR04": "with a type",
    "PR07": "and a description",
    "PR08": "that starts with a capital letter",
    "PR09": "and ends with a period",
    "PR10": "spaced as it should be",
    "RT01": "what is returned is described",
    "RT03": "with a description",
    "RT04": "that starts with a capital letter",
    "RT05": "and ends with a period",
    "SA01": "there is a See Also",
    "EX01": "there is an example",
}
"""What is checked of functions and classes."""
SPECIAL = property | classmethod | staticmethod
OF_METHODS = set(CHECKED) - {"SA01", "EX01", "RT01"}
"""What is checked of methods and properties, whose class has the examples, and of
calibrators, of which the function that makes them has some."""
OF_RESULTS = set(CHECKED) - {"PR01"}
"""What is checked of dataclasses: users read their attributes, and do not make them."""


def public_names() -> Iterator[tuple[str, set[str]]]:
    """Give the names of public things, and what is checked of each."""
    for calibrator in {method.calibrator for method in METHODS.values()}:
        yield f"{calibrator.__module__}.{calibrator.__qualname__}", OF_METHODS
    for thing in (getattr(cb, name) for name in cb.__all__):
        if inspect.isclass(thing) or inspect.isfunction(thing):
            name = f"{thing.__module__}.{thing.__qualname__}"
            yield name, OF_RESULTS if is_dataclass(thing) else set(CHECKED)
        if inspect.isclass(thing):
            for member, value in vars(thing).items():
                if member[0] != "_" and (callable(value) or isinstance(value, SPECIAL)):
                    yield f"{name}.{member}", OF_METHODS


def main() -> None:
    """Print what is missing."""
    failed = 0
    for name, checked in public_names():
        for code, message in validate(name)["errors"]:
            if code in checked:
                failed += 1
                sys.stdout.write(f"{name}: {code} {message}\n")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
