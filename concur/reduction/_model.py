"""The reduced model: the lift's core with its Hamiltonian side and its audit.

Each way of reducing is a class that defines its lift (`WheelReduction`, `MomentumReduction`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array, Matrix, Scalar, Vector, evaluated
from concur.errors import ReductionError
from concur.reduction._audit import Audit, audit
from concur.reduction._derivative import along
from concur.reduction._lift import Lift
from concur.robot import as_tree, damping_forces, solve_positive_definite
from concur.system import System


@dataclass(frozen=True, repr=False)
class ReducedModel(Lift):
    """A robot's dynamics in its shape velocities.

    Made by `reduce`: this class itself for a robot whose velocities are all shape velocities.
    With mass matrix M, bias c and actuation B of the robot,
    ``Mhat sdot + chat = H^T B u``, ``Mhat = H^T M H``, ``chat = H^T (M b + c)`` and
    ``vdot = H sdot + b``.

    Parameters
    ----------
    system : System
        The robot, or any other system.
    kind : str
        "symplectic", "chaplygin", "constrained" or "unreduced".
    shape : tuple of int
        Indices in v of the shape velocities s.
    dependent : tuple of int
        Indices in v that the lift gives from s.
    reason : str
        Why this reduction was taken.

    Attributes
    ----------
    name : str
        Name of the robot.
    nq, nv : int
        Numbers of configuration coordinates, and of velocities of the robot.
    ns, nu : int
        Numbers of shape velocities, and of controls: motors and thrusters.

    See Also
    --------
    reduce : makes one.
    """

    @property
    def first(self) -> ReducedModel:
        """The first stage of the reduction: the model itself, unless there are more."""
        return self

    @property
    def stages(self) -> tuple[str, ...]:
        """Joints of all stages after the first, in order."""
        return tuple(stage.label for stage in self.chain)

    @property
    def chain(self) -> tuple[Any, ...]:
        """All stages after the first, in order, each a `StagedReduction`."""
        return ()

    @property
    def nm(self) -> int:
        return self.first.nm if self.first is not self else 0

    @property
    def takes_momentum(self) -> bool:
        """Whether a robot floats, so that its law takes its constant momentum as an input."""
        return self.nm > 0

    @property
    def keeps_momentum(self) -> bool:
        """Whether velocities follow from a constant momentum: of a base, or of a symmetry group."""
        return self.first.keeps_momentum if self.first is not self else False

    @property
    def momentum(self) -> tuple[float, ...]:
        """Constant momentum of a robot that floats, spatial, (6,), or of a symmetry group, (nb,).

        Raises
        ------
        ReductionError
            If the model has none.
        """
        return self._floating("momentum").momentum

    @property
    def com_velocity(self) -> np.ndarray:
        """Velocity at which the centre of mass of a robot that floats drifts, shape (3,), m/s.

        Raises
        ------
        ReductionError
            If the robot does not float.
        """
        first = self._floating("com_velocity")
        as_tree(first.system, f"com_velocity of `{self.name}`")
        return first.com_velocity

    def body_momentum(self, q: Vector, momentum: Vector | None = None) -> Array:
        """Momentum in the base's frame at a constant spatial momentum: Pi = Ad*_q1 mu.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        momentum : array_like, optional
            Spatial momentum, as of `lift`; default that of the model.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Pi, shape (nb,), dual to the base's velocity.

        Raises
        ------
        ReductionError
            If the robot does not float.
        """
        return self._floating("body_momentum").body_momentum(q, momentum)

    def locked_inertia(self, q: Vector) -> Array:
        """Locked inertia of a robot that floats, in the base's frame: M11, (3.3.36).

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (nb, nb), in the basis of the base's joint; that of (3.2.20) is its transform
            Ad*_(q1^-1) M11 Ad_(q1^-1) to the inertial frame.

        Raises
        ------
        ReductionError
            If the robot does not float.

        References
        ----------
        Source 000, (5.3)-(5.5).
        """
        return self._floating("locked_inertia").locked_inertia(q)

    def at_momentum(self, momentum: ArrayLike) -> ReducedModel:
        """The same robot with another momentum.

        Parameters
        ----------
        momentum : array_like
            Spatial momentum about the inertial origin, shape (6,), kg m/s and kg m^2/s.

        Returns
        -------
        ReducedModel
            The model, with newly built functions.

        Raises
        ------
        ReductionError
            If the robot does not float, or a stage does not keep the same part of its momentum
            then.
        ShapeError, NonFiniteError
            If the momentum is not six finite numbers.
        """
        return self._floating("at_momentum").at_momentum(momentum)

    def _floating(self, asked: str) -> ReducedModel:
        """First stage of a robot that floats."""
        if self.keeps_momentum:
            return self.first
        raise ReductionError(
            f"model of `{self.name}`, `{asked}`",
            expected="a robot that floats",
            came=f"{self.first.kind} reduction",
            cure="The momentum of this robot is not constant. Those of its stages are in `chain`, "
            "each with its `theta`."
            if self.chain
            else "Leave the momentum out: this robot does not keep it.",
        )

    def on(self, robot: System) -> ReducedModel:
        """The same reduction of a robot with other parameters.

        Parameters
        ----------
        robot : System
            A robot with the same bodies, joints, wheels and motors.

        Returns
        -------
        ReducedModel
            Its model.
        """
        return replace(self, system=robot)

    @evaluated("(nq),(ns)->(ns,ns)")
    def coriolis(self, q: Vector, s: Vector) -> Matrix:
        """Factor C of the reduced Coriolis forces with Mhat' = C + C^T, (20) of source 004.

        ``C s`` plus the bias at s = 0 is the bias without dampers: the gyroscopic forces of a
        momentum have a skew part of C. After a stage by a part of a joint that turns, they have a
        symmetric part too, which belongs to no such factor, and C leaves it out.

        Parameters
        ----------
        q, s : array_like
            Configuration and shape velocities, shapes (nq,) and (ns,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            C, shape (ns, ns), of the Levi-Civita connection but for the skew part.

        Raises
        ------
        ReductionError
            If the system has two-spheres, whose spins move no mass.

        References
        ----------
        Source 004, (20).
        """
        if getattr(self.system, "spins", ()):
            raise ReductionError(
                f"Coriolis factor of `{self.name}`",
                expected="a system in which every velocity moves a mass",
                came="a two-sphere, whose spin moves none",
                cure="Describe the body by SO3, or as a ball joint of a Mechanism.",
            )
        away, speeds, still = ca.SX.sym("away", self.ns), ca.SX.sym("s", self.ns), ca.SX(self.ns, 1)

        horizontal, drift = self.lift(q)

        def factor(v: Vector) -> Array:
            forces = self.following_forces(q, v, v - horizontal @ away, still)
            return -ca.substitute(ca.jacobian(forces, away), away, ca.SX.zeros(self.ns))

        own = factor(self.velocity(q, s)) - horizontal.T @ self._dampers(q) @ horizontal
        if not ca.SX(drift).nnz():
            return own
        forces = ca.jacobian(self.bias(q, speeds), speeds)
        gyroscopic = ca.substitute(forces, speeds, ca.SX.zeros(self.ns)) - factor(drift)
        return own + (gyroscopic - gyroscopic.T) / 2

    @evaluated("(nq),(ns)->()")
    def hamiltonian(self, q: Vector, p: Vector) -> Scalar:
        """Reduced Hamiltonian: energy at reduced momentum, J, (3.3.42) and (4.3.26).

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        p : array_like
            Reduced momentum Mhat s, shape (ns,).

        Returns
        -------
        float or casadi.SX
            The value.

        References
        ----------
        Thesis, (3.1.6), (3.1.7), (3.2.13), (3.3.33), (3.3.42), (4.2.12), (4.3.26).
        """
        v = self.velocity(q, solve_positive_definite(self.mass_matrix(q), p))
        return self.system.kinetic_energy(q, v) + self.system.potential_energy(q)

    @evaluated("(nq),(ns)->(ns,ns)")
    def two_form(self, q: Vector, p: Vector) -> Matrix:
        """Curvature two-form of the reduced equations: <J, B> of (4.3.27), <Pi, B> of (3.3.47).

        With horizontal fields X_a (columns of H), shape structure constants c and the velocity
        v = H s + h, ``Xi_ab = c^d_ab <M v, X_d> - <M v, [X_a, X_b]>``, where <M v, X_d> is p_d
        unless the drift h has a momentum along the shape velocities, as after a stage by a part
        of a joint that turns. This is <J, B_ab> for a Chaplygin system and holds for wheels
        without the symmetry too; for a floating robot it is <Pi, B_ab> with the body momentum Pi.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        p : array_like
            Reduced momentum Mhat s, shape (ns,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (ns, ns).

        References
        ----------
        Thesis, Theorem 4.2.4, (4.2.14), Lemma 4.2.7.
        """
        horizontal, drift = self.lift(q)
        s = solve_positive_definite(self.mass_matrix(q), p)
        momentum = self.system.mass_matrix(q) @ (horizontal @ s + drift)
        fields = [horizontal[:, a] for a in range(self.ns)]
        changes = [
            along(lambda x: self.lift(x)[0], q, self.system.rate(q, field)) for field in fields
        ]
        group: Any = self.system
        if not hasattr(group, "bracket") or getattr(group, "framed", False):
            group = self.robot
        # Of a base that is in the shape with a part of its velocities, the others' bracket has
        # components in the shape as well: those belong to the form, not to the constants c.
        units = self._on_shape()
        carried = horizontal.T @ momentum
        form = ca.SX(self.ns, self.ns)
        for a in range(self.ns):
            for b in range(a + 1, self.ns):
                turned = group.bracket(fields[a], fields[b]) + changes[a][:, b] - changes[b][:, a]
                own = group.bracket(units[:, a], units[:, b])[list(self.shape)]
                form[a, b] = ca.dot(carried, own) - ca.dot(momentum, turned)
                form[b, a] = -form[a, b]
        return ca.sparsify(form)

    @evaluated("(nq),(ns),(nu)->(nv),(ns)")
    def vector_field(self, q: Vector, p: Vector, u: Vector) -> tuple[Vector, Vector]:
        """Reduced Hamilton equations.

        ``pdot_b = -E_b Hhat + c^d_ab p_d s^a - Xi_ab s^a + (H^T B u)_b`` with E_b the
        derivative along the horizontal field b; a lift whose drift h is not that of a floating
        base alone adds <M v, [h, X_b]> + X_b <M h, h>. All these terms are the change of the
        reduced mass matrix along the motion less the bias, which is how they are evaluated.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).
        p : array_like
            Reduced momentum Mhat s, shape (ns,).
        u : array_like
            Control forces and torques, N and N m, shape (nu,).

        Returns
        -------
        v : numpy.ndarray or casadi.SX
            Velocity of the robot, shape (nv,); `robot.rate` makes qdot of it.
        pdot : numpy.ndarray or casadi.SX
            Rate of the reduced momentum, shape (ns,).

        References
        ----------
        Thesis, (3.1.5), (3.1.8), (3.1.10), (3.1.11), (4.1.3), (4.1.4), (4.1.7), (4.2.13),
        Theorem 4.3.1, (5.1.7), (5.3.24)-(5.3.26).
        """
        s = solve_positive_definite(self.mass_matrix(q), p)
        v = self.velocity(q, s)
        turning = along(self.mass_matrix, q, self.system.rate(q, v))
        return v, turning @ s + self.input_matrix(q) @ u - self.bias(q, s)

    def _dampers(self, q: Vector) -> Array:
        """Damping matrix (nv, nv): forces of dampers for each velocity."""
        v = ca.SX.sym("v", self.nv)
        return ca.jacobian(damping_forces(self.system, q, v), v)

    def momentum_fields(self, q: Vector) -> Array:
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

    def audit(
        self, outputs: Iterable[Any] | None = None, configurations: ArrayLike | None = None
    ) -> Audit:
        """Check the assumptions CON1-CON9 and NHR1-NHR3 at sampled configurations.

        Parameters
        ----------
        outputs : iterable of Output, optional
            Outputs to be controlled; without them the conditions on outputs are listed as
            not checked.
        configurations : array_like, optional
            Configurations at which the wheels have to determine the motion (NHR3), in the order
            in which they are passed, shape (k, nq); default random ones.

        Returns
        -------
        Audit
            One row per condition: holds, fails or not checked, and why.

        Raises
        ------
        ShapeError, NonFiniteError
            If `configurations` has none of the robot.

        References
        ----------
        Thesis, Theorem 3.3.3, (4.2.10), (4.3.24), (5.1.1)-(5.1.3), Corollary 5.1.2,
        Proposition 5.1.3.
        """
        return audit(self, None if outputs is None else tuple(outputs), configurations)


def check_model(model: object, where: str) -> None:
    """Reject anything but a reduced model.

    Parameters
    ----------
    model : object
        What a user passed.
    where : str
        Place named in the error.

    Raises
    ------
    ReductionError
        If it is another object.
    """
    if not isinstance(model, ReducedModel):
        raise ReductionError(
            f"{where}, `model`",
            expected="a reduced model",
            came=f"{type(model).__name__} {model!r:.40}",
            cure="Pass reduce(robot).",
        )
