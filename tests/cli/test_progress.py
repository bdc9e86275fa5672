import io
import sys

from calibrant.cli.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_nobody_looking_no_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress_bar("working") as report:
        assert report is None


def test_a_terminal_sees_the_bar(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar("working") as report:
        report(1, 4)
    assert "working" in terminal.getvalue()
