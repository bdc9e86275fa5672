"""Files appear whole or not at all, whatever ends the process."""

import signal
import subprocess
import sys

import pytest

from calibrant.core.output_files import atomic_write


def test_a_link_stays_a_link(tmp_path):
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    link.symlink_to(real)
    with atomic_write(link) as temporary:
        temporary.write_text("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


def write_half(path):
    with atomic_write(path) as temporary:
        temporary.write_text("half")
        raise OSError("disk full")


def test_nothing_is_left_of_a_writer_that_fails(tmp_path):
    with pytest.raises(OSError, match="disk"):
        write_half(tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []


WAITING = """
import sys, time
from calibrant.core.output_files import atomic_write
from calibrant.cli import app

def wait():
    with atomic_write(sys.argv[1]) as there:
        there.write_text("half")
        print("written", flush=True)
        time.sleep(60)

app.app = wait
app.run()
"""


def test_nothing_is_left_of_a_command_that_is_told_to_end(tmp_path):
    command = [sys.executable, "-c", WAITING, str(tmp_path / "a.txt")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "written\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["folder", "loop"])
def test_what_is_no_file_is_left_alone(kind, tmp_path):
    target = tmp_path / "target"
    if kind == "folder":
        target.mkdir()
    else:
        target.symlink_to(target)
    with pytest.raises(OSError, match="cannot be written"), atomic_write(target):
        pass
