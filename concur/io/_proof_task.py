"""Writer of the task in the file of a proof: outputs, law, reference, start and times."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from concur.errors import OutputError
from concur.outputs import Output
from concur.results import plain

ROBOT = "robot.toml"
"""Name of the robot's file beside that of the task."""


def proof_task(task: Any) -> str:
    """Task as the text of a task file, with the robot in `ROBOT`; all numbers to the last bit.

    Only outputs, law, reference, start and times are written. Limits, imperfections and plant are
    those of the statement, which stands beside it in the file of a proof.
    """
    import tomlkit

    task.servo  # noqa: B018 - raises an error for a law of another kind
    options = {k: v for k, v in task.servo_options.items() if v is not None and v is not False}
    covered = {
        name: plain(options.pop(name))
        for name in ("use_measured_velocity", "torque_limits")
        if name in options
    }
    if options:
        raise OutputError(
            f"task `{task.name}`",
            expected="a law without other options than those that proofs of tasks cover",
            came=", ".join(options),
            cure="Remove them from [servo].",
        )
    document: dict[str, Any] = {"name": task.name, "robot": ROBOT}
    if task.momentum is not None:
        document["momentum"] = task.momentum.tolist()
    if task.stages is not None:
        document["stages"] = plain(task.stages)
    outputs, at = [], 0
    for output in task.outputs:
        own = slice(at, at + output.dim)
        at += output.dim
        table = {
            field.name: plain(getattr(output, field.name))
            for field in fields(Output)
            if field.init and getattr(output, field.name) != field.default
        }
        for name in ("stiffness", "damping"):
            table[name] = np.diag(getattr(task, name))[own].tolist()
        outputs.append(table)
    document["simulation"] = {"duration": task.duration, "dt": task.dt, "method": task.method}
    if task.control_period is not None:
        document["simulation"]["control_period"] = task.control_period
    if covered:
        document["servo"] = covered
    q = {
        body.joint_label: task.q0[task.robot.q_slice(body.name)].tolist()
        for body in task.robot.bodies
        if body.joint.nq
    }
    document["initial"] = {"q": q, "s": dict(task.initial_velocities)}
    document["reference"] = plain(task.reference_tables)
    document["outputs"] = outputs
    return tomlkit.dumps(document)
