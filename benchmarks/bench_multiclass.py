"""Time multi-class calibrators: CPU time of fit and transform, and the loss.

Each fit runs on one thread in its own process and is stopped after a time limit.
Imports are not counted; each fit is timed after a small warm-up fit.
Losses are mean log-losses of the fitted rows, without the penalty of penalised
methods.

Run ``python benchmarks/bench_multiclass.py [--limit SECONDS]``.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

import numpy as np
from class_peers import OURS, RIVALS, log_loss

import calibrant as cb

ROWS = 5_000
SIZES = (10, 100)
SKIPPED = {("matrix-odir, no penalty", 100), ("dirichlet-odir, no penalty", 100)}
"""With 100 classes 5,000 rows are separable: without a penalty there is no optimum."""


def sample(n: int, k: int, seed: int = 0):
    """Draw logits of an over-confident model with differently biased classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    truth = rng.normal(size=(n, k)) + 3.0 * np.eye(k)[y]
    bias = rng.normal(scale=0.5, size=k)
    return 1.8 * truth * rng.uniform(0.7, 1.3, size=k) + bias, y


def ours(method: str):
    name, params = OURS[method]

    def probabilities(logits, y):
        calibrator = cb.make_calibrator(name, scale="logit", **params)
        return calibrator.fit(logits, y).transform(logits)

    return probabilities


def run_one(method: str, who: str, k: int, limit: int) -> None:
    """Time one fit and print it as JSON; the parent process reads it."""
    warnings.simplefilter("ignore")
    fit = ours(method) if who == "calibrant" else RIVALS[method][who]
    fit(*sample(500, 3, seed=1))
    logits, y = sample(ROWS, k)
    start = time.process_time()
    resource.setrlimit(resource.RLIMIT_CPU, (int(start) + limit, int(start) + limit))
    prob = fit(logits, y)
    seconds = time.process_time() - start
    print(json.dumps({"seconds": seconds, "loss": log_loss(prob, y)}))


def measured(method: str, who: str, k: int, limit: int):
    command = [sys.executable, __file__, "--one", method, who, str(k), str(limit)]
    done = subprocess.run(  # noqa: S603  (our own command)
        command, capture_output=True, text=True, check=False
    )
    if -done.returncode in (signal.SIGXCPU, signal.SIGKILL):
        return {"seconds": float("inf"), "loss": float("nan")}
    if done.returncode:
        return {"error": done.stderr.strip().rsplit("\n", maxsplit=1)[-1][:60]}
    return json.loads(done.stdout.strip().rsplit("\n", maxsplit=1)[-1])


def race(method: str, k: int, limit: int) -> None:
    mine = measured(method, "calibrant", k, limit)
    seconds = mine["seconds"]
    row = f"| {method} | {k} |"
    print(f"{row} calibrant | {mine['loss']:.7f} | | {seconds:.3f} | 1 |", flush=True)
    for who in RIVALS[method]:
        peer = measured(method, who, k, limit)
        if "error" in peer:
            print(f"{row} {who} | {peer['error']} | | | |", flush=True)
        elif np.isinf(peer["seconds"]):
            ratio = f"> {limit / seconds:,.0f}"
            print(f"{row} {who} | stopped | | > {limit:g} | {ratio} |", flush=True)
        else:
            more = peer["loss"] - mine["loss"]
            time_cells = f"{peer['seconds']:.3f} | {peer['seconds'] / seconds:,.1f}"
            print(f"{row} {who} | {peer['loss']:.7f} | {more:+.1e} | {time_cells} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=int, default=300, help="CPU seconds per fit")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        method, who, k, limit = options.one
        run_one(method, who, int(k), int(limit))
        return
    print("| method | k | library | log-loss | above ours | CPU s | ratio to ours |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
    for k in SIZES:
        for method in RIVALS:
            if (method, k) not in SKIPPED:
                race(method, k, options.limit)


if __name__ == "__main__":
    main()
