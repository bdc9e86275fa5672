"""Methods by name: the same names in Python, on the command line and in tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from calibrant.calibrators.binned import CrossValidatedBins, FixedBins, SweptBins
from calibrant.calibrators.diagonal_network import DiagonalNetwork
from calibrant.calibrators.isotonic import Isotonic
from calibrant.calibrators.kde import KernelDensity
from calibrant.calibrators.kernel import KernelError
from calibrant.calibrators.logistic import Beta, Platt
from calibrant.calibrators.order_preserving import OrderNetwork
from calibrant.calibrators.piecewise import PiecewiseLinear
from calibrant.calibrators.scaling_binning import ScalingBinning
from calibrant.calibrators.searched_pieces import SearchedPieces
from calibrant.calibrators.smooth import Smooth
from calibrant.calibrators.softmax_regression import MatrixScaling, VectorScaling
from calibrant.calibrators.spline import CumulativeSpline
from calibrant.calibrators.temperature import Temperature
from calibrant.calibrators.user_calibrator import UserFamily, is_calibrator
from calibrant.calibrators.wrappers import (
    OneTemperature,
    OneVsRestFamily,
    TopLabelFamily,
)
from calibrant.core.options import check_choice
from calibrant.exceptions import OptionError, Setting, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from calibrant.calibrators.base import Family
    from calibrant.core.array_types import Seed

Kind: TypeAlias = Literal["binary", "multi-class"]
"""Whether a method takes the probability of one event, or those of all classes."""


@dataclass(frozen=True)
class Method:
    """A name, the family behind it and the hyper-parameters that the name fixes.

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
        The loss that fitting minimises.
    kind : {"binary", "multi-class"}
        What the method takes.
    squared : bool
        Whether the error is a squared norm whatever the exponent asked for.
    wrapped : Method, optional
        The binary method that `family` applies to several classes.
    """

    name: str
    summary: str
    family: type[Any]
    fixed: dict[str, Any] = field(default_factory=dict)
    loss: str = "Brier"
    kind: Kind = "binary"
    squared: bool = False
    wrapped: Method | None = None

    def defaults(self) -> dict[str, Any]:
        """Return the hyper-parameters that are free, with their defaults."""
        if self.wrapped:
            return self.wrapped.defaults()
        return {
            f.name: f.default for f in fields(self.family) if f.name not in self.fixed
        }

    def build(self, **params: Any) -> Family:
        """Return the family with the given hyper-parameters."""
        family: Family
        if self.wrapped:
            family = self.family(self.wrapped.build(**params))
            return family
        if params and self.family is UserFamily:
            raise OptionError(
                f"{', '.join(params)} cannot be set from outside; set it on the "
                f"{self.name} itself."
            )
        free = self.defaults()
        for name in params:
            if name in self.fixed:
                raise OptionError(
                    f"{name} is fixed by the method's name {self.name!r} "
                    f"(to {self.fixed[name]!r}); choose another method instead."
                )
            if name not in free:
                raise UnknownNameError.among(f"parameter of {self.name}", name, free)
        family = self.family(**self.fixed, **params)
        return family

    def seeded(self, random_state: Seed, **params: Any) -> Family:
        """Return the family with a seed, where it draws anything at random.

        Examples
        --------
        >>> find_method("pl").seeded(7).random_state, find_method("beta").seeded(7)
        (7, Beta(variant='abm'))
        """
        if "random_state" in self.defaults():
            params["random_state"] = random_state
        return self.build(**params)


def _bins(name: str, bins: int) -> Method:
    """Return the method with a fixed number of bins, by how the name starts."""
    spacing, what = SPACINGS[name[:2]]
    summary = f"{bins} {what} bins; any number of bins: {name[:2]}<k>"
    return Method(name, summary, FixedBins, {"bins": bins, "spacing": spacing})


def _multiclass(name: str, summary: str, family: type[Any], **fixed: Any) -> Method:
    return Method(name, summary, family, fixed, "log-loss", "multi-class")


SPACINGS = {"es": ("size", "equal-size"), "ew": ("width", "equal-width")}
BY_CV = "pieces by cross-validation"
BY_SEARCH = "knots by global search"
SPLINES = "splines of cumulated labels, {} at the ends; knots by cross-validation"

BINARY_METHODS = (
    *(
        method
        for prefix, (spacing, what) in SPACINGS.items()
        for method in (
            _bins(f"{prefix}15", 15),
            Method(
                f"{prefix}-cv",
                f"{what} bins, their number by cross-validation",
                CrossValidatedBins,
                {"spacing": spacing},
            ),
            Method(
                f"{prefix}-sweep",
                f"{what} bins, as many as keep the diagram monotone",
                SweptBins,
                {"spacing": spacing},
            ),
        )
    ),
    *(
        Method(
            f"{name}{suffix}",
            f"{what}, {BY_CV}",
            PiecewiseLinear,
            {"scale": scale, "loss": loss.lower()},
            loss,
        )
        for name, scale, what in (
            ("pl", "prob", "piecewise linear"),
            ("pl3", "logit", "piecewise linear between logits"),
        )
        for suffix, loss in (("", "log-loss"), ("-mse", "Brier"))
    ),
    *(
        Method(
            name,
            f"piecewise {what}, {BY_SEARCH}, {BY_CV}",
            SearchedPieces,
            {"degree": degree},
        )
        for name, degree, what in (("pl-de", 1, "linear"), ("pl-de2", 2, "quadratic"))
    ),
    Method("platt", "logistic regression on the logit", Platt, loss="log-loss"),
    Method("beta", "beta calibration (abm; also ab, am)", Beta, loss="log-loss"),
    Method("isotonic", "isotonic regression", Isotonic),
    Method(
        "scaling-binning",
        "platt, averaged over 15 equal-size bins",
        ScalingBinning,
        loss="log-loss",
    ),
    *(
        Method(
            f"spline-{runout}",
            SPLINES.format("straight" if runout == "natural" else runout),
            CumulativeSpline,
            {"runout": runout},
        )
        for runout in ("natural", "cubic", "parabolic")
    ),
    Method(
        "smooth",
        "penalised splines around the identity, by marginal likelihood",
        Smooth,
        loss="log-loss",
    ),
    Method("kde", "ratio of kernel density estimates", KernelDensity, loss="none"),
)

MULTICLASS_METHODS = (
    _multiclass("temperature", "one temperature for all classes", Temperature),
    _multiclass("one-temp", "one temperature per class", OneTemperature),
    _multiclass("vector", "one slope and one intercept per class", VectorScaling),
    _multiclass(
        "matrix-odir",
        "a matrix on logits, off-diagonals and intercepts penalised",
        MatrixScaling,
        inputs="centred",
        regularisation="odir",
    ),
    _multiclass(
        "dirichlet-l2",
        "a matrix on log-probabilities, all weights penalised",
        MatrixScaling,
        inputs="log-prob",
        regularisation="l2",
    ),
    _multiclass(
        "dirichlet-odir",
        "the same, off-diagonals and intercepts penalised",
        MatrixScaling,
        inputs="log-prob",
        regularisation="odir",
    ),
    _multiclass(
        "iop-oi",
        "intra-order-preserving network on sorted logits (torch)",
        OrderNetwork,
        invariant=True,
    ),
    _multiclass(
        "iop-op",
        "intra-order-preserving network on logits (torch)",
        OrderNetwork,
        invariant=False,
    ),
    _multiclass(
        "iop-diag", "one rising function of each logit (torch)", DiagonalNetwork
    ),
)

METHODS: dict[str, Method] = {m.name: m for m in BINARY_METHODS + MULTICLASS_METHODS}

EVALUATORS: dict[str, Method] = {
    "kce": Method(
        "kce",
        "squared kernel calibration error, unbiased; measures only, no map",
        KernelError,
        loss="-",
        squared=True,
    ),
}
"""Methods that estimate the error without a map: fitting gives an `ErrorFit`."""

WRAPPERS: dict[str, tuple[type[Any], str]] = {
    "ovr-": (OneVsRestFamily, "each class against the rest: "),
    "top-": (TopLabelFamily, "the top label: "),
}
"""Families that apply a binary method to several classes, by prefix of the name."""

CLASSICAL_ECE = (
    "the classical binned ECE is 'ew15' (15 bins of equal width) or 'es15' (15 bins of "
    "equal size)"
)
HISTOGRAM = (
    "histogram binning is 'es15' or 'ew15' (bins of equal size or width) with "
    'tops="flat"'
)
SYNONYMS = {
    "ece": CLASSICAL_ECE,
    "ece15": CLASSICAL_ECE,
    "ace": "the adaptive calibration error has bins of equal size: 'es15'",
    "ecesweep": "the sweep is 'es-sweep' or 'ew-sweep'",
    "histogram": HISTOGRAM,
    "histogrambinning": HISTOGRAM,
    "sigmoid": "sigmoid (Platt) scaling is 'platt'",
    "plattscaling": "Platt scaling is 'platt'",
    "logistic": "logistic calibration is 'platt'",
    "logisticcalibration": "logistic calibration is 'platt'",
    "betacalibration": "beta calibration is 'beta'",
    "isotonicregression": "isotonic regression is 'isotonic'",
    "guo": f"temperature scaling is 'temperature', and {CLASSICAL_ECE}",
    "temperaturescaling": "temperature scaling is 'temperature'",
    "vectorscaling": "vector scaling is 'vector'",
    "matrixscaling": "matrix scaling is 'matrix-odir'",
    "dirichlet": "Dirichlet calibration is 'dirichlet-odir' or 'dirichlet-l2'",
    "ici": "the ICI is the calibration error with alpha=1 by a smooth map, 'smooth'",
    "loess": "the smooth calibration curve is 'smooth'",
    "skce": "the squared kernel calibration error is 'kce'",
}
"""What other libraries and papers call methods, in lower case without signs."""


def method_name(method: Any) -> str:
    """Return the display name of a method given by name or as an object."""
    return method if isinstance(method, str) else type(method).__name__


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


def find_evaluator(name: str) -> Method:
    """Return the method of that name that can estimate errors, with or without a map.

    Examples
    --------
    >>> find_evaluator("ece")
    Traceback (most recent call last):
    ...
    calibrant.exceptions.UnknownNameError: unknown method 'ece'; the classical binned
    ECE is 'ew15' (15 bins of equal width) or 'es15' (15 bins of equal size).
    """
    if isinstance(name, str) and name in EVALUATORS:
        return EVALUATORS[name]
    return _check_binary(_find(name, [*calibrator_names("binary"), *EVALUATORS]))


def find_binary(name: str) -> Method:
    """Return the binary method of that name, which has a map to draw."""
    return _check_binary(find_method(name))


def _check_binary(method: Method) -> Method:
    if method.kind == "multi-class":
        raise OptionError(
            f"method {method.name!r} calibrates all classes at once: it has no map of "
            f"one probability to evaluate by. Evaluate its results, "
            f"make_calibrator({method.name!r}).fit(...).transform(P), by a binary "
            f"method such as 'smooth' with ",
            Setting("task", "confidence"),
            ", ",
            Setting("task", "classwise"),
            " or a class.",
        )
    return method


def _find(name: Any, known: Iterable[str]) -> Method:
    if is_calibrator(name):
        what = method_name(name)
        given = {"calibrator": name}
        return Method(what, f"{what}, given as an object", UserFamily, given)
    if not isinstance(name, str):
        raise UnknownNameError.among("method", name, known)
    if name in METHODS:
        return METHODS[name]
    if name[:4] in WRAPPERS:
        return _wrapped(name)
    numbered = re.fullmatch(r"(es|ew)(\d{1,9})", name)
    if numbered is None:
        meant = SYNONYMS.get(re.sub("[^a-z0-9]", "", name.lower()))
        if meant is not None:
            raise UnknownNameError(f"unknown method {name!r}; {meant}.")
        raise UnknownNameError.among("method", name, known)
    n_bins = int(numbered.group(2))
    if n_bins < 1:
        raise OptionError(
            f"method {name!r} asks for {n_bins} bins; at least 1 is needed."
        )
    return _bins(name, n_bins)


def _wrapped(name: str) -> Method:
    family, what = WRAPPERS[name[:4]]
    binary = find_method(name[4:])
    if binary.kind == "multi-class":
        raise OptionError(
            f"method {name!r} applies a binary method to several classes, but "
            f"{binary.name!r} is a multi-class method already; use it as it is."
        )
    return Method(
        name,
        what + binary.summary,
        family,
        loss=binary.loss,
        kind="multi-class",
        wrapped=binary,
    )


def calibrator_names(kind: Kind | None = None) -> list[str]:
    """Return the names of all methods that have a calibration map.

    Parameters
    ----------
    kind : {"binary", "multi-class"}, optional
        Only methods that take the probability of one event, which
        `calibration_error` and diagrams take too; or only those of all classes.

    Returns
    -------
    list of str
        Names for `make_calibrator` and the command line. A trailing number is the
        number of bins and may be any other; ``ovr-`` and ``top-`` before a binary
        name apply it to several classes. Errors can also be estimated by "kce", which
        has no map.

    Examples
    --------
    >>> import calibrant as cb
    >>> "pl3" in cb.calibrator_names("binary")
    True
    >>> cb.calibrator_names("multi-class")
    ['temperature', 'one-temp', 'vector', 'matrix-odir', 'dirichlet-l2',
    'dirichlet-odir', 'iop-oi', 'iop-op', 'iop-diag']
    """
    if kind is not None:
        check_choice(kind, get_args(Kind), name="kind")
    return [name for name, method in METHODS.items() if kind in (None, method.kind)]
