import json
import re

import pytest
from typer.testing import CliRunner

import calibrant as cb
from calibrant.cli.app import app

DATA = [str(cb.datasets.BINARY_FILE), "--y", "even", "--p", "forest"]
LATEX = ["--format", "latex"]


def run(*arguments):
    return CliRunner().invoke(app, ["summary", *map(str, arguments)])


@pytest.fixture(scope="module")
def result():
    p, y = cb.datasets.load_binary("forest")
    return cb.summary(y, p)


def test_the_table_is_the_printed_summary(result):
    done = run(*DATA)
    assert done.exit_code == 0
    assert str(result) in done.stdout


def test_json_has_the_frame(result):
    content = json.loads(run(*DATA, "--format", "json").stdout)
    values = [row["value"] for row in content["rows"]]
    assert values == result.frame()["value"].tolist()
    assert content["confidence"] == 0.95


@pytest.mark.parametrize("style", ["latex", "markdown"])
def test_tables_for_papers(result, style):
    assert run(*DATA, "--format", style).stdout == result.table(style) + "\n"


def test_csv_has_one_line_per_measure():
    lines = run(*DATA, "--format", "csv").stdout.splitlines()
    assert lines[0] == "measure,value,low,high,n"
    assert len(lines) == 14


def test_sentence(result):
    assert run(*DATA, "--sentence").stdout == result.sentence() + "\n"


@pytest.mark.filterwarnings("ignore::calibrant.exceptions.SmallSampleWarning")
def test_pooled_over_groups(tmp_path):
    p, y = cb.datasets.load_binary("logistic")
    lines = [f"{a},{b},{k % 3}" for k, (a, b) in enumerate(zip(p, y, strict=True))]
    path = tmp_path / "centres.csv"
    path.write_text("\n".join(["p,y,centre", *lines]), encoding="utf-8")
    done = run(path, "--y", "y", "--p", "p", "--by", "centre", "--pooled")
    assert done.exit_code == 0
    assert done.stdout.startswith("Mean over 3 groups by random effects.")
    assert "95 % interval" in done.stdout
    assert re.search(r"AUROC +0\.\d{3} +0\.\d{3} to 0\.\d{3} ", done.stdout)
    latex = run(path, "--y", "y", "--p", "p", "--by", "centre", "--pooled", *LATEX)
    head = r"measure & value & 95 \% interval & prediction interval & tau & groups & n"
    assert head in latex.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--pooled"], "--pooled requires --by"),
        (["--sentence", "--format", "json"], "--sentence cannot be combined"),
        (["--smoother", "spline"], "unknown smoother 'spline'"),
    ],
)
def test_wrong_options_are_errors(options, message):
    done = run(*DATA, *options)
    assert done.exit_code != 0
    assert message in str(done.exception)


def test_other_commands_print_latex():
    arguments = ["evaluate", *DATA, "--methods", "es15", "--format", "latex"]
    done = CliRunner().invoke(app, arguments)
    assert done.stdout.startswith(r"\begin{tabular}{llrrr")


def test_a_column_after_a_blank_is_not_taken_for_a_file(tmp_path):
    path = tmp_path / "clinic.csv"
    path.write_text("died,old,new\n" + "1,0.4,0.6\n0,0.3,0.2\n" * 30)
    done = run(path, "--y", "died", "--p", "old", "new")
    assert "separated by commas: --p old,new." in str(done.exception)
