"""Links on cables: bodies on ball joints whose spin moves no mass.

A point mass that hangs on a massless cable, or a thin rod, can spin about its line without any
kinetic energy, while all that it carries turns back. The mass matrix is singular along this spin.
With a moment C about the line it becomes regular, and at zero spin nothing else depends on C:
these are the equations on the two-sphere of the link's direction, whose spin decouples.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from concur.groups import se3, so3
from concur.robot._bodies import BodyTree
from concur.robot.joints import Spherical

ON_LINE = 1e-12
"""Part of its largest moment, or of a length, below which a link has no moment about its line."""


@dataclass(frozen=True, eq=False)
class Cable:
    """The line of a link on a cable.

    Parameters
    ----------
    axis : numpy.ndarray
        Direction of the line in the body frame, a unit vector, shape (3,).
    moment : float
        Moment about the line that makes the mass matrix regular, kg m^2: the moment across it, all
        that the link carries being at the ends of the line.
    """

    axis: np.ndarray
    moment: float


def find_cables(tree: BodyTree, pushed: Collection[str]) -> dict[str, Cable]:
    """Find the links on cables.

    Parameters
    ----------
    tree : BodyTree
        The robot.
    pushed : collection of str
        Bodies on which something acts beside gravity: motors, thrusters, wheels. Neither a link on
        a cable nor what hangs on it is one of them.

    Returns
    -------
    dict of str to Cable
        The line of each such link, by body.
    """
    found = {}
    for i, body in enumerate(tree.bodies):
        if body.parent is None or not isinstance(body.joint, Spherical):
            continue
        welded = tree.welded(i)
        hung = [k for k, b in enumerate(tree.bodies) if b.joint.nv and _at(tree, k) in welded]
        names = {tree.bodies[k].name for k in (*welded, *hung)}
        if names & set(pushed) or any(
            not isinstance(tree.bodies[k].joint, Spherical) for k in hung
        ):
            continue
        cable = _line(tree, welded, hung)
        if cable is not None:
            found[body.name] = cable
    return found


def _at(tree: BodyTree, index: int) -> int:
    parent = tree.parent_index(index)
    return -1 if parent is None else parent


def _line(tree: BodyTree, welded: dict[int, np.ndarray], hung: list[int]) -> Cable | None:
    """Line about which neither the mass of a link has a moment nor the joints on it an arm."""
    own = np.zeros((3, 3))
    for k, pose in welded.items():
        back = se3.adjoint(se3.inverse(pose))
        own += (back.T @ tree.bodies[k].inertia.matrix @ back)[3:, 3:]
    across = float(np.linalg.norm(own, 2))
    conditions = [own / across] if across else []
    for k in hung:
        arm = (welded[_at(tree, k)] @ tree.bodies[k].placement.matrix)[:3, 3]
        length = float(np.linalg.norm(arm))
        carried = sum(b.inertia.mass for j, b in enumerate(tree.bodies) if k in tree.path(j))
        if length * carried:
            conditions.append(so3.skew(arm / length))
            across += carried * length**2
    if not across:
        return None
    _, sizes, lines = np.linalg.svd(np.vstack(conditions))
    if not sizes[2] < ON_LINE < sizes[1]:
        return None
    axis = lines[2] * np.sign(lines[2, np.abs(lines[2]).argmax()])
    axis[np.abs(axis) < ON_LINE] = 0.0
    return Cable(axis, across)
