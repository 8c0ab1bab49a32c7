"""Frames that suit the recursions: about its axis z every revolute joint turns.

The frames of a description are chosen by people; a recursion is cheapest in others, of Denavit
and Hartenberg: z along the joint's axis, x along the common normal to the next axis, so that a
joint's turn mixes two components only and the way to the next axis has two. Bodies that are
fixed to others belong to the same link. The meaning of the joint velocities does not change.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, constant
from concur.robot import joints
from concur.robot._size import robot_size
from concur.robot._tree import Tree
from concur.robot._turn import Turn

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
    basis : numpy.ndarray
        Twist basis of the joint in the link frame, shape (6, nv of the joint).
    """

    body: int
    parent: int | None
    span: slice
    axial: bool
    offset: Array
    turn: Array
    start: tuple[float | Array, float | Array]
    basis: Numbers


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
class Step:
    """Pose of a link in its parent, as turns one after the other.

    Parameters
    ----------
    turns : tuple of Turn
        From the parent's axes to the link's.
    offset : casadi.SX
        Origin in the parent's link frame, shape (3,), m.
    """

    turns: tuple[Turn, ...]
    offset: Array

    def outwards(self, vectors: Array) -> Array:
        """Turn components (3, k) along the parent's axes into those along the link's."""
        for turn in self.turns:
            vectors = turn.outwards(vectors)
        return vectors

    def inwards(self, vectors: Array) -> Array:
        """Turn components (3, k) along the link's axes into those along the parent's."""
        for turn in reversed(self.turns):
            vectors = turn.inwards(vectors)
        return vectors

    def seen_inwards(self, tensor: Array) -> Array:
        """Turn a symmetric tensor (3, 3) along the link's axes into that along the parent's."""
        for turn in reversed(self.turns):
            tensor = turn.seen_inwards(tensor)
        return tensor

    def extended(self, rotation: Array) -> Array:
        """Attitude (3, 3) of the link for that of its parent."""
        for turn in self.turns:
            rotation = rotation @ turn.matrix
        return rotation


def link_frames(tree: Tree) -> tuple[list[Link], list[Seat]]:
    """Choose the frames of all links.

    The links have parents before children, and the first one is the base; each body has a seat.
    Frames and seats are those of the description, whatever the numbers of the tree.
    """
    links: list[Link] = []
    seats: list[Seat] = []
    for i, body in enumerate(tree.bodies):
        rotation, place = body.placement.rotation_matrix, np.array(body.placement.translation)
        parent = tree.parent_index(i)
        carrier = None
        if parent is not None:
            seat = seats[parent]
            carrier = seat.link
            place = seat.rotation @ place + seat.translation
            rotation = seat.rotation @ rotation
            if isinstance(body.joint, joints.Fixed):
                seats.append(Seat(carrier, _snapped(rotation), place))
                continue
        span = tree.v_slice(body.name)
        if isinstance(body.joint, joints.Revolute):
            above = None if carrier is None else links[carrier]
            link, seat = _axial(tree, i, above, carrier, rotation, place, len(links))
        else:
            turn = _snapped(rotation)
            basis = np.asarray(body.joint.basis)
            link = Link(i, carrier, span, False, place, turn, (1.0, 0.0), basis)
            seat = Seat(len(links), np.eye(3), np.zeros(3))
        links.append(link)
        seats.append(seat)
    if tree.numbers is not None:
        found = tree.numbers
        given = zip(links, found.offsets, found.turns, found.starts, strict=True)
        links = [replace(old, offset=o, turn=turn, start=at) for old, o, turn, at in given]
    return links, seats


def displaced(
    tree: Tree, links: list[Link], seats: list[Seat], shifts: Numbers, tilts: Numbers
) -> tuple[Numbers, Numbers, Numbers, Numbers, Numbers]:
    """Where links and bodies are if the placements of the bodies are shifted and tilted.

    `shifts` (..., bodies, 3), m, and the rotations `tilts` (..., bodies, 3, 3), about the origins
    of the placements, are in the axes of the parents. The results are the offsets (..., links, 3),
    m, turns (..., links, 3, 3) and starts (..., links, 2) of the links, and the translations
    (..., bodies, 3), m, and rotations (..., bodies, 3, 3) of the bodies in their links.
    """
    still = shifts.shape[:-2]

    def worlds(values: list[Any]) -> Numbers:
        array = np.array(values)
        return np.tile(array, (*still, *(1,) * array.ndim))

    offsets, turns = (
        worlds([getattr(link, name) for link in links]) for name in ("offset", "turn")
    )
    seated = worlds([seat.translation for seat in seats])
    rotated = worlds([seat.rotation for seat in seats])
    for i, seat in enumerate(seats):
        parent = tree.parent_index(i)
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

    starts = worlds([link.start for link in links])
    _suited(links, seats, offsets, turns, starts, seated, rotated)
    return offsets, turns, starts, seated, rotated


def _suited(
    links: list[Link],
    seats: list[Seat],
    offsets: Numbers,
    turns: Numbers,
    starts: Numbers,
    seated: Numbers,
    rotated: Numbers,
) -> None:
    """Turn and shift axial frames, along their axes, so that zeros of nominal numbers are zeros.

    A frame that turns about its own axis changes only where its joint starts. So the axis of the
    next link tilts about x alone, as that of the nominal robot does, and the axis of a link on
    another joint about x and y. A frame that moves along its axis has one offset less.
    """
    after = {link.parent: k for k, link in reversed(list(enumerate(links))) if link.axial and k > 0}
    spins, slides = np.zeros(turns.shape[:-2]), np.zeros(turns.shape[:-2])
    for i, link in enumerate(links):
        nominal, own, offset = np.asarray(link.turn), turns[..., i, :, :], offsets[..., i, :]
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
        seated[..., i, 2] -= slides[..., seat.link]
        seated[..., i, :] = (back @ seated[..., i, :, None])[..., 0]
        rotated[..., i, :, :] = back @ rotated[..., i, :, :]


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


def link_steps(tree: Tree, links: list[Link], q: Vector) -> list[Step]:
    """Pose of each link in its parent, for links from `link_frames`."""
    steps = []
    for link in links:
        body = tree.bodies[link.body]
        own = q[tree.q_slice(body.name), :]
        fixed = constant(link.turn)
        if link.axial:
            c0, s0 = link.start
            if isinstance(c0, ca.SX) or abs(c0) in (0.0, 1.0):
                c, s = ca.cos(own), ca.sin(own)
                cosine, sine = c0 * c - s0 * s, s0 * c + c0 * s
            else:
                angle = own + float(np.arctan2(s0, c0))
                cosine, sine = ca.cos(angle), ca.sin(angle)
            moving = Turn.about(2, cosine, sine)
            steps.append(Step(_joined(link.turn, moving), constant(link.offset)))
        else:
            rotation, translation = body.joint.pose(own)
            offset = constant(link.offset) + fixed @ translation
            steps.append(Step((Turn.of(fixed @ rotation),), offset))
    return steps


def root_axes(links: list[Link], steps: list[Step]) -> list[tuple[Array, Array]]:
    """Rotation (3, 3) and translation (3,), m, of each link in the first link's frame."""
    placed: list[tuple[Array, Array]] = []
    for link, step in zip(links, steps, strict=True):
        if link.parent is None:
            placed.append((ca.SX.eye(3), ca.SX(3, 1)))
            continue
        rotation, origin = placed[link.parent]
        placed.append((step.extended(rotation), origin + rotation @ step.offset))
    return placed


def _axial(
    tree: Tree,
    index: int,
    above: Link | None,
    carrier: int | None,
    rotation: Numbers,
    place: Numbers,
    own: int,
) -> tuple[Link, Seat]:
    """Frame of a link that a revolute joint turns, z along the axis."""
    body = tree.bodies[index]
    axis = np.array(body.joint.basis[3:, 0])
    along = rotation @ axis
    normal = float(np.hypot(along[0], along[1]))
    after_axial = above is not None and above.axial
    if after_axial and normal < PARALLEL:
        shift = -place[2] / along[2]
    elif after_axial and normal > SKEW:
        shift = -(place[:2] @ along[:2]) / normal**2
    else:
        shift = -(place @ along)
    origin = place + shift * along
    origin[np.abs(origin) < 1e-15 * np.abs(place).max(initial=0.0)] = 0.0

    first = _direction_of_next(tree, index, axis)
    if first is None:
        # Nothing follows: no further turn on top of that to the axis.
        first = _across(axis, rotation.T @ np.array([1.0, 0.0, 0.0]))
    frame = np.column_stack([first, np.cross(axis, first), axis])
    turn, start = _snapped(rotation @ frame), (1.0, 0.0)
    if after_axial and abs(turn[0, 2]) < ROUNDED:
        start = float(turn[0, 0]), float(-turn[0, 1])
        cosine, sine = turn[2, 2], -turn[1, 2]
        turn = np.array([[1.0, 0.0, 0.0], [0.0, cosine, -sine], [0.0, sine, cosine]])
    basis = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]]).T
    span = tree.v_slice(body.name)
    link = Link(index, carrier, span, True, origin, turn, start, basis)
    return link, Seat(own, _snapped(frame.T), -frame.T @ (shift * axis))


def _direction_of_next(tree: Tree, index: int, axis: Numbers) -> Numbers | None:
    """Direction of the common normal from a body's axis to that of the first joint it carries."""
    found = _next_axis(tree, index, np.eye(3), np.zeros(3))
    if found is None:
        return None
    direction, point = found
    normal = np.cross(axis, direction)
    size = float(np.linalg.norm(normal))
    if size > SKEW:
        return np.asarray(_signed(normal / size))
    if size >= PARALLEL:
        return _across(axis, direction)
    # What rounding leaves of a point on the axis is no direction.
    return _across(axis, point, robot_size(tree))


def _next_axis(
    tree: Tree, index: int, rotation: Numbers, place: Numbers
) -> tuple[Numbers, Numbers] | None:
    """First revolute axis that a body carries, itself or by bodies fixed to it."""
    for i, body in enumerate(tree.bodies):
        if tree.parent_index(i) != index:
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


def _joined(turn: Array, moving: Turn) -> tuple[Turn, ...]:
    """A constant turn and one about z: apart where that is cheaper."""
    fixed = constant(turn)
    if fixed.nnz() == 3 and (fixed - ca.SX.eye(3)).is_zero():
        return (moving,)
    if fixed.nnz() <= 5:
        return Turn.of(fixed), moving
    return (Turn.of(fixed @ moving.matrix),)
