"""Which kinds of map there are, by the name that JSON files carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.maps.beta import BetaMap
from calibrant.maps.binned import BinnedMap
from calibrant.maps.mean import MeanMap
from calibrant.maps.parabolas import ParabolasMap
from calibrant.maps.piecewise import PiecewiseLinearMap

if TYPE_CHECKING:
    from calibrant.maps.base import CalibrationMap

MAP_KINDS: dict[str, type[CalibrationMap]] = {
    map_class.kind: map_class
    for map_class in (BinnedMap, PiecewiseLinearMap, MeanMap, BetaMap, ParabolasMap)
}
