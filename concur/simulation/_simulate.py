"""The closed loop in time: law and full-order plant."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from concur.codegen import Evaluator
from concur.control import Reference, ReferenceSample, Servo, Tick, lost_direction, singular_error
from concur.control._fitting import fitting
from concur.errors import ConcurError, SimulationError
from concur.mechanism import unknown_name
from concur.multibody import Mechanism
from concur.reduction import MomentumReduction
from concur.simulation._plant import Plant
from concur.simulation._progress import track
from concur.simulation._record import Recorder
from concur.simulation._run import Run
from concur.simulation._start import FASTEST, grid, shape_start
from concur.simulation._step import FIXED_STEP, closed_loop, step_function

ADAPTIVE = {"dop853": "DOP853", "rk45": "RK45", "radau": "Radau", "lsoda": "LSODA"}
METHODS = (*FIXED_STEP, *ADAPTIVE)
LEAP = 0.5
"""Distance per step, m or rad, from which on a sudden speed is no longer believed."""

CHECK_EVERY = 200
"""Steps between two looks at the margin of the decoupling matrix."""


def simulate(
    robot: Mechanism,
    servo: Servo,
    reference: Reference | Callable[[float], ReferenceSample],
    duration: float,
    q0: ArrayLike,
    s0: ArrayLike,
    dt: float = 1e-3,
    plant: Mechanism | Plant | None = None,
    method: str = "rk4",
    hold: float | None = None,
    progress: bool | Callable[[float], Any] = False,
    momentum: ArrayLike | None = None,
) -> Run:
    """Simulate the servo on the full-order plant.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    servo : Servo
        The law.
    reference : Reference
        Reference of all outputs, a callable of time.
    duration : float
        How long, s; a whole number of steps.
    q0, s0 : array_like
        Configuration and shape velocities at the start, shapes (nq,) and (ns,).
    dt : float
        Step of integration and recording, s.
    plant : Mechanism or Plant, optional
        What moves, if it is not the robot itself: the same joints with other parameters.
    method : str
        "rk4", "rkmk4" (both with fixed steps) or, adaptive within each step of the record
        and to a relative tolerance of 1e-10, "dop853", "rk45", "radau", "lsoda".
    hold : float, optional
        Period of a sampled servo whose torque is held in between, s, a whole number of steps;
        without it the servo acts continuously.
    progress : bool or callable
        Show a progress bar, or call with the fraction done.
    momentum : array_like, optional
        Spatial momentum that a floating robot really has, shape (6,), kg m/s and kg m^2/s, if
        it is not the one the servo's model knows.

    Returns
    -------
    Run
        The record.

    Raises
    ------
    SingularConfigurationError
        If the start is singular.
    SimulationError
        If the robot runs into a singular configuration or the state leaves the finite
        numbers: the run up to there is the error's attribute `run`.
    """
    started = time.perf_counter()
    moving = _plant(robot, servo, plant)
    where = f"simulation of `{moving.name}`"
    demand = fitting(reference, servo.outputs, where)
    steps, per_hold = grid(where, duration, dt, hold)
    if method not in METHODS:
        raise unknown_name(f"{where}, `method`", "method", method, METHODS)
    q = moving.robot.check_configuration(q0, "`q0`")
    s = shape_start(where, servo.model, s0)
    v = _start_velocity(where, servo, moving, q, s, momentum)
    loop = _FixedStep if method in FIXED_STEP else _Adaptive
    advance = loop(servo, moving, demand, method, dt, steps, per_hold)
    recorder = Recorder(servo, moving)
    margin = servo.margin(q)
    if margin < servo.refused_below:
        raise singular_error(servo, q, margin)

    states = _States(q, v, steps)
    fault: ConcurError | None = None
    done = 0
    with track(progress, f"simulating {moving.name}", steps) as report:
        for k in range(steps):
            sound = advance(k, states)
            done = k + 1
            if not sound or done % CHECK_EVERY == 0 or done == steps:
                fault = _singular(where, servo, recorder, states, done, dt)
                if fault is None and not sound:
                    fault = _diverged(where, servo, states, done, dt, hold)
                if fault is not None:
                    break
                report(done)
    count = states.finite(done) if fault else steps + 1
    seconds = time.perf_counter() - started
    run = _finish(servo, moving, demand, states, count, dt, method, hold, recorder, seconds)
    if fault is not None:
        fault.data["run"] = run
        raise fault
    return run


class _States:
    """State at the steps, and the held controls."""

    def __init__(self, q: np.ndarray, v: np.ndarray, steps: int) -> None:
        self.q = np.full((steps + 1, q.size), np.nan)
        self.v = np.full((steps + 1, v.size), np.nan)
        self.work = np.zeros(steps + 1)
        self.u: list[np.ndarray] = []
        self.q[0], self.v[0] = q, v

    def finite(self, done: int) -> int:
        """Number of leading rows, at least one, that a robot can have."""
        good = np.isfinite(self.q[: done + 1]).all(axis=1)
        good &= (np.abs(self.v[: done + 1]) < FASTEST).all(axis=1)
        return int(np.argmin(good)) if not good.all() else done + 1


class _FixedStep:
    """A buffered Runge-Kutta step."""

    def __init__(
        self,
        servo: Servo,
        plant: Plant,
        reference: Reference,
        method: str,
        dt: float,
        steps: int,
        per_hold: int | None,
    ) -> None:
        self._step = step_function(servo, plant, method, per_hold is not None)
        self._step.inputs[3][0, 0] = dt
        self._least = servo.singular_margin
        self._held = None
        if per_hold is None:
            times = np.arange(2 * steps + 1) * (dt / 2)
            self._reference = [part.T for part in reference.sample(times)]
        else:
            self._held = _Held(servo, reference, dt, per_hold)

    def __call__(self, k: int, states: _States) -> bool:
        inputs, outputs = self._step.inputs, self._step.outputs
        inputs[0][:, 0], inputs[1][:, 0] = states.q[k], states.v[k]
        inputs[2][0, 0] = states.work[k]
        if self._held is not None:
            if not self._held(k, states):
                return False
            inputs[4][:, 0] = states.u[k]
        else:
            for view, part in zip(inputs[4:], self._reference, strict=True):
                view[:] = part[:, 2 * k : 2 * k + 3]
        self._step.trigger()
        states.q[k + 1], states.v[k + 1] = outputs[0][:, 0], outputs[1][:, 0]
        states.work[k + 1] = outputs[2][0, 0]
        kept = self._step.succeeded and outputs[3][0, 0] >= self._least
        return bool(kept and _sound(outputs[1]))


class _Adaptive:
    """SciPy's integrators over one step of the record."""

    def __init__(
        self,
        servo: Servo,
        plant: Plant,
        reference: Reference,
        method: str,
        dt: float,
        steps: int,
        per_hold: int | None,
    ) -> None:
        self._plant, self._reference, self._dt = plant, reference, dt
        self._method = ADAPTIVE[method]
        shapes = [(plant.nv,), (), (), (servo.nu,)]
        function = closed_loop(servo, plant, per_hold is not None)
        self._rates = Evaluator(function, shapes, f"simulation of `{plant.name}`")
        self._held = None if per_hold is None else _Held(servo, reference, dt, per_hold)

    def __call__(self, k: int, states: _States) -> bool:
        if self._held is not None and not self._held(k, states):
            return False
        nq, nv = states.q.shape[1], states.v.shape[1]
        robot = self._plant.robot
        rates = self._rates

        def slope(t: float, z: np.ndarray) -> np.ndarray:
            rates.inputs[0][:, 0], rates.inputs[1][:, 0] = z[:nq], z[nq : nq + nv]
            if self._held is not None:
                rates.inputs[2][:, 0] = states.u[k]
            else:
                for view, part in zip(
                    rates.inputs[2:], self._reference.sample(np.array([t])), strict=True
                ):
                    view[:, 0] = part[0]
            rates.trigger()
            if not rates.succeeded:
                raise FloatingPointError
            v = z[nq : nq + nv]
            return np.concatenate(
                [robot.rate(z[:nq], v), rates.outputs[0][:, 0], rates.outputs[1][:, 0]]
            )

        start = np.concatenate([states.q[k], states.v[k], [states.work[k]]])
        span = k * self._dt, (k + 1) * self._dt
        try:
            end = solve_ivp(slope, span, start, method=self._method, rtol=1e-10, atol=1e-12)
        except (ValueError, FloatingPointError):
            return False
        if not end.success or not _sound(end.y[:, -1]):
            return False
        z = end.y[:, -1]
        states.q[k + 1] = robot.check_configuration(z[:nq])
        states.v[k + 1], states.work[k + 1] = z[nq : nq + nv], z[-1]
        return True


class _Held:
    """A sampled servo: its torque changes at its own period only."""

    def __init__(self, servo: Servo, reference: Reference, dt: float, per_hold: int) -> None:
        # A run has fewer ticks than would pay for a compiler.
        self._tick: Tick = servo.compile(interpreted=True)
        self._servo = servo
        self._reference, self._dt, self._per_hold = reference, dt, per_hold

    def __call__(self, k: int, states: _States) -> bool:
        if k % self._per_hold:
            states.u.append(states.u[-1])
            return True
        buffers = self._tick.buffers
        buffers.q[:], buffers.s[:] = states.q[k], self._servo.taken(states.v[k])
        sample = self._reference.sample(np.array([k * self._dt]))
        buffers.pose[:], buffers.twist[:], buffers.acceleration[:] = (part[0] for part in sample)
        sound = self._tick.update()
        states.u.append(buffers.u.copy())
        return sound


def _sound(values: np.ndarray) -> bool:
    """Whether a state is one a robot can have; a NaN is not."""
    return bool(np.abs(values).max() < FASTEST)


def _plant(robot: Mechanism, servo: Servo, given: Mechanism | Plant | None) -> Plant:
    """What moves: it may differ from the servo's robot in parameters only."""
    for name, value, kinds in (
        ("robot", robot, Mechanism),
        ("servo", servo, Servo),
        ("plant", given, (Mechanism, Plant, type(None))),
    ):
        if not isinstance(value, kinds):
            raise SimulationError(
                f"simulate, `{name}`",
                expected=kinds.__name__ if isinstance(kinds, type) else "a Mechanism or a Plant",
                came=f"{type(value).__name__} {value!r:.40}",
                cure="See the documentation of simulate for the order of the arguments.",
            )
    plant = given if isinstance(given, Plant) else Plant(given or robot)
    robot = servo.model.robot
    other = plant.robot
    same = [(b.name, b.parent, type(b.joint)) for b in robot.bodies] == [
        (b.name, b.parent, type(b.joint)) for b in other.bodies
    ]
    if not same or robot.actuated != other.actuated:
        raise SimulationError(
            f"simulation of `{other.name}`, `plant`",
            expected=f"the bodies, joints and drives of `{robot.name}`",
            came=f"another structure: {', '.join(b.name for b in other.bodies)}",
            cure="A plant may differ in parameters only.",
        )
    return plant


def _start_velocity(
    where: str,
    servo: Servo,
    plant: Plant,
    q: np.ndarray,
    s: np.ndarray,
    momentum: ArrayLike | None,
) -> np.ndarray:
    """Lift the shape velocities as what moves does: without slip, at its own momentum."""
    model = servo.model
    if momentum is not None:
        if not isinstance(model.first, MomentumReduction):
            raise SimulationError(
                f"{where}, `momentum`",
                expected="none, for a robot that does not float",
                came=str(momentum),
                cure="Leave it out.",
            )
        model = model.at_momentum(momentum)
    if plant.robot.wheels != model.robot.wheels or plant.robot.bodies != model.robot.bodies:
        model = model.on(plant.robot)
    return np.asarray(model.velocity(q, s))


def _diverged(
    where: str, servo: Servo, states: _States, done: int, dt: float, hold: float | None
) -> ConcurError:
    last = states.finite(done) - 1
    # What suddenly moves further than a step can resolve is no motion any more.
    speeds = np.abs(states.v[: last + 1]).max(axis=1)
    usual = float(np.median(speeds))
    while last and speeds[last] > 10 * usual and speeds[last] * dt > LEAP:
        last -= 1
    states.q[last + 1 :] = np.nan
    q = states.q[last]
    held = "" if hold is None else f", hold the torque for less than {hold:g} s"
    return SimulationError(
        f"{where}, t = {last * dt:.6g} s",
        expected="a finite state after the step",
        came=f"a singular law or a diverged state; margin before it {servo.margin(q):.3g}, nearest "
        f"to lost: {lost_direction(servo, q)}",
        cure="Check that the reference is feasible (`servo.feasibility`), lower the gains, take a "
        f"shorter step{held}. The run up to here is in the attribute `run`.",
        time=last * dt,
    )


def _singular(
    where: str, servo: Servo, recorder: Recorder, states: _States, done: int, dt: float
) -> ConcurError | None:
    first = max(0, done - CHECK_EVERY)
    margins, orientations = recorder.margins(states.q[first : states.finite(done)])
    # A damped law passes through singular configurations.
    crossed = (orientations != orientations[0]) & (servo.damped_below is None)
    low = np.flatnonzero((margins < servo.refused_below) | crossed)
    if not low.size:
        return None
    k = first + int(low[0]) - int(crossed[low[0]])
    q = states.q[k].copy()
    states.q[k + 1 :] = np.nan
    came = f"a margin of {margins[k - first]:.3g}"
    if crossed[low[0]]:
        came = f"a singular configuration that the next step jumps over, from {came}"
    return SimulationError(
        f"{where}, t = {k * dt:.6g} s",
        expected=f"a decoupling matrix with margin above {servo.singular_margin:.3g}",
        came=f"{came}: {lost_direction(servo, q)}",
        cure="Keep the reference away from there (`servo.feasibility` tells where it leads), start "
        "nearer to it, or take a shorter step. The run up to here is in the attribute `run`.",
        time=k * dt,
        margin=float(margins[k - first]),
    )


def _finish(
    servo: Servo,
    plant: Plant,
    reference: Reference,
    states: _States,
    count: int,
    dt: float,
    method: str,
    hold: float | None,
    recorder: Recorder,
    seconds: float,
) -> Run:
    times = np.arange(count) * dt
    q, v = states.q[:count], states.v[:count]
    demanded = reference.sample(times)
    rows = recorder(q, v, demanded)
    if hold is not None:
        held = states.u[:count]
        rows["u"] = np.array([*held, *held[-1:]][:count]) if held else rows["u"]
        # What the law gave up stays what it was when the torque was computed.
        period = round(hold / dt)
        sampled = np.minimum(np.arange(count), max(0, len(held) - 1)) // period * period
        rows |= {name: rows[name][sampled] for name in ("missed", "scale")}
    ideal = servo.error_dynamics.solve(rows["error"][0], rows["velocity_error"][0], times)
    return Run(
        robot=plant.robot,
        servo=servo,
        t=times,
        q=q,
        v=v,
        s=v[:, list(servo.model.shape)],
        work=states.work[:count],
        margin=recorder.margins(q)[0],
        ideal=ideal,
        reference=demanded[0],
        method=method,
        hold=hold,
        seconds=seconds,
        **rows,
    )
