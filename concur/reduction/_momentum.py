"""Reduction by momentum: a system in its shape velocities, at any constant momentum of a group.

`SymmetryReduction` is for any system with a declared symmetry group, `MomentumReduction` for robots
whose base floats.

Everything is global: the base keeps its configuration, and its body momentum
``Pi = Ad*_q1 mu`` takes the place of a chart of the coadjoint orbit. In left-trivialised velocities
the mass matrix depends on the shape only, in blocks ``M = [[M11, M12], [M21, M22]]``, base first,
and

    connection         A = M11^-1 M12                   v1 = a - A s
    locked velocity    a = M11^-1 Pi                    H = [-A; 1],  h = [a; 0]
    reduced metric     Mhat = M22 - M21 A               phat = Mhat s
    curvature          B(u, w) = (D_u A) w - (D_w A) u - A [u, w] - [A u, A w]

    Pidot = ad*_v1 Pi + f1
    phatdot = -D Hhat + ad*_s phat - <Pi, B(s, .)> - A^T ad*_a Pi + u - A^T f1

with the left-trivialised derivative D along the shape, at Pi and phat fixed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, cast

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array, Matrix, Vector, constant, evaluated, finite_floats
from concur.errors import ShapeError
from concur.groups import classify
from concur.reduction._derivative import along, gradient
from concur.reduction._model import ReducedModel
from concur.robot import (
    Mechanism,
    damping_forces,
    inverse_dynamics,
    joint_basis,
    joint_pose,
    joints,
    mass_times,
    moment_of_motion,
    solve_positive_definite,
    solve_rigid,
)
from concur.system import System


class _Symmetric(Protocol):
    """Members of a system with a symmetry group beside those of a `System`."""

    @property
    def fibre(self) -> tuple[int, ...]:
        """Indices in v of the velocities of the group; empty without a symmetry."""

    def body_momentum(self, q: Array, momentum: Array) -> Array:
        """Momentum of the group in body axes, for one in inertial axes."""

    def bracket(self, a: Array, b: Array) -> Array:
        """Lie bracket of two fields with constant velocities."""


@dataclass(frozen=True, repr=False)
class SymmetryReduction(ReducedModel):
    """A system in its shape velocities, at any constant momentum of its symmetry group.

    Made by `reduce`, for a `LagrangianSystem` with `symmetry`.

    Parameters
    ----------
    system : System
        The system.
    kind : str
        "symplectic".
    shape, dependent : tuple of int
        Indices in v of the shape velocities and of the group's.
    reason : str
        Why this reduction was taken.
    momentum : tuple of float
        Constant momentum of the group in inertial axes, about the origin: that of each factor in
        turn, shape (nb,), in the order of their velocities.

    See Also
    --------
    reduce : makes one.
    MomentumReduction : of a robot that floats.

    References
    ----------
    Thesis, Theorem 3.2.4.

    Examples
    --------
    A body in the plane with a sliding mass, which turns:

    >>> import casadi as ca, concur as cc
    >>> from concur.formulations import Factor
    >>> hull, slide = Factor("hull", "SE2"), Factor("slide", "R")
    >>> vx, vy, turn = ca.vertsplit(hull.v)
    >>> mass = ca.vertcat(vx + slide.v, vy + turn * slide.q)
    >>> kinetic = (3 * (vx**2 + vy**2) + 0.5 * turn**2 + ca.sumsqr(mass)) / 2
    >>> system = cc.LagrangianSystem(kinetic, 0.0, [hull, slide], symmetry="hull")
    >>> model = cc.reduce(system, momentum=[0.0, 0.0, 0.4])
    >>> model.kind, model.shape_names
    ('symplectic', ('slide',))
    >>> model.locked_velocity([0.0, 0.0, 0.0, 0.0]).round(6)
    array([ 0. , -0. ,  0.8])
    """

    momentum: tuple[float, ...] = ()

    @cached_property
    def nb(self) -> int:
        """Dimension of the group."""
        return len(self.dependent)

    def momentum_fields(self, q: Vector) -> Array:
        return self._on_shape()

    @property
    def keeps_momentum(self) -> bool:
        return True

    @property
    def nd(self) -> int:
        return self.ns - len(getattr(self.system, "spins", ()))

    @evaluated("(nq)->(ns,nd)")
    def spinless(self, q: Vector) -> Matrix:
        if self.nd == self.ns:
            return ca.SX.eye(self.ns)
        own: Any = self.system
        rows = ca.SX(own.spinless(q))[list(self.shape), :]
        moved = sorted(set(rows.sparsity().get_col()))
        return rows[:, moved]

    def at_momentum(self, momentum: ArrayLike) -> ReducedModel:
        value = read_group_momentum(self.system, self.nb, momentum)
        return replace(self, momentum=value, reason=symmetry_reason(self.system, value))

    @evaluated("(nq),(nm)->(nb)")
    def body_momentum(self, q: Vector, momentum: Vector | None = None) -> Vector:
        mu = momentum if self.nm and momentum is not None else constant(self.momentum)
        return self._group.body_momentum(q, mu)

    @evaluated("(nq),(nm)->(nv,ns),(nv)")
    def lift(self, q: Vector, momentum: Vector | None = None) -> tuple[Matrix, Vector]:
        horizontal, drift = self._on_shape(), ca.SX(self.nv, 1)
        own, coupling, _ = self._blocks(q)
        solved = self._locked(own, ca.horzcat(coupling, self.body_momentum(q, momentum)))
        horizontal[list(self.dependent), :] = -solved[:, : self.ns]
        drift[list(self.dependent)] = solved[:, self.ns]
        return horizontal, ca.sparsify(drift)

    @evaluated("(nq),(nv)->(nv)")
    def velocity_drift(self, q: Vector, v: Vector) -> Vector:
        own, _, _ = self._blocks(q)
        acceleration, rows = ca.SX(self.nv, 1), list(self.dependent)
        acceleration[rows] = -self._locked(own, self.system.bias(q, v)[rows])
        return ca.sparsify(acceleration)

    @evaluated("(nq)->(ns,ns)")
    def mass_matrix(self, q: Vector) -> Matrix:
        own, coupling, shape = self._blocks(q)
        return ca.triu2symm(ca.triu(shape - coupling.T @ self._locked(own, coupling)))

    @evaluated("(nq)->(nb,ns)")
    def connection(self, q: Vector) -> Matrix:
        """Mechanical connection on the shape: A = M11^-1 M12, (3.3.37).

        At zero momentum the group moves with -A s; so does the base of a robot, in its basis.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nb, ns).

        References
        ----------
        Thesis, (3.2.21), (3.3.37); source 000, (5.3)-(5.5), (5.26)-(5.36).
        """
        own, coupling, _ = self._blocks(q)
        return self._locked(own, coupling)

    @evaluated("(nq)->(nb,nb)")
    def locked_inertia(self, q: Vector) -> Matrix:
        return self._blocks(q)[0]

    @evaluated("(nq)->(nb)")
    def locked_velocity(self, q: Vector) -> Vector:
        """Velocity that the group would have if the shape locked: a = M11^-1 Pi.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nb,).

        References
        ----------
        Source 000, (5.3)-(5.5).
        """
        return self._locked(self.locked_inertia(q), self.body_momentum(q))

    @evaluated("(nq),(ns),(ns)->(nb)")
    def curvature(self, q: Vector, first: Vector, second: Vector) -> Vector:
        """Curvature of the mechanical connection for two shape velocities, (3.2.24).

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        first, second : array_like
            Shape velocities u and w, shape (ns,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            B(u, w) = (D_u A) w - (D_w A) u - A [u, w] - [A u, A w], shape (nb,): a small loop
            spanned by the shape displacements u and w moves the group by -B(u, w).

        References
        ----------
        Thesis, (3.2.24); source 000, (5.26)-(5.36).
        """
        form = self.connection(q)
        turned = self._group.bracket(
            self._joined(form @ first, first), self._joined(form @ second, second)
        )
        return (
            self._along(q, first) @ second
            - self._along(q, second) @ first
            - form @ turned[list(self.shape), :]
            - turned[list(self.dependent), :]
        )

    @evaluated("(nq),(nb),(ns),(nu),(nb)->(nv),(nb),(ns)")
    def hamilton_poincare(
        self, q: Vector, body_momentum: Vector, p: Vector, u: Vector, wrench: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """Reduced equations with the body momentum as a state: global, without a chart.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        body_momentum : array_like
            Pi, shape (nb,).
        p : array_like
            Reduced momentum phat = Mhat s, shape (ns,).
        u : array_like
            Control forces and torques, shape (nu,), N and N m.
        wrench : array_like
            Force on the base f1 in the basis of its joint, shape (nb,): thrusters, contact; zero
            for a robot that floats freely. It changes the spatial momentum by Ad*_(q1^-1) f1.

        Returns
        -------
        v : numpy.ndarray or casadi.SX
            Velocity of the robot, shape (nv,); `robot.rate` makes qdot of it.
        body_momentum_rate : numpy.ndarray or casadi.SX
            Pidot = ad*_v1 Pi + f1, shape (nb,).
        pdot : numpy.ndarray or casadi.SX
            Rate of the reduced momentum, shape (ns,).

        References
        ----------
        Thesis, (3.2.17); source 000, (1.1)-(1.3).
        """
        robot, own, shape = self.system, list(self.dependent), list(self.shape)
        connection = self.connection(q)
        s = solve_positive_definite(self.mass_matrix(q), p)
        locked = self._locked(self.locked_inertia(q), body_momentum)
        v = self._joined(locked - connection @ s, s)
        momentum = self._joined(body_momentum, p + connection.T @ body_momentum)

        # No curvature tensor is formed: its terms are in the rate of A along the motion.
        turned = self._coadjoint(v, momentum)
        body_rate = turned[own] + wrench
        frozen = ca.SX.sym("v", self.nv)
        energy = gradient(
            lambda x: (
                ca.bilin(robot.mass_matrix(x), frozen, frozen) / 2 - robot.potential_energy(x)
            ),
            q,
        )
        slopes = self._on_algebra(q, ca.substitute(energy, frozen, v))[shape, :]
        rate = along(self.connection, q, robot.rate(q, v))
        pdot = turned[shape, :] + slopes - rate.T @ body_momentum - connection.T @ body_rate
        return v, body_rate, pdot + self.input_matrix(q) @ u - self._on_dampers(q, v)

    @property
    def _group(self) -> _Symmetric:
        group: _Symmetric = cast(_Symmetric, self.system)
        return group

    def _locked(self, inertia: Array, momenta: Array) -> Array:
        """Velocities of the group, the shape locked, for momenta (nb, k) in body axes."""
        return solve_positive_definite(inertia, momenta)

    def _blocks(self, q: Vector) -> tuple[Array, Array, Array]:
        """Mass matrix in blocks: group, group against shape, shape."""
        mass, own, shape = self.system.mass_matrix(q), list(self.dependent), list(self.shape)
        return mass[own, own], mass[own, shape], mass[shape, shape]

    def _on_dampers(self, q: Vector, v: Vector) -> Array:
        """Forces of dampers on the shape, along the lift."""
        horizontal, _ = self.lift(q)
        return horizontal.T @ damping_forces(self.system, q, v)

    def _joined(self, group: Array, shape: Array) -> Array:
        """Velocities of the system from those of group and shape."""
        whole = ca.SX(self.nv, 1)
        whole[list(self.dependent)], whole[list(self.shape)] = group, shape
        return whole

    def _along(self, q: Vector, s: Vector) -> Array:
        """Derivative of the connection along a shape velocity."""
        still = self._joined(ca.SX(self.nb, 1), s)
        return along(self.connection, q, self.system.rate(q, still))

    def _on_algebra(self, q: Vector, slopes: Array) -> Array:
        """Gradient in coordinates to left-trivialised derivatives, shape (nv,)."""
        v = ca.SX.sym("v", self.nv)
        return ca.gradient(ca.dot(self.system.rate(q, v), slopes), v)

    def _coadjoint(self, v: Vector, momentum: Vector) -> Array:
        """ad*_v P with <ad*_v P, y> = <P, [v, y]>, on the product of the joint groups."""
        y = ca.SX.sym("y", self.nv)
        return ca.gradient(ca.dot(momentum, self._group.bracket(v, y)), y)


@dataclass(frozen=True, repr=False)
class MomentumReduction(SymmetryReduction):
    """A floating robot in its shape velocities: symplectic reduction, theorem 3.3.6.

    Made by `reduce`. The base, whose joint is a displacement subgroup G, is not driven; the
    spatial momentum mu is constant and need not be zero.

    Parameters
    ----------
    system : Mechanism
        The robot.
    kind : str
        "symplectic".
    shape, dependent : tuple of int
        Indices in v of the shape velocities and of the base's.
    reason : str
        Why this reduction was taken.
    momentum : tuple of float
        Spatial momentum about the inertial origin, [linear; angular], kg m/s and kg m^2/s,
        shape (6,). Only its part on the algebra of G matters.

    See Also
    --------
    reduce : makes one.

    References
    ----------
    Thesis, Theorem 3.3.6.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.free_flyer(), momentum=[0, 0, 0, 0.5, 0.2, 0.1])
    >>> model.kind, model.ns
    ('symplectic', 6)
    """

    momentum: tuple[float, ...] = (0.0,) * 6

    @property
    def nm(self) -> int:
        return 6

    @property
    def com_velocity(self) -> np.ndarray:
        # Linear momentum over total mass along the translations of the base's group, which are
        # all that keep momentum: across them the joints can move the centre of mass, and a group
        # without translations, whose base turns about a fixed point, has none.
        turn, _ = joint_pose(self.robot, constant(self.robot.neutral()), 0)
        axes = np.array(ca.DM(turn)) @ self.robot.base.joint.basis[:3]
        axes = axes[:, np.linalg.norm(self.robot.base.joint.basis[3:], axis=0) == 0.0]
        onto = axes @ np.linalg.pinv(axes) if axes.size else np.zeros((3, 3))
        return np.asarray(onto @ np.array(self.momentum[:3]) / self.robot.total_mass)

    def at_momentum(self, momentum: ArrayLike) -> MomentumReduction:
        value = read_momentum(f"robot `{self.name}`, `momentum`", momentum)
        return replace(self, momentum=value, reason=momentum_reason(self.robot, value))

    @evaluated("(nq),(nv),(nv)->(nv)")
    def following_drift(self, q: Vector, v: Vector, w: Vector) -> Vector:
        # The momentum of w is constant: the forces on the points of the robot have the moment by
        # which these move against their momenta.
        own, _, _ = self._blocks(q)
        forces = inverse_dynamics(self.robot, q, v, ca.SX(self.nv, 1), w)[: self.nb, :]
        moment = moment_of_motion(self.robot, q, v, w)
        acceleration = ca.SX(self.nv, 1)
        turning = joint_basis(self.robot, 0)[1]
        acceleration[: self.nb] = -self._locked(own, forces + turning.T @ moment)
        return ca.sparsify(acceleration)

    @evaluated("(nq),(nv),(nv),(ns)->(ns)")
    def following_forces(self, q: Vector, v: Vector, w: Vector, wdot: Vector) -> Vector:
        # The acceleration of the base makes no force along the lift.
        horizontal, _ = self.lift(q)
        rate = ca.vertcat(ca.SX(self.nb, 1), wdot)
        return horizontal.T @ inverse_dynamics(self.robot, q, v, rate, w)

    @evaluated("(nq),(nv),(ns)->(ns)")
    def shape_forces(self, q: Vector, v: Vector, sdot: Vector) -> Vector:
        # The base's rows of the forces are zero by the choice of its acceleration.
        horizontal, _ = self.lift(q)
        acceleration = horizontal @ sdot + self.velocity_drift(q, v)
        forces = self.robot.bias(q, v) + mass_times(self.robot, q, acceleration)
        return forces[list(self.shape), :]

    @evaluated("(nq),(nm)->(nb)")
    def body_momentum(self, q: Vector, momentum: Vector | None = None) -> Vector:
        mu = constant(self.momentum) if momentum is None else momentum
        rotation, translation = joint_pose(self.robot, q, 0)
        basis = joint_basis(self.robot, 0)
        force = rotation.T @ mu[:3]
        torque = rotation.T @ (mu[3:] - ca.cross(translation, mu[:3]))
        return basis[0].T @ force + basis[1].T @ torque

    def _locked(self, inertia: Array, momenta: Array) -> Array:
        if isinstance(self.robot.base.joint, joints.Free):
            return solve_rigid(inertia, momenta)
        return solve_positive_definite(inertia, momenta)


def read_momentum(where: str, momentum: ArrayLike) -> tuple[float, ...]:
    """Read a spatial momentum."""
    value = finite_floats(momentum, where)
    if value.shape != (6,):
        raise ShapeError(
            where,
            expected="six numbers, [linear; angular], kg m/s and kg m^2/s",
            came=f"shape {value.shape}",
            cure="Give the momentum about the inertial origin, in inertial axes; zeros where the "
            "base cannot move.",
        )
    return tuple(float(x) for x in value)


def momentum_reason(robot: Mechanism, momentum: tuple[float, ...] | None) -> str:
    """Say why a robot is reduced by its momentum, None where none was given."""
    group = classify(robot.base.joint.basis).name
    reason = f"the base `{robot.base.name}` is unactuated and moves in {group}: the momentum "
    if momentum is None:
        return reason + "is constant, zero unless a task states another"
    linear, angular = (np.linalg.norm(part) for part in (momentum[:3], momentum[3:]))
    return reason + f"is constant, {linear:.4g} kg m/s and {angular:.4g} kg m^2/s about the origin"


def by_symmetry(system: System, momentum: ArrayLike | None) -> SymmetryReduction:
    """Reduce a system with a symmetry group at a constant momentum."""
    group: Any = system
    dependent = tuple(group.fibre)
    shape = tuple(i for i in range(system.nv) if i not in dependent)
    given = np.zeros(len(dependent)) if momentum is None else momentum
    value = read_group_momentum(system, len(dependent), given)
    reason = symmetry_reason(system, None if momentum is None else value)
    return SymmetryReduction(system, "symplectic", shape, dependent, reason, value)


def read_group_momentum(system: System, nb: int, momentum: ArrayLike) -> tuple[float, ...]:
    """Read a momentum of the group."""
    value = finite_floats(momentum, f"system `{system.name}`, `momentum`", (nb,))
    return tuple(float(x) for x in value)


def symmetry_reason(system: System, momentum: tuple[float, ...] | None) -> str:
    """Say why a system is reduced by its symmetry; None where no momentum was given."""
    group: Any = system
    names = ", ".join(group.freedom_names[i] for i in group.fibre)
    reason = f"motions along {names} change no energy and no input: their momentum is constant"
    if momentum is None:
        return f"{reason}, and taken as zero since none was given"
    return f"{reason}, ({', '.join(f'{x:.4g}' for x in momentum)})"
