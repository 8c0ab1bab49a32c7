"""Numbers, kinematics and Newton-Euler equations of a floating robot, for the checker of proofs.

All vectors are in axes of the base. With the base's twist V about its origin, joint rates s and the
joints' screws S about the same point, the hand's twist is zeta = V + S s, and the momentum
Pi = M V + sum_k I_k sum_{j <= k} S_j s_j. So

    N s = Pi - M zeta,   N_j = -(sum_{k < j} I_k) S_j,

and accelerations follow by the same matrix of six rows. Torques come from Newton's and Euler's laws
of each body about its own joint, so that they do not cancel. The prover uses graphs of shape
velocities instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from concur.proofs._recheck_balls import Floats, cosine, joined, sine, stacked, times
from concur.proofs._recheck_numbers import rotation
from concur.proofs._recheck_poses import after, bracket, cross, dot, scaled, skew
from concur.proofs._recheck_smooth import require

JOINTS, MIDDLE = 6, 3
"""Joints, and those between the base and the link in the middle."""


@dataclass(frozen=True, eq=False)
class Part:
    """A body on a link: mass, centre of mass in the link's frame, inertia about it there."""

    mass: float
    com: Floats
    tensor: Floats


@dataclass(frozen=True, eq=False)
class Flier:
    """Numbers of a base with an arm of six revolute joints in a row.

    Parameters
    ----------
    shifts, turns, axes : list of numpy.ndarray
        Frame of each joint in the link before, and its axis there.
    parts : list of list of Part
        Bodies of the base and of each link.
    hand : tuple of numpy.ndarray
        Rotation and place of the output's frame in the last link.
    """

    shifts: list[Floats]
    turns: list[Floats]
    axes: list[Floats]
    parts: list[list[Part]]
    hand: tuple[Floats, Floats]


def flier_of(robot: Any, output: Any) -> Flier:
    """Read the numbers of a mechanism; reject what the checker does not cover."""

    def need(holds: bool, what: str) -> None:
        require(bool(holds), f"robot: the checker covers {what} only")

    plain = not (robot.motors or robot.mimics or robot.steering or robot.wheels or robot.springs)
    need(plain, "robots without motors, mimics, steering, wheels and springs")
    need(not np.any(robot.gravity), "robots without gravity")
    base = robot.base
    need(type(base.joint).__name__ == "Free", "a free base")
    still = np.any(base.placement.translation)
    need(
        not still and np.array_equal(rotation(base.placement.rotation), np.eye(3)), "a base at home"
    )
    places = {base.name: (0, np.eye(3), np.zeros(3))}
    parts: list[list[Part]] = [[] for _ in range(JOINTS + 1)]
    shifts, turns, axes, names = list[Floats](), list[Floats](), list[Floats](), list[str]()
    need(robot.bodies[0].name == base.name, "the base first")
    for body in robot.bodies:
        if body.name != base.name:
            link, turn, place = places[body.parent]
            place = place + turn @ np.array(body.placement.translation, dtype=float)
            turn = turn @ rotation(body.placement.rotation)
            if type(body.joint).__name__ == "Fixed":
                places[body.name] = (link, turn, place)
            else:
                need(type(body.joint).__name__ == "Revolute", "revolute and fixed joints")
                need(link == len(names) < JOINTS, "six joints in a row")
                axis = np.array(body.joint.axis, dtype=float)
                shifts.append(place)
                turns.append(turn)
                axes.append(axis / np.linalg.norm(axis))
                names.append(body.joint_label)
                places[body.name] = (len(names), np.eye(3), np.zeros(3))
        link, turn, place = places[body.name]
        own = body.inertia
        com, tensor = np.array(own.com, dtype=float), np.asarray(own.tensor, dtype=float)
        parts[link].append(Part(float(own.mass), place + turn @ com, turn @ tensor @ turn.T))
    need(
        len(names) == JOINTS and names == list(robot.control_names),
        "a motor for each of six joints",
    )
    link, turn, place = places[output.body]
    need(link == JOINTS, "an output of the last link")
    frame = rotation(output.orientation)
    return Flier(
        shifts,
        turns,
        axes,
        parts,
        (turn @ frame, place + turn @ np.array(output.point, dtype=float)),
    )


@dataclass(frozen=True, eq=False)
class Arm:
    """Frames, screws and inertias at angles.

    Parameters
    ----------
    hand : tuple
        Pose of the output.
    screws : array
        S, (6, joints, b).
    axes, shifts : list
        Axis of each joint, and its place from the joint before (3, b).
    places : list
        Place of each link's frame (3, b).
    bodies : list of list
        Mass, centre of mass from the joint and inertia about it, of each body by link.
    links : list
        6 x 6 matrix of each link about the base's origin.
    whole, lower : array
        M and N, (6, 6, b).
    """

    hand: tuple[Any, Any]
    screws: Any
    axes: list[Any]
    shifts: list[Any]
    places: list[Any]
    bodies: list[list[tuple[float, Any, Any]]]
    links: list[Any]
    whole: Any
    lower: Any


@dataclass(frozen=True, eq=False)
class Frames:
    """Rotation of each link and place of its joint, from the base on, and axes of the joints."""

    turns: list[Any]
    places: list[Any]
    axes: list[Any]


def _spun(turn: Any, axis: Floats, angle: Any, sign: float) -> Any:
    """A rotation times that about an axis."""
    across = sign * skew(axis[:, None])[..., 0]
    once, twice = times("ij,jk->ik", turn, across), times("ij,jk->ik", turn, across @ across)
    return turn + scaled(sine(angle), once) + scaled(1.0 - cosine(angle), twice)


def outward(flier: Flier, phi: Any, count: int) -> Frames:
    """Frames of the base and the first links at angles (6, b)."""
    cells = _cells(phi)
    found = Frames(
        [np.repeat(np.eye(3)[:, :, None], cells, axis=2)], [np.zeros((3, cells))], list[Any]()
    )
    for k in range(count):
        turn = times("ij,jk->ik", found.turns[k], flier.turns[k])
        found.places.append(found.places[k] + times("ij,j->i", found.turns[k], flier.shifts[k]))
        found.axes.append(times("ij,j->i", turn, flier.axes[k]))
        found.turns.append(_spun(turn, flier.axes[k], phi[k], 1.0))
    return found


def inward(flier: Flier, phi: Any, hand: tuple[Any, Any], count: int) -> Frames:
    """Frames of the last links at angles from the output's pose, and that of the link before."""
    turn = times("ij,kj->ik", hand[0], flier.hand[0])
    found = Frames([turn], [hand[1] - times("ij,j->i", turn, flier.hand[1])], list[Any]())
    for k in reversed(range(JOINTS - count, JOINTS)):
        found.axes.insert(0, times("ij,j->i", found.turns[0], flier.axes[k]))
        turn = times(
            "ij,kj->ik", _spun(found.turns[0], flier.axes[k], phi[k], -1.0), flier.turns[k]
        )
        found.places.insert(0, found.places[0] - times("ij,j->i", turn, flier.shifts[k]))
        found.turns.insert(0, turn)
    return found


def arm_of(flier: Flier, phi: Any, hand: tuple[Any, Any] | None = None) -> Arm:
    """Frames, screws and inertias at angles (6, b).

    If the output's pose at these angles is given, the last links' frames follow from it: the
    remainders of models grow with the number of joints between.
    """
    frames = outward(flier, phi, JOINTS if hand is None else MIDDLE)
    if hand is None:
        hand = after((frames.turns[JOINTS], frames.places[JOINTS]), flier.hand)
    else:
        rest = inward(flier, phi, hand, JOINTS - MIDDLE)
        frames = Frames(
            frames.turns + rest.turns[1:],
            frames.places + rest.places[1:],
            frames.axes + rest.axes,
        )
    screws, columns, shifts = [], [], []
    bodies = [_bodies(parts, turn) for parts, turn in zip(flier.parts, frames.turns, strict=True)]
    links = [_total(own, at) for own, at in zip(bodies, frames.places, strict=True)]
    below = links[0]
    for k in range(JOINTS):
        axis = frames.axes[k]
        screw = joined([cross(frames.places[k + 1], axis), axis])
        columns.append(-times("ij,j->i", below, screw))
        below = links[k + 1] + below
        shifts.append(times("ij,j->i", frames.turns[k], flier.shifts[k]))
        screws.append(screw)
    return Arm(
        hand, _columns(screws), frames.axes, shifts, frames.places, bodies, links, below,
        _columns(columns),
    )  # fmt: skip


def single(arm: Arm) -> list[Arm]:
    """The arm with one body only, for each of its bodies; momenta and forces are their sums."""
    found = []
    for k, own in enumerate(arm.bodies):
        for body in own:
            bodies = [[body] if i == k else [] for i in range(JOINTS + 1)]
            found.append(replace(arm, bodies=bodies))
    return found


def momentum_of(arm: Arm, base: Any, s: Any) -> Any:
    """Sum of the momenta of an arm's bodies about the base's origin, (6, b)."""
    twist, total = base, 0.0 * base
    for k, own in enumerate(arm.bodies):
        if k:
            twist = twist + scaled(s[k - 1], arm.screws[:, k - 1])
        for body in own:
            total = total + times("ij,j->i", _inertia(body, arm.places[k]), twist)
    return total


def _bodies(parts: list[Part], turn: Any) -> list[tuple[float, Any, Any]]:
    """Mass, centre of mass and inertia about it in axes of the base."""
    return [
        (
            part.mass,
            times("ij,j->i", turn, part.com),
            times("ij,kj->ik", times("ij,jk->ik", turn, part.tensor), turn),
        )
        for part in parts
    ]


def _inertia(body: tuple[float, Any, Any], place: Any) -> Any:
    """6 x 6 matrix of a body about the base's origin, its link at a place."""
    mass, com, tensor = body
    arm = skew(place + com)
    own = tensor - times("ij,jk->ik", arm, arm) * mass
    moved = arm * mass
    return joined(
        [
            _beside([0.0 * moved + mass * np.eye(3)[:, :, None], -moved]),
            _beside([moved, own]),
        ]
    )


def _total(bodies: list[tuple[float, Any, Any]], place: Any) -> Any:
    """Sum of the matrices of bodies."""
    total: Any = np.zeros((6, 6, _cells(place)))
    for body in bodies:
        total = _inertia(body, place) + total
    return total


def _beside(parts: list[Any]) -> Any:
    """Matrices side by side."""
    rows = [times("ij,jk->ki", part, np.eye(3)) for part in parts]
    return times("ij,jk->ki", joined(rows), np.eye(3))


def _cells(phi: Any) -> int:
    inner = getattr(phi, "value", phi)
    return int(getattr(inner, "c", inner).shape[-1])


def _columns(vectors: list[Any]) -> Any:
    """Vectors as the columns of a matrix."""
    return times("ij,jk->ki", stacked(vectors), np.eye(6))


def turning(arm: Arm, s: Any) -> Any:
    """S' s for joint rates s: what turning screws add to the rate of the hand's twist."""
    inner, found = None, None
    for j in range(JOINTS):
        own = scaled(s[j], arm.screws[:, j])
        if inner is not None:
            added = bracket(inner, own)
            found = added if found is None else found + added
        inner = own if inner is None else inner + own
    return found


def newton_euler(arm: Arm, change: Any, a: Any, base: Any = None, s: Any = None) -> tuple[Any, Any]:
    """Joint torques (6, b) and the wrench on the base (6, b).

    For the rates `change` of the base's twist and `a` of joint rates, both may be 0.0, and for the
    base's twist and joint rates; None at rest.
    """
    rest = base is None
    omega = None if rest else base[3:]
    alpha, linear = change[3:], change[:3]
    if not rest:
        linear = linear + cross(omega, base[:3])

    def lever(shift: Any) -> Any:
        """Acceleration of a point of the link relative to its joint."""
        found = cross(alpha, shift)
        return found if rest else found + cross(omega, cross(omega, shift))

    forces, moments = [], []
    for k in range(JOINTS + 1):
        if k:
            linear = linear + lever(arm.shifts[k - 1])
            axis = arm.axes[k - 1]
            if not rest:
                alpha = alpha + scaled(s[k - 1], cross(omega, axis))
                omega = omega + scaled(s[k - 1], axis)
            if not isinstance(a, float):
                alpha = alpha + scaled(a[k - 1], axis)
        force, moment = 0.0 * linear, 0.0 * linear
        for mass, com, tensor in arm.bodies[k]:
            own = (linear + lever(com)) * mass
            turn = times("ij,j->i", tensor, alpha)
            if not rest:
                turn = turn + cross(omega, times("ij,j->i", tensor, omega))
            force, moment = force + own, moment + turn + cross(com, own)
        forces.append(force)
        moments.append(moment)
    force, moment, torques = forces[JOINTS], moments[JOINTS], []
    for k in reversed(range(JOINTS)):
        torques.append(dot(arm.axes[k], moment))
        moment = moments[k] + moment + cross(arm.shifts[k], force)
        force = forces[k] + force
    return stacked(torques[::-1]), joined([force, moment])
