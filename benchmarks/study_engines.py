"""Compare engines with rows in memory, by errors and maps on real predictions.

For each data set all methods are fitted three times: to the rows in memory, to the
aggregates of DuckDB, and to cells of the grid, as it would aggregate more than two
million rows. Written are the differences to the rows in memory:

- error: of the calibration error;
- map: the largest at any of 4,002 points (evenly spaced, and quantiles of predictions);
- nearby: the largest distance to the range of the map of rows within one cell width,
  1/12,600, of the point. Maps with jumps jump at most one cell earlier or later.

    python benchmarks/study_engines.py ../shared/data --out nearness.csv
"""

import argparse
import csv
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl
from scipy.special import softmax

import calibrant as cb
from calibrant.calibrators.registry import find_evaluator
from calibrant.core.sample import BinarySample
from calibrant.core.tasks import InputSpec
from calibrant.engines.cells import ExactLimits
from calibrant.numerics.cell_grid import WIDTHS
from calibrant.predictions.columns import TableRequest
from calibrant.predictions.predictions import read_table

METHODS = [*cb.calibrator_names("binary"), "kce"]


def forecasts(data):
    frame = pl.read_parquet(data / "forecasts" / "fivethirtyeight_cow.parquet")
    return frame["p"].to_numpy(), frame["y"].to_numpy()


def llm(data):
    frame = pl.read_parquet(data / "llm" / "bplaut_llm_mcq_msp.parquet")
    return frame["p"].to_numpy(), frame["y"].to_numpy()


def pseudo_real(data):
    """Return the probability of the top class, and whether it is correct."""
    stored = np.load(data / "pseudoreal" / "resnet110.npz")
    prob = softmax(stored["logits_test"].astype(np.float32), axis=1)
    top = prob.argmax(axis=1)
    return prob.max(axis=1), (top == stored["y_test"]).astype(np.int64)


SETS = {"forecasts": forecasts, "llm": llm, "pseudo-real": pseudo_real}


def aggregated(path, *, on_grid):
    """Return the aggregates of DuckDB, with exact rows or on the grid."""
    limits = ExactLimits(0, 0) if on_grid else ExactLimits()
    request = TableRequest(y="y", p="p", spec=InputSpec(), limits=limits)
    return read_table(path, "duckdb", request).aggregate().sample(0, 0)


def samples(p, y):
    """Return the rows in memory, and their aggregates."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.parquet")
        pl.DataFrame({"p": p, "y": y}).write_parquet(path)
        kept = aggregated(path, on_grid=False)
        cells = aggregated(path, on_grid=True)
    return {
        "rows": BinarySample(p.astype(np.float64), y.astype(np.float64)),
        "duckdb": kept,
        "grid": cells,
    }


def fitted(method, sample):
    fit = find_evaluator(method).build().fit_sample(sample)
    return fit, fit.error(sample, alpha=1.0, debias=fit.debiases(1.0))


def distances(map_, exact, points):
    """Return the largest distance of the maps at and near each point."""
    found = map_(points)
    near = [
        exact(np.clip(points + step / WIDTHS, 0.0, 1.0)) for step in (-1.0, 0.0, 1.0)
    ]
    nearby = np.maximum(found - np.max(near, axis=0), np.min(near, axis=0) - found)
    return np.abs(found - near[1]).max(), max(nearby.max(), 0.0)


def measure(name, data, methods, write):
    p, y = SETS[name](data)
    found = samples(p, y)
    points = np.concatenate(
        [np.linspace(0.0, 1.0, 2001), np.quantile(p, np.linspace(0.0, 1.0, 2001))]
    )
    for method in methods:
        started = time.process_time()
        exact, error = fitted(method, found["rows"])
        for engine in ("duckdb", "grid"):
            fit, own = fitted(method, found[engine])
            apart = np.nan, np.nan
            if method != "kce":
                apart = distances(fit.map, exact.map, points)
            used = time.process_time() - started
            row = [name, p.size, method, engine, error, abs(own - error), *apart]
            write([*row, round(used, 2)])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--methods", nargs="+", default=METHODS)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    with given.out.open("a", newline="") as file:
        writer = csv.writer(file)
        columns = "set,rows,method,engine,value,error,map,nearby,cpu"
        writer.writerow(columns.split(","))

        def write(row):
            writer.writerow(row)
            file.flush()

        for name in given.sets:
            measure(name, given.data, given.methods, write)


if __name__ == "__main__":
    main()
