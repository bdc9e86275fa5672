"""Between neighbouring predictions a map stays between its values there."""

import numpy as np

import calibrant as cb
from fuzz import draws

METHODS = ("smooth", "pl", "pl3", "beta", "platt", "isotonic", "spline-natural")


def case(rng):
    levels = np.sort(rng.choice(101, int(rng.integers(2, 15)), replace=False)) / 100
    each = rng.integers(1, 80, levels.size)
    p = np.repeat(levels, each)
    y = draws.labels(rng, p)
    method = str(rng.choice(METHODS))
    map_ = cb.make_calibrator(method).fit(p, y).map_
    ends = map_(levels)
    inside = np.linspace(levels[:-1], levels[1:], 23)[1:-1]
    low, high = np.minimum(ends[:-1], ends[1:]), np.maximum(ends[:-1], ends[1:])
    beyond = np.maximum(low - map_(inside), map_(inside) - high)
    assert beyond.max() < 0.02, (method, beyond.max(), levels[beyond.max(0).argmax()])
    for end, outside in ((0, [0.0, levels[0] / 2]), (-1, [1.0, (1 + levels[-1]) / 2])):
        value = map_(np.array(outside))
        assert ((value >= 0.0) & (value <= 1.0)).all(), (method, end)
