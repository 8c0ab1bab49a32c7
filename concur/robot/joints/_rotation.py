"""Rotations about axes and between directions."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from concur.codegen import Array, constant


def shortest_rotation(direction: Sequence[float]) -> np.ndarray:
    """Rotation that takes z to a unit vector by the shortest turn.

    Within 1e-6 of -z, half a turn about x comes before the shortest turn from there, so that
    round-off in a direction does not choose the axis.
    """
    x, y, z = direction
    if z < -1.0 + 1e-12:
        turned = shortest_rotation((x, -y, -z))
        return np.stack([turned[0], -turned[1], -turned[2]])
    # The same as x / sqrt(1 + z), without its cancellation near -z.
    side = np.hypot(x, y)
    a, b = np.array([x, y]) * (np.sqrt(1.0 - z) / side if z < 0.0 else 1.0 / np.sqrt(1.0 + z))
    return np.array(
        [
            [1.0 - a * a, -a * b, x],
            [-a * b, 1.0 - b * b, y],
            [-x, -y, z],
        ]
    )


def axis_rotation(axis: Sequence[float], angle: Array) -> Array:
    """Rotation about a constant unit axis, (2.4.15), with its zeros kept structural."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    along = np.outer(axis, axis)
    return (
        constant(along)
        + ca.cos(angle) * constant(np.eye(3) - along)
        + ca.sin(angle) * constant(cross)
    )
