"""The reduced model: an affine lift v = H(q) s + h(q) and the dynamics on it.

Everything downstream (servo, simulation, certificates) knows a robot through this lift
only. Here is what follows from a lift, whatever its origin; a way of reducing is a class
of its own that says what its lift is (`WheelReduction`, `MomentumReduction`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
from numpy.typing import ArrayLike

from concur.codegen import Array, EvaluatedMethods, evaluated
from concur.dynamics import solve_positive_definite
from concur.errors import ReductionError
from concur.multibody import Mechanism
from concur.reduction._audit import Audit, audit
from concur.reduction._derivative import along, gradient

UNDETERMINED = 1e-8
"""Regularity below which the lift is lost in round-off."""


@dataclass(frozen=True)
class ReducedModel(EvaluatedMethods):
    """A robot's dynamics in its shape velocities.

    Made by `reduce`: this class itself for a robot whose velocities are all shape velocities.
    With mass matrix M, bias c and actuation B of the robot,
    ``Mhat sdot + chat = H^T B u``, ``Mhat = H^T M H``, ``chat = H^T (M b + c)`` and
    ``vdot = H sdot + b``.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    kind : str
        "symplectic", "chaplygin", "constrained" or "unreduced".
    shape : tuple of int
        Indices in v of the shape velocities s.
    dependent : tuple of int
        Indices in v that the lift gives from s.
    reason : str
        Why this reduction was taken.

    See Also
    --------
    reduce : makes one.
    """

    COMPILED = ("lift", "velocity", "mass_matrix", "bias", "acceleration")

    robot: Mechanism
    kind: str
    shape: tuple[int, ...]
    dependent: tuple[int, ...]
    reason: str

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.robot.name

    @property
    def quaternions(self) -> Mapping[int, str]:
        """Where the quaternions start in q, and the bodies whose joints they turn."""
        return self.robot.quaternions

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self.robot.nq

    @property
    def nv(self) -> int:
        """Number of velocity coordinates of the robot."""
        return self.robot.nv

    @property
    def ns(self) -> int:
        """Number of shape velocities."""
        return len(self.shape)

    @property
    def nu(self) -> int:
        """Number of controls: driven freedoms of the robot."""
        return len(self.robot.actuated_freedoms)

    def __str__(self) -> str:
        return (
            f"{self.name}, {self.kind} reduction: {self.reason}\n"
            f"{self.ns} shape velocities: {', '.join(self.shape_names) or 'none'}\n"
            f"{self.nu} controls: {', '.join(self.control_names) or 'none'}"
        )

    @property
    def first(self) -> ReducedModel:
        """The first stage of the reduction: the model itself, unless there are more."""
        return self

    def at_momentum(self, momentum: ArrayLike) -> ReducedModel:
        """The same robot with another momentum.

        Parameters
        ----------
        momentum : array_like
            Spatial momentum about the inertial origin, shape (6,), kg m/s and kg m^2/s.

        Returns
        -------
        ReducedModel
            The model; its functions are built anew.

        Raises
        ------
        ReductionError
            If the robot does not float.
        """
        raise ReductionError(
            f"robot `{self.name}`, `momentum`",
            expected="a robot that floats",
            came=f"{self.kind} reduction",
            cure="Leave the momentum out: this robot does not keep it.",
        )

    def on(self, robot: Mechanism) -> ReducedModel:
        """The same reduction of a robot with other parameters.

        Parameters
        ----------
        robot : Mechanism
            A robot with the same bodies, joints, wheels and drives.

        Returns
        -------
        ReducedModel
            Its model.
        """
        return replace(self, robot=robot)

    @property
    def shape_names(self) -> tuple[str, ...]:
        """Name of each shape velocity."""
        return tuple(self.robot.freedom_names[i] for i in self.shape)

    @property
    def control_names(self) -> tuple[str, ...]:
        """Name of each control."""
        return tuple(self.robot.freedom_names[i] for i in self.robot.actuated_freedoms)

    @property
    def control_units(self) -> tuple[str, ...]:
        """Unit of each control, N or N m."""
        return tuple(self.robot.effort_units[i] for i in self.robot.actuated_freedoms)

    @evaluated("(nq)->(nv,ns),(nv)")
    def lift(self, q: Array) -> tuple[Array, Array]:
        """Affine lift of the shape velocities: v = H s + h, (3.3.38) and (4.3.25).

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        horizontal : numpy.ndarray or casadi.SX
            H, shape (nv, ns).
        drift : numpy.ndarray or casadi.SX
            h, shape (nv,); zero but for momentum.
        """
        return self._on_shape(), ca.SX(self.nv, 1)

    @evaluated("(nq)->()")
    def regularity(self, q: Array) -> Array:
        """How well the dependent velocities are determined.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        float or casadi.SX
            1 where the lift always exists, 0 where it does not.
        """
        return ca.SX(1)

    @evaluated("(nq)->()")
    def side(self, q: Array) -> Array:
        """On which side of the configurations without a lift this one is.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        float or casadi.SX
            1 or -1: where it differs between two configurations on a path, `regularity` was zero
            in between.
        """
        return ca.SX(1)

    @evaluated("(nq),(ns)->(nv)")
    def velocity(self, q: Array, s: Array) -> Array:
        """Velocity of the robot for shape velocities, (5.1.8) and (5.1.10).

        Parameters
        ----------
        q, s : array_like
            Configuration and shape velocities, shapes (nq,) and (ns,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            v, shape (nv,).
        """
        horizontal, drift = self.lift(q)
        return horizontal @ s + drift

    @evaluated("(nq),(ns)->(nv)")
    def drift_acceleration(self, q: Array, s: Array) -> Array:
        """Acceleration of the robot at zero shape acceleration: b in vdot = H sdot + b.

        Parameters
        ----------
        q, s : array_like
            Configuration and shape velocities, shapes (nq,) and (ns,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            b, shape (nv,).
        """
        return self.velocity_drift(q, self.velocity(q, s))

    @evaluated("(nq),(nv)->(nv)")
    def velocity_drift(self, q: Array, v: Array) -> Array:
        """Acceleration of the robot at zero shape acceleration, from all its velocities.

        Parameters
        ----------
        q, v : array_like
            Configuration and velocity, shapes (nq,) and (nv,): one that the lift admits, or
            one that was measured.

        Returns
        -------
        numpy.ndarray or casadi.SX
            b in vdot = H sdot + b, shape (nv,).
        """
        return ca.SX(self.nv, 1)

    @evaluated("(nq)->(ns,ns)")
    def mass_matrix(self, q: Array) -> Array:
        """Reduced mass matrix Mhat = H^T M H, (4.3.26).

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (ns, ns).
        """
        horizontal, _ = self.lift(q)
        return horizontal.T @ self.robot.mass_matrix(q) @ horizontal

    @evaluated("(nq),(ns)->(ns)")
    def bias(self, q: Array, s: Array) -> Array:
        """Reduced bias chat = H^T (M b + c): forces at zero shape acceleration.

        Parameters
        ----------
        q, s : array_like
            Configuration and shape velocities, shapes (nq,) and (ns,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (ns,).
        """
        return self.inverse_dynamics(q, s, ca.SX(self.ns, 1))

    @evaluated("(nq),(ns),(ns)->(ns)")
    def inverse_dynamics(self, q: Array, s: Array, sdot: Array) -> Array:
        """Reduced forces for a shape acceleration: Mhat sdot + chat, by one Newton-Euler pass.

        Parameters
        ----------
        q, s, sdot : array_like
            Configuration, shape velocities and their rates, shapes (nq,), (ns,), (ns,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            H^T B u, shape (ns,).
        """
        return self.shape_forces(q, self.velocity(q, s), sdot)

    @evaluated("(nq),(nv),(ns)->(ns)")
    def shape_forces(self, q: Array, v: Array, sdot: Array) -> Array:
        """Reduced forces for a shape acceleration, from all velocities of the robot.

        Parameters
        ----------
        q, v : array_like
            Configuration and velocity, shapes (nq,) and (nv,): one that the lift admits, or
            one that was measured.
        sdot : array_like
            Rates of the shape velocities, shape (ns,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            H^T B u, shape (ns,).
        """
        horizontal, _ = self.lift(q)
        acceleration = horizontal @ sdot + self.velocity_drift(q, v)
        return horizontal.T @ self.robot.inverse_dynamics(q, v, acceleration)

    @evaluated("(nq)->(ns,nu)")
    def input_matrix(self, q: Array) -> Array:
        """Forces on the shape from the controls: H^T B.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (ns, nu); the identity when the shape velocities are the driven ones.
        """
        horizontal, _ = self.lift(q)
        return horizontal[list(self.robot.actuated_freedoms), :].T

    @evaluated("(nq),(ns),(nu)->(ns)")
    def acceleration(self, q: Array, s: Array, u: Array) -> Array:
        """Shape acceleration under control forces.

        Parameters
        ----------
        q, s : array_like
            Configuration and shape velocities, shapes (nq,) and (ns,).
        u : array_like
            Control forces and torques, shape (nu,), N and N m.

        Returns
        -------
        numpy.ndarray or casadi.SX
            sdot, shape (ns,).
        """
        force = self.input_matrix(q) @ u - self.bias(q, s)
        return solve_positive_definite(self.mass_matrix(q), force)

    @evaluated("(nq),(ns)->()")
    def hamiltonian(self, q: Array, p: Array) -> Array:
        """Reduced Hamiltonian: energy at reduced momentum, (3.3.42) and (4.3.26).

        Parameters
        ----------
        q, p : array_like
            Configuration and reduced momentum p = Mhat s, shapes (nq,) and (ns,).

        Returns
        -------
        float or casadi.SX
            Energy, J.
        """
        s = solve_positive_definite(self.mass_matrix(q), p)
        _, drift = self.lift(q)
        carried = ca.bilin(self.robot.mass_matrix(q), drift, drift)
        return (ca.dot(p, s) + carried) / 2 + self.robot.potential_energy(q)

    @evaluated("(nq),(ns)->(ns,ns)")
    def two_form(self, q: Array, p: Array) -> Array:
        """Curvature two-form of the reduced equations: <J, B> of (4.3.27), <Pi, B> of (3.3.47).

        With horizontal fields X_a (columns of H), shape structure constants c and the velocity
        v = H s + h, ``Xi_ab = c^d_ab <M v, X_d> - <M v, [X_a, X_b]>``, where <M v, X_d> is p_d
        unless the drift h has a momentum along the shape velocities, as after a stage by a part
        of a joint that turns. This is <J, B_ab> for a Chaplygin system and holds for wheels
        without the symmetry too; for a floating robot it is <Pi, B_ab> with the body momentum
        Pi.

        Parameters
        ----------
        q, p : array_like
            Configuration and reduced momentum, shapes (nq,) and (ns,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Antisymmetric, shape (ns, ns).
        """
        horizontal, drift = self.lift(q)
        s = solve_positive_definite(self.mass_matrix(q), p)
        momentum = self.robot.mass_matrix(q) @ (horizontal @ s + drift)
        fields = [horizontal[:, a] for a in range(self.ns)]
        changes = [
            along(lambda x: self.lift(x)[0], q, self.robot.rate(q, field)) for field in fields
        ]
        # Of a base that is in the shape with a part of its velocities, the others' bracket has
        # components in the shape as well: those belong to the form, not to the constants c.
        units = self._on_shape()
        carried = horizontal.T @ momentum
        form = ca.SX(self.ns, self.ns)
        for a in range(self.ns):
            for b in range(a + 1, self.ns):
                turned = (
                    self.robot.bracket(fields[a], fields[b]) + changes[a][:, b] - changes[b][:, a]
                )
                own = self.robot.bracket(units[:, a], units[:, b])[list(self.shape)]
                form[a, b] = ca.dot(carried, own) - ca.dot(momentum, turned)
                form[b, a] = -form[a, b]
        return ca.sparsify(form)

    @evaluated("(nq),(ns),(nu)->(nv),(ns)")
    def vector_field(self, q: Array, p: Array, u: Array) -> tuple[Array, Array]:
        """Reduced Hamilton equations.

        ``pdot_b = -E_b Hhat + c^d_ab p_d s^a - Xi_ab s^a + (H^T B u)_b`` with E_b the
        derivative along the horizontal field b; a lift whose drift h is not that of a floating
        base alone adds <M v, [h, X_b]> + X_b <M h, h>.

        Parameters
        ----------
        q, p : array_like
            Configuration and reduced momentum, shapes (nq,) and (ns,).
        u : array_like
            Control forces and torques, shape (nu,), N and N m.

        Returns
        -------
        v : numpy.ndarray or casadi.SX
            Velocity of the robot, shape (nv,); `robot.rate` makes qdot of it.
        pdot : numpy.ndarray or casadi.SX
            Rate of the reduced momentum, shape (ns,).
        """
        horizontal, drift = self.lift(q)
        s = solve_positive_definite(self.mass_matrix(q), p)
        slopes = gradient(lambda x: self.hamiltonian(x, p), q)
        form = self.two_form(q, p)
        carried = self._drift_forces(q, horizontal, drift, horizontal @ s + drift)
        rates = []
        shape = list(self.shape)
        for b in range(self.ns):
            slope = ca.dot(slopes, self.robot.rate(q, horizontal[:, b]))
            unit = _embed(ca.SX(1), [shape[b]], self.nv)
            turned = self.robot.bracket(_embed(s, shape, self.nv), unit)
            rates.append(-slope + ca.dot(p, turned[shape]) - ca.dot(form[:, b], s))
        pdot = ca.vertcat(*rates) + carried + self.input_matrix(q) @ u
        return horizontal @ s + drift, pdot

    def _drift_forces(self, q: Array, horizontal: Array, drift: Array, v: Array) -> Array:
        """What the drift h adds to pdot: <M v, [h, X_b]> + X_b <M h, h>, X_b the columns of H.

        It is zero for the momentum of a floating base; not so for the stages after it.
        """
        if not drift.nnz():
            return ca.SX(self.ns, 1)
        robot = self.robot
        momentum = robot.mass_matrix(q) @ v
        energy = gradient(
            lambda x: ca.bilin(robot.mass_matrix(x), self.lift(x)[1], self.lift(x)[1]), q
        )
        turning = along(lambda x: self.lift(x)[0], q, robot.rate(q, drift))
        forces = []
        for b in range(self.ns):
            rate = robot.rate(q, horizontal[:, b])
            change = turning[:, b] - along(lambda x: self.lift(x)[1], q, rate)
            bracket = robot.bracket(drift, horizontal[:, b]) + change
            forces.append(ca.dot(momentum, bracket) + ca.dot(energy, rate))
        return ca.vertcat(ca.SX(0, 1), *forces)

    def momentum_fields(self, q: Array) -> Array:
        """Fields whose momenta are those of the shape joints: <M v, field> for each.

        Those momenta of theirs that can be constant: of the reduced system on wheels, of the
        whole robot when it floats.

        Parameters
        ----------
        q : casadi.SX
            Configuration, shape (nq,).

        Returns
        -------
        casadi.SX
            One column per shape velocity of the first stage, shape (nv, ns).
        """
        return self.lift(q)[0]

    def _on_shape(self) -> Array:
        """Lift without the dependent velocities: the identity in the rows of the shape."""
        horizontal = ca.SX(self.nv, self.ns)
        for column, row in enumerate(self.shape):
            horizontal[row, column] = 1.0
        return horizontal

    def audit(
        self, outputs: Iterable[Any] | None = None, working_set: ArrayLike | None = None
    ) -> Audit:
        """Check the assumptions CON1-CON9 and NHR1-NHR3 at sampled configurations.

        Parameters
        ----------
        outputs : iterable of Output, optional
            Outputs to be controlled; without them the conditions on outputs are listed as
            not checked.
        working_set : array_like, optional
            Configurations at which the wheels have to determine the motion (NHR3), in the order
            in which they are passed, shape (k, nq); default random ones.

        Returns
        -------
        Audit
            One row per condition: holds, fails or not checked, and why.

        Raises
        ------
        ShapeError, NonFiniteError
            If the working set holds no configurations of the robot.
        """
        return audit(self, None if outputs is None else tuple(outputs), working_set)


def _embed(s: Array, rows: list[int], size: int) -> Array:
    full = ca.SX(size, 1)
    full[rows] = s
    return full
