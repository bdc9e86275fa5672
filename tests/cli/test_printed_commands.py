"""Every command that is printed works, and does what the Python beside it does."""

import json
import shlex
from dataclasses import dataclass, field

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit, softmax

import calibrant as cb

ROWS = 300
RNG = np.random.default_rng(0)
LOGIT = RNG.normal(0.0, 1.2, ROWS)
HAPPENED = (RNG.random(ROWS) < expit(LOGIT)).astype(int)
P = expit(2.5 * LOGIT)
SCORES = RNG.normal(0.0, 1.5, (ROWS, 3))
CLASS = (softmax(SCORES, axis=1).cumsum(axis=1) > RNG.random((ROWS, 1))).argmax(axis=1)
LOGITS = 2.2 * SCORES
PROB = softmax(LOGITS, axis=1)
WEIGHT = RNG.integers(1, 4, ROWS)
ANIMALS = np.array(["ape", "bee, wasp", 'the "cat"'])


@dataclass
class Case:
    """A file of predictions, what is asked about it, and what its models are."""

    columns: dict
    options: tuple
    models: list = field(default_factory=lambda: [["p"]])
    y: str = "y"
    file: str = "rows.csv"
    new: dict | None = None
    command: bool = True

    def write(self, path, columns):
        if path.suffix == ".npz":
            np.savez(path, **columns)
            return
        frame = pl.DataFrame(columns)
        write = {".csv": frame.write_csv, ".parquet": frame.write_parquet}
        write |= {".jsonl": frame.write_ndjson}
        write |= {".tsv": lambda path: frame.write_csv(path, separator="\t")}
        write[path.suffix](path)

    def written(self, path, names):
        """Return the calibrated predictions of a model, as `apply` wrote them."""
        names = [f"{name}_calibrated" for name in names]
        if path.suffix == ".npz":
            with np.load(path) as arrays:
                found = [arrays[name] for name in names]
        else:
            read = {".csv": pl.read_csv, ".parquet": pl.read_parquet}
            read |= {".jsonl": pl.read_ndjson}
            read |= {".tsv": lambda path: pl.read_csv(path, separator="\t")}
            found = [read[path.suffix](path)[name].to_numpy() for name in names]
        return found[0] if len(found) == 1 else np.stack(found, axis=1)

    def arrays(self, columns, names):
        values = [np.asarray(columns[name]) for name in names]
        return values[0] if len(values) == 1 else np.stack(values, axis=1)


def binary(**more):
    return {"y": HAPPENED, "p": P} | more


def classes(names, values=PROB, label=CLASS):
    return {"y": label} | dict(zip(names, values.T, strict=True))


THREE = ["m_0", "m_1", "m_2"]
ONE = ("--y", "y", "--p", "p")
ALL = ("--y", "y", "--p", "m_*", "--task")
WORDS = ("--labels", 'ape,"bee, wasp","the ""cat"""')
CASES = {
    "csv": Case(binary(), ONE),
    "tsv": Case(binary(), ONE, file="rows.tsv"),
    "jsonl": Case(binary(), ONE, file="rows.jsonl"),
    "weights and groups": Case(
        binary(w=WEIGHT, g=np.where(LOGIT > 0, "a", "b")),
        (*ONE, "--weight", "w", "--by", "g"),
    ),
    "several models": Case(
        binary(q=P**2, r=P**3),
        ("--y", "y", "--p", "p,q", "--p", "r"),
        [["p"], ["q"], ["r"]],
    ),
    "named models": Case(
        binary(q=P**2), ("--y", "y", "--p", "first=p", "--p", '"a=b"=q'), [["p"], ["q"]]
    ),
    "top label": Case(classes(THREE), (*ALL, "confidence"), [THREE]),
    "all classes": Case(classes(THREE), (*ALL, "classwise"), [THREE]),
    "classes in words": Case(
        classes([f"m_{name}" for name in ANIMALS], label=ANIMALS[CLASS]),
        (*ALL, "confidence"),
        [[f"m_{name}" for name in ANIMALS]],
        file="rows.parquet",
    ),
    "classes by a list": Case(
        classes(["a", "b", "c"], label=ANIMALS[CLASS]),
        ("--y", "y", "--p", "a,b,c", "--task", "confidence", *WORDS),
        [["a", "b", "c"]],
    ),
    "logits of classes": Case(
        classes(THREE, LOGITS), (*ALL, "confidence", "--scale", "logit"), [THREE]
    ),
    "models of classes": Case(
        classes(THREE) | classes(["k0", "k1", "k2"], PROB[:, [1, 0, 2]]),
        (*ALL, "confidence", "--p", "other=k0,k1,k2"),
        [THREE, ["k0", "k1", "k2"]],
    ),
    "one column of a class": Case(
        classes(THREE),
        ("--y", "y", "--p", "m_2", "--task", "2"),
        [["m_2"]],
        command=False,
    ),
    "npz": Case(binary(), ONE, file="rows.npz"),
    "npz matrix": Case(
        {"y": CLASS, "probs": PROB},
        ("--y", "y", "--p", "probs", "--task", "confidence"),
        [["probs"]],
        file="rows.npz",
    ),
    "npz matrix of logits": Case(
        {"y": ANIMALS[CLASS], "z": LOGITS},
        ("--y", "y", "--p", "z", "--task", "classwise", "--scale", "logit", *WORDS),
        [["z"]],
        file="rows.npz",
    ),
    "npz columns": Case(classes(THREE), (*ALL, "confidence"), [THREE], file="rows.npz"),
    "label in words": Case(
        binary(y=np.where(HAPPENED, 'ill, "bad"', "-fine")),
        (*ONE, "--pos-label", 'ill, "bad"'),
    ),
    "label with a dash": Case(
        binary(y=np.where(HAPPENED, "-ill", "fine")), (*ONE, "--pos-label", "-ill")
    ),
    "label false": Case(binary(y=HAPPENED == 0), (*ONE, "--pos-label", "false")),
    "logits": Case(binary(p=2.5 * LOGIT), (*ONE, "--scale", "logit")),
    "percentages": Case(binary(p=100 * P), (*ONE, "--scale", "percent")),
    "log-probabilities": Case(binary(p=np.log(P)), (*ONE, "--scale", "logprob")),
    "invalid rows": Case(
        binary(p=np.where(np.arange(ROWS) < 3, 7.0, P)),
        (*ONE, "--bad-rows", "drop"),
        new=binary(),
    ),
    "many invalid rows": Case(
        binary(p=np.where(np.arange(ROWS) < 100, 7.0, P)),
        (*ONE, "--bad-rows", "drop", "--max-dropped", "0.5"),
        new=binary(),
    ),
}
for name in (
    "my p", "a,b", 'say "p"', "x=1", "-p", "--out", "it's", "p*", "$p `ls`", "a b,c=d",
    "ü",
):  # fmt: skip
    quoted = '"' + name.replace('"', '""') + '"'
    CASES[f"name {name!r}"] = Case(
        {f"{name} y": HAPPENED, name: P, f"{name} w": WEIGHT},
        ("--y", f"{name} y", "--p", quoted, "--weight", f"{name} w"),
        [[name]],
        y=f"{name} y",
        file="rows.parquet",
    )
for name in ("my rows.csv", "it's.csv", "-rows.csv", "a,b.csv", "r[1].csv", "$x.csv"):
    CASES[f"file {name}"] = Case(binary(), ONE, file=name)


def printed_repairs(out):
    """Return what --explain prints to repair each model: commands, or Python."""
    blocks = out.split("\nTo repair")[1:]
    end = "  'calibrant report' measures which repair helps most"
    return [
        "\n".join(line[2:] for line in block.split(end)[0].splitlines()[1:])
        for block in blocks
    ]


def run_printed(run, tmp_path, case, text):
    """Run commands as they stand there; return the file that they wrote."""
    for line in text.splitlines():
        command = shlex.split(line)
        assert command[0] == "calibrant"
        if command[1] == "apply":
            new = tmp_path / command[3]
            case.write(new, case.new or case.columns)
        code, _, err = run(*command[1:])
        assert code == 0, (line, err)
    return tmp_path / command[-1]


def run_python(case, names, text):
    """Run the Python that is printed; return what it calls calibrated."""
    given = case.columns
    kept = np.ones(ROWS, dtype=bool)
    if case.new is not None:
        kept = given["p"] <= 1.0
    scope = {
        "p": case.arrays(given, names)[kept],
        "y": np.asarray(given[case.y])[kept],
        "new_p": case.arrays(case.new or given, names),
        "weight": WEIGHT[kept],
    }
    exec(text, scope)  # noqa: S102  (what a user would copy)
    return scope["calibrated"]


@pytest.fixture(params=CASES)
def case(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = CASES[request.param]
    found.write(tmp_path / found.file, found.columns)
    return found


def source(case):
    return f"./{case.file}" if case.file.startswith("-") else case.file


def test_what_a_report_prints_works(run, tmp_path, case):
    code, out, err = run(
        "report", source(case), *case.options, "--methods", "es5", "--format", "json"
    )
    assert code == 0, err
    repairs = [model["repairs"] for model in json.loads(out)["models"]]
    advised = [found["advised"] != "none" for found in repairs]
    assert any(advised)
    for names, found, helps in zip(case.models, repairs, advised, strict=True):
        assert bool(found["python"]) == helps
        assert bool(found["command"]) == (helps and case.command)
        if helps:
            ours = run_python(case, names, found["python"])
        if found["command"]:
            path = run_printed(run, tmp_path, case, found["command"])
            assert_allclose(case.written(path, names), ours, rtol=1e-9, atol=1e-12)


def test_what_explaining_prints_works(run, tmp_path, case):
    code, out, err = run(
        "evaluate", source(case), *case.options, "--methods", "es5", "--explain"
    )
    assert code == 0, err
    printed = printed_repairs(out)
    assert len(printed) == len(case.models)
    for names, text in zip(case.models, printed, strict=True):
        if case.command:
            path = run_printed(run, tmp_path, case, text)
            found = case.written(path, names)
        else:
            found = run_python(case, names, text)
        assert found.shape[0] == ROWS
        assert ((found >= 0.0) & (found <= 1.0)).all()


def test_the_models_of_a_long_table_are_repaired_by_one_command(
    run, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    names = np.where(np.arange(ROWS) % 2, "ant", "bee, wasp")
    percent = 100 * np.where(names == "ant", P, P**2)
    long = Case(binary(p=percent, who=names), (*ONE, "--scale", "percent"))
    long.write(tmp_path / long.file, long.columns)
    asked = (long.file, *long.options, "--model", "who", "--methods", "es5")
    code, out, err = run("report", *asked, "--format", "json")
    assert code == 0, err
    for model in json.loads(out)["models"]:
        text, call = model["repairs"]["command"], model["repairs"]["python"]
        assert "--by who" in text
        assert 'make_calibrator("auto", scale="percent")' in call
    path = run_printed(run, tmp_path, long, text)
    assert ((long.written(path, ["p"]) >= 0.0) & (long.written(path, ["p"]) <= 1)).all()
    (printed,) = printed_repairs(run("evaluate", *asked, "--explain")[1])
    assert printed == text


@pytest.mark.parametrize("task", ["binary", "confidence"])
def test_aggregated_predictions_have_no_command(run, tmp_path, task):
    """They do not know where their rows are; what is printed is Python, or nothing."""
    rows, cells = tmp_path / "rows.csv", tmp_path / "cells.parquet"
    chosen = CASES["csv" if task == "binary" else "top label"]
    chosen.write(rows, chosen.columns)
    assert run("aggregate", rows, *chosen.options, "--out", cells)[0] == 0
    code, out, err = run("evaluate", cells, "--methods", "es5", "--explain")
    assert code == 0, err
    assert printed_repairs(out) == []
    code, out, err = run("report", cells, "--methods", "es5", "--format", "json")
    assert code == 0, err
    (model,) = json.loads(out)["models"]
    if task == "confidence":
        assert model["repairs"] is None
    else:
        assert model["repairs"]["command"] == ""
        assert run_python(chosen, ["p"], model["repairs"]["python"]).size == ROWS


@pytest.mark.parametrize("number", [2, 3])
def test_commands_name_several_files(run, tmp_path, monkeypatch, number):
    monkeypatch.chdir(tmp_path)
    names = [f"day {k}.csv" for k in range(number)]
    case = CASES["csv"]
    for name in names:
        case.write(tmp_path / name, case.columns)
    wanted = (*ONE, "--methods", "es5")
    out = run("evaluate", *names, *wanted, "--explain", "--engine", "memory")[1]
    (text,) = printed_repairs(out)
    assert shlex.split(text.splitlines()[0])[2 : 2 + number] == names
    run_printed(run, tmp_path, case, text)
    out = run("report", *names, *wanted, "--format", "json")[1]
    (model,) = json.loads(out)["models"]
    run_printed(run, tmp_path, case, model["repairs"]["command"])


@pytest.mark.parametrize("name", [" p", "p\t", "line\nend", "\x1b[31mp"])
def test_names_that_cannot_be_copied_get_no_command(tmp_path, name):
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"y": HAPPENED, name: P}).write_parquet(path)
    report = cb.Report.from_predictions(
        cb.Predictions.from_table(path, y="y", p=name),
        methods="es5",
    )
    (model,) = report.summary["models"]
    assert model["repairs"]["command"] == ""
    assert "make_calibrator" in model["repairs"]["python"]
