"""Tables as text."""

import numpy as np
import pytest

import calibrant as cb
from calibrant.core.text_tables import frame_table, text_table


def test_latex_has_a_minus_before_numbers_only():
    rows = [["log-loss", "-0.3 (-1 to 2)", "1e-05"]]
    table = text_table(["measure", "value", "p"], rows, [False, True, True], "latex")
    assert r"log-loss & $-$0.3 ($-$1 to 2) & 1e-05 \\" in table


def test_latex_escapes_every_sign_that_it_would_read_otherwise():
    table = text_table([r"\~^{}#$%&_<>|"], [], [False], "latex")
    assert table.splitlines()[2] == (
        r"\textbackslash{}\textasciitilde{}\textasciicircum{}\{\}\#\$\%\&\_"
        r"\textless{}\textgreater{}\textbar{} \\"
    )


def test_columns_become_a_table_with_hyphens_for_what_is_missing():
    frame = {"a_b": np.array(["x", "y"]), "low": np.array([0.25, np.nan])}
    assert frame_table(frame, "markdown").splitlines()[2:] == [
        "| x | 0.2500 |",
        "| y | - |",
    ]
    assert r"a\_b & low \\" in frame_table(frame, "latex")


def test_csv_has_all_digits_and_marks_formulas():
    frame = {"=a": np.array(["x", "=1+1", "a\nb"]), "low": np.array([1 / 3, np.nan, 1])}
    assert frame_table(frame, "csv").split("\n", 3) == [
        "'=a,low",
        "x,0.3333333333333333",
        "'=1+1,nan",
        '"a\nb",1.0',
    ]
    with pytest.raises(cb.exceptions.OptionError, match="csv"):
        frame_table(frame, "html")


@pytest.mark.parametrize("style", ["markdown", "latex", "csv"])
@pytest.mark.parametrize("command", ["evaluate", "compare", "summary"])
def test_results_have_the_tables_of_the_command_line(run, command, style):
    p, y = cb.datasets.load_binary("forest")
    q, _ = cb.datasets.load_binary("bayes")
    models = {"forest": p, "bayes": q}
    if command == "evaluate":
        result = cb.evaluate(y, models, methods="es15")
    elif command == "compare":
        result = cb.compare(y, models, method="es15")
    else:
        result = cb.summary(y, models)
    wanted = ("--y", "even", "--p", "forest,bayes", "--format", style)
    methods = {"evaluate": ("--methods", "es15"), "compare": ("--method", "es15")}
    method = methods.get(command, ())
    code, out, err = run(command, str(cb.datasets.BINARY_FILE), *wanted, *method)
    assert code == 0, err
    assert out.strip() == result.table(style)


@pytest.mark.parametrize(("style", "row"), [("latex", "forest & bayes"), ("text", "")])
def test_a_comparison_has_a_table_of_differences(style, row):
    p, y = cb.datasets.load_binary("forest")
    q, _ = cb.datasets.load_binary("bayes")
    compared = cb.compare(y, {"forest": p, "bayes": q}, method="es15")
    models, pairs = compared.table(style).split("\n\n")
    assert "P(a is better)" not in models
    assert "P(a is better)" in pairs
    assert row in pairs
    assert f"{compared.differences[0].probability:.4f}" in pairs
    assert "\n\n" not in compared.table("csv")
