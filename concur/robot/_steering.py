"""Steered wheels whose axles meet those of two others in one point, as on an Ackermann car."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import casadi as ca
import numpy as np
from annotated_types import Len

from concur.codegen import Array
from concur.errors import ConcurError, DescriptionError, UnknownNameError, entries, shown
from concur.robot._body import Body
from concur.robot._wheel import Wheel
from concur.robot.joints import Planar, Sliding
from concur.tables import Expected

TRAIL = 1e-10
"""Distance of an axle from its steering axis that is rounding, in parts of the longest distance."""

SINGULAR = 1e-6
"""Distance from a singular configuration, without unit, below which guides are refused."""


@dataclass(frozen=True)
class Steering:
    """A steered wheel whose axle passes through the centre of rotation given by two guide wheels.

    The centre is the point where the axles of the guides meet, seen from above; it is at infinity
    if they are parallel. The steering angle of the wheel is a smooth function of the guides'
    angles, except where the centre lies on the steering axis of the wheel or the axles of the
    guides coincide: these are singular configurations. With a fixed and a steered guide the robot
    is an Ackermann car; with two steered guides it is a platform of steered modules. With the lines
    l of the three axles, in homogeneous coordinates, the condition is ``det(l_a, l_b, l_f) = 0``.
    Its derivative is a constraint of the velocities, whose reaction does no work.

    Parameters
    ----------
    wheel : str
        Body of the wheel that follows, a "disk" or "slider". Its steering joint is a `Revolute`
        joint along the normal of the ground, whose axis meets the axle.
    guides : sequence of str
        Bodies of the two guide wheels: each is fixed to the body that carries the steering joint of
        `wheel`, or steered in the same way.

    Raises
    ------
    DescriptionError
        If there are not two different guides, or a wheel is its own guide.

    Examples
    --------
    >>> import concur as cc
    >>> cc.robot.Steering("front_right", guides=("rear_left", "front_left")).wheel
    'front_right'
    """

    wheel: str
    guides: Annotated[Sequence[str], Len(2, 2), Expected("names of two other wheels")]

    def __post_init__(self) -> None:
        where = f"steering `{shown(self.wheel, 255)}`"
        guides = None if isinstance(self.guides, str) else entries(self.guides, str)
        if not isinstance(self.wheel, str) or guides is None or len(guides) != 2:
            cure = 'Write Steering("front_right", guides=("rear_left", "front_left")).'
            raise _refusal(
                f"{where}, `guides`", "a wheel and two guides, by name", shown(self.guides), cure
            )
        if len({self.wheel, *guides}) != 3:
            raise _refusal(
                f"{where}, `guides`",
                "two guides that are two other wheels",
                ", ".join(guides),
                "Two axles fix the centre of rotation, a third one follows.",
            )
        object.__setattr__(self, "guides", guides)


@dataclass(frozen=True)
class Axle:
    """Axle of a wheel as a line in the plane of the ground, in the axes of the supporting body.

    Parameters
    ----------
    place : sequence of float or casadi.SX
        A point on the line, on the steering axis if there is one, shape (2,), m.
    angle : float
        Angle of the line where the steering joint is at zero, rad.
    joint : str or None
        Body on the steering joint; none if the wheel does not steer.
    sense : float
        1 if the steering axis is along the normal, -1 if opposite, 0 if the wheel does not steer.
    trail : float
        Distance of the axle from the steering axis, m.
    carrier : str
        Body whose placement shifts the point.
    plane : tuple
        Shift of the point by a unit shift of this placement, shape (2, 3).
    across : tuple of float
        Trail by a unit shift of the wheel's placement, shape (3,).
    """

    place: Sequence[Any] | Array
    angle: float
    joint: str | None
    sense: float
    trail: float
    carrier: str
    plane: tuple[tuple[float, ...], ...]
    across: tuple[float, ...]

    def line(self, turned: Array) -> tuple[Array, Array]:
        """The line's coordinates, shape (3,), and their derivative by the steering angle.

        They are the row (x, y, rotation) of the lateral velocity of the wheel.

        Parameters
        ----------
        turned : casadi.SX
            Steering angle, rad.

        Returns
        -------
        line, slope : casadi.SX
            Shape (3,) each.
        """
        angle = self.angle + self.sense * turned
        x, y = self.place[0], self.place[1]
        c, s = ca.cos(angle), ca.sin(angle)
        line = ca.vertcat(c, s, x * s - y * c)
        return line, self.sense * ca.vertcat(-s, c, x * c + y * s)


@dataclass(frozen=True)
class Linkage:
    """The axles of a `Steering`: of both guides, and of the wheel that follows.

    Parameters
    ----------
    steering : Steering
        The description.
    axles : tuple of Axle
        Guides first, then the wheel that follows.
    joint : str
        Body on the steering joint that follows.
    reach : float
        Largest distance between the places of the axles, m.
    """

    steering: Steering
    axles: tuple[Axle, Axle, Axle]
    joint: str
    reach: float | Array

    @property
    def text(self) -> str:
        """Clause that names the wheels."""
        a, b = self.steering.guides
        return f"axle of {self.steering.wheel} through the centre of rotation of {a} and {b}"

    def with_numbers(self, places: Array, reach: Array) -> Linkage:
        """The same linkage with its axles at other places.

        Parameters
        ----------
        places : casadi.SX
            Places of the axles, shape (2, 3), m.
        reach : casadi.SX
            Largest distance between them, m.

        Returns
        -------
        Linkage
            For expressions only.
        """
        a, b, f = (replace(axle, place=places[:, k]) for k, axle in enumerate(self.axles))
        return replace(self, axles=(a, b, f), reach=reach)

    def moved(
        self, shift: Callable[[str], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Axles after shifts of the placements of bodies, for one robot or many at once.

        Parameters
        ----------
        shift : callable
            Takes the name of a body, returns its shift along the axes of its parent, (..., 3), m.

        Returns
        -------
        places : numpy.ndarray
            Places of the axles, shape (..., 2, 3), m.
        reach : numpy.ndarray
            Largest distance between them, shape (...), m.
        trailing : numpy.ndarray
            Whether an axle no longer meets its steering axis, shape (...).
        """
        shifted = [
            np.array(axle.place) + shift(axle.carrier) @ np.array(axle.plane).T
            for axle in self.axles
        ]
        places = np.stack(shifted, axis=-1)
        apart = places[..., :, None] - places[..., None, :]
        reach = np.linalg.norm(apart, axis=-3).max(axis=(-2, -1))
        wheels = zip((*self.steering.guides, self.steering.wheel), self.axles, strict=True)
        trails = [axle.trail + np.abs(shift(name) @ np.array(axle.across)) for name, axle in wheels]
        trailing = np.max(trails, axis=0) > TRAIL * reach
        return places, np.where(reach > 0.0, reach, 1.0), trailing

    def condition(self, angles: Sequence[Array]) -> tuple[Array, tuple[Array, Array, Array]]:
        """Determinant of the three lines, over `reach`, and its derivatives by the angles.

        The determinant and its last derivative are zero where the centre of rotation lies on the
        steering axis of the wheel that follows, and where the axles of the guides coincide.

        Parameters
        ----------
        angles : sequence of casadi.SX
            Steering angles of the axles, rad; any number for one that does not steer.

        Returns
        -------
        value : casadi.SX
            Zero where the wheel follows.
        slopes : tuple of casadi.SX
            Derivative by each angle.
        """
        (a, da), (b, db), (f, df) = (
            axle.line(angle) for axle, angle in zip(self.axles, angles, strict=True)
        )
        f, df = f / self.reach, df / self.reach
        center = ca.cross(a, b)
        slopes = ca.dot(ca.cross(da, b), f), ca.dot(ca.cross(a, db), f), ca.dot(center, df)
        return ca.dot(center, f), slopes

    def lost(self, angles: Sequence[float]) -> tuple[float, str]:
        """Distance from a singular configuration, without unit, and what is singular there.

        Parameters
        ----------
        angles : sequence of float
            Steering angles of the axles, rad.

        Returns
        -------
        distance : float
            Zero at a singular configuration.
        text : str
            Clause that names the wheels.
        """
        value, slopes = self.condition(angles)
        a, b = (
            np.array(axle.line(angle)[0]).ravel()
            for axle, angle in zip(self.axles[:2], angles, strict=False)
        )
        center = np.cross(a, b) / (self.reach, self.reach, 1.0)
        first, second = self.steering.guides
        text = f"the centre of rotation lies on the steering axis of `{self.steering.wheel}`"
        distance = float(np.hypot(float(value), float(slopes[2])))
        if np.linalg.norm(center) < 1e-3:  # of use at singular configurations only
            text = f"the axles of the guides `{first}` and `{second}` coincide"
        return distance, text


def linkages(
    where: str, bodies: Sequence[Body], wheels: Sequence[Wheel], given: Sequence[Steering]
) -> tuple[Linkage, ...]:
    """Find the axles of wheels that follow guides.

    Parameters
    ----------
    where : str
        The robot, named in errors.
    bodies : sequence of Body
        Its bodies, parents first.
    wheels : sequence of Wheel
        Its wheels.
    given : sequence of Steering
        Wheels that follow.

    Returns
    -------
    tuple of Linkage
        One for each.

    Raises
    ------
    DescriptionError
        If wheels are on different supports, do not steer about the normal of the ground, have a
        trail, follow twice, or guide and follow.
    UnknownNameError
        If a name is not that of a wheel.
    """
    found = [_linkage(where, bodies, wheels, steering) for steering in given]
    joints = [linkage.joint for linkage in found]
    for linkage in found:
        place = f"{where}, steering `{linkage.steering.wheel}`"
        if joints.count(linkage.joint) > 1:
            raise _refusal(
                place,
                f"one table for the steering joint `{linkage.joint}`",
                f"{joints.count(linkage.joint)}",
                "Keep one of them.",
            )
        for name, axle in zip(linkage.steering.guides, linkage.axles, strict=False):
            if axle.joint in joints:
                raise _refusal(
                    f"{place}, `guides`",
                    "guides that do not follow others",
                    f"`{name}`, whose steering joint `{axle.joint}` follows",
                    "Give all wheels that follow the same two guides.",
                )
    return tuple(found)


def _linkage(
    where: str, bodies: Sequence[Body], wheels: Sequence[Wheel], steering: Steering
) -> Linkage:
    place = f"{where}, steering `{steering.wheel}`"
    every = {body.name: body for body in bodies}
    joint = _carrier(place, "wheel", steering.wheel, every, wheels)[0]
    fork = every[joint]
    if fork.parent is None or not _turns(fork):
        raise _refusal(
            f"{place}, `wheel`",
            "a wheel on a Revolute steering joint",
            f"`{joint}` on a {type(fork.joint).__name__} joint",
            "Put the wheel on a body that steers about the normal of the ground.",
        )
    support = fork.parent
    # Without a plane `check_wheels` refuses the wheels.
    normal = fork.placement.rotation_matrix @ fork.joint.basis[3:, 0]
    rotation, at = np.eye(3), every.get(support)
    while at is not None:
        if isinstance(at.joint, Planar | Sliding):
            normal = rotation.T @ np.array(at.joint.normal)
        rotation, at = at.placement.rotation_matrix @ rotation, every.get(at.parent or "")
    first = np.linalg.svd(normal[None])[2][1]
    frame = np.array([first, np.cross(normal, first)])
    names = (*steering.guides, steering.wheel)
    fields = ("guides", "guides", "wheel")
    first_axle, second, last = (
        _axle(f"{place}, `{field}`", field, name, every, wheels, support, normal, frame)
        for name, field in zip(names, fields, strict=True)
    )
    axles = first_axle, second, last
    reach = max(math.dist(a.place, b.place) for a in axles for b in axles)
    for name, field, axle in zip(names, fields, axles, strict=True):
        if axle.trail > TRAIL * reach:
            raise _refusal(
                f"{place}, `{field}`",
                "axles that meet their steering axes",
                f"the axle of `{name}` at {axle.trail:.6g} m from the axis of `{axle.joint}`",
                "Move the wheel along its axle only: one that trails is a caster, which follows "
                "without a table.",
            )
    found = Linkage(steering, axles, joint, reach or 1.0)
    distance, text = found.lost((0.0, 0.0, 0.0))
    if distance < SINGULAR:
        raise _refusal(
            f"{place}, `guides`",
            "guides whose axles fix the steering angle where all joints are at zero",
            text,
            "Choose guides whose axles differ: a fixed and a steered wheel, or steered wheels at "
            "opposite corners.",
        )
    # The line has no direction: take the one that needs no more than a quarter turn from zero.
    if float(found.condition((0.0, 0.0, 0.0))[1][2]) < -SINGULAR:
        own = replace(last, angle=last.angle + math.pi)
        found = replace(found, axles=(first_axle, second, own))
    return found


def _carrier(
    place: str, field: str, name: str, bodies: Mapping[str, Body], wheels: Sequence[Wheel]
) -> tuple[str, np.ndarray, np.ndarray]:
    """Body in whose axes a wheel's axle is constant; the axle and its centre there."""
    fit = [w for w in wheels if w.kind in ("disk", "slider") and w.support is None]
    known = [wheel.body for wheel in fit]
    wheel = next((w for w in fit if w.body == name), None)
    body = bodies.get(name)
    if wheel is None or body is None:
        raise UnknownNameError(
            f"{place}, `{field}`",
            expected=f"the body of a disk or slider among {', '.join(known) or 'no wheels'}",
            came=f"`{shown(name, 255)}`",
            cure="Give the name of a body that `wheels` has.",
        )
    if wheel.kind == "slider":
        return name, np.array(wheel.axis), np.array(wheel.center)
    if not _turns(body) or body.parent is None:
        raise _refusal(
            f"{place}, `{field}`",
            "a disk on a Revolute joint",
            f"`{name}` on a {type(body.joint).__name__} joint",
            "Put the wheel on a separate body with a Revolute joint.",
        )
    placement = body.placement
    axis = placement.rotation_matrix @ body.joint.basis[3:, 0]
    center = placement.rotation_matrix @ np.array(wheel.center) + np.array(placement.translation)
    return body.parent, axis, center


def _turns(body: Body) -> bool:
    """Whether a joint is a rotation about an axis through its origin."""
    basis = body.joint.basis
    return body.joint.nv == 1 and not basis[:3].any() and bool(basis[3:].any())


def _axle(
    place: str,
    field: str,
    name: str,
    bodies: Mapping[str, Body],
    wheels: Sequence[Wheel],
    support: str,
    normal: np.ndarray,
    frame: np.ndarray,
) -> Axle:
    carrier, axis, center = _carrier(place.rpartition(",")[0], field, name, bodies, wheels)
    joint, sense, trail = None, 0.0, (0.0, 0.0)
    holder, plane, swing = name, frame * float(name != support), np.zeros((2, 3))
    if carrier != support:
        body = bodies[carrier]
        if body.parent != support or not _turns(body):
            raise _refusal(
                place,
                f"wheels that are fixed to `{support}`, or steered by one Revolute joint on it",
                f"`{name}`, which `{carrier}` carries on `{body.parent}`",
                "Choose guides on the body that carries the steering joint.",
            )
        turning = body.placement.rotation_matrix
        steers = turning @ body.joint.basis[3:, 0]
        sense = float(np.sign(steers @ normal))
        if np.linalg.norm(np.cross(steers, normal)) > 1e-9:
            raise _refusal(
                place,
                "steering axes along the normal of the ground",
                f"that of `{carrier}` along {tuple(np.round(steers, 6).tolist())} of `{support}`, "
                f"whose normal is {tuple(np.round(normal, 6).tolist())}",
                "Turn the axis of the joint, or its placement.",
            )
        joint = holder = carrier
        if carrier != name:
            swing = frame @ turning
        trail = float(frame[0] @ turning @ center), float(frame[1] @ turning @ center)
        center, axis = np.array(body.placement.translation), turning @ axis
    along = frame @ axis
    if not np.linalg.norm(along) > 1e-6:
        raise _refusal(
            place,
            "a wheel axis that is not along the normal of the plane",
            f"`{name}`, which lies flat on the plane",
            "Turn the axis into the plane.",
        )
    x, y = frame @ center
    along /= np.linalg.norm(along)
    offset = abs(trail[0] * along[1] - trail[1] * along[0])
    return Axle(
        (float(x), float(y)),
        math.atan2(along[1], along[0]),
        joint,
        sense,
        offset,
        holder,
        tuple(map(tuple, plane.tolist())),
        tuple((swing[0] * along[1] - swing[1] * along[0]).tolist()),
    )


def _refusal(where: str, expected: str, came: str, cure: str) -> ConcurError:
    return DescriptionError(where, expected=expected, came=came, cure=cure)
