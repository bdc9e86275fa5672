"""The pseudo-real and real studies as designs, and their tables."""

import json
import sys
from importlib.machinery import ModuleSpec
from importlib.resources import files
from itertools import product
from types import ModuleType

import numpy as np
import pytest
from scipy.stats import spearmanr

from calibrant.exceptions import SourceError
from calibrant.experiments import Event, models, pseudo_real_study, real_study
from calibrant.experiments import model_studies as studies
from calibrant.experiments.model_studies import NETWORKS
from calibrant.experiments.prediction_truths import divide_holdout
from calibrant.experiments.tables import as_markdown, printed_table

MODELS, EVENTS = ("bayes", "forest"), ("3 vs rest", "confidence")
CALIBRATORS, SIZES, SEEDS = ("beta", "platt", "isotonic"), (100, 200), (0, 1, 2)


def made_rows(
    methods, *, models=MODELS, events=EVENTS, calibrators=CALIBRATORS, seeds=SEEDS
):
    """Return results with numbers of chance."""
    cells = list(product(models, events, calibrators, SIZES, seeds, methods))
    rng = np.random.default_rng(len(cells))
    rows = {
        "shape": np.array([" | ".join(p for p in c[:3] if p) for c in cells]),
        "n": np.array([cell[3] for cell in cells]),
        "seed": np.array([cell[4] for cell in cells]),
        "method": np.array([cell[5] for cell in cells]),
        "failure": np.array([""] * len(cells)),
    }
    for end in ("", "_sq", "_flat", "_slope", "_exact"):
        rows["map_error" + end] = rng.random(len(cells))
        rows["true_error" + end] = rng.random(len(cells))
    rows["estimate"], rows["estimate_sq"] = rng.random((2, len(cells)))
    return rows


def table_of(rows, name):
    (layout,) = (one for one in studies.layouts() if one.name == name)
    return studies.layout_table(studies.split_shape(rows), layout)


def test_lines_are_plain_means():
    rows = made_rows(["es15", "pl"])
    table = table_of(rows, "combo")
    assert table.shapes == ("all", *MODELS, "100", "200", *EVENTS)
    for j, method in enumerate(table.methods):
        mine = rows["method"] == method
        mean = 1000 * rows["map_error"][mine].mean()
        np.testing.assert_allclose(table.values[0, j], mean)
        here = mine & np.char.startswith(rows["shape"], "forest")
        mean = 1000 * rows["map_error"][here].mean()
        np.testing.assert_allclose(table.values[2, j], mean)
    flat = table_of(rows, "error_flat")
    gap = np.abs(rows["estimate"] - rows["true_error_flat"])
    here = (rows["method"] == "pl") & (np.char.find(rows["shape"], "confidence") >= 0)
    np.testing.assert_allclose(flat.values[1, 1], 1000 * gap[here].mean())


@pytest.mark.parametrize("end", ["", "_slope"])
def test_rank_correlations_are_over_calibrators(end):
    rows = made_rows(["es15", "pl"])
    table = table_of(rows, "ranking" + end)
    assert table.shapes == ("one-vs-rest", "confidence")
    correlations = []
    for model, n, seed in product(MODELS, SIZES, SEEDS):
        here = (rows["method"] == "pl") & (rows["n"] == n) & (rows["seed"] == seed)
        here &= np.char.startswith(rows["shape"], f"{model} | 3 vs rest")
        assert here.sum() == len(CALIBRATORS)
        pair = rows["estimate"][here], rows["true_error" + end][here]
        correlations.append(spearmanr(*pair).statistic)
    np.testing.assert_allclose(table.values[0, 1], np.mean(correlations))


def test_who_calls_all_models_equal_has_found_no_order():
    rows = made_rows(["es15", "pl"])
    rows["estimate"] = np.where(rows["method"] == "pl", 0.0, rows["estimate"])
    assert table_of(rows, "ranking").values[:, 1].tolist() == [0.0, 0.0]


def test_methods_are_compared_on_draws_that_all_have():
    rows, few = made_rows(["pl", "pl3"]), made_rows(["pl-mse"], seeds=(1,))
    rows = {name: np.concatenate([rows[name], few[name]]) for name in rows}
    table = table_of(rows, "map_ce_mse")
    assert table.methods == ("pl3", "pl", "pl-mse")
    assert table.draws == 2
    here = (rows["method"] == "pl") & (rows["seed"] == 1)
    here &= np.char.startswith(rows["shape"], "bayes | 3 vs")
    mean = 1000 * rows["map_error"][here].mean()
    np.testing.assert_allclose(table.values[0, 1], mean)


@pytest.mark.parametrize(("seeds", "shown"), [(SEEDS, True), ((1,), False)])
def test_variants_are_columns_where_they_have_all_draws(seeds, shown):
    rows, few = made_rows(["es15", "pl"]), made_rows(["pl-mse"], seeds=seeds)
    rows = {name: np.concatenate([rows[name], few[name]]) for name in rows}
    table = table_of(rows, "combo")
    assert table.methods == ("es15", "pl", *(["pl-mse"] if shown else []))
    assert table.draws == len(SIZES) * len(SEEDS)
    mean = 1000 * rows["map_error"][rows["method"] == "pl"].mean()
    np.testing.assert_allclose(table.values[0, 1], mean)


def test_networks_are_compared_on_their_own_few_draws():
    rows = made_rows(["platt", "es15"], calibrators=("",))
    few = made_rows(["iop-oi"], calibrators=("",), seeds=(1,))
    rows = {name: np.concatenate([rows[name], few[name]]) for name in rows}
    assert table_of(rows, "calibrators").draws == len(SIZES) * len(SEEDS)
    table = table_of(rows, "calibrators_networks")
    assert (table.methods, table.draws) == (("iop-oi", "platt"), len(SIZES))


def test_calibrators_and_evaluators_are_apart():
    calibrators = made_rows(["beta", "vector"], calibrators=("",))
    evaluators = made_rows(["es15", "beta"])
    both = {k: np.concatenate([calibrators[k], evaluators[k]]) for k in evaluators}
    assert table_of(both, "calibrators").methods == ("beta", "vector")
    mean = 1000 * calibrators["map_error"][calibrators["method"] == "beta"].mean()
    values = table_of(both, "calibrators").values
    np.testing.assert_allclose(values[:, 0].mean(), mean)
    results = {"one": calibrators, "two": evaluators}
    names = {table.kind.name for table in studies.pseudo_real_tables(results)}
    assert {"calmap", "ece", "spearman", "bias", "spearman_exact"} <= names
    assert table_of(both, "map_trick") is None


def test_the_papers_numbers_stand_beside_its_own_models_only():
    models = ("resnet110", "densenet40", "wide32")
    events = ("cars vs rest", "cats vs rest", "dogs vs rest", "confidence")
    rows = made_rows(["es15", "pl"], models=models, events=events)
    table = table_of(rows, "combo")
    assert table.printed[0].tolist() == [9.47, 6.27]
    assert "9.47 (" in as_markdown(table)
    ranking = table_of(rows, "ranking")
    assert ranking.printed.tolist() == [[0.457, 0.513], [0.624, 0.51]]
    assert np.isnan(table_of(made_rows(["es15"]), "combo").printed).all()


def test_every_printed_table_has_a_layout():
    file = files("calibrant").joinpath("data", "paper_tables.json")
    printed = json.loads(file.read_text(encoding="utf-8"))["predictions"]["tables"]
    names = {layout.name for layout in studies.layouts()}
    assert set(printed) <= names | {"real_biases"}
    assert all(printed_table("predictions", name) == printed[name] for name in printed)
    assert printed["calibrators"]["dogs vs rest"]["iop-oi"] == 11.0
    assert printed["map_trick"]["densenet40, confidence"]["pl best"] == 10.71
    assert printed["real_biases"]["real, 3000"]["es-sweep"] == -1.37
    assert printed["ranking"]["confidence"]["iop-oi"] == -0.095


@pytest.fixture
def real_rows():
    real = made_rows(["es15", "pl", "smooth"], models=("a", "b"), events=EVENTS[1:])
    real["true_error"] = np.full(real["n"].size, np.nan)
    known = made_rows(["es15", "pl", "smooth"], models=("c",), events=EVENTS[1:])
    return real, known


def test_real_biases_are_centred_on_those_of_known_data(real_rows):
    real, known = real_rows
    (table,) = studies.real_tables({"real": real, "pseudo-real": known})
    labels = [f"{kind}, {n}" for kind in ("pseudo-real", "real") for n in SIZES]
    assert table.shapes == tuple(labels)
    here = (known["method"] == "pl") & (known["n"] == 200)
    bias = (known["estimate"] - known["true_error"])[here].mean()
    np.testing.assert_allclose(table.values[1, 1], 1000 * bias)
    np.testing.assert_allclose(table.values[3].mean(), table.values[1].mean())
    of_pl, of_es15 = (
        real["estimate"][(real["method"] == m) & (real["n"] == 200)].mean()
        for m in ("pl", "es15")
    )
    gap = table.values[3, 1] - table.values[3, 0]
    np.testing.assert_allclose(gap, 1000 * (of_pl - of_es15))
    (alone,) = studies.real_tables({"real": real})
    np.testing.assert_allclose(alone.values.mean(axis=1), 0.0, atol=1e-9)
    assert "mean over methods is 0" in alone.kind.title


def events(*texts):
    return [Event.of(text) for text in texts]


def test_the_study_has_the_papers_size(small_digits, monkeypatch):
    monkeypatch.setattr(studies, "CALIBRATION_ROWS", 90)  # few rows in the hold-out
    four = events("1", "3", "5", "confidence")
    study = pseudo_real_study(small_digits[:3], four, sizes=[100, 200, 300])
    evaluators = study.designs["evaluators"]
    assert evaluators.size // len(evaluators.contenders) == 6 * 3 * 4 * 3 * 5
    assert study.designs["calibrators"].size == 3 * 4 * 20 * 23


def test_a_hold_out_that_is_too_small_is_refused_before_anything_is_run(small_digits):
    few = small_digits[:1]
    with pytest.raises(SourceError, match="the hold-out is too small"):
        pseudo_real_study(few, events("confidence"))
    with pytest.raises(SourceError, match="the hold-out is too small"):
        real_study(few, few, seeds=100)


def test_the_embedded_hold_out_is_large_enough_for_the_whole_study():
    drawn = divide_holdout(models.DIGIT_ROWS["holdout"]).drawn.size
    assert drawn >= studies.CALIBRATION_ROWS * studies.CALIBRATION_SETS
    assert drawn >= max(studies.PAPER_SIZES) * studies.PAPER_SEEDS


@pytest.mark.parametrize("installed", [True, False])
def test_networks_take_part_where_torch_is(small_digits, monkeypatch, installed):
    torch = ModuleType("torch")
    torch.__spec__ = ModuleSpec("torch", None)
    monkeypatch.setitem(sys.modules, "torch", torch if installed else None)
    monkeypatch.setattr(studies, "CALIBRATION_ROWS", 90)
    study = pseudo_real_study(small_digits[:1], events("confidence"), sizes=[100])
    calibrators, evaluators = list(study.designs.values())[2:]
    names = {contender.name for contender in calibrators.contenders}
    assert (set(NETWORKS) <= names) == installed
    assert bool(study.notes) != installed
    assert calibrators.seeds == evaluators.seeds == tuple(range(5))


def test_subsets_are_as_many_as_the_test_rows_allow(small_digits):
    designs = real_study(small_digits[:1]).designs  # of 2,500 test rows
    assert {name: len(design.seeds) for name, design in designs.items()} == {
        "real, 1000": 2
    }


def test_quick_studies_are_small_and_keep_what_is_smaller(small_digits):
    study = pseudo_real_study(
        small_digits[:1], events("confidence"), quick=True, seeds=1
    )
    sizes = [design.size for design in study.designs.values()]
    assert sizes == [2 * 6, 7 * 6]  # on 6 calibrators
    (real,) = real_study(small_digits, quick=True).designs.values()
    assert real.size == 4 * 2 * 7 * 2  # models, calibrators, evaluators, subsets
