"""How a base on wheels stands on the ground in MuJoCo: supports and friction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from concur.codegen import finite_floats
from concur.errors import DescriptionError, shown
from concur.robot import Tree, joints, scalar
from concur.writers._names import refuse

TIME_CONSTANT = 4.0
"""Time in which a contact comes to rest, in time steps; MuJoCo needs two or more."""

SOLVER = {
    "integrator": "implicitfast",
    "solver": "Newton",
    "tolerance": "1e-12",
    "cone": "elliptic",
    "impratio": "100",
}
"""Options for contacts, the same for every robot.

An elliptic cone limits friction alike in all directions. Newton's method solves the contacts up to
rounding in a few iterations. `implicitfast` costs as much as Euler's method and takes damping and
gyroscopic forces implicitly; Runge and Kutta's orders need forces without corners. Contacts creep:
with the default `impratio` of 1 ten times as fast as with 100.
"""

LARGEST_FRICTION = 1e3


@dataclass(frozen=True)
class Contacts:
    """A planar base that is free in MuJoCo and stands on its wheels and on supports.

    Parameters
    ----------
    supports : mapping of str to sequence of float
        Frictionless supports, such as casters: by name the point of contact in the frame of the
        base, shape (3,), m. Its height is that of the ground, whatever is written.
    friction : float or mapping of str to float
        Friction coefficient of all wheels, or of each by the name of its body.
    height : float, optional
        Height of the ground above the plane of the base's frame, along its normal, m. Default: the
        height of the wheels.

    Raises
    ------
    DescriptionError
        If a number is out of range.
    """

    supports: Mapping[str, Sequence[float]] = field(default_factory=dict)
    friction: float | Mapping[str, float] = 1.0
    height: float | None = None

    def __post_init__(self) -> None:
        points = {
            name: tuple(finite_floats(at, f"contacts, support `{name}`", (3,)).tolist())
            for name, at in self.supports.items()
        }
        object.__setattr__(self, "supports", points)
        each = (
            self.friction if isinstance(self.friction, Mapping) else {"all wheels": self.friction}
        )
        for name, value in each.items():
            place = f"contacts, `friction` of {name}"
            if not 0.0 <= scalar(value, place) <= LARGEST_FRICTION:
                raise DescriptionError(
                    place,
                    expected=f"a coefficient from 0 to {LARGEST_FRICTION:g}",
                    came=shown(value),
                    cure="Rubber on dry ground has 0.5 to 1.",
                )

    def of(self, robot: Tree) -> dict[str, float]:
        """Friction coefficient of each wheel, after a check that the robot can stand.

        Parameters
        ----------
        robot : Tree
            The robot.

        Returns
        -------
        dict of str to float
            By the name of the wheel's body.

        Raises
        ------
        DescriptionError
            If the base has no `Planar` joint or motors, or the names are not those of the wheels.
        """
        base, names = robot.base, [wheel.body for wheel in robot.wheels]
        if not isinstance(base.joint, joints.Planar) or base.joint_label in (robot.actuated or ()):
            came = f"a {type(base.joint).__name__} joint" + " with motors" * (
                isinstance(base.joint, joints.Planar)
            )
            expected = "a Planar joint without motors, of a base that stands on wheels"
            refuse(robot, f"base `{base.name}`", expected, came, "Omit `contacts`.")
        if not isinstance(self.friction, Mapping):
            return dict.fromkeys(names, float(self.friction))
        if sorted(self.friction) != sorted(names):
            came, cure = shown(sorted(self.friction)), "Name each wheel once."
            refuse(robot, "`friction`", f"wheels {', '.join(names)}", came, cure)
        return {name: float(self.friction[name]) for name in names}


def contact_options(time_step: float, friction: float) -> dict[str, str]:
    """Attributes of a geom whose friction and softness count, not those of the ground."""
    return {
        "priority": "1",
        "friction": f"{friction!r} 0.005 0.0001",
        "solref": f"{TIME_CONSTANT * time_step!r} 1",
    }


def support_radius(robot: Tree) -> float:
    """Radius of the sphere of a support, m: about the size of a caster."""
    return 0.5 * float(np.median([wheel.radius for wheel in robot.wheels]))
