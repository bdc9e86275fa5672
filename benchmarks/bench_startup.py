"""Time the start-up of calibrant and other libraries in fresh processes.

CPU seconds, the median over interleaved rounds. The ratio to ``import numpy``, which
almost every program needs anyway, can be compared between machines.
Run ``python benchmarks/bench_startup.py``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import peers

CONTROL = "import numpy"
OWN = ("import calibrant", "import calibrant; calibrant.calibration_error")
"""The second also loads what the first defers."""
PEERS = ("netcal", "torchmetrics", "probcal")


def commands():
    """Return the command of each row of the table."""
    imports = [CONTROL, *OWN, *(f"import {n}" for n in PEERS if find_spec(n))]
    found = {line: [sys.executable, "-c", line] for line in imports}
    script = Path(sys.executable).with_name("calibrant")
    return found | {"calibrant --help": [str(script), "--help"]}


def cpu_seconds(command):
    """Return user and system seconds of one run of a command."""
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
    after = os.times()
    user = after.children_user - before.children_user
    return user + after.children_system - before.children_system


def medians(runs, rounds):
    for command in runs.values():
        cpu_seconds(command)  # write byte code, fill the disk cache
    spent = {name: [] for name in runs}
    for _ in range(rounds):
        for name, command in runs.items():
            spent[name].append(cpu_seconds(command))
    return {name: statistics.median(seconds) for name, seconds in spent.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    found = medians(commands(), parser.parse_args().rounds)
    versions = peers.versions("calibrant", "numpy", "torch")
    print(", ".join(f"{name} {version}" for name, version in versions.items()), "\n")
    print("| command | CPU s | ratio to `import numpy` |\n| --- | ---: | ---: |")
    for name, seconds in found.items():
        print(f"| `{name}` | {seconds:.2f} | {seconds / found[CONTROL]:.2f} |")


if __name__ == "__main__":
    main()
