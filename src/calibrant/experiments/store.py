"""Results on disk: each cell is a file of its own until all are put together.

A cell is written under another name and renamed, so that what is there is whole, and
whoever stops a run, however rudely, loses nothing but the cells then in work.
"""

from __future__ import annotations

import json
import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calibrant.__about__ import __version__
from calibrant._atomic import replacing
from calibrant.exceptions import MissingDependencyError, OptionError
from calibrant.experiments.cells import MEASURES

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path
    from types import ModuleType

    from calibrant._typing import Frame

ORDER = ("shape", "method", "error", "n", "seed", "key")
TIMES = ("key", "seconds")
WRITTEN_BESIDE = ("tables.md", "tables.tex", "tables.html", "ordering.png")
"""What commands write beside the results."""


def polars() -> ModuleType:
    """Return polars, or say which extra brings it."""
    try:
        import polars as pl
    except ImportError:
        raise MissingDependencyError.for_extra(
            "writing results", "polars", "data"
        ) from None
    return pl


def _columns() -> dict[str, Any]:
    """Return the type of each column."""
    pl = polars()
    return {
        **dict.fromkeys(("key", "method", "shape"), pl.String),
        "error": pl.Float64,
        **dict.fromkeys(("n", "seed"), pl.Int64),
        **dict.fromkeys(MEASURES, pl.Float64),
        "failure": pl.String,
        "seconds": pl.Float64,
    }


def _version(made_by: Path) -> str:
    """Return the version of calibrant that wrote a folder."""
    try:
        return str(json.loads(made_by.read_text(encoding="utf-8"))["calibrant"])
    except (ValueError, LookupError, TypeError):
        raise _foreign(made_by) from None


def _foreign(path: Path) -> OptionError:
    return OptionError(
        f"{path} is there already, and no study of calibrant wrote it; choose another "
        f"folder, so that it is not overwritten."
    )


@dataclass(frozen=True)
class Store:
    """A folder of results.

    ``results.parquet`` has a row a cell in a fixed order and nothing that changes from
    run to run; ``times.parquet`` tells the seconds of one core that each cell
    took.
    """

    folder: Path

    @property
    def results(self) -> Path:
        """Return where finished results are."""
        return self.folder / "results.parquet"

    @property
    def times(self) -> Path:
        """Return where times are."""
        return self.folder / "times.parquet"

    @property
    def parts(self) -> Path:
        """Return the folder of cells that are not put together yet."""
        return self.folder / "parts"

    @property
    def log(self) -> Path:
        """Return the log of all runs."""
        return self.folder / "log.txt"

    def open(self) -> None:
        """Make the folder; raise where another version, or somebody else, wrote it."""
        polars()
        made_by = self.folder / "version.json"
        if not made_by.exists():
            self._check_nothing_there()
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(made_by) as temporary:
                temporary.write_text(json.dumps({"calibrant": __version__}) + "\n")
        found = _version(made_by)
        if found != __version__:
            raise OptionError(
                f"{self.folder} holds results of calibrant {found}, this is "
                f"{__version__}; choose another folder, so that they do not mix."
            )
        self.parts.mkdir(exist_ok=True)

    def _check_nothing_there(self) -> None:
        """Raise where the folder holds other files under the names of results."""
        own = (self.results, self.times, self.log, self.parts)
        for path in (*own, *(self.folder / name for name in WRITTEN_BESIDE)):
            if path.exists():
                raise _foreign(path)

    @contextmanager
    def taken(self) -> Iterator[str]:
        """Take the folder for one run and give its token.

        A second run is refused while the first one lives. Once it was killed, the next
        one leaves another token, by which workers that outlived the first see that
        they are not needed any more.
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

    def is_taken_by(self, token: str) -> bool:
        """Tell whether no other run has taken the folder since."""
        return self._lock.read_text(encoding="utf-8") == token

    @property
    def _lock(self) -> Path:
        return self.folder / ".lock"

    def done(self) -> set[str]:
        """Return the keys of all cells that are on disk."""
        found = {part.stem for part in self._whole_parts()}
        if self.results.exists():
            frame = polars().read_parquet(self.results, columns=["key"])
            found |= set(frame["key"].to_list())
        return found

    def write(self, row: dict[str, Any]) -> None:
        """Write one cell, whole or not at all."""
        frame = polars().DataFrame([row], schema=_columns())
        with replacing(self.parts / f"{row['key']}.parquet") as temporary:
            frame.write_parquet(temporary, statistics=False)

    def put_together(self) -> None:
        """Move all cells into two files; parts go last, so that none is ever lost."""
        parts = self._whole_parts()
        if not parts:
            return
        pl = polars()
        rows = pl.read_parquet(parts, glob=False, hive_partitioning=False)
        self._merge(self.times, rows.select(TIMES), by=["key"])
        self._merge(self.results, rows.drop("seconds"), by=list(ORDER))
        for part in parts:
            part.unlink()

    def _merge(self, path: Path, rows: Any, by: list[str]) -> None:
        pl = polars()
        if path.exists():
            # Columns that were added since are null in older rows.
            rows = pl.concat([pl.read_parquet(path), rows], how="diagonal")
        rows = rows.unique("key", keep="last", maintain_order=True).sort(by)
        with replacing(path) as temporary:
            rows.write_parquet(temporary)

    def forget_failures(self) -> None:
        """Drop the cells that failed, so that they are tried again."""
        self.put_together()
        if self.results.exists():
            pl = polars()
            rows = pl.read_parquet(self.results).filter(pl.col("failure") == "")
            with replacing(self.results) as temporary:
                rows.write_parquet(temporary)

    def frame(self, keys: Collection[str]) -> Frame:
        """Return the finished cells of these keys as columns, in a fixed order."""
        pl = polars()
        rows = pl.read_parquet(self.results)
        rows = rows.filter(pl.col("key").is_in(list(keys)))
        return {name: rows[name].to_numpy() for name in rows.columns}

    def seconds(self, keys: Collection[str]) -> dict[str, float]:
        """Return the seconds of one core that each of these cells took, by key."""
        rows = polars().read_parquet(self.times)
        pairs = zip(rows["key"].to_list(), rows["seconds"].to_list(), strict=True)
        wanted = set(keys)
        return {key: taken for key, taken in pairs if key in wanted}

    def clear_leftovers(self) -> None:
        """Remove what a killed run had begun to write."""
        for file in self.parts.glob(".*.parquet"):
            file.unlink(missing_ok=True)

    def _whole_parts(self) -> list[Path]:
        """Return the parts that have got their names, and so are whole."""
        return sorted(self.parts.glob("[!.]*.parquet"))
