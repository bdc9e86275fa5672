"""Runs are resumable, do not depend on workers, and survive failures."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calibrant as cb
from calibrant.exceptions import (
    FailedCellsWarning,
    MissingDependencyError,
    OptionError,
)
from calibrant.experiments import Contender, Design, run
from calibrant.experiments.runner import Store, _run_task, _tasks

HERE = Path(__file__).parent

KILLED = """
import sys
sys.path.insert(0, sys.argv[1])
from conftest import CountedBins
from calibrant.experiments import Contender, Design, SyntheticTruth, run
design = Design(
    contenders=[
        Contender("counted", CountedBins(sys.argv[3], 0.03)), Contender.of("es5")
    ],
    truths=[SyntheticTruth("square", e, test_rows=2000) for e in (0.0, 0.05)],
    sizes=[100, 200],
    seeds=range(6),
)
if __name__ == "__main__":
    run(design, sys.argv[2], jobs=int(sys.argv[4]))
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(KILLED)

    def start(folder, count, jobs=1):
        arguments = [HERE, tmp_path / folder, tmp_path / count, jobs]
        command = [sys.executable, path, *map(str, arguments)]
        started.append(subprocess.Popen(command, start_new_session=True))
        return started[-1]

    started = []
    yield start
    for process in started:  # workers outlive a killed run, idle
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def wait_for_parts(folder, count):
    deadline = time.monotonic() + 60
    while len(list(folder.glob("parts/[!.]*.parquet"))) < count:
        assert time.monotonic() < deadline
        time.sleep(0.005)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_run_goes_on_as_if_unbroken(script, tmp_path, jobs):
    folder, counted = tmp_path / "run", tmp_path / "count"
    for reached in (9, 27):
        process = script("run", "count", jobs)
        wait_for_parts(folder, reached)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert not (folder / "results.parquet").exists()
    (folder / "parts" / ".left-over.parquet").write_bytes(b"torn")
    assert script("run", "count", jobs).wait() == 0
    assert not list((folder / "parts").iterdir())
    # Only what was in work when a run took over is fitted again: a cell a worker.
    assert 24 <= len(counted.read_text().splitlines()) <= 24 + 2 * jobs
    broken = (folder / "results.parquet").read_bytes()
    assert script("unbroken", "count").wait() == 0
    assert (tmp_path / "unbroken" / "results.parquet").read_bytes() == broken


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_workers(small_design, tmp_path):
    design = small_design()
    contents = []
    for jobs in (1, 2, 3):
        run(design, tmp_path / str(jobs), jobs=jobs)
        contents.append((tmp_path / str(jobs) / "results.parquet").read_bytes())
    assert contents[0] == contents[1] == contents[2]


def test_results_do_not_depend_on_the_order(small_design, tmp_path):
    design = small_design()
    turned = Design(
        contenders=design.contenders[::-1],
        truths=design.truths[::-1],
        sizes=design.sizes[::-1],
        seeds=design.seeds[::-1],
    )
    run(design, tmp_path / "a")
    run(turned, tmp_path / "b")
    first, second = (
        (tmp_path / name / "results.parquet").read_bytes() for name in "ab"
    )
    assert first == second


def test_truths_that_share_fits_are_one_piece_of_work(small_design, tmp_path):
    design = small_design(seeds=range(3))
    shared = replace(design, truths_per_task=2)
    blocks = list(_tasks(shared, shared.cells()))
    assert sum(map(len, blocks)) == design.size
    assert len({cell.key for block in blocks for cell in block}) == design.size
    for block in blocks:
        assert len({cell.n for cell in block}) == 1
        assert len({cell.truth.name for cell in block}) == 2
        assert len({cell.truth.shape for cell in block}) == 1
    run(design, tmp_path / "a")
    run(shared, tmp_path / "b")
    first, second = (
        (tmp_path / name / "results.parquet").read_bytes() for name in "ab"
    )
    assert first == second


def test_finished_cells_are_not_done_again(small_design, tmp_path, counted_bins):
    path = tmp_path / "count"
    counted = Contender("counted", counted_bins(str(path)))
    first = run(small_design(counted), tmp_path / "run")
    again = run(small_design(counted), tmp_path / "run")
    assert len(path.read_text().splitlines()) == 16
    more = run(
        small_design(counted, Contender.of("es5"), seeds=(0, 1, 2)), tmp_path / "run"
    )
    assert len(path.read_text().splitlines()) == 24
    assert first.keys() == again.keys()
    assert all(np.array_equal(first[name], again[name]) for name in ("key", "estimate"))
    assert len(more["key"]) == 48


def test_measures_are_those_of_the_library(small_design, tmp_path):
    design = small_design(Contender.of("es5"), Contender.of("kce"))
    rows = run(design, tmp_path)
    at = [
        i
        for i in range(len(rows["key"]))
        if rows["method"][i] == "es5" and rows["n"][i] == 200
    ][-1]
    p, y, c = cb.experiments.synthetic.sample(
        rows["shape"][at], rows["error"][at], 200, int(rows["seed"][at])
    )
    truth = next(
        t
        for t in design.truths
        if (t.shape, t.error) == (rows["shape"][at], rows["error"][at])
    )
    unseen = truth.unseen()
    fitted = cb.make_calibrator("es5").fit(p, y).map_
    for name, expected in {
        "estimate": cb.calibration_error(y, p, method="es5"),
        "estimate_sq": cb.calibration_error(y, p, method="es5", alpha=2),
        "true_error": np.abs(p - c).mean(),
        "true_error_sq": ((p - c) ** 2).mean(),
        "map_error": np.abs(fitted(unseen.p) - unseen.c).mean(),
    }.items():
        assert rows[name][at] == pytest.approx(expected, abs=1e-12), name
    kernel = rows["method"] == "kce"
    assert np.isnan(rows["estimate"][kernel]).all()
    assert np.isnan(rows["map_error"][kernel]).all()
    assert np.isfinite(rows["estimate_sq"][kernel]).all()


def test_a_failure_is_recorded_and_named_but_does_not_stop_the_run(
    small_design, tmp_path, failing
):
    design = small_design(Contender("failing", failing), Contender.of("es5"))
    words = (
        r"8 of 32 cells failed \(methods: failing\)\. The first: 'failing' on beta2, "
        r"error 0, n 200, seed 0: ZeroDivisionError: even"
    )
    with pytest.warns(FailedCellsWarning, match=words):
        rows = run(design, tmp_path)
    failed = rows["failure"] != ""
    assert set(rows["failure"][failed]) == {"ZeroDivisionError: even"}
    assert (failed == ((rows["method"] == "failing") & (rows["n"] == 200))).all()
    assert np.isnan(rows["map_error"][failed]).all()
    assert np.isfinite(rows["map_error"][~failed]).all()


def test_failures_are_tried_again_by_the_next_run(small_design, tmp_path, failing):
    design = small_design(Contender("failing", failing))
    for _ in range(2):
        with pytest.warns(FailedCellsWarning, match="8 of 16 cells failed"):
            run(design, tmp_path)
    log = (tmp_path / "log.txt").read_text()
    assert "16 cells, 8 of them done before" in log


def test_progress_and_log_tell_what_happened(small_design, tmp_path):
    steps = []
    run(small_design(), tmp_path, progress=lambda *step: steps.append(step))
    assert steps[0] == (0, 32)
    assert steps[-1] == (32, 32)
    log = (tmp_path / "log.txt").read_text()
    assert f"calibrant {cb.__version__}, numpy {np.__version__}" in log
    assert "end: 32 cells in 0:0" in log


def test_times_are_kept_apart_from_results(small_design, tmp_path):
    rows = run(small_design(), tmp_path)
    assert rows["seconds"].min() > 0.0
    assert "seconds" not in pl.read_parquet_schema(tmp_path / "results.parquet")


def test_versions_do_not_mix(small_design, tmp_path):
    (tmp_path / "version.json").write_text(json.dumps({"calibrant": "0.0.0"}))
    with pytest.raises(OptionError, match=r"results of calibrant 0\.0\.0"):
        run(small_design(), tmp_path)


def test_two_runs_cannot_share_a_folder(small_design, tmp_path):
    store = Store(tmp_path)
    store.open()
    with store.locked(), pytest.raises(OptionError, match="another run is writing"):
        run(small_design(), tmp_path)


def test_workers_of_a_killed_run_leave_the_rest_to_the_next(small_design, tmp_path):
    store, cells = Store(tmp_path), list(small_design().cells())[:2]
    store.open()
    with store.locked() as first:
        assert _run_task(cells[:1], store, first) == 1
    with store.locked() as second:
        assert _run_task(cells[1:], store, first) == 0
        assert len(store.done()) == 1
        assert _run_task(cells[1:], store, second) == 1
        assert len(store.done()) == 2


def test_a_refused_run_leaves_the_first_its_folder(tmp_path):
    store = Store(tmp_path)
    store.open()
    with store.locked() as token:
        with pytest.raises(OptionError), store.locked():
            pass
        assert store.is_locked_by(token)


def test_a_run_that_was_overtaken_does_not_give_half_its_results(
    small_design, tmp_path
):
    """As where the folder cannot be locked."""
    lock = tmp_path / ".lock"
    with pytest.raises(OptionError, match="another run has taken over"):
        run(small_design(), tmp_path, progress=lambda *_: lock.write_text("other"))


def test_no_workers_are_refused(small_design, tmp_path):
    with pytest.raises(OptionError, match="jobs must not be 0"):
        run(small_design(), tmp_path, jobs=0)


def test_without_polars_the_extra_is_named(small_design, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(MissingDependencyError, match=r"calibrant\[data\]"):
        run(small_design(), tmp_path)


def test_other_backends_of_joblib_are_used(small_design, tmp_path):
    from joblib import parallel_config

    with parallel_config(backend="threading", n_jobs=2):
        rows = run(small_design(), tmp_path / "threads")
    plain = run(small_design(), tmp_path / "plain")
    assert np.array_equal(rows["estimate"], plain["estimate"])


@pytest.mark.slow
def test_the_example_of_the_docs_runs(tmp_path, monkeypatch, capsys):
    """With fewer seeds and in this process."""
    text = (Path(__file__).parents[2] / "docs" / "reproduce.md").read_text("utf-8")
    code = re.search(r"```python\n(import calibrant.*?)```", text, re.DOTALL)[1]
    for long, short in (("range(10)", "range(2)"), ("jobs=2", "jobs=1")):
        assert long in code
        code = code.replace(long, short)
    monkeypatch.chdir(tmp_path)
    exec(code, {})  # noqa: S102
    assert "| cube | " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"contenders": []}, "contenders must have at least one"),
        ({"sizes": [10, 10]}, "sizes must have at least one entry and no duplicates"),
        ({"sizes": [0]}, "sizes must be a whole number of at least 1"),
        ({"seeds": [-1]}, "seeds must be a whole number of at least 0"),
    ],
)
def test_designs_are_checked(small_design, change, words):
    design = small_design()
    kept = {
        name: getattr(design, name)
        for name in ("contenders", "truths", "sizes", "seeds")
    }
    with pytest.raises(OptionError, match=words):
        Design(**(kept | change))
