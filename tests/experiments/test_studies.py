"""The studies as designs, with shapes that are not the paper's."""

import sys
from dataclasses import replace
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calibrant.exceptions import SourceError
from calibrant.experiments import (
    Event,
    PseudoRealStudy,
    RealStudy,
    embedded,
    paper_design,
    quick_design,
    run,
)
from calibrant.experiments.prediction_truths import divide_holdout
from calibrant.experiments.result_tables import as_markdown, printed_table, result_table
from calibrant.experiments.studies import (
    FRESH_METHODS,
    FRESH_STUDIES,
    NETWORKS,
    is_paper_grid,
    named_contenders,
)
from calibrant.experiments.study_tables import overall_table
from calibrant.experiments.synthetic import OTHER_SHAPES, SHAPES, mixing_amount


@pytest.mark.parametrize("name", OTHER_SHAPES)
def test_other_shapes_rise_within_the_unit_interval_and_are_not_the_identity(name):
    c = np.linspace(0, 1, 10_001)
    p = SHAPES[name](c)
    assert p.shape == c.shape
    assert 0 <= p.min() <= p.max() <= 1
    assert (np.diff(p) >= 0).all()
    assert np.abs(p - c).max() > 0.05


@pytest.mark.parametrize(
    ("shape", "whole"),
    [
        ("jump", 1 / 8),  # c / 2 below the middle, and its mirror image
        ("shift", np.e * (np.e - 2) / (np.e - 1) ** 2 - 1 / 2),
        ("saturation", 1 / 8),  # half of the mean distance of c to 1/2
        ("tail", 0.7**2 / 4),  # (1 - c) - (1 - c)^3 / 0.49 from 0.3 on
    ],
)
def test_expected_errors_are_in_closed_form(shape, whole):
    assert_allclose(mixing_amount(shape, 0.06), 0.06 / whole, atol=1e-5)


def test_seeds_are_neither_the_papers_nor_shared_between_sizes():
    """Labels depend on the sum of size and seed."""
    papers = {n + s for n in paper_design().sizes for s in paper_design().seeds}
    for study in FRESH_STUDIES.values():
        design = study.design()
        sums = [n + s for n in design.sizes for s in design.seeds]
        assert len(design.seeds) == 40
        assert len(set(sums)) == len(sums)
        assert not papers & set(sums)


def test_named_methods_have_the_papers_settings_where_it_has_some():
    assert [c.every for c in named_contenders(["platt", "kde"])] == [20, 1]
    assert named_contenders(["platt"])[0].family.smoothing


def test_the_oracle_and_calibrated_predictions_take_part_in_the_fresh_study():
    design = FRESH_STUDIES["paper"].design(seeds=40, methods=["smooth", "pl"])
    assert (len(design.truths), design.truths[0].shape) == (11, "calibrated")
    assert [c.name for c in design.contenders] == ["smooth", "pl", "oracle"]
    assert design.seeds == tuple(range(200, 240))


def test_all_shapes_are_seen_through_three_distributions():
    seen = {}
    for study in FRESH_STUDIES.values():
        seen.setdefault(study.distribution, set()).update(study.shapes)
    assert len(seen) == 3
    assert all(shapes == set(SHAPES) for shapes in seen.values())
    assert "smooth" in FRESH_METHODS


@pytest.fixture(scope="module")
def small_studies(tmp_path_factory):
    """Two small studies of two cheap methods and the oracle."""
    folder = tmp_path_factory.mktemp("fresh")
    designs, rows = {}, {}
    for name in ("other", "skewed"):
        whole = FRESH_STUDIES[name].design(seeds=2, methods=["platt", "beta"])
        part = replace(whole, truths=whole.truths[:2], sizes=whole.sizes[:1])
        designs[name] = part
        rows[name] = run(part, folder)
    return designs, rows


def test_tables_show_ratios_to_the_oracle_which_has_no_rank(small_studies):
    designs, rows = small_studies
    table = result_table(rows["other"], designs["other"], "calmap")
    assert table.methods == ("platt", "beta", "oracle")
    assert table.shapes == ("calibrated", "jump")
    ratio = table.values[1, 0] / table.values[1, 2]
    assert_allclose(table.over_oracle[1, 0], ratio, rtol=1e-12)
    assert np.isnan(table.over_oracle[:, 2]).all()
    assert table.values[0, 2] == 0.0  # it found that there is no error at all
    assert np.isnan(table.over_oracle[0]).all()
    assert np.isnan(table.ranks[:, 2]).all()
    assert sorted(table.ranks[0, :2]) == [1, 2]
    text = as_markdown(table)
    assert f"{table.over_oracle[1, 0]:.2f} x" in text
    assert "the ratio to the oracle" in text
    bias = result_table(rows["other"], designs["other"], "bias")
    assert np.isnan(bias.over_oracle).all()  # a ratio of biases says nothing


def test_studies_are_summed_up_by_means_over_their_truths(small_studies):
    designs, rows = small_studies
    table = overall_table(rows, designs, "calmap")
    assert table.shapes == ("other", "skewed")
    assert table.draws == 2
    mine = rows["skewed"]["method"] == "beta"
    mean = 1000 * rows["skewed"]["map_error"][mine].mean()
    assert_allclose(table.values[1, 1], mean, rtol=1e-12)


def test_printed_values_are_shown_for_the_papers_grid_alone():
    assert is_paper_grid(paper_design(seeds=2))
    assert not is_paper_grid(quick_design())
    assert paper_design().size == 12 * 1575
    names = [contender.name for contender in paper_design().contenders]
    assert set(printed_table("synthetic", "ece_sq")["square"]) == set(names)
    variants = paper_design(as_printed=True).contenders
    assert {c.name: getattr(c.family, "ensemble", None) for c in variants}[
        "pl"
    ] == "folds"


@pytest.mark.slow
def test_the_quick_grid_is_a_part_of_the_papers():
    quick, paper = quick_design(), paper_design()
    keys = {cell.key for cell in paper.cells()}
    assert {cell.key for cell in quick.cells()} <= keys
    assert quick.size == 360


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


@pytest.mark.parametrize("installed", [True, False])
def test_networks_take_part_where_torch_is(small_digits, monkeypatch, installed):
    torch = ModuleType("torch")
    torch.__spec__ = ModuleSpec("torch", None)
    monkeypatch.setitem(sys.modules, "torch", torch if installed else None)
    study = PseudoRealStudy(small_digits[:1], [Event("confidence")])
    calibrators, evaluators = study.variant_designs().values()
    names = {contender.name for contender in calibrators.contenders}
    assert (set(NETWORKS) <= names) == installed
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
