"""Outputs against their robot: whether they fit it, and which joints may move them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from concur.errors import entries, shown
from concur.outputs._functions import FunctionOutput
from concur.outputs._output import Output, refused
from concur.robot import Mechanism, as_tree

SOLVE = (
    "Solve servo.pose_error(q, pose) = 0 with scipy.optimize.least_squares, and pass this q to "
    "`simulate`."
)
"""What to do instead of inverse kinematics for a system without bodies."""

SAMPLES = 4
"""Random configurations at which an output of the plane is tried."""


def checked_outputs(
    robot: Any, outputs: Any, task: str, functions: bool = False
) -> tuple[Output, ...]:
    """Outputs of a robot, once both are what they should be; errors name the task.

    With `functions` the robot may be any system, and outputs may be functions.
    """
    if not isinstance(robot, Mechanism) and not functions:
        came = f"{type(robot).__name__} {robot!r:.40}"
        cure = "Pass `model.robot`; without bodies use `margin` and `pose_error` of a Servo."
        raise refused(f"{task}, `robot`", "a Mechanism", came, cure)
    where = f"{task} of `{robot.name}`, `outputs`"
    checked = entries(outputs, Output)
    if not checked:
        came, cure = f"{type(outputs).__name__} {shown(outputs)}", "Write [Output(...), ...]."
        raise refused(where, "a list of Output, at least one output", came, cure)
    names = [output.name for output in checked]
    twice = [f"`{n}` {names.count(n)} times" for n in dict.fromkeys(names) if names.count(n) > 1]
    if twice:
        cure = "Give each output another name."
        raise refused(where, "each name once", ", ".join(twice), cure)
    for output in checked:
        place = f"{where}, output `{output.name}`"
        if isinstance(output, FunctionOutput):
            if not functions:
                cure = f"The {task} needs poses of bodies: write Output(...)."
                raise refused(place, "an output on a body", "a FunctionOutput", cure)
            output.check(robot, where)
            continue
        robot = as_tree(robot, place)
        robot.index(output.body)
        if output.relative_to is None:
            continue
        robot.index(output.relative_to)
        between = carriers(robot, [output])
        if not any(robot.bodies[robot.index(name)].joint.nv for name in between):
            expected = "a body that some joint moves relative to the output's"
            came = f"`{output.relative_to}`, which is fixed to `{output.body}`"
            raise refused(f"{place}, `relative_to`", expected, came, "Name one beyond a joint.")
    return checked


def free_bodies(
    robot: Mechanism, outputs: Sequence[Output], fixed: Any, task: str
) -> tuple[str, ...]:
    """Names of the bodies whose joints may move, in the robot's order; errors name the task.

    Bodies in `fixed` must not move: joints between them and the inertial frame are locked.
    """
    where = f"{task} of `{robot.name}`"
    if isinstance(fixed, str) or not isinstance(fixed, Iterable):
        cure = 'Write fixed=("chassis",), with the comma.'
        raise refused(f"{where}, `fixed`", "a list of names of bodies", repr(fixed), cure)
    locked = {i for name in tuple(fixed) for i in robot.path(robot.index(name))}
    names = tuple(
        body.name for i, body in enumerate(robot.bodies) if i not in locked and body.joint.nv
    )
    if not set(names) & set(carriers(robot, outputs)):
        came = "bodies that cannot move" + " once those in `fixed` stand still" * bool(locked)
        cure = "Fix fewer bodies, or take outputs of bodies further out."
        raise refused(f"{where}, `outputs`", "outputs that some joint moves", came, cure)
    motions = np.eye(robot.nv)[:, freedoms(robot, names)]
    for output in outputs:
        check_planar(where, robot, output, lambda q: motions)
    return names


def carriers(robot: Mechanism, outputs: Sequence[Output]) -> tuple[str, ...]:
    """Names of the bodies on the way to an output from the base: their joints move it.

    The way to a relative output comes from the body that it is relative to; joints that carry both
    bodies do not move it.
    """
    used = set[int]()
    for output in outputs:
        way = set(robot.path(robot.index(output.body)))
        if output.relative_to is not None:
            way ^= set(robot.path(robot.index(output.relative_to)))
        used |= way
    return tuple(robot.bodies[i].name for i in sorted(used))


def freedoms(robot: Mechanism, bodies: Sequence[str]) -> list[int]:
    """Indices in v of the freedoms of some bodies' joints, in the order of the bodies."""
    return [i for name in bodies for i in range(*robot.v_slice(name).indices(robot.nv))]


def check_planar(
    where: str, robot: Mechanism, output: Output, motions: Callable[[np.ndarray], np.ndarray]
) -> None:
    """Refuse an output of a plane on a body that can tilt or has no heading.

    The body may be mounted at any constant attitude, a right translate of the plane's group.
    `motions` gives the velocities (nv, k) that can occur in a configuration.
    """
    if not output.lie.planar or isinstance(output, FunctionOutput):
        return
    rng = np.random.default_rng(4)
    normal = np.array(output.normal)
    forward = output.frame.rotation_matrix[:, 0]
    for _ in range(SAMPLES):
        q = robot.random(rng)
        axes = robot.pose(q, output.body)[:3, :3]
        turning = axes @ robot.jacobian(q, output.body)[3:]
        if output.relative_to is not None:
            frame = robot.pose(q, output.relative_to)[:3, :3]
            turning = frame.T @ turning - robot.jacobian(q, output.relative_to)[3:]
            axes = frame.T @ axes
        tilting = np.cross(normal, (turning @ motions(q)).T)
        if np.abs(tilting).max() > 1e-9 or np.linalg.norm(np.cross(normal, axes @ forward)) < 1e-6:
            shown = ", ".join(f"{x:.6g}" for x in normal)
            whose = "inertial" if output.relative_to is None else f"`{output.relative_to}`'s"
            about = "z axis" if normal[2] == 1.0 else f"axis ({shown})"
            expected = f"a body that turns about the {whose} {about} only, with another x axis"
            came = f"body `{output.body}`, which can tilt or has no heading"
            cure = 'Take "SO3" or "R3xSO3", another `normal`, or another `orientation`.'
            raise refused(f"{where}, output `{output.name}`", expected, came, cure)
