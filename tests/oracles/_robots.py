"""The two examples of section 4.6, with the numbers for which references were computed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class RoverNumbers:
    """Parameters of Example 4.6.1: lengths in m, masses in kg, moments in kg m^2."""

    b: float = 0.10
    c: float = 0.25
    l0: float = 0.08
    l1: float = 0.12
    l2: float = 0.30
    l3: float = 0.40
    l4: float = 0.20
    g: float = 9.81
    m: tuple[float, ...] = (12.0, 1.0, 1.0, 2.0, 1.5, 1.0)
    base: tuple[float, ...] = (0.25, 0.35, 0.50)
    wheel: tuple[float, ...] = (0.0028, 0.0050, 0.0028)
    links: tuple[tuple[float, ...], ...] = field(
        default=((0.016, 0.0025, 0.016), (0.0205, 0.0012, 0.0205), (0.004, 0.003, 0.005))
    )


CASE_STUDY = RoverNumbers(
    l0=0.25,
    l1=0.15,
    l2=0.4,
    l3=0.4,
    m=(30.0, 1.5, 1.5, 2.0, 2.0, 1.0),
    base=(0.9, 1.1, 1.6),
    wheel=(0.004, 0.0075, 0.004),
    links=((0.027, 0.0025, 0.027), (0.027, 0.0025, 0.027), (0.005, 0.001, 0.005)),
)
"""Parameters of the case study in section 5.5."""


def _platform(n: RoverNumbers) -> list[Body]:
    turning = joints.Revolute(Y)
    return [
        Body("chassis", joints.Planar(), inertia=Inertia(n.m[0], (n.l0, 0, 0), n.base)),
        Body("left", turning, "chassis", Pose((0, n.c, 0)), Inertia(n.m[1], moments=n.wheel)),
        Body("right", turning, "chassis", Pose((0, -n.c, 0)), Inertia(n.m[2], moments=n.wheel)),
    ]


@lru_cache(maxsize=16)
def rover(n: RoverNumbers | None = None) -> Mechanism:
    """Build the rover of Example 4.6.1; q = (x, y, theta, psi1, psi2, phi1, phi2, phi3)."""
    n = n or RoverNumbers()
    coms = (0, n.l2 / 2, 0), (0, n.l3 / 2, 0), (0, n.l4, 0)
    links = [
        Inertia(m, com, moments) for m, com, moments in zip(n.m[3:], coms, n.links, strict=True)
    ]
    bodies = [
        *_platform(n),
        Body("turret", joints.Revolute(Z), "chassis", Pose((n.l0 + n.l1, 0, 0)), links[0]),
        Body("upper", joints.Revolute(X), "turret", Pose((0, n.l2, 0)), links[1]),
        Body("fore", joints.Revolute(X), "upper", Pose((0, n.l3, 0)), links[2]),
    ]
    wheels = [Wheel("left", n.b), Wheel("right", n.b)]
    return Mechanism("rover", bodies, wheels=wheels, gravity=(0, 0, -n.g))


@lru_cache(maxsize=16)
def rover_without_arm(n: RoverNumbers | None = None) -> Mechanism:
    """Build the platform of Example 4.6.1 alone; q = (x, y, theta, psi1, psi2)."""
    n = n or RoverNumbers()
    wheels = [Wheel("left", n.b), Wheel("right", n.b)]
    return Mechanism("platform", _platform(n), wheels=wheels, gravity=(0, 0, -n.g))


@dataclass(frozen=True)
class CraneNumbers:
    """Parameters of Example 4.6.2: lengths in m, masses in kg, moments in kg m^2."""

    l: float = 2.5
    c: float = 0.7
    b: float = 0.3
    l0: float = 1.2
    l1: float = 1.0
    l2: float = 1.5
    m: tuple[float, ...] = (800.0, 60.0, 150.0, 20.0, 20.0, 90.0)
    j: tuple[tuple[float, ...], ...] = field(
        default=(
            (120.0, 550.0, 600.0),
            (12.0, 1.5, 12.0),
            (40.0, 40.0, 15.0),
            (0.6, 0.9, 0.6),
            (0.6, 0.9, 0.6),
            (1.0, 45.0, 45.0),
        )
    )

    @property
    def total(self) -> float:
        """Mass of all bodies."""
        return sum(self.m)

    @property
    def first(self) -> float:
        """S: mass times distance from the rear axle, all bodies."""
        m = self.m
        return self.l * (m[1] + 2 * m[3]) + self.l0 * m[0] + self.l1 * (m[2] + m[5])

    @property
    def steering(self) -> float:
        """k22: moment of what steers about its axis."""
        return 2 * self.m[3] * self.c**2 + self.j[1][0] + 2 * self.j[3][0]

    def column(self, phi2: float) -> float:
        """k33: moment of the crane about its axis."""
        jx, jy = self.j[5][:2]
        return self.j[2][2] + jx * np.sin(phi2) ** 2 + jy * np.cos(phi2) ** 2

    def turning(self, phi2: float) -> float:
        """j_t: moment of everything about the middle of the rear axle."""
        m, j = self.m, self.j
        return (
            j[0][2]
            + j[1][0]
            + j[2][2]
            + 2 * j[3][0]
            + j[5][0]
            + self.l**2 * (m[1] + 2 * m[3])
            + self.l0**2 * m[0]
            + self.l1**2 * (m[2] + m[5])
            + 2 * self.c**2 * m[3]
            + (j[5][1] - j[5][0]) * np.cos(phi2) ** 2
        )


@lru_cache(maxsize=16)
def crane(n: CraneNumbers | None = None, undriven: str | None = None) -> Mechanism:
    """Build the car with a crane; q = (x, y, theta, psi1, phi1, psi2, psi3, phi2).

    All joints but the base are driven, but for one that may be named; psi1 is the joint of
    "axle", phi1 of "column", psi2 of "left", psi3 of "right" and phi2 of "boom".
    """
    n = n or CraneNumbers()
    bodies = [
        Body("chassis", joints.Planar(), None, Pose(), Inertia(n.m[0], (n.l0, 0, 0), n.j[0])),
        Body(
            "axle",
            joints.Revolute(Z),
            "chassis",
            Pose((n.l, 0, 0)),
            Inertia(n.m[1], moments=n.j[1]),
        ),
        Body(
            "column",
            joints.Revolute(Z),
            "chassis",
            Pose((n.l1, 0, 0)),
            Inertia(n.m[2], (0, 0, n.l2 / 2), n.j[2]),
        ),
        Body(
            "left", joints.Revolute(Y), "axle", Pose((0, n.c, 0)), Inertia(n.m[3], moments=n.j[3])
        ),
        Body(
            "right", joints.Revolute(Y), "axle", Pose((0, -n.c, 0)), Inertia(n.m[4], moments=n.j[4])
        ),
        Body(
            "boom",
            joints.Revolute(Y),
            "column",
            Pose((0, 0, n.l2)),
            Inertia(n.m[5], moments=n.j[5]),
        ),
    ]
    wheels = [
        Wheel("chassis", n.b, kind="slider", axis=Y),
        Wheel("left", n.b),
        Wheel("right", n.b),
    ]
    driven = [body.name for body in bodies[1:] if body.name != undriven]
    return Mechanism("crane", bodies, wheels=wheels, actuated=driven)
