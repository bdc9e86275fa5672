"""Truncated Newton steps: each lowers the loss, or the search ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from calibrant.numerics.softmax_curvature import curvature_at

if TYPE_CHECKING:
    from calibrant.core.array_types import FloatMatrix
    from calibrant.numerics.softmax import Point, SoftmaxProblem
    from calibrant.numerics.softmax_curvature import Curvature

MAX_STEPS = 200
MAX_INNER_STEPS = 500
PATIENCE = 12
"""Inner steps up to which an old Hessian is good enough to precondition with."""
MAX_HALVINGS = 40
SUFFICIENT = 1e-4
"""Share of the decrease that the slope foretells which a step must bring."""


def minimise(problem: SoftmaxProblem, start: FloatMatrix, *, tolerance: float) -> Point:
    """Return the minimum of a convex softmax problem.

    Parameters
    ----------
    problem : SoftmaxProblem
        What to minimise.
    start : ndarray
        First parameters.
    tolerance : float
        Euclidean norm of the gradient at which the search ends.
    """
    point = problem.at(start)
    size, hessian, inner = _norm(point.gradient), curvature_at(problem, point), 0
    for _ in range(MAX_STEPS):
        if size <= tolerance:
            break
        forcing = max(min(0.1, np.sqrt(size)), 0.1 * tolerance / size)
        if inner > PATIENCE:
            hessian = curvature_at(problem, point)
        step, inner = _newton_step(problem, point, hessian, forcing * size)
        moved = _line_search(problem, point, step)
        if moved is None:  # rounding hides any further decrease
            break
        point, size = moved, _norm(moved.gradient)
    return point


def _norm(values: FloatMatrix) -> float:
    return float(np.sqrt(np.vdot(values, values)))


def _newton_step(
    problem: SoftmaxProblem, point: Point, hessian: Curvature, enough: float
) -> tuple[FloatMatrix, int]:
    """Return the Newton step by conjugate gradients, and their number."""
    step = np.zeros_like(point.gradient)
    left = -point.gradient
    eased = hessian.solve(left)
    direction, fall = eased, float(np.vdot(left, eased))
    inner = 0
    while inner < MAX_INNER_STEPS:
        inner += 1
        bent = problem.curvature(point, direction)
        bend = float(np.vdot(direction, bent))
        if not bend > 0.0:
            break
        step = step + (fall / bend) * direction
        left = left - (fall / bend) * bent
        if _norm(left) <= enough:
            break
        eased = hessian.solve(left)
        before, fall = fall, float(np.vdot(left, eased))
        direction = eased + (fall / before) * direction
    return step, inner


def _line_search(
    problem: SoftmaxProblem, point: Point, step: FloatMatrix
) -> Point | None:
    slope = float(np.vdot(point.gradient, step))
    length = 1.0
    for _ in range(MAX_HALVINGS):
        moved = problem.at(point.parameters + length * step)
        if moved.loss <= point.loss + SUFFICIENT * length * slope:
            return moved
        length /= 2.0
    return None
