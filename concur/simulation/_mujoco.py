"""Closed loops over MuJoCo: a robot on wheels that may slip, driven by a law of the package."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concur._progress import track
from concur.control import Law, Tick, TickStatus, TrackingLaw, tracking_law
from concur.errors import ConcurError, SimulationError
from concur.outputs import Reference, ReferenceSample, reference_for
from concur.results import Row
from concur.robot import Mechanism
from concur.simulation._contact_model import ContactModel
from concur.simulation._plant import Plant
from concur.simulation._run import Run, recorded_run
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
    periods = _periods(where, duration, control_period)
    law.state_bounds.check_period(f"{where}, `control_period`", control_period)
    substeps = math.ceil(control_period / step - 1e-9)
    demand = reference_for(reference, law.outputs, where)
    moving = _moving(robot, world)
    contacts = Contacts(
        robot.supports if supports is None else supports, friction, robot.ground_height
    )
    model = ContactModel(moving, contacts, control_period / substeps)
    q, s = robot.check_configuration(q0, "`q0`"), np.asarray(s0, dtype=float)
    lifted = law.model if moving is robot else law.model.on(moving)
    model.place(q, np.asarray(lifted.velocity(q, s)))
    loop = _Loop(law, demand, model, control_period, periods)
    started = time.perf_counter()
    fault: ConcurError | None = None
    with model.silent(), track(progress, f"simulating {robot.name}", periods) as report:
        for k in range(periods):
            fault = loop.advance(k, substeps, where)
            if fault is not None:
                break
            if k % 100 == 99 or k + 1 == periods:
                report(k + 1)
    if fault is not None and not loop.done:
        raise fault
    found = loop.recorded(Plant(moving), time.perf_counter() - started)
    if fault is not None:
        fault.data["run"] = found
        raise fault
    return found


class _Loop:
    """Ticks of a law and steps of MuJoCo, with a row of the record at each tick."""

    def __init__(
        self, law: TrackingLaw, demand: Reference, model: ContactModel, period: float, periods: int
    ) -> None:
        self.law, self.demand, self.model, self.period = law, demand, model, period
        times = np.arange(periods) * period
        samples = (*demand.sample(times), times[:, None])
        self._samples = dict(zip(law.sampled, samples, strict=False))
        self._tick = Tick(law)
        self._tick.buffers.period[:] = period
        robot, rows, self.done = model.robot, periods + 1, 0
        self.q, self.v = np.zeros((rows, robot.nq)), np.zeros((rows, robot.nv))
        self.u, self.state = np.zeros((rows, law.nu)), np.zeros((rows, law.nz))
        self.load, self.work = np.zeros((rows, len(model.names))), np.zeros(rows)
        self._positions = np.zeros((rows, model.order.nq))
        self._motions = np.zeros((rows, len(robot.wheels), 9))
        self._read(0)

    def advance(self, k: int, substeps: int, where: str) -> ConcurError | None:
        """Run one period from row k to the next one; return the fault that ends the run."""
        data, buffers = self.model.data, self._tick.buffers
        place = f"{where}, t = {k * self.period:.6g} s"
        buffers.q[:], buffers.s[:] = self.q[k], self.law.law_velocities(self.v[k])
        for name, part in self._samples.items():
            getattr(buffers, name)[:] = part[k]
        if self._tick.run():
            return SimulationError(
                place,
                expected="a tick of status OK",
                came=f"status {TickStatus(int(buffers.status[0])).name}",
                cure="Raise friction, or follow a slower reference.",
            )
        self.u[k] = buffers.u
        self.load[k] = self.model.press(buffers.u)
        work = self.work[k] + sum(self.model.step() for _ in range(substeps))
        fastest = max(np.abs(data.qvel).max(), np.abs(data.qpos).max())
        if not fastest < DIVERGED:
            return SimulationError(
                place,
                expected="a finite state",
                came="a diverged one",
                cure="Lower the gains, or take a shorter step.",
            )
        self.done, self.work[k + 1], self.state[k + 1] = k + 1, work, buffers.state
        self._read(k + 1)
        if not self.model.uprightness() > np.cos(TIPPED):
            return SimulationError(
                place,
                expected=f"a base tilted by at most {TIPPED:g} rad",
                came="one that is tilted more: the robot tips over",
                cure="Add supports, or accelerate less.",
            )
        return None

    def recorded(self, plant: Plant, seconds: float) -> ContactRun:
        """The record of the periods that were done."""
        rows, count = slice(0, self.done + 1), self.done
        self.load[count] = self.model.press(self.u[count - 1])
        slip = self.model.slips(self._motions[rows])
        height, tilt = self.model.lean(self._positions[rows])
        # The heading that is read lies on a circle.
        self.q[rows, 2] = np.unwrap(self.q[rows, 2])
        arrays = {"t": np.arange(count + 1) * self.period, "work": self.work[rows]}
        arrays |= {"q": self.q[rows], "v": self.v[rows], "z": self.state[rows]}
        arrays |= {"u": self.u[np.minimum(np.arange(count + 1), count - 1)]}
        run = recorded_run(self.law, plant, self.demand, self.period, arrays, "mujoco", seconds)
        return ContactRun(run, self.model.names, slip, self.load[rows], height, tilt)

    def _read(self, k: int) -> None:
        self.q[k], self.v[k] = self.model.state()
        self._positions[k], self._motions[k] = self.model.data.qpos, self.model.wheel_motions()


def _moving(robot: Mechanism, world: Mapping[str, ArrayLike] | None) -> Mechanism:
    """The robot of a world."""
    if not world:
        return robot
    return Plant(robot, uncertain=list(world)).rebuilt(world)


def _periods(where: str, duration: float, control_period: float) -> int:
    """Count control periods; the duration is a whole number of them."""
    periods = round(duration / control_period)
    if periods < 1 or abs(periods * control_period - duration) > 1e-9 * max(1.0, duration):
        raise SimulationError(
            f"{where}, `duration`",
            expected=f"a whole number of control periods of {control_period:g} s",
            came=f"{duration:g} s",
            cure="Change one of the two.",
        )
    return periods
