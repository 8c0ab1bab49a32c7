"""Which joints align in a singular configuration, and which joints move no output anywhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from concur.outputs._kinematics import carriers
from concur.outputs._output import Output
from concur.reduction import ReducedModel
from concur.robot import Mechanism, robot_size

PART = 0.05
"""Share of the largest part of a motion from which on a joint takes part in it."""

NEAR = 0.02
"""Sine of an angle, or distance in sizes of the robot, below which axes count as aligned."""

_STILL = 1e-6  # share of a motion that counts as dependent on the others


def aligned_joints(
    robot: Mechanism,
    outputs: Sequence[Output],
    q: np.ndarray,
    motions: Sequence[str],
    parts: np.ndarray,
) -> str:
    """Name the joints whose motions cancel at the outputs at q (nq,), and how their axes lie.

    `parts` are the sizes of the freedoms `motions` in a motion that leaves the outputs at rest, in
    comparable units.
    """
    sizes = np.abs(parts)
    taking = [name for name, size in zip(motions, sizes, strict=True) if size > PART * sizes.max()]
    named = " and ".join(
        filter(None, [", ".join(f"`{n}`" for n in taking[:-1]), f"`{taking[-1]}`"])
    )
    if len(taking) == 1:
        on_axis = _on_axis(robot, outputs, q, taking[0])
        return f"joint {named} moves no output" + on_axis
    return f"joints {named} align: {_pattern(robot, outputs, q, taking)}"


def immobile_body(
    model: ReducedModel, tracked: Sequence[Output], samples: Sequence[np.ndarray]
) -> str:
    """Explain why no point of a body with fewer freedoms than its outputs works, with a remedy.

    Empty if each body has enough freedoms in some of the sampled configurations (nq,).
    """
    robot = model.robot
    absolute = [output for output in tracked if output.relative_to is None]
    for name in dict.fromkeys(output.body for output in absolute):
        needed = sum(output.dim for output in absolute if output.body == name)
        freedoms = max(_freedoms(model, q, name) for q in samples)
        if freedoms >= needed:
            continue
        why = (
            f"`{name}` has {freedoms} freedom{'s' * (freedoms > 1)} at a time and its outputs have "
            f"{needed} coordinates, so no other point of `{name}` works."
        )
        ends = {wheel.body for wheel in robot.wheels}
        steering = [body for body in robot.below_platforms if body not in ends]
        other = "another body"
        if steering:
            other = f"{_listed(steering)} off its axis"
            ways = "one way" if freedoms == 1 else f"{freedoms} ways"
            why = (
                f"Whatever the angle of {_listed(steering)}, the wheels let `{name}` move in "
                f"{ways} only: steering changes which way, not the velocity itself. {why}"
            )
        return f"{why} Track a point of {other} instead, or give its outputs at most {freedoms}."
    return ""


def _freedoms(model: ReducedModel, q: np.ndarray, body: str) -> int:
    """Number of independent velocities of a body, of all its points together."""
    length = robot_size(model.robot)
    twists = model.robot.jacobian(q, body) @ model.lift(q)[0]
    twists[3:] *= length
    if not np.isfinite(twists).all():
        return 0
    # Shape velocities in units in which each moves the body alike.
    sizes = np.linalg.norm(twists, axis=0)
    return int(np.linalg.matrix_rank(twists / np.where(sizes > 0.0, sizes, 1.0), tol=_STILL))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _axis(robot: Mechanism, q: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray] | None:
    """Point and direction of the axis of a turning joint; none for other joints."""
    for body in robot.bodies:
        if body.name == name and body.joint.nv == 1:
            basis = body.joint.basis[:, 0]
            if not np.any(basis[:3]) and np.any(basis[3:]):
                pose = robot.pose(q, name)
                return pose[:3, 3], pose[:3, :3] @ basis[3:]
    return None


def _points(robot: Mechanism, outputs: Sequence[Output], q: np.ndarray) -> list[np.ndarray]:
    """Points of the outputs that are positions."""
    return [
        np.asarray((robot.pose(q, output.body) @ [*output.point, 1.0])[:3])
        for output in outputs
        if "m" in output.coordinate_units
    ]


def _on_axis(robot: Mechanism, outputs: Sequence[Output], q: np.ndarray, name: str) -> str:
    """Describe output points on the axis of a joint that would move them."""
    line = _axis(robot, q, name)
    if line is None:
        return ""
    point, axis = line
    size = robot_size(robot)
    there = [
        output.name
        for output in outputs
        if "m" in output.coordinate_units and name in carriers(robot, [output])
        for place in _points(robot, [output], q)
        if np.linalg.norm(np.cross(axis, place - point)) < NEAR * size
    ]
    return f": the point of {_listed(there)} lies on its axis" if there else ""


def _pattern(
    robot: Mechanism, outputs: Sequence[Output], q: np.ndarray, names: Sequence[str]
) -> str:
    """Describe the relative position of joint axes; each statement is checked."""
    cancel = "their motions cancel at the outputs"
    lines = [line for line in (_axis(robot, q, name) for name in names) if line is not None]
    if len(lines) != len(names):
        return cancel
    size = robot_size(robot)
    (point, axis), rest = lines[0], lines[1:]
    parallel = all(np.linalg.norm(np.cross(axis, other)) < NEAR for _, other in rest)
    if not parallel:
        return cancel
    offsets = [at - point - axis * (axis @ (at - point)) for at, _ in rest]
    if all(np.linalg.norm(offset) < NEAR * size for offset in offsets):
        return "their axes coincide"
    last = max(offsets, key=lambda offset: float(np.linalg.norm(offset)))
    normal = np.cross(axis, last / np.linalg.norm(last))
    moved = [o for o in outputs if set(names) <= set(carriers(robot, [o]))]
    flat = all(abs(normal @ offset) < NEAR * size for offset in offsets)
    there = [
        output.name
        for output in moved
        for place in _points(robot, [output], q)
        if abs(normal @ (place - point)) < NEAR * size
    ]
    if flat and there:
        return f"their parallel axes and the point of {_listed(there)} lie in one plane"
    return f"their axes are parallel, and {cancel}"
