"""Results on disk: each cell is a file of its own until all are merged.

A cell is written under another name and renamed, so that every file is complete: a run
that is killed loses only the cells it was working on.
"""

from __future__ import annotations

import json
import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from calibrant.__about__ import __version__
from calibrant.core.atomic_write import atomic_write
from calibrant.exceptions import MissingDependencyError, OptionError
from calibrant.experiments.assessment import MEASURES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

    from calibrant.core.array_types import Frame

ORDER = ("shape", "method", "error", "n", "seed", "key")
WRITTEN_BESIDE = ("tables.md", "tables.tex", "tables.html", "ordering.png")
"""What commands write beside the results."""


def _polars() -> Any:
    try:
        import polars as pl
    except ImportError:
        raise MissingDependencyError.for_extra(
            "writing results", "polars", "data"
        ) from None
    return pl


def _column_types() -> dict[str, Any]:
    pl = _polars()
    return {
        **dict.fromkeys(("key", "method", "shape"), pl.String),
        "error": pl.Float64,
        **dict.fromkeys(("n", "seed"), pl.Int64),
        **dict.fromkeys(MEASURES, pl.Float64),
        "failure": pl.String,
        "seconds": pl.Float64,
    }


def _version(path: Path) -> str:
    """Return the version of calibrant that wrote a folder."""
    try:
        return str(json.loads(path.read_text(encoding="utf-8"))["calibrant"])
    except (ValueError, LookupError, TypeError):
        raise _foreign(path) from None


def _foreign(path: Path) -> OptionError:
    return OptionError(
        f"{path} is there already, and no study of calibrant wrote it; choose another "
        f"folder, so that it is not overwritten."
    )


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
            self._check_nothing_there()
            self.folder.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as temporary:
                temporary.write_text(json.dumps({"calibrant": __version__}) + "\n")
        version = _version(path)
        if version != __version__:
            raise OptionError(
                f"{self.folder} has results of calibrant {version}, this is "
                f"{__version__}; choose another folder, so that they do not mix."
            )
        self._parts.mkdir(exist_ok=True)

    def _check_nothing_there(self) -> None:
        """Raise where the folder holds other files under the names of results."""
        own = (self.results, self.times, self.log, self._parts)
        for path in (*own, *(self.folder / name for name in WRITTEN_BESIDE)):
            if path.exists():
                raise _foreign(path)

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
            yield token

    def is_locked_by(self, token: str) -> bool:
        """Return whether no other run has locked the folder since."""
        return self._lock.read_text(encoding="utf-8") == token

    def done(self) -> set[str]:
        """Return the keys of all cells that are on disk."""
        keys = {part.stem for part in self._complete_parts()}
        if self.results.exists():
            frame = _polars().read_parquet(self.results, columns=["key"])
            keys |= set(frame["key"].to_list())
        return keys

    def write(self, row: dict[str, Any]) -> None:
        """Write one cell, completely or not at all."""
        frame = _polars().DataFrame([row], schema=_column_types())
        with atomic_write(self._parts / f"{row['key']}.parquet") as temporary:
            frame.write_parquet(temporary, statistics=False)

    def merge(self) -> None:
        """Move all cells into two files; parts are deleted last, so none is lost."""
        parts = self._complete_parts()
        if not parts:
            return
        rows = _polars().read_parquet(parts, glob=False, hive_partitioning=False)
        _append(self.times, rows.select("key", "seconds"), by=["key"])
        _append(self.results, rows.drop("seconds"), by=list(ORDER))
        for part in parts:
            part.unlink()

    def drop_failures(self) -> None:
        """Drop the cells that failed, so that they are run again."""
        self.merge()
        if self.results.exists():
            pl = _polars()
            rows = pl.read_parquet(self.results).filter(pl.col("failure") == "")
            with atomic_write(self.results) as temporary:
                rows.write_parquet(temporary)

    def frame(self, keys: Collection[str]) -> Frame:
        """Return the finished cells of these keys as columns, in a fixed order."""
        pl = _polars()
        rows = pl.read_parquet(self.results).filter(pl.col("key").is_in(list(keys)))
        return {name: rows[name].to_numpy() for name in rows.columns}

    def seconds(self, keys: Collection[str]) -> dict[str, float]:
        """Return the CPU seconds of each of these cells, by key."""
        rows = _polars().read_parquet(self.times)
        seconds = dict(zip(rows["key"], rows["seconds"], strict=True))
        return {key: seconds[key] for key in keys}

    def remove_leftovers(self) -> None:
        """Remove files that a killed run did not finish."""
        for file in self._parts.glob(".*.parquet"):
            file.unlink(missing_ok=True)

    def _complete_parts(self) -> list[Path]:
        return sorted(self._parts.glob("[!.]*.parquet"))


def _append(path: Path, rows: Any, by: list[str]) -> None:
    pl = _polars()
    if path.exists():
        # Columns that are new in this version are null in older rows.
        rows = pl.concat([pl.read_parquet(path), rows], how="diagonal")
    rows = rows.unique("key", keep="last", maintain_order=True).sort(by)
    with atomic_write(path) as temporary:
        rows.write_parquet(temporary)
