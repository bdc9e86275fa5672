"""Methods by name: the same names in Python, on the command line and in tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, get_args

from calibrant.calibrators.auto import Auto
from calibrant.calibrators.base import MANY_CLASSES, Calibrator, Kind, kinds_of
from calibrant.calibrators.binned import Binned, CrossValidatedBins, SweptBins
from calibrant.calibrators.global_piecewise import GlobalPiecewise
from calibrant.calibrators.isotonic import Isotonic, VennAbers
from calibrant.calibrators.kernel_density import KernelDensity
from calibrant.calibrators.kernel_error import KernelError
from calibrant.calibrators.logistic import Beta, Platt, Quadratic, ScalingBinning
from calibrant.calibrators.networks import DiagonalNetwork, OrderNetwork
from calibrant.calibrators.piecewise import PiecewiseLinear
from calibrant.calibrators.smooth import Smooth
from calibrant.calibrators.softmax_regression import (
    MatrixScaling,
    StructuredScaling,
    VectorScaling,
)
from calibrant.calibrators.spline import CumulativeSpline
from calibrant.calibrators.temperature import OneTemperature, Temperature
from calibrant.calibrators.user_calibrator import (
    NamedCalibrator,
    UserMethod,
    is_calibrator,
)
from calibrant.calibrators.wrappers import OneVsRest, TopLabel, Wrapper
from calibrant.core.defaults import DEFAULT_REPAIR
from calibrant.core.parameters import check_choice
from calibrant.exceptions import OptionError, Setting, UnknownNameError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from calibrant.core.array_types import Seed


@dataclass(frozen=True)
class Method:
    """A name, the class behind it and the parameters that the name fixes.

    Attributes
    ----------
    name : str
        As users write it.
    calibrator : type
        The class; its instances have ``fit_sample``.
    summary : str
        One line for people.
    fixed : dict
        Parameters that the name decides.
    loss : str
        The loss that fitting minimises.
    wrapped : Method, optional
        The binary method that the class applies to several classes.
    """

    name: str
    calibrator: type[Any]
    summary: str
    fixed: dict[str, Any] = field(default_factory=dict)
    loss: str = "Brier"
    wrapped: Method | None = None

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """Return what the method takes: one event, all classes, or either.

        Examples
        --------
        >>> find_method("beta").kinds, find_method("smooth").kinds
        (('binary',), ('binary', 'multi-class'))
        """
        return kinds_of(self.calibrator)

    @property
    def parameters(self) -> list[str]:
        """Return the names of the parameters that are free."""
        own = [f.name for f in fields(self.calibrator) if f.name not in self.fixed]
        if self.wrapped is None:
            return own
        own.remove("calibrator")
        return [*own, *(n for n in self.wrapped.parameters if n not in COMMON)]

    def build(self, **params: Any) -> Any:
        """Return the calibrator with the given parameters, or raise if one is wrong."""
        for name in params:
            self._check_free(name)
        inner = {}
        if self.wrapped is not None:
            own = {name: params.pop(name) for name in COMMON if name in params}
            inner, params = {"calibrator": self.wrapped.build(**params)}, own
        made = self.calibrator(**self.fixed, **inner, **params)
        return made.checked() if isinstance(made, Calibrator) else made

    def _check_free(self, name: str) -> None:
        """Raise where a parameter cannot be set."""
        if self.calibrator is UserMethod:
            raise OptionError(
                f"{name} cannot be set here; set it on the {self.name} object itself."
            )
        if name in self.fixed:
            raise OptionError(
                f"{name} is fixed by the method's name {self.name!r} "
                f"(to {self.fixed[name]!r}); choose another method instead."
            )
        known = self.parameters
        if name in known:
            return
        if name == "labels":
            raise OptionError(
                f"labels names several classes, but {self.name!r} calibrates one "
                "event; pass the label of the event as pos_label."
            )
        if name == "pos_label":
            raise OptionError(MANY_CLASSES)
        raise UnknownNameError.among(f"parameter of {self.name}", name, known)

    def seeded(self, random_state: Seed, **params: Any) -> Any:
        """Return the calibrator with a seed, where it draws anything at random.

        Examples
        --------
        >>> find_method("pl").seeded(7).random_state, find_method("beta").seeded(7)
        (7, Beta())
        """
        if "random_state" in self.parameters:
            params["random_state"] = random_state
        return self.build(**params)

    def measuring(self, random_state: Seed = 0, **params: Any) -> Any:
        """Return the calibrator as an evaluator, whose map is free to fall.

        Examples
        --------
        >>> find_method("smooth").measuring()
        Smooth(monotone=False)
        """
        free = {"monotone": False} if "monotone" in self.parameters else {}
        return self.seeded(random_state, **free | params)


def _bins(name: str, n_bins: int) -> Method:
    """Return the method with a fixed number of bins."""
    spacing, what = SPACINGS[name[:2]]
    summary = f"{n_bins} {what} bins; any number of bins: {name[:2]}<k>"
    return Method(name, Binned, summary, {"bins": n_bins, "spacing": spacing})


COMMON = ("scale", "pos_label", "labels")
"""Parameters that say what predictions and labels are."""
SPACINGS = {"es": ("size", "equal-size"), "ew": ("width", "equal-width")}
SIZE, WIDTH = {"spacing": "size"}, {"spacing": "width"}
PROB, LOGIT = {"space": "prob"}, {"space": "logit"}
CENTRED, LOG_PROB = {"inputs": "centred"}, {"inputs": "log-prob"}
BY_LOG_LOSS, BY_BRIER = {"loss": "log-loss"}, {"loss": "brier"}
BY_CV = "by cross-validation"
SWEPT = "as many as keep the diagram monotone"
PL, PL3 = "piecewise linear", "piecewise linear between logits"
SEARCHED = f"knots by global search, pieces {BY_CV}"
SPLINES = "splines of cumulative labels"
LOG = "log-loss"

METHODS = {
    method.name: method
    for method in (
        Method(
            "auto", Auto, "the repair that is best on held-out rows, or none", {}, LOG
        ),
        _bins("es15", 15),
        Method(
            "es-cv", CrossValidatedBins, f"equal-size bins, their number {BY_CV}", SIZE
        ),
        Method("es-sweep", SweptBins, f"equal-size bins, {SWEPT}", SIZE),
        _bins("ew15", 15),
        Method(
            "ew-cv",
            CrossValidatedBins,
            f"equal-width bins, their number {BY_CV}",
            WIDTH,
        ),
        Method("ew-sweep", SweptBins, f"equal-width bins, {SWEPT}", WIDTH),
        Method("pl", PiecewiseLinear, f"{PL}, pieces {BY_CV}", PROB | BY_LOG_LOSS, LOG),
        Method("pl-mse", PiecewiseLinear, f"{PL}, pieces {BY_CV}", PROB | BY_BRIER),
        Method(
            "pl3", PiecewiseLinear, f"{PL3}, pieces {BY_CV}", LOGIT | BY_LOG_LOSS, LOG
        ),
        Method("pl3-mse", PiecewiseLinear, f"{PL3}, pieces {BY_CV}", LOGIT | BY_BRIER),
        Method(
            "pl-de", GlobalPiecewise, f"piecewise linear, {SEARCHED}", {"degree": 1}
        ),
        Method(
            "pl-de2", GlobalPiecewise, f"piecewise quadratic, {SEARCHED}", {"degree": 2}
        ),
        Method(
            "temperature", Temperature, "logits divided by one temperature", {}, LOG
        ),
        Method("platt", Platt, "logistic regression on the logit", {}, LOG),
        Method("beta", Beta, "beta calibration (abm; also ab, am)", {}, LOG),
        Method(
            "quadratic",
            Quadratic,
            "logistic regression on the logit and its square",
            {},
            LOG,
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
            {},
            LOG,
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
            "penalised regression around the identity, by marginal likelihood",
            {},
            LOG,
        ),
        Method("kde", KernelDensity, "ratio of kernel density estimates", {}, "none"),
        Method("one-temp", OneTemperature, "one temperature per class", {}, LOG),
        Method(
            "vector", VectorScaling, "one slope and one intercept per class", {}, LOG
        ),
        Method(
            "matrix-odir",
            MatrixScaling,
            "a matrix on logits, off-diagonals and intercepts penalised",
            CENTRED | {"regularisation": "odir"},
            LOG,
        ),
        Method(
            "dirichlet-l2",
            MatrixScaling,
            "a matrix on log-probabilities, all weights penalised",
            LOG_PROB | {"regularisation": "l2"},
            LOG,
        ),
        Method(
            "dirichlet-odir",
            MatrixScaling,
            "the same, off-diagonals and intercepts penalised",
            LOG_PROB | {"regularisation": "odir"},
            LOG,
        ),
        Method(
            "svs",
            StructuredScaling,
            "temperature, then a vector penalised by the number of rows",
            {"structure": "vector"},
            LOG,
        ),
        Method(
            "sms",
            StructuredScaling,
            "temperature, then a matrix penalised by the number of rows",
            {"structure": "matrix"},
            LOG,
        ),
        Method(
            "iop-oi",
            OrderNetwork,
            "intra-order-preserving network on sorted logits (torch)",
            {"invariant": True},
            LOG,
        ),
        Method(
            "iop-op",
            OrderNetwork,
            "intra-order-preserving network on logits (torch)",
            {"invariant": False},
            LOG,
        ),
        Method(
            "iop-diag",
            DiagonalNetwork,
            "one rising function of each logit (torch)",
            {},
            LOG,
        ),
    )
}
"""Methods with a calibration map, by name."""

EVALUATORS = {
    "kce": Method(
        "kce",
        KernelError,
        "squared kernel calibration error, unbiased; measures only, no map",
        loss="-",
    ),
}
"""Methods that estimate the error without a map: fitting gives an `ErrorFit`."""

WRAPPERS: dict[str, tuple[type[Wrapper], str]] = {
    "ovr-": (OneVsRest, "each class against the rest: "),
    "top-": (TopLabel, "the top label: "),
}
"""Classes that apply a binary method to several classes, by prefix of the name."""

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
    "quadraticscaling": "quadratic scaling is 'quadratic'",
    "ivap": "inductive Venn-Abers prediction is 'venn-abers'",
    "vennabers": "Venn-Abers prediction is 'venn-abers'",
    "betacalibration": "beta calibration is 'beta'",
    "isotonicregression": "isotonic regression is 'isotonic'",
    "guo": f"temperature scaling is 'temperature', and {CLASSICAL_ECE}",
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
    name : str
        Name of the method; see `calibrator_names`. A trailing number is the number
        of bins; ``ovr-`` applies a binary method to each class against the rest, and
        ``top-`` to the top label.
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
            "'pl'."
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


def _find(name: Any, known: Iterable[str]) -> Method:
    """Return a method; errors list similar names among those that are `known`."""
    named = isinstance(name, NamedCalibrator)
    if named or is_calibrator(name):
        given = {"calibrator": name.calibrator if named else name}
        what = method_name(name)
        return Method(what, UserMethod, f"{what}, given as an object", given)
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
    wrapper, what = WRAPPERS[name[:4]]
    binary = find_method(name[4:])
    if "binary" not in binary.kinds:
        raise OptionError(
            f"method {name!r} applies a binary method to several classes, but "
            f"{binary.name!r} is already a multi-class method; use it without the "
            "prefix."
        )
    return Method(name, wrapper, what + binary.summary, {}, binary.loss, binary)


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
    ['auto', 'temperature', 'smooth', 'one-temp', 'vector', 'matrix-odir',
    'dirichlet-l2', 'dirichlet-odir', 'svs', 'sms', 'iop-oi', 'iop-op', 'iop-diag']
    """
    if kind is not None:
        check_choice(kind, get_args(Kind), name="kind")
    return [m.name for m in METHODS.values() if kind is None or kind in m.kinds]
