"""A run from states that an integrator has computed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np

from concur.control import TrackingLaw
from concur.outputs import Reference
from concur.robot import Mechanism
from concur.simulation._imperfections import Imperfections
from concur.simulation._plant import Plant
from concur.simulation._record import Recorder
from concur.simulation._run import Run


def recorded_run(
    law: TrackingLaw,
    plant: Plant,
    reference: Reference,
    control_period: float | None,
    arrays: Mapping[str, np.ndarray],
    method: str,
    seconds: float,
    imperfections: Imperfections | None = None,
) -> Run:
    """Record the states of a closed loop that another program has integrated.

    Parameters
    ----------
    law : TrackingLaw
        The law.
    plant : Plant
        What moved.
    reference : Reference
        Reference of all outputs.
    control_period : float or None
        Period of the law, s; None: it acts continuously.
    arrays : mapping of str to numpy.ndarray
        Rows of the record by name, SI units: "t" (k,), equidistant times, "q" (k, nq), "v" (k, nv),
        "u" (k, nu), and "work" of the drives since the start (k,). If the law has a state, "z"
        (k, nz) before each tick; if wheels slip and loads are states of the plant, "load" (k, nl).
        What is computed if it is missing: "margin" (k,), "acceleration_residual" (k, size) and
        "scale" (k,) of the law. "low" and "high", the smallest and the largest (q, v, u) of each
        step, are those of the rows by default.
    method : str
        Name of the integrator.
    seconds : float
        Time that the simulation took, s.
    imperfections : Imperfections, optional
        Imperfections of what moved.

    Returns
    -------
    Run
        The run.

    Examples
    --------
    >>> import numpy as np
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(cc.reduce(robot), [base], stiffness=4, damping=4)
    >>> rows = {"t": 0.01 * np.arange(3), "q": np.tile(robot.neutral(), (3, 1))}
    >>> rows |= {"v": np.zeros((3, robot.nv)), "u": np.zeros((3, 5)), "work": np.zeros(3)}
    >>> goal = cc.references.hold([0.3, 0.0])
    >>> run = cc.simulation.recorded_run(
    ...     servo, cc.Plant(robot), goal, 0.01, rows, method="another program", seconds=1.0)
    >>> run.t, run.error.round(3)
    (array([0.  , 0.01, 0.02]), array([[0.05, 0.  ],
           [0.05, 0.  ],
           [0.05, 0.  ]]))
    """
    recorder = Recorder(law, plant)
    rows = recorder.rows(reference, arrays)
    return run_of(recorder, rows, control_period, method, seconds, imperfections)


def run_of(
    recorder: Recorder,
    rows: Mapping[str, np.ndarray],
    control_period: float | None,
    method: str,
    seconds: float,
    imperfections: Imperfections | None = None,
) -> Run:
    """Make a run of the rows of a recorder."""
    plant = recorder.plant
    return Run(
        robot=cast(Mechanism, plant.robot),
        servo=recorder.servo,
        arrays=rows,
        method=method,
        control_period=control_period,
        seconds=seconds,
        friction=imperfections.friction if imperfections else plant.friction,
        imperfections=imperfections,
        slip=plant.slip,
    )
