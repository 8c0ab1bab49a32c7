"""Symmetries of a robot, joint by joint, and the momenta that they keep."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from concur.groups import Subgroup
from concur.reduction._search import ConstantMomentum
from concur.results import aligned
from concur.robot import unknown_name

_ALONG_AXIS = re.compile(r"(.* (?:along|about) )([xyz])\b(.*)")


@dataclass(frozen=True, eq=False)
class SymmetryGroup:
    """Motions of a joint that leave something invariant: a subalgebra of the joint's.

    Parameters
    ----------
    group : Subgroup
        The displacement subgroup, with its place in the frame of the twists.
    coordinates : numpy.ndarray
        Its generators in the joint's basis, shape (nv of the joint, dim).
    twists : numpy.ndarray
        The same as twists [linear; angular], shape (6, dim), m and rad. They are in the joint
        frame, which is fixed to the parent; those of conjugated groups in the inertial frame,
        those of right translations in the body's.
    violation : float, optional
        By how much the direction that comes next fails, among those that were tried: relative to
        what would change, per radian or per size of what the joint carries, root mean square
        over the configurations. Those of `left` are tried against potential and constraints,
        those of
        `potential` against the reactions. None if none of them fails.
    residual : float
        The same for the group itself, at configurations other than those it was found at.

    Examples
    --------
    >>> import concur as cc
    >>> group = cc.symmetry(cc.robots.planar_floater())["base"].kept
    >>> group.name, group.dim
    ('SE(2)', 3)
    >>> group.twists.shape
    (6, 3)
    """

    group: Subgroup
    coordinates: np.ndarray
    twists: np.ndarray
    violation: float | None
    residual: float

    def __post_init__(self) -> None:
        self.coordinates.setflags(write=False)
        self.twists.setflags(write=False)

    @property
    def dim(self) -> int:
        """Dimension of the group."""
        return int(self.coordinates.shape[1])

    @property
    def name(self) -> str:
        """Name of the group as in `concur.groups.classify`, or "identity"."""
        return self.group.name

    def __str__(self) -> str:
        return f"{self.dim} {self.name}" if self.dim else "0"


@dataclass(frozen=True, eq=False)
class JointSymmetry:
    """Motions of one joint that leave the robot invariant, and their consequences.

    Parameters
    ----------
    joint : str
        Name of the joint.
    role : str
        "base", "wheel" or "joint".
    driven : bool
        Whether the joint is driven.
    whole : Subgroup
        Group of the joint, in its joint frame.
    conjugated : SymmetryGroup
        Intersection of the conjugated subgroups (AP1), in the inertial frame. Its motions are
        not left translations of the joint unless they commute with all joints before it.
    left : SymmetryGroup
        Largest group of left translations that keeps the kinetic energy (AP2).
    right : SymmetryGroup, optional
        Right translations that keep the kinetic energy, in the frame of the body; None for a
        joint that carries moving joints.
    potential, constraints : SymmetryGroup
        Those motions of `left` that keep the potential of gravity, and those that keep the
        velocities that rolling admits.
    kept : SymmetryGroup
        Those motions of `left` that keep both: the symmetries of the robot.
    conserving : SymmetryGroup
        Those motions of `potential` that rolling admits as motions of this joint alone: the
        reactions of the wheels do not act along them. Their momenta are constant if the joint
        is not driven.
    own : SymmetryGroup, optional
        The same among the motions of `right`, in the frame of the body.
    reducible : bool
        Whether the joint is unactuated and the robot can be reduced by a constant momentum of it,
        or, where the wheels give the joint's velocity, by `kept`. The group may be smaller than
        the joint's: see `partly`.
    reason : str
        Why, or why not.
    conserved : tuple of str
        Components of momentum <M v, motion> that stay constant: one for each generator of
        `conserving`, in the joint frame, and, unless the joint's motions commute, one for each
        of `own`, in the axes of the body; empty if the joint is driven. Then those of `turned`, and
        on wheels those of the joint with what rolls along.
    turned : SymmetryGroup, optional
        Right translations that move nothing but the link, in the frame of its body, if all that it
        carries turns back: the spin of a round link or of one on a cable; None for a joint that
        carries no moving joints, or if a motor, thruster or wheel acts there.
    along : tuple of ConstantMomentum
        Constant momenta of an unactuated joint with what rolls along, if the wheels tie other
        velocities to its own.

    Examples
    --------
    >>> import concur as cc
    >>> base = cc.symmetry(cc.robots.planar_floater())["base"]
    >>> base.role, base.reducible
    ('base', True)
    >>> base.kept.name
    'SE(2)'
    """

    joint: str
    role: str
    driven: bool
    whole: Subgroup
    conjugated: SymmetryGroup
    left: SymmetryGroup
    right: SymmetryGroup | None
    potential: SymmetryGroup
    constraints: SymmetryGroup
    kept: SymmetryGroup
    conserving: SymmetryGroup
    own: SymmetryGroup | None
    reducible: bool = False
    reason: str = ""
    conserved: tuple[str, ...] = ()
    turned: SymmetryGroup | None = None
    along: tuple[ConstantMomentum, ...] = ()

    @property
    def partly(self) -> bool:
        """Whether it is reducible by a part of its group only, which `reduce` then takes."""
        sizes = [group.dim for group in (self.conserving, self.own, self.turned) if group]
        sizes += [len(part.generators) for part in self.along]
        return self.reducible and 0 < max(sizes) < self.whole.dim

    @property
    def evidence(self) -> str:
        """Why it is reducible or not, and what is conserved."""
        kinds: dict[tuple[str, str], list[str]] = {}
        for name in self.conserved:  # those along several axes of one kind as one
            parts = _ALONG_AXIS.match(name)
            head, axis, tail = parts.groups() if parts else (name, "", "")
            kinds.setdefault((head, tail), []).append(axis)
        momenta = [head + ", ".join(axes) + tail for (head, tail), axes in kinds.items()]
        return "; ".join((self.reason, *momenta))

    def __str__(self) -> str:
        return f"`{self.joint}`: {self.reason}"


@dataclass(frozen=True, eq=False)
class SymmetryReport:
    """Symmetries of a robot, joint by joint; made by `symmetry`.

    Iterate over it for its rows, take one by the name of its body, or print it. The columns of
    the print are attributes of the rows, each a group with its dimension: "group" is `whole`,
    "AP1" `conjugated`, "AP2" `left`, "right" and "kept" are called so, "why" is `evidence`; "-"
    stands for no right translations to speak of, "0" for no motion. For a link that carries
    moving joints, "right" is `turned`. AP1 and AP2 are the
    assumptions of section 4.4 of the thesis.

    Parameters
    ----------
    robot : str
        Name of the robot.
    rows : tuple of JointSymmetry
        One for each joint that can move.
    tolerance : float
        Relative change up to which something counts as invariant.

    Examples
    --------
    >>> import concur as cc
    >>> report = cc.symmetry(cc.robots.planar_floater())
    >>> len(report.rows)
    3
    """

    robot: str
    rows: tuple[JointSymmetry, ...]
    tolerance: float

    @property
    def reducible(self) -> tuple[JointSymmetry, ...]:
        """Rows of the joints that the robot can be reduced by."""
        return tuple(row for row in self.rows if row.reducible)

    def __iter__(self) -> Iterator[JointSymmetry]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, joint: str) -> JointSymmetry:
        known = {row.joint: row for row in self.rows}
        if joint not in known:
            where = f"symmetry of `{self.robot}`"
            raise unknown_name(where, "joint that can move", joint, list(known))
        return known[joint]

    def __str__(self) -> str:
        titles = ("joint", "group", "AP1", "AP2", "right", "kept", "reducible", "why")
        table = [titles] + [
            (
                row.joint,
                f"{row.whole.dim} {row.whole.name}",
                str(row.conjugated),
                str(row.left),
                str(row.right or row.turned or "-"),
                str(row.kept),
                "in part" if row.partly else "yes" if row.reducible else "no",
                row.evidence,
            )
            for row in self.rows
        ]
        return aligned(table)
