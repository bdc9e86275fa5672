"""Tables as Markdown, LaTeX and HTML."""

from xml.etree import ElementTree as ET

from calibrant.experiments.rendering import as_html, as_latex, as_markdown, html_page


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
    assert "Only 15 draws of labels are independent" in lines[6]


def test_latex_and_html_say_the_same(table):
    latex, html = as_latex(table), html_page("Tables", ["a < b"], [as_html(table)])
    assert r"\mathbf{9.00_{1}}" in latex
    assert r"24.76_{3}\\ \scriptstyle ± 1.00".replace("±", r"\pm") in latex
    assert "average rank & 3.0 & 1.5 & 1.5" in latex
    assert latex.count(r"\begin") == latex.count(r"\end")
    assert "<b>9.00<sub>1</sub></b>" in html
    assert "<th>average rank</th><td>3.0</td>" in html
    assert "<p>a &lt; b</p>" in html
    ET.fromstring(as_html(table).replace("<br>", "<br/>"))  # noqa: S314
