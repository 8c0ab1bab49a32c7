"""Symbols of the joints: lines and faces for each kind of motion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from concur.robot import shortest_rotation
from concur.show.style import PALETTE, Floats

_ANGLE = np.linspace(0.0, 2 * np.pi, 13)
_X, _Y, _Z = np.eye(3)
_CORNERS = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0]], dtype=float)


@dataclass(frozen=True)
class Symbol:
    """The symbol of a joint, of a size of about 1, in the frame of the body that it carries.

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


def symbol(joint: Any) -> Symbol | None:
    """Return the symbol of a joint; None for kinds without one.

    The axis of a joint, and the normal of a plane, have the same components in the body's frame
    as in the joint's: the motions of the joint do not change them.
    """
    kind = type(joint).__name__
    if kind not in _KINDS:
        return None
    title, color, lines, faces = _KINDS[kind]
    turn = shortest_rotation(getattr(joint, "axis", getattr(joint, "normal", (0.0, 0.0, 1.0)))).T
    return Symbol(title, color, [line @ turn for line in lines(joint)], faces @ turn)


def _axis() -> list[Floats]:
    return [np.array([-_Z, _Z])]


def _arrows(*ends: Floats) -> list[Floats]:
    """Arrows from the origin both ways, with barbs visible from every side."""
    found = []
    for tip in (sign * end for end in ends for sign in (1, -1)):
        sides = np.eye(3)[np.abs(tip) < 0.5]
        found += [np.stack([0.72 * tip + 0.14 * s, tip, 0.72 * tip - 0.14 * s]) for s in sides]
        found.append(np.stack([np.zeros(3), tip]))
    return found


def _turn() -> list[Floats]:
    """Arc about z, most of a circle, with an arrow head."""
    angle = np.linspace(-0.35, 1.45, 30) * np.pi
    arc = 0.5 * np.column_stack([np.cos(angle), np.sin(angle), np.zeros(30)])
    tip, back = arc[-1], arc[-1] - arc[-2]
    back = 0.2 * back / np.linalg.norm(back)
    return [arc, np.stack([0.74 * tip - back, tip, 1.26 * tip - back])]


def _helix(joint: Any) -> list[Floats]:
    """Helix with the handedness of the screw."""
    along = np.linspace(-0.75, 0.75, 90)
    angle = np.sign(joint.pitch) * 3.5 * np.pi * along / 0.75
    return [np.column_stack([0.35 * np.cos(angle), 0.35 * np.sin(angle), along])]


def _ball() -> Floats:
    across, down = np.meshgrid(_ANGLE, np.linspace(0.0, np.pi, 9), indexing="ij")
    points = 0.45 * np.stack(
        [np.sin(down) * np.cos(across), np.sin(down) * np.sin(across), np.cos(down)], axis=-1
    )
    rings = [points[:-1, :-1], points[1:, :-1], points[1:, 1:], points[:-1, 1:]]
    return np.stack(rings, axis=2).reshape(-1, 4, 3)


_TOP = 0.22 * (_CORNERS + _Z)
_CUBE = np.stack([np.roll(s * _TOP, shift, axis=1) for shift in range(3) for s in (1, -1)])
_PATCH, _NONE = 1.1 * _CORNERS[None], np.empty((0, 4, 3))

_KINDS: dict[str, tuple[str, str, Callable[[Any], list[Floats]], Floats]] = {
    "Fixed": ("fixed", "#555555", lambda _: [], _CUBE),
    "Revolute": ("revolute", "#7B1FA2", lambda _: _axis() + _turn(), _NONE),
    "Prismatic": ("prismatic", PALETTE[2], lambda _: _arrows(_Z), _NONE),
    "Helical": ("helical", "#D81B60", lambda joint: _axis() + _helix(joint), _NONE),
    "Cylindrical": ("cylindrical", "#00838F", lambda _: _arrows(_Z) + _turn(), _NONE),
    "Sliding": ("sliding", "#8A7A00", lambda _: _arrows(_X, _Y), _PATCH),
    "Planar": ("planar", PALETTE[4], lambda _: _arrows(_X, _Y) + _turn(), _PATCH),
    "PlanarPrismatic": (
        *("planar and prismatic", "#996633"),
        *(lambda _: _arrows(_X, _Y, _Z) + _turn(), _PATCH),
    ),
    "Spherical": ("spherical", PALETTE[5], lambda _: [], _ball()),
    "Cartesian": ("Cartesian", PALETTE[6], lambda _: _arrows(_X, _Y, _Z), _NONE),
}
