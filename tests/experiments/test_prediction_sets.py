"""Predictions of a model in memory and in files."""

import numpy as np
import polars as pl
import pytest

from calibrant.core.tasks import InputSpec
from calibrant.exceptions import ShapeError, SourceError
from calibrant.experiments import StoredPredictions, find_predictions
from calibrant.experiments.prediction_sets import Event, Split, outcomes_of

Y = np.tile([0, 1, 1, 0], 10)
P = np.linspace(0.05, 0.95, 40)
THREE = np.tile([[0.2, 0.3, 0.5]], (40, 1))


@pytest.mark.parametrize("task", ["confidence", 2])
def test_events_are_those_of_the_measures_whatever_the_chunks(logits, task):
    scores, y = logits
    outcomes = outcomes_of(Split(scores, y, "logit"), Event.of(str(task)), chunk=7)
    spec = InputSpec(task=task, scale="logit")
    (expected,) = spec.tasks(y, scores.astype(float)).samples
    np.testing.assert_allclose(outcomes.p, expected.p, rtol=1e-12)
    np.testing.assert_array_equal(outcomes.y, expected.y)


def test_a_map_may_change_the_top_class():
    split = Split(np.array([[0.9, 0.1]]), np.array([1]), "prob", np.array([[0.2, 0.8]]))
    swapped = outcomes_of(split, Event("confidence"), lambda scores: scores[:, ::-1])
    assert (swapped.p.item(), swapped.y.item(), swapped.exact.item()) == (0.9, 1.0, 0.8)


def test_events_by_name():
    assert Event.of("3=cats") == Event("cats vs rest", 3)
    assert Event.of("3") == Event("3 vs rest", 3)
    with pytest.raises(SourceError, match=r"number=name, such as 3=cats; got 'cats'"):
        Event.of("cats")


def test_a_fingerprint_tells_other_labels_apart(logits):
    scores, y = logits
    changed = np.where(np.arange(y.size) == 5, (y + 1) % 4, y)
    prints = {Split(scores, labels, "logit").fingerprint for labels in (y, changed)}
    assert len(prints) == 2


def test_a_fingerprint_tells_other_posteriors_apart(logits):
    scores, y = logits
    exact = np.full(scores.shape, 1.0 / scores.shape[1])
    other = exact.copy()
    other[5, :2] += [0.1, -0.1]
    prints = {
        Split(scores, y, "logit", known).fingerprint for known in (None, exact, other)
    }
    assert len(prints) == 3


def test_wrong_contents_are_named():
    good = np.array([[0.5, 0.5], [0.2, 0.8]])
    with pytest.raises(ShapeError, match="they have 2 and 3"):
        Split(good, np.zeros(3), "prob")
    with pytest.raises(ShapeError, match="one number per row"):
        Split(good[0], np.zeros(2), "prob")
    with pytest.raises(SourceError, match=r"m: labels .* from 0 to 1; row 1 has 2"):
        Split(good, np.array([0, 2]), "prob").check("m")
    with pytest.raises(SourceError, match=r"probabilities of sum 1; row 1 is not"):
        Split(good * [[1.0], [2.0]], np.zeros(2), "prob").check("m")
    with pytest.raises(SourceError, match=r"must be finite; row 0 is not"):
        Split(good * [[np.inf], [1.0]], np.zeros(2), "logit").check("m")


def test_plain_and_packed_files_hold_the_same(tmp_path, logits):
    scores, y = logits
    arrays = {f"logits_{split}": scores for split in ("cal", "test")}
    arrays |= {f"y_{split}": y for split in ("cal", "test")}
    np.savez(tmp_path / "plain.npz", **arrays)
    np.savez_compressed(tmp_path / "packed.npz", **arrays)
    models = find_predictions(tmp_path)
    assert [m.name for m in models] == ["packed", "plain"]
    for model in models:
        for split in (model.calibration(), model.test(), model.holdout()):
            np.testing.assert_array_equal(split.scores, scores)
            np.testing.assert_array_equal(split.labels, y)
            assert split.scale == "logit"
    assert len({model.holdout().fingerprint for model in models}) == 1


def test_real_test_rows_make_the_others_the_hold_out(tmp_path):
    arrays = {}
    for rows, split in ((2, "val"), (3, "test"), (4, "realtest")):
        arrays[f"probs_{split}"] = np.full((rows, 2), 0.5, np.float16)
        arrays[f"y_{split}"] = np.zeros(rows, np.uint8)
    np.savez(tmp_path / "model.npz", **arrays)
    (model,) = find_predictions(tmp_path)
    rows = (model.calibration().rows, model.test().rows, model.holdout().rows)
    assert rows == (2, 4, 3)


def test_wrong_files_are_named(tmp_path):
    with pytest.raises(SourceError, match="is not a folder"):
        find_predictions(tmp_path / "none")
    with pytest.raises(SourceError, match="contains no predictions"):
        find_predictions(tmp_path)
    np.savez(tmp_path / "other.npz", weights=P)
    pl.DataFrame({"y": [0], "score": [0.5]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(SourceError, match="contains no predictions"):
        find_predictions(tmp_path)
    np.savez(tmp_path / "half.npz", logits_test=np.zeros((2, 2)))
    with pytest.raises(SourceError, match=r"no split cal or val: .* logits_cal"):
        StoredPredictions(str(tmp_path / "half.npz")).calibration()
    objects = np.array([[{}, {}]], dtype=object)
    np.savez(tmp_path / "objects.npz", logits_test=objects, y_test=np.zeros(1))
    with pytest.raises(SourceError, match="Object arrays cannot be loaded"):
        StoredPredictions(str(tmp_path / "objects.npz")).test()
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    with pytest.raises(SourceError, match="cannot be read"):
        find_predictions(tmp_path)


@pytest.mark.shared
def test_the_shared_pseudo_real_set_is_as_its_readme_says(shared_data):
    # accuracy and mean confidence of the 2.21 million rows of which 1.5 are here
    documented = {"resnet110": (0.8320, 0.9152), "wide32": (0.8501, 0.9408)}
    models = {m.name: m for m in find_predictions(shared_data / "pseudoreal")}
    for name, (accuracy, confidence) in documented.items():
        assert models[name].test().rows == 10_000
        outcomes = outcomes_of(models[name].holdout(), Event("confidence"))
        assert outcomes.p.size == 1_500_000
        np.testing.assert_allclose(outcomes.y.mean(), accuracy, atol=5e-4)
        np.testing.assert_allclose(outcomes.p.mean(), confidence, atol=5e-4)


@pytest.mark.parametrize(
    ("arrays", "classes", "p"),
    [
        ({"p": P, "y": Y}, 2, P),
        ({"conf": P, "y_true": Y, "y_pred": np.ones(40)}, 2, P),
        ({"logits": np.log(THREE), "y": Y}, 3, None),
        ({"probs": THREE, "y": Y}, 3, None),
    ],
)
def test_files_without_splits_are_divided_into_halves(tmp_path, arrays, classes, p):
    (tmp_path / "birds").mkdir()
    np.savez(tmp_path / "birds" / "net.npz", **arrays)
    (one,) = find_predictions(tmp_path)
    assert (one.data, one.name) == ("birds", "net")
    cal, test = one.calibration(), one.test()
    assert (cal.classes, cal.rows, test.rows) == (classes, 20, 20)
    if p is not None:
        together = np.concatenate([cal.scores[:, 1], test.scores[:, 1]])
        np.testing.assert_array_equal(np.sort(together), p)
        pairs = dict(zip(P, Y, strict=True))
        assert [pairs[value] for value in cal.scores[:, 1]] == cal.labels.tolist()


def test_several_models_of_one_file_share_its_labels(tmp_path):
    splits = {"y_val": Y[:20], "y_test": Y[20:], "idx_val": np.arange(20)}
    models = {f"{m}_{s}": P[:20] for m in ("tree", "forest") for s in ("val", "test")}
    np.savez(tmp_path / "adult.npz", **splits, **models)
    sets = find_predictions(tmp_path)
    assert [(one.data, one.name) for one in sets] == [
        ("adult", "forest"),
        ("adult", "tree"),
    ]
    cal, test = sets[0].calibration(), sets[0].test()
    assert cal.labels.tolist() == Y[:20].tolist()
    assert test.scores[:, 1].tolist() == P[:20].tolist()


def test_a_model_with_its_own_splits_keeps_them(tmp_path):
    arrays = {"logits_val": THREE[:10], "y_val": Y[:10]}
    np.savez(tmp_path / "net.npz", **arrays, logits_test=THREE, y_test=Y)
    (one,) = find_predictions(tmp_path)
    assert (one.calibration().rows, one.holdout().rows) == (10, 40)


def test_tables_are_divided_by_data_set_and_model(tmp_path):
    columns = {"p": P, "y": Y, "task": ["arc", "mmlu"] * 20, "season": Y}
    table = pl.DataFrame({**columns, "model": ["a"] * 20 + ["b"] * 20, "shots": 1})
    table.write_parquet(tmp_path / "llm.parquet")
    sets = find_predictions(tmp_path)
    names = [(one.data, one.name) for one in sets]
    assert names == [(f"llm {t}", f"{m} 1") for t in ("arc", "mmlu") for m in "ab"]
    cal, test = sets[0].calibration(), sets[0].test()
    both = np.concatenate([cal.scores[:, 1], test.scores[:, 1]])
    np.testing.assert_array_equal(np.sort(both), P[:20:2])


def test_a_random_sample_keeps_the_order_of_rows(logits):
    split = Split(*logits, "logit")
    few = split.at_most(50)
    places = [np.flatnonzero((logits[0] == row).all(axis=1))[0] for row in few.scores]
    assert places == sorted(set(places))
    np.testing.assert_array_equal(few.labels, logits[1][places])
    assert split.at_most(200) is split
