"""Between neighbouring predictions a map stays between its values there."""

import numpy as np

import calibrant as cb
from fuzz import draws

# Each map of a mean stays between its ends, and so does nearly every mean.
LIMITS = {"pl3": 0.1}
METHODS = ("smooth", "pl", "pl3", "beta", "platt", "isotonic", "spline-natural")


def case(rng):
    levels = np.sort(rng.choice(101, int(rng.integers(2, 15)), replace=False)) / 100
    each = rng.integers(1, 80, levels.size)
    p = np.repeat(levels, each)
    y = draws.labels(rng, p)
    method = str(rng.choice(METHODS))
    map_ = cb.make_calibrator(method).fit(p, y).map_.transform
    ends = map_(levels)
    inside = np.linspace(levels[:-1], levels[1:], 23)[1:-1]
    low, high = np.minimum(ends[:-1], ends[1:]), np.maximum(ends[:-1], ends[1:])
    values = map_(inside.ravel()).reshape(inside.shape)
    beyond = np.maximum(low - values, values - high)
    assert beyond.max() < LIMITS.get(method, 0.02), (
        method,
        beyond.max(),
        levels[beyond.max(0).argmax()],
    )
    for end, outside in ((0, [0.0, levels[0] / 2]), (-1, [1.0, (1 + levels[-1]) / 2])):
        value = map_(np.array(outside))
        assert ((value >= 0.0) & (value <= 1.0)).all(), (method, end)
