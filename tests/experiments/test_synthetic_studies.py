"""The paper's grid and the fresh study, with shapes that are not the paper's."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from calibrant.experiments import paper_design, quick_design, run
from calibrant.experiments.rendering import as_markdown
from calibrant.experiments.shapes import OTHER_SHAPES, SHAPES
from calibrant.experiments.synthetic import mixing_amount
from calibrant.experiments.synthetic_studies import (
    FRESH_METHODS,
    FRESH_STUDIES,
    is_paper_grid,
)
from calibrant.experiments.tables import overall_table, printed_table, result_table


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


def test_all_shapes_are_seen_through_three_distributions():
    seen = {}
    for study in FRESH_STUDIES.values():
        seen.setdefault(study.distribution, set()).update(study.shapes)
    assert len(seen) == 3
    assert all(shapes == set(SHAPES) for shapes in seen.values())
    assert "smooth" in FRESH_METHODS


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """Two small studies of two cheap methods and the oracle."""
    folder = tmp_path_factory.mktemp("fresh")
    designs, rows = {}, {}
    for name in ("other", "skewed"):
        whole = FRESH_STUDIES[name].design(seeds=2, methods=["platt", "beta"])
        part = replace(whole, truths=whole.truths[:2], sizes=whole.sizes[:1])
        designs[name] = part
        rows[name] = run(part, folder)
    return designs, rows


def test_tables_show_ratios_to_the_oracle_which_has_no_rank(found):
    designs, rows = found
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


def test_studies_are_summed_up_by_means_over_their_truths(found):
    designs, rows = found
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
