"""Symmetries of a robot, joint by joint, and their consequences in words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from concur.groups import Subgroup
from concur.robot import unknown_name

DIRECTION = 1e-6
"""Axes and twists closer than this (rad, lengths of the part) are the same."""

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
        The joint's body.
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
    reducing : SymmetryGroup
        Those motions of `conserving` that keep the velocities that rolling admits as well.
    own, own_reducing : SymmetryGroup, optional
        The same two among the motions of `right`, in the frame of the body.
    reducible : bool
        Whether the joint is unactuated and the robot can be reduced by `reducing` or
        `own_reducing`, whose momenta are constant, or, where the wheels give the joint's
        velocity, by `kept`. The group may be smaller than the joint's: see `partly`.
    reason : str
        Why, or why not.
    conserved : tuple of str
        Components of momentum <M v, motion> that stay constant: one for each generator of
        `conserving`, in the joint frame, and, unless the joint's motions commute, one for each
        of `own`, in the axes of the body; empty if the joint is driven.
    tied : bool
        Whether the joint is unactuated and the wheels tie other velocities to its own: the
        momentum that `conservation` judges is then another one, see `SymmetryReport.note`.
    turned : SymmetryGroup, optional
        Right translations that move nothing but the link, in the frame of its body, if all that it
        carries turns back: the spin of a round link or of one on a cable; None for a joint that
        carries no moving joints, or if a motor, thruster or wheel acts there.

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
    reducing: SymmetryGroup
    own: SymmetryGroup | None
    own_reducing: SymmetryGroup | None
    reducible: bool
    reason: str
    conserved: tuple[str, ...] = ()
    tied: bool = False
    turned: SymmetryGroup | None = None

    @property
    def partly(self) -> bool:
        """Whether it is reducible by a part of its group only, which `reduce` then takes."""
        groups = (self.reducing, self.own_reducing, self.turned)
        sizes = [group.dim for group in groups if group]
        return self.reducible and 0 < max(sizes) < self.whole.dim

    @property
    def evidence(self) -> str:
        """Why it is reducible or not, and what is conserved."""
        return "; ".join((self.reason, *_gathered(self.conserved)))

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

    @property
    def note(self) -> str:
        """Remark on momenta of joints with wheels, a sentence; empty if it does not apply."""
        names = ", ".join(f"`{row.joint}`" for row in self.rows if row.tied)
        if not names:
            return ""
        return (
            f"Momenta here are those of the joints themselves: for {names} `conservation` and "
            "`reduce` judge that of the reduced robot, with what rolls along, which can be "
            "constant where this one is not."
        )

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
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in table
        ]
        return "\n".join([*lines, self.note] if self.note else lines)


def judged(
    row: JointSymmetry, given: bool, rolls: bool, abelian: bool, length: float
) -> JointSymmetry:
    """The row with `reducible`, `reason` and `conserved`."""
    keeps = "kinetic energy, potential and constraints" if rolls else "kinetic energy and potential"
    lost = _lost(row)
    conserved = [_momentum(twist, length) for twist in row.conserving.twists.T]
    if row.own is not None and not abelian:
        # Where motions commute, left and right translations are the same.
        conserved += [_momentum(twist, length) + " of the body" for twist in row.own.twists.T]
    if row.turned is not None:
        turned = [_momentum(twist, length) for twist in row.turned.twists.T]
        conserved += [f"{text} of the body, with all it carries turned back" for text in turned]
    groups = (row.reducing, row.own_reducing, row.turned)
    by_momentum = any(group.dim for group in groups if group)
    if not row.kept.dim and not conserved:
        return replace(row, reason=lost)
    if row.driven:
        verdict = "driven: its momentum changes with the torque"
    elif conserved and by_momentum:
        verdict = f"conserved: it is unactuated, and {keeps} keep it"
    elif conserved:
        verdict = (
            "conserved: it is unactuated, kinetic energy and potential keep it, and rolling "
            "admits it, but it changes what rolling admits otherwise"
        )
    elif given:
        verdict = (
            f"rolling: {keeps} keep it and the wheels give its velocity, but their reactions "
            "change its momentum"
        )
    else:
        verdict = f"rolling: {keeps} keep it, but the reactions of the wheels change its momentum"
    if conserved and not row.driven and not row.conserving.dim:
        verdict += ", moved in the axes of its body"
        lost = ""
    return replace(
        row,
        reducible=not row.driven and (by_momentum or (given and row.kept.dim > 0)),
        reason=verdict + (f"; {lost}" if lost and row.kept.dim else ""),
        conserved=() if row.driven else tuple(conserved),
    )


def _lost(row: JointSymmetry) -> str:
    """What makes the group of a joint smaller than the joint's, in words with numbers."""
    left, whole = row.left, row.whole
    parts = []
    if left.dim < whole.dim:
        rest = f"the rest of {whole.name}" if left.dim else "it"
        parts.append(f"kinetic energy depends on {rest} (change {left.violation:.1e})")
    for group, word in (
        (row.potential, "gravity breaks {}"),
        (row.constraints, "the rolling constraints depend on {}"),
    ):
        if group.dim < left.dim:
            rest = f"the rest of {left.name}" if group.dim else "it"
            parts.append(f"{word.format(rest)} (change {group.violation:.1e})")
    if left.dim and not row.constraints.dim:
        parts[-1] = "metric only: " + parts[-1]
    if row.potential.dim and row.constraints.dim and not row.kept.dim:
        parts.append("no motion keeps both")
    return "; ".join(parts)


def _momentum(twist: np.ndarray, length: float) -> str:
    """Name of the component of momentum that belongs to a twist."""
    shift, turn = twist[:3], twist[3:]
    if np.linalg.norm(turn) * length < DIRECTION * np.linalg.norm(shift):
        return f"linear momentum along {_axis(shift)}"
    speed = np.linalg.norm(turn)
    pitch, point = float(shift @ turn) / speed**2, np.cross(turn, shift) / speed**2
    text = f"angular momentum about {_axis(turn)}"
    if abs(pitch) > DIRECTION * length:
        text = f"screw momentum about {_axis(turn)} with pitch {pitch:.4g} m/rad"
    if np.linalg.norm(point) > DIRECTION * length:
        text += f" through {_numbers(point)}"
    return text


def _gathered(components: tuple[str, ...]) -> list[str]:
    """Names of components, those along several axes of one kind as one."""
    kinds: dict[tuple[str, str], list[str]] = {}
    for component in components:
        parts = _ALONG_AXIS.match(component)
        head, axis, tail = parts.groups() if parts else (component, "", "")
        kinds.setdefault((head, tail), []).append(axis)
    return [head + ", ".join(axes) + tail for (head, tail), axes in kinds.items()]


def _axis(direction: np.ndarray) -> str:
    unit = direction / np.linalg.norm(direction)
    for name, axis in zip("xyz", np.eye(3), strict=True):
        if np.abs(unit - axis).max() < DIRECTION:
            return name
    return _numbers(unit)


def _numbers(values: np.ndarray) -> str:
    return "(" + ", ".join(f"{x + 0.0:.4g}" for x in values) + ")"
