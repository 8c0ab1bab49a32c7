"""Displacement of a body after a closed loop of the shape: geometric and dynamic phase."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np
import scipy
from numpy.typing import ArrayLike

from concur.errors import ShapeError, SimulationError, shown
from concur.outputs.references import Loop
from concur.planning._fibre import Fibre, fibre_of
from concur.reduction import ReducedModel

POINTS = 64
"""Points of the first line integral around a loop; it doubles until the integral converges."""

MOST_POINTS = 2**14
"""Points at which the line integral ends without convergence."""


@dataclass(frozen=True, eq=False)
class GeometricPhase:
    """The displacement of a body that a closed loop of the shape leaves.

    Made by `geometric_phase`. Logarithms are in the basis of the body's joint, m and rad, in the
    order of `names`. A displacement is ``g0^-1 g1``, in the axes of the body at the start; for a
    ball that rolls without spin ``g1 g0^-1``, in the axes of its parent.

    Parameters
    ----------
    loop : Loop
        The loop.
    body : str
        The body.
    names : tuple of str
        Names of its n freedoms.
    pose : numpy.ndarray
        Displacement at zero momentum, or on wheels, shape (4, 4).
    log : numpy.ndarray
        Its logarithm, shape (n,).
    area_rule : numpy.ndarray
        First order in the areas of the loop: the curvature at the centre of the loop times the
        areas, shape (n,).
    integral : numpy.ndarray
        Minus the line integral of the connection around the loop, shape (n,): the logarithm where
        the group commutes. An angle counts all turns.
    exact : numpy.ndarray
        For which entries this is so, shape (n,), bool.
    momentum : tuple of float
        Spatial momentum of the robot, shape (6,), zeros on wheels; or that of a symmetry group.
    dynamic : numpy.ndarray
        Displacement by the momentum alone, shape (4, 4): the locked velocity along the loop,
        without the part of the connection.
    total : numpy.ndarray
        Displacement by both, shape (4, 4). It is no product of the other two unless the group
        commutes.

    See Also
    --------
    geometric_phase : makes one.

    Examples
    --------
    >>> import concur as cc
    >>> satellite = cc.reduce(cc.robots.wheel_satellite())
    >>> loop = cc.references.Loop([0, 0, 0], cosine=[[1, 0, 0]], sine=[[0, 1, 0]])
    >>> cc.planning.geometric_phase(satellite, loop).pose.shape
    (4, 4)
    """

    loop: Loop
    body: str
    names: tuple[str, ...]
    pose: np.ndarray
    log: np.ndarray
    area_rule: np.ndarray
    integral: np.ndarray
    exact: np.ndarray
    momentum: tuple[float, ...]
    dynamic: np.ndarray
    total: np.ndarray

    def __str__(self) -> str:
        parts = zip(self.names, self.log, strict=True)
        return f"`{self.body}` after the loop: " + ", ".join(f"{n} {x:.6g}" for n, x in parts)

    def __repr__(self) -> str:
        return f"<{shown(str(self), 180)}>"


def geometric_phase(
    model: ReducedModel,
    loop: Loop | ArrayLike,
    q0: ArrayLike | None = None,
    body: str | None = None,
) -> GeometricPhase:
    """Find the displacement that is left when the shape returns to where it began.

    The base of a robot that floats moves with ``xi = a - A(r) rdot``, with the connection A and
    the locked velocity a of a constant momentum; on wheels a is zero. At zero momentum the
    displacement depends on the loop only, not on its timing: this is the geometric phase. For small
    loops it is the curvature times the area, and with the opposite sign of the
    curvature of `MomentumReduction`.

    Parameters
    ----------
    model : ReducedModel
        A robot that floats, a Chaplygin system on wheels, a ball that rolls without spin, or a
        `LagrangianSystem` with a symmetry, or with constraints that determine a factor.
    loop : Loop or array_like
        Closed curve of the shape, in the order of ``model.shape_names``; or points of one, as for
        `Loop.through`, shape (k, ns), m and rad. Its timing matters for a momentum only.
    q0 : array_like, optional
        Configuration from which the body starts, shape (nq,), of importance for a momentum only.
        The shape starts where the loop does. Default: the neutral configuration.
    body : str, optional
        Body, or factor of a `LagrangianSystem`, whose displacement it is; default the base, or the
        first whose velocities follow from the shape alone.

    Returns
    -------
    GeometricPhase
        Group element, logarithm, area rule, line integral, dynamic and total displacement.

    Raises
    ------
    ReductionError
        If the shape moves no body, or the lift has no symmetry.
    UnknownNameError
        If the shape does not move `body`.
    ShapeError, NonFiniteError
        If the loop has another number of coordinates than the shape, or a number is not finite.
    SimulationError
        If the wheels do not determine the motion on the loop.

    References
    ----------
    Source 000, (4.8), (6.4), (6.5).

    Examples
    --------
    A planar floater rotates when its two joints go around a circle:

    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.planar_floater())
    >>> circle = cc.references.Loop([1.0, 0.9], [[0.4, 0.0]], [[0.0, 0.4]])
    >>> phase = cc.planning.geometric_phase(model, circle)
    >>> bool(abs(phase.log[2] - phase.integral[2]) < 1e-10)
    True
    """
    fibre = fibre_of(model, "geometric_phase", body)
    path = loop if isinstance(loop, Loop) else Loop.through(loop)
    if path.size != model.ns:
        raise ShapeError(
            f"geometric_phase of `{model.name}`, `loop`",
            expected=f"{model.ns} coordinates: {', '.join(model.shape_names)}",
            came=f"{path.size}",
            cure="Write a coordinate for each; zeros for those that stay.",
        )
    robot = model.system
    start = np.array(robot.neutral() if q0 is None else robot.check_configuration(q0, "`q0`"))
    start[list(model.shape_coordinates)] = path.start
    moved = (
        {parts: _followed(fibre, path, start, parts) for parts in ((1, 0), (0, 1), (1, 1))}
        if model.keeps_momentum and any(model.momentum)
        else {(1, 0): _followed(fibre, path, start)}
    )
    pose = moved[1, 0]
    areas = path.areas
    enclosed = np.array([areas[i, j] for i, j in fibre.pairs])
    return GeometricPhase(
        path,
        fibre.body,
        fibre.names,
        pose,
        fibre.log(pose),
        np.array(fibre.curvature(path.center)) @ enclosed,
        _integral(fibre, path),
        fibre.commuting,
        model.momentum if model.keeps_momentum else (0.0,) * 6,
        moved.get((0, 1), np.eye(4)),
        moved.get((1, 1), pose),
    )


def _followed(
    fibre: Fibre, loop: Loop, start: np.ndarray, parts: tuple[int, int] = (1, 0)
) -> np.ndarray:
    """Displacement along a loop, by the lift H s, the drift h, or both."""
    rate, model = _rates(fibre, start, parts), fibre.model
    place = f"geometric_phase of `{model.name}`"

    def slope(t: float, own: np.ndarray) -> np.ndarray:
        sample = loop(t * loop.duration)
        value = rate(own, sample.flat_pose, sample.twist * loop.duration, loop.duration)
        found = np.array(value)[:, 0]
        if not np.isfinite(found).all():
            raise SimulationError(
                f"{place}, t = {t * loop.duration:.6g} s",
                expected="a velocity that follows from that of the shape",
                came="one that is not finite",
                cure="Choose a loop with distance from singular shapes: see `model.regularity`.",
                time=t * loop.duration,
            )
        return found

    ends = scipy.integrate.solve_ivp(
        slope, (0.0, 1.0), start[fibre.entries], method="DOP853", rtol=1e-12, atol=1e-13
    )
    last = start.copy()
    last[fibre.entries] = ends.y[:, -1]
    last = np.asarray(model.system.normalize(last))
    return fibre.displacement(fibre.pose(start), fibre.pose(last))


def _rates(fibre: Fibre, start: np.ndarray, parts: tuple[int, int]) -> Callable[..., ca.DM]:
    """Rate of the body's coordinates from them, the shape, its displacement rate and a time."""
    model = fibre.model
    own = ca.SX.sym("own", fibre.entries.stop - fibre.entries.start)
    r, s, time = ca.SX.sym("r", model.ns), ca.SX.sym("s", model.ns), ca.SX.sym("time")
    q = ca.SX(ca.DM(start))
    q[list(model.shape_coordinates)], q[fibre.entries] = r, own
    horizontal, drift = model.lift(q)
    v = parts[0] * horizontal @ s + parts[1] * time * drift
    rate = ca.densify(model.system.rate(q, v)[fibre.entries, :])
    function: Callable[..., ca.DM] = ca.Function("rate", [own, r, s, time], [rate], {"cse": True})
    return function


def _integral(fibre: Fibre, loop: Loop) -> np.ndarray:
    """Minus the integral of the connection around the loop, by the trapezoidal rule."""
    last, count = np.full(fibre.dim, np.nan), POINTS
    while count <= MOST_POINTS:
        x = np.arange(count) / count
        forms = np.array(fibre.connection(loop.places(x).T)).reshape(fibre.dim, count, -1)
        found = -np.einsum("dkn,kn->d", forms, loop.slopes(x)) * loop.cycles / count
        if np.abs(found - last).max() <= 1e-14 * max(1.0, np.abs(found).max()):
            break
        last, count = found, 2 * count
    return np.asarray(found)
