"""A run from states that another integrator has computed."""

from __future__ import annotations

import time

import numpy as np

from concur.control import TrackingLaw
from concur.outputs import Reference
from concur.simulation._finish import finish
from concur.simulation._imperfections import Imperfections
from concur.simulation._loop import Loop, Setting
from concur.simulation._plant import Plant
from concur.simulation._record import Recorder
from concur.simulation._run import Run
from concur.simulation._states import States


class _Done(Loop):
    """A loop whose steps are known."""

    def advance(self, first: int, last: int, states: States) -> tuple[int, bool]:
        return last, True


def recorded_run(
    law: TrackingLaw,
    plant: Plant,
    reference: Reference,
    control_period: float,
    q: np.ndarray,
    v: np.ndarray,
    u: np.ndarray,
    *,
    work: np.ndarray,
    state: np.ndarray | None = None,
    method: str,
    seconds: float,
    imperfections: Imperfections | None = None,
    loads: np.ndarray | None = None,
) -> Run:
    """Record the states of a sampled closed loop that another program has integrated.

    Parameters
    ----------
    law : TrackingLaw
        The law.
    plant : Plant
        What moved.
    reference : Reference
        Reference of all outputs.
    control_period : float
        Period of the law, s; the states are one period apart.
    q, v : numpy.ndarray
        Configurations and velocities, shapes (k + 1, nq) and (k + 1, nv), SI units.
    u : numpy.ndarray
        Controls of the periods, shape (k, nu), N and N m.
    work : numpy.ndarray
        Work of the drives since the start, shape (k + 1,), J.
    state : numpy.ndarray, optional
        State of the law before each tick, shape (k + 1, nz).
    method : str
        Name of the integrator.
    seconds : float
        Time that the simulation took, s.
    imperfections : Imperfections, optional
        Imperfections of what moved.
    loads : numpy.ndarray, optional
        Loads of wheels that slip, shape (k + 1, nl), N, if they are states of the plant.

    Returns
    -------
    Run
        The run. Its ranges are over the recorded states.

    Examples
    --------
    >>> import numpy as np
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> servo = cc.Servo(cc.reduce(robot), [base], stiffness=4, damping=4)
    >>> q, v = np.tile(robot.neutral(), (3, 1)), np.zeros((3, robot.nv))
    >>> run = cc.simulation.recorded_run(
    ...     servo, cc.Plant(robot), cc.references.hold([0.3, 0.0]), 0.01, q, v, np.zeros((2, 5)),
    ...     work=np.zeros(3), method="another program", seconds=1.0)
    >>> run.t, run.error.round(3)
    (array([0.  , 0.01, 0.02]), array([[0.05, 0.  ],
           [0.05, 0.  ],
           [0.05, 0.  ]]))
    """
    begun, steps = time.perf_counter(), len(u)
    setting = Setting(law, plant, reference, method, control_period, steps, 1, plant.tree)
    table = np.zeros((steps + 1, 0)) if loads is None else loads
    states = States(law, q[0], v[0], steps, table[0])
    states.q[:], states.v[:], states.u[:steps], states.work[:, 0] = q, v, u, work
    states.work[:, 1 + law.nz :] = table
    if state is not None:
        states.work[:, 1 : 1 + law.nz] = state
    recorder = Recorder(law, plant)
    states.margin[:], states.orientation[:] = recorder.margins(q)
    started = begun - seconds
    loop, count = _Done(setting), steps + 1
    return finish(loop, recorder, states, count, steps, control_period, started, imperfections)
