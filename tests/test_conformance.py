import numpy as np
import pytest

import calibrant as cb
from conformance import CASES, MAP_CASES, WEIGHT_CASES, conformance, map_conformance


def evaluator(method):
    def evaluate(y, p, weight=None):
        name = method.replace("15", str(min(15, max(len(p), 1))))
        found = cb.calibration_error(
            y, p, method=name, debias=False, sample_weight=weight
        )
        return round(found, DIGITS.get(method, 12))

    return evaluate


# Cross-validation puts a row of weight 2 into one fold, but two rows perhaps into two;
# and a smooth map need not pass through five values exactly.
SMOOTH = ("repeated_rows", "five_values")
EXEMPT = {"es-cv": ("repeated_rows",), "ew-cv": ("repeated_rows",)}
EXEMPT |= dict.fromkeys(["pl", "pl-mse", "pl3", "pl3-mse"], SMOOTH)
EXEMPT |= dict.fromkeys(["pl-de", "pl-de2"], SMOOTH)
# Of 100 rows one line of least squares still does better on held-out rows than three,
# which end at single rows; the error of that line is half of the true one.
EXEMPT["pl-de"] = (*SMOOTH, "steep_map")
EXEMPT |= dict.fromkeys(
    ["spline-natural", "spline-cubic", "spline-parabolic"], ("repeated_rows",)
)
# A map that is drawn to the diagonal does not meet the shares of few positives; of
# hundreds of rows that agree shrinkage leaves 0.001 (tests/calibrators/test_smooth.py).
EXEMPT["smooth"] = ("constant_prediction", "one_row", "five_values")
EXEMPT["smooth"] += ("zero_and_one", "one_class_only")
# Automatic repair is mostly smooth, or nothing; copies of a row fall into other folds.
EXEMPT["auto"] = (*EXEMPT["smooth"], "repeated_rows")
# One row of each label joins every sample; few rows, or certain ones, show it.
EXEMPT["venn-abers"] = ("zero_and_one", "constant_prediction", "one_class_only")
EXEMPT["venn-abers"] += ("separable", "one_row", "five_values", "steep_map")
# Without an intercept there is no repair for a base rate.
EXEMPT["temperature"] = ("one_class_only", "five_values")
EXEMPT["temperature"] += ("shifted_map", "shifted_levels")
# Iterative fits end a little before the optimum.
DIGITS = {"pl": 3, "pl-mse": 3, "pl3": 3, "pl3-mse": 2}
# Predictions of exactly 0 and 1 count as a sixteenth of one row off.
DIGITS |= {"smooth": 3, "auto": 2}
# The mean over folds is not quite the fit to all rows.
DIGITS |= {"pl-de": 3, "pl-de2": 3}


@pytest.mark.parametrize("method", cb.calibrator_names("binary"))
def test_every_method_passes_the_suite(method):
    findings = conformance(evaluator(method), skip=EXEMPT.get(method, ()))
    assert [str(finding) for finding in findings if not finding.passed] == []


def test_the_suite_can_fail():
    findings = conformance(lambda y, p, weight=None: 0.123)  # noqa: ARG005
    failed = {finding.case for finding in findings if not finding.passed}
    assert {"zero_and_one", "refuses_nan", "one_row"} <= failed


KNOWN_ERRORS = [
    f"{shape}_{of}"
    for shape in ("steep", "flat", "shifted")
    for of in ("map", "levels")
]


@pytest.mark.parametrize("share", [0.0, 0.35, 1.9])
def test_an_error_that_is_missed_or_doubled_is_a_finding(share):
    def evaluate(y, p, weight=None):  # noqa: ARG001
        bins = np.minimum((8 * p).astype(int), 7)
        gaps = [abs((y - p)[bins == b].sum()) for b in range(8)]
        return share * sum(gaps) / len(p)

    failed = {f.case for f in conformance(evaluate) if not f.passed}
    assert set(KNOWN_ERRORS) <= failed


def test_a_shift_alone_misses_errors_that_cancel():
    def evaluate(y, p, weight=None):  # noqa: ARG001
        return abs((y - p).mean())

    failed = {f.case for f in conformance(evaluate) if not f.passed}
    assert {"steep_map", "steep_levels", "flat_map", "flat_levels"} <= failed
    assert not {"shifted_map", "shifted_levels"} & failed


def test_crashes_and_missing_weights_are_findings():
    def crash(*_):
        raise ZeroDivisionError

    findings = {f.case: f for f in conformance(crash, weights=False)}
    assert findings["separable"].detail == "raised ZeroDivisionError"
    assert str(findings["zero_weight"]) == "zero_weight: no weights"
    assert len(findings) == len(CASES) + len(WEIGHT_CASES)


def test_scikit_learn_style_ece_by_hand_fails_on_the_edges():
    def linspace_ece(y, p):
        which = np.digitize(p, np.linspace(0, 1, 11)[1:-1], right=True)
        gaps = [abs((y - p)[which == b].sum()) for b in range(10)]
        return sum(gaps) / len(p)

    findings = {f.case: f for f in conformance(linspace_ece, weights=False)}
    assert findings["constant_prediction"].passed
    assert not findings["refuses_outside"].passed


def fitter(method):
    def fit(p, y):
        return cb.make_calibrator(method.replace("15", "10")).fit(p, y).map_.transform

    return fit


BETWEEN = ("between_levels", "between_percentages", "between_two_heaps", "across_a_gap")
FALLS, BEYOND = "does_not_fall", "beyond_the_data"
# Beyond the data these go on by one formula, or stay where they are.
FORMULAS = ["platt", "beta", "temperature", "isotonic", "venn-abers", "scaling-binning"]
MAP_EXEMPT = dict.fromkeys(FORMULAS, (BEYOND,))
# These follow the data, also where they fall.
CURVES = ["pl", "pl-mse", "pl3", "pl3-mse", "pl-de"]
CURVES += ["spline-natural", "spline-cubic", "spline-parabolic"]
MAP_EXEMPT |= dict.fromkeys(CURVES, (BEYOND, FALLS))
MAP_EXEMPT["quadratic"] = (FALLS,)
# Bins jump at their edges; parabolas and ratios of densities bend between points.
BENDS = [f"{bins}{how}" for bins in ("es", "ew") for how in ("15", "-cv", "-sweep")]
BENDS += ["pl-de2", "kde"]
MAP_EXEMPT |= dict.fromkeys(BENDS, (*BETWEEN, BEYOND, FALLS))


SLOW = ["pl-de", "auto"]


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SLOW else ())
        for name in cb.calibrator_names("binary")
    ],
)
def test_maps_keep_to_the_data(method):
    skip = MAP_EXEMPT.get(method, ())
    findings = map_conformance(fitter(method), skip=skip)
    assert [str(finding) for finding in findings if not finding.passed] == []


def test_the_suite_of_maps_can_fail():
    def wave(p, y):  # noqa: ARG001
        return lambda q: np.sin(200.0 * q) ** 2

    findings = map_conformance(wave)
    passed = [finding.case for finding in findings if finding.passed]
    assert passed == ["gives_probabilities"]
    assert len(findings) == len(MAP_CASES)
    details = {finding.case: finding.detail for finding in findings}
    assert "leaves the values next to" in details["between_levels"]
    assert "logits more than" in details["beyond_the_data"]
    assert details["does_not_fall"].endswith("for 30 rows")


@pytest.mark.parametrize("wrong", [np.nan, -0.1, 1.1])
def test_maps_must_give_probabilities(wrong):
    findings = map_conformance(lambda *_: lambda q: np.full(q.shape, wrong))
    details = {finding.case: finding.detail for finding in findings}
    assert details["gives_probabilities"].startswith(f"gave {wrong:.3g}")
