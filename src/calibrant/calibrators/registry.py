"""Methods by name: the same names in Python, on the command line and in tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from calibrant.calibrators.binned import CrossValidatedBins, FixedBins, SweptBins
from calibrant.calibrators.isotonic import Isotonic
from calibrant.calibrators.kde import KernelDensity
from calibrant.calibrators.kernel import KernelError
from calibrant.calibrators.lifted import OneVsRestFamily, TopLabelFamily
from calibrant.calibrators.logistic import Beta, Platt
from calibrant.calibrators.multiclass_methods import MULTICLASS_METHODS
from calibrant.calibrators.piecewise import PiecewiseLinear
from calibrant.calibrators.scaling_binning import ScalingBinning
from calibrant.calibrators.searched_pieces import SearchedPieces
from calibrant.calibrators.smooth import Smooth
from calibrant.calibrators.spline import CumulativeSpline
from calibrant.calibrators.user_calibrator import UserFamily, is_calibrator
from calibrant.core.options import check_choice
from calibrant.exceptions import OptionError, Setting, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from calibrant.calibrators.base import Family
    from calibrant.core.array_types import Seed

Kind: TypeAlias = Literal["binary", "multi-class"]
"""Whether a method takes the probability of one event, or those of all classes."""

WRAPPERS: dict[str, tuple[type[Any], str]] = {
    "ovr-": (OneVsRestFamily, "each class against the rest: "),
    "top-": (TopLabelFamily, "the top label: "),
}
"""What lifts a binary method to several classes, by the start of the name."""

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
    kind : {"binary", "multi-class"}
        What the method takes.
    """

    name: str
    summary: str
    family: type[Any]
    fixed: dict[str, Any] = field(default_factory=dict)
    loss: str = "Brier"
    squared: bool = False
    kind: Kind = "binary"

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


@dataclass(frozen=True, kw_only=True)
class LiftedMethod(Method):
    """A binary method lifted to several classes.

    Attributes
    ----------
    binary : Method
        What is lifted; its hyper-parameters are those of the lifted method.
    """

    binary: Method
    kind: Kind = "multi-class"

    def defaults(self) -> dict[str, Any]:
        """Return the hyper-parameters of the binary method."""
        return self.binary.defaults()

    def build(self, **params: Any) -> Family:
        """Return the lifted family."""
        family: Family = self.family(self.binary.build(**params))
        return family


@dataclass(frozen=True, kw_only=True)
class UserMethod(Method):
    """A calibrator of the user's own, in place of a name.

    Attributes
    ----------
    calibrator : object
        With ``fit(p, y)`` and ``transform(p)``.
    """

    calibrator: Any

    def defaults(self) -> dict[str, Any]:
        """Return nothing: its hyper-parameters are its own."""
        return {}

    def build(self, **params: Any) -> Family:
        """Return the family; hyper-parameters are those of the object."""
        if params:
            raise OptionError(
                f"{', '.join(params)} cannot be set from outside; set it on the "
                f"{self.name} itself."
            )
        return UserFamily(self.calibrator)


def user_method(calibrator: Any) -> UserMethod:
    """Return the method that a calibrator of the user's own is.

    Examples
    --------
    >>> from sklearn.isotonic import IsotonicRegression
    >>> user_method(IsotonicRegression(out_of_bounds="clip")).name
    'IsotonicRegression'
    """
    name = type(calibrator).__name__
    return UserMethod(
        name, f"{name}, given as an object", UserFamily, calibrator=calibrator
    )


def method_name(method: Any) -> str:
    """Return what results call a method, given by name or as an object."""
    return method if isinstance(method, str) else type(method).__name__


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
        Method(
            "smooth",
            "penalised splines around the identity, by marginal likelihood",
            Smooth,
            loss="log-loss",
        ),
        Method("kde", "ratio of kernel density estimates", KernelDensity, loss="none"),
    ]


def _multiclass_methods() -> list[Method]:
    return [
        Method(*row, loss="log-loss", kind="multi-class") for row in MULTICLASS_METHODS
    ]


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        *_binned_methods(),
        *_piecewise_methods(),
        *_other_methods(),
        *_multiclass_methods(),
    )
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
    """Return the method of that name that can estimate errors, with a map or not."""
    if isinstance(name, str) and name in EVALUATORS:
        return EVALUATORS[name]
    return find_binary(name, [*calibrator_names("binary"), *EVALUATORS])


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


def _find(name: Any, known: Iterable[str]) -> Method:
    if is_calibrator(name):
        return user_method(name)
    if not isinstance(name, str):
        raise UnknownNameError.among("method", name, known)
    if name in METHODS:
        return METHODS[name]
    if name[:4] in WRAPPERS:
        return _lifted(name)
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


def _lifted(name: str) -> LiftedMethod:
    family, told = WRAPPERS[name[:4]]
    binary = find_method(name[4:])
    if binary.kind == "multi-class":
        raise OptionError(
            f"method {name!r} lifts a binary method to several classes, but "
            f"{binary.name!r} is a multi-class method already; use it as it is."
        )
    return LiftedMethod(
        name, told + binary.summary, family, loss=binary.loss, binary=binary
    )


def find_binary(name: str, known: Iterable[str] | None = None) -> Method:
    """Return the binary method of that name, which alone has a map to draw."""
    method = _find(name, known) if known else find_method(name)
    if method.kind == "multi-class":
        raise OptionError(
            f"method {name!r} calibrates all classes at once: it has no map of one "
            f"probability to evaluate by. Evaluate what it gives, "
            f"make_calibrator({name!r}).fit(...).transform(P), by a binary method such "
            f"as 'smooth' with ",
            Setting("task", "confidence"),
            ", ",
            Setting("task", "classwise"),
            " or a class.",
        )
    return method


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
        name lift it to several classes. Errors can also be estimated by "kce", which
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
