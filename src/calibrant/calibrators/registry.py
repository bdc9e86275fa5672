"""Methods by name: the same names in Python, on the command line and in tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from calibrant.calibrators.auto import Auto, AutoClasses
from calibrant.calibrators.binned import CrossValidatedBins, FixedBins, SweptBins
from calibrant.calibrators.global_piecewise import GlobalPiecewise
from calibrant.calibrators.isotonic import Isotonic
from calibrant.calibrators.kernel_density import KernelDensity
from calibrant.calibrators.kernel_error import KernelError
from calibrant.calibrators.logistic import (
    Beta,
    BinaryTemperature,
    Platt,
    Quadratic,
    ScalingBinning,
)
from calibrant.calibrators.multiclass_smooth import MulticlassSmooth
from calibrant.calibrators.networks import DiagonalNetwork, OrderNetwork
from calibrant.calibrators.piecewise import PiecewiseLinear
from calibrant.calibrators.smooth import Smooth
from calibrant.calibrators.softmax_regression import (
    MatrixScaling,
    Temperature,
    VectorScaling,
)
from calibrant.calibrators.spline import CumulativeSpline
from calibrant.calibrators.structured_scaling import StructuredScaling
from calibrant.calibrators.synonyms import SYNONYMS
from calibrant.calibrators.user_calibrator import (
    NamedCalibrator,
    UserFamily,
    is_calibrator,
)
from calibrant.calibrators.venn_abers import VennAbers
from calibrant.calibrators.wrappers import (
    OneTemperature,
    OneVsRestFamily,
    TopLabelFamily,
)
from calibrant.core.parameters import check_choice
from calibrant.exceptions import OptionError, Setting, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

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
    family : type
        The dataclass of hyper-parameters.
    summary : str
        One line for people.
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
    family: type[Any]
    summary: str
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
                f"{', '.join(params)} cannot be set here; set it on the "
                f"{self.name} object itself."
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

    def measuring(self, random_state: Seed = 0, **params: Any) -> Family:
        """Return the family as an evaluator, whose map is free to fall.

        Examples
        --------
        >>> find_method("smooth").measuring().monotone
        False
        """
        free = {"monotone": False} if "monotone" in self.defaults() else {}
        return self.seeded(random_state, **free | params)


def _bins(name: str, n_bins: int) -> Method:
    """Return the method with a fixed number of bins."""
    spacing, what = SPACINGS[name[:2]]
    summary = f"{n_bins} {what} bins; any number of bins: {name[:2]}<k>"
    return Method(name, FixedBins, summary, {"bins": n_bins, "spacing": spacing})


def _multiclass(name: str, family: type[Any], summary: str, **fixed: Any) -> Method:
    return Method(name, family, summary, fixed, "log-loss", "multi-class")


SPACINGS = {"es": ("size", "equal-size"), "ew": ("width", "equal-width")}
SIZE, WIDTH = {"spacing": "size"}, {"spacing": "width"}
BY_CV = "by cross-validation"
MONOTONE = "as many as keep the diagram monotone"
PL, PL3 = "piecewise linear", "piecewise linear between logits"
SEARCHED = f"knots by global search, pieces {BY_CV}"
SPLINES = "splines of cumulative labels"

AUTO = "the repair that is best on held-out rows, or none"

BINARY_METHODS = (
    Method("auto", Auto, AUTO, loss="log-loss"),
    _bins("es15", 15),
    Method("es-cv", CrossValidatedBins, f"equal-size bins, their number {BY_CV}", SIZE),
    Method("es-sweep", SweptBins, f"equal-size bins, {MONOTONE}", SIZE),
    _bins("ew15", 15),
    Method(
        "ew-cv", CrossValidatedBins, f"equal-width bins, their number {BY_CV}", WIDTH
    ),
    Method("ew-sweep", SweptBins, f"equal-width bins, {MONOTONE}", WIDTH),
    *(
        Method(
            name,
            PiecewiseLinear,
            f"{what}, pieces {BY_CV}",
            {"scale": scale, "loss": loss.lower()},
            loss,
        )
        for name, what, scale, loss in (
            ("pl", PL, "prob", "log-loss"),
            ("pl-mse", PL, "prob", "Brier"),
            ("pl3", PL3, "logit", "log-loss"),
            ("pl3-mse", PL3, "logit", "Brier"),
        )
    ),
    Method("pl-de", GlobalPiecewise, f"piecewise linear, {SEARCHED}", {"degree": 1}),
    Method(
        "pl-de2", GlobalPiecewise, f"piecewise quadratic, {SEARCHED}", {"degree": 2}
    ),
    Method(
        "temperature",
        BinaryTemperature,
        "logistic regression on the logit without an intercept",
        loss="log-loss",
    ),
    Method("platt", Platt, "logistic regression on the logit", loss="log-loss"),
    Method("beta", Beta, "beta calibration (abm; also ab, am)", loss="log-loss"),
    Method(
        "quadratic",
        Quadratic,
        "logistic regression on the logit and its square",
        loss="log-loss",
    ),
    Method("isotonic", Isotonic, "isotonic regression"),
    Method(
        "venn-abers",
        VennAbers,
        "isotonic regression that includes the new row, with label 0 and 1",
    ),
    Method(
        "scaling-binning",
        ScalingBinning,
        "platt, averaged over 15 equal-size bins",
        loss="log-loss",
    ),
    *(
        Method(
            f"spline-{runout}",
            CumulativeSpline,
            f"{SPLINES}, {shape} at the ends; knots {BY_CV}",
            {"runout": runout},
        )
        for runout, shape in (
            ("natural", "straight"),
            ("cubic", "cubic"),
            ("parabolic", "parabolic"),
        )
    ),
    Method(
        "smooth",
        Smooth,
        "penalised splines around the identity, by marginal likelihood",
        loss="log-loss",
    ),
    Method("kde", KernelDensity, "ratio of kernel density estimates", loss="none"),
)

MULTICLASS_METHODS = (
    _multiclass("auto", AutoClasses, AUTO),
    _multiclass("temperature", Temperature, "one temperature for all classes"),
    _multiclass("one-temp", OneTemperature, "one temperature per class"),
    _multiclass("vector", VectorScaling, "one slope and one intercept per class"),
    _multiclass(
        "matrix-odir",
        MatrixScaling,
        "a matrix on logits, off-diagonals and intercepts penalised",
        inputs="centred",
        regularisation="odir",
    ),
    _multiclass(
        "dirichlet-l2",
        MatrixScaling,
        "a matrix on log-probabilities, all weights penalised",
        inputs="log-prob",
        regularisation="l2",
    ),
    _multiclass(
        "dirichlet-odir",
        MatrixScaling,
        "the same, off-diagonals and intercepts penalised",
        inputs="log-prob",
        regularisation="odir",
    ),
    _multiclass(
        "svs",
        StructuredScaling,
        "temperature, then a vector penalised by the number of rows",
        structure="vector",
    ),
    _multiclass(
        "sms",
        StructuredScaling,
        "temperature, then a matrix penalised by the number of rows",
        structure="matrix",
    ),
    _multiclass(
        "smooth",
        MulticlassSmooth,
        "weights of logits and probabilities, penalties by marginal likelihood",
    ),
    _multiclass(
        "iop-oi",
        OrderNetwork,
        "intra-order-preserving network on sorted logits (torch)",
        invariant=True,
    ),
    _multiclass(
        "iop-op",
        OrderNetwork,
        "intra-order-preserving network on logits (torch)",
        invariant=False,
    ),
    _multiclass(
        "iop-diag", DiagonalNetwork, "one rising function of each logit (torch)"
    ),
)

METHODS: dict[Kind, dict[str, Method]] = {
    "binary": {method.name: method for method in BINARY_METHODS},
    "multi-class": {method.name: method for method in MULTICLASS_METHODS},
}
"""Methods by what they take; a name may have one of each kind."""

EVALUATORS: dict[str, Method] = {
    "kce": Method(
        "kce",
        KernelError,
        "squared kernel calibration error, unbiased; measures only, no map",
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


def method_name(method: Any) -> str:
    """Return the display name of a method given by name or as an object."""
    if isinstance(method, NamedCalibrator):
        return method.name
    return method if isinstance(method, str) else type(method).__name__


def kinds_of(name: str) -> tuple[Kind, ...]:
    """Return what a method takes: one event, all classes, or either.

    Examples
    --------
    >>> kinds_of("beta"), kinds_of("top-beta")
    (('binary',), ('multi-class',))
    """
    named = isinstance(name, str)
    either = [kind for kind, methods in METHODS.items() if named and name in methods]
    return tuple(either) or (find_method(name).kind,)


def find_method(name: str, kind: Kind | None = None) -> Method:
    """Return the method of that name, or raise with the nearest names.

    If a name has a method of each kind and no kind is given, it is the binary one.

    Examples
    --------
    >>> find_method("es20").fixed
    {'bins': 20, 'spacing': 'size'}
    """
    if kind is not None and isinstance(name, str) and name in METHODS[kind]:
        return METHODS[kind][name]
    if isinstance(name, str) and name in EVALUATORS:
        raise OptionError(
            f"method {name!r} only measures: it has no calibration map, so it can "
            "neither calibrate nor be drawn. For a map, use another method, such as "
            "'pl'."
        )
    return _find(name, calibrator_names)


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
    method = _find(name, lambda: [*calibrator_names("binary"), *EVALUATORS])
    return _check_binary(method)


def find_binary(name: str) -> Method:
    """Return the binary method of that name, which has a map to draw."""
    return _check_binary(find_method(name))


def _check_binary(method: Method) -> Method:
    if method.kind == "multi-class":
        raise OptionError(
            f"method {method.name!r} calibrates all classes at once: it has no "
            "map of a single probability to evaluate with. Calibrate first, and "
            "evaluate the result by a binary method such as 'smooth' with ",
            Setting("task", "confidence"),
            ", ",
            Setting("task", "classwise"),
            " or a class.",
        )
    return method


def _find(name: Any, known: Callable[[], Iterable[str]]) -> Method:
    """Return a method; errors list similar names among those that are `known`."""
    named = isinstance(name, NamedCalibrator)
    if named or is_calibrator(name):
        given = {"calibrator": name.calibrator if named else name}
        what = method_name(name)
        return Method(what, UserFamily, f"{what}, given as an object", given)
    if not isinstance(name, str):
        raise UnknownNameError.among("method", name, known())
    for methods in METHODS.values():
        if name in methods:
            return methods[name]
    if name[:4] in WRAPPERS:
        return _wrapped(name)
    numbered = re.fullmatch(r"(es|ew)(\d{1,9})", name)
    if numbered is None:
        meant = SYNONYMS.get(re.sub("[^a-z0-9]", "", name.lower()))
        if meant is not None:
            raise UnknownNameError(f"unknown method {name!r}; {meant}.")
        raise UnknownNameError.among("method", name, known())
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
            f"{binary.name!r} is already a multi-class method; use it without the "
            "prefix."
        )
    summary = what + binary.summary
    return Method(name, family, summary, {}, binary.loss, "multi-class", wrapped=binary)


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

    See Also
    --------
    make_calibrator : makes a calibrator by its name.

    Examples
    --------
    >>> import calibrant as cb
    >>> "pl3" in cb.calibrator_names("binary")
    True
    >>> cb.calibrator_names("multi-class")
    ['auto', 'temperature', 'one-temp', 'vector', 'matrix-odir', 'dirichlet-l2',
    'dirichlet-odir', 'svs', 'sms', 'smooth', 'iop-oi', 'iop-op', 'iop-diag']
    """
    if kind is not None:
        check_choice(kind, get_args(Kind), name="kind")
        return list(METHODS[kind])
    return list(dict.fromkeys(name for named in METHODS.values() for name in named))
