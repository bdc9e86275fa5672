"""Spark on a cluster of two executors, processes of their own; one is killed."""

import os
import signal
import threading
import time
from pathlib import Path

import pytest
from numpy.testing import assert_array_equal

import calibrant as cb
from calibrant.exceptions import SourceError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("spark"),
    pytest.mark.filterwarnings("ignore::calibrant.exceptions.MissingGroupWarning"),
]

TASKS = 12
NAP = 20
"""Milliseconds that each row of the slow table takes."""


def executors(session):
    """Return the processes of the two executors: children of the driver's Java."""
    handle = session.sparkContext._jvm.java.lang.ProcessHandle.current()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:  # one that was killed comes back
        children = [int(child.pid()) for child in handle.children().toList()]
        found = [pid for pid in children if is_executor(pid)]
        if len(found) == 2:
            return found
        time.sleep(0.1)
    return pytest.fail(f"two executors were expected, {found} seen")


def is_executor(pid):
    """Tell executors from whatever else the driver has started."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended
        return False
    return b"CoarseGrainedExecutorBackend" in command


def slow_rows(session):
    """Return rows that take their time, 60 a task."""
    return (
        session.range(0, 60 * TASKS, 1, TASKS)
        .selectExpr(
            "id / 1000.0D AS p",
            "CAST(id % 3 = 0 AS INT) AS y",
            f"java_method('java.lang.Thread', 'sleep', {NAP}L) AS nap",
        )
        .where("nap IS NULL OR nap <> 'never'")
    )


def test_executors_are_processes_of_their_own(spark):
    spark.range(10).count()
    assert os.getpid() not in executors(spark)


def test_data_frames_are_aggregated_where_they_are(spark, rows, row_file):
    frame = spark.read.parquet(str(row_file))
    found = cb.evaluate(
        cb.Predictions.from_table(frame, y="y", p="p", by="place"),
        methods=["ew15", "es15"],
    )
    cells = cb.Predictions.from_table(rows, y="y", p="p", by="place").aggregate()
    expected = cb.evaluate(cells, methods=["ew15", "es15"])
    assert_array_equal(found.frame()["value"], expected.frame()["value"])


def test_a_killed_executor_changes_nothing(spark):
    expected = {
        "y": [int(i % 3 == 0) for i in range(60 * TASKS)],
        "p": [i / 1000.0 for i in range(60 * TASKS)],
    }
    before = executors(spark)
    found = []
    job = threading.Thread(
        target=lambda: found.append(
            cb.Predictions.from_table(slow_rows(spark), y="y", p="p").aggregate()
        )
    )
    job.start()
    tracker = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + 180
    while time.monotonic() < deadline:
        stages = [tracker.getStageInfo(s) for s in tracker.getActiveStageIds()]
        if any(stage and stage.numCompletedTasks >= 2 for stage in stages):
            break
        time.sleep(0.05)
    else:
        pytest.fail("the job was not seen to run")
    os.kill(before[0], signal.SIGKILL)
    job.join(timeout=300)
    assert found, "the job did not end"
    cells = cb.Predictions.from_table(expected, y="y", p="p").aggregate().store.cells
    for name, values in cells.columns.items():
        assert_array_equal(found[0].store.cells.columns[name], values, err_msg=name)


def test_files_that_cannot_be_read_end_in_our_error(spark, tmp_path):  # noqa: ARG001
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(SourceError, match="cannot be read"):
        cb.Predictions.from_table(
            tmp_path / "bad.parquet", y="y", p="p", engine="spark"
        ).aggregate()


def test_other_things_are_no_spark_sources(spark, rows):  # noqa: ARG001
    with pytest.raises(SourceError, match="Spark data frames and Parquet files"):
        cb.Predictions.from_table(rows, y="y", p="p", engine="spark").aggregate()
