"""What can go wrong: errors are a `CalibrantError`, warnings a `CalibrantWarning`."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Self, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


LISTED = 12
"""How many known names an error message lists."""


@dataclass(frozen=True)
class Argument:
    """A parameter that a message names; each interface writes it in its own way.

    Attributes
    ----------
    name : str
        Name of the parameter.
    """

    name: str

    def __str__(self) -> str:
        """Write the parameter as Python does."""
        return self.name


@dataclass(frozen=True)
class Setting(Argument):
    """A parameter with a value.

    Attributes
    ----------
    name : str
        Name of the parameter.
    value : object
        What it is set to; the ellipsis stands for any value.

    Examples
    --------
    >>> print(Setting("scale", "logit"), Setting("pos_label"))
    scale="logit" pos_label=...
    """

    value: Any = ...

    def __str__(self) -> str:
        """Write the setting as a keyword of Python."""
        if self.value is ...:
            return f"{self.name}=..."
        quoted = isinstance(self.value, str) and '"' not in self.value
        return f"{self.name}=" + (f'"{self.value}"' if quoted else repr(self.value))


Text: TypeAlias = tuple["str | Argument", ...]
"""Parts of a message: sentences, and the parameters that they name."""


DROP_ROWS: Text = ("Drop or repair these rows first.",)
"""The way out where only the user can drop rows."""


def _nearest(name: str, names: list[str]) -> list[str]:
    """Return the names most like `name`, whatever the case of its letters."""
    by_case = {known.lower(): known for known in names}
    if name.lower() in by_case:
        return [by_case[name.lower()]]
    return get_close_matches(name, names, n=2, cutoff=0.5)


class CalibrantError(Exception):
    """Base of everything that calibrant raises on purpose."""

    def __str__(self) -> str:
        return self.text()

    def text(self, write: Callable[[Argument], str] = str) -> str:
        """Return the message, with parameters written as an interface writes them."""
        return "".join(
            write(part) if isinstance(part, Argument) else str(part)
            for part in self.args
        )


class InputError(CalibrantError, ValueError):
    """The data cannot be used as they are.

    Attributes
    ----------
    argument : str
        What was passed: the name of an argument, or of a column.
    rule : str
        What it must be.
    fault : str
        What it is instead, and where.
    place : tuple of int or None
        Row, and column of a matrix, of the first value that breaks the rule.
    value : object
        That value.
    remedy : tuple
        What to do, as text and settings.

    Examples
    --------
    >>> remedy = ("If these are logits, pass ", Setting("scale", "logit"), ".")
    >>> print(InputError.of("p", "must be at most 1", "row 2 is 1.7", remedy))
    p must be at most 1; row 2 is 1.7. If these are logits, pass scale="logit".
    """

    argument = ""
    rule = ""
    fault = ""
    place: tuple[int, ...] | None = None
    value: Any = None
    remedy: Text = ()

    @classmethod
    def of(
        cls,
        argument: str | Argument,
        rule: str,
        fault: str,
        remedy: Text = (),
        *,
        place: tuple[int, ...] | None = None,
        value: Any = None,
    ) -> Self:
        """Build the error from what it is made of."""
        gap = (" ",) if remedy else ()
        error = cls(argument, f" {rule}; {fault}.", *gap, *remedy)
        error.argument, error.rule, error.fault = str(argument), rule, fault
        error.place, error.value, error.remedy = place, value, remedy
        return error

    def suggest_dropping(self) -> Self:
        """Return the same error, which also says how to drop such rows."""
        drop = Setting("bad_rows", "drop")
        if self.remedy in ((), DROP_ROWS):
            return self.with_remedy("Repair these rows, or drop them: ", drop, ".")
        return self.with_remedy(*self.remedy, " To drop such rows, pass ", drop, ".")

    def with_remedy(self, *remedy: str | Argument) -> Self:
        """Return the same error with another way out."""
        return self._changed(self.fault, remedy)

    def with_fault(self, fault: str) -> Self:
        """Return the same error, which says otherwise what is wrong and where."""
        return self._changed(fault, self.remedy)

    def _changed(self, fault: str, remedy: Text) -> Self:
        given, place, value = self.args[0], self.place, self.value
        return self.of(given, self.rule, fault, remedy, place=place, value=value)


class EmptyInputError(InputError):
    """There are no rows."""


class ShapeError(InputError):
    """An array has the wrong number of dimensions or columns."""


class LengthMismatchError(InputError):
    """Two columns differ in length."""


class MissingValueError(InputError):
    """A value is NaN, infinite, null or masked."""


class ProbabilityRangeError(InputError):
    """A probability lies outside [0, 1]."""


class ScaleError(ProbabilityRangeError):
    """Predictions are on another scale than the one that was said."""


class RowSumError(InputError):
    """The class probabilities of a row do not sum to 1."""


class DroppedRowsError(InputError):
    """More rows would be dropped than may be."""


class LabelError(InputError):
    """Labels are not what the task needs."""


class WeightError(InputError):
    """Sample weights are negative, or none is positive."""


class OptionError(CalibrantError, ValueError):
    """A parameter has a value that it cannot have."""


class UnknownNameError(OptionError):
    """Nothing of that name exists."""

    @classmethod
    def among(cls, what: str | Argument, name: object, known: Iterable[object]) -> Self:
        """Build the message that lists what exists, nearest names first.

        Examples
        --------
        >>> print(UnknownNameError.among("method", "es_cv", ["es15", "es-cv"]))
        unknown method 'es_cv'; did you mean 'es-cv'? known: 'es15', 'es-cv'.
        """
        names = list(known)
        near = _nearest(str(name), [str(known_name) for known_name in names])
        hint = f" did you mean {' or '.join(map(repr, near))}?" if near else ""
        listed = ", ".join(map(repr, names[:LISTED])) or "none"
        more = len(names) - LISTED
        rest = f" and {more} more" if more > 0 else ""
        return cls("unknown ", what, f" {name!r};{hint} known: {listed}{rest}.")


class TooFewRowsError(OptionError):
    """A method asks for more than the rows can give."""


class MapFormatError(CalibrantError, ValueError):
    """A stored map is damaged, or was not written by calibrant."""


class SourceError(CalibrantError, ValueError):
    """A file cannot be read as a table of predictions."""


class MissingDependencyError(CalibrantError, ImportError):
    """An optional dependency is needed and not installed."""

    @classmethod
    def for_extra(cls, what: str, package: str, extra: str) -> Self:
        """Build the message that names the package and the extra that brings it."""
        return cls(
            f"{what} needs {package}, which is not installed; "
            f"install it with: pip install 'calibrant[{extra}]'"
        )


class CalibrantWarning(UserWarning):
    """Base of everything that calibrant warns about."""


class SmallSampleWarning(CalibrantWarning):
    """There are too few rows for a calibration error to mean much."""


class DroppedRowsWarning(CalibrantWarning):
    """Invalid rows were dropped."""


class MissingGroupWarning(CalibrantWarning):
    """Some rows have no value of the column that names their group."""


class UnpairedRowsWarning(CalibrantWarning):
    """Some rows of models that are compared have no partner."""


class FractionalWeightsWarning(CalibrantWarning):
    """Weights are taken for counts, but look like something else."""


class LabelWarning(CalibrantWarning):
    """Labels that are computed from two columns say the same of every row."""


class ScaleWarning(CalibrantWarning):
    """Predictions look like those of another scale than the one that was given."""


class FewerPiecesWarning(CalibrantWarning):
    """The data cannot support as many pieces as were asked for."""


class FewerDiagramsWarning(CalibrantWarning):
    """A figure cannot show all classes or groups."""


class FallingMapWarning(CalibrantWarning):
    """A fitted map assigns lower probabilities to higher predictions."""


class UpsideDownWarning(CalibrantWarning):
    """The event happens significantly less often where predictions are higher."""


class OutsideRangeWarning(CalibrantWarning):
    """A map is applied far outside the range of predictions that it was fitted on."""


class FailedCellsWarning(CalibrantWarning):
    """Methods raised errors in some cells of an experiment."""
