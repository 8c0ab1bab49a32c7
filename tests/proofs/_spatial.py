"""The shipped rover as a spatial robot in Pinocchio: an independent oracle of what carries it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pinocchio as pin

from tests.proofs._rover import rover

PLACES = {"left_wheel": (0.0, 0.25), "right_wheel": (0.0, -0.25), "caster": (0.5, 0.0)}
"""Contacts with the ground, 0.1 m below the axle (m)."""

HEIGHT = -0.1


@cache
def _model(shares: tuple[float, ...], robot: Any) -> Any:
    """A rover with a free base; bodies with masses and moments by 1 + share."""
    model, ids = pin.Model(), dict[str | None, int]()
    for share, body in zip(shares, (robot or rover().robot).bodies, strict=True):
        axis = getattr(body.joint, "axis", None)
        kind = pin.JointModelFreeFlyer() if axis is None else pin.JointModelRevoluteUnaligned(*axis)
        place = pin.SE3(np.eye(3), np.array(body.placement.translation))
        ids[body.name] = model.addJoint(ids.get(body.parent, 0), kind, place, body.name)
        own = body.inertia
        inertia = pin.Inertia(
            (1 + share) * own.mass, np.array(own.com), (1 + share) * np.asarray(own.tensor)
        )
        model.appendBodyToJoint(ids[body.name], inertia, pin.SE3.Identity())
    return model, model.createData()


def wrench(
    q: np.ndarray,
    v: np.ndarray,
    vdot: np.ndarray,
    shares: Any = (0.0,) * 6,
    robot: Any = None,
) -> np.ndarray:
    """Force and moment on the base about its origin, in its axes, in a motion of the rover."""
    model, data = _model(tuple(np.asarray(shares).tolist()), robot)
    half = q[2] / 2
    place = [q[0], q[1], 0.0, 0.0, 0.0, np.sin(half), np.cos(half), *q[3:]]

    def spatial(u: np.ndarray) -> np.ndarray:
        return np.array([u[0], u[1], 0.0, 0.0, 0.0, u[2], *u[3:]])

    tau = pin.rnea(model, data, np.array(place), spatial(v), spatial(vdot))
    return np.asarray(tau[:6])


def loads(w: np.ndarray, places: Any = PLACES) -> np.ndarray:
    """Loads of three contacts that balance a wrench."""
    rows, right = [], []
    for k in range(3):
        point = np.array([*list(places.values())[k], HEIGHT])
        rows.append([1.0, *np.cross(point, [0.0, 0.0, 1.0])[:2]])
    # About the point below the origin, where horizontal forces have no moment about x and y.
    moment = w[3:] - np.cross([0.0, 0.0, HEIGHT], w[:3])
    right = [w[2], *moment[:2]]
    return np.linalg.solve(np.array(rows).T, right)


def friction(w: np.ndarray) -> np.ndarray:
    """Forces along both wheels and the lateral one that balance a wrench, (3,)."""
    left, right = (np.array([*PLACES[name], HEIGHT]) for name in ("left_wheel", "right_wheel"))
    x, y = np.eye(3)[:2]
    columns = [
        [1.0, 0.0, np.cross(left, x)[2]],
        [1.0, 0.0, np.cross(right, x)[2]],
        [0.0, 1.0, np.cross(left, y)[2]],
    ]
    return np.linalg.solve(np.array(columns).T, [w[0], w[1], w[5]])
