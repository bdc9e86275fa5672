"""Which kinds of map there are, by the name that JSON files carry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from calibrant.maps.beta import BetaMap
from calibrant.maps.binned import BinnedMap
from calibrant.maps.lifted import OneVsRestMap, TopLabelMap
from calibrant.maps.mean import MeanMap
from calibrant.maps.multiclass import MulticlassMeanMap
from calibrant.maps.order_preserving import DiagonalMap, OrderPreservingMap
from calibrant.maps.parabolas import ParabolasMap
from calibrant.maps.piecewise import PiecewiseLinearMap
from calibrant.maps.smooth import SmoothMap
from calibrant.maps.softmax import SoftmaxMap, TemperatureMap

if TYPE_CHECKING:
    from calibrant.maps.base import StoredMap

BINARY_MAPS: tuple[type[StoredMap], ...] = (
    BinnedMap,
    PiecewiseLinearMap,
    MeanMap,
    BetaMap,
    ParabolasMap,
    SmoothMap,
)
MULTICLASS_MAPS: tuple[type[StoredMap], ...] = (
    TemperatureMap,
    SoftmaxMap,
    MulticlassMeanMap,
    OneVsRestMap,
    TopLabelMap,
    OrderPreservingMap,
    DiagonalMap,
)
MAP_KINDS: dict[str, type[StoredMap]] = {
    map_class.kind: map_class for map_class in (*BINARY_MAPS, *MULTICLASS_MAPS)
}
