"""Springs and dampers: of a joint, or between points of two bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from concur.errors import ConcurError, DescriptionError, shown
from concur.robot._bodies import BodyTree, unknown_name
from concur.robot._pose import check_name, scalar, vector
from concur.robot.joints import VectorJoint
from concur.tables import NotNegative, Number, Vector3


@dataclass(frozen=True)
class Spring:
    """A spring with a damper: of a joint, or between points of two bodies.

    At the coordinate x of the joint, or the distance x of the points, it pulls back with
    ``stiffness (x - rest) + damping dx/dt``. It stores ``stiffness (x - rest)^2 / 2``. Its forces
    are inside the robot, so that they change no momentum of a robot that floats.

    Parameters
    ----------
    joint : str, optional
        Joint whose coordinate it is, or the freedom of a joint with several, such as
        `"slide[vx]"`. Default: none, with `body` and `other`.
    stiffness : float
        Force per length, N/m, or torque per angle, N m/rad.
    damping : float
        Force per speed, N s/m, or torque per angular speed, N m s/rad.
    rest : float
        Coordinate or distance at which the spring is not stretched, rad or m. Where both points
        coincide the spring does not pull.
    body : str, optional
        Body at one end. Default: none, with `joint`.
    point : sequence of float
        Point of this body, in its frame, shape (3,), m.
    other : str, optional
        Body at the other end. Default: none, with `joint`.
    other_point : sequence of float
        Point of the other body, in its frame, shape (3,), m.

    Raises
    ------
    DescriptionError
        If it has neither a joint nor two bodies, or both, neither stiffness nor damping, or a
        number below zero.
    ShapeError, NonFiniteError
        If a number is not finite or an array has another shape.

    Examples
    --------
    >>> import concur as cc
    >>> cc.robot.Spring("elbow", stiffness=40.0, damping=0.3, rest=0.2).name
    'elbow'
    >>> cc.robot.Spring(body="boom", point=(0.4, 0, 0), other="mast", stiffness=900.0).name
    'boom to mast'
    """

    joint: str | None = None
    stiffness: NotNegative = 0.0
    damping: NotNegative = 0.0
    rest: Number = 0.0
    body: str | None = None
    point: Vector3 = (0.0, 0.0, 0.0)
    other: str | None = None
    other_point: Vector3 = (0.0, 0.0, 0.0)
    _cures: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("k", "spring", "constant"), "Write `stiffness`, N/m or N m/rad."),
        **dict.fromkeys(("d", "damper", "viscous"), "Write `damping`, N s/m or N m s/rad."),
        **dict.fromkeys(
            ("springref", "rest_length", "length", "reference"), "Write `rest`, rad or m."
        ),
    }

    def __post_init__(self) -> None:
        ends = [name for name in ("body", "other") if getattr(self, name) is not None]
        if (self.joint is not None) == bool(ends) or len(ends) == 1:
            came = [name for name in ("joint", "body", "other") if getattr(self, name) is not None]
            raise _refusal(
                "spring", "either `joint`, or `body` and `other`", ", ".join(came) or "neither"
            )
        for name in ("joint", *ends):
            if getattr(self, name) is not None:
                check_name(getattr(self, name), f"spring, `{name}`")
        where = f"spring `{self.name}`"
        if self.body is not None and self.body == self.other:
            raise _refusal(f"{where}, `other`", "another body", f"`{self.other}`")
        for name in ("stiffness", "damping", "rest"):
            value = scalar(getattr(self, name), f"{where}, `{name}`")
            if value < 0.0 and (name != "rest" or self.joint is None):
                raise _refusal(f"{where}, `{name}`", "zero or more", shown(value))
            object.__setattr__(self, name, value)
        if not self.stiffness and not self.damping:
            raise _refusal(where, "a stiffness or a damping above zero", "neither")
        for name in ("point", "other_point"):
            place = vector(getattr(self, name), 3, f"{where}, `{name}`")
            if self.joint is not None and any(place):
                cure = "Remove it: points are those of `body` and `other`."
                raise _refusal(f"{where}, `{name}`", "no point beside `joint`", shown(place), cure)
            object.__setattr__(self, name, place)

    @property
    def name(self) -> str:
        """Joint, or both bodies."""
        return f"{self.body} to {self.other}" if self.joint is None else self.joint


def check_springs(where: str, tree: BodyTree, springs: Sequence[Spring]) -> None:
    """Refuse springs of joints and bodies that a tree lacks, or that cannot stretch."""
    names = tree.freedom_names
    for spring in springs:
        place = f"{where}, spring `{spring.name}`"
        if spring.joint is None:
            welded = tree.welded(tree.index(str(spring.body), f"spring `{spring.name}`, `body`"))
            if tree.index(str(spring.other), f"spring `{spring.name}`, `other`") in welded:
                expected = "bodies that move relative to each other"
                raise _refusal(f"{place}, `other`", expected, "bodies that are fixed to each other")
            continue
        if spring.joint not in names:
            raise unknown_name(f"{place}, `joint`", "joint", spring.joint, names)
        if coordinate(tree, spring.joint) is None:
            raise _refusal(
                f"{place}, `joint`",
                "a joint whose velocity is the rate of its coordinate",
                f"`{spring.joint}`, whose joint turns in space or in a plane",
                "Put springs between points of the two bodies: `body`, `point`, `other`.",
            )
        if names.index(spring.joint) < tree.bodies[0].joint.nv:
            raise _refusal(
                f"{place}, `joint`",
                "a joint between two bodies",
                f"the base `{tree.base.name}`",
                "Add a base with a Fixed joint, which carries this body.",
            )


def coordinate(tree: BodyTree, freedom: str) -> int | None:
    """Index in q of the coordinate whose rate a freedom is, if there is one."""
    row = tree.freedom_names.index(freedom)
    for body, at, entries in zip(tree.bodies, tree.v_spans, tree.q_spans, strict=True):
        if at.start <= row < at.stop:
            return entries.start + row - at.start if isinstance(body.joint, VectorJoint) else None
    return None


def _refusal(where: str, expected: str, came: str, cure: str = "Correct the entry.") -> ConcurError:
    return DescriptionError(where, expected=expected, came=came, cure=cure)
