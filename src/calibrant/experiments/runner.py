"""Run a design: in parallel, resumable, with the same results in any order.

A design says which contenders meet which truths, of which sizes, how often. Each cell
of it is a file of its own until all are merged. It is written under another name and
renamed, so that every file is complete: a run that is killed loses only the cells it
was working on.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import time
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from itertools import groupby, product
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.__about__ import __version__
from calibrant.core.output_files import atomic_write
from calibrant.core.parameters import check_count
from calibrant.engines.files import load_polars
from calibrant.exceptions import FailedCellsWarning, OptionError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from calibrant.core.array_types import Frame
    from calibrant.experiments.assessment import Contender, KnownSample, Truth

    Progress = Callable[[int, int], None]

ORDER = ("shape", "method", "error", "n", "seed", "key")
WRITTEN_BESIDE = ("tables.md", "tables.tex", "tables.parquet")
"""What commands write beside the results."""

DATA_SETS_PER_TASK = 5
"""Approximate number of data sets of one size that a worker processes together."""

PLAIN: dict[str, Any] = {"glob": False, "hive_partitioning": False}
"""Names of folders may contain any sign."""

PACKAGES = ("calibrant", "numpy", "scipy", "scikit-learn", "polars", "joblib")


@dataclass(frozen=True, kw_only=True)
class Design:
    """A study: every contender on every truth, size and seed.

    Parameters
    ----------
    contenders : sequence of Contender
        Columns of the tables.
    truths : sequence of Truth
        Where data come from.
    sizes : sequence of int
        Numbers of rows.
    seeds : sequence of int
        One draw of labels each.
    truths_per_task : int
        How many consecutive truths one worker processes together, because calibrators
        of all classes share their fits between them.

    Examples
    --------
    >>> from calibrant.experiments import Contender, SyntheticTruth
    >>> design = Design(
    ...     contenders=[Contender.of("es15"), Contender.of("platt")],
    ...     truths=[SyntheticTruth("square", 0.05)],
    ...     sizes=[1000],
    ...     seeds=range(3),
    ... )
    >>> design.size
    6
    """

    contenders: Sequence[Contender]
    truths: Sequence[Truth]
    sizes: Sequence[int]
    seeds: Sequence[int]
    truths_per_task: int = 1

    def __post_init__(self) -> None:
        check_count(self.truths_per_task, name="truths_per_task")
        for name in ("contenders", "truths", "sizes", "seeds"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        for name, values in (
            ("contenders", [contender.name for contender in self.contenders]),
            ("truths", [truth.name for truth in self.truths]),
            ("sizes", [check_count(n, name="sizes") for n in self.sizes]),
            ("seeds", [check_count(s, name="seeds", least=0) for s in self.seeds]),
        ):
            if not values or len(set(values)) < len(values):
                raise OptionError(
                    f"{name} must have at least one entry and no duplicates; got "
                    f"{values!r}."
                )

    @property
    def size(self) -> int:
        """Return the number of cells."""
        return sum(1 for _ in self.cells())

    def cells(self) -> Iterator[Cell]:
        """Yield all cells, those of one truth and size together.

        A truth may say by a method ``has(n, seed)`` which samples it can provide.
        """
        for truth, n, seed in product(self.truths, self.sizes, self.seeds):
            has = getattr(truth, "has", None)
            if has is None or has(n, seed):
                for contender in self.contenders:
                    yield Cell(contender, truth, n, seed)


@dataclass(frozen=True)
class Cell:
    """One contender on one data set: the smallest unit of work."""

    contender: Contender
    truth: Truth
    n: int
    seed: int

    @property
    def key(self) -> str:
        """Return a hash of everything the result depends on."""
        who = self.contender
        attributes = getattr(who.family, "__dict__", {})
        content = (who.name, who.family, attributes, who.every, self.truth.name)
        text = repr((*content, self.n, self.seed))
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    def assess(self, data: KnownSample, unseen: KnownSample) -> dict[str, Any]:
        """Return the row of results; an error of the method is in ``failure``.

        The method may tell itself what part of the time counts as ``seconds``.
        """
        started = time.thread_time()
        measures: dict[str, float] = {}
        failure = ""
        try:
            measures = self.contender.measure(data, unseen, self.truth)
        except Exception as error:  # noqa: BLE001 (one method must not stop the others)
            failure = f"{type(error).__name__}: {error}"
        return {
            "key": self.key,
            "method": self.contender.name,
            "shape": self.truth.shape,
            "error": float(self.truth.error),
            "n": self.n,
            "seed": self.seed,
            **{
                name: float(measures.get(name, nan)) for name in self.contender.measures
            },
            "failure": failure,
            "seconds": float(measures.get("seconds", time.thread_time() - started)),
        }


def _polars() -> Any:
    return load_polars("writing results")


class Store:
    """A folder of results.

    ``results.parquet`` has one row per cell in a fixed order and nothing that changes
    from run to run; ``times.parquet`` has the CPU seconds of each cell; ``log.txt`` is
    the log of all runs; ``parts`` has cells that are not merged yet.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results = folder / "results.parquet"
        self.times = folder / "times.parquet"
        self.log = folder / "log.txt"
        self._parts = folder / "parts"
        self._lock = folder / ".lock"

    def open(self) -> None:
        """Create the folder; raise where something else has written to it."""
        _polars()
        path = self.folder / "version.json"
        if not path.exists():
            own = (self.results, self.times, self.log, self._parts)
            for other in (*own, *(self.folder / name for name in WRITTEN_BESIDE)):
                if other.exists():
                    raise _not_ours(other)
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as temporary:
                temporary.write_text(json.dumps({"calibrant": __version__}) + "\n")
        try:
            wrote = str(json.loads(path.read_text(encoding="utf-8"))["calibrant"])
        except (ValueError, LookupError, TypeError):
            raise _not_ours(path) from None
        if wrote != __version__:
            raise OptionError(
                f"{self.folder} has results of calibrant {wrote}, this is "
                f"{__version__}; choose another folder, so that they do not mix."
            )
        self._parts.mkdir(exist_ok=True)

    @contextmanager
    def locked(self) -> Iterator[str]:
        """Lock the folder for one run and yield its token.

        A second run is refused while the first one is alive. After a run was killed,
        the next one writes another token, from which workers that outlived the first
        see that they are no longer needed.
        """
        with self._lock.open("a", encoding="utf-8") as file:
            try:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except ImportError:  # pragma: no cover (Windows)
                pass
            except OSError:
                raise OptionError(
                    f"another run is writing to {self.folder}; wait for it, or choose "
                    f"another folder."
                ) from None
            token = secrets.token_hex(8)
            file.truncate(0)
            file.write(token)
            file.flush()
            for leftover in self._parts.glob(".*.parquet"):  # of a killed run
                leftover.unlink(missing_ok=True)
            yield token

    def is_locked_by(self, token: str) -> bool:
        """Return whether no other run has locked the folder since."""
        return self._lock.read_text(encoding="utf-8") == token

    def done(self) -> set[str]:
        """Return the keys of all cells on disk, except those that failed."""
        keys: set[str] = set()
        merged = [self.results] if self.results.exists() else []
        for files in filter(None, (merged, self._complete_parts())):
            rows = _polars().read_parquet(files, columns=["key", "failure"], **PLAIN)
            keys |= set(rows.filter(rows["failure"] == "")["key"].to_list())
        return keys

    def write(self, row: dict[str, Any]) -> None:
        """Write one cell, completely or not at all."""
        pl = _polars()
        types = {
            **dict.fromkeys(row, pl.Float64),
            **dict.fromkeys(("key", "method", "shape", "failure"), pl.String),
            **dict.fromkeys(("n", "seed"), pl.Int64),
        }
        with atomic_write(self._parts / f"{row['key']}.parquet") as temporary:
            pl.DataFrame([row], types).write_parquet(temporary, statistics=False)

    def merge(self) -> None:
        """Move all cells into two files; parts are deleted last, so none is lost."""
        parts = self._complete_parts()
        if not parts:
            return
        rows = _polars().read_parquet(parts, **PLAIN)
        _append(self.times, rows.select("key", "seconds"), by=["key"])
        _append(self.results, rows.drop("seconds"), by=list(ORDER))
        for part in parts:
            part.unlink()

    def frame(self, keys: Collection[str]) -> Frame:
        """Return the finished cells of these keys as columns, in a fixed order."""
        pl = _polars()
        rows = pl.read_parquet(self.results).filter(pl.col("key").is_in(list(keys)))
        times = pl.read_parquet(self.times)
        rows = rows.join(times, on="key", how="left", maintain_order="left")
        return {name: rows[name].to_numpy() for name in rows.columns}

    def write_log(self, text: str) -> None:
        """Append what happened, with the time, to a text file."""
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")
        with self.log.open("a", encoding="utf-8") as file:
            file.write(f"{now} {text}\n")

    def _complete_parts(self) -> list[Path]:
        return sorted(self._parts.glob("[!.]*.parquet"))


def _not_ours(path: Path) -> OptionError:
    return OptionError(
        f"{path} already exists and was not written by a study of calibrant; "
        "choose another folder, so that it is not overwritten."
    )


def _append(path: Path, rows: Any, by: list[str]) -> None:
    pl = _polars()
    if path.exists():
        # Columns that are new in this version are null in older rows.
        rows = pl.concat([pl.read_parquet(path), rows], how="diagonal")
    rows = rows.unique("key", keep="last", maintain_order=True).sort(by)
    with atomic_write(path) as temporary:
        rows.write_parquet(temporary)


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
) -> Frame:
    """Run all cells of a design that are not in the folder yet.

    Every finished cell is written immediately, so that an interrupted run can be
    continued. Results do not depend on the number of workers or on the order. A method
    that raises an error does not stop the run; a `FailedCellsWarning` at the end
    names the first error, and the next run tries such cells again.

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

    Returns
    -------
    dict of ndarray
        One row per cell: method, shape, error, n, seed, the measures, the message of a
        failure (empty if there was none), and CPU seconds.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from calibrant.experiments import Contender, Design, SyntheticTruth
    >>> design = Design(
    ...     contenders=[Contender.of("es15"), Contender.of("platt")],
    ...     truths=[SyntheticTruth("square", 0.05, test_rows=10_000)],
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
    started = time.monotonic()
    store.write_log(
        f"start: {design.size} cells, {finished} of them done before; jobs {jobs or 1} "
        f"on {os.cpu_count()} cores; {versions()}"
    )
    progress(finished, design.size)
    parallel = Parallel(n_jobs=jobs, batch_size=1, return_as="generator_unordered")
    for count in parallel(
        delayed(_run_task)(cells, store, token) for cells in _tasks(design, missing)
    ):
        finished += count
        progress(finished, design.size)
    if finished < design.size:
        raise OptionError(f"another run has taken over {store.folder}; wait for it.")
    duration = timedelta(seconds=round(time.monotonic() - started))
    store.write_log(f"end: {len(missing)} cells in {duration}")


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
