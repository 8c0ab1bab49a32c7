"""Closed loops over MuJoCo: a robot on wheels that may slip, driven by a law of the package."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concur._progress import track
from concur.codegen import Batch, Job, Series, Trace, series_function
from concur.control import KEPT, Law, TickStatus, tracking_law
from concur.errors import SimulationError
from concur.outputs import Reference, ReferenceSample, reference_for
from concur.results import Row
from concur.simulation._adaptive import InPython
from concur.simulation._contact_model import ContactModel
from concur.simulation._integrator import grid
from concur.simulation._loop import FORCE_UNIT
from concur.simulation._plant import Plant
from concur.simulation._program import Program, ideal_program
from concur.simulation._record import recorded_run
from concur.simulation._run import Run
from concur.simulation._run_data import Tolerances
from concur.writers import Contacts

STEP = 5e-4
"""Longest step of MuJoCo, s: half a millisecond holds contacts of 2 ms."""

DIVERGED = 1e6
"""Coordinate or velocity, SI units, from which on a state has diverged."""

TIPPED = 0.5
"""Angle, rad, from which on a base has tipped over and its planar pose means nothing."""

SLIP = 0.01
"""Slip speed, m/s, above which a wheel slips; rolling contacts creep by 1e-4 m/s."""


LOAD_TIME = 0.02
"""Time, s, over which loads are averaged: those of sliding wheels chatter from step to step."""


@dataclass(frozen=True, eq=False)
class ContactRun:
    """A run on contacts in MuJoCo, one row per control period.

    Parameters
    ----------
    run : Run
        States, torques and errors; the pose of the base is projected on its plane.
    names : tuple of str
        Wheels, by the name of their body, then supports.
    slip : numpy.ndarray
        Speed of each wheel's material point next to the ground, along the ground, shape
        (k, wheels), m/s; also of a wheel in the air.
    load : numpy.ndarray
        Normal force of each wheel and support, shape (k, wheels + supports), N. That of a sliding
        wheel chatters: MuJoCo pushes it off the ground by micrometres for single steps.
    height : numpy.ndarray
        Height of the base above its plane, shape (k,), m.
    tilt : numpy.ndarray
        Angle between the normals of base and plane, shape (k,), rad.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.simulation import mujoco_run
    >>> task = cc.load_task("examples/rover_arm.toml")
    >>> supports = {"caster": (0.5, 0, 0)}
    >>> found = mujoco_run(task.servo, task.reference, 0.05, task.q0, task.s0, supports=supports)
    >>> bool((found.load[-1] > 0).all()), found.tilt.shape
    (True, (51,))
    """

    run: Run
    names: tuple[str, ...]
    slip: np.ndarray
    load: np.ndarray
    height: np.ndarray
    tilt: np.ndarray

    def __str__(self) -> str:
        return f"{self.run}, largest slip {self.slip.max():.3g} m/s"

    def findings(self, tolerances: Tolerances, slip: float = SLIP) -> tuple[Row, ...]:
        """Compare the run with its limits.

        Parameters
        ----------
        tolerances : Tolerances
            Limits of the motion. Those that check the integration of a plant without slip,
            `deviation` and `constraint`, do not apply.
        slip : float
            Largest slip speed of a wheel that rolls, m/s.

        Returns
        -------
        tuple of Row
            Slip speed of each wheel, smallest load of each wheel and support, averaged over 20 ms,
            and largest tilt of the base, then the findings of the run that concern its motion.
        """
        wheels = self.names[: self.slip.shape[1]]
        found = [
            Row.judged(f"slip speed of {name}, largest", float(speed.max()), slip, "m/s")
            for name, speed in zip(wheels, self.slip.T, strict=True)
        ]
        found += [
            Row.judged(
                f"load of {name}, smallest",
                float(load.min()),
                unit="N",
                place="lifts off" * bool(load.min() <= 0.0),
            )
            for name, load in zip(self.names, self._mean_loads().T, strict=True)
        ]
        found.append(Row.judged("tilt of the base, largest", float(self.tilt.max()), unit="rad"))
        return (*found, *(one for one in self.run.findings(tolerances) if not one.numerical))

    def _mean_loads(self) -> np.ndarray:
        """Loads averaged over `LOAD_TIME`, or over the run if it is shorter."""
        rows = min(len(self.load), max(1, round(LOAD_TIME / self.run.dt)))
        windows = np.lib.stride_tricks.sliding_window_view(self.load, rows, axis=0)
        return np.asarray(windows.mean(axis=-1))


def mujoco_run(
    servo: Law,
    reference: Reference | Callable[[float], ReferenceSample] | None,
    duration: float,
    q0: ArrayLike,
    s0: ArrayLike,
    *,
    supports: Mapping[str, Sequence[float]] | None = None,
    friction: float | Mapping[str, float] = 1.0,
    world: Mapping[str, ArrayLike] | None = None,
    control_period: float = 1e-3,
    step: float = STEP,
    progress: bool | Callable[[float], Any] = False,
) -> ContactRun:
    """Run a law on a robot that stands on its wheels in MuJoCo, where wheels slip and lift off.

    The planar base becomes free. It stands on its wheels, with friction, and on supports without.
    At the start the contacts bear the weight of the robot, so that the base does not jump. Each
    control period the tick of the law gets the projected state and gives the torques, which the
    motors hold; torque limits of the robot cut them off, and limits of joints are stops.

    Parameters
    ----------
    servo : Law
        The law; its robot is on a `Planar` base with wheels that are contacts.
    reference : Reference
        Reference of all outputs, a callable of time; None for a law that follows none.
    duration : float
        How long, s; a whole number of control periods.
    q0, s0 : array_like
        Configuration and shape velocities at the start, shapes (nq,) and (ns,).
    supports : mapping of str to sequence of float, optional
        Frictionless supports, such as casters: by name the point of contact in the frame of the
        base, shape (3,), m, at the height of the ground whatever is written. Default: those of the
        robot.
    friction : float or mapping of str to float
        Friction coefficient of all wheels, or of each by the name of its body.
    world : mapping, optional
        Deviations of the robot from the servo's model, as for `Plant.numbers`, of one world.
    control_period : float
        Period of the law, s.
    step : float
        Longest step of MuJoCo, s; a control period has a whole number of them.
    progress : bool or callable
        Show a progress bar, or call with the fraction done.

    Returns
    -------
    ContactRun
        The run, with slip speeds and loads.

    Raises
    ------
    SimulationError
        If MuJoCo is missing, the robot tips over at the start, or the run ends early: the law has
        no torque, the base tips over or the state leaves the finite numbers. The run up to there is
        then the error's attribute `run`.
    DescriptionError
        If the robot cannot be written as MJCF.

    Notes
    -----
    Solver, softness of contacts and steps are the same for every robot; `concur.writers.Contacts`
    states them.

    Examples
    --------
    >>> import concur as cc
    >>> from concur.simulation import mujoco_run
    >>> task = cc.load_task("examples/rover_arm.toml")
    >>> supports = {"caster": (0.5, 0, 0)}
    >>> found = mujoco_run(task.servo, task.reference, 0.05, task.q0, task.s0, supports=supports)
    >>> found.names
    ('left_wheel', 'right_wheel', 'caster')
    >>> found.load.shape
    (51, 3)
    """
    law = tracking_law(servo, "run in MuJoCo, `servo`")
    robot = law.model.robot
    where = f"run of `{robot.name}` in MuJoCo"
    periods, _ = grid(where, duration, control_period, None)
    law.state_bounds.check_period(f"{where}, `control_period`", control_period)
    substeps = math.ceil(control_period / step - 1e-9)
    demand = reference_for(reference, law.outputs, where)
    moving = Plant(robot, uncertain=list(world)).rebuilt(world) if world else robot
    contacts = Contacts(
        robot.supports if supports is None else supports, friction, robot.ground_height
    )
    model = ContactModel(moving, contacts, control_period / substeps)
    q, s = robot.check_configuration(q0, "`q0`"), np.asarray(s0, dtype=float)
    lifted = law.model if moving is robot else law.model.on(moving)
    model.place(q, np.asarray(lifted.velocity(q, s)))
    loop = _Loop(ideal_program(law, Plant(robot), "rk4", control_period, 1), model, substeps)
    started = time.perf_counter()
    with model.silent(), track(progress, f"simulating {robot.name}", periods) as report:
        trace = loop.run(demand, periods, report)
    if trace.done:
        found = loop.recorded(trace, demand, Plant(moving), time.perf_counter() - started)
        if trace.stopped == periods and not loop.tipped:
            return found
    if loop.tipped:
        expected = f"a base tilted by at most {TIPPED:g} rad"
        came = "one that is tilted more: the robot tips over"
        cure = "Add supports, or accelerate less."
    elif trace.status > 0:
        expected, came = "a tick of status OK", f"status {TickStatus(trace.status).name}"
        cure = "Raise friction, or follow a slower reference."
    else:
        expected, came = "a finite state", "a diverged one"
        cure = "Lower the gains, or take a shorter step."
    time_ = (trace.done - loop.tipped) * control_period
    fault = SimulationError(f"{where}, t = {time_:.6g} s", expected=expected, came=came, cure=cure)
    if trace.done:
        fault.data["run"] = found
    raise fault


class _Loop:
    """A sampled program whose steps are those of MuJoCo, which keeps the state of all contacts."""

    def __init__(self, program: Program, model: ContactModel, substeps: int) -> None:
        self.program, self.model, self.substeps, self.tipped = program, model, substeps, False
        lengths = len(model.names), model.order.nq, 9 * len(model.robot.wheels)
        self._ends = np.cumsum(lengths)
        self.sizes = program.sizes._replace(ny_step=sum(lengths))

    def run(self, demand: Reference, periods: int, report: Callable[[float], Any]) -> Trace:
        """Let it move; a run whose base tips over ends there."""
        sizes, program = self.sizes, self.program
        step = InPython(
            "step", (sizes.nx, sizes.np, sizes.nu), (sizes.nx, sizes.ny_step), self._step
        )

        def watch(_: Trace, done: int) -> bool:
            step.check()
            self.tipped = not self.model.uprightness() > np.cos(TIPPED)
            if done % 100 == 0 or done == periods:
                report(done)
            return self.tipped

        batch = Batch(self._state(np.zeros(sizes.nx))[None], program.numbers(), [0])
        job = Job(sizes, batch, program.reference(demand, periods), periods, (), None)
        return Series(partial(series_function, program.tick, step, 1, 0), 1).trace(job, 0, watch)

    def recorded(self, trace: Trace, demand: Reference, plant: Plant, seconds: float) -> ContactRun:
        """The record of the periods that were done."""
        program, model, count = self.program, self.model, trace.done
        x, held = trace.x[: count + 1], np.minimum(np.arange(count + 1), count - 1)
        arrays = {name: program.state(x, name) for name in ("q", "v")}
        # The heading that is read lies on a circle.
        arrays["q"][:, 2] = np.unwrap(arrays["q"][:, 2])
        arrays |= {"t": np.arange(count + 1) * program.dt, "u": trace.u[held]}
        arrays |= {"work": program.state(x, "work")[:, 0], "z": program.state(x, "law")[:, KEPT:]}
        load, position, motion = np.split(trace.of_steps[:count], self._ends[:-1], axis=1)
        load = np.vstack([load, model.press(trace.u[count - 1])])
        position, motion = map(np.vstack, zip((position, motion), self._place, strict=True))
        height, tilt = model.lean(position)
        slip = model.slips(motion.reshape(count + 1, -1, 9))
        run = recorded_run(program.law, plant, demand, program.dt, arrays, "mujoco", seconds)
        return ContactRun(run, model.names, slip, load, height, tilt)

    def _step(self, x: np.ndarray, _: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """State after a control period; loads, and where the robot was, at its start."""
        model, data = self.model, self.model.data
        found = np.concatenate([model.press(u), *self._place])
        work = sum(model.step() for _ in range(self.substeps))
        if not max(np.abs(data.qvel).max(), np.abs(data.qpos).max()) < DIVERGED:
            return np.full(len(x), np.nan), found
        x[self.program.states["work"]] += work / FORCE_UNIT
        return self._state(x), found

    def _state(self, x: np.ndarray) -> np.ndarray:
        """A state with configuration and velocity as they are in MuJoCo."""
        states = self.program.states
        x[states["q"]], x[states["v"]] = self.model.state()
        self._place = self.model.data.qpos.copy(), self.model.wheel_motions().ravel()
        return x
