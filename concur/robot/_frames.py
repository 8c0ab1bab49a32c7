"""Frames that suit the recursions: about its axis z every revolute joint turns.

The frames of a description are chosen by people; a recursion is cheapest in others, of Denavit
and Hartenberg: z along the joint's axis, x along the common normal to the next axis, so that a
joint's turn mixes two components only and the way to the next axis has two. Bodies that are
fixed to others belong to the same link. The meaning of the joint velocities does not change.

Of a link that turns about its axis z, mass on the axis moves as if it belonged to the parent:
its mass, the height of its first moment and its spread along z. Handing these three inwards,
link by link, leaves the kinetic energy and the work of gravity as they are, for all motions
(base inertial parameters of Gautier and Khalil), and all mass ends at the base.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from concur.codegen import Array, constant
from concur.robot import joints
from concur.robot._bodies import BodyTree
from concur.robot._spatial import MASSLESS, Distribution, Twist

Numbers: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"

PARALLEL = 1e-12
"""Sine of the angle between two axes below which they count as parallel."""

SKEW = 0.1
"""Sine above which two axes have a common normal that can be trusted: not far away."""

ALONG, STEEP = 0.9, 0.1
"""Components of a joint's axis along one of its parent's: nominal ones from which an offset along
the latter is left out, and the least in a world in which it can be."""

ROUNDED = 4e-16
"""Entries of a rotation this near to 0 or 1 are that."""


AXIAL: Twist = (constant(np.zeros((3, 1))), constant([[0.0], [0.0], [1.0]]))
"""Twist of a rotation about z."""


@dataclass(frozen=True, eq=False)
class Link:
    """A body that moves relative to its parent, with all bodies fixed to it, in its frame.

    Parameters
    ----------
    body : int
        Index of the body whose joint moves the link.
    parent : int or None
        Index of the parent link.
    span : slice
        Freedoms of its joint in v.
    axial : bool
        Whether its joint is a rotation about its axis z.
    offset : numpy.ndarray or casadi.SX
        Origin at the neutral configuration, in the parent's link frame, shape (3,), m.
    turn : numpy.ndarray or casadi.SX
        Attitude before the joint turns, in the parent's link frame, shape (3, 3).
    start : tuple of float or casadi.SX
        Cosine and sine of the angle about z that comes on top of an axial joint's.
    basis : tuple
        Twist basis of the joint in the link frame, parts (3, nv of the joint).
    mass : Distribution
        Mass of the link in its frame, less what is handed inwards.
    """

    body: int
    parent: int | None
    span: slice
    axial: bool
    offset: Array
    turn: Array
    start: tuple[float | Array, float | Array]
    basis: Twist
    mass: Distribution = MASSLESS


@dataclass(frozen=True, eq=False)
class Seat:
    """Where a body's frame sits in its link.

    Parameters
    ----------
    link : int
        Index of the link.
    rotation, translation : numpy.ndarray
        Body frame in the link frame, shapes (3, 3) and (3,), m.
    """

    link: int
    rotation: Numbers
    translation: Numbers


@dataclass(frozen=True, eq=False)
class Frames:
    """Where links and bodies are, with leading axes for many robots at once.

    Parameters
    ----------
    offsets, turns, starts : numpy.ndarray
        Of the links, shapes (..., links, 3), m, (..., links, 3, 3) and (..., links, 2).
    seated, rotated : numpy.ndarray
        Bodies in their links, shapes (..., bodies, 3), m, and (..., bodies, 3, 3).
    """

    offsets: Numbers
    turns: Numbers
    starts: Numbers
    seated: Numbers
    rotated: Numbers

    @staticmethod
    def of(links: Sequence[Link], seats: Sequence[Seat], worlds: tuple[int, ...] = ()) -> Frames:
        """The frames of a description, repeated for some worlds."""

        def repeated(of: Sequence[Any], name: str) -> Numbers:
            array = np.array([getattr(one, name) for one in of])
            return np.tile(array, (*worlds, *(1,) * array.ndim))

        at = [repeated(links, name) for name in ("offset", "turn", "start")]
        return Frames(*at, *(repeated(seats, name) for name in ("translation", "rotation")))


def link_frames(tree: BodyTree, size: float) -> tuple[list[Link], list[Seat]]:
    """Choose the frames of all links of a robot of a size, m.

    The links have parents before children, and the first one is the base; each body has a seat.
    """
    links: list[Link] = []
    seats: list[Seat] = []
    for i, (body, parent) in enumerate(zip(tree.bodies, tree.parents, strict=True)):
        rotation, place = body.placement.rotation_matrix, np.array(body.placement.translation)
        carrier = None
        if parent is not None:
            seat = seats[parent]
            carrier = seat.link
            place = seat.rotation @ place + seat.translation
            rotation = seat.rotation @ rotation
            if isinstance(body.joint, joints.Fixed):
                seats.append(Seat(carrier, _snapped(rotation), place))
                continue
        if isinstance(body.joint, joints.Revolute):
            after_axial = carrier is not None and links[carrier].axial
            first = _direction_of_next(tree, i, size)
            origin, turn, start, frame, shift = _axial(
                np.array(body.joint.axis), first, after_axial, rotation, place
            )
            link = Link(i, carrier, tree.v_spans[i], True, origin, turn, start, AXIAL)
            seat = Seat(len(links), _snapped(frame.T), -frame.T @ shift)
        else:
            basis = constant(body.joint.basis[:3]), constant(body.joint.basis[3:])
            turn = _snapped(rotation)
            link = Link(i, carrier, tree.v_spans[i], False, place, turn, (1.0, 0.0), basis)
            seat = Seat(len(links), np.eye(3), np.zeros(3))
        links.append(link)
        seats.append(seat)
    return links, seats


def displaced(
    tree: BodyTree, links: Sequence[Link], seats: Sequence[Seat], shifts: Numbers, tilts: Numbers
) -> Frames:
    """Where links and bodies are if the placements of the bodies are shifted and tilted.

    `shifts` (..., bodies, 3), m, and the rotations `tilts` (..., bodies, 3, 3), about the origins
    of the placements, are in the axes of the parents.
    """
    frames = Frames.of(links, seats, shifts.shape[:-2])
    offsets, turns, seated, rotated = frames.offsets, frames.turns, frames.seated, frames.rotated
    for i, (seat, parent) in enumerate(zip(seats, tree.parents, strict=True)):
        if parent is None:
            continue
        above, at = seats[parent], np.array(tree.bodies[i].placement.translation)
        # Differences from the nominal frames: zeros where nothing moves, without rounding.
        change = rotated[..., parent, :, :] - above.rotation
        shift = seated[..., parent, :] - above.translation + change @ at
        shift = shift + (rotated[..., parent, :, :] @ shifts[..., i, :, None])[..., 0]
        tilt = rotated[..., parent, :, :] @ (tilts[..., i, :, :] - np.eye(3)) + change
        tilt = tilt @ above.rotation.T
        if links[seat.link].body == i:
            link = links[seat.link]
            arm = np.asarray(link.offset) - above.rotation @ at - above.translation
            offsets[..., seat.link, :] += shift + tilt @ arm
            turns[..., seat.link, :, :] += tilt @ np.asarray(link.turn)
        else:
            seated[..., i, :] += shift
            rotated[..., i, :, :] += tilt @ seat.rotation
    _suit(links, seats, frames)
    return frames


def _suit(links: Sequence[Link], seats: Sequence[Seat], frames: Frames) -> None:
    """Turn and shift axial frames, along their axes, so that zeros of nominal numbers are zeros.

    A frame that turns about its own axis changes only where its joint starts. So the axis of the
    next link tilts about x alone, as that of the nominal robot does, and the axis of a link on
    another joint about x and y. A frame that moves along its axis has one offset less.
    """
    turns, starts = frames.turns, frames.starts
    after = {link.parent: k for k, link in reversed(list(enumerate(links))) if link.axial and k > 0}
    spins, slides = np.zeros(turns.shape[:-2]), np.zeros(turns.shape[:-2])
    for i, link in enumerate(links):
        nominal, own = np.asarray(link.turn), turns[..., i, :, :]
        offset = frames.offsets[..., i, :]
        if link.parent is not None and links[link.parent].axial:
            back = _about_z(-spins[..., link.parent])
            offset[..., 2] -= slides[..., link.parent]
            offset[:] = (back @ offset[..., None])[..., 0]
            own[:] = back @ own
        if not link.axial:
            continue
        change = nominal.T @ own
        leaning = _leaning(change[..., 2])
        own[:], change = nominal @ leaning, np.swapaxes(leaning, -1, -2) @ change
        angle = np.arctan2(change[..., 1, 0], change[..., 0, 0])
        following = after.get(i)
        if following is None:
            spins[..., i] = -angle
        elif (wanted := np.asarray(links[following].turn)[:, 2])[0] == 0.0:
            side = 1.0 if wanted[1] > 0.0 else -1.0
            x, y, _ = np.moveaxis(side * turns[..., following, :, 2], -1, 0)
            spins[..., i] = np.arctan2(-x, y + 0.0)  # without the sign of a zero
        total = angle + spins[..., i]
        c, s, (c0, s0) = np.cos(total), np.sin(total), link.start
        starts[..., i, 0], starts[..., i, 1] = c0 * c - s0 * s, s0 * c + c0 * s
        along = np.abs(nominal[:, 2]) * (np.asarray(link.offset) == 0.0)
        if along[k := int(along.argmax())] > ALONG:
            steep = np.abs(own[..., k, 2]) > STEEP
            slides[..., i] = -offset[..., k] / np.where(steep, own[..., k, 2], np.inf)
            offset += slides[..., i, None] * own[..., 2]
            offset[steep, k] = 0.0
    for i, seat in enumerate(seats):
        back = _about_z(-spins[..., seat.link])
        at = frames.seated[..., i, :]
        at[..., 2] -= slides[..., seat.link]
        at[:] = (back @ at[..., None])[..., 0]
        frames.rotated[..., i, :, :] = back @ frames.rotated[..., i, :, :]


def _about_z(angles: Numbers) -> Numbers:
    """Rotations about z, shape (..., 3, 3)."""
    found = np.zeros((*angles.shape, 3, 3))
    found[..., 0, 0] = found[..., 1, 1] = np.cos(angles)
    found[..., 1, 0], found[..., 2, 2] = np.sin(angles), 1.0
    found[..., 0, 1] = -found[..., 1, 0]
    return found


def _leaning(axes: Numbers) -> Numbers:
    """Rotations about x and then y, shape (..., 3, 3), that turn z towards axes (..., 3)."""
    x, y, z = np.moveaxis(axes, -1, 0)
    size, about_x = np.hypot(y, z), np.arctan2(-y, z)
    s, c = np.sin(about_x), np.cos(about_x)
    found = np.zeros((*x.shape, 3, 3))
    found[..., 0, 0], found[..., 0, 2] = size, x
    found[..., 1, 0], found[..., 1, 1], found[..., 1, 2] = s * x, c, y
    found[..., 2, 0], found[..., 2, 1], found[..., 2, 2] = -c * x, s, z
    return found


def _axial(
    axis: Numbers, first: Numbers | None, after_axial: bool, rotation: Numbers, place: Numbers
) -> tuple[Numbers, Numbers, tuple[float, float], Numbers, Numbers]:
    """Frame of a link that a revolute joint turns, z along the axis.

    From the axis and the direction of x in the body frame, and the rotation and place of the joint
    in the parent link: origin, turn and start of the link; its axes and origin in the body frame.
    """
    along = rotation @ axis
    normal = float(np.hypot(along[0], along[1]))
    if after_axial and normal < PARALLEL:
        shift = -place[2] / along[2]
    elif after_axial and normal > SKEW:
        shift = -(place[:2] @ along[:2]) / normal**2
    else:
        shift = -(place @ along)
    origin = place + shift * along
    origin[np.abs(origin) < 1e-15 * np.abs(place).max(initial=0.0)] = 0.0
    if first is None:
        # Nothing follows: no further turn on top of that to the axis.
        first = _across(axis, rotation.T @ np.array([1.0, 0.0, 0.0]))
    frame = np.column_stack([first, np.cross(axis, first), axis])
    turn, start = _snapped(rotation @ frame), (1.0, 0.0)
    if after_axial and abs(turn[0, 2]) < ROUNDED:
        start = float(turn[0, 0]), float(-turn[0, 1])
        cosine, sine = turn[2, 2], -turn[1, 2]
        turn = np.array([[1.0, 0.0, 0.0], [0.0, cosine, -sine], [0.0, sine, cosine]])
    return origin, turn, start, frame, shift * axis


def _direction_of_next(tree: BodyTree, index: int, size: float) -> Numbers | None:
    """Direction of the common normal from a body's axis to that of the first joint it carries."""
    axis = np.array(tree.bodies[index].joint.basis[3:, 0])
    found = _next_axis(tree, index, np.eye(3), np.zeros(3))
    if found is None:
        return None
    direction, point = found
    normal = np.cross(axis, direction)
    length = float(np.linalg.norm(normal))
    if length > SKEW:
        return np.asarray(_signed(normal / length))
    if length >= PARALLEL:
        return _across(axis, direction)
    # What rounding leaves of a point on the axis is no direction.
    return _across(axis, point, size)


def _next_axis(
    tree: BodyTree, index: int, rotation: Numbers, place: Numbers
) -> tuple[Numbers, Numbers] | None:
    """First revolute axis that a body carries, itself or by bodies fixed to it."""
    for i, (body, parent) in enumerate(zip(tree.bodies, tree.parents, strict=True)):
        if parent != index:
            continue
        turned = rotation @ body.placement.rotation_matrix
        moved = place + rotation @ np.array(body.placement.translation)
        if isinstance(body.joint, joints.Revolute):
            return turned @ body.joint.basis[3:, 0], moved
        if isinstance(body.joint, joints.Fixed):
            found = _next_axis(tree, i, turned, moved)
            if found is not None:
                return found
    return None


def _across(axis: Numbers, direction: Numbers, scale: float = 1.0) -> Numbers:
    """Unit vector across an axis, towards a direction of some scale where it has one."""
    across = direction - (direction @ axis) * axis
    size = np.linalg.norm(across)
    if size <= 1e-6 * max(float(np.linalg.norm(direction)), 1e-6 * scale):
        across = np.eye(3)[int(np.abs(axis).argmin())]
        across = across - (across @ axis) * axis
        size = np.linalg.norm(across)
    return np.asarray(_signed(across / size))


def _signed(direction: Numbers) -> Numbers:
    """The direction or its opposite, whose largest component is positive."""
    return np.asarray(direction * np.sign(direction[int(np.abs(direction).argmax())]))


def _snapped(rotation: Numbers) -> Numbers:
    """A rotation whose entries are 0 or 1 where rounding has left almost that."""
    snapped = np.array(rotation, dtype=float)
    snapped[np.abs(snapped) < ROUNDED] = 0.0
    ones = np.abs(np.abs(snapped) - 1.0) < ROUNDED
    snapped[ones] = np.sign(snapped[ones])
    return snapped


def handed_inwards(
    links: Sequence[Link],
    seats: Sequence[Seat],
    frames: Frames,
    masses: Numbers,
    coms: Numbers,
    tensors: Numbers,
) -> tuple[Numbers, Numbers, Numbers]:
    """Mass (..., links), first and second moments of links, with what is handed inwards.

    Masses (..., bodies), kg, centres of mass (..., bodies, 3), m, and tensors about them
    (..., bodies, 3, 3), kg m^2, are of the bodies. All arrays may have leading axes of the same
    shape, for many robots at once.
    """
    some = masses.shape[:-1]
    mass = np.zeros((*some, len(links)))
    first, second = np.zeros((*some, len(links), 3)), np.zeros((*some, len(links), 3, 3))
    scales = np.zeros((*some, len(links)))
    for i, seat in enumerate(seats):
        own, turn, to = masses[..., i, None], frames.rotated[..., i, :, :], seat.link
        tensor = turn @ tensors[..., i, :, :] @ np.swapaxes(turn, -1, -2)
        com = (turn @ coms[..., i, :, None])[..., 0] + frames.seated[..., i, :]
        trace = np.trace(tensor, axis1=-2, axis2=-1)[..., None, None]
        spread = trace / 2 * np.eye(3) - tensor + own[..., None] * _outer(com, com)
        mass[..., to] += masses[..., i]
        first[..., to, :] += own * com
        second[..., to, :, :] += spread
        scales[..., to] += np.abs(spread).max(axis=(-2, -1))
    for i in reversed(range(len(links))):
        link = links[i]
        if not link.axial:
            continue
        if (above := link.parent) is not None:
            height, spread = first[..., i, 2, None], second[..., i, 2, 2, None, None]
            axis, at = frames.turns[..., i, :, 2], frames.offsets[..., i, :]
            own = mass[..., i, None]
            first[..., above, :] += height * axis + own * at
            moved = height[..., None] * _outer(at, axis)
            extra = spread * _outer(axis, axis) + own[..., None] * _outer(at, at)
            extra = extra + moved + np.swapaxes(moved, -1, -2)
            second[..., above, :, :] += extra
            scales[..., above] += np.abs(extra).max(axis=(-2, -1))
            mass[..., above] += mass[..., i]
        mass[..., i] = first[..., i, 2] = second[..., i, 2, 2] = 0.0
    # A remainder of numbers that cancel is rounding.
    second[np.abs(second) < 4e-16 * scales[..., None, None]] = 0.0
    return mass, first, second


def with_masses(
    links: Sequence[Link],
    seats: Sequence[Seat],
    masses: Numbers,
    coms: Numbers,
    tensors: Numbers,
) -> tuple[Link, ...]:
    """Links with their masses, from those of the bodies."""
    found = handed_inwards(links, seats, Frames.of(links, seats), masses, coms, tensors)
    return tuple(
        replace(link, mass=Distribution(float(m), constant(h), constant((s + s.T) / 2)))
        for link, m, h, s in zip(links, *found, strict=True)
    )


def _outer(a: Numbers, b: Numbers) -> Numbers:
    return np.asarray(a[..., :, None] * b[..., None, :])
