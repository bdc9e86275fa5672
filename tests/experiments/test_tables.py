"""Tables of results against plain means, as Markdown and LaTeX."""

import json
from importlib.resources import files

import numpy as np
import pytest

from calibrant.exceptions import UnknownNameError
from calibrant.experiments import Contender, Design, SyntheticTruth, paper_design, run
from calibrant.experiments.tables import (
    KINDS,
    ResultTable,
    as_markdown,
    latex_page,
    printed_table,
    ranks_of,
    result_table,
)

PRINTED = json.loads(
    files("calibrant").joinpath("data", "paper_tables.json").read_text("utf-8")
)["synthetic"]


@pytest.mark.parametrize("name", PRINTED["tables"])
def test_ranks_follow_the_papers(name):
    """Printed ranks are of unrounded means: they agree but for printed ties."""
    for shape, row in PRINTED["tables"][name].items():
        values = np.array(list(row.values()))
        ranks = np.array([PRINTED["ranks"][name][shape][method] for method in row])
        untied = np.array([(values == v).sum() == 1 for v in values])
        own_ranks = ranks_of(values, KINDS[name].best)
        assert np.array_equal(own_ranks[untied], ranks[untied])


@pytest.mark.parametrize("name", ["calmap", "ece"])
def test_average_ranks_are_the_papers(name):
    table, average = PRINTED["tables"][name], PRINTED["ranks"][name]["average rank"]
    methods = list(average)
    values = np.array([[row[method] for method in methods] for row in table.values()])
    average_ranks = ResultTable(
        KINDS[name], tuple(table), tuple(methods), values, values, values, 15, 0
    ).average_ranks
    # A tie in print is at most one place apart in one of five shapes.
    np.testing.assert_allclose(average_ranks, list(average.values()), atol=0.11)


def test_ranks_of_ties_failures_and_biases():
    values = np.array([-3.0, 2.0, 2.0, np.nan])
    np.testing.assert_array_equal(ranks_of(values, "lowest"), [1, 2.5, 2.5, np.nan])
    np.testing.assert_array_equal(ranks_of(values, "highest"), [3, 1.5, 1.5, np.nan])
    np.testing.assert_array_equal(ranks_of(values, "nearest 0"), [3, 1.5, 1.5, np.nan])


def made_up(value, design):
    """Rows of results whose map error is a function of (error, n, seed)."""
    rows = {"method": [], "shape": [], "error": [], "n": [], "seed": []}
    for cell in design.cells():
        place = (cell.contender.name, cell.truth.shape, cell.truth.error)
        for name, entry in zip(rows, (*place, cell.n, cell.seed), strict=True):
            rows[name].append(entry)
    columns = {name: np.array(entries) for name, entries in rows.items()}
    columns["map_error"] = value(columns["error"], columns["n"], columns["seed"])
    columns["estimate"] = columns["map_error"]
    columns["true_error"] = columns["error"]
    columns["failure"] = np.full(len(columns["n"]), "")
    return columns


@pytest.fixture
def design():
    return Design(
        contenders=[Contender.of("es15")],
        truths=[SyntheticTruth("square", e) for e in (0.0, 0.05, 0.1)],
        sizes=[100, 200],
        seeds=range(4),
    )


def test_standard_errors_count_draws_of_labels_not_rows(design):
    """Errors of one draw are one observation; sizes are strata."""
    rng = np.random.default_rng(0)
    noise = {(n, seed): rng.normal() for n in (100, 200) for seed in range(4)}

    def value(error, n, seed):
        return error + [
            noise[key] for key in zip(n.tolist(), seed.tolist(), strict=True)
        ]

    table = result_table(made_up(value, design), design, "calmap")
    drawn = np.array(list(noise.values())).reshape(2, 4)
    assert table.values[0, 0] == pytest.approx(1000 * (0.05 + drawn.mean()))
    expected = np.sqrt((drawn.var(axis=1, ddof=1) / 4).sum()) / 2
    assert table.errors[0, 0] == pytest.approx(1000 * expected)
    assert table.draws == 8


def test_rank_correlations_are_taken_within_a_draw(design):
    """Draws lie far apart, and half of them in reverse: the mean correlation is 0."""

    def value(error, n, seed):
        return 10.0 * seed + np.where(seed % 2 == 0, error, -error) + n

    table = result_table(made_up(value, design), design, "spearman")
    assert table.values[0, 0] == pytest.approx(0.0, abs=1e-12)
    assert table.errors[0, 0] == pytest.approx(np.sqrt(2 * (4 / 3) / 4) / 2)


def test_a_failed_cell_leaves_no_value(design):
    rows = made_up(lambda error, n, seed: error + n + seed, design)
    rows["map_error"][3] = np.nan
    rows["failure"] = rows["failure"].astype(object)
    rows["failure"][3] = "ValueError: no"
    table = result_table(rows, design, "calmap")
    assert np.isnan(table.values[0, 0])
    assert np.isnan(table.ranks[0, 0])
    assert "1 cell failed" in as_markdown(table)
    assert "| square | - |" in as_markdown(table)


CHEAP = ("es15", "es-sweep", "es-cv", "kce", "platt", "beta", "isotonic")


@pytest.mark.shared
@pytest.mark.slow
def test_part_of_the_grid_is_the_papers_code(shared_data, tmp_path):
    """Map errors and errors of one size and seed, row by row, as its code has them."""
    pl = pytest.importorskip("polars")
    reference = pl.read_csv(
        shared_data / "reference" / "paper_code_synthetic.csv.gz"
    ).filter(pl.col("n") == 1000, pl.col("seed") == 0)
    grid = paper_design(seeds=1)
    design = Design(
        contenders=[c for c in grid.contenders if c.name in CHEAP],
        truths=[t for t in grid.truths if t.error in (0.0, 0.05)],
        sizes=[1000],
        seeds=[0],
    )
    rows = run(design, tmp_path)
    assert set(rows["failure"]) == {""}
    compared = 0
    for row in reference.iter_rows(named=True):
        at = np.flatnonzero(
            (rows["method"] == row["method"])
            & (rows["shape"] == row["shape"])
            & np.isclose(rows["error"], row["error"])
        )
        if at.size == 0:
            continue
        close = 2e-4 if row["method"] == "beta" else 2e-5
        for ours, theirs in {
            "map_error": "map_error",
            "estimate": "ece_debiased",
            "estimate_sq": "ece_sq_debiased",
            "true_error": "true_error",
        }.items():
            assert rows[ours][at[0]] == pytest.approx(row[theirs], abs=close), (
                row,
                ours,
            )
        compared += 1
    assert compared >= 24


@pytest.mark.slow
def test_platt_and_kce_print_the_papers_digits(tmp_path):
    """One row of a table over the whole grid, of methods that are quick to fit."""
    grid = paper_design()
    contenders = [
        Contender.of("platt", smoothing=True, every=200),
        Contender.of("kce"),
    ]
    design = Design(
        contenders=contenders,
        truths=[t for t in grid.truths if t.shape == "square"],
        sizes=grid.sizes,
        seeds=grid.seeds,
    )
    rows = run(design, tmp_path, jobs=1)
    for name in ("calmap", "ece", "ece_sq", "spearman"):
        table = result_table(rows, design, name)
        square = printed_table("synthetic", name)["square"]
        printed = [square.get(method, np.nan) for method in table.methods]
        assert table.values[0].round(table.kind.digits).tolist() == printed, name


def test_frames_have_one_row_per_shape_and_method(table):
    frame = table.frame()
    assert {len(column) for column in frame.values()} == {6}
    assert frame["method"][1] == "platt"
    assert frame["ratio"][4] == pytest.approx(12.0 / 11.82)


def test_unknown_tables_are_named(design):
    rows = made_up(lambda error, n, seed: error + n + seed, design)
    with pytest.raises(UnknownNameError, match="unknown table 'calmaps'"):
        result_table(rows, design, "calmaps")


def test_markdown_has_ranks_best_printed_and_ratio(table):
    lines = as_markdown(table).splitlines()
    assert lines[0] == "|  | es15 | platt | mine |"
    assert lines[2].split(" | ")[1:] == [
        "24.76<sub>3</sub><br><sub>± 1.00</sub><br><sub>24.76 (1.000)</sub>",
        "9.48<sub>2</sub><br><sub>± 2.00</sub><br><sub>9.48 (1.000)</sub>",
        "**9.00<sub>1</sub>** |",
    ]
    assert "**12.00<sub>1</sub>**" in lines[3]
    assert "11.82 (1.015)" in lines[3]
    assert lines[4] == "| average rank | 3.0 | 1.5 | 1.5 |"
    assert "Independent draws of labels: 15," in lines[6]


def test_latex_says_the_same(table):
    latex = latex_page(["made today"], [table])
    assert latex.startswith("% made today\n\\begin{table}")
    assert r"\mathbf{9.00_{1}}" in latex
    assert r"24.76_{3}\\ \scriptstyle ± 1.00".replace("±", r"\pm") in latex
    assert "average rank & 3.0 & 1.5 & 1.5" in latex
    assert latex.count(r"\begin") == latex.count(r"\end")
