"""How constant the momentum of a floating robot stays along a motion."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from concur.multibody import Mechanism


def momentum_drift(
    robot: Mechanism, momentum: np.ndarray, inner: np.ndarray, demanded: np.ndarray
) -> np.ndarray:
    """Deviation from a constant momentum, relative.

    Only what is constant counts: the momentum along the motions of the base's group,
    translations and the others apart. Each is divided by the larger of the momentum itself and
    the largest momentum that the joints move inside the robot.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    momentum, inner : numpy.ndarray
        Spatial momentum, and that of the joints' motion alone, shape (k, 6).
    demanded : numpy.ndarray
        What the momentum should be, shape (6,).

    Returns
    -------
    numpy.ndarray
        Shape (k,).
    """
    motions = _base_motions(robot)
    turning = np.linalg.norm(motions[3:], axis=0) > 0.0
    drift = np.zeros(momentum.shape[0])
    for columns in (motions[:, ~turning], motions[:, turning]):
        wanted = demanded @ columns
        moved = np.linalg.norm(inner @ columns, axis=1).max(initial=0.0)
        scale = max(float(np.linalg.norm(wanted)), float(moved))
        apart = np.linalg.norm(momentum @ columns - wanted, axis=1)
        if scale > 0.0:
            drift = np.maximum(drift, apart / scale)
    return drift


def _base_motions(robot: Mechanism) -> np.ndarray:
    """Twists of the base's group in the inertial frame, shape (6, nb)."""
    placement, basis = robot.base.placement, robot.base.joint.basis
    turn = Rotation.from_quat(placement.rotation).as_matrix()
    linear, angular = turn @ basis[:3], turn @ basis[3:]
    shifted = np.cross(np.array(placement.translation), angular, axisa=0, axisb=0, axisc=0)
    return np.vstack([linear + shifted, angular])
