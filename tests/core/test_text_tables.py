"""Tables as text."""

from calibrant.core.text_tables import text_table


def test_latex_has_a_minus_before_numbers_only():
    rows = [["log-loss", "-0.3 (-1 to 2)", "1e-05"]]
    table = text_table(["measure", "value", "p"], rows, [False, True, True], "latex")
    assert r"log-loss & $-$0.3 ($-$1 to 2) & 1e-05 \\" in table
