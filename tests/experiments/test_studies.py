"""Synthetic studies as designs, with shapes that are not the paper's."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calibrant.exceptions import UnknownNameError
from calibrant.experiments import (
    fresh_study,
    paper_contenders,
    paper_design,
    run,
    synthetic_study,
)
from calibrant.experiments.studies import FRESH_DATA, FRESH_METHODS, overall_table
from calibrant.experiments.synthetic import OTHER_SHAPES, SHAPES, mixing_amount
from calibrant.experiments.tables import as_markdown, printed_table, result_table


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
    for design in fresh_study().designs.values():
        sums = [n + s for n in design.sizes for s in design.seeds]
        assert len(design.seeds) == 40
        assert len(set(sums)) == len(sums)
        assert not papers & set(sums)


def test_named_methods_have_the_papers_settings_where_it_has_some():
    assert [c.every for c in paper_contenders(["platt", "kde"])] == [20, 1]
    assert paper_contenders(["platt"])[0].family.smoothing


def test_the_oracle_and_calibrated_predictions_take_part_in_the_fresh_study():
    design = fresh_study(40, methods=["smooth", "pl"]).designs["paper"]
    assert (len(design.truths), design.truths[0].shape) == (11, "calibrated")
    assert [c.name for c in design.contenders] == ["smooth", "pl", "oracle"]
    assert design.seeds == tuple(range(200, 240))


def test_all_shapes_are_seen_through_three_distributions():
    seen = {}
    for _, shapes, _, distribution in FRESH_DATA.values():
        seen.setdefault(distribution, set()).update(shapes)
    assert len(seen) == 3
    assert all(shapes == set(SHAPES) for shapes in seen.values())
    assert "smooth" in FRESH_METHODS
    with pytest.raises(UnknownNameError, match="did you mean 'skewed'"):
        fresh_study(parts=["skewd"])


@pytest.fixture(scope="module")
def small_studies(tmp_path_factory):
    """Two small studies of two cheap methods and the oracle."""
    folder = tmp_path_factory.mktemp("fresh")
    designs, rows = {}, {}
    for name in ("other", "skewed"):
        whole = fresh_study(2, methods=["platt", "beta"]).designs[name]
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


def test_printed_values_are_shown_for_the_papers_grid_alone(tmp_path):
    study = synthetic_study(1, quick=True, methods=["kce"])
    results = {"synthetic": run(study.designs["synthetic"], tmp_path)}
    assert np.isnan(study.tables(results)[2].printed).all()
    whole = synthetic_study(1, methods=["kce"])
    printed = whole.tables(results)[2].printed
    of_square = printed_table("synthetic", "ece_sq")["square"]
    assert printed[0, 0] == of_square["kce"]
    assert set(of_square) == {c.name for c in paper_design().contenders}


def test_numbers_of_pieces_are_chosen_as_in_the_paper_where_asked():
    (pl,) = paper_contenders(["pl"], as_printed=True)
    assert pl.family.ensemble == "folds"


@pytest.mark.slow
def test_the_quick_grid_is_a_part_of_the_papers():
    quick, paper = paper_design(quick=True), paper_design()
    keys = {cell.key for cell in paper.cells()}
    assert {cell.key for cell in quick.cells()} <= keys
    assert (quick.size, paper.size) == (360, 12 * 1575)
