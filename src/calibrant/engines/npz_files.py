"""Arrays added to those of an npz file, or all of them as columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from calibrant.core.output_files import atomic_write
from calibrant.exceptions import SourceError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from calibrant.core.array_types import Frame
    from calibrant.engines.memory import MemoryTable


def add_arrays(source: Path, new: Mapping[str, NDArray[Any]], out: Path) -> None:
    """Write an npz file with all that another holds, and new arrays beside.

    What was there is copied as it is. The file appears whole or not at all.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     old, more = Path(folder, "old.npz"), Path(folder, "more.npz")
    ...     np.savez(old, y=np.array([0, 1]))
    ...     add_arrays(old, {"p": np.array([0.5, 0.25])}, more)
    ...     {name: values.tolist() for name, values in np.load(more).items()}
    {'y': [0, 1], 'p': [0.5, 0.25]}
    """
    with atomic_write(out) as temporary:
        try:
            with ZipFile(source) as old, ZipFile(temporary, "w") as written:
                for member in old.infolist():
                    written.writestr(member, old.read(member))
                for name, values in new.items():
                    with written.open(f"{name}.npy", "w", force_zip64=True) as file:
                        np.lib.format.write_array(file, values, allow_pickle=False)
        except BadZipFile as error:
            raise SourceError(f"{source} cannot be read: {error}") from None


def array_columns(table: MemoryTable, rows: int) -> tuple[Frame, list[str]]:
    """Return arrays of so many rows as columns, and the names of all others.

    Those of a matrix get the number of the class: ``logits_0``, ``logits_1``.
    """
    columns: Frame = {}
    others = []
    for name in table.names:
        array = table.read(name)
        if array.ndim not in (1, 2) or len(array) != rows:
            others.append(name)
        else:
            columns |= split_matrix(name, array)
    return columns, others


def split_matrix(name: str, array: NDArray[Any], suffix: str = "") -> Frame:
    """Return a matrix as columns; of a vector, itself.

    Examples
    --------
    >>> split_matrix("p", np.array([[0.25, 0.75]]), "_new")
    {'p_0_new': array([0.25]), 'p_1_new': array([0.75])}
    """
    if array.ndim == 1:
        return {f"{name}{suffix}": array}
    return {f"{name}_{k}{suffix}": array[:, k] for k in range(array.shape[1])}
