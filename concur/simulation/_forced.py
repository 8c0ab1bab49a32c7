"""The reduced integrator: configuration and shape velocities under given torques.

The base, or what else depends on the shape velocities, follows by the lift v = H s + h: at no
time can the motion leave the constraints or the level set of the momentum.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeAlias

import casadi as ca
import numpy as np
import scipy
from numpy.typing import ArrayLike

from concur._progress import track
from concur.codegen import Array, Evaluator, finite_floats, shape_error
from concur.errors import ConcurError, SimulationError
from concur.reduction import UNDETERMINED, ReducedModel
from concur.robot import (
    Mechanism,
    check_contacts,
    control_velocities,
    damping_forces,
    unknown_name,
)
from concur.simulation._integrator import (
    FASTEST,
    Integrator,
    check_tolerance,
    grid,
    machine_code,
    shape_start,
)
from concur.simulation._motion import Motion, motion_of
from concur.simulation._step import runge_kutta
from concur.system import displacement_rate

Torque: TypeAlias = Callable[..., ArrayLike] | ArrayLike | None
"""u(t), u(t, q, s), constant controls, or none for a free motion."""


class Drive:
    """Controls u(t), u(t, q, s), constant or none, checked at every call.

    `needs_state` is whether they depend on the state.
    """

    def __init__(self, model: ReducedModel, torque: Torque, where: str) -> None:
        self._place, self._size = f"{where}, `torque`", model.nu
        self._names = ", ".join(model.control_names)
        self._torque = np.zeros(model.nu) if torque is None else torque
        self.needs_state = callable(torque) and _takes_state(torque, self._place)
        if not callable(torque):
            self._torque = self._checked(self._torque, self._place)

    def __call__(self, t: float, q: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Controls at an instant, checked, shape (nu,), N and N m."""
        if not callable(self._torque):
            return np.asarray(self._torque)
        # Copies: a function that keeps or changes what it is given must not reach the state.
        value = self._torque(t, q.copy(), s.copy()) if self.needs_state else self._torque(t)
        return self._checked(value, f"{self._place}, t = {t:.6g} s")

    def _checked(self, value: Any, where: str) -> np.ndarray:
        return finite_floats(value, f"{where} ({self._names})", (self._size,))


def _takes_state(function: Callable[..., Any], where: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some compiled functions have no signature
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in positional if p.default is p.empty]
    rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(needed) == 3 or (rest and not needed):
        return True
    if len(needed) == 1 or (not needed and positional):
        return False
    raise SimulationError(
        where,
        expected="a function u(t) or u(t, q, s)",
        came=f"one that needs {len(needed)} arguments",
        cure="Let it take the time, or time, configuration and shape velocities.",
    )


MOTION_METHODS = ("dop853", "rkmk4")


def forced_motion(
    model: ReducedModel,
    torque: Torque,
    duration: float,
    q0: ArrayLike,
    s0: ArrayLike,
    dt: float | Integrator = 1e-2,
) -> Motion:
    """Let a reduced model move under torques.

    A floating robot keeps its momentum, and wheels roll without slip, to round-off: their
    velocities are lifted from the shape velocities, (3.3.38) and (4.3.25), not integrated.

    Parameters
    ----------
    model : ReducedModel
        The reduced model, by momentum, by wheels or unreduced.
    torque : callable, array_like or None
        Control forces and torques, shape (nu,), N and N m: a function u(t) or u(t, q, s),
        constants, or none for a free motion.
    duration : float
        How long, s; a whole number of steps.
    q0, s0 : array_like
        Configuration and shape velocities at the start, shapes (nq,) and (ns,).
    dt : float or Integrator
        Step of the record, s; or method, step, tolerances, and whether to evaluate the model by
        machine code. Methods are "dop853" (adaptive, of order eight; quaternions are brought back
        to unit norm between the steps of the record), the default with a number, and "rkmk4"
        (Munthe-Kaas of order four on the groups of the joints, with fixed steps).

    Returns
    -------
    Motion
        The record.

    Raises
    ------
    SimulationError
        If `model` is no reduced model, a time or tolerance is not above zero, the state becomes
        non-finite, or the wheels no longer determine the motion. The motion until then is the
        error's attribute `run`.
        If it has to be compiled and cannot be.
    ShapeError, NonFiniteError
        If the start or the torques are not finite numbers of the right shape.
    UnknownNameError
        If there is no such method.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.orbital_crawler(), momentum=[0, 0, 0, 0, 0, 30.0])
    >>> q0 = model.robot.neutral()
    >>> motion = cc.simulation.forced_motion(model, None, 1.0, q0, [0.1] * model.ns, dt=0.1)
    >>> bool(motion.momentum_drift.max() < 1e-12)
    True
    """
    started = time.perf_counter()
    _check_model("forced_motion", model)
    where = f"motion of `{model.name}`"
    options = dt if isinstance(dt, Integrator) else Integrator("dop853", dt)
    dt, method, progress = options.dt, options.method, options.progress
    steps, _ = grid(where, duration, dt, None)
    if options.control_period is not None:
        raise SimulationError(
            f"{where}, `control_period`",
            expected="none: torques are functions of time or state",
            came=f"{options.control_period:g} s",
            cure="Leave it out.",
        )
    if method not in MOTION_METHODS:
        raise unknown_name(f"{where}, `method`", "method", method, MOTION_METHODS)
    q = _start(model, q0)
    s = shape_start(where, model, s0)
    drive = Drive(model, torque, where)
    model.velocity(q, s)  # refuses a start that is not finite
    rates = _rates(model, on_groups=method != "dop853")
    made = machine_code(where, options, steps, (model, "motion", method), lambda: [rates])
    rates = made[0] if made else rates
    # Work is measured against the energy at velocities of one, or heavy robots would go slow.
    atol = np.full(model.nq + model.ns + 1, options.atol or 1e-13)
    atol[-1] *= max(1.0, float(np.trace(model.mass_matrix(q))))
    taken = _Steps(model, drive, rates, (options.rtol or 1e-12, atol))
    advance = taken.adaptive if method == "dop853" else taken.on_groups

    states: list[_State] = [(q, s, 0.0)]
    fault: ConcurError | None = None
    with track(progress, f"moving {model.name}", steps) as report:
        for k in range(steps):
            if model.regularity(states[-1][0]) < UNDETERMINED:
                # No step is short enough there.
                fault = _undetermined(where, model, k * dt)
                break
            try:
                states.append(advance(k * dt, (k + 1) * dt, states[-1]))
            except _DivergedError as error:
                fault = _diverged(where, error, k * dt)
                break
            report(k + 1)
    times = np.arange(len(states)) * dt
    q_rows, s_rows, work = (np.array(part) for part in zip(*states, strict=True))
    u = [drive(t, q, s) for t, (q, s, _) in zip(times, states, strict=True)]
    arrays = {"t": times, "q": q_rows, "s": s_rows, "u": np.array(u), "work": work}
    motion = motion_of(model, arrays, method, time.perf_counter() - started)
    if fault is not None:
        fault.data["run"] = motion
        raise fault
    return motion


def _check_model(where: str, model: object) -> None:
    if not isinstance(model, ReducedModel):
        raise SimulationError(
            f"{where}, `model`",
            expected="a reduced model",
            came=f"{type(model).__name__} {model!r:.40}",
            cure="Make one of a robot with concur.reduce(robot).",
        )


def _start(model: ReducedModel, q0: ArrayLike) -> np.ndarray:
    q = model.system.check_configuration(q0, "`q0`")
    if isinstance(model.system, Mechanism):
        check_contacts(model.system, q, "`q0`")
    return q


def _dop853(
    slope: Callable[[float, np.ndarray], np.ndarray],
    start: float,
    state: np.ndarray,
    end: float,
    tolerances: tuple[float, Any],
    first: float | None = None,
) -> scipy.integrate.DOP853:
    """Integrate to the next row of the record; the status of the solver may be "failed"."""
    rtol, atol = tolerances
    solver = scipy.integrate.DOP853(
        slope, start, state, end, first_step=first, rtol=rtol, atol=atol
    )
    while solver.status == "running":
        solver.step()
    return solver


_State = tuple[np.ndarray, np.ndarray, float]


class _DivergedError(Exception):
    """The state is non-finite or too fast."""


def _rates(model: ReducedModel, on_groups: bool) -> ca.Function:
    """Rates of coordinates, or of displacements from q: (q, moved, s, u) to (rate, sdot, power)."""
    robot = model.system
    start, s = ca.SX.sym("q", model.nq), ca.SX.sym("s", model.ns)
    moved, u = ca.SX.sym("moved", model.nv), ca.SX.sym("u", model.nu)
    q: Array = robot.integrate(start, moved) if on_groups else start
    v = model.velocity(q, s)
    rate = displacement_rate(robot, q, moved, v) if on_groups else robot.rate(q, v)
    power = ca.dot(u, control_velocities(robot, q, v)) - ca.dot(v, damping_forces(robot, q, v))
    rates = [rate, model.acceleration(q, s, u), power]
    return ca.Function(
        "rates",
        [start, moved, s, u],
        [ca.densify(ca.SX(r)) for r in rates],
        ["q", "moved", "s", "u"],
        ["rate", "sdot", "power"],
        {"cse": True},
    )


class _Steps:
    """Steps of the reduced model from one row of the record to the next."""

    def __init__(
        self, model: ReducedModel, drive: Drive, rates: ca.Function, tolerances: tuple[float, Any]
    ) -> None:
        shapes = [rates.size_out(i) for i in range(rates.n_out())]
        self._evaluator = Evaluator(rates, shapes, f"motion of `{model.name}`", can_fail=False)
        self._robot, self._drive, self._nq = model.system, drive, model.nq
        self._rtol, self._atol = tolerances
        self._step: float | None = None

    def adaptive(self, start: float, end: float, state: _State) -> _State:
        """Take steps by Dormand and Prince's method of order eight."""
        nq, (q, s, work) = self._nq, state

        def slope(t: float, z: np.ndarray) -> np.ndarray:
            try:
                return np.concatenate(self._rates(t, z[:nq], None, z[nq:-1]))
            except _DivergedError:
                # A stage of a trial step may overshoot: the method then takes a shorter one.
                return np.full(z.size, np.nan)

        if self._step is None:
            self._rates(start, q, None, s)  # raises the error of an invalid start
        first = None if self._step is None else min(self._step, end - start)
        z0 = np.concatenate([q, s, [work]])
        solver = _dop853(slope, start, z0, end, (self._rtol, self._atol), first)
        if solver.status == "failed":
            raise _DivergedError
        self._step, z = solver.h_abs, solver.y
        return self._robot.normalize(z[:nq]), z[nq:-1].copy(), float(z[-1])

    def on_groups(self, start: float, end: float, state: _State) -> _State:
        """Take one classic Runge-Kutta step on the algebra of the joint groups."""
        (q, s, work), h = state, end - start
        moved, s_next, work_next = runge_kutta(
            lambda node, moved, s, _: self._rates(start + node * h, q, moved, s),
            [np.zeros(self._robot.nv), s, np.array([work])],
            h,
        )
        if not np.abs(s_next).max(initial=0.0) < FASTEST:
            raise _DivergedError
        return self._robot.integrate(q, moved), s_next, float(work_next[0])

    def _rates(
        self, t: float, start: np.ndarray, moved: np.ndarray | None, s: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        inputs, outputs = self._evaluator.inputs, self._evaluator.outputs
        # Written so that a NaN is refused too.
        if not np.abs(s).max(initial=0.0) < FASTEST:
            raise _DivergedError
        q = start
        if moved is not None:
            inputs[1][:, 0] = moved
            if self._drive.needs_state:
                q = self._robot.integrate(start, moved)
        inputs[0][:, 0], inputs[2][:, 0] = start, s
        inputs[3][:, 0] = self._drive(t, q, s)
        self._evaluator.trigger()
        rate, sdot, power = outputs
        if not (np.isfinite(rate).all() and np.isfinite(sdot).all()):
            raise _DivergedError
        return rate[:, 0].copy(), sdot[:, 0].copy(), power[0].copy()


def _undetermined(where: str, model: ReducedModel, t: float) -> ConcurError:
    names = ", ".join(model.system.freedom_names[i] for i in model.first.dependent)
    return SimulationError(
        f"{where}, t = {t:.6g} s",
        expected="a configuration in which the other velocities follow from the shape's",
        came=f"a singular one: the constraints do not determine {names}",
        cure="Start elsewhere or steer past it; `model.regularity` is the distance from it. The "
        "motion up to here is in the attribute `run`.",
        time=t,
    )


def _diverged(where: str, error: _DivergedError, t: float) -> ConcurError:
    fault = SimulationError(
        f"{where}, t = {t:.6g} s",
        expected="a finite state after the step",
        came=f"velocities beyond {FASTEST:g} or no number at all",
        cure="Lower the torques, or take a shorter step. The motion up to here is in the attribute "
        "`run`.",
        time=t,
    )
    fault.__cause__ = error
    return fault


def reconstruct(
    model: ReducedModel,
    q0: ArrayLike,
    times: ArrayLike,
    speeds: Callable[[float], ArrayLike] | ArrayLike,
    rtol: float = 1e-12,
    atol: float = 1e-13,
) -> np.ndarray:
    """Follow shape velocities over time: the configurations they lead to.

    For wheels this is odometry; a floating robot is carried by its momentum. Torques and the
    inertia of what is not lifted play no part: ``qdot`` follows from v = H s + h.

    Parameters
    ----------
    model : ReducedModel
        The reduced model.
    q0 : array_like
        Configuration at the first time, shape (nq,).
    times : array_like
        Increasing times at which configurations are wanted, shape (k,), s.
    speeds : callable or array_like
        Shape velocities: a function s(t) of shape (ns,), or samples at the times, shape
        (k, ns), between which a cubic spline is laid (fewer than four samples: a polynomial).
    rtol, atol : float
        Relative and absolute (m, rad) tolerance from one time to the next.

    Returns
    -------
    numpy.ndarray
        Configurations, shape (k, nq), quaternions of unit norm.

    Raises
    ------
    ShapeError, NonFiniteError
        If an argument is not finite or has another shape.
    SimulationError
        If the times do not increase, or the wheels do not determine the motion on the way.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> straight = [1.0, 1.0, 0.0, 0.0, 0.0]
    >>> start = model.robot.neutral()
    >>> path = cc.simulation.reconstruct(model, start, [0.0, 2.0], lambda t: straight)
    >>> path[-1, :3].round(6).tolist()
    [0.2, 0.0, 0.0]
    """
    _check_model("reconstruct", model)
    where = f"reconstruction of `{model.name}`"
    robot = model.system
    check_tolerance(where, "rtol", rtol, 100 * np.finfo(float).eps)
    check_tolerance(where, "atol", atol, 0.0)
    q = _start(model, q0)
    instants = _increasing(times, where)
    shape_speeds = _speeds(model, instants, speeds, where)
    at, s = ca.SX.sym("q", model.nq), ca.SX.sym("s", model.ns)
    moved = ca.densify(robot.rate(at, model.velocity(at, s)))
    graph = ca.Function("rate", [at, s], [moved], ["q", "s"], ["rate"], {"cse": True})
    made = machine_code(where, Integrator(), instants.size, (model, "odometry"), lambda: [graph])
    graph = made[0] if made else graph
    rate = Evaluator(graph, [(model.nq,)], where, can_fail=False)

    def slope(t: float, q: np.ndarray) -> np.ndarray:
        rate.inputs[0][:, 0], rate.inputs[1][:, 0] = q, shape_speeds(t)
        rate.trigger()
        return rate.outputs[0][:, 0].copy()

    path = [q]
    for start, end in pairwise(instants):
        if not np.isfinite(slope(float(start), path[-1])).all():
            raise _lost(where, float(start))
        solver = _dop853(slope, start, path[-1], end, (rtol, atol))
        if solver.status == "failed":
            raise _lost(where, float(start))
        path.append(robot.normalize(solver.y))
    return np.array(path)


def _increasing(times: ArrayLike, where: str) -> np.ndarray:
    instants = finite_floats(times, f"{where}, `times`")
    if instants.ndim != 1 or not instants.size:
        raise shape_error(f"{where}, `times`", (max(1, instants.size),), instants.shape)
    if (np.diff(instants) <= 0.0).any():
        k = int(np.argmax(np.diff(instants) <= 0.0))
        raise SimulationError(
            f"{where}, `times`",
            expected="times that increase",
            came=f"{instants[k]:.6g} s before {instants[k + 1]:.6g} s",
            cure="Sort them, each once.",
        )
    return instants


def _speeds(
    model: ReducedModel, instants: np.ndarray, speeds: Any, where: str
) -> Callable[[float], np.ndarray]:
    place = f"{where}, `speeds` ({', '.join(model.shape_names)})"
    if not callable(speeds):
        samples = finite_floats(speeds, place, (instants.size, model.ns))
        if instants.size == 1:
            return lambda t: np.asarray(samples[0])
        spline = scipy.interpolate.make_interp_spline(
            instants, samples, k=min(3, instants.size - 1)
        )
        return lambda t: np.asarray(spline(t))

    def checked(t: float) -> np.ndarray:
        return finite_floats(speeds(t), f"{place}, t = {t:.6g} s", (model.ns,))

    return checked


def _lost(where: str, t: float) -> SimulationError:
    return SimulationError(
        f"{where}, t = {t:.6g} s",
        expected="a velocity that follows from the shape velocities",
        came="none that is finite",
        cure="The wheels do not determine the motion there: see `model.regularity`.",
        time=t,
    )
