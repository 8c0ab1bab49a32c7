"""How constant the momentum of a floating robot stays along a motion."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from concur.robot import Mechanism

SMALL = 1e-3
"""Share of the other kind of momentum below which one counts as zero."""


def momentum_drift(
    robot: Mechanism, momentum: np.ndarray, inner: np.ndarray, demanded: np.ndarray
) -> np.ndarray:
    """Relative deviation from a constant momentum, shape (k,).

    Only conserved components count: the momentum along the motions of the base's group,
    translations and the others apart. Each is divided by the larger of the momentum itself and
    the largest momentum that the joints move inside the robot; where both are zero, by what the
    other kind would be at the robot's size.
    """
    motions = _base_motions(robot)
    turning = np.linalg.norm(motions[3:], axis=0) > 0.0
    kinds = [(~turning, 1.0), (turning, _reach(robot))]
    scales, deviations = [], []
    for chosen, length in kinds:
        columns = motions[:, chosen]
        wanted = demanded @ columns
        moved = np.linalg.norm(inner @ columns, axis=1).max(initial=0.0)
        scales.append(max(float(np.linalg.norm(wanted)), float(moved)) / length)
        deviations.append(np.linalg.norm(momentum @ columns - wanted, axis=1) / length)
    largest = max(scales)
    drift = np.zeros(momentum.shape[0])
    for scale, apart in zip(scales, deviations, strict=True):
        if largest > 0.0:
            # A zero momentum has no size to compare with.
            drift = np.maximum(drift, apart / max(scale, SMALL * largest))
    return drift


def _reach(robot: Mechanism) -> float:
    """Largest distance between the origins of bodies, m; turns angular into linear momentum."""
    origins = [robot.pose(robot.neutral(), body.name)[:3, 3] for body in robot.bodies]
    return float(max(np.linalg.norm(a - b) for a in origins for b in origins)) or 1.0


def _base_motions(robot: Mechanism) -> np.ndarray:
    """Twists of the base's group in the inertial frame, shape (6, nb)."""
    placement, basis = robot.base.placement, robot.base.joint.basis
    turn = Rotation.from_quat(placement.rotation).as_matrix()
    linear, angular = turn @ basis[:3], turn @ basis[3:]
    shifted = np.cross(np.array(placement.translation), angular, axisa=0, axisb=0, axisc=0)
    return np.vstack([linear + shifted, angular])
