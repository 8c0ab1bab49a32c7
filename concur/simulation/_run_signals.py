"""Signals of a recorded run, by the names that they have in a program."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from concur.reduction._ground import wheel_names
from concur.simulation._plant import Plant
from concur.simulation._program import coordinate_signals
from concur.simulation._run_data import RunData


def run_signals(run: RunData) -> dict[str, NDArray[np.float64]]:
    """Signals of a run by the names of `Program.signals`.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    dict of str to numpy.ndarray
        Errors of the outputs ("error:hand"), decoupling margin ("margin"), controls
        ("torque:..."), coordinates ("position:..." and "base:..."), velocities ("speed:..."), slip
        speeds ("slip:..."), loads and moments of contacts ("load:..." and "tipping:...") or the
        residual of wheels that roll ("constraint"), shape (k,) each, a value for each row of the
        record; SI units.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(cc.reduce(robot), [base], stiffness=4, damping=4)
    >>> goal = cc.references.hold([0.3, 0.0])
    >>> run = cc.simulate(robot, servo, goal, 0.1, robot.neutral(), [0] * 5, dt=0.01)
    >>> signals = cc.simulation.run_signals(run)
    >>> signals["error:base"].shape, "torque:left_wheel" in signals
    ((11,), True)
    """
    robot = run.robot
    found = {
        "error:" + re.sub(r", (position|rotation)$", r":\1", name): norm
        for name, _, norm in run.error_parts
    }
    law = run.servo
    found["margin"] = run.margin
    tables = [
        ([f"torque:{name}" for name in law.model.control_names], run.u),
        (coordinate_signals(robot), run.q),
        ([f"speed:{name}" for name in robot.freedom_names], run.v),
    ]
    if run.slip_speed is not None:
        tables.append(([f"slip:{name}" for name in wheel_names(robot)], run.slip_speed))
    slip, loads = run.slip, run.wheel_load
    if slip is None and robot.nf:
        tables.append((["constraint"], run.constraint_residual[:, None]))
    elif slip is not None and loads is not None and loads.shape[1]:
        plant = Plant(robot, slip=slip)
        empty = np.zeros(0)
        moments = [plant.tipping(q, own, empty) for q, own in zip(run.q, loads, strict=True)]
        tables.append(([f"load:{name}" for name in plant.load_names], loads))
        tables.append(([f"tipping:{name}" for name in plant.edge_names], np.array(moments)))
    for names, table in tables:
        found |= dict(zip(names, np.asarray(table).T, strict=True))
    return found
