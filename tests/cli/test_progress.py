import io
import sys
import time

from calibrant.cli.process import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nobody_looking_no_bar_and_short_work_is_silent(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bar("working", first_line=30.0) as report:
        report(1, 4)
    assert sys.stderr.getvalue() == ""


def test_nobody_looking_long_work_tells_where_it_is(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bar("working", first_line=0.01) as report:
        report(1, 4)
        while not sys.stderr.getvalue():
            time.sleep(0.01)
    first = sys.stderr.getvalue().splitlines()[0]
    assert first == "still working after 0 s, 1 of 4 parts done"


def test_a_terminal_sees_the_bar(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar("working") as report:
        report(1, 4)
    assert "working" in terminal.getvalue()
