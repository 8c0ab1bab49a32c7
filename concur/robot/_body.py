"""A rigid body and the joint that carries it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from concur.errors import ConcurError, DescriptionError, entries, shown
from concur.robot._inertia import Inertia
from concur.robot._pose import Pose, check_name
from concur.robot._shapes import Shape
from concur.robot.joints import Helical, Joint, Sliding
from concur.tables import (
    NUMBER,
    PAIR,
    Expected,
    NumberOrList,
    OneOrMore,
    any_of,
    is_number,
    list_of,
)


def _is_pair(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_number, value))


Limits = Annotated[
    Any,
    Expected(
        "a pair [lower, upper], or a list of one pair per coordinate of the joint",
        lambda value: isinstance(value, list) and (_is_pair(value) or all(map(_is_pair, value))),
        list_of(any_of(NUMBER, PAIR)),
    ),
]
"""Bounds of the coordinates of a joint; infinite without a bound."""


@dataclass(frozen=True)
class Body:
    """A rigid body together with the joint that connects it to its parent.

    The body frame is the joint frame moved along with the body: at the joint's neutral
    configuration the two coincide.

    Parameters
    ----------
    name : str
        Name of the body, unique in a mechanism.
    joint : Joint
        Motion that the body may have relative to its parent.
    parent : str, optional
        Name of the parent body; exactly one body, the base, has none. Default: the inertial frame.
    placement : Pose
        Pose of the joint frame in the frame of the parent, or in the inertial frame. Default: that
        frame.
    inertia : Inertia
        Mass, centre of mass and moments in the body frame. Default: no mass.
    limits : sequence, optional
        Lower and upper bound of each configuration coordinate of the joint, m or rad: a pair
        for one coordinate, else a pair for each; infinite where there is no bound. A joint with a
        quaternion has none. They bound inverse kinematics and are part of the verdict of a run; the
        dynamics have no stops. Default: none.
    speed_limit : float or sequence of float, optional
        Largest speed of the joint in both directions, m/s or rad/s: a number for all its freedoms,
        or one per freedom. Part of the verdict of a run. Default: none.
    torque_limit : float or sequence of float, optional
        Largest force or torque of the joint's motor in both directions, N or N m: a number for all
        its freedoms, or one per freedom. Part of the verdict of a run; `Servo` limits its torques
        only by its own `torque_limits`. Default: none.
    shape : Shape or sequence of Shape, optional
        Shapes that drawings show; the dynamics do not use them. Default: none.
    joint_name : str, optional
        Name of the joint, by which its coordinates, its freedoms and the control of its motor are
        called; unique among joints that move. Default: that of the body.

    Raises
    ------
    DescriptionError
        If a part is of the wrong kind, or the limits do not fit the joint.

    Examples
    --------
    >>> import concur as cc
    >>> inertia = cc.Inertia(20.0, moments=(1, 1, 1))
    >>> hull = cc.Body("hull", cc.joints.Free(), inertia=inertia)
    >>> hull.name, hull.inertia.mass
    ('hull', 20.0)
    """

    name: str
    joint: Joint
    parent: str | None = None
    placement: Pose = field(default_factory=Pose)
    inertia: Inertia = field(default_factory=lambda: Inertia(0.0))
    limits: Limits = None
    speed_limit: NumberOrList = None
    torque_limit: NumberOrList = None
    shape: Annotated[Any, OneOrMore(Shape)] = ()
    joint_name: str | None = None

    def __post_init__(self) -> None:
        where = f"body `{self.name}`"
        check_name(self.name, "Body, `name`")
        for attribute, kind in (("joint", Joint), ("placement", Pose), ("inertia", Inertia)):
            value = getattr(self, attribute)
            if not isinstance(value, kind):
                if kind is Joint:
                    raise _wrong_joint(where, value)
                article = "an" if kind is Inertia else "a"
                raise _wrong_kind(f"{where}, `{attribute}`", f"{article} {kind.__name__}", value)
        for attribute in ("parent", "joint_name"):
            if getattr(self, attribute) is not None:
                check_name(getattr(self, attribute), f"{where}, `{attribute}`")
        if self.joint_name == self.name:
            object.__setattr__(self, "joint_name", None)
        object.__setattr__(self, "limits", _limits(where, self.joint, self.limits))
        for attribute in ("speed_limit", "torque_limit"):
            value = getattr(self, attribute)
            largest = _largest(f"{where}, `{attribute}`", self.joint, value)
            object.__setattr__(self, attribute, largest)
        shapes = [self.shape] if isinstance(self.shape, Shape) else self.shape or ()
        shapes = entries(shapes, Shape)
        if shapes is None:
            raise _wrong_kind(f"{where}, `shape`", "a Shape or a list of them", self.shape)
        object.__setattr__(self, "shape", shapes)

    @property
    def joint_label(self) -> str:
        """Name of the joint: `joint_name`, or that of the body."""
        return self.joint_name or self.name

    def of_each(self, names: Sequence[str]) -> tuple[str, ...]:
        """Names of parts of the joint: its own if there is one part, else with the part's name.

        Parameters
        ----------
        names : sequence of str
            Names of the parts: of its coordinates or freedoms.

        Returns
        -------
        tuple of str
            One per part, such as `elbow` or `base[x]`.
        """
        label = self.joint_label
        return (label,) if len(names) == 1 else tuple(f"{label}[{name}]" for name in names)


def helical_plane(
    name: str,
    normal: Sequence[float],
    pitch: float,
    parent: str | None = None,
    placement: Pose = Pose(),  # noqa: B008 (frozen)
    inertia: Inertia = Inertia(0),  # noqa: B008 (frozen)
) -> tuple[Body, Body]:
    """Build a body that slides in a plane and screws about its normal, H_p x| R^2.

    This group of Table 2.1 is the only one whose exponential misses poses: after a full turn
    no constant twist leads to a point beside the axis, so that screw parameters of the joint
    do not exist there and grow without bound nearby. As `Sliding` followed by `Helical`, with
    a body without mass between them, it has coordinates (x, y, angle) that reach every pose of
    (2.4.21) once and a velocity of full rank everywhere.

    As the first joint of a robot the pair is less than the group: the group that moves the whole
    robot by its first joint alone is then R^2, the translations, and a reduction by it removes
    two freedoms where the group as one joint would remove three.

    Parameters
    ----------
    name : str
        Name of the body; the body without mass is called ``<name>_slide``.
    normal : sequence of float
        Normal of the plane and direction of the screw in the joint frame, shape (3,).
    pitch : float
        Travel along the normal per angle, m/rad; not zero: without it use `Planar`.
    parent : str, optional
        Name of the parent body; none for the inertial frame.
    placement : Pose
        Joint frame in the parent's body frame.
    inertia : Inertia
        Mass, centre of mass and moments of the body in its frame.

    Returns
    -------
    slide, body : Body
        The body without mass and the body itself, both for the list of a `Mechanism`.

    Raises
    ------
    DescriptionError
        If the pitch is zero.

    References
    ----------
    Thesis, (2.4.21).

    Examples
    --------
    >>> import concur as cc
    >>> slide, nut = cc.robot.helical_plane("nut", (0, 0, 1), 0.01, inertia=cc.Inertia(0.2))
    >>> slide.name, nut.parent
    ('nut_slide', 'nut_slide')
    """
    slide = Body(f"{name}_slide", Sliding(normal), parent=parent, placement=placement)
    return slide, Body(name, Helical(normal, pitch), parent=slide.name, inertia=inertia)


def _limits(where: str, joint: Joint, value: Any) -> tuple[tuple[float, float], ...]:
    """Pairs (lower, upper) for each coordinate; infinite where there is no bound."""
    free = (-math.inf, math.inf)
    if value is None:
        return (free,) * joint.nq
    expected = f"{joint.nq} pairs (lower, upper) with lower < upper, one per coordinate"
    if joint.quaternion_at is not None:
        expected = f"no limits: a {type(joint).__name__} joint has a quaternion"
    try:
        if joint.nq == 1 and len(value) == 2 and not any(hasattr(x, "__len__") for x in value):
            value = (value,)
        pairs = tuple(
            free if pair is None else (_number(pair[0]), _number(pair[1])) for pair in value
        )
    except (TypeError, ValueError, IndexError, KeyError, OverflowError):
        raise _wrong_kind(f"{where}, `limits`", expected, value) from None
    fits = len(pairs) == joint.nq and all(low < high for low, high in pairs)
    if not fits or (joint.quaternion_at is not None and any(pair != free for pair in pairs)):
        raise _wrong_kind(f"{where}, `limits`", expected, value)
    return pairs


def _number(value: Any) -> float:
    """A number, which text, true and false are not."""
    if isinstance(value, str | bytes | bool):
        raise TypeError
    return float(value)


def _largest(where: str, joint: Joint, value: Any) -> tuple[float, ...]:
    """Bound of each freedom, infinite by default."""
    if value is None:
        return (math.inf,) * joint.nv
    expected = f"a number above zero, or {joint.nv} of them, one per freedom of the joint"
    if not joint.nv:
        expected = "no limit: a Fixed joint does not move"
    try:
        several = hasattr(value, "__len__") and not isinstance(value, str | bytes)
        entries = tuple(value) if several else (value,) * max(1, joint.nv)
        numbers = tuple(_number(entry) for entry in entries)
    except (TypeError, ValueError):
        raise _wrong_kind(where, expected, value) from None
    if len(numbers) != joint.nv or not all(number > 0.0 for number in numbers):
        raise _wrong_kind(where, expected, value)
    return numbers


def _wrong_joint(where: str, value: object) -> ConcurError:
    """Build the error for what is no joint: often its name, or its class without an axis."""
    name = value if isinstance(value, str) else getattr(value, "__name__", "")
    kind = next((k for k in ("Revolute", "Prismatic") if k.lower() == str(name).lower()), "")
    example = f"cc.joints.{kind or 'Revolute'}((0, 0, 1))"
    return DescriptionError(
        f"{where}, `joint`",
        expected="a Joint",
        came=f"{type(value).__name__} {value!r:.60}",
        cure=f"Make one, for example {example}, after `import concur as cc`.",
    )


def _wrong_kind(where: str, expected: str, value: object) -> ConcurError:
    return DescriptionError(
        where,
        expected=expected,
        came=f"{type(value).__name__} {shown(value)}",
        cure="See the documentation of the constructor.",
    )
