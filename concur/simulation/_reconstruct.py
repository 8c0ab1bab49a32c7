"""Configurations from shape velocities: odometry of wheels, reconstruction from momentum."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import DOP853
from scipy.interpolate import make_interp_spline

from concur.codegen import Evaluator, finite_floats, shape_error
from concur.errors import SimulationError
from concur.reduction import ReducedModel
from concur.robot import Mechanism
from concur.simulation._integrator import check_tolerance
from concur.simulation._machine_code import is_compiled, machine_code


def reconstruct(
    model: ReducedModel,
    q0: ArrayLike,
    times: ArrayLike,
    speeds: Callable[[float], ArrayLike] | ArrayLike,
    rtol: float = 1e-12,
    atol: float = 1e-13,
    compiled: bool | None = None,
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
    compiled : bool, optional
        Whether to evaluate the lift by machine code, as for `simulate`. Default: from 10000 times
        on, if there is a C compiler.

    Returns
    -------
    numpy.ndarray
        Configurations, shape (k, nq), quaternions of unit norm.

    Raises
    ------
    ShapeError, NonFiniteError
        If an argument is not finite or has another shape.
    SimulationError
        If the times do not increase, or the wheels do not determine the motion on the way, or
        if it has to be compiled and cannot be.

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
    if not isinstance(model, ReducedModel):
        raise SimulationError(
            "reconstruct, `model`",
            expected="a reduced model",
            came=f"{type(model).__name__} {model!r:.40}",
            cure="Make one of a robot with concur.reduce(robot).",
        )
    where = f"reconstruction of `{model.name}`"
    robot = model.system
    check_tolerance(where, "rtol", rtol, 100 * np.finfo(float).eps)
    check_tolerance(where, "atol", atol, 0.0)
    q = robot.check_configuration(q0, "`q0`")
    if isinstance(robot, Mechanism):
        robot.check_contacts(q, "`q0`")
    instants = _increasing(times, where)
    shape_speeds = _speeds(model, instants, speeds, where)
    graph = _rate(model)
    if is_compiled(where, compiled, instants.size):
        demanded = bool(compiled)
        made = machine_code(where, (model, "odometry"), lambda: [graph], False, demanded)
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
        solver = DOP853(slope, start, path[-1], end, rtol=rtol, atol=atol)
        while solver.status == "running":
            solver.step()
        if solver.status == "failed":
            raise _lost(where, float(start))
        path.append(robot.normalize(solver.y))
    return np.array(path)


def _rate(model: ReducedModel) -> ca.Function:
    q, s = ca.SX.sym("q", model.nq), ca.SX.sym("s", model.ns)
    rate = ca.densify(model.system.rate(q, model.velocity(q, s)))
    return ca.Function("rate", [q, s], [rate], ["q", "s"], ["rate"], {"cse": True})


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
        spline = make_interp_spline(instants, samples, k=min(3, instants.size - 1))
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
