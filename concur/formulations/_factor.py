"""Factors of a configuration space: R^n, SO(2), SO(3), SE(2), SE(3) and the two-sphere."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector, as_floats, finite_floats
from concur.errors import DescriptionError, shown
from concur.groups import se3, so3
from concur.groups.stumpff import stumpff
from concur.robot import unknown_name
from concur.robot.joints import (
    Cartesian,
    Free,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Sliding,
    Spherical,
)

GROUPS = {"SO2": Revolute((0.0, 0.0, 1.0)), "SO3": Spherical(), "SE2": Planar(), "SE3": Free()}
"""Joints whose coordinates and velocities are those of a group."""

TRAVELS = {"R": Prismatic((1.0, 0.0, 0.0)), "R2": Sliding(), "R3": Cartesian()}
"""Joints whose coordinates are lengths along the first axes."""

OFF_SPHERE = 1e-3
"""Largest deviation of a direction's length from 1."""


@dataclass(frozen=True)
class Factor:
    """A factor of the configuration space of a `LagrangianSystem`, with its symbols q and v.

    | group | q | v |
    | --- | --- | --- |
    | "R", "R2", "R3", ... | coordinates | their rates |
    | "SO2" | angle | its rate |
    | "SO3" | unit quaternion (x, y, z, w) | angular velocity in body axes |
    | "SE2" | x, y and heading | body twist (vx, vy, omega) |
    | "SE3" | position and quaternion | body twist, [linear; angular] |
    | "S2" | unit vector in inertial axes | angular velocity in inertial axes |

    A two-sphere has three velocities for two degrees of freedom: qdot = v x q. The spin q . v has
    no effect on q, and no force acts on it; its inertia is the mean of the two others.

    Parameters
    ----------
    name : str
        Name, unique in its system.
    group : str
        "R" or "R" with a number, "SO2", "SO3", "SE2", "SE3" or "S2".
    neutral : sequence of float, optional
        Configuration to start from, shape (nq,); default zero, the identity, or e3 for "S2".
    unit : str
        Unit of the coordinates of an R^n: "m" or "rad".
    limits : pair of float, optional
        Smallest and largest coordinate of an R^n or "SO2", m or rad; part of the verdict of a run,
        and guarded by a rig. Default: none.

    Raises
    ------
    UnknownNameError
        If there is no such group or unit.
    DescriptionError
        If the name is empty, `neutral` has no unit norm where it needs one, or `limits` is no range
        or the group has no such coordinates.
    ShapeError, NonFiniteError
        If `neutral` does not fit the group.

    Examples
    --------
    >>> from concur.formulations import Factor
    >>> link = Factor("link", "S2", neutral=(0.0, 0.0, -1.0))
    >>> link.nq, link.nv, link.freedom_names
    (3, 3, ('link[wx]', 'link[wy]', 'link[wz]'))
    """

    name: str
    group: str
    neutral: Sequence[float] | None = None
    unit: str = "m"
    limits: tuple[float, float] = (-np.inf, np.inf)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            came, cure = shown(self.name), "Give each factor another name."
            raise DescriptionError("factor, `name`", expected="a name", came=came, cure=cure)
        where = f"factor `{self.name}`"
        self._known(where, "group", self.group in GROUPS or self.flat or self.spherical)
        self._known(where, "unit", self.unit in ("m", "rad"))
        object.__setattr__(self, "limits", self._range(where))
        if self.neutral is None:
            object.__setattr__(self, "neutral", tuple(map(float, self._origin())))
            return
        array = finite_floats(self.neutral, f"{where}, `neutral`", (self.nq,)).copy()
        object.__setattr__(self, "neutral", tuple(map(float, self.checked(array, where))))

    def _known(self, where: str, what: str, known: bool) -> None:
        if not known:
            allowed = ("m", "rad") if what == "unit" else ("R", "R2", *GROUPS, "S2")
            raise unknown_name(f"{where}, `{what}`", what, getattr(self, what), allowed)

    def __reduce__(self) -> Any:
        return Factor, (self.name, self.group, self.neutral, self.unit, self.limits)

    def _range(self, where: str) -> tuple[float, float]:
        """Read `limits`."""
        ends = as_floats(self.limits, f"{where}, `limits`")
        if ends.shape != (2,) or not ends[0] < ends[1]:
            expected, cure = "a smaller and a larger number", "Write (-1.0, 1.0)."
            came = shown(self.limits)
        elif np.isfinite(ends).any() and not (self.flat or self.group == "SO2"):
            expected, came = 'a factor "R", "R2", ... or "SO2" with limits', f'"{self.group}"'
            cure = "Leave them out: the coordinates of this group have no order."
        else:
            return float(ends[0]), float(ends[1])
        raise DescriptionError(f"{where}, `limits`", expected=expected, came=came, cure=cure)

    @property
    def joint(self) -> Joint | None:
        """Joint with these coordinates and velocities; None for "S2", R^n with n > 3, R2 of angles.

        A length is a translation along the first axis, a plane that of the first two. An angle is
        a rotation about the third axis.
        """
        if self.flat and self.unit == "rad":
            return GROUPS["SO2"] if self.nv == 1 else None
        return (TRAVELS | GROUPS).get("R" if self.group == "R1" else self.group)

    @property
    def flat(self) -> bool:
        """Whether the factor is R^n."""
        return isinstance(self.group, str) and re.fullmatch(r"R([1-9]\d?)?", self.group) is not None

    @property
    def spherical(self) -> bool:
        """Whether the factor is a two-sphere."""
        return self.group == "S2"

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self.nv if self.flat or self.spherical else GROUPS[self.group].nq

    @property
    def nv(self) -> int:
        """Number of velocities."""
        if self.flat:
            return int(self.group[1:] or 1)
        return 3 if self.spherical else GROUPS[self.group].nv

    @property
    def freedom_names(self) -> tuple[str, ...]:
        """Name of each velocity: that of the factor, with the freedom if there are several."""
        if self.nv == 1:
            return (self.name,)
        names: Sequence[Any] = range(self.nv) if self.flat else ("wx", "wy", "wz")
        if self.group in GROUPS:
            names = GROUPS[self.group].freedom_names
        return tuple(f"{self.name}[{name}]" for name in names)

    @property
    def coordinate_names(self) -> tuple[str, ...]:
        """Name of each configuration coordinate: that of the factor, with its own if several."""
        if self.nq == 1:
            return (self.name,)
        names: Sequence[Any] = range(self.nq) if self.flat else "xyz"
        if self.group in GROUPS:
            names = GROUPS[self.group].coordinate_names
        return tuple(f"{self.name}[{name}]" for name in names)

    @property
    def coordinate_units(self) -> tuple[str, ...]:
        """Unit of each configuration coordinate."""
        if self.group in GROUPS:
            return GROUPS[self.group].coordinate_units
        return (self.unit if self.flat else "1",) * self.nq

    @property
    def turning(self) -> tuple[bool, ...]:
        """Whether each velocity is an angular one."""
        if self.flat:
            return (self.unit == "rad",) * self.nv
        units = ("rad",) * 3 if self.spherical else GROUPS[self.group].freedom_units
        return tuple(unit == "rad" for unit in units)

    @property
    def quaternion_at(self) -> int | None:
        """Index in q at which a unit quaternion starts, if there is one."""
        return None if self.flat or self.spherical else GROUPS[self.group].quaternion_at

    @cached_property
    def q(self) -> ca.SX:
        """Symbol of the configuration, shape (nq,), for expressions of energies and constraints."""
        return ca.SX.sym(self.name, self.nq)

    @cached_property
    def v(self) -> ca.SX:
        """Symbol of the velocity, shape (nv,)."""
        return ca.SX.sym(f"{self.name}_v", self.nv)

    @property
    def qdot(self) -> ca.SX:
        """Rate of the configuration, shape (nq,), as an expression of `q` and `v`."""
        return ca.SX(self.rate(self.q, self.v))

    @property
    def pose(self) -> tuple[Array, Array]:
        """Rotation (3, 3) and position (3,), m, of a rotation or motion, as expressions of `q`.

        Raises
        ------
        DescriptionError
            If the factor is an R^n or a two-sphere.
        """
        if self.group not in GROUPS:
            raise DescriptionError(
                f"factor `{self.name}`, `pose`",
                expected="SO2, SO3, SE2 or SE3",
                came=self.group,
                cure="Use `q`.",
            )
        return GROUPS[self.group].pose(self.q)

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a configuration.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        numpy.ndarray
            Shape (nq,): directions and rotations are uniform, coordinates of R^n in [-1, 1].
        """
        if self.flat:
            return rng.uniform(-1.0, 1.0, self.nq)
        if not self.spherical:
            return GROUPS[self.group].random(rng)
        sample = rng.normal(size=3)
        return sample / np.linalg.norm(sample)

    def checked(self, q: np.ndarray, where: str) -> np.ndarray:
        """Bring the unit vectors of a configuration to norm one; reject others.

        Parameters
        ----------
        q : numpy.ndarray
            Finite coordinates, shape (nq,).
        where : str
            Place named in the error.

        Returns
        -------
        numpy.ndarray
            Shape (nq,).

        Raises
        ------
        DescriptionError
            If a quaternion or direction has not nearly unit norm.
        """
        start = 0 if self.spherical else self.quaternion_at
        if start is None:
            return q
        norm = float(np.linalg.norm(q[start:]))
        if not abs(norm - 1.0) <= OFF_SPHERE:
            raise DescriptionError(
                f"{where}, `{self.name}`",
                expected=f"unit norm within {OFF_SPHERE:g}",
                came=f"norm {norm:.6g}",
                cure="Normalise it.",
            )
        return np.concatenate([q[:start], q[start:] / norm])

    def rate(self, q: Vector, v: Vector) -> Array:
        """Rate of the configuration, shape (nq,), for a velocity.

        Parameters
        ----------
        q, v : casadi.SX
            Configuration (nq,) and velocity (nv,).

        Returns
        -------
        casadi.SX
            Shape (nq,).
        """
        if self.flat:
            return v
        return ca.cross(v, q) if self.spherical else GROUPS[self.group].rate(q, v)

    def integrate(self, q: Vector, dv: Vector) -> Array:
        """Configuration after a displacement, of unit norm to rounding.

        Parameters
        ----------
        q, dv : casadi.SX
            Configuration (nq,) and displacement (nv,).

        Returns
        -------
        casadi.SX
            Shape (nq,).
        """
        if self.flat:
            return q + dv
        if self.spherical:
            _, c1, c2, *_ = stumpff(ca.sumsqr(dv))
            turn = ca.cross(dv, q)
            return self.normalize(q + c1 * turn + c2 * ca.cross(dv, turn))
        return GROUPS[self.group].integrate(q, dv)

    def dexp_inverse(self, dv: Vector, v: Vector) -> Array:
        """Rate of the displacement of `integrate` for a velocity at its end.

        Parameters
        ----------
        dv, v : casadi.SX
            Displacement and velocity, each (nv,).

        Returns
        -------
        casadi.SX
            Shape (nv,).
        """
        if self.flat:
            return v
        if self.spherical:
            return so3.dexp_spatial_inverse(dv) @ v
        return GROUPS[self.group].dexp_inverse(dv, v)

    def bracket(self, a: Vector, b: Vector) -> Array:
        """Lie bracket of two fields with constant velocities.

        Parameters
        ----------
        a, b : casadi.SX
            Velocities, each (nv,).

        Returns
        -------
        casadi.SX
            Velocity of the bracket, shape (nv,). On a two-sphere the fields are right-invariant.
        """
        if self.flat:
            return ca.SX(self.nv, 1)
        return -ca.cross(a, b) if self.spherical else GROUPS[self.group].bracket(a, b)

    def body_momentum(self, q: Vector, momentum: Vector) -> Array:
        """Momentum in the axes of the factor, of one in inertial axes about the origin.

        Parameters
        ----------
        q : casadi.SX
            Configuration, shape (nq,).
        momentum : casadi.SX
            Dual to the velocities, shape (nv,).

        Returns
        -------
        casadi.SX
            Shape (nv,).
        """
        return self._represented(q, momentum, "spatial", "body")

    def spatial_momentum(self, q: Vector, momentum: Vector) -> Array:
        """Momentum in inertial axes about the origin, of one in the axes of the factor.

        Parameters
        ----------
        q : casadi.SX
            Configuration, shape (nq,).
        momentum : casadi.SX
            Dual to the velocities, shape (nv,).

        Returns
        -------
        casadi.SX
            Shape (nv,).
        """
        return self._represented(q, momentum, "body", "spatial")

    def _represented(self, q: Vector, momentum: Vector, source: str, target: str) -> Array:
        """A momentum in another representation."""
        if self.flat or self.spherical:
            return momentum
        joint = GROUPS[self.group]
        pose, basis = joint.pose(q), ca.SX(ca.DM(joint.basis))
        whole = ca.vertcat(ca.horzcat(*pose), ca.SX([[0, 0, 0, 1]]))
        return basis.T @ se3.convert_wrench(whole, basis @ momentum, source, target)

    def normalize(self, q: Vector) -> Array:
        """Configuration nearest to coordinates.

        Parameters
        ----------
        q : casadi.SX
            Coordinates, shape (nq,).

        Returns
        -------
        casadi.SX
            Shape (nq,), quaternions and directions of unit norm.
        """
        start = 0 if self.spherical else self.quaternion_at
        if start is None:
            return q
        return ca.vertcat(q[:start], q[start:] / ca.sqrt(ca.sumsqr(q[start:])))

    def _origin(self) -> np.ndarray:
        if self.flat:
            return np.zeros(self.nq)
        return np.array([0.0, 0.0, 1.0]) if self.spherical else GROUPS[self.group].neutral
