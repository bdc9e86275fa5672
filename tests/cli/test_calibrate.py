"""``calibrant calibrate`` and ``apply``, run as users run them."""

import json

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import calibrant as cb

BINARY, MULTI = str(cb.datasets.BINARY_FILE), str(cb.datasets.MULTICLASS_FILE)


@pytest.fixture
def saved(run, tmp_path):
    """Fit a map to a bundled classifier; give where it is."""
    out = tmp_path / "map.json"
    code, told, err = run(
        "calibrate", BINARY, "--y", "even", "--p", "forest", "--out", out
    )
    assert code == 0, err
    assert "1,797 rows show that predictions are miscalibrated. On held-out" in told
    return out


def test_the_map_is_that_of_the_library(saved):
    p, y = cb.datasets.load_binary("forest")
    assert cb.load_map(saved) == cb.make_calibrator().fit(p, y).map_


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl"])
def test_every_row_and_column_stays(run, saved, tmp_path, suffix):
    out = tmp_path / f"calibrated{suffix}"
    code, told, err = run("apply", saved, BINARY, "--p", "forest", "--out", out)
    assert code == 0, err
    assert "1,797 rows, new forest_calibrated" in told
    read = {".csv": pl.read_csv, ".tsv": lambda f: pl.read_csv(f, separator="\t")}
    read |= {".parquet": pl.read_parquet, ".jsonl": pl.read_ndjson}
    found, given = read[suffix](out), pl.read_csv(BINARY)
    assert found.columns == [*given.columns, "forest_calibrated"]
    assert_allclose(
        found.select(given.columns).cast(pl.Float64).to_numpy(),
        given.cast(pl.Float64).to_numpy(),
    )
    expected = cb.load_map(saved).transform(given["forest"].to_numpy())
    assert_allclose(found["forest_calibrated"].to_numpy(), expected, rtol=1e-12)


def test_text_of_a_csv_file_stays_as_it_was(run, saved, tmp_path):
    source, out = tmp_path / "new.csv", tmp_path / "out.csv"
    source.write_text(
        'id,forest,note\n007,0.50,"a, ""b"""\n1e3,.25,\n', encoding="utf-8"
    )
    assert run("apply", saved, source, "--p", "forest", "--out", out)[0] == 0
    lines = out.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "id,forest,note,forest_calibrated"
    assert lines[1].startswith('007,0.50,"a, ""b""",0.')
    assert lines[2].startswith("1e3,.25,,0.")


def test_classes_are_calibrated_together(run, tmp_path):
    saved, out = tmp_path / "map.json", tmp_path / "out.parquet"
    columns = ("--p", "forest_*")
    assert run("calibrate", MULTI, "--y", "digit", *columns, "--out", saved)[0] == 0
    assert run("apply", saved, MULTI, *columns, "--out", out, "--suffix", "_c")[0] == 0
    prob, digit = cb.datasets.load_multiclass("forest")
    expected = cb.make_calibrator().fit(prob, digit).transform(prob)
    found = pl.read_parquet(out).select(f"forest_{d}_c" for d in range(10)).to_numpy()
    assert_allclose(found, expected, rtol=1e-12)


CLASSES = ("--y", "digit", "--p", "forest_*")


def test_the_order_of_classes_can_be_kept(run, tmp_path):
    kept = tmp_path / "kept.json"
    options = (*CLASSES, "--keep-order")
    code, _, err = run("calibrate", MULTI, *options, "--out", kept)
    assert code == 0, err
    prob, digit = cb.datasets.load_multiclass("forest")
    own = cb.make_calibrator(keep_order=True).fit(prob, digit)
    assert np.array_equal(cb.load_map(kept)(prob), own.transform(prob))
    for wrong in ((BINARY, "--y", "even", "--p", "forest"), (MULTI, *CLASSES)):
        method = ("--method", "temperature") if wrong[0] == MULTI else ()
        typed = (*wrong, *method, "--keep-order", "--out", kept)
        code, _, err = run("calibrate", *typed)
        assert code == 2
        assert "--keep-order is for several classes and the method auto" in err


@pytest.mark.parametrize(("method", "names"), [("platt", "slope"), ("beta", "a b")])
def test_all_coefficients_are_printed(run, tmp_path, method, names):
    out = tmp_path / "m.json"
    options = ("--y", "even", "--p", "forest", "--method", method, "--out", out)
    said = run("calibrate", BINARY, *options)[1]
    map_ = cb.load_map(out)
    values = [map_.a] if method == "platt" else [map_.a, map_.b]
    pairs = zip(names.split(), values, strict=True)
    words = ", ".join(f"{name} {value:.4g}" for name, value in pairs)
    assert f": {words}, intercept {map_.intercept:.4g}; log-loss" in said


def test_the_temperature_is_printed(run, tmp_path):
    out = tmp_path / "map.json"
    options = (*CLASSES, "--method", "temperature", "--out", out)
    _, said, _ = run("calibrate", MULTI, *options)
    assert f"10 classes: temperature {cb.load_map(out).temperature:.4g}; log" in said


def test_columns_of_the_same_names_may_come_in_another_order(run, tmp_path):
    saved, out = tmp_path / "map.json", tmp_path / "out.parquet"
    other, mixed = tmp_path / "other.parquet", tmp_path / "mixed.parquet"
    columns = ("--p", "forest_*")
    fit = ("--y", "digit", *columns, "--method", "vector", "--out", saved)
    assert run("calibrate", MULTI, *fit)[0] == 0
    frame = pl.read_csv(MULTI)
    frame.select(reversed(frame.columns)).write_parquet(mixed)
    assert run("apply", saved, MULTI, *columns, "--out", out)[0] == 0
    assert run("apply", saved, mixed, *columns, "--out", other)[0] == 0
    new = [f"forest_{d}_calibrated" for d in range(10)]
    assert pl.read_parquet(out).select(new).equals(pl.read_parquet(other).select(new))


def test_what_was_text_becomes_numbers_in_a_typed_file(run, saved, tmp_path):
    out = tmp_path / "out.parquet"
    assert run("apply", saved, BINARY, "--p", "forest", "--out", out)[0] == 0
    assert pl.read_parquet(out).schema == {
        **pl.read_csv(BINARY).schema,
        "forest_calibrated": pl.Float64,
    }


def test_names_of_events_weights_and_logits(run, tmp_path):
    rng = np.random.default_rng(0)
    logit, weight = rng.normal(0, 2, 500), rng.integers(0, 3, 500)
    y = np.where(rng.random(500) < 1 / (1 + np.exp(-2 * logit)), "spam", "ham")
    source, saved = tmp_path / "val.parquet", tmp_path / "map.json"
    pl.DataFrame({"y": y, "score": logit, "w": weight}).write_parquet(source)
    code, told, err = run(
        "calibrate", source, "--y", "y", "--p", "score", "--out", saved,
        "--method", "platt", "--pos-label", "spam", "--weight", "w", "--scale", "logit",
    )  # fmt: skip
    assert code == 0, err
    assert "apply expects the same scale, logit" in told
    p = 1 / (1 + np.exp(-logit))
    expected = cb.make_calibrator("platt").fit(p, y == "spam", sample_weight=weight)
    assert_allclose(cb.load_map(saved).a, expected.map_.a)
    out = tmp_path / "out.parquet"
    apply = ("apply", saved, source, "--p", "score", "--out", out)
    assert run(*apply, "--scale", "prob")[0] == 2
    assert not out.exists()
    assert run(*apply)[0] == 0
    found = pl.read_parquet(out)["score_calibrated"].to_numpy()
    assert_allclose(found, expected.transform(p))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--method", "vector"), "pass the columns of all classes"),
        (("--method", "kce"), "only measures"),
        (("--method", "pll"), "unknown method 'pll'"),
        (("--weight", "nope"), "unknown column 'nope'"),
        (("--p", "forest,bayes,bayes", "--method", "pl"), "or use ovr-pl"),
        (("--out", "map.txt"), "must end in .json"),
        (("--out", "no/such/map.json"), "does not exist"),
    ],
)
def test_wrong_uses_of_calibrate_are_told(run, tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    usual = {"--y": "even", "--p": "forest", "--out": "map.json"}
    usual |= dict(zip(arguments[::2], arguments[1::2], strict=True))
    flat = [part for pair in usual.items() for part in pair]
    code, _, err = run("calibrate", BINARY, *flat)
    assert code == 2
    assert words in err
    assert list(tmp_path.iterdir()) == []


BAD_CELLS = {"0.5,abc": "row 1 is 'abc'", "0.5,": "missing", "0.5,1.5": "row 1 is 1.5"}


@pytest.mark.parametrize("cells", BAD_CELLS)
def test_bad_predictions_are_told_and_nothing_is_written(run, saved, tmp_path, cells):
    source, out = tmp_path / "new.csv", tmp_path / "out.csv"
    rows = "".join(f"{cell},x\n" for cell in cells.split(","))
    source.write_text("forest,note\n" + rows, encoding="utf-8")
    out.write_text("precious", encoding="utf-8")
    code, _, err = run("apply", saved, source, "--p", "forest", "--out", out)
    assert code == 2
    assert "column 'forest'" in err
    assert BAD_CELLS[cells] in err
    assert out.read_text(encoding="utf-8") == "precious"


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_rows_without_a_prediction_stay_empty_if_allowed(
    run, saved, tmp_path, engine, recwarn
):
    rows, out = tmp_path / "gaps.csv", tmp_path / "out.csv"
    rows.write_text("forest,id\n0.2,a\n,b\n0.9,c\nNaN,d\n")
    apply = ("apply", saved, rows, "--p", "forest", "--out", out, "--engine", engine)
    code, _, err = run(*apply)
    assert code == 2
    assert "leave the new columns empty there: --allow-missing." in err
    code, told, err = run(*apply, "--allow-missing")
    assert code == 0, err
    assert "4 rows, new forest_calibrated; 2 without a prediction stay empty" in told
    assert not recwarn.list  # a gap is not a prediction out of range
    first, second, third, fourth = pl.read_csv(out)["forest_calibrated"]
    assert_allclose([first, third], cb.load_map(saved).transform([0.2, 0.9]))
    assert second is None
    assert fourth is None
    rows.write_text("forest,id\n,b\n1.9,c\n")
    code, _, err = run(*apply, "--allow-missing")
    assert code == 2
    assert "must contain probabilities in [0, 1]" in err
    assert "1.9" in err


@pytest.mark.parametrize(
    ("engine", "first", "last"),
    [
        ("memory", "0.2", "oops"),
        ("duckdb", "0.2", "oops"),
        ("duckdb", "true", "false"),
    ],
)
def test_text_is_no_missing_prediction(run, saved, tmp_path, engine, first, last):
    rows, out = tmp_path / "late.csv", tmp_path / "out.csv"
    rows.write_text("forest,id\n" + f"{first},a\n" * 2000 + f"{last},b\n")
    apply = ("apply", saved, rows, "--p", "forest", "--out", out, "--engine", engine)
    code, _, err = run(*apply, "--allow-missing")
    assert code == 2
    assert "column 'forest' must contain numbers" in err
    assert not out.exists()


def test_infinite_logits_are_not_called_missing(run, saved, tmp_path):
    rows = tmp_path / "infinite.csv"
    rows.write_text("forest\n0.2\ninf\n")
    options = ("--p", "forest", "--out", tmp_path / "out.csv")
    code, _, err = run("apply", saved, rows, *options)
    assert code == 2
    assert "--allow-missing" not in err


def test_classes_of_a_row_with_a_gap_stay_empty(run, tmp_path):
    prob, digit = cb.datasets.load_multiclass("forest")
    saved, out = tmp_path / "map.json", tmp_path / "out.npz"
    cb.save_map(cb.make_calibrator("temperature").fit(prob, digit).map_, saved)
    gaps = prob[:3].copy()
    gaps[1, 4] = np.nan
    np.savez(tmp_path / "gaps.npz", prob=gaps)
    apply = ("apply", saved, tmp_path / "gaps.npz", "--p", "prob", "--out", out)
    assert run(*apply)[0] == 2
    assert run(*apply, "--allow-missing")[0] == 0
    found = np.load(out)["prob_calibrated"]
    assert np.isnan(found[1]).all()
    assert_allclose(found[[0, 2]], cb.load_map(saved).transform(prob[[0, 2]]))


def test_wrong_uses_of_apply_are_told(run, saved, tmp_path):
    new = ("--p", "forest", "--out", tmp_path / "out.csv")
    hostile = tmp_path / "hostile.json"
    hostile.write_text(
        json.dumps({"format": "calibrant-map", "version": 1, "map": {"kind": "eval"}}),
        encoding="utf-8",
    )
    assert "unknown kind of map" in run("apply", hostile, BINARY, *new)[2]
    assert "is not a JSON file" in run("apply", BINARY, BINARY, *new)[2]
    assert "cannot be written" in run("apply", saved, BINARY, *new[:3], "out.xls")[2]
    assert "does not exist" in run("apply", saved, "nope.csv", *new)[2]
    assert (
        "error: nope.json does not exist." in run("apply", "nope.json", BINARY, *new)[2]
    )
    two = run("apply", saved, BINARY, "--p", "forest,bayes", *new[2:])
    assert "needs one column in --p; got 2: forest, bayes" in two[2]
    assert run("apply", saved, BINARY, *new)[0] == 0
    again = run("apply", saved, new[3], *new)
    assert "--out must not be one of the input files" in again[2]
    twice = run("apply", saved, new[3], *new[:3], tmp_path / "other.csv")
    assert "already has a column 'forest_calibrated'" in twice[2]


def test_labels_that_are_all_equal_are_told(run, tmp_path):
    source, out = tmp_path / "one.csv", tmp_path / "map.json"
    source.write_text("y,p\n" + "1,0.3\n1,0.8\n" * 30)
    fit = ("--y", "y", "--p", "p", "--method", "platt", "--out", out)
    assert "warning: all 60 labels are equal" in run("calibrate", source, *fit)[2]


def test_two_columns_of_predict_proba_are_one_event(run, tmp_path):
    p, y = cb.datasets.load_binary("forest")
    words = np.where(y == 1, "yes", "no")
    table = {"y": y, "word": words, "p_no": 1.0 - p, "p_yes": p}
    pl.DataFrame(table).write_csv(tmp_path / "rows.csv")
    alone = cb.make_calibrator("platt").fit(p, y).map_
    for options in (["--y", "y"], ["--y", "word", "--labels", "no,yes"]):
        out = tmp_path / "map.json"
        arguments = (*options, "--p", "p_no,p_yes", "--method", "platt", "--out", out)
        code, _, err = run("calibrate", tmp_path / "rows.csv", *arguments)
        assert code == 0, err
        found = cb.load_map(out).transform([0.1, 0.5, 0.9])
        assert_allclose(found, alone.transform([0.1, 0.5, 0.9]))
        assert json.loads(out.read_text())["columns"] == ["p_yes"]


@pytest.fixture
def sites(tmp_path):
    """Write predictions of two sites, which are too high at one of them."""
    rng, path = np.random.default_rng(0), tmp_path / "sites.csv"
    p, site = rng.random(800), np.repeat(["north", "7"], 400)
    y = rng.random(800) < np.where(site == "north", p**2, p)
    pl.DataFrame({"p": p, "site": site, "y": y.astype(int)}).write_csv(path)
    return path


def test_each_group_has_its_map(run, sites, tmp_path):
    map_file, new, out = (tmp_path / n for n in ("map.json", "new.csv", "out.csv"))
    options = ("--y", "y", "--p", "p", "--by", "site", "--out", map_file)
    code, told, err = run("calibrate", sites, *options)
    assert code == 0, err
    assert "Separate maps of the groups lower the log-loss" in told
    new.write_text("site,p\nnorth,0.5\n7,0.5\nwest,0.5\n,0.5\n", encoding="utf-8")
    code, told, err = run("apply", map_file, new, "--p", "p", "--out", out)
    assert code == 0, err
    assert "2 of 4 rows belong to groups without a map, such as west" in told
    map_ = cb.load_map(map_file)
    expected = map_.transform([0.5] * 4, ["north", 7, "west", None])
    assert_allclose(pl.read_csv(out)["p_calibrated"].to_numpy(), expected, rtol=1e-12)
    assert expected[0] < 0.35
    assert expected[1] > 0.45

    new.write_text("p\n0.5\n", encoding="utf-8")
    code, _, err = run("apply", map_file, new, "--p", "p", "--out", out)
    assert code == 2
    assert "depends on column 'site', which is missing. Columns are: p." in err
    options = ("--p", "p", "--out", out, "--engine", "duckdb")
    code, _, err = run("apply", map_file, sites, *options)
    assert code == 2
    assert "maps of groups are applied in memory" in err


def test_groups_are_for_auto_and_one_event(run, sites, tmp_path):
    options = ("--y", "y", "--p", "p", "--by", "site", "--out", tmp_path / "m.json")
    code, _, err = run("calibrate", sites, *options, "--method", "platt")
    assert code == 2
    assert "remove --by" in err
    options = ("--y", "digit", "--p", "forest_*", "--by", "digit")
    code, _, err = run("calibrate", MULTI, *options, "--out", tmp_path / "m.json")
    assert code == 2
    assert "one event" in err


@pytest.mark.parametrize("fitted_on", [".csv", ".parquet"])
def test_groups_are_the_same_in_every_format(run, tmp_path, fitted_on):
    """A whole number is 7.0 in some files of text, and a number in Parquet files."""
    rng = np.random.default_rng(3)
    p, ward = rng.random(1200), np.repeat([7.0, 8.0], 600)
    y = (rng.random(1200) < np.where(ward == 7.0, p**2, p**0.5)).astype(int)
    rows = pl.DataFrame({"p": p, "y": y, "ward": ward})
    rows.write_csv(tmp_path / "rows.csv")
    rows.write_parquet(tmp_path / "rows.parquet")
    map_file, new = tmp_path / "map.json", tmp_path / "new.csv"
    columns = ("--y", "y", "--p", "p", "--by", "ward")
    source = tmp_path / f"rows{fitted_on}"
    assert run("calibrate", source, *columns, "--out", map_file)[0] == 0
    assert cb.load_map(map_file).keys == (("7",), ("8",))
    for suffix in (".csv", ".parquet"):
        rows = tmp_path / f"rows{suffix}"
        code, told, err = run("apply", map_file, rows, "--p", "p", "--out", new)
        assert code == 0, err
        assert "without a map" not in told


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_predictions_outside_the_fitted_range_are_told(run, tmp_path, engine):
    rng = np.random.default_rng(4)
    p = rng.uniform(0.1, 0.4, 500)
    pl.DataFrame({"p": p, "y": (rng.random(500) < p).astype(int)}).write_csv(
        tmp_path / "old.csv"
    )
    pl.DataFrame({"p": np.linspace(0.1, 0.9, 100)}).write_csv(tmp_path / "new.csv")
    map_file, out = tmp_path / "map.json", tmp_path / "out.csv"
    code, _, err = run(
        "calibrate", tmp_path / "old.csv", "--y", "y", "--p", "p", "--out", map_file
    )
    assert code == 0, err
    options = ("--p", "p", "--out", out, "--engine", engine)
    code, _, err = run("apply", map_file, tmp_path / "new.csv", *options)
    assert code == 0, err
    assert "56 of 100 predictions are outside the range" in err
    code, _, err = run("apply", map_file, tmp_path / "old.csv", *options)
    assert (code, "outside" in err) == (0, False)


def test_columns_of_groups_can_be_named_in_sql(run, sites, tmp_path, saved):
    map_file = tmp_path / "sites.json"
    columns = ("--y", "y", "--p", "p", "--by", "site", "--out", map_file)
    assert run("calibrate", sites, *columns)[0] == 0
    _, told, _ = run("export", map_file, "--by", "hospital")
    assert 'CAST("hospital" AS VARCHAR)' in told
    code, _, err = run("export", saved, "--by", "hospital")
    assert (code, "does not differ by group; remove --by" in err) == (2, True)


def test_models_of_a_long_table_are_groups_of_a_map(run, tmp_path):
    out = tmp_path / "map.json"
    wanted = ("--y", "even", "--p", "forest", "--model", "name", "--out", out)
    code, _, err = run("calibrate", BINARY, *wanted)
    assert code == 2
    assert "pass --by name instead of --model name" in err


def test_files_are_groups_of_a_map(run, tmp_path):
    """Each file has its map, and several files are written as one."""
    rng, runs = np.random.default_rng(5), tmp_path / "runs"
    runs.mkdir()
    rows = {}
    for name, power in (("good", 1.0), ("bold", 2.0)):
        p = rng.random(500)
        y = (rng.random(500) < p**power).astype(int)
        rows[name] = pl.DataFrame({"p": p, "y": y})
        rows[name].write_ndjson(runs / f"{name}.jsonl")
    every, map_file, out = runs / "*.jsonl", tmp_path / "m.json", tmp_path / "o.csv"
    fit = ("--y", "y", "--p", "p", "--by", "filename", "--out", map_file)
    code, _, err = run("calibrate", every, *fit)
    assert code == 0, err
    map_ = cb.load_map(map_file)
    assert map_.keys == (("bold",), ("good",))
    for source, names in ((runs / "bold.jsonl", ["bold"]), (every, ["bold", "good"])):
        code, told, err = run("apply", map_file, source, "--p", "p", "--out", out)
        assert code == 0, err
        assert "without a map" not in told
        found = pl.read_csv(out)["p_calibrated"].to_numpy()
        wanted = [map_.transform(rows[name]["p"], [name] * 500) for name in names]
        assert_allclose(found, np.concatenate(wanted), rtol=1e-12)


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_another_column_than_that_of_the_fit_is_named(run, saved, tmp_path, engine):
    rows, out = tmp_path / "new.csv", tmp_path / "out.csv"
    rows.write_text("forest,bayes\n0.2,0.3\n")
    apply = ("apply", saved, rows, "--out", out, "--engine", engine, "--p")
    other = "The map was fitted to column forest, and was applied to bayes."
    assert other in run(*apply, "bayes")[1]
    assert "The map was fitted to column" not in run(*apply, "forest")[1]


def test_two_models_are_not_two_classes(run, tmp_path):
    both = ("--y", "even", "--p", "forest,bayes", "--out", tmp_path / "map.json")
    code, _, err = run("calibrate", BINARY, *both)
    assert code == 2
    assert "If these are two models, calibrate takes one: --p bayes." in err
