"""Disturbances of a servo's loop: wrong torques, wrong inertias and a wrong momentum.

With the decoupling matrix Jg = J H, the reduced mass matrix Mhat and the actuation H^T B, a
torque that is wrong by du pushes the outputs by d = Jg Mhat^-1 H^T B du. A law that has the
inertias of a model (index m) in place of the robot's own makes of a command nu the push

    d = Jg Mhat^-1 [ H^T B u + Mhat b' - chat ] - nu,   u = (H^T B)_m^-1 (Mhat_m sdot_m + chat_m),
    sdot_m = Jg_m^-1 (nu - b_m),

which is affine in nu: what is left at the command of the reference, and a matrix times the
feedback. Where Jg, H and b do not depend on inertias, as on wheels, that matrix is
Jg Mhat^-1 (Mhat_m - Mhat) Jg^-1.

All of this is evaluated at states that are given. Between them it may be more: such bounds are
samples, and no tube from them is called proved.
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
from concur.multibody import Mechanism

MOST_CORNERS = 1 << 16
"""Most corners, over all configurations, that are looked at one by one."""


def torque_disturbance(
    servo: Servo,
    q: ArrayLike,
    bounds: ArrayLike,
    method: Literal["vertices", "rows"] = "vertices",
) -> Disturbance:
    """Bound what wrong torques do at given configurations.

    Parameters
    ----------
    servo : Servo
        The servo.
    q : array_like
        Configurations, shape (nq,) or (k, nq).
    bounds : array_like
        Largest error of each control, by friction, ripple or quantisation, not negative, shape
        (nu,) or a number, N and N m.
    method : str
        "vertices" looks at every combination of largest errors, "rows" at the sums of the
        absolute values only: as good for each component, more for lengths.

    Returns
    -------
    Disturbance
        Sampled: it bounds what happens at these configurations.

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
    known, cure = isinstance(method, str), "Leave it out for the tighter one."
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
        'Take the method "rows".',
    )
    # One of each pair of opposite corners.
    tails = product((-1.0, 1.0), repeat=max(used.size - 1, 0))
    signs = np.zeros((1 << max(used.size - 1, 0), servo.nu))
    signs[:, used] = [(1.0, *tail)[: used.size] for tail in tails]
    points = np.einsum("kij,cj->kci", matrices, signs).reshape(-1, servo.size)
    return Disturbance(components, source, sampled=True, points=points)


def torque_effect(servo: Servo, q: ArrayLike) -> np.ndarray:
    """Output acceleration per torque: Jg Mhat^-1 H^T B.

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
    """Bound what wrong masses and inertias do at given states.

    Parameters
    ----------
    servo : Servo
        The servo, which knows the inertias of its own model; as many controls as outputs.
    robot : Mechanism
        The same robot with the inertias that it really has.
    q, w : array_like
        Configurations and velocities that the law takes, shapes (k, nq) and (k, nw), or one of
        each.
    commands : array_like, optional
        Output acceleration nu commanded at zero error in each state, shape (k, size). Default
        zeros.

    Returns
    -------
    Disturbance
        Sampled: what is left without feedback, and the matrices of the part that grows with it.

    Raises
    ------
    ReductionError
        If the robot floats and the law does not measure its velocities: then a wrong inertia
        makes the velocity wrong too, which is no disturbance of this kind.
    OutputError
        If there are more controls than outputs.
    ShapeError
        If the states do not fit the servo.
    NonFiniteError
        If there is a NaN or an infinity.
    """
    where = f"wrong inertias of `{servo.name}`"
    if servo.model.takes_momentum and not servo.measured:
        raise ReductionError(
            where,
            expected="a law that measures its velocities",
            came="one that takes the base's velocity from the momentum and the inertias",
            cure="Take servo.as_measured and give all velocities.",
        )
    check_square(servo, where)
    states = rows(servo, q, servo.nq, "q")
    speeds = rows(servo, w, servo.nw, "w", len(states))
    given = np.zeros((len(states), servo.size)) if commands is None else commands
    wanted = rows(servo, given, servo.size, "commands", len(states))
    truth = replace(servo, model=servo.model.on(robot)).as_measured
    rest, growth = [], []
    for at, speed, nu in zip(states, speeds, wanted, strict=True):
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
    """Bound what a wrong momentum does in given states while the reference rests.

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
        Sampled; zero for a law that measures its velocities. The error that it is about is the
        one of the measured motion.

    Raises
    ------
    ReductionError
        If the robot's reduction does not rest on a momentum.
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
    v = w if servo.measured else model.velocity(q, w)
    still = np.zeros(model.ns)
    spread = np.linalg.inv(servo.decoupling(q))
    _, drift = servo.output_motion(q, w)
    forces = model.shape_forces(q, v, still) - model.mass_matrix(q) @ spread @ drift
    torque = np.linalg.inv(model.input_matrix(q))
    moved = np.linalg.solve(real.mass_matrix(q), real.input_matrix(q))
    _, own_drift = truth.output_motion(q, v)
    own_bias = np.linalg.solve(real.mass_matrix(q), real.shape_forces(q, v, still))
    outputs = truth.decoupling(q)
    constant = own_drift - outputs @ own_bias + outputs @ moved @ torque @ forces
    effect = outputs @ moved @ torque @ model.mass_matrix(q) @ spread
    return np.asarray(constant), np.asarray(effect)


def check_square(servo: Servo, where: str) -> None:
    """Reject a servo that has more controls than output coordinates."""
    check(
        servo.size == servo.nu,
        where,
        "as many controls as output coordinates",
        f"{servo.nu} controls and {servo.size} coordinates",
        "Add outputs until no redundancy is left.",
    )


def check_unmeasured(servo: Servo, where: str) -> None:
    """Reject a servo that takes all velocities."""
    expected, came = "a law that takes shape velocities", "one that measures all velocities"
    check(not servo.measured, where, expected, came, "Take servo.unmeasured.")


def rows(
    servo: Servo, values: ArrayLike, size: int, name: str, count: int | None = None
) -> np.ndarray:
    """Check finite vectors of states, shape (size,) or (k, size), and return them in rows."""
    where = f"servo of `{servo.name}`, `{name}`"
    found = finite_floats(values, where)
    found = found[None] if found.ndim == 1 else found
    if found.ndim != 2 or not len(found) or found.shape != (count or len(found), size):
        raise shape_error(where, (1 if count is None else count, size), found.shape)
    return found


def _count(found: np.ndarray, name: str) -> str:
    return f"{len(found)} {name}{'' if len(found) == 1 else 's'}"
