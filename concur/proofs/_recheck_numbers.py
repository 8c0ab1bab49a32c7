"""Numbers of laws and rotations, in floats, for the checkers of rovers and floaters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from concur.proofs._recheck_smooth import Floats, require

LEVI = np.zeros((3, 3, 3))
for _i, _j, _k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
    LEVI[_i, _j, _k], LEVI[_i, _k, _j] = 1.0, -1.0


def rotation(quaternion: Any) -> Floats:
    """Rotation matrix of a quaternion (x, y, z, w)."""
    *v, w = (np.array(quaternion) / np.linalg.norm(quaternion)).tolist()
    turn = LEVI.transpose(0, 2, 1) @ np.array(v)
    return np.asarray(np.eye(3) + 2 * w * turn + 2 * turn @ turn)


def exponentials(matrices: Floats) -> Floats:
    """Exp of many matrices (k, n, n), by squaring of a polynomial."""
    size = np.abs(matrices).sum(axis=2).max(initial=0.0)
    halves = max(0, int(np.ceil(np.log2(max(size * 8, 1e-9)))))
    small = matrices / 2.0**halves
    total = term = np.broadcast_to(np.eye(matrices.shape[1]), matrices.shape)
    for k in range(1, 16):
        term = term @ small / k
        total = total + term
    for _ in range(halves):
        total = total @ total
    return np.asarray(total)


def gains_of(servo: Any, outputs: Sequence[slice]) -> Floats:
    """Kp and kd of each output, (2, outputs); rejects laws that are no plain servos."""
    options = ("integral", "constraints", "damping_threshold", "redundancy")
    given = [name for name in options if getattr(servo, name) is not None]
    require(not given, f"law: the checker covers a servo without {', '.join(given)}")
    found = np.empty((2, len(outputs)))
    for i, matrix in enumerate((servo.stiffness, servo.damping)):
        own = np.linalg.solve(np.asarray(servo.inertia), np.asarray(matrix))
        found[i] = [own[rows.start, rows.start] for rows in outputs]
        diagonal = np.repeat(found[i], [rows.stop - rows.start for rows in outputs])
        same = np.abs(own - np.diag(diagonal)).max() <= 1e-14 * np.abs(own).max()
        require(bool(same), "law: the checker covers one gain for each output")
    return found
