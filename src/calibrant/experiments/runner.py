"""Run a design: in parallel, resumable, with the same results in any order."""

from __future__ import annotations

import os
import platform
import time
import warnings
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calibrant.exceptions import FailedCellsWarning, OptionError
from calibrant.experiments.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from calibrant.core.array_types import Frame
    from calibrant.experiments.design import Cell, Design

    Progress = Callable[[int, int], None]

DATA_SETS_PER_TASK = 5
"""Approximate number of data sets of one size that a worker processes together."""

LOG_INTERVAL = 10.0
"""Seconds between lines of the log."""

PACKAGES = ("calibrant", "numpy", "scipy", "scikit-learn", "polars", "joblib")


def versions() -> str:
    """Return the versions of the packages that compute results."""
    parts = [f"{name} {version(name)}" for name in PACKAGES]
    return ", ".join([*parts, f"Python {platform.python_version()}"])


def run(
    design: Design,
    folder: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    progress: Progress | None = None,
    retry_failures: bool = False,
) -> Frame:
    """Run all cells of a design that are not in the folder yet.

    Every finished cell is written immediately, so that an interrupted run can be
    continued. Results do not depend on the number of workers or on the order. A method
    that raises an error does not stop the run; a `FailedCellsWarning` at the end
    names the first error.

    Parameters
    ----------
    design : Design
        What to run.
    folder : path
        Folder of results; created if it does not exist. Workers on other machines must
        have access to it.
    jobs : int, optional
        Number of processes; -1 uses all cores. By default 1, or the setting of an
        enclosing ``joblib.parallel_config(...)``, by which Dask and Ray can be used.
    progress : callable, optional
        Called with (done, total) whenever some cells are finished.
    retry_failures : bool
        Run cells again in which the method failed.

    Returns
    -------
    dict of ndarray
        One row per cell: method, shape, error, n, seed, the measures, and the message
        of a failure (empty if there was none).

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from calibrant.experiments import Contender, Design, SyntheticTruth
    >>> design = Design(
    ...     contenders=[Contender.of("es15"), Contender.of("platt")],
    ...     truths=[SyntheticTruth.of("square", 0.05, test_rows=10_000)],
    ...     sizes=[1000],
    ...     seeds=[0],
    ... )
    >>> with TemporaryDirectory() as folder:
    ...     rows = run(design, folder)
    >>> dict(zip(rows["method"], rows["map_error"].round(3).tolist()))
    {'es15': 0.033, 'platt': 0.005}
    """
    if jobs == 0:
        raise OptionError("jobs must not be 0; -1 uses all cores.")
    store = Store(Path(folder))
    store.open()
    with store.locked() as token:
        store.remove_leftovers()
        if retry_failures:
            store.drop_failures()
        _run_missing(design, store, token, jobs, progress or (lambda *_: None))
        store.merge()
    rows = store.frame({cell.key for cell in design.cells()})
    if failures := describe_failures(rows):
        warnings.warn(failures, FailedCellsWarning, stacklevel=2)
    return rows


def describe_failures(rows: Frame) -> str:
    """Return how many cells failed and the first error; empty if none failed."""
    failed = np.flatnonzero(rows["failure"] != "")
    if not failed.size:
        return ""
    methods = ", ".join(dict.fromkeys(rows["method"][failed]))
    first = {name: column[failed[0]] for name, column in rows.items()}
    error = "" if np.isnan(first["error"]) else f", error {first['error']:g}"
    return (
        f"{failed.size} of {rows['failure'].size} cells failed (methods: {methods}). "
        f"The first: {first['method']!r} on {first['shape']}{error}, n {first['n']}, "
        f"seed {first['seed']}: {first['failure']}"
    )


def _run_missing(
    design: Design, store: Store, token: str, jobs: int | None, progress: Progress
) -> None:
    from joblib import Parallel, delayed

    done = store.done()
    missing = [cell for cell in design.cells() if cell.key not in done]
    finished = design.size - len(missing)
    log = _Log(store.log, finished, design.size)
    log.write(
        f"start: {design.size} cells, {finished} of them done before; jobs {jobs or 1} "
        f"on {os.cpu_count()} cores; {versions()}"
    )
    progress(finished, design.size)
    parallel = Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
    for count in parallel(
        delayed(_run_task)(cells, store, token) for cells in _tasks(design, missing)
    ):
        finished += count
        log.report(finished)
        progress(finished, design.size)
    if finished < design.size:
        raise OptionError(f"another run has taken over {store.folder}; wait for it.")
    log.write(f"end: {len(missing)} cells in {_duration(log.seconds)}")


def _tasks(design: Design, cells: Iterable[Cell]) -> Iterator[list[Cell]]:
    """Yield cells that share unseen rows or fits together, a few seeds at a time."""
    names = [truth.name for truth in design.truths]
    block = {name: i // design.truths_per_task for i, name in enumerate(names)}
    count = max(DATA_SETS_PER_TASK // design.truths_per_task, 1)
    for _, group in groupby(cells, key=lambda cell: block[cell.truth.name]):
        near = list(group)
        for n in dict.fromkeys(cell.n for cell in near):
            same_size = [cell for cell in near if cell.n == n]
            seeds = list(dict.fromkeys(cell.seed for cell in same_size))
            for start in range(0, len(seeds), count):
                some = seeds[start : start + count]
                yield [cell for cell in same_size if cell.seed in some]


def _run_task(cells: list[Cell], store: Store, token: str) -> int:
    """Run some cells of one size, and write each when it is finished."""
    from threadpoolctl import threadpool_limits

    # One thread: sums of several threads would depend on how many there are.
    with threadpool_limits(limits=1):
        for _, group in groupby(cells, key=lambda cell: (cell.truth.name, cell.seed)):
            same_data = list(group)
            first = same_data[0]
            data, unseen = first.truth.draw(first.n, first.seed), first.truth.unseen()
            for cell in same_data:
                if not store.is_locked_by(token):
                    return 0  # this run was killed, and another does the rest
                store.write(cell.assess(data, unseen))
    return len(cells)


@dataclass
class _Log:
    """Appends what happens, with the time, to a text file."""

    path: Path
    before: int
    total: int
    started: float = field(default_factory=time.monotonic)
    latest: float = 0.0

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def report(self, finished: int) -> None:
        """Write a line, at most once per `LOG_INTERVAL`."""
        seconds = self.seconds
        if seconds - self.latest < LOG_INTERVAL:
            return
        self.latest = seconds
        left = seconds / max(finished - self.before, 1) * (self.total - finished)
        self.write(
            f"{finished} of {self.total} cells, {_duration(seconds)} elapsed, about "
            f"{_duration(left)} left"
        )

    def write(self, text: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{now} {text}\n")


def _duration(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
