"""A wheel: rolling contact of a body with a plane or a sphere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from concur.errors import ConcurError, WheelError, shown
from concur.robot._pose import check_name, scalar, unit_vector, vector
from concur.tables import Choice, Positive, Vector3

KINDS = ("disk", "omni", "mecanum", "slider", "ball", "rubber_ball")

BALLS = ("ball", "rubber_ball")

SMOOTH = ("disk", *BALLS)
"""Kinds that touch any support in one point."""


@dataclass(frozen=True)
class Support:
    """Plane or sphere on which a body rolls that moves freely above it.

    Parameters
    ----------
    body : str, optional
        Body to which the surface is fixed. Default: the inertial frame.
    radius : float, optional
        Radius of a sphere, m. Default: a plane.
    center : sequence of float
        Centre of the sphere, or a point of the plane, in the frame of `body`, shape (3,), m.
    normal : sequence of float
        Normal of the plane in this frame, to the side of the rolling body, shape (3,), of any
        length.
    hollow : bool
        Whether the body rolls inside the sphere.

    Raises
    ------
    DescriptionError
        If the body is not a name.
    WheelError
        If the radius is not above zero, or a plane is hollow.

    Examples
    --------
    >>> from concur.robot import Support
    >>> Support(normal=(0, 0, 2)).normal
    (0.0, 0.0, 1.0)
    """

    body: str | None = None
    radius: Positive | None = None
    center: Vector3 = (0.0, 0.0, 0.0)
    normal: Vector3 = (0.0, 0.0, 1.0)
    hollow: bool = False
    _cures: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("box", "capsule", "cylinder", "mesh", "size", "width"),
        "Bodies roll on planes and spheres, which they touch in one smooth contact point. Leave it "
        "out for a plane, or give `radius` for a sphere.",
    )

    def __post_init__(self) -> None:
        where = "support of a wheel"
        if self.body is not None:
            check_name(self.body, f"{where}, `body`")
        if self.radius is not None:
            object.__setattr__(self, "radius", scalar(self.radius, f"{where}, `radius`"))
        if self.radius is not None and not self.radius > 0.0:
            raise _refuse(f"{where}, `radius`", "a radius above zero", f"{self.radius} m")
        if not isinstance(self.hollow, bool) or (self.hollow and self.radius is None):
            raise _refuse(f"{where}, `hollow`", "true for a sphere only", shown(self.hollow))
        object.__setattr__(self, "center", vector(self.center, 3, f"{where}, `center`"))
        object.__setattr__(self, "normal", unit_vector(self.normal, f"{where}, `normal`"))


@dataclass(frozen=True)
class Wheel:
    """Rolling contact of a body with a plane.

    The plane is that of the first planar or sliding joint between base and body: of the base's,
    which rolls on the ground, or that of a vehicle on a hull, which may move.

    Parameters
    ----------
    body : str
        Name of the rolling body; its joint is a `Revolute` joint about the wheel axis. For a
        "slider" any body, with `axis` given; for a ball a body on a `Spherical` joint.
    radius : float
        Radius, m; 0 for a slider.
    kind : str
        Kind of the wheel: "disk" rolls without slipping in any direction; "omni" and "mecanum" grip
        along their rollers' axes only, and "omni" also stands for a plain wheel that skids
        sideways without resistance; "slider" cannot slip sideways and nothing else. "ball"
        rolls without slipping; a "rubber_ball" does not turn about the normal either.
    roller_angle : float, optional
        Of "mecanum", and required there: angle from the wheel axis to the axis of the roller
        that touches the plane, rad. Default: none.
    axis : sequence of float, optional
        Wheel axis in the body frame, shape (3,), of any length; not for balls. Default: that of
        the joint.
    center : sequence of float
        Wheel centre in the body frame, on the joint axis, shape (3,), m; the origin for a ball.
    ground : float, optional
        Height of the plane along its normal, from the inertial origin or that of the hull, m.
        Default: the height at which the wheels touch it, which must be the same.
    support : Support, optional
        Surface on which a "disk", "ball" or "rubber_ball" rolls that no joint keeps on a plane:
        the wheel's body is free, and the contact is a constraint too. Any joint may then carry the
        body; a disk on other than a revolute joint needs `axis`. Default: the plane of the joint.

    Raises
    ------
    DescriptionError
        If the body is not a name.
    WheelError
        If the kind is unknown, or the radius or roller angle cannot be.

    References
    ----------
    Source 000, (4.12)-(4.15); source 003, (136)-(142), for a ball.

    Examples
    --------
    >>> import concur as cc
    >>> wheel = cc.Wheel("left", 0.1)
    >>> wheel.kind, wheel.radius
    ('disk', 0.1)
    """

    body: str
    radius: float
    kind: Annotated[str, Choice(KINDS)] = "disk"
    roller_angle: float | None = None
    axis: Vector3 | None = None
    center: Vector3 = (0.0, 0.0, 0.0)
    ground: float | None = None
    support: Support | None = None

    def __post_init__(self) -> None:
        check_name(self.body, "wheel, `body`")
        where = f"wheel `{self.body}`"
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise _refuse(f"{where}, `kind`", f"one of {', '.join(KINDS)}", shown(self.kind))
        for attribute in ("radius", "roller_angle", "ground"):
            value = getattr(self, attribute)
            if value is not None or attribute == "radius":
                number = scalar(value, f"{where}, `{attribute}`")
                object.__setattr__(self, attribute, number)
        if self.radius < 0.0 or (self.radius == 0.0 and self.kind != "slider"):
            raise _refuse(f"{where}, `radius`", "a radius above zero", f"{self.radius} m")
        if self.kind == "mecanum" and self.roller_angle is None:
            raise _refuse(f"{where}, `roller_angle`", "the roller angle in rad", "no value")
        if self.kind == "mecanum" and abs(math.sin(self.roller_angle or 0.0)) < 1e-6:
            raise _refuse(
                f"{where}, `roller_angle`",
                "rollers that are not parallel to the wheel axis",
                f"{self.roller_angle} rad",
            )
        if self.kind != "mecanum" and self.roller_angle is not None:
            raise _refuse(f"{where}, `roller_angle`", f"none for kind {self.kind!r}", "a number")
        if self.kind == "slider" and self.axis is None:
            raise _refuse(f"{where}, `axis`", "the direction that cannot slip", "no value")
        if self.kind in BALLS and self.axis is not None:
            raise _refuse(f"{where}, `axis`", f"none for kind {self.kind!r}", f"{self.axis}")
        if self.axis is not None:
            object.__setattr__(self, "axis", unit_vector(self.axis, f"{where}, `axis`"))
        object.__setattr__(self, "center", vector(self.center, 3, f"{where}, `center`"))
        if self.support is not None:
            self._check_support(f"{where}, `support`", self.support)

    def _check_support(self, where: str, support: Support) -> None:
        """Demand a contact in one point."""
        if not isinstance(support, Support):
            raise _refuse(where, "a Support", shown(support))
        if self.kind not in SMOOTH:
            raise WheelError(
                where,
                expected=f"a body that touches a surface in one point: {', '.join(SMOOTH)}",
                came=f"kind {self.kind!r}, whose rollers need a plane",
                cure="Put the body that stands on such wheels on a Planar joint.",
            )
        if self.ground is not None:
            raise _refuse(f"{where}, `ground`", "no `ground`: `center` gives it", f"{self.ground}")
        if support.hollow and support.radius is not None and self.radius >= support.radius:
            raise WheelError(
                f"{where}, `radius`",
                expected=f"a hollow sphere of a radius above that of the wheel, {self.radius:g} m",
                came=f"{support.radius:g} m: contact would not be in one point",
                cure="Make the hollow sphere larger or the wheel smaller.",
            )


def _refuse(where: str, expected: str, came: str) -> ConcurError:
    return WheelError(
        where,
        expected=expected,
        came=came,
        cure="See the documentation of Wheel for what each kind needs.",
    )
