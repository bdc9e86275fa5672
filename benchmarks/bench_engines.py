"""Aggregate a billion rows by DuckDB: rows per second, memory, ratio to a bare scan.

Rows are generated once as Parquet. A billion rows are ten hard links to one file of a
hundred million rows: the same number of rows is read and aggregated, but needs less
disk. Other programs share the machine, so the ratio to a bare scan of the same files,
timed just before, is more informative than seconds.

    python benchmarks/bench_engines.py 7 8 9 --folder lake
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import duckdb

import calibrant as cb
from calibrant.engines.files import find_files

THREADS = 2
ROWS_PER_FILE = 10**8
SCAN = "SELECT COUNT(*), SUM(p) FROM read_parquet($files)"
GENERATE = """
COPY (
    SELECT p, CAST(random() < p - 0.2 * p * (1 - p) AS TINYINT) AS y, country
    FROM (
        SELECT
            CASE WHEN random() < 0.5 THEN random()
                 ELSE 1 / (1 + exp(12 - 24 * random())) END AS p,
            CAST(floor(5 * random()) AS TINYINT) AS country
        FROM range({rows})
    )
) TO '{path}' (FORMAT parquet)
"""


def lake(folder: Path, exponent: int) -> str:
    """Return the pattern of the files with 10 ** exponent rows."""
    rows = 10**exponent
    place = folder / f"rows-1e{exponent}"
    place.mkdir(parents=True, exist_ok=True)
    first = place / "part-0.parquet"
    if rows > ROWS_PER_FILE:
        source = Path(lake(folder, 8).replace("*", "0"))
        for number in range(rows // ROWS_PER_FILE):
            target = place / f"part-{number}.parquet"
            if not target.exists():
                os.link(source, target)
    elif not first.exists():
        with duckdb.connect() as connection:
            connection.execute(f"SET threads = {THREADS}")
            temporary = place / "unfinished"
            connection.execute(GENERATE.format(rows=rows, path=temporary))
            temporary.rename(first)
    return str(place / "part-*.parquet")


def peak_memory() -> float:
    """Return the peak resident memory of this process so far, in GB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024 / 1e9
    return float("nan")


def measure(pattern: str, rows: int) -> None:
    files = list(find_files(pattern).paths)
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}")
        started, read = time.perf_counter(), time.process_time()
        connection.execute(SCAN, {"files": files}).fetchall()
        scan = time.perf_counter() - started
        read = time.process_time() - read
    started, used = time.perf_counter(), time.process_time()
    cells = cb.Predictions.from_table(
        pattern, y="y", p="p", engine="duckdb"
    ).aggregate()
    aggregated = time.perf_counter() - started
    used = time.process_time() - used
    started, busy = time.perf_counter(), time.process_time()
    methods = [*cb.calibrator_names("binary"), "kce"]
    cb.evaluate(cells, methods=methods, confidence=None)
    evaluated = time.perf_counter() - started
    busy = time.process_time() - busy
    print(
        f"{rows:>13,} rows  scan {scan:6.2f} s  aggregate {aggregated:6.2f} s "
        f"({rows / aggregated / 1e6:5.1f} million rows/s; CPU {used:6.2f} s, "
        f"{THREADS * rows / used / 1e6:5.1f} million rows/s of {THREADS} free cores)  "
        f"aggregate / scan {aggregated / scan:4.1f} (CPU {used / read:4.1f})  "
        f"{len(methods)} methods {evaluated:5.2f} s (CPU {busy:4.2f} s)  "
        f"total {aggregated + evaluated:6.2f} s  "
        f"peak {peak_memory():.2f} GB",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("exponents", nargs="*", type=int, default=[7, 8])
    parser.add_argument("--folder", type=Path, default=Path("lake"))
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure(given.measure, 10 ** given.exponents[0])
        return
    for exponent in given.exponents:
        pattern = lake(given.folder, exponent)
        # One process per size, so that the peak memory is that of this size.
        command = [sys.executable, __file__, str(exponent), "--measure", pattern]
        subprocess.run(command, check=True)  # noqa: S603


if __name__ == "__main__":
    main()
