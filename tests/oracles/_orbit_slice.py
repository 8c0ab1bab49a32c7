"""A slice across the isotropy group of a momentum: coordinates of its coadjoint orbit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import (
    Array,
    EvaluatedMethods,
    Matrix,
    Scalar,
    Vector,
    constant,
    evaluated,
)
from concur.groups import Isotropy, isotropy, se3
from concur.reduction import MomentumReduction
from tests.oracles._antisymmetric import pfaffian

Slice = Callable[[Array], Any]

REGULAR = 1e-6
"""Least `MomentumChart.regularity` at which the equations are solved."""


@dataclass(frozen=True)
class OrbitSlice(EvaluatedMethods):
    """The slice of a `MomentumChart`: poses of the base, their twists and the momentum there."""

    model: MomentumReduction
    slice: Slice | None = None
    isotropy: Isotropy = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        robot = self.model.robot
        found = isotropy(robot.base.joint.basis, self.model.body_momentum(robot.neutral()))
        assert not found.doubt, found
        object.__setattr__(self, "isotropy", found)

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.model.name

    @property
    def nc(self) -> int:
        """Number of coordinates zeta: dimension of the coadjoint orbit of the momentum."""
        return self.isotropy.orbit_dimension

    @property
    def ni(self) -> int:
        """Dimension of the isotropy group."""
        return self.isotropy.dim

    @property
    def nb(self) -> int:
        """Number of velocities of the base."""
        return self.model.nb

    @property
    def nh(self) -> int:
        """Number of coordinates of the base's joint."""
        return self.model.robot.base.joint.nq

    @property
    def nq(self) -> int:
        """Number of configuration coordinates of the robot."""
        return self.model.nq

    @property
    def nv(self) -> int:
        """Number of velocity coordinates of the robot."""
        return self.model.nv

    @evaluated("(nc)->(4,4)")
    def pose(self, zeta: Vector) -> Matrix:
        """Pose chi_mu(zeta) of the base's body in the frame of its joint, m."""
        if self.slice is not None:
            given = self.slice(zeta)
            return _as_pose(*given) if isinstance(given, tuple) else ca.SX(given)
        joint = self.model.robot.base.joint
        reached = joint.integrate(constant(joint.neutral), self._displacement(zeta))
        return _as_pose(*joint.pose(reached))

    @evaluated("(nc)->(nb,nc)")
    def body_twists(self, zeta: Vector) -> Matrix:
        """Body twists of the slice, chi^-1 d chi, a column per coordinate, in the base's basis."""
        twists = [self._onto_basis() @ twist for twist in self._slice_twists(zeta)]
        return ca.sparsify(ca.horzcat(ca.SX(self.nb, 0), *twists))

    @evaluated("(nc)->(nb,nb)")
    def adjoint(self, zeta: Vector) -> Matrix:
        """Adjoint map Ad_chi on the algebra of the base's group, in the base's basis."""
        basis = constant(self.model.robot.base.joint.basis)
        return self._onto_basis() @ se3.adjoint(self.pose(zeta)) @ basis

    @evaluated("(nc)->(nb,nc)")
    def spatial_twists(self, zeta: Vector) -> Matrix:
        """Spatial twists of the slice: X1 = d chi chi^-1, the right-trivialised columns."""
        return self.adjoint(zeta) @ self.body_twists(zeta)

    @evaluated("(nc)->(nb)")
    def momentum(self, zeta: Vector) -> Vector:
        """Momentum in the base's frame, dual to its velocity: Pi = Ad*_chi mu, whatever h."""
        return self.adjoint(zeta).T @ constant(self.isotropy.momentum)

    @evaluated("(nc)->()")
    def regularity(self, zeta: Vector) -> Scalar:
        """How far the chart is from breaking: where Xi_mu is regular on the slice.

        Pfaffian of the orbit's two-form <mu, [X1, X1]> over that at zeta = 0: 1 there, 0 where the
        slice is along the isotropy group, the sign changing across it.
        """
        return pfaffian(self._orbit_form(zeta)) / self._pfaffian_at_zero()

    @evaluated("(nq),(nc)->(nh)")
    def _behind(self, q: Vector, zeta: Vector) -> Vector:
        return self.model.robot.base.joint.integrate(q[: self.nh], -self._displacement(zeta))

    @evaluated("(nc)->(nb),(nb,nc)")
    def _momentum_and_slope(self, zeta: Vector) -> tuple[Vector, Matrix]:
        momentum = self.momentum(zeta)
        return momentum, ca.jacobian(ca.densify(momentum), zeta)

    def _pfaffian_at_zero(self) -> float:
        at_zero = self._orbit_form(ca.SX(self.nc, 1))
        return float(ca.DM(pfaffian(at_zero)))

    def _orbit_form(self, zeta: Vector) -> Array:
        """Kirillov-Kostant-Souriau form on the slice: <mu, [X1, X1]>."""
        across = self.spatial_twists(zeta)
        return across.T @ constant(self.isotropy.form) @ across

    def _slice_twists(self, zeta: Vector) -> list[Array]:
        """Body twists (6,) of the slice, one per coordinate."""
        z = ca.SX.sym("zeta", self.nc)
        pose = ca.densify(self.pose(z))
        back = se3.inverse(pose)
        twists = [
            se3.vee(back @ ca.jtimes(pose, z, ca.densify(unit(self.nc, i)))) for i in range(self.nc)
        ]
        return list(ca.Function("twists", [z], twists).call([zeta]))

    def _onto_basis(self) -> Array:
        """Coordinates in the basis of the base's joint of a twist in its algebra, (nb, 6)."""
        return constant(np.linalg.pinv(self.model.robot.base.joint.basis))

    def _displacement(self, zeta: Vector) -> Array:
        """Coordinates x with exp(S x) = chi(zeta)."""
        if self.slice is None:
            return constant(self.isotropy.complement) @ zeta
        return self._onto_basis() @ se3.log(self.pose(zeta))

    def _isotropy_in_body(self, zeta: Vector) -> Array:
        """Basis of the isotropy algebra, seen from the base's body: Ad_chi^-1 N."""
        back = self._onto_basis() @ se3.adjoint(se3.inverse(self.pose(zeta)))
        return back @ constant(self.isotropy.twists)


def _as_pose(rotation: Any, translation: Any) -> Array:
    rows = ca.horzcat(ca.SX(rotation), ca.SX(translation))
    return ca.vertcat(rows, ca.SX(ca.DM([[0, 0, 0, 1]])))


def unit(size: int, index: int) -> Array:
    return ca.SX.eye(size)[:, index]
