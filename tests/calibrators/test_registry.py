"""Methods by name: what is registered, and what errors say about other names."""

import re

import pytest

import calibrant as cb
from calibrant.calibrators.registry import (
    EVALUATORS,
    SYNONYMS,
    find_evaluator,
    find_method,
)


def test_the_classical_ece_is_known_by_its_word():
    with pytest.raises(
        cb.exceptions.UnknownNameError, match=r"Guo.*'ew15'.*debias=False.*'es15'"
    ):
        cb.calibration_error([0, 1] * 20, [0.2, 0.7] * 20, method="ece")


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("sigmoid", "platt"),
        ("HistogramBinning", "es15"),
        ("histogram", "ew15"),
        ("guo", "temperature"),
        ("ECE15", "ew15"),
        ("ici", "smooth"),
        ("TemperatureScaling", "temperature"),
        ("isotonic_regression", "isotonic"),
        ("IVAP", "venn-abers"),
        ("structured matrix scaling", "sms"),
    ],
)
def test_words_of_other_libraries_lead_to_ours(name, ours):
    with pytest.raises(cb.exceptions.UnknownNameError, match=f"'{ours}'"):
        cb.make_calibrator(name)


@pytest.mark.parametrize("message", sorted(set(SYNONYMS.values())))
def test_explanations_name_methods_that_exist(message):
    names = re.findall(r"'([^']+)'", message)
    assert names
    assert set(names) <= {*cb.calibrator_names(), *EVALUATORS}


def test_no_synonym_hides_a_method():
    assert not set(SYNONYMS) & {*cb.calibrator_names(), *EVALUATORS}


@pytest.mark.parametrize("find", [find_method, find_evaluator])
def test_a_trailing_number_is_the_number_of_bins(find):
    assert find("ew7").fixed == {"bins": 7, "spacing": "width"}
    with pytest.raises(cb.exceptions.OptionError, match="at least 1"):
        find("es0")


def test_a_wrapped_method_has_the_parameters_of_the_binary_one():
    common = {"scale", "pos_label", "labels"}
    wrapped, binary = find_method("ovr-es-cv"), find_method("es-cv")
    assert {*wrapped.parameters} - common == {*binary.parameters} - common
    with pytest.raises(cb.exceptions.OptionError, match="already a multi-class method"):
        find_method("top-vector")
