"""Graphs of the estimator: the base from the lift, its correction, and accelerations.

Encoders of the motors measure their joints; the base and all unactuated joints follow from the
affine lift v = H(q) s + h(q). Over a cycle the measured joints move by an increment d, and the
configuration moves by ``H(q') d + h(q') dt`` with q' half way, on the groups of the joints: a
midpoint rule.
The sum of the increments equals the motion of the encoders, so noise of velocities causes no drift.

Past poses of the base are stored relative to a frame that moves with the corrections by an external
source (the anchor): the inertial frame according to the lift alone. So an older measurement is
compared with the present estimate of the pose at its instant, and a correction moves past and
present poses alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from hil._concur import (
    Array,
    Evaluator,
    ReducedModel,
    compiled,
    joint_places,
    quaternion,
    se3,
    solve_positive_definite,
)
from hil._machine import Base, base_of
from hil._transmission import Transmission
from hil.errors import RigError

WEAKEST = 1e-9
"""Fraction of a motion of the base below which a pose source counts as blind to it."""


@dataclass(frozen=True)
class Places:
    """The measured joints in a reduced model."""

    transmission: Transmission
    shape: tuple[int, ...]  # joint that measures each shape velocity
    reconstructed: tuple[str, ...]  # joints that follow from the lift

    @property
    def q(self) -> list[int]:
        """Index of each measured joint in q."""
        return list(self.transmission.q)


def find_places(model: ReducedModel, transmission: Transmission) -> Places:
    """Find the measured coordinates, and check that they determine all others."""
    system, measured = model.system, transmission.v
    missing = [n for n, i in zip(model.shape_names, model.shape, strict=True) if i not in measured]
    if missing:
        raise RigError(
            f"estimator of `{model.name}`",
            expected="a motor's encoder for each shape velocity",
            came=f"no encoder for {', '.join(f'`{name}`' for name in missing)}",
            cure="Actuate these joints, or use a robot whose motion its motors determine: neither "
            "wheels nor momentum determine these velocities from the actuated joints.",
        )
    return Places(
        transmission,
        tuple(measured.index(i) for i in model.shape),
        tuple(
            place.label
            for place in joint_places(system)
            if place.joint.nv and not {*place.freedoms} & {*measured}
        ),
    )


@dataclass(frozen=True)
class Graphs:
    """Compiled functions of one robot, with buffers."""

    step: Evaluator
    """(q, position, velocity, dt, anchor) to (q, s, v, anchored, rates). Inputs: configuration of
    the last cycle, present positions and velocities of the motors, time since the last cycle,
    anchor. Results: present configuration, velocities for the law, all velocities, pose of the base
    in the anchor, and velocities of the measured joints, by least squares if motors share one."""
    acceleration: Evaluator
    """(q, s, u) to the acceleration of the motors due to control inputs u, the inertia of the
    motors, shape (n, n), the torques of the motors that hold the velocities, shape (n,), and the
    acceleration of each motor by a unit of each torque, shape (n, n)."""
    correct: Evaluator | None
    """(q, anchor, older, newer, share, position, attitude, gain) to (q, anchor, distance, angle).
    `older` and `newer` are stored poses, `share` places the measurement between them, and `gain` is
    the fraction of the error to remove. Results: corrected q and anchor, and the error, m and
    rad."""

    def compile(self) -> bool:
        """Compile the functions, if there is a compiler; return whether they are compiled."""
        evaluators = [e for e in (self.step, self.acceleration, self.correct) if e is not None]
        made = compiled([evaluator.function for evaluator in evaluators])
        if made is None:
            return False
        for evaluator, function in zip(evaluators, made.functions, strict=True):
            evaluator.replace(function)
        return True


def make_graphs(model: ReducedModel, places: Places, measured: bool, gives: str) -> Graphs:
    """Make the functions of an estimator; `gives`: `PoseSettings.gives`, "" without a source."""
    where = f"estimator of `{model.name}`"
    n, nq, nv, ns = len(places.transmission.motors), model.nq, model.nv, model.ns
    k = len(places.transmission.joints)
    step = _step(model, places, measured)
    correct = None
    if gives:
        function = _correction(model, gives, where)
        correct = Evaluator(function, [(nq,), (7,), (), ()], where, can_fail=False)
    return Graphs(
        Evaluator(
            step, [(nq,), (nv if measured else ns,), (nv,), (7,), (k,)], where, can_fail=False
        ),
        Evaluator(
            _acceleration(model, places), [(n,), (n, n), (n,), (n, n)], where, can_fail=False
        ),
        correct,
    )


def _step(model: ReducedModel, places: Places, measured: bool) -> ca.Function:
    system, found = model.system, places.transmission
    q, n = ca.SX.sym("q", model.nq), len(found.motors)
    position, velocity = ca.SX.sym("position", n), ca.SX.sym("velocity", n)
    inverse = ca.sparsify(ca.DM(found.inverse))
    y, w = inverse @ position, inverse @ velocity
    dt, anchor = ca.SX.sym("dt"), ca.SX.sym("anchor", 7)
    shape = list(places.shape)
    moved = (y - q[places.q])[shape]

    def displacement(at: Array) -> Array:
        horizontal, drift = model.lift(at)
        return horizontal @ moved + drift * dt

    half = system.integrate(q, displacement(q) / 2)
    after = system.integrate(q, displacement(half))
    after[places.q] = y
    s = w[shape]
    v = model.velocity(after, s)
    base, anchored = base_of(system), ca.SX([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    if base is not None:
        turn, position_now = base.pose(after)
        back = quaternion.conjugate(anchor[3:])
        attitude = quaternion.from_matrix(turn)
        anchored = ca.vertcat(
            quaternion.rotate(back, position_now - anchor[:3]), quaternion.multiply(back, attitude)
        )
    results = [after, v if measured else s, v, anchored, w]
    return ca.Function(
        "estimator_step",
        [q, position, velocity, dt, anchor],
        [ca.densify(part) for part in results],
        ["q", "position", "velocity", "dt", "anchor"],
        ["after", "s", "v", "anchored", "rates"],
        {"cse": True},
    )


def _acceleration(model: ReducedModel, places: Places) -> ca.Function:
    q, s, u = ca.SX.sym("q", model.nq), ca.SX.sym("s", model.ns), ca.SX.sym("u", model.nu)
    found = places.transmission
    mass, inputs = model.mass_matrix(q), model.input_matrix(q)
    rates = model.lift(q)[0] @ model.acceleration(q, s, u) + model.drift_acceleration(q, s)
    eased = model.lift(q)[0] @ solve_positive_definite(mass, inputs)
    motors = _inverse(ca.SX(inputs))
    ratios = ca.sparsify(ca.DM(found.ratios))
    shape = ca.sparsify(ca.DM(found.inverse[list(places.shape)]))
    results = [
        ratios @ rates[list(found.v)],
        motors @ mass @ shape,
        motors @ model.bias(q, s),
        ratios @ eased[list(found.v), :],
    ]
    return ca.Function(
        "estimator_acceleration",
        [q, s, u],
        [ca.densify(part) for part in results],
        ["q", "s", "u"],
        ["acceleration", "inertia", "held", "ease"],
        {"cse": True},
    )


def _inverse(matrix: ca.SX) -> ca.SX:
    """Inverse of a matrix, or of more columns than rows the one of the smallest norm."""
    rows, columns = matrix.shape
    if rows == columns:
        identity = matrix.is_constant() and np.array_equal(np.array(ca.DM(matrix)), np.eye(rows))
        return ca.SX.eye(rows) if identity else ca.solve(matrix, ca.SX.eye(rows))
    return matrix.T @ ca.solve(matrix @ matrix.T, ca.SX.eye(rows))


def _moving_base(model: ReducedModel, gives: str, where: str) -> tuple[Base, slice]:
    """The base, and the rows of its twists that a source of poses sees."""
    base = base_of(model.system)
    seen = {"pose": slice(0, 6), "position": slice(0, 3), "attitude": slice(3, 6)}[gives]
    if base is not None and base.joint.nv and np.abs(base.motions[seen]).max() >= WEAKEST:
        return base, seen
    came = f"the system `{model.name}`, whose first factor is no group of rotations or poses"
    if base is not None:
        came = f"the joint {type(base.joint).__name__} of `{base.name}`"
    raise RigError(
        f"{where}, `[pose]`",
        expected=f"a base whose {gives} changes",
        came=came,
        cure="Remove the pose source, or change `gives`.",
    )


def _correction(model: ReducedModel, gives: str, where: str) -> ca.Function:
    base, seen = _moving_base(model, gives, where)
    size, motions = base.joint.nv, base.motions
    # From the visible part of an error to the motion of the base that removes it.
    onto = np.zeros((size, 6))
    onto[:, seen] = np.linalg.pinv(motions[seen], rcond=WEAKEST)

    q, anchor = ca.SX.sym("q", model.nq), ca.SX.sym("anchor", 7)
    older, newer, share = ca.SX.sym("older", 7), ca.SX.sym("newer", 7), ca.SX.sym("share")
    position, attitude = ca.SX.sym("position", 3), ca.SX.sym("attitude", 4)
    gain = ca.SX.sym("gain")

    near = ca.if_else(ca.dot(older[3:], newer[3:]) < 0, -1.0, 1.0)
    then = (1 - share) * older + share * ca.vertcat(newer[:3], near * newer[3:])
    turned = quaternion.normalize(quaternion.multiply(anchor[3:], then[3:]))
    placed = anchor[:3] + quaternion.rotate(anchor[3:], then[:3])

    error = ca.vertcat(
        quaternion.rotate(quaternion.conjugate(turned), position - placed),
        quaternion.log(quaternion.multiply(quaternion.conjugate(turned), attitude)),
    )
    error = ca.SX(ca.DM(motions @ onto)) @ error
    shift = quaternion.rotate(turned, gain * error[:3])
    turn = quaternion.exp(quaternion.rotate(turned, gain * error[3:]))

    def move(point: Array) -> Array:
        return placed + shift + quaternion.rotate(turn, point - placed)

    rotation, place = base.pose(q)
    matrix, last = quaternion.to_matrix(turn), ca.SX([[0.0, 0.0, 0.0, 1.0]])
    pose = ca.vertcat(ca.horzcat(rotation, place), last)
    after = ca.vertcat(ca.horzcat(matrix @ rotation, move(place)), last)
    twist = se3.log(se3.inverse(pose) @ after)
    back = ca.SX(ca.DM(np.linalg.pinv(motions, rcond=WEAKEST))) @ twist
    count = base.joint.nq
    corrected = ca.vertcat(base.joint.integrate(q[:count], back), q[count:])
    moved = ca.vertcat(
        move(anchor[:3]), quaternion.normalize(quaternion.multiply(turn, anchor[3:]))
    )
    results = [corrected, moved, ca.norm_2(error[:3]), ca.norm_2(error[3:])]
    inputs = [q, anchor, older, newer, share, position, attitude, gain]
    return ca.Function(
        "estimator_correction",
        inputs,
        [ca.densify(part) for part in results],
        ["q", "anchor", "older", "newer", "share", "position", "attitude", "gain"],
        ["corrected", "moved", "distance", "angle"],
        {"cse": True},
    )
