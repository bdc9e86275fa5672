"""Maps as JSON: versioned, validated on reading, never code."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from calibrant.core.array_types import Scale
from calibrant.core.output_files import MAP, atomic_write, check_named
from calibrant.core.parameters import check_choice
from calibrant.exceptions import MapFormatError, OptionError
from calibrant.maps.base import (
    FITTED_SCALE,
    CalibrationMap,
    require,
    stored_choice,
    stored_numbers,
)
from calibrant.maps.binned import BinnedMap, VennAbersMap
from calibrant.maps.certificate import CertifiedClassMap, CertifiedMap
from calibrant.maps.grouped import GroupedMap
from calibrant.maps.multiclass import (
    MulticlassMeanMap,
    OneVsRestMap,
    PooledMap,
    TopLabelMap,
)
from calibrant.maps.parametric import BetaMap, QuadraticMap
from calibrant.maps.piecewise import MeanMap, ParabolasMap, PiecewiseLinearMap
from calibrant.maps.smooth import SmoothMap
from calibrant.maps.softmax import (
    DiagonalMap,
    OrderPreservingMap,
    SmoothSoftmaxMap,
    SoftmaxMap,
    TemperatureMap,
    TemperedSoftmaxMap,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from calibrant.core.array_types import JsonObject
    from calibrant.maps.base import StoredMap

FORMAT = "calibrant-map"
VERSION = 1


ALL_MAPS: tuple[type[StoredMap], ...] = (
    BinnedMap,
    PiecewiseLinearMap,
    MeanMap,
    BetaMap,
    ParabolasMap,
    SmoothMap,
    QuadraticMap,
    VennAbersMap,
    CertifiedMap,
    TemperatureMap,
    SoftmaxMap,
    TemperedSoftmaxMap,
    SmoothSoftmaxMap,
    MulticlassMeanMap,
    OneVsRestMap,
    TopLabelMap,
    OrderPreservingMap,
    DiagonalMap,
    PooledMap,
    CertifiedClassMap,
    GroupedMap,
)
MAP_KINDS = {map_class.kind: map_class for map_class in ALL_MAPS}
"""Kinds of map by the name that JSON files carry."""


def map_from_dict(stored: JsonObject) -> StoredMap:
    """Build a map from what its `to_dict` gave.

    Parameters
    ----------
    stored : mapping
        Plain numbers and strings, as read from JSON.

    Returns
    -------
    CalibrationMap or MulticlassMap
        The map, equal to the one that was stored.

    Raises
    ------
    MapFormatError
        Where the mapping is damaged or of an unknown kind.

    See Also
    --------
    load_map : reads a map from a file.

    Examples
    --------
    >>> import calibrant as cb
    >>> fields = {"edges": [0.0, 1.0], "intercepts": [0.1], "slopes": [1.0]}
    >>> cb.map_from_dict({"kind": "binned", **fields})([0.5])
    array([0.6])
    """
    if not isinstance(stored, dict):
        raise MapFormatError("a stored map must be a JSON object.")
    if "kind" not in stored:
        has = ", ".join(map(repr, stored)) or "nothing"
        raise MapFormatError(
            f"a stored map must have a field 'kind', as to_dict() writes it; it has "
            f"{has}. Read files of save_map by load_map."
        )
    kind = stored["kind"]
    if not isinstance(kind, str) or kind not in MAP_KINDS:
        raise MapFormatError(
            f"unknown kind of map {kind!r}; known: {', '.join(MAP_KINDS)}."
        )
    try:
        return MAP_KINDS[kind].from_dict(stored)
    except RecursionError:
        raise MapFormatError("maps within maps are nested too deeply.") from None


def save_map(
    map_: StoredMap,
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    fitted_range: tuple[float, float] | None = None,
    scale: Scale | None = None,
) -> None:
    """Write a map to a JSON file.

    The file is written under a temporary name and then renamed, so that it is never
    incomplete. Other files written by calibrant, such as reports, are not
    overwritten.

    Parameters
    ----------
    map_ : CalibrationMap or MulticlassMap
        A fitted map, such as ``calibrator.map_``.
    path : path
        Where to write.
    columns : sequence of str, optional
        Names of the columns that the map was fitted on, in order, kept in the file.
    fitted_range : tuple of float, optional
        The smallest and largest prediction that the map was fitted to, such as
        ``calibrator.range_``, kept in the file: ``calibrant apply`` warns about
        predictions outside.
    scale : {"prob", "logit", "percent", "logprob"}, optional
        What the column of a map of one event contained, kept in the file; by default,
        what the map was fitted to. ``calibrant apply`` expects the same, and so do SQL
        and Python that are written from the file. The map itself takes probabilities.

    See Also
    --------
    load_map : reads it again.

    Examples
    --------
    >>> import calibrant as cb, tempfile, pathlib
    >>> p, y = cb.datasets.load_binary("forest")
    >>> map_ = cb.make_calibrator("es5").fit(p, y).map_
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "map.json"
    ...     cb.save_map(map_, path)
    ...     cb.load_map(path) == map_
    True
    """
    if not hasattr(map_, "to_dict"):
        raise OptionError(
            f"map_ must be a fitted map; got {type(map_).__name__}. For a "
            "calibrator, pass calibrator.map_."
        )
    check_named(path, MAP)
    content: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    if columns is not None:
        content["columns"] = list(columns)
    if fitted_range is not None:
        content["range"] = list(fitted_range)
    stored = map_.to_dict()
    fitted_scale = stored.pop(FITTED_SCALE, "prob")
    kept = fitted_scale if scale is None else scale
    if check_choice(kept, get_args(Scale), name="scale") != "prob":
        content["scale"] = kept
    content["map"] = stored
    text = json.dumps(content, indent=1, allow_nan=False)
    with atomic_write(path) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")


def load_map(path: str | os.PathLike[str]) -> StoredMap:
    """Read a map from a JSON file that `save_map` wrote.

    Parameters
    ----------
    path : path
        The file.

    Returns
    -------
    CalibrationMap or MulticlassMap
        The map.

    Raises
    ------
    MapFormatError
        Where the file is damaged, of a newer version, or not a map at all.

    See Also
    --------
    save_map : writes a map as JSON.

    Examples
    --------
    >>> import calibrant as cb
    >>> cb.load_map("no-such-file.json")
    Traceback (most recent call last):
    ...
    FileNotFoundError: no-such-file.json does not exist.
    """
    stored = _read(path)
    map_ = map_from_dict(stored.get("map"))  # type: ignore[arg-type]
    scale = _scale(stored)
    if scale is not None and isinstance(map_, CalibrationMap | GroupedMap):
        map_ = replace(map_, fitted_scale=scale)
    return map_


def load_columns(path: str | os.PathLike[str]) -> list[str] | None:
    """Read the names of the columns that a map in a file was fitted on, if kept."""
    columns = _read(path).get("columns")
    if columns is None:
        return None
    if not isinstance(columns, list) or not all(isinstance(c, str) for c in columns):
        raise MapFormatError(f"field 'columns' of {path} must be a list of names.")
    return columns


def load_range(path: str | os.PathLike[str]) -> tuple[float, float] | None:
    """Read the range of predictions that a map in a file was fitted to, if kept."""
    stored = _read(path)
    if stored.get("range") is None:
        return None
    limits = stored_numbers(stored["range"], "range").tolist()
    require(len(limits) == 2, f"field 'range' of {path} must be two numbers.")  # noqa: PLR2004
    return limits[0], limits[1]


def load_scale(path: str | os.PathLike[str]) -> Scale | None:
    """Read what the column that a map in a file was fitted on contained, if kept."""
    return _scale(_read(path))


def _scale(stored: JsonObject) -> Scale | None:
    if "scale" not in stored:
        return None
    scale: Scale = stored_choice(stored["scale"], "scale", get_args(Scale))
    return scale


def _read(path: str | os.PathLike[str]) -> dict[str, Any]:
    try:
        stored: Any = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{path} does not exist.") from None
    except (ValueError, RecursionError) as error:
        raise MapFormatError(f"{path} is not a JSON file: {error}") from None
    if not isinstance(stored, dict) or stored.get("format") != FORMAT:
        raise MapFormatError(f'{path} is not a map: it lacks "format": "{FORMAT}".')
    if stored.get("version") != VERSION:
        raise MapFormatError(
            f"{path} has version {stored.get('version')!r}; this calibrant reads "
            f"version {VERSION}."
        )
    return stored
