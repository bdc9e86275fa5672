"""Run a design: in parallel, resumable, with the same results in any order."""

from __future__ import annotations

import os
import platform
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from calibrant.exceptions import OptionError
from calibrant.experiments.cells import assess
from calibrant.experiments.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from calibrant._typing import Frame
    from calibrant.experiments.design import Cell, Design

DATA_SETS_AT_ONCE = 5
"""About how many data sets of one size make one piece of work."""

VERSIONS_OF = ("calibrant", "numpy", "scipy", "scikit-learn", "polars", "joblib")


def versions() -> str:
    """Return what computed the results, for people to compare."""
    parts = [f"{name} {version(name)}" for name in VERSIONS_OF]
    return ", ".join([*parts, f"Python {platform.python_version()}"])


def run(
    design: Design,
    folder: str | os.PathLike[str],
    *,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    retry_failures: bool = False,
) -> Frame:
    """Do all cells of a design that the folder does not hold yet.

    Every finished cell is written at once, so that a run that was stopped goes on
    where it was. Results do not depend on the number of workers nor on the order.

    Parameters
    ----------
    design : Design
        What to do.
    folder : path
        Where results are; made if it does not exist. Workers on other machines must
        reach it.
    jobs : int, optional
        Number of processes; -1 for one a core. By default 1, or what an enclosing
        ``joblib.parallel_config(...)`` says: so Dask and Ray are used.
    progress : callable, optional
        Told (done, total) whenever some cells are finished.
    retry_failures : bool
        Do cells again in which the method failed.

    Returns
    -------
    dict of ndarray
        One row a cell: method, shape, error, n, seed, the measures, and why it failed
        (empty where it did not).

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from calibrant.experiments.design import Contender, Design
    >>> from calibrant.experiments.truths import SyntheticTruth
    >>> design = Design(
    ...     contenders=[Contender.of("es15"), Contender.of("platt")],
    ...     truths=[SyntheticTruth.of("square", 0.05, test_rows=10_000)],
    ...     sizes=[1000],
    ...     seeds=[0],
    ... )
    >>> with TemporaryDirectory() as folder:
    ...     found = run(design, folder)
    >>> dict(zip(found["method"], found["map_error"].round(3).tolist()))
    {'es15': 0.033, 'platt': 0.005}
    """
    if jobs == 0:
        raise OptionError("jobs must not be 0; -1 takes all cores.")
    store = Store(Path(folder))
    store.open()
    with store.taken() as token:
        store.clear_leftovers()
        if retry_failures:
            store.forget_failures()
        _do_missing(design, store, token, jobs, progress)
        store.put_together()
    return store.frame({cell.key for cell in design.cells()})


def _do_missing(
    design: Design,
    store: Store,
    token: str,
    jobs: int | None,
    progress: Callable[[int, int], None] | None,
) -> None:
    from joblib import Parallel, delayed

    done = store.done()
    missing = [cell for cell in design.cells() if cell.key not in done]
    log = _Log(store.log, design.size - len(missing), design.size)
    log.started(jobs)
    if progress is not None:
        progress(log.before, log.total)
    parallel = Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
    finished = log.before
    tasks = (delayed(_do)(work, store, token) for work in _blocks(design, missing))
    for count in parallel(tasks):
        finished += count
        log.reached(finished)
        if progress is not None:
            progress(finished, log.total)
    if finished < log.total:
        raise OptionError(f"another run has taken over {store.folder}; wait for it.")
    log.ended()


def _blocks(design: Design, cells: Iterable[Cell]) -> Iterator[list[Cell]]:
    """Give cells that share unseen rows or fits together, a few seeds at a time."""
    names = [truth.name for truth in design.truths]
    part = {name: place // design.together for place, name in enumerate(names)}
    count = max(DATA_SETS_AT_ONCE // design.together, 1)
    for _, group in groupby(cells, key=lambda cell: part[cell.truth.name]):
        near = list(group)
        for n in dict.fromkeys(cell.n for cell in near):
            alike = [cell for cell in near if cell.n == n]
            seeds = list(dict.fromkeys(cell.seed for cell in alike))
            for start in range(0, len(seeds), count):
                few = seeds[start : start + count]
                yield [cell for cell in alike if cell.seed in few]


def _do(cells: list[Cell], store: Store, token: str) -> int:
    """Do some cells of one size, and write each when it is finished."""
    from threadpoolctl import threadpool_limits

    # One thread: sums of several threads would depend on how many there are.
    with threadpool_limits(limits=1):
        for _, alike in groupby(cells, key=lambda cell: (cell.truth.name, cell.seed)):
            same = list(alike)
            truth = same[0].truth
            data, unseen = truth.draw(same[0].n, same[0].seed), truth.unseen()
            for cell in same:
                if not store.is_taken_by(token):
                    return 0  # this run was killed, and another does what is left
                store.write(assess(cell, data, unseen))
    return len(cells)


@dataclass
class _Log:
    """What happened when, appended to a text file."""

    path: Path
    before: int
    total: int

    def __post_init__(self) -> None:
        self.start = time.monotonic()
        self.latest = 0.0

    def started(self, jobs: int | None) -> None:
        self._write(
            f"start: {self.total} cells, {self.before} of them done before; jobs "
            f"{jobs or 1} on {os.cpu_count()} cores; {versions()}"
        )

    def reached(self, finished: int) -> None:
        """Log at most once in ten seconds."""
        gone = time.monotonic() - self.start
        if gone - self.latest < 10.0:  # noqa: PLR2004
            return
        self.latest = gone
        left = gone / max(finished - self.before, 1) * (self.total - finished)
        self._write(
            f"{finished} of {self.total} cells, {_told(gone)} gone, about "
            f"{_told(left)} left"
        )

    def ended(self) -> None:
        gone = time.monotonic() - self.start
        self._write(f"end: {self.total - self.before} cells in {_told(gone)}")

    def _write(self, text: str) -> None:
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{now} {text}\n")


def _told(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))
