"""Reader of configurations given by joint, and checks of names of bodies and joints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concur.robot import Mechanism
from concur.tables import fault, is_number, located, show, unknown


def check_joints(
    names: Iterable[str], robot: Mechanism, path: str | PathLike[str], table: str, field: str = ""
) -> None:
    """Reject names of joints that the robot lacks; the field is the name if none is given."""
    for name in names:
        if name not in robot.joints:
            raise unknown(path, table, field or name, "a joint", name, robot.joint_names)


def read_configuration(
    table: Mapping[str, Any],
    robot: Mechanism,
    path: str | PathLike[str],
    label: str,
    rest: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Read a configuration; other joints are as in `rest`, by default neutral, or follow others."""
    q = np.array(robot.neutral() if rest is None else rest, dtype=float)
    check_joints(table, robot, path, label)
    places = [robot.joints[name] for name in table]
    if len(set(places)) < len(places):
        names = [name for name in table if places.count(robot.joints[name]) > 1]
        cure = "Keep the name of the joint."
        came = " and ".join(f"`{name}`" for name in names)
        raise fault(path, label, names[-1], expected="each joint once", came=came, cure=cure)
    for name, value in table.items():
        numbers = [value] if is_number(value) else value
        span = robot.q_spans[robot.joints[name]]
        size = span.stop - span.start
        if len(numbers) != size:
            raise fault(
                path,
                label,
                name,
                expected=f"{size} numbers" if size != 1 else "one number",
                came=show(value),
                cure="Give as many numbers as this joint has coordinates.",
            )
        q[span] = numbers
    with located(path, label):
        checked = np.array(robot.check_configuration(robot.coupled(q, table)), dtype=float)
    checked.setflags(write=False)
    return checked
