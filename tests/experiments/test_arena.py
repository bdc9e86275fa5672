"""The arena: samples, scores, harm, who takes part, and resuming."""

import numpy as np
import pytest
from sklearn.metrics import log_loss

from calibrant.exceptions import OptionError, UnknownNameError
from calibrant.experiments import arena, run
from calibrant.experiments.arena import (
    ArenaContender,
    ArenaSample,
    arena_sets,
    arena_study,
    arena_tables,
    arena_truths,
    compare_in_cells,
    contenders,
    facts,
)
from calibrant.experiments.prediction_sets import Event


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two data sets by two models: one event, and three classes."""
    root = tmp_path_factory.mktemp("predictions")
    rng = np.random.default_rng(0)
    for power in (1.0, 3.0):
        p, exact = rng.random(1000), rng.dirichlet([1.0] * 3, 1000)
        y = (rng.random(1000) < p).astype(int)
        label = (rng.random((1000, 1)) > exact.cumsum(axis=1)[:, :2]).sum(axis=1)
        for data in ("events", "classes"):
            (root / data).mkdir(exist_ok=True)
        odds = (p / (1.0 - p)) ** power
        np.savez(root / "events" / f"{power}.npz", p=odds / (1.0 + odds), y=y)
        logits = power * np.log(exact)
        np.savez(root / "classes" / f"{power}.npz", logits=logits, y=label)
    return root


def test_scores_are_those_of_their_definitions():
    rng = np.random.default_rng(1)
    q, y = rng.dirichlet([1.0] * 3, 50), rng.integers(3, size=50)
    classes = ArenaSample(q, y).scores(q)
    assert classes["log_loss"] == pytest.approx(log_loss(y, q))
    assert classes["brier"] == pytest.approx(((q - np.eye(3)[y]) ** 2).sum(1).mean())
    assert classes["accuracy"] == (q.argmax(axis=1) == y).mean()
    event = ArenaSample(q[:, 0], y == 0).scores(q[:, 0])
    assert event["log_loss"] == pytest.approx(log_loss(y == 0, q[:, 0]))
    assert event["brier"] == pytest.approx(((q[:, 0] - (y == 0)) ** 2).mean())


def test_models_of_several_classes_give_two_events(folder):
    sets = arena_sets(folder)
    labels = [truth.shape for truth in arena_truths(sets, "binary")]
    assert labels == [
        "classes | 1.0 | confidence",
        "classes | 1.0 | 0 vs rest",
        "classes | 3.0 | confidence",
        "classes | 3.0 | 0 vs rest",
        "events | 1.0 | event",
        "events | 3.0 | event",
    ]
    several = arena_truths(sets, "multi-class")
    assert [truth.event for truth in several] == [None, None]


def test_samples_have_no_row_in_common_with_the_test_rows(folder):
    truth = arena_truths(arena_sets(folder / "events"), "binary")[0]
    data, test = truth.draw(400, 1), truth.unseen()
    assert data.p.size == 400
    assert test.p.size == 500
    assert not set(data.p.tolist()) & set(test.p.tolist())
    assert np.array_equal(truth.draw(400, 1).p, data.p)
    assert not np.array_equal(truth.draw(400, 2).p, data.p)
    assert truth.has(500, 0)
    assert not truth.has(500, 1)  # all rows: the same sample again
    assert not truth.has(501, 0)


def test_calibration_helps_where_predictions_are_too_extreme_and_only_there(folder):
    good, bad = arena_truths(arena_sets(folder / "events"), "binary")
    for truth, sign in ((good, 0), (bad, -1)):
        data, test = truth.draw(500, 0), truth.unseen()
        row = ArenaContender.of("platt").measure(data, test, truth)
        before = ArenaContender.of("none").measure(data, test, truth)
        gain = row["log_loss"] - before["log_loss"]
        assert row["difference"] == pytest.approx(gain)
        assert before["difference"] == before["difference_error"] == 0.0
        assert np.sign(gain) * (abs(gain) > 3 * row["difference_error"]) == sign


def test_the_paired_standard_error_is_that_of_the_mean_difference():
    test = ArenaSample(np.full(30, 0.5), np.tile([1, 1, 0], 10))
    row = ArenaContender("constant", Constant()).measure(test, test, None)
    change = np.tile(np.log(0.5) - np.log([0.8, 0.8, 0.2]), 10)
    assert row["difference"] == pytest.approx(change.mean())
    assert row["difference_error"] == pytest.approx(change.std() / np.sqrt(30))


class Constant:
    """Says 0.8 whatever the prediction."""

    def __repr__(self):
        return "Constant()"

    def fit(self, _p, _y):
        return self

    def transform(self, p):
        return np.full(p.shape, 0.8)


def test_methods_take_part_where_they_are_of_the_kind():
    def names(kind, methods=None):
        return [one.name for one in contenders(kind, methods)]

    assert names("binary", ["platt", "vector", "es20"]) == ["none", "platt", "es20"]
    assert names("multi-class", ["ovr-beta", "platt"]) == ["none", "ovr-beta"]
    assert "iop-oi" not in names("multi-class", ["all"])
    assert {"smooth", "platt", "beta"} < set(names("binary"))
    with pytest.raises(UnknownNameError, match="platt"):
        names("binary", ["plat"])


def test_a_run_is_continued_where_it_stopped(folder, tmp_path):
    sets = arena_sets(folder / "classes")
    options = {"methods": ["platt", "vector"], "sizes": [100, 500], "seeds": 2}
    for design in arena_study(sets, **options).designs.values():
        assert design.size == 2 * len(design.truths) * 3  # 500 rows only once
        some = type(design)(**{**vars(design), "sizes": (100,)})
        run(some, tmp_path)
        rows = run(design, tmp_path)
        assert (rows["failure"] == "").all()
        assert rows["method"].size == design.size
        assert rows["seconds"].min() >= 0.0
    log = (tmp_path / "log.txt").read_text()
    assert "start: 24 cells, 16 of them done before" in log
    assert "start: 12 cells, 8 of them done before" in log


def test_nothing_to_run_is_an_error(folder):
    with pytest.raises(OptionError, match="no set of predictions has 501 calibration"):
        arena_study(arena_sets(folder), sizes=[501])


def test_events_of_two_columns_are_the_second():
    assert Event("event", 1).columns(np.eye(2)).tolist() == [1, 1]


PUBLISHED = [
    ("probs_resnet110_c10_logits", "temperature", 0.20926, 0.09785, 0.9356),
    ("probs_resnet110_c10_logits", "sms", 0.20312, 0.09740, 0.9353),
    ("probs_densenet40_c10_logits", "sms", 0.22062, 0.10979, 0.9256),
]
"""Log-loss, Brier score and accuracy in the result files of CalArena."""


@pytest.mark.parametrize(("name", "method", "loss", "brier", "accuracy"), PUBLISHED)
def test_two_networks_have_the_scores_of_calarena(
    shared_data, name, method, loss, brier, accuracy
):
    sets = arena_sets(shared_data / "nn_calibration_valtest")
    (truth,) = (t for t in arena_truths(sets, "multi-class") if t.source.name == name)
    row = ArenaContender.of(method).measure(truth.draw(5000, 0), truth.unseen(), truth)
    assert row["log_loss"] == pytest.approx(loss, abs=5e-5)
    assert row["brier"] == pytest.approx(brier, abs=5e-5)
    assert row["accuracy"] == pytest.approx(accuracy, abs=5e-4)


def test_many_rows_and_models_are_thinned(tmp_path, monkeypatch):
    monkeypatch.setattr(arena, "MAX_CAL", 5)
    monkeypatch.setattr(arena, "MAX_MODELS", 3)
    for name in "abcde":
        np.savez(tmp_path / f"{name}.npz", p=np.linspace(0, 1, 40), y=np.arange(40) % 2)
    sets = arena_sets(tmp_path)
    assert [one.name for one in sets] == ["a", "c", "e"]
    assert facts(sets[0])[:3] == (2, 5, 20)


@pytest.fixture
def rows():
    """Three cells of two data sets, three methods; the last one failed once."""
    loss = [0.5, 0.4, 0.65, 0.3, 0.3, 0.2, 0.7, 0.75, np.nan]
    base = np.repeat([0.5, 0.3, 0.7], 3)
    return {
        "method": np.tile(["none", "a", "b"], 3),
        "shape": np.repeat(["x | m | event", "x | k | event", "z | m | event"], 3),
        "error": np.full(9, np.nan),
        "n": np.full(9, 200),
        "seed": np.zeros(9, dtype=int),
        "failure": np.array([""] * 8 + ["ValueError: no"]),
        "log_loss": np.array(loss),
        "difference": np.array(loss) - base,
        "difference_error": np.tile([0.0, 0.04, 0.16], 3),
        **{
            name: np.linspace(0.1, 0.9, 9)
            for name in ("brier", "smooth_error", "es15_error", "accuracy")
        },
        "seconds": np.tile([0.0, 0.002, 0.004], 3),
    }


def test_methods_are_compared_in_each_cell(rows):
    found = compare_in_cells(rows)
    assert found["data"].tolist() == ["x"] * 6 + ["z"] * 3
    expected = [0.1, 0.0, 0.25, 0.1, 0.1, 0.0, 0.0, 0.05, 0.0]
    np.testing.assert_allclose(found["excess"], expected, atol=1e-12)
    # Ties are not wins, and the failed method wins against none.
    assert found["win"].tolist() == [0.5, 1.0, 0.0, 0.0, 0.0, 1.0, 0.5, 0.0, 0.0]
    assert found["harmed"].tolist() == [0, 0, 0, 0, 0, 0, 0, 1, 0]


def test_tables_have_means_and_errors_clustered_by_data_set(rows):
    tables = {table.kind.name: table for table in arena_tables({"binary": rows})}
    excess = tables["excess"]
    assert excess.methods == ("a", "none", "b")
    assert excess.shapes == ("200 rows",)
    assert excess.study == "Binary, 3 cells of 3 models"
    np.testing.assert_allclose(excess.values[0], [50, 200 / 3, 250 / 3])
    # Residuals of none: twice 100/3 in x, -200/3 in z; so the sums are +-200/3.
    expected = np.sqrt(2 * (200 / 3) ** 2 * 2) / 3
    assert excess.errors[0, 1] == pytest.approx(expected)
    np.testing.assert_allclose(tables["wins"].values[0], [1 / 3] * 3)
    np.testing.assert_allclose(tables["harm"].values[0], [100 / 3, 0.0, 0.0])
    np.testing.assert_allclose(tables["time"].values[0], [2.0, 0.0, 8 / 3])
    assert excess.draws == 2
