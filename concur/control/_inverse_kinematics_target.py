"""Targets of inverse kinematics: numbers, matrices and samples as flat coordinates of outputs."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import as_floats, nonfinite_error, shape_error
from concur.errors import ShapeError
from concur.outputs._output import Output
from concur.outputs._sample import ReferenceSample, pose_numbers

POSES = ("SE3", "R3xSO3")
FARTHEST = 1e12
"""Largest coordinate of a target, m: beyond, rounding alone exceeds any useful tolerance."""


def flat_target(
    where: str, outputs: tuple[Output, ...], target: ArrayLike | ReferenceSample
) -> np.ndarray:
    values = target.pose if isinstance(target, ReferenceSample) else target
    array = as_floats(values, where)
    if not np.isfinite(array).all():
        raise nonfinite_error(where, array)
    if np.abs(array).max(initial=0.0) > FARTHEST:
        raise ShapeError(
            where,
            expected=f"numbers up to {FARTHEST:.0e} m",
            came=f"{np.abs(array).max():.3g}",
            cure="Positions are in metres from the inertial origin.",
        )
    size = sum(output.pose_size for output in outputs)
    if array.shape == (4, 4):
        if [output.group in POSES for output in outputs] != [True]:
            raise ShapeError(
                where,
                expected=f"{size} numbers in output order",
                came="a (4, 4) matrix",
                cure="A matrix is for one output that is a full pose.",
            )
        rotation = array[:3, :3]
        off = max(
            float(np.abs(rotation.T @ rotation - np.eye(3)).max()),
            float(np.abs(array[3] - [0.0, 0.0, 0.0, 1.0]).max()),
        )
        if off > 1e-6 or np.linalg.det(rotation) < 0.0:
            raise ShapeError(
                where,
                expected="a homogeneous matrix: a rotation, a position, and the row 0 0 0 1",
                came=f"a matrix that is off by {max(off, 1e-300):.2g}"
                if off > 1e-6
                else "a reflection",
                cure="Bring it back to a rotation before it comes here.",
            )
        array = pose_numbers(array)
    if array.shape != (size,):
        raise shape_error(where, (size,), array.shape)
    flat, start = np.array(array), 0
    for output in outputs:
        names = output.lie.coordinate_names
        if "qw" in names:
            at = start + names.index("qx")
            norm = float(np.linalg.norm(flat[at : at + 4]))
            if abs(norm - 1.0) > 1e-3:
                raise ShapeError(
                    f"{where}, quaternion of `{output.name}` at [{at}:{at + 4}]",
                    expected="unit norm",
                    came=f"norm {norm:.6g}",
                    cure="Normalise it; mind the order (x, y, z, w).",
                )
            flat[at : at + 4] /= norm
        start += output.pose_size
    return flat
