"""Methods by name: the same names in Python, on the command line and in tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from calibrant.calibrators.binned import CrossValidatedBins, FixedBins, SweptBins
from calibrant.calibrators.isotonic import Isotonic
from calibrant.calibrators.kde import KernelDensity
from calibrant.calibrators.kernel import KernelError
from calibrant.calibrators.logistic import Beta, Platt
from calibrant.calibrators.piecewise import PiecewiseLinear
from calibrant.calibrators.scaling_binning import ScalingBinning
from calibrant.calibrators.searched_pieces import SearchedPieces
from calibrant.calibrators.spline import CumulativeSpline
from calibrant.exceptions import OptionError, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from calibrant.calibrators.base import Family

BINS_IN_NAME = re.compile(r"(es|ew)(\d{1,9})")
SPACINGS = {"es": "size", "ew": "width"}


@dataclass(frozen=True)
class Method:
    """A name, the family behind it and what the name fixes.

    Attributes
    ----------
    name : str
        As users write it.
    summary : str
        One line for people.
    family : type
        The dataclass of hyper-parameters.
    fixed : dict
        Hyper-parameters that the name decides.
    loss : str
        What the family is fitted by.
    squared : bool
        Whether the error is a squared norm whatever the exponent asked for.
    """

    name: str
    summary: str
    family: type[Any]
    fixed: dict[str, Any] = field(default_factory=dict)
    loss: str = "Brier"
    squared: bool = False

    def defaults(self) -> dict[str, Any]:
        """Return the hyper-parameters that are free, with their defaults."""
        return {
            f.name: f.default for f in fields(self.family) if f.name not in self.fixed
        }

    def build(self, **params: Any) -> Family:
        """Return the family with the given hyper-parameters."""
        free = self.defaults()
        for name in params:
            if name in self.fixed:
                raise OptionError(
                    f"{name} is fixed by the method's name {self.name!r} "
                    f"(to {self.fixed[name]!r}); choose another method instead."
                )
            if name not in free:
                raise UnknownNameError.among(f"parameter of {self.name}", name, free)
        family: Family = self.family(**self.fixed, **params)
        return family


def _binned_methods() -> list[Method]:
    methods = []
    for prefix, kind in (("es", "equal-size"), ("ew", "equal-width")):
        spacing = {"spacing": SPACINGS[prefix]}
        methods += [
            Method(
                f"{prefix}15",
                f"15 {kind} bins; any number of bins: {prefix}<k>",
                FixedBins,
                {"bins": 15, **spacing},
            ),
            Method(
                f"{prefix}-cv",
                f"{kind} bins, their number by cross-validation",
                CrossValidatedBins,
                spacing,
            ),
            Method(
                f"{prefix}-sweep",
                f"{kind} bins, as many as keep the diagram monotone",
                SweptBins,
                spacing,
            ),
        ]
    return methods


def _piecewise_methods() -> list[Method]:
    methods = []
    for name, scale, where in (
        ("pl", "prob", "piecewise linear"),
        ("pl3", "logit", "piecewise linear between logits"),
    ):
        methods += [
            Method(
                name,
                f"{where}, pieces by cross-validation",
                PiecewiseLinear,
                {"scale": scale, "loss": "log-loss"},
                "log-loss",
            ),
            Method(
                f"{name}-mse",
                f"{where}, pieces by cross-validation",
                PiecewiseLinear,
                {"scale": scale, "loss": "brier"},
            ),
        ]
    for name, degree, what in (("pl-de", 1, "linear"), ("pl-de2", 2, "quadratic")):
        summary = (
            f"piecewise {what}, knots by global search, pieces by cross-validation"
        )
        methods.append(Method(name, summary, SearchedPieces, {"degree": degree}))
    return methods


def _other_methods() -> list[Method]:
    return [
        Method("platt", "logistic regression on the logit", Platt, loss="log-loss"),
        Method("beta", "beta calibration (abm; also ab, am)", Beta, loss="log-loss"),
        Method("isotonic", "the best map that does not fall", Isotonic),
        Method(
            "scaling-binning",
            "platt, averaged over 15 equal-size bins",
            ScalingBinning,
            loss="log-loss",
        ),
        *(
            Method(
                f"spline-{runout}",
                f"splines of cumulated labels, {ends}; knots by cross-validation",
                CumulativeSpline,
                {"runout": runout},
            )
            for runout, ends in (
                ("natural", "straight at the ends"),
                ("cubic", "cubic at the ends"),
                ("parabolic", "parabolic at the ends"),
            )
        ),
        Method("kde", "ratio of kernel density estimates", KernelDensity, loss="none"),
    ]


METHODS: dict[str, Method] = {
    method.name: method
    for method in (*_binned_methods(), *_piecewise_methods(), *_other_methods())
}

EVALUATORS: dict[str, Method] = {
    "kce": Method(
        "kce",
        "squared kernel calibration error, unbiased; measures only, no map",
        KernelError,
        loss="-",
        squared=True,
    ),
}
"""Methods that estimate the error without a map: what they fit is an `ErrorFit`."""


def find_evaluator(name: str) -> Method:
    """Return the method of that name, whether it has a map or not."""
    if isinstance(name, str) and name in EVALUATORS:
        return EVALUATORS[name]
    return _find(name, [*METHODS, *EVALUATORS])


def find_method(name: str) -> Method:
    """Return the method of that name, or raise with the nearest names.

    Examples
    --------
    >>> find_method("es20").fixed
    {'bins': 20, 'spacing': 'size'}
    """
    if isinstance(name, str) and name in EVALUATORS:
        raise OptionError(
            f"method {name!r} only measures: it has no calibration map, so it can "
            f"neither calibrate nor be drawn. Use it in calibration_error, evaluate "
            f"or calibration_test, and for a map another method, such as 'pl'."
        )
    return _find(name, METHODS)


def _find(name: str, known: Iterable[str]) -> Method:
    if not isinstance(name, str):
        raise UnknownNameError.among("method", name, known)
    if name in METHODS:
        return METHODS[name]
    numbered = BINS_IN_NAME.fullmatch(name)
    if numbered is None:
        raise UnknownNameError.among("method", name, known)
    prefix, bins = numbered.group(1), int(numbered.group(2))
    if bins < 1:
        raise OptionError(
            f"method {name!r} asks for {bins} bins; at least 1 is needed."
        )
    return Method(
        name,
        METHODS[f"{prefix}15"].summary.replace("15", str(bins), 1),
        FixedBins,
        {"bins": bins, "spacing": SPACINGS[prefix]},
    )


def calibrator_names() -> list[str]:
    """Return the names of all methods that have a calibration map.

    Returns
    -------
    list of str
        Names for `make_calibrator`, `calibration_error`, diagrams and the command
        line. A trailing number is the number of bins and may be any other. Errors
        can also be estimated by "kce", which has no map.

    Examples
    --------
    >>> import calibrant as cb
    >>> "pl3" in cb.calibrator_names()
    True
    """
    return list(METHODS)
