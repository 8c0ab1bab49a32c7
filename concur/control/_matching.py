"""Whether robot, controls and outputs match each other."""

from __future__ import annotations

from typing import Any

from concur.errors import OutputError
from concur.outputs import Output, check_planar, checked_outputs
from concur.reduction import STAGES_HINT, ReducedModel
from concur.robot import Mechanism


def matching_outputs(model: Any, outputs: Any) -> tuple[Output, ...]:
    """Outputs that fit a reduced robot: at most as many coordinates as shape velocities.

    There must be at least as many controls, and no planar output on a body that tilts.
    """
    if not isinstance(model, ReducedModel):
        raise OutputError(
            "servo, `model`",
            expected="a reduced model",
            came=f"{type(model).__name__} {model!r:.40}",
            cure="Pass reduce(robot).",
        )
    checked = checked_outputs(model.system, outputs, "servo", functions=True)
    where = f"servo of `{model.name}`"
    check_controls(model, where)
    needed = sum(output.dim for output in checked)
    if needed > model.ns:
        sizes = ", ".join(f"{o.name} {o.group} {o.dim}" for o in checked)
        raise OutputError(
            f"{where}, `outputs`",
            expected=f"at most {model.ns} output coordinates, one per shape velocity "
            f"({', '.join(model.shape_names)})",
            came=f"{needed} ({sizes})",
            cure="Remove outputs or drive more joints.",
            outputs=needed,
            controls=model.nu,
        )
    for output in checked:
        if output.lie.planar and isinstance(model.system, Mechanism):
            check_planar(where, model.robot, output, lambda q: model.lift(q)[0])
    return checked


def check_controls(model: ReducedModel, where: str) -> None:
    """Demand at least as many controls as shape velocities, of which there are some."""
    if model.ns and model.nu >= model.ns:
        return
    shape = f"the shape velocities {', '.join(model.shape_names)}" if model.ns else "a law"
    names = f": {', '.join(model.control_names)}" if model.nu else ""
    raise OutputError(
        f"{where}, controls",
        expected=f"at least {max(model.ns, 1)} controls for {shape}",
        came=f"{model.nu}{names}",
        cure=_cure(model),
    )


def _cure(model: ReducedModel) -> str:
    if not isinstance(model.system, Mechanism):
        return "Add inputs. Such a system can be moved by `concur.simulation.forced_motion`."
    robot = model.robot
    on_wheels = robot.freedoms(*(robot.bodies[i].name for i in robot.platforms))
    free = [robot.freedom_names[i] for i in on_wheels if i in model.shape]
    if free and any(wheel.support for wheel in robot.wheels):
        return (
            f"The contact leaves {', '.join(free)} free, and motors between bodies do not suffice: "
            "add thrusters. Such a robot can be moved by `concur.simulation.forced_motion`."
        )
    if free:
        return (
            f"The wheels leave {', '.join(free)} free and unactuated: add a wheel or a "
            "slider that holds it. Such a robot can be moved by `concur.simulation.forced_motion`."
        )
    swinging = [model.system.freedom_names[i] for i in robot.freedoms(*robot.cables)]
    swinging = [name for name in swinging if name in model.shape_names]
    if swinging:
        return (
            f"Links on cables have no motors, so that no law sets {', '.join(swinging)}: damp "
            "them by a linear regulator of `concur.control.linear_loop(model, at=q)`, and move "
            "the robot by `concur.simulation.forced_motion`."
        )
    cure = "Set `actuated` of the robot to as many joints"
    if STAGES_HINT in model.reason:
        cure += ', or reduce by those that keep their momentum: reduce(robot, stages="auto")'
    return cure + "."
