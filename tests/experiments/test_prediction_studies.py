"""The pseudo-real and the real study as designs."""

import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from calibrant.exceptions import SourceError
from calibrant.experiments import Event, PseudoRealStudy, RealStudy, embedded
from calibrant.experiments.prediction_studies import NETWORKS
from calibrant.experiments.prediction_truths import divide_holdout


def test_the_study_has_the_papers_size(small_digits):
    events = [Event.of(text) for text in ("1", "3", "5", "confidence")]
    study = PseudoRealStudy(small_digits[:3], events)
    evaluators = study.evaluator_design()
    assert evaluators.size // len(evaluators.contenders) == 6 * 3 * 4 * 3 * 5
    assert study.calibrator_design().size == 3 * 4 * 20 * len(study.calibrators)


def test_a_hold_out_that_is_too_small_is_refused_before_anything_is_run(small_digits):
    study = PseudoRealStudy(small_digits[:1], [Event("confidence")])
    with pytest.raises(SourceError, match="the hold-out is too small"):
        study.designs()
    models = small_digits[:1]
    real = RealStudy(models, models, seeds=100, subsets={1000: 10})
    with pytest.raises(SourceError, match="the hold-out is too small"):
        real.designs()


def test_the_embedded_hold_out_is_large_enough_for_the_whole_study():
    drawn = divide_holdout(embedded.ROWS["holdout"]).drawn.size
    study = PseudoRealStudy([], [])
    assert drawn >= study.calibration_rows * study.calibration_sets
    assert drawn >= max(study.sizes) * study.seeds


@pytest.mark.parametrize("found", [True, False])
def test_networks_take_part_where_torch_is(small_digits, monkeypatch, found):
    torch = ModuleType("torch")
    torch.__spec__ = ModuleSpec("torch", None)
    monkeypatch.setitem(sys.modules, "torch", torch if found else None)
    study = PseudoRealStudy(small_digits[:1], [Event("confidence")])
    calibrators, evaluators = study.variant_designs().values()
    names = {contender.name for contender in calibrators.contenders}
    assert (set(NETWORKS) <= names) == found
    assert calibrators.seeds == evaluators.seeds == tuple(range(5))


def test_subsets_are_as_many_as_the_test_rows_allow(small_digits):
    designs = RealStudy(small_digits[:1]).designs()  # of 2,500 test rows
    assert {name: len(design.seeds) for name, design in designs.items()} == {
        "real, 1000": 2
    }


def test_quick_studies_are_small_and_keep_what_is_smaller(small_digits):
    study = PseudoRealStudy(small_digits[:1], [Event("confidence")], seeds=1)
    assert (study.quick().calibration_sets, study.quick().seeds) == (2, 1)
    designs = replace(study, calibration_sets=1).quick().designs().values()
    assert [design.size for design in designs] == [6, 7 * 6]  # on 6 calibrators
    (real,) = RealStudy(small_digits).quick().designs().values()
    assert real.size == 4 * 2 * 7 * 2  # models, calibrators, evaluators, subsets
