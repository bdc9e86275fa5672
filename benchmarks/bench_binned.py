"""Time binned calibration errors of calibrant and other libraries.

Seconds on a shared machine mean little, so all numbers are ratios to the CPU time of
``np.argsort(p)``, measured in the same run on one thread.

Run ``python benchmarks/bench_binned.py [--quick]``.
"""

from __future__ import annotations

import argparse
import math
import os
import platform
import random
import time
import tracemalloc
from functools import partial
from importlib import import_module

# Numerical libraries read these when they are imported.
os.environ["OMP_NUM_THREADS"] = "1"
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["MKL_NUM_THREADS"] = "1"

import numpy as np
import peers

import calibrant as cb

SIZES = (10**4, 10**5, 10**6, 10**7)
QUICK_SIZES = SIZES[:2]
ROUNDS = 5
SHORTEST = 0.05
"""Minimum CPU seconds of one timing, well above the resolution of the clock."""
SLOW = 5.0
"""Measures that take more CPU seconds than this are not timed at the next size."""
PLAIN_RUNS = 50


def sample(n):
    """Return labels and predictions of an overconfident model."""
    rng = np.random.default_rng(n)
    p = rng.random(n)
    y = (rng.random(n) < 0.1 + 0.8 * p).astype(np.int64)
    return y, p


def seconds_per_call(contestants, *, rounds=ROUNDS):
    """Return the minimum CPU seconds per call over interleaved rounds.

    The order changes from round to round, because a call is slower if the previous
    one returned memory to the system.
    """
    order = random.Random(0)  # noqa: S311
    calls = {name: calls_per_timing(run) for name, run in contestants.items()}
    least = dict.fromkeys(contestants, math.inf)
    for _ in range(rounds):
        for name in order.sample(list(contestants), len(contestants)):
            spent = cpu_seconds(contestants[name], calls[name]) / calls[name]
            least[name] = min(least[name], spent)
    return least


def calls_per_timing(run):
    run()  # the first call includes imports
    return max(1, math.ceil(SHORTEST / max(cpu_seconds(run, 1), 1e-6)))


def cpu_seconds(run, calls):
    start = time.process_time()
    for _ in range(calls):
        run()
    return time.process_time() - start


def raw_error(method):
    return partial(cb.calibration_error, method=method, debias=False)


def binned_contestants():
    """Return the measures with 15 bins by name."""
    found = {"calibrant es15": raw_error("es15"), "calibrant ew15": raw_error("ew15")}
    for bins, measures in (("size", peers.EQUAL_SIZE), ("width", peers.EQUAL_WIDTH)):
        for name, measure in peers.installed(measures).items():
            found[f"{name}, equal {bins}"] = measure
    return found


def selecting_contestants():
    """Return measures that choose the number of bins from the data."""
    sweeps = peers.installed(peers.SWEEP)
    found = {f"calibrant {name}": raw_error(name) for name in ("es-sweep", "es-cv")}
    return found | {f"{name} ece_sweep": sweep for name, sweep in sweeps.items()}


def race(measures, sizes):
    """Return CPU seconds by size and name, without measures that became too slow."""
    results, racing = {}, dict(measures)
    for n in sizes:
        y, p = sample(n)
        runs = {name: partial(measure, y, p) for name, measure in racing.items()}
        results[n] = seconds_per_call({"argsort": partial(np.argsort, p)} | runs)
        racing = {name: m for name, m in racing.items() if results[n][name] <= SLOW}
    return results


def print_ratios(measures, results):
    """Print one row per measure and one column per size, in multiples of argsort."""
    print_row(["ratio to `np.argsort(p)`", *(f"n = {n:.0e}" for n in results)])
    print_row(["---", *("---:" for _ in results)])
    for name in measures:
        print_row([name, *(ratio(found, name) for found in results.values())])
    own = ", ".join(f"{1e3 * found['argsort']:.3g}" for found in results.values())
    print(f"\n`np.argsort(p)` itself took {own} ms. A dash: not timed, because one")
    print(f"call took more than {SLOW:g} CPU seconds at the previous size.\n")


def ratio(seconds, name):
    return f"{seconds[name] / seconds['argsort']:.2f}" if name in seconds else "-"


def print_row(cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def bootstrap_ratio(n):
    """Return the time of 1000 resamples relative to plain evaluations."""
    y, p = sample(n)
    found = seconds_per_call(
        {
            "bootstrap": partial(cb.evaluate, y, p, methods="es15", n_resamples=1000),
            "plain": partial(cb.calibration_error, y, p, method="es15"),
        }
    )
    return found["bootstrap"] / (PLAIN_RUNS * found["plain"])


def peak_memory_ratio(n):
    """Return the peak memory of es15 relative to the size of its input."""
    y, p = sample(n)
    raw_error("es15")(y[:100], p[:100])  # do not count modules that load at first use
    tracemalloc.start()
    raw_error("es15")(y, p)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / (p.nbytes + y.nbytes)


def print_versions():
    found = peers.versions("calibrant", "numpy", "scipy", "scikit-learn", "torch")
    print(f"Python {platform.python_version()}, CPU {platform.machine()}")
    print(", ".join(f"{name} {version}" for name, version in found.items()))
    print(f"Not installed: {', '.join(peers.missing()) or 'none'}\n")


def use_one_thread():
    if "torchmetrics" in peers.installed(peers.EQUAL_WIDTH):
        import_module("torch").set_num_threads(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="stop at 100 000 rows")
    sizes = QUICK_SIZES if parser.parse_args().quick else SIZES
    use_one_thread()
    print_versions()
    print("## 15 bins\n")
    print_ratios(binned_contestants(), race(binned_contestants(), sizes))
    print("## Number of bins chosen from the data\n")
    few = sizes[:3]
    print_ratios(selecting_contestants(), race(selecting_contestants(), few))
    print("## Bootstrap and memory\n")
    print_row(["what", "ratio"])
    print_row(["---", "---:"])
    once = "`evaluate` with es15 and 1000 resamples, n = 1e+05, "
    once += f"relative to {PLAIN_RUNS} plain runs"
    print_row([once, f"{bootstrap_ratio(10**5):.2f}"])
    memory = f"peak memory of es15, n = {sizes[-1]:.0e}, "
    memory += "relative to the bytes of (p, y)"
    print_row([memory, f"{peak_memory_ratio(sizes[-1]):.2f}"])


if __name__ == "__main__":
    main()
