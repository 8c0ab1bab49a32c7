"""Whether robot, controls and outputs match each other."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from concur.control._output import Output
from concur.errors import OutputError
from concur.reduction import ReducedModel


def check_kinds(model: Any, outputs: Any) -> str:
    """Say so when a robot or a single output comes where a model or a list is wanted.

    Parameters
    ----------
    model, outputs : object
        Arguments of a servo.

    Returns
    -------
    str
        Name of the servo, for messages.

    Raises
    ------
    OutputError
        If the kinds are others.
    """
    if not isinstance(model, ReducedModel):
        raise OutputError(
            "servo, `model`",
            expected="a reduced model",
            came=f"{type(model).__name__} {model!r:.40}",
            cure="Pass reduce(robot).",
        )
    where = f"servo of `{model.name}`"
    if not isinstance(outputs, Iterable) or not all(isinstance(o, Output) for o in outputs):
        raise OutputError(
            f"{where}, `outputs`",
            expected="a list of Output",
            came=f"{type(outputs).__name__} {outputs!r:.60}",
            cure="Write [Output(...), Output(...)].",
        )
    return where


def check_outputs(where: str, model: ReducedModel, outputs: tuple[Output, ...]) -> None:
    """Demand one control per shape velocity, one output coordinate per control.

    Parameters
    ----------
    where : str
        Place named in errors.
    model : ReducedModel
        The reduced robot.
    outputs : tuple of Output
        The outputs.

    Raises
    ------
    OutputError
        If the numbers differ, names repeat, or a planar output sits on a body that tilts.
    UnknownNameError
        If an output's body does not exist.
    """
    names = [output.name for output in outputs]
    if len(set(names)) != len(names):
        raise OutputError(
            f"{where}, `outputs`",
            expected="each name once",
            came=", ".join(names),
            cure="Rename one of them.",
        )
    for output in outputs:
        model.robot.index(output.body)
    wanted = sum(output.dim for output in outputs)
    if model.nu != model.ns:
        raise OutputError(
            f"{where}, controls",
            expected=f"{model.ns} controls for the shape velocities {', '.join(model.shape_names)}",
            came=f"{model.nu}: {', '.join(model.control_names)}",
            cure="Set `actuated` of the robot to as many joints.",
        )
    if wanted != model.nu:
        sizes = ", ".join(f"{o.name} {o.group} {o.dim}" for o in outputs) or "none"
        cure = (
            "Remove outputs or drive more joints."
            if wanted > model.nu
            else "Add outputs: every control needs one."
        )
        raise OutputError(
            f"{where}, `outputs`",
            expected=f"{model.nu} output coordinates, one per control "
            f"({', '.join(model.control_names)})",
            came=f"{wanted} ({sizes})",
            cure=cure,
            outputs=wanted,
            controls=model.nu,
        )
    _check_planar(where, model, outputs)


def _check_planar(where: str, model: ReducedModel, outputs: tuple[Output, ...]) -> None:
    rng = np.random.default_rng(4)
    for output in (o for o in outputs if o.lie.planar):
        for _ in range(4):
            q = model.robot.random(rng)
            turning = model.robot.jacobian(q, output.body)[3:] @ model.lift(q)[0]
            axes = model.robot.pose(q, output.body)[:3, :3]
            if np.abs(axes[:2] @ turning).max() > 1e-9 or np.hypot(*axes[:2, 0]) < 1e-6:
                raise OutputError(
                    f"{where}, output `{output.name}`",
                    expected=f"a body that turns about the inertial z axis only, with its x axis "
                    f"not along it, for group {output.group}",
                    came=f"body `{output.body}`, which can tilt or has no heading",
                    cure='Take "SO3" or "R3xSO3".',
                )
