"""Run the command line in this process."""

import os
import sys
import warnings
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper


def run(folder, *arguments):
    """Return exit code, stdout and stderr of a command, run in a folder."""
    from calibrant.__main__ import main

    out, err = (TextIOWrapper(BytesIO(), "utf-8", newline="") for _ in range(2))
    argv, columns = sys.argv, os.environ.get("COLUMNS")
    shown = warnings.showwarning
    try:
        sys.argv = ["calibrant", *map(str, arguments)]
        with chdir(folder), redirect_stdout(out), redirect_stderr(err):
            code = _exit_code(main)
    finally:
        sys.argv, warnings.showwarning = argv, shown
        if columns is None:
            os.environ.pop("COLUMNS", None)
    return code, *(_text(stream) for stream in (out, err))


def _exit_code(main):
    try:
        main()
    except SystemExit as stopped:
        return stopped.code or 0
    return 0


def _text(stream):
    stream.flush()
    return stream.buffer.getvalue().decode("utf-8", "surrogateescape")
