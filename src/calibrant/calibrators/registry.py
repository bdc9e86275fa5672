"""Methods by name: the same names in Python, on the command line and in tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias, get_args

from calibrant.calibrators.auto import Auto
from calibrant.calibrators.base import (
    BRIER,
    COMMON,
    MANY_CLASSES,
    Calibrator,
    ClassCalibrator,
    EventCalibrator,
    Kind,
)
from calibrant.calibrators.binned import Binned, CrossValidatedBins, SweptBins
from calibrant.calibrators.isotonic import Isotonic, VennAbers
from calibrant.calibrators.kernel_density import KernelDensity
from calibrant.calibrators.kernel_error import KernelError
from calibrant.calibrators.logistic import Beta, Platt, Quadratic, ScalingBinning
from calibrant.calibrators.networks import DiagonalNetwork, OrderNetwork
from calibrant.calibrators.piecewise import (
    CumulativeSpline,
    GlobalPiecewise,
    PiecewiseLinear,
)
from calibrant.calibrators.smooth import Smooth
from calibrant.calibrators.softmax_regression import (
    MatrixScaling,
    StructuredScaling,
    VectorScaling,
)
from calibrant.calibrators.temperature import OneTemperature, Temperature
from calibrant.calibrators.wrappers import (
    NamedCalibrator,
    OneVsRest,
    TopLabel,
    UserMethod,
    Wrapper,
    is_calibrator,
)
from calibrant.core.defaults import DEFAULT_REPAIR
from calibrant.core.parameters import check_choice
from calibrant.core.tasks import CANONICAL
from calibrant.exceptions import OptionError, Setting, UnknownNameError

if TYPE_CHECKING:
    from calibrant.core.array_types import Seed

    Row: TypeAlias = tuple[type[Any], dict[str, Any], str]


@dataclass(frozen=True)
class Method:
    """A name, the class behind it and the parameters that the name fixes.

    Attributes
    ----------
    name : str
        As users write it.
    calibrator : type
        The class; its instances have ``fit_sample``.
    fixed : dict
        Parameters that the name decides.
    summary : str
        One line for people.
    wrapped : Method, optional
        The binary method that the class applies to several classes.
    """

    name: str
    calibrator: type[Any]
    fixed: dict[str, Any]
    summary: str
    wrapped: Method | None = None

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return what the method takes: one event, all classes, or either.

        Examples
        --------
        >>> find_method("beta").kinds, find_method("smooth").kinds
        (('binary',), ('binary', 'multi-class'))
        """
        if not issubclass(self.calibrator, ClassCalibrator):
            return ("binary",)
        either = issubclass(self.calibrator, EventCalibrator)
        return ("binary", "multi-class") if either else ("multi-class",)

    @property
    def loss(self) -> str:
        """Return the loss that fitting minimises."""
        if self.fixed.get("loss") == "brier":
            return BRIER
        fitted_by: str = (self.wrapped or self).calibrator.fitted_by
        return fitted_by

    @property
    def parameters(self) -> list[str]:
        """Return the names of the parameters that are free."""
        if self.calibrator is UserMethod:
            return list(COMMON)
        own = [f.name for f in fields(self.calibrator) if f.name not in self.fixed]
        if self.wrapped is None:
            return own
        own.remove("calibrator")
        return [*own, *(n for n in self.wrapped.parameters if n not in COMMON)]

    def build(self, **params: Any) -> Any:
        """Return the calibrator with the given parameters, or raise if one is wrong."""
        made = self._made(params)
        # What the name fixes is valid.
        return made.checked() if params and isinstance(made, Calibrator) else made

    def _made(self, params: dict[str, Any]) -> Any:
        """Return the calibrator; raise an error if a parameter does not exist."""
        free, inner = self.parameters, {}
        for name in params:
            if name not in free:
                raise self._not_free(name)
        if self.wrapped is not None:
            own = {name: params.pop(name) for name in COMMON if name in params}
            inner, params = {"calibrator": self.wrapped.build(**params)}, own
        return self.calibrator(**self.fixed, **inner, **params)

    def _not_free(self, name: str) -> Exception:
        """Return the error about a parameter that cannot be set."""
        if self.calibrator is UserMethod:
            return OptionError(
                f"{name} is a parameter of your own calibrator; set it there, as in "
                f"make_calibrator({self.name}({name}=...)). Here only "
                f"{', '.join(COMMON)} can be set."
            )
        if name in self.fixed:
            return OptionError(
                f"{name} is fixed by the method's name {self.name!r} "
                f"(to {self.fixed[name]!r}); choose another method instead."
            )
        if name == "labels":
            return OptionError(
                f"labels names several classes, but {self.name!r} calibrates one "
                "event; pass the label of the event as pos_label."
            )
        if name == "pos_label":
            return OptionError(MANY_CLASSES)
        what = f"parameter of {self.name}"
        return UnknownNameError.among(what, name, self.parameters)

    def seeded(self, random_state: Seed) -> Any:
        """Return the calibrator with a seed, where it draws anything at random.

        Examples
        --------
        >>> find_method("pl").seeded(7).random_state, find_method("beta").seeded(7)
        (7, Beta())
        """
        drawn = "random_state" in self.parameters
        return self.build(**{"random_state": random_state} if drawn else {})

    def measuring(self, random_state: Seed = 0, **params: Any) -> Any:
        """Return the calibrator as an evaluator, whose map is free to fall.

        Examples
        --------
        >>> find_method("smooth").measuring()
        Smooth(monotone=False)
        """
        usual = {"random_state": random_state, "monotone": False}
        known = self.parameters
        own = {name: value for name, value in usual.items() if name in known}
        return self.build(**{**own, **params}) if params else self._made(own)


SPACINGS = {"es": ("size", "equal-size"), "ew": ("width", "equal-width")}
SIZE, WIDTH = {"spacing": "size"}, {"spacing": "width"}
PL, PL_MSE = ({"space": "prob", "loss": loss} for loss in ("log-loss", "brier"))
PL3, PL3_MSE = ({"space": "logit", "loss": loss} for loss in ("log-loss", "brier"))
MATRIX = {"inputs": "centred", "regularisation": "odir"}
L2, ODIR = ({"inputs": "log-prob", "regularisation": r} for r in ("l2", "odir"))
NATURAL, CUBIC, PARABOLIC = (
    {"runout": runout} for runout in ("natural", "cubic", "parabolic")
)
VECTOR, FULL = {"structure": "vector"}, {"structure": "matrix"}
BY_CV = "by cross-validation"
SWEPT = "bins, as many as keep the diagram monotone"
LINEAR = f"piecewise linear, pieces {BY_CV}"
LOGIT_LINEAR = f"piecewise linear between logits, pieces {BY_CV}"
SEARCHED = f"knots by global search, pieces {BY_CV}"
SPLINE, AT_ENDS = "splines of cumulative labels", f"at the ends; knots {BY_CV}"
VENN_ABERS = "isotonic regression that includes the new row, as 0 and then as 1"
SMOOTH = "a smooth curve whose flexibility is learned from the data"
DIRICHLET = "a matrix on log-probabilities, all weights penalised"
PENALISED = "off-diagonals and intercepts penalised"
BY_ROWS = "penalised by the number of rows"
NETWORK = "intra-order-preserving network on"


def _bins(prefix: str, n_bins: int) -> Row:
    """Return the class, its fixed parameters and the summary, for a number of bins."""
    spacing, what = SPACINGS[prefix]
    fixed = {"bins": n_bins, "spacing": spacing}
    return Binned, fixed, f"{n_bins} {what} bins; any number of bins: {prefix}<k>"


TABLE: dict[str, Row] = {
    "auto": (Auto, {}, "a mixture of repairs, as strong as the data justify"),
    "es15": _bins("es", 15),
    "es-cv": (CrossValidatedBins, SIZE, f"equal-size bins, their number {BY_CV}"),
    "es-sweep": (SweptBins, SIZE, f"equal-size {SWEPT}"),
    "ew15": _bins("ew", 15),
    "ew-cv": (CrossValidatedBins, WIDTH, f"equal-width bins, their number {BY_CV}"),
    "ew-sweep": (SweptBins, WIDTH, f"equal-width {SWEPT}"),
    "pl": (PiecewiseLinear, PL, LINEAR),
    "pl-mse": (PiecewiseLinear, PL_MSE, LINEAR),
    "pl3": (PiecewiseLinear, PL3, LOGIT_LINEAR),
    "pl3-mse": (PiecewiseLinear, PL3_MSE, LOGIT_LINEAR),
    "pl-de": (GlobalPiecewise, {"degree": 1}, f"piecewise linear, {SEARCHED}"),
    "pl-de2": (GlobalPiecewise, {"degree": 2}, f"piecewise quadratic, {SEARCHED}"),
    "temperature": (Temperature, {}, "logits divided by one temperature"),
    "platt": (Platt, {}, "logistic regression on the logit"),
    "beta": (Beta, {}, "beta calibration (abm; also ab, am)"),
    "quadratic": (Quadratic, {}, "logistic regression on the logit and its square"),
    "isotonic": (Isotonic, {}, "isotonic regression"),
    "venn-abers": (VennAbers, {}, VENN_ABERS),
    "scaling-binning": (ScalingBinning, {}, "platt, averaged over 15 equal-size bins"),
    "spline-natural": (CumulativeSpline, NATURAL, f"{SPLINE}, straight {AT_ENDS}"),
    "spline-cubic": (CumulativeSpline, CUBIC, f"{SPLINE}, cubic {AT_ENDS}"),
    "spline-parabolic": (CumulativeSpline, PARABOLIC, f"{SPLINE}, parabolic {AT_ENDS}"),
    "smooth": (Smooth, {}, SMOOTH),
    "kde": (KernelDensity, {}, "ratio of kernel density estimates"),
    "one-temp": (
        OneTemperature,
        {},
        "each class against the rest has its own temperature",
    ),
    "vector": (VectorScaling, {}, "one slope and one intercept per class"),
    "matrix-odir": (MatrixScaling, MATRIX, f"a matrix on logits, {PENALISED}"),
    "dirichlet-l2": (MatrixScaling, L2, DIRICHLET),
    "dirichlet-odir": (MatrixScaling, ODIR, f"the same, {PENALISED}"),
    "svs": (StructuredScaling, VECTOR, f"temperature, then a vector {BY_ROWS}"),
    "sms": (StructuredScaling, FULL, f"temperature, then a matrix {BY_ROWS}"),
    "iop-oi": (OrderNetwork, {"invariant": True}, f"{NETWORK} sorted logits (torch)"),
    "iop-op": (OrderNetwork, {"invariant": False}, f"{NETWORK} logits (torch)"),
    "iop-diag": (DiagonalNetwork, {}, "one rising function of each logit (torch)"),
}
"""The class behind each name, the parameters that the name fixes, and a summary."""

METHODS = {name: Method(name, *row) for name, row in TABLE.items()}
"""Methods with a calibration map, by name."""

EVALUATORS = {
    "kce": Method(
        "kce",
        KernelError,
        {},
        "squared kernel calibration error, unbiased; measures only, no map",
    ),
}
"""Methods that estimate the error without a map: fitting gives an `ErrorFit`."""

WRAPPERS: dict[str, tuple[type[Wrapper], str]] = {
    "ovr-": (OneVsRest, "each class against the rest: "),
    "top-": (TopLabel, "the top label: "),
}
"""Classes that apply a binary method to several classes, by prefix of the name."""

CLASSICAL_ECE = (
    "the ECE of Guo et al. (2017) is 'ew15' (15 bins of equal width) with "
    "debias=False, or --raw on the command line; for several classes, with the task "
    "confidence. 'es15' has bins of equal size"
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
    "quadraticscaling": "quadratic scaling is 'quadratic'",
    "ivap": "inductive Venn-Abers prediction is 'venn-abers'",
    "vennabers": "Venn-Abers prediction is 'venn-abers'",
    "betacalibration": "beta calibration is 'beta'",
    "isotonicregression": "isotonic regression is 'isotonic'",
    "guo": f"temperature scaling is 'temperature'; {CLASSICAL_ECE}",
    "temperaturescaling": "temperature scaling is 'temperature'",
    "vectorscaling": "vector scaling is 'vector'",
    "matrixscaling": "matrix scaling is 'matrix-odir'",
    "structuredvectorscaling": "structured vector scaling is 'svs'",
    "structuredmatrixscaling": "structured matrix scaling is 'sms'",
    "dirichlet": "Dirichlet calibration is 'dirichlet-odir' or 'dirichlet-l2'",
    "ici": "the ICI is the calibration error with alpha=1 by a smooth map, 'smooth'",
    "loess": "the smooth calibration curve is 'smooth'",
    "skce": "the squared kernel calibration error is 'kce'",
}
"""What other libraries and papers call our methods; in lower case without signs."""


def make_calibrator(name: str = DEFAULT_REPAIR, **params: Any) -> Calibrator:
    """Return an unfitted calibrator.

    Parameters
    ----------
    name : str or object
        Name of the method; see `calibrator_names`. The number in "es15" and
        "ew15" is the number of bins; ``ovr-`` applies a binary method to each class
        against the rest, and ``top-`` to the top label. Or a calibrator of your own,
        with ``fit(p, y)`` and ``transform(p)``, which gets probabilities whatever the
        scale.
    **params
        Parameters of the method, such as ``tops="flat"``, and ``scale``, ``pos_label``
        and ``labels``. ``help()`` of the result describes them, and its
        ``get_params()`` returns their values.

    Returns
    -------
    Calibrator
        A scikit-learn transformer with ``fit(p, y)``, ``transform(p)`` and ``map_``.

    See Also
    --------
    calibrator_names : the names that can be given.
    CalibratedClassifier : a classifier and its calibrator as one.

    Examples
    --------
    >>> import calibrant as cb
    >>> cb.make_calibrator("es-cv", max_bins=20)
    CrossValidatedBins(max_bins=20)
    >>> cb.make_calibrator("temperature", scale="logit")
    Temperature(scale='logit')
    >>> cb.make_calibrator("platt").get_params()
    {'scale': 'prob', 'pos_label': None, 'smoothing': False}
    """
    calibrator: Calibrator = find_method(name).build(**params)
    return calibrator


def method_name(method: Any) -> str:
    """Return the display name of a method given by name or as an object."""
    if isinstance(method, NamedCalibrator):
        return method.name
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
            "neither calibrate nor be drawn. For a map, use another method, such as "
            "'smooth'."
        )
    return _find(name)


def find_evaluator(name: str, kind: Kind = "binary") -> Method:
    """Return the method of that name that can estimate errors, with or without a map.

    Those of the kind "multi-class" estimate the error of the whole vector.

    Examples
    --------
    >>> find_evaluator("ece")
    Traceback (most recent call last):
    ...
    calibrant.exceptions.UnknownNameError: unknown method 'ece'; the ECE of Guo et al.
    (2017) is 'ew15' (15 bins of equal width) with debias=False, or --raw on the command
    line; for several classes, with the task confidence. 'es15' has bins of equal
    size.
    """
    if isinstance(name, str) and name in EVALUATORS:
        return EVALUATORS[name]
    method = _find(name, measures=kind)
    return _check_binary(method) if kind == "binary" else _check_classes(method)


def find_binary(name: str) -> Method:
    """Return the binary method of that name, which has a map to draw."""
    return _check_binary(find_method(name))


def _check_binary(method: Method) -> Method:
    if "binary" not in method.kinds:
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


def _check_classes(method: Method) -> Method:
    if "multi-class" not in method.kinds:
        names = [*calibrator_names("multi-class"), *EVALUATORS]
        raise OptionError(
            f"method {method.name!r} calibrates one event; with ",
            Setting("task", CANONICAL),
            f" use 'ovr-{method.name}' (each class against the rest), or one of: "
            f"{', '.join(map(repr, names))}.",
        )
    return method


def _find(name: Any, *, measures: Kind | None = None) -> Method:
    """Return a method; errors list similar names, of those that `measures` a kind."""
    named = isinstance(name, NamedCalibrator)
    if named or is_calibrator(name):
        given = {"calibrator": name.calibrator if named else name}
        what = method_name(name)
        return Method(what, UserMethod, given, f"your own calibrator, {what}")
    if not isinstance(name, str):
        raise _unknown(name, measures=measures)
    if name in METHODS:
        return METHODS[name]
    if name[:4] in WRAPPERS:
        return _wrapped(name)
    numbered = re.fullmatch(r"(es|ew)(\d{1,9})", name)
    if numbered is None:
        meant = SYNONYMS.get(re.sub("[^a-z0-9]", "", name.lower()))
        if meant is not None:
            raise UnknownNameError(f"unknown method {name!r}; {meant}.")
        raise _unknown(name, measures=measures)
    n_bins = int(numbered.group(2))
    if n_bins < 1:
        raise OptionError(
            f"method {name!r} asks for {n_bins} bins; at least 1 is needed."
        )
    return Method(name, *_bins(numbered.group(1), n_bins))


def _unknown(name: Any, *, measures: Kind | None) -> UnknownNameError:
    known = [*calibrator_names(measures), *EVALUATORS] if measures else list(METHODS)
    return UnknownNameError.among("method", name, known)


def _wrapped(name: str) -> Method:
    wrapper, what = WRAPPERS[name[:4]]
    binary = find_method(name[4:])
    if "binary" not in binary.kinds:
        raise OptionError(
            f"method {name!r} applies a binary method to several classes, but "
            f"{binary.name!r} is already a multi-class method; use it without the "
            "prefix."
        )
    return Method(name, wrapper, {}, what + binary.summary, binary)


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
        Names for `make_calibrator` and the command line. The number in "es15" and
        "ew15" is the number of bins, and may be any other; ``ovr-`` and ``top-``
        before a binary name apply it to several classes. Errors can also be estimated
        by "kce", which has no map.

    See Also
    --------
    make_calibrator : makes a calibrator by its name.

    Examples
    --------
    >>> import calibrant as cb
    >>> "pl3" in cb.calibrator_names("binary")
    True
    >>> cb.calibrator_names("multi-class")
    ['auto', 'temperature', 'smooth', 'one-temp', 'vector', 'matrix-odir',
    'dirichlet-l2', 'dirichlet-odir', 'svs', 'sms', 'iop-oi', 'iop-op', 'iop-diag']
    """
    if kind is not None:
        check_choice(kind, get_args(Kind), name="kind")
    return [m.name for m in METHODS.values() if kind is None or kind in m.kinds]
