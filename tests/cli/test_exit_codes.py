"""How commands end: exit codes, and what stands on standard error."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import polars as pl
import pytest

import calibrant as cb

BINARY = str(cb.datasets.BINARY_FILE)
ONE = ("evaluate", BINARY, "--y", "even", "--p", "forest", "--methods", "es5")
LONG = ("methods", "--format", "json")


def shell(redirected, *arguments, **environment):
    """Run a command by a shell, its streams redirected; give code, stdout, stderr."""
    found = subprocess.run(
        [shutil.which("bash"), "-c",
         f'set -o pipefail; "$0" -m calibrant "$@" {redirected}',
         sys.executable, *arguments],
        capture_output=True, text=True, check=False, env=os.environ | environment,
    )  # fmt: skip
    return found.returncode, found.stdout, told(found.stderr)


def told(err):
    """Return standard error without the lines that tell how long a command takes."""
    return re.sub(r"^[a-z]+ for \d+ s.*\n", "", err, flags=re.MULTILINE)


@pytest.mark.parametrize("closed", ["2>&-", ">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams_change_nothing_else(closed, tmp_path):
    out = tmp_path / "page.html"
    command = ("report", *ONE[1:], "--out", str(out))
    assert shell(closed, *command)[0] == 0
    written = out.read_text(encoding="utf-8")
    assert written.startswith("<!doctype html>")
    assert written.rstrip().endswith("</html>")


def test_a_gate_judges_with_closed_streams_too():
    assert shell("2>&-", *ONE, "--fail-above", "0.001")[0] == 1


@pytest.mark.parametrize("command", [LONG, ONE, ("evaluate", "--help")])
def test_a_reader_that_goes_away_ends_the_command_quietly(command):
    code, out, err = shell("| true", *command)
    told = [line for line in err.splitlines() if not line.startswith("still ")]
    assert (code, out, told) == (141, "", [])


def test_an_error_that_nobody_reads_is_quiet():
    assert shell("2>&1 >/dev/null | true", "evaluate", "none.csv")[0] == 141


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110
@pytest.mark.parametrize("command", [LONG, ONE])
def test_output_that_cannot_be_written_is_told(command):
    code, _, err = shell("> /dev/full", *command)
    assert code == 2
    told = [line for line in err.splitlines() if not line.startswith("still ")]
    assert told == ["error: standard output cannot be written: No space left on device"]
    assert shell("2> /dev/full", "evaluate", "none.csv", "--y", "y", "--p", "p")[0] == 2


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    return p, (rng.random(200) < p).astype(int)


COMMANDS = {
    "evaluate": ("--methods", "es5"),
    "report": ("--methods", "es5", "--out", "page.html"),
    "calibrate": ("--method", "platt", "--out", "map.json"),
    "compare": ("--p", "q=p", "--method", "es5"),
    "plot": ("--out", "a.png"),
    "aggregate": ("--out", "cells.parquet"),
}


def is_told(found, *words):
    """Assert that a command ended with 2 and one line that holds the words."""
    code, _, err = found
    err = told(err)
    assert code == 2
    assert err.startswith("error: ")
    assert "unexpectedly" not in err
    assert err.count("\n") == 1
    for word in words:
        assert word in err


LABELS = {
    "lists": lambda y: [[int(one)] for one in y],
    "structs": lambda y: [{"a": int(one), "b": 0} for one in y],
    "bytes": lambda y: [bytes([one]) for one in y],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("kind", LABELS)
def test_labels_that_are_none_are_told(run, tmp_path, monkeypatch, rows, kind, command):
    monkeypatch.chdir(tmp_path)
    p, y = rows
    pl.DataFrame({"y": LABELS[kind](y), "p": p}).write_parquet("t.parquet")
    options = ("--y", "y", "--p", "p", *COMMANDS[command])
    is_told(run(command, "t.parquet", *options), "column 'y' must")


@pytest.mark.parametrize(
    "options", [(), ("--pos-label", "1"), ("--task", "1"), ("--bad-rows", "drop")]
)
@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("kind", LABELS)
def test_labels_that_are_none_are_told_whatever_is_asked(
    run, tmp_path, rows, kind, engine, options
):
    p, y = rows
    path = tmp_path / "t.parquet"
    pl.DataFrame({"y": LABELS[kind](y), "p": p}).write_parquet(path)
    wanted = ("--y", "y", "--p", "p", "--methods", "es5", "--engine", engine)
    code, _, err = run("evaluate", path, *wanted, *options)
    assert code == 2
    assert err.splitlines()[-1].startswith("error: ")
    assert "unexpectedly" not in err


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("which", ["y", "p"])
@pytest.mark.parametrize("shape", [(), (2, 2, 50)])
def test_arrays_of_other_shapes_are_told(
    run, tmp_path, monkeypatch, rows, command, which, shape
):
    monkeypatch.chdir(tmp_path)
    p, y = rows
    np.savez("t.npz", **{"p": p, "y": y, which: np.ones(shape)})
    found = run(command, "t.npz", "--y", "y", "--p", "p", *COMMANDS[command])
    is_told(found, f"column {which!r} must contain", f"shape is {shape}")


@pytest.mark.parametrize("kind", ["parquet", "npz", "compressed npz"])
def test_no_damaged_file_ends_in_a_foreign_error(tmp_path, rows, kind):
    p, y = rows
    path = tmp_path / f"t.{kind.rpartition(' ')[2]}"
    if kind == "parquet":
        pl.DataFrame({"p": p, "y": y}).write_parquet(path)
    else:
        (np.savez if kind == "npz" else np.savez_compressed)(path, p=p, y=y)
    whole = path.read_bytes()
    rng = np.random.default_rng(3)
    refused = 0
    for _ in range(60):
        damaged = bytearray(whole)
        at = rng.integers(len(whole), size=4)
        damaged[at[0]] = damaged[at[1]] = 255
        path.write_bytes(damaged[: at[2]] if at[3] % 3 == 0 else damaged)
        try:
            cb.evaluate(
                cb.Predictions.from_table(path, y="y", p="p"),
                methods="es5",
                confidence=None,
            )
        except (cb.exceptions.CalibrantError, OSError):
            refused += 1
    assert refused > 30


def test_a_damaged_file_is_one_line_and_two(run, tmp_path):
    path = tmp_path / "t.npz"
    np.savez_compressed(path, p=np.full(50, 0.5), y=np.arange(50) % 2)
    content = bytearray(path.read_bytes())
    at = content.index(b"PK\x01\x02")
    content[at + 10] = 99  # how the archive says that p.npy is compressed
    path.write_bytes(content)
    is_told(run("evaluate", path, "--y", "y", "--p", "p"), "array 'p'")


@pytest.fixture
def broken(monkeypatch):
    """Let a command fail as only a fault of the program does."""
    from calibrant.measures import evaluation

    def fail(*_, **__):
        raise ZeroDivisionError("first line\nsecond line")

    monkeypatch.setattr(evaluation, "evaluate", fail)


@pytest.mark.usefixtures("broken")
def test_a_fault_of_the_program_is_one_line_and_two(run):
    code, _, err = run(*ONE)
    assert code == 2
    assert told(err).count("\n") == 1
    assert "ZeroDivisionError: first line)" in err
    assert "CALIBRANT_TRACEBACK=1" in err


@pytest.mark.usefixtures("broken")
def test_the_place_of_a_fault_is_shown_on_demand(run, monkeypatch):
    monkeypatch.setenv("CALIBRANT_TRACEBACK", "1")
    code, _, err = run(*ONE)
    assert code == 2
    assert "Traceback (most recent call last)" in err
    assert err.splitlines()[-1].startswith("error: ")


def test_the_place_of_an_error_in_the_data_is_shown_on_demand():
    command = ("evaluate", "none.csv", "--y", "y", "--p", "p")
    code, _, err = shell("", *command, CALIBRANT_TRACEBACK="1")
    assert code == 2
    assert "Traceback (most recent call last)" in err
    assert "error: none.csv does not exist" in err
    assert "Traceback" not in shell("", *command)[2]


@pytest.mark.parametrize(
    "error", [BrokenPipeError(32, "a socket"), MemoryError("8 GiB"), SystemExit(1)]
)
def test_only_conditions_end_with_one(run, monkeypatch, error):
    from calibrant.measures import evaluation

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(evaluation, "evaluate", fail)
    assert run(*ONE, "--fail-above", "0.5")[0] == 2


def test_an_interrupt_that_a_library_turns_into_an_error_is_one(run, monkeypatch):
    from calibrant.measures import evaluation

    def fail(*_, **__):
        try:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(60)
        except KeyboardInterrupt:
            raise RuntimeError("query interrupted") from None

    monkeypatch.setattr(evaluation, "evaluate", fail)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert run(*ONE)[0] == 130
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


SLOW_IMPORT = """
import importlib.abc, signal, sys, time

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in the background

class Slow(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            print("importing", flush=True)
            time.sleep(60)

sys.meta_path.insert(0, Slow())
from calibrant.__main__ import main
main()
"""


@pytest.mark.parametrize("module", ["typer", "numpy", "calibrant.measures.evaluation"])
def test_an_interrupt_during_imports_ends_with_130(module):
    script = SLOW_IMPORT.format(module=module)
    command = [sys.executable, "-c", script, *ONE]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout.readline() == "importing\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err


def test_progress_that_cannot_be_told_stops_nothing(monkeypatch):
    from calibrant.cli.process import progress_bar

    class Full:
        def isatty(self):
            return False

        def write(self, _):
            tried.set()
            raise OSError("no space left on device")

    tried = threading.Event()
    monkeypatch.setattr(sys, "stderr", Full())
    with progress_bar("waiting", first_line=0.001):
        assert tried.wait(timeout=30)
