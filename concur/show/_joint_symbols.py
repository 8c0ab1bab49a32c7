"""Symbols of the joints: lines and faces for each kind of motion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.show.style import PALETTE, Floats

_ANGLE = np.linspace(0.0, 2 * np.pi, 25)
_X, _Y, _Z = np.eye(3)
_NONE = np.empty((0, 4, 3))
_CORNERS = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], dtype=float)


@dataclass(frozen=True)
class Symbol:
    """The symbol of one joint, in the world frame (m).

    Parameters
    ----------
    kind : str
        Name of the kind of joint in a legend.
    color : str
        Colour of the kind.
    lines : list of ndarray, shape (n, 3)
        Polylines.
    faces : ndarray, shape (m, 4, 3)
        Quadrangles.
    """

    kind: str
    color: str
    lines: list[Floats]
    faces: Floats


def symbol(joint: Any, pose: Floats, length: float) -> Symbol | None:
    """Return the symbol of a joint, drawn at the body that it carries; None for unknown kinds.

    The axis of a joint, and the normal of a plane, have the same components in the body's frame
    as in the joint's: the motions of the joint do not change them.
    """
    kind = type(joint).__name__
    if kind not in _KINDS:
        return None
    title, color, shape = _KINDS[kind]
    lines, faces = shape(joint)
    axis = getattr(joint, "axis", getattr(joint, "normal", (0.0, 0.0, 1.0)))
    turn = length * pose[:3, :3] @ _frame_along(axis)
    return Symbol(
        title,
        color,
        [line @ turn.T + pose[:3, 3] for line in lines],
        np.asarray(faces, dtype=float).reshape(-1, 4, 3) @ turn.T + pose[:3, 3],
    )


def _frame_along(axis: Sequence[float]) -> Floats:
    """Axes (3, 3) from rotating x, y, z by the shortest rotation of z to a direction."""
    direction = np.asarray(axis, dtype=float)
    x, y, z = direction / np.linalg.norm(direction)
    if z < -1.0 + 1e-12:
        return np.diag([1.0, -1.0, -1.0])
    middle = np.array([x, y, 1.0 + z])
    half_turn = 2.0 * np.outer(middle, middle) / (middle @ middle) - np.eye(3)
    return np.asarray(half_turn @ np.diag([-1.0, -1.0, 1.0]))


def _axis() -> list[Floats]:
    return [np.array([[0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])]


def _arrow(tip: Floats) -> list[Floats]:
    """Arrow from the origin to a point, with barbs visible from every side."""
    sides = np.eye(3)[np.abs(tip) < 0.5]
    barbs = [np.stack([0.72 * tip + 0.14 * side, tip, 0.72 * tip - 0.14 * side]) for side in sides]
    return [np.stack([np.zeros(3), tip]), *barbs]


def _both_ways(*ends: Floats) -> list[Floats]:
    return [line for end in ends for sign in (1, -1) for line in _arrow(sign * end)]


def _turn() -> list[Floats]:
    """Arc about z, most of a circle, with an arrow head."""
    angle = np.linspace(-0.35, 1.45, 30) * np.pi
    arc = 0.5 * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(30)])
    tip, back = arc[-1], arc[-1] - arc[-2]
    back = 0.2 * back / np.linalg.norm(back)
    out = 0.26 * tip
    return [arc, np.stack([tip - back + out, tip, tip - back - out])]


def _helix(joint: Any) -> list[Floats]:
    """Helix with the handedness of the screw."""
    along = np.linspace(-0.75, 0.75, 90)
    angle = np.sign(joint.pitch) * 3.5 * np.pi * along / 0.75
    return [0.35 * np.column_stack([np.cos(angle), np.sin(angle), along / 0.35])]


def _patch() -> Floats:
    return 1.1 * _CORNERS[None]


def _ball() -> Floats:
    across, down = np.meshgrid(_ANGLE[::2], np.linspace(0.0, np.pi, 9), indexing="ij")
    points = 0.45 * np.stack(
        [np.sin(down) * np.cos(across), np.sin(down) * np.sin(across), np.cos(down)], axis=-1
    )
    rings = [points[:-1, :-1], points[1:, :-1], points[1:, 1:], points[:-1, 1:]]
    return np.stack(rings, axis=2).reshape(-1, 4, 3)


def _cube() -> Floats:
    top = 0.22 * (_CORNERS + _Z)
    return np.stack([np.roll(sign * top, shift, axis=1) for shift in range(3) for sign in (1, -1)])


_Shape = Callable[[Any], tuple[list[Floats], Floats]]

_KINDS: dict[str, tuple[str, str, _Shape]] = {
    "Fixed": ("fixed", "#555555", lambda _: ([], _cube())),
    "Revolute": ("revolute", "#7B1FA2", lambda _: (_axis() + _turn(), _NONE)),
    "Prismatic": ("prismatic", PALETTE[2], lambda _: (_both_ways(_Z), _NONE)),
    "Helical": ("helical", "#D81B60", lambda joint: (_axis() + _helix(joint), _NONE)),
    "Cylindrical": ("cylindrical", "#00838F", lambda _: (_both_ways(_Z) + _turn(), _NONE)),
    "Sliding": ("sliding", "#8A7A00", lambda _: (_both_ways(_X, _Y), _patch())),
    "Planar": ("planar", PALETTE[4], lambda _: (_both_ways(_X, _Y) + _turn(), _patch())),
    "PlanarPrismatic": (
        "planar and prismatic",
        "#996633",
        lambda _: (_both_ways(_X, _Y, _Z) + _turn(), _patch()),
    ),
    "Spherical": ("spherical", PALETTE[5], lambda _: ([], _ball())),
    "Cartesian": ("Cartesian", PALETTE[6], lambda _: (_both_ways(_X, _Y, _Z), _NONE)),
}
