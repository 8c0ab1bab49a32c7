"""Disturbances of a servo's loop: errors of torque, inertia and momentum.

With the decoupling matrix Jg = J H, the reduced mass matrix Mhat and the actuation H^T B, a torque
error du causes the disturbance d = Jg Mhat^-1 H^T B du. A law with the inertias of a model (index
m) in place of the robot's causes at the commanded acceleration nu the disturbance

    d = Jg Mhat^-1 [ H^T B u + Mhat b' - chat ] - nu,   u = (H^T B)_m^-1 (Mhat_m sdot_m + chat_m),
    sdot_m = Jg_m^-1 (nu - b_m),

which is affine in nu: a constant at the command of the reference, and a matrix times the feedback.
Where Jg, H and b do not depend on inertias, as on wheels, that matrix is
Jg Mhat^-1 (Mhat_m - Mhat) Jg^-1.

All bounds are evaluated at given states and may be exceeded between them: they are estimates from
samples, and a tube that uses them is never PROVED.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from concur.certify._checks import check, check_sizes
from concur.certify._disturbance import Disturbance
from concur.codegen import finite_floats, shape_error
from concur.control import Servo
from concur.errors import ReductionError
from concur.robot import Mechanism

MOST_CORNERS = 1 << 16
"""Largest number of corners evaluated, over all configurations."""


def torque_disturbance(
    servo: Servo,
    q: ArrayLike,
    bounds: ArrayLike,
    method: Literal["vertices", "rows"] = "vertices",
) -> Disturbance:
    """Bound the disturbance by torque errors at given configurations.

    Parameters
    ----------
    servo : Servo
        The servo.
    q : array_like
        Configurations, shape (nq,) or (k, nq).
    bounds : array_like
        Largest error of each control input, caused by friction, ripple or quantisation,
        nonnegative, shape (nu,) or a number, N and N m.
    method : str
        "vertices" evaluates every combination of largest errors, "rows" only the sums of
        absolute values: the same bound for each component, a larger one for lengths.

    Returns
    -------
    Disturbance
        Sampled: the bound holds at these configurations.

    Raises
    ------
    ShapeError
        If a configuration or the bounds have a wrong shape.
    NonFiniteError
        If there is a NaN or an infinity.
    OutputError
        If a bound is negative, the method unknown, or there are too many combinations.
    """
    where = f"torque errors of `{servo.name}`"
    most = np.broadcast_to(finite_floats(bounds, where, (), (servo.nu,)), (servo.nu,))
    check_sizes(where, most)
    known, cure = isinstance(method, str), 'Omit it to use "vertices".'
    known = known and method in ("vertices", "rows")
    check(known, f"{where}, `method`", '"vertices" or "rows"', repr(method)[:40], cure)
    matrices = np.array([torque_effect(servo, at) for at in rows(servo, q, servo.nq, "q")]) * most
    source = f"torque errors at {_count(matrices, 'configuration')}"
    components = np.abs(matrices).sum(axis=2).max(axis=0)
    if method == "rows":
        return Disturbance(components, source, sampled=True)
    used = np.flatnonzero(most)
    check(
        len(matrices) << max(used.size - 1, 0) <= MOST_CORNERS,
        f"{where}, `method`",
        f"at most {MOST_CORNERS} combinations over all configurations",
        f"{len(matrices)} configurations of {used.size} controls",
        'Use method="rows".',
    )
    # One of each pair of opposite corners.
    tails = product((-1.0, 1.0), repeat=max(used.size - 1, 0))
    signs = np.zeros((1 << max(used.size - 1, 0), servo.nu))
    signs[:, used] = [(1.0, *tail)[: used.size] for tail in tails]
    points = np.einsum("kij,cj->kci", matrices, signs).reshape(-1, servo.size)
    return Disturbance(components, source, sampled=True, points=points)


def torque_effect(servo: Servo, q: ArrayLike) -> np.ndarray:
    """Output acceleration per unit torque: Jg Mhat^-1 H^T B.

    Parameters
    ----------
    servo : Servo
        The servo.
    q : array_like
        Configuration, shape (nq,).

    Returns
    -------
    numpy.ndarray
        Shape (size, nu).
    """
    model = servo.model
    forced = np.linalg.solve(model.mass_matrix(q), model.input_matrix(q))
    return np.asarray(servo.decoupling(q) @ forced)


def model_disturbance(
    servo: Servo, robot: Mechanism, q: ArrayLike, w: ArrayLike, commands: ArrayLike | None = None
) -> Disturbance:
    """Bound the disturbance by errors of mass and inertia at given states.

    Parameters
    ----------
    servo : Servo
        The servo, with the inertias of its model and as many control inputs as outputs.
    robot : Mechanism
        The same robot with its actual inertias.
    q, w : array_like
        Configurations and velocities as the law takes them, shapes (k, nq) and (k, nw), or one
        of each.
    commands : array_like, optional
        Commanded acceleration nu at zero error in each state, shape (k, size). Default
        zeros.

    Returns
    -------
    Disturbance
        Sampled: the part without feedback, and the matrices of the part that grows with it.

    Raises
    ------
    ReductionError
        If the robot floats and the law computes its base velocity from the momentum: a wrong
        inertia then also makes that velocity wrong, which this bound does not cover.
    OutputError
        If there are more control inputs than outputs.
    ShapeError
        If the states do not fit the servo.
    NonFiniteError
        If there is a NaN or an infinity.
    """
    where = f"wrong inertias of `{servo.name}`"
    if servo.model.takes_momentum and not servo.use_measured_velocity:
        raise ReductionError(
            where,
            expected="a law that measures its velocities",
            came="one that computes the base velocity from the momentum and the inertias",
            cure="Use dataclasses.replace(servo, use_measured_velocity=True), and all velocities.",
        )
    check_square(servo, where)
    states = rows(servo, q, servo.nq, "q")
    speeds = rows(servo, w, servo.nw, "w", len(states))
    given = np.zeros((len(states), servo.size)) if commands is None else commands
    commanded = rows(servo, given, servo.size, "commands", len(states))
    truth = replace(servo, model=servo.model.on(robot), use_measured_velocity=True)
    rest, growth = [], []
    for at, speed, nu in zip(states, speeds, commanded, strict=True):
        drift, effect = _response(servo, truth, at, speed)
        rest.append(drift + (effect - np.eye(servo.size)) @ nu)
        growth.append(effect - np.eye(servo.size))
    points = np.array(rest)
    return Disturbance(
        np.abs(points).max(axis=0),
        f"wrong inertias at {_count(points, 'state')}",
        sampled=True,
        points=points,
        feedback=np.array(growth),
    )


def momentum_disturbance(servo: Servo, q: ArrayLike, v: ArrayLike) -> Disturbance:
    """Bound the disturbance by a wrong momentum at given states, with the reference at rest.

    Parameters
    ----------
    servo : Servo
        The servo of a floating robot.
    q, v : array_like
        Measured configurations and velocities, the base's included, shapes (k, nq) and (k, nv),
        or one of each.

    Returns
    -------
    Disturbance
        Sampled; zero for a law that measures its velocities. It refers to the error of the
        measured motion.

    Raises
    ------
    ReductionError
        If the robot was not reduced by a momentum.
    ShapeError
        If the states do not fit the robot.
    NonFiniteError
        If there is a NaN or an infinity.
    """
    states = rows(servo, q, servo.nq, "q")
    speeds = rows(servo, v, servo.model.nv, "v", len(states))
    found = [servo.mismatch(at, speed) for at, speed in zip(states, speeds, strict=True)]
    points = np.array([one.disturbance if one.used else np.zeros(servo.size) for one in found])
    source = f"wrong momentum in {_count(points, 'state')}, reference at rest"
    return Disturbance(np.abs(points).max(axis=0), source, sampled=True, points=points)


def _response(
    servo: Servo, truth: Servo, q: np.ndarray, w: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Output acceleration of the true robot under the law, as an affine function of nu."""
    model, real = servo.model, truth.model
    v = w if servo.use_measured_velocity else model.velocity(q, w)
    still = np.zeros(model.ns)
    spread = np.linalg.inv(servo.decoupling(q))
    _, drift = servo.motion(q, servo.velocity(q, w))
    forces = model.shape_forces(q, v, still) - model.mass_matrix(q) @ spread @ drift
    torque = np.linalg.inv(model.input_matrix(q))
    moved = np.linalg.solve(real.mass_matrix(q), real.input_matrix(q))
    _, own_drift = truth.motion(q, truth.velocity(q, v))
    own_bias = np.linalg.solve(real.mass_matrix(q), real.shape_forces(q, v, still))
    outputs = truth.decoupling(q)
    constant = own_drift - outputs @ own_bias + outputs @ moved @ torque @ forces
    effect = outputs @ moved @ torque @ model.mass_matrix(q) @ spread
    return np.asarray(constant), np.asarray(effect)


def check_square(servo: Servo, where: str) -> None:
    """Reject a servo with more control inputs than output coordinates."""
    check(
        servo.size == servo.nu,
        where,
        "as many controls as output coordinates",
        f"{servo.nu} controls and {servo.size} coordinates",
        "Add outputs until there is no redundancy, and leave out motors in excess of shape "
        "velocities.",
    )


def check_unmeasured(servo: Servo, where: str) -> None:
    """Reject a servo that measures all velocities, or has integral action."""
    expected, came = "a law that takes shape velocities", "one that measures all velocities"
    cure = "Use dataclasses.replace(servo, use_measured_velocity=False)."
    check(not servo.use_measured_velocity, where, expected, came, cure)
    cure = "Pass dataclasses.replace(servo, integral=None) for the law without it."
    check(servo.integral is None, where, "a law without a state", "integral action", cure)


def rows(
    servo: Servo, values: ArrayLike, size: int, name: str, count: int | None = None
) -> np.ndarray:
    """Check vectors of states, shape (size,) or (k, size), and return them as rows."""
    where = f"servo of `{servo.name}`, `{name}`"
    found = finite_floats(values, where)
    found = found[None] if found.ndim == 1 else found
    if found.ndim != 2 or not len(found) or found.shape != (count or len(found), size):
        raise shape_error(where, (1 if count is None else count, size), found.shape)
    return found


def _count(found: np.ndarray, name: str) -> str:
    return f"{len(found)} {name}{'' if len(found) == 1 else 's'}"
