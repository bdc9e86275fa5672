"""Commands run in this process."""

import sys

import pytest


@pytest.fixture
def run(capsys, monkeypatch):
    """Run a command in this process; give exit code, stdout and stderr."""
    from calibrant.__main__ import main

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["calibrant", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        out = capsys.readouterr()
        return stopped.value.code or 0, out.out, out.err

    return call
