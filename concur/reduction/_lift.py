"""The affine lift v = H(q) s + h(q) of a robot's shape velocities, and the dynamics on it.

Servo, simulation and certificates use a robot only through this lift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import (
    Array,
    EvaluatedMethods,
    Matrix,
    Place,
    Scalar,
    Vector,
    constant,
    evaluated,
)
from concur.errors import ReductionError, shown
from concur.reduction._derivative import along, following_forces
from concur.results import show
from concur.robot import Mechanism, as_tree, control_velocities, controls, solve_positive_definite
from concur.system import System

UNDETERMINED = 1e-8
"""Regularity below which the lift is lost in round-off."""

SAMPLES = 16
"""Random configurations at which the effect of a control is measured."""

STAGES_HINT = 'stages="auto" reduces by it'
"""In the reason of a model: there is a joint that a stage could take."""


@dataclass(frozen=True, repr=False)
class Lift(EvaluatedMethods):
    """The core of every `ReducedModel`, which lists its parameters."""

    _COMPILED = ("lift", "velocity", "mass_matrix", "bias", "acceleration")

    system: System
    kind: str
    shape: tuple[int, ...]
    dependent: tuple[int, ...]
    reason: str
    name: str = field(init=False, compare=False)
    nq: int = field(init=False, compare=False)
    nv: int = field(init=False, compare=False)
    ns: int = field(init=False, compare=False)
    nu: int = field(init=False, compare=False)

    def __post_init__(self) -> None:
        system = self.system
        kept = {"name": system.name, "nq": system.nq, "nv": system.nv, "ns": len(self.shape)}
        kept["nu"] = int(getattr(system, "nu", len(system.actuated_freedoms)))
        self.__dict__.update(kept)

    @property
    def first(self) -> Lift:
        """The first stage of the reduction: the model itself, unless there are more."""
        return self

    @property
    def wheel_dependents(self) -> tuple[int, ...]:
        """Indices in v of the velocities that the wheels give."""
        return self.first.dependent

    @cached_property
    def robot(self) -> Mechanism:
        """The robot as a tree of bodies.

        Raises
        ------
        ReductionError
            If the system is no tree.
        """
        return as_tree(self.system, f"reduced model of `{self.name}`")

    @property
    def quaternions(self) -> Mapping[Place, str]:
        """Where the quaternions start in q, and the bodies whose joints they turn."""
        return self.system.quaternions

    def __repr__(self) -> str:
        sizes = f"{self.ns} shape velocities, {self.nu} controls"
        return f"<{self.kind} reduction of {shown(self.name)}: {sizes}>"

    def _repr_html_(self) -> str:
        return show("notebook.text_html", f"Reduced model of {self.name}", str(self))

    def __str__(self) -> str:
        return (
            f"{self.name}, {self.kind} reduction: {self.reason}\n"
            f"{self.ns} shape velocities: {', '.join(self.shape_names) or 'none'}\n"
            f"{self.nu} controls: {', '.join(self.control_names) or 'none'}"
        )

    @property
    def shape_names(self) -> tuple[str, ...]:
        """Name of each shape velocity."""
        return tuple(self.system.freedom_names[i] for i in self.shape)

    @cached_property
    def shape_coordinates(self) -> tuple[int, ...]:
        """Indices in q of the coordinates whose rates the shape velocities are.

        Raises
        ------
        ReductionError
            If a shape velocity is not the rate of one coordinate.
        """
        q, v = ca.SX.sym("q", self.nq), ca.SX.sym("v", self.nv)
        rates = ca.jacobian(self.system.rate(q, v), v)
        found = list[int]()
        for i, name in zip(self.shape, self.shape_names, strict=True):
            column = ca.sparsify(rates[:, i])
            plain = column.is_constant() and column.nnz() == 1
            if not (plain and float(column.nonzeros()[0]) == 1.0):
                raise ReductionError(
                    f"model of `{self.name}`, velocity `{name}`",
                    expected="the rate of one coordinate",
                    came="a joint that turns in space or in a plane",
                    cure="Give such a joint to a Servo as an output.",
                )
            found.append(column.sparsity().row()[0])
        return tuple(found)

    @property
    def control_names(self) -> tuple[str, ...]:
        """Name of each control."""
        return controls(self.system)[0]

    @property
    def control_units(self) -> tuple[str, ...]:
        """Unit of each control, N or N m."""
        return controls(self.system)[1]

    @property
    def nm(self) -> int:
        """Number of entries of the momentum on which the lift rests: 6, or 0 for none."""
        return 0

    @evaluated("(nq),(nm)->(nv,ns),(nv)")
    def lift(self, q: Vector, momentum: Vector | None = None) -> tuple[Matrix, Vector]:
        """Affine lift of the shape velocities: v = H s + h, (3.3.38) and (4.3.25).

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        momentum : array_like, optional
            Spatial momentum about the inertial origin, kg m/s and kg m^2/s, shape (nm,), such as
            one that is estimated while the robot runs; default that of the model.

        Returns
        -------
        horizontal : numpy.ndarray or casadi.SX
            H, shape (nv, ns).
        drift : numpy.ndarray or casadi.SX
            h, shape (nv,); zero but for momentum.

        References
        ----------
        Thesis, (3.2.18), (3.2.19), (3.3.38), (4.2.11), Lemma 4.2.3, (4.3.25).
        """
        return self._on_shape(), ca.SX(self.nv, 1)

    @evaluated("(nq)->()")
    def regularity(self, q: Vector) -> Scalar:
        """How well the dependent velocities are determined: 1 for always, 0 for not at all.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        float or casadi.SX
            The value.
        """
        return ca.SX(1)

    @evaluated("(nq)->()")
    def side(self, q: Vector) -> Scalar:
        """Side of the configurations without a lift, 1 or -1.

        Where it differs between two configurations on a path, `regularity` was zero in between.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        float or casadi.SX
            The value.
        """
        return ca.SX(1)

    @evaluated("(nq),(ns),(nm)->(nv)")
    def velocity(self, q: Vector, s: Vector, momentum: Vector | None = None) -> Vector:
        """Velocity of the robot for shape velocities: v = H s + h, (5.1.8) and (5.1.10).

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        s : array_like
            Shape velocities, shape (ns,).
        momentum : array_like, optional
            Spatial momentum, as of `lift`; default that of the model.

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv,).

        References
        ----------
        Thesis, (5.1.8), (5.1.10), (5.3.22), (5.3.23); source 000, (6.1)-(6.3).
        """
        horizontal, drift = self.lift(q, momentum)
        return horizontal @ s + drift

    @evaluated("(nq),(ns)->(nv)")
    def drift_acceleration(self, q: Vector, s: Vector) -> Vector:
        """Acceleration of the robot at zero shape acceleration: b in vdot = H sdot + b.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        s : array_like
            Shape velocities, shape (ns,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv,).
        """
        return self.velocity_drift(q, self.velocity(q, s))

    @evaluated("(nq),(nv)->(nv)")
    def velocity_drift(self, q: Vector, v: Vector) -> Vector:
        """Acceleration b at zero shape acceleration, from all velocities of the robot.

        The velocity is one that the lift admits, or one that was measured.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity: body-twist coordinates of all joints, shape (nv,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv,).
        """
        return ca.SX(self.nv, 1)

    @evaluated("(nq)->(ns,ns)")
    def mass_matrix(self, q: Vector) -> Matrix:
        """Reduced mass matrix Mhat = H^T M H, (4.3.26).

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (ns, ns).

        References
        ----------
        Source 000, (5.14).
        """
        horizontal, _ = self.lift(q)
        return horizontal.T @ self.system.mass_matrix(q) @ horizontal

    @evaluated("(nq),(ns)->(ns)")
    def bias(self, q: Vector, s: Vector) -> Vector:
        """Reduced bias chat = H^T (M b + c): forces at zero shape acceleration.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        s : array_like
            Shape velocities, shape (ns,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (ns,).
        """
        return self.inverse_dynamics(q, s, ca.SX(self.ns, 1))

    @evaluated("(nq),(ns),(ns)->(ns)")
    def inverse_dynamics(self, q: Vector, s: Vector, sdot: Vector) -> Vector:
        """Reduced forces H^T B u for a shape acceleration: Mhat sdot + chat, by Newton-Euler.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        s : array_like
            Shape velocities, shape (ns,).
        sdot : array_like
            Rates of the shape velocities, shape (ns,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (ns,).
        """
        return self.shape_forces(q, self.velocity(q, s), sdot)

    @evaluated("(nq),(nv),(ns)->(ns)")
    def shape_forces(self, q: Vector, v: Vector, sdot: Vector) -> Vector:
        """Reduced forces H^T B u for a shape acceleration, from all velocities of the robot.

        The velocity is one that the lift admits, or one that was measured.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        v : array_like
            Velocity: body-twist coordinates of all joints, shape (nv,).
        sdot : array_like
            Rates of the shape velocities, shape (ns,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (ns,).
        """
        horizontal, _ = self.lift(q)
        acceleration = horizontal @ sdot + self.velocity_drift(q, v)
        return horizontal.T @ self.system.inverse_dynamics(q, v, acceleration)

    @evaluated("(nq),(nv),(nv)->(nv)")
    def following_drift(self, q: Vector, v: Vector, w: Vector) -> Vector:
        """Rate of velocities w of the lift that follow a motion v, at zero shape acceleration.

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv,).
        """
        away = (v - w)[list(self.shape), :]
        turning = along(lambda x: self.lift(x)[0] @ away, q, self.system.rate(q, v))
        return self.velocity_drift(q, v) - turning

    @evaluated("(nq),(nv),(nv),(ns)->(ns)")
    def following_forces(self, q: Vector, v: Vector, w: Vector, wdot: Vector) -> Vector:
        """Forces of velocities w that follow a motion v: Mhat wdot + chat - C (s - w) on the shape.

        The factor C has Mhat' = C + C^T along v. So ``(s - w) Mhat (s - w)`` changes only by the
        power of what is added to these forces (Slotine and Li).

        Parameters
        ----------
        q, v : array_like
            Configuration and velocity of the robot, one of the lift or a measured one, shapes (nq,)
            and (nv,).
        w : array_like
            Velocities of the robot that differ from v by a motion H (s - w), shape (nv,).
        wdot : array_like
            Rate of those of the shape, shape (ns,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Forces H^T B u, shape (ns,).
        """
        horizontal, _ = self.lift(q)
        rate = self.following_drift(q, v, w) + horizontal @ wdot
        return horizontal.T @ following_forces(self.system, q, v, w, rate)

    @evaluated("(nq)->(ns,nu)")
    def input_matrix(self, q: Vector) -> Matrix:
        """Forces on the shape from the controls: H^T B, the identity if the shape is driven.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (ns, nu).
        """
        horizontal, _ = self.lift(q)
        return control_velocities(self.system, q, horizontal).T

    @property
    def nd(self) -> int:
        """Number of shape velocities that forces can change: without the spins of two-spheres."""
        return self.ns - len(getattr(self.system, "spins", ())) * (self.ns == self.nv)

    @evaluated("(nq)->(ns,nd)")
    def spinless(self, q: Vector) -> Matrix:
        """Shape velocities without the spins of two-spheres, as columns; else the identity.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (ns, nd).
        """
        system: Any = self.system
        return ca.SX.eye(self.ns) if self.nd == self.ns else system.spinless(q)

    def effect(self, q: Vector) -> Matrix:
        """Forces of the controls along `spinless`: H^T B, where there are no two-spheres.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nd, nu).
        """
        actuation = self.input_matrix(q)
        return actuation if self.nd == self.ns else self.spinless(q).T @ actuation

    @cached_property
    def actuation_scales(self) -> tuple[np.ndarray, np.ndarray]:
        """Factors that take units and gear ratios from `effect`: of rows (nd,), of columns (nu,).

        Rows: one over the square root of the reduced inertia at the neutral configuration. Columns:
        one over the effect of each control, median of sampled configurations. Ones where each
        control is a motor on one joint and there are not more than shape velocities.
        """
        if self.nu <= self.nd and not getattr(self.system, "motors", ()):
            return np.ones(self.nd), np.ones(self.nu)
        rng = np.random.default_rng(3)
        samples = [self.system.neutral(), *(self.system.random(rng) for _ in range(SAMPLES))]
        mass = self.mass_matrix(samples[0])
        if self.nd < self.ns:
            along = self.spinless(samples[0])
            mass = along.T @ mass @ along
        rows = 1.0 / np.sqrt(np.diag(mass))
        effects = [np.linalg.norm(rows[:, None] * self.effect(q), axis=0) for q in samples]
        sizes = np.median(effects, axis=0)
        sizes = np.where(sizes > 0.0, sizes, np.max(effects, axis=0))
        return rows, 1.0 / np.where(sizes > 0.0, sizes, 1.0)

    def leverage(self, q: ArrayLike) -> tuple[float, str]:
        """How well the controls push all shape velocities.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        margin : float
            Least over largest singular value of `effect` in the units of `actuation_scales`; zero
            if there are fewer controls than shape velocities.
        direction : str
            Shape velocities, in the same units, that the controls push least.
        """
        rows, columns = self.actuation_scales
        matrix = np.asarray(self.effect(q))
        if not matrix.size:
            return float(not self.ns), ", ".join(self.shape_names)
        scaled = rows[:, None] * matrix * columns
        directions = np.linalg.svd(scaled)[0]
        direction = directions[:, -1] * np.sign(
            directions[np.argmax(np.abs(directions[:, -1])), -1]
        )
        if self.nd < self.ns:
            direction = self.spinless(q) @ direction
        names = zip(direction, self.shape_names, strict=True)
        text = " ".join(f"{x:+.2g} {name}" for x, name in names if abs(x) > 0.1)
        return float(_shares(scaled[None])[0]), text

    def leverages(self, matrices: np.ndarray) -> np.ndarray:
        """How well controls push all shape velocities, as `leverage`, for many of their effects.

        Parameters
        ----------
        matrices : numpy.ndarray
            Values of `effect`, shape (k, nd, nu).

        Returns
        -------
        numpy.ndarray
            Least over largest singular values, shape (k,); zero where a number is not finite.
        """
        rows, columns = self.actuation_scales
        return _shares(rows[:, None] * matrices * columns)

    @cached_property
    def driven_directly(self) -> bool:
        """Whether H^T B is the identity everywhere: each shape velocity has its own motor."""
        q = ca.SX.sym("q", self.nq)
        matrix = ca.SX(self.input_matrix(q))
        return bool(matrix.is_constant() and ca.DM(matrix).is_eye())

    @evaluated("(nq)->()")
    def leverage_bound(self, q: Vector) -> Scalar:
        """Lower bound of `leverage`, in Frobenius norms; 1 if each shape velocity has a motor.

        It is at worst smaller by a factor of ns, and zero where H^T B has not full rank.
        """
        if self.driven_directly:
            return ca.SX(1)
        if self.nu < self.nd:
            return ca.SX(0)
        rows, columns = (constant(scales) for scales in self.actuation_scales)
        matrix = ca.diag(rows) @ ca.SX(self.effect(q)) @ ca.diag(columns)
        square = ca.triu2symm(ca.triu(matrix @ matrix.T))
        spread = ca.trace(solve_positive_definite(square, ca.SX.eye(self.nd)))
        # The larger one of NaN, of a singular matrix, and zero is zero.
        return ca.fmax(0.0, 1.0 / (ca.sqrt(spread) * ca.norm_fro(matrix)))

    @evaluated("(nq),(ns),(nu)->(ns)")
    def acceleration(self, q: Vector, s: Vector, u: Vector) -> Vector:
        """Shape acceleration sdot under control forces.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        s : array_like
            Shape velocities, shape (ns,).
        u : array_like
            Control forces and torques, N and N m, shape (nu,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (ns,).

        References
        ----------
        Thesis, (5.1.11), (5.1.12); source 000, (4.9), (5.15)-(5.25).
        """
        force = self.input_matrix(q) @ u - self.bias(q, s)
        return solve_positive_definite(self.mass_matrix(q), force)

    def _on_shape(self) -> Array:
        """Lift without the dependent velocities: the identity in the rows of the shape."""
        horizontal = ca.SX(self.nv, self.ns)
        for column, row in enumerate(self.shape):
            horizontal[row, column] = 1.0
        return horizontal


def _shares(matrices: np.ndarray) -> np.ndarray:
    """Least over largest singular values of matrices (k, ns, nu), zero unless all rows count."""
    count, rows, columns = matrices.shape
    if not rows:
        return np.ones(count)
    found = np.zeros(count)
    sound = np.isfinite(matrices).all(axis=(1, 2))
    if columns >= rows:
        sizes = np.linalg.svd(matrices[sound], compute_uv=False)
        found[sound] = sizes[:, -1] / np.where(sizes[:, 0] > 0.0, sizes[:, 0], 1.0)
    return found
