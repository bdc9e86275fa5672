"""Reports as PDF, by a browser that is installed, or by none."""

import pytest

from calibrant.exceptions import MissingDependencyError
from calibrant.report import pdf


@pytest.fixture
def browser(tmp_path, monkeypatch):
    """Make a program that the report takes for a browser."""

    def make(script):
        program = tmp_path / "chromium"
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv(pdf.VARIABLE, str(program))
        return program

    return make


def test_without_a_browser_the_error_says_what_to_install(
    report, tmp_path, monkeypatch
):
    monkeypatch.delenv(pdf.VARIABLE, raising=False)
    monkeypatch.setattr(pdf, "BROWSERS", ("no-such-browser",))
    with pytest.raises(MissingDependencyError, match=r"apt install chromium.*\.html"):
        report.save(tmp_path / "report.pdf")
    monkeypatch.setenv(pdf.VARIABLE, "/no/such/browser")
    with pytest.raises(MissingDependencyError, match="names /no/such/browser"):
        report.save(tmp_path / "report.pdf")
    assert not list(tmp_path.iterdir())


def test_the_browser_prints_the_page_with_all_details_open(report, tmp_path, browser):
    browser("""
for word in "$@"; do
  case "$word" in
    --print-to-pdf=*) out="${word#--print-to-pdf=}";;
    file://*) page="${word#file://}";;
  esac
done
cp "$page" "$out"
""")
    (path,) = report.save(tmp_path / "report.pdf")
    opened = report.to_html().replace("<details", "<details open")
    assert path.read_text(encoding="utf-8") == opened
    assert "<details open" in opened


def test_what_a_browser_says_when_it_fails_is_passed_on(report, tmp_path, browser):
    browser("echo cannot open display >&2; exit 3")
    with pytest.raises(OSError, match=r"status 3 .*cannot open display"):
        report.save(tmp_path / "report.pdf")
    assert not (tmp_path / "report.pdf").exists()


def test_only_root_leaves_the_sandbox(report, tmp_path, browser, monkeypatch):
    browser('echo "$@" >&2')
    for user, asked in ((0, True), (1000, False)):
        monkeypatch.setattr(pdf.os, "geteuid", lambda user=user: user)
        with pytest.raises(OSError, match="printed no page") as told:
            report.save(tmp_path / "report.pdf")
        assert ("--no-sandbox" in str(told.value)) == asked
