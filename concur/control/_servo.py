"""The servo: input-output linearization with feed-forward and proportional-derivative action.

``nu = I^-1 (B^T KP x - KD ve) + Ad gammaddot_body - ad_(r^-1 rdot) Ad gammadot_body`` is the
wanted rate of the output velocity (5.4.30)-(5.4.33); the law solves ``J H sdot = nu - b`` for
the shape acceleration and takes the torque from one Newton-Euler pass. The sign of u is that
of a physical force, the opposite of the thesis's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array, EvaluatedMethods, as_floats, evaluated, shape_error
from concur.control._error_dynamics import ErrorDynamics
from concur.control._feasibility import Feasibility, follow
from concur.control._fitting import fitting
from concur.control._gains import read_gain
from concur.control._matching import matching_outputs
from concur.control._output import Output
from concur.control._output_groups import Product
from concur.control._output_kinematics import (
    output_coordinates,
    output_jacobian,
    output_poses,
)
from concur.control._sample import ReferenceSample
from concur.control._singularity import (
    SINGULAR,
    check_decoupling,
    decoupling_scale,
    lost_direction,
    singular_error,
)
from concur.control._tick import Tick
from concur.control.references import Reference
from concur.errors import InfeasibleReferenceError, NonFiniteError, ShapeError
from concur.kinematics import (
    body_accelerations,
    body_twists,
    constant,
    joint_poses,
)
from concur.mechanism import scalar
from concur.reduction import CON4, Audit, AuditRow, AuditStatus, ReducedModel


@dataclass(frozen=True, eq=False)
class Servo(EvaluatedMethods):
    """Tracker of outputs on Lie groups for a reduced robot.

    Parameters
    ----------
    model : ReducedModel
        The reduced robot, from `reduce`.
    outputs : sequence of Output
        What is to follow a reference; as many coordinates as there are controls.
    stiffness, damping : float, sequence or array_like
        KP and KD on the outputs' algebra: a number, one entry per output (each a number or
        one number per coordinate), or a symmetric positive definite matrix.
    inertia : float, sequence or array_like, optional
        Metric I of the error dynamics, given in the same ways; default the identity.
    singular_margin : float
        Margin of the decoupling matrix below which no torque is given out.

    Raises
    ------
    OutputError
        If the outputs do not match the controls, the gains are not positive definite, or the
        decoupling matrix is singular everywhere.
    UnknownNameError
        If an output's body does not exist.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> servo = cc.Servo(model, [base, hand], stiffness=[4, 9], damping=[4, 6])
    >>> servo.nu
    5
    """

    model: ReducedModel
    outputs: Sequence[Output]
    stiffness: Any
    damping: Any
    inertia: Any = None
    singular_margin: float = SINGULAR
    error_dynamics: ErrorDynamics = field(init=False, repr=False)

    def __post_init__(self) -> None:
        outputs = matching_outputs(self.model, self.outputs)
        object.__setattr__(self, "outputs", outputs)
        where = f"servo of `{self.name}`"
        if self.inertia is None:
            object.__setattr__(self, "inertia", 1.0)
        gains = {
            name: read_gain(f"{where}, `{name}`", getattr(self, name), outputs)
            for name in ("stiffness", "damping", "inertia")
        }
        for name, matrix in gains.items():
            object.__setattr__(self, name, matrix)
        dynamics = ErrorDynamics(Product([output.lie for output in outputs]), **gains)
        object.__setattr__(self, "error_dynamics", dynamics)
        check_decoupling(self)

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.model.name

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self.model.nq

    @property
    def ns(self) -> int:
        """Number of shape velocities."""
        return self.model.ns

    @property
    def nu(self) -> int:
        """Number of controls."""
        return self.model.nu

    @property
    def size(self) -> int:
        """Dimension of all outputs together."""
        return self.error_dynamics.size

    @property
    def pose_size(self) -> int:
        """Length of the flat output coordinates."""
        return self.error_dynamics.group.pose_size

    @evaluated("(nq)->(pose_size)")
    def output(self, q: Array) -> Array:
        """Flat coordinates of the outputs.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (pose_size,), in output order; the layout is that of `ReferenceSample.pose`.
        """
        return output_coordinates(self.model.robot, self.outputs, q)

    @evaluated("(nq)->(size,ns)")
    def decoupling(self, q: Array) -> Array:
        """Decoupling matrix J H: shape velocities to output velocities.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (size, ns).
        """
        return output_jacobian(self.model.robot, self.outputs, q) @ self.model.lift(q)[0]

    @evaluated("(nq),(ns)->(size),(size)")
    def output_motion(self, q: Array, s: Array) -> tuple[Array, Array]:
        """Output velocity and its rate at zero shape acceleration.

        Parameters
        ----------
        q, s : array_like
            Configuration and shape velocities, shapes (nq,) and (ns,).

        Returns
        -------
        velocity : numpy.ndarray or casadi.SX
            r^-1 rdot, shape (size,).
        drift : numpy.ndarray or casadi.SX
            b in d/dt(r^-1 rdot) = J H sdot + b, shape (size,).
        """
        robot = self.model.robot
        relative = joint_poses(robot, q)
        v = self.model.velocity(q, s)
        twists = body_twists(robot, relative, v)
        rates = body_accelerations(robot, relative, twists, v, self.model.drift_acceleration(q, s))
        velocities, drifts = [], []
        placed = output_poses(robot, self.outputs, q)
        for output, pose in zip(self.outputs, placed, strict=True):
            i = robot.index(output.body)
            twist, rate = output.moved(twists[i]), output.moved(rates[i])
            velocities.append(output.lie.velocity(pose, twist))
            drifts.append(output.lie.acceleration(pose, twist, rate))
        return ca.vertcat(*velocities), ca.vertcat(*drifts)

    @evaluated("(nq),(ns),(pose_size),(size)->(size),(size)")
    def errors(self, q: Array, s: Array, pose: Array, twist: Array) -> tuple[Array, Array]:
        """Pose and velocity error for a flat reference.

        Parameters
        ----------
        q, s : array_like
            Configuration and shape velocities, shapes (nq,) and (ns,).
        pose, twist : array_like
            Demanded flat coordinates and velocity, shapes (pose_size,) and (size,).

        Returns
        -------
        x, ve : numpy.ndarray or casadi.SX
            log(r^-1 gamma) and r^-1 rdot - Ad gamma^-1 gammadot, shape (size,).
        """
        group = self.error_dynamics.group
        x = group.error(self.output(q), pose)
        return x, self.output_motion(q, s)[0] - group.transport(x) @ twist

    @evaluated("(nq),(ns),(pose_size),(size),(size)->(nu),()")
    def law(
        self, q: Array, s: Array, pose: Array, twist: Array, acceleration: Array
    ) -> tuple[Array, Array]:
        """The whole law on flat arrays: what is compiled, simulated and exported.

        Parameters
        ----------
        q, s : array_like
            Configuration and shape velocities, shapes (nq,) and (ns,).
        pose, twist, acceleration : array_like
            Demanded flat coordinates, velocity and its rate, shapes (pose_size,), (size,)
            and (size,).

        Returns
        -------
        u : numpy.ndarray or casadi.SX
            Control forces and torques, shape (nu,), N and N m.
        pivot : float or casadi.SX
            Smallest pivot met when the scaled decoupling matrix, the rolling constraints and
            H^T B are factored, without unit: zero where one of them is singular.
        """
        group = self.error_dynamics.group
        x = group.error(self.output(q), pose)
        velocity, drift = self.output_motion(q, s)
        transport = group.transport(x)
        carried = transport @ twist
        command = (
            self.error_dynamics.feedback(x, velocity - carried)
            + transport @ acceleration
            - group.ad(velocity) @ carried
        )
        rows, columns = (constant(scale) for scale in self.scales)
        scaled = ca.diag(rows) @ self.decoupling(q) @ ca.diag(1 / columns)
        solution, pivots = _solve_square(scaled, rows * (command - drift))
        pivot = ca.fmin(ca.mmin(pivots), self.model.regularity(q))
        force = self.model.inverse_dynamics(q, s, solution / columns)
        actuation = self.model.input_matrix(q)
        if actuation.is_constant() and ca.DM(actuation).is_eye():
            return force, pivot
        torque, pivots = _solve_square(actuation, force)
        return torque, ca.fmin(pivot, ca.mmin(pivots) / ca.mmax(pivots))

    def torque(self, q: Array, s: Array, sample: ReferenceSample) -> Array:
        """Control forces and torques for a state and a reference.

        Parameters
        ----------
        q, s : array_like
            Configuration and shape velocities, shapes (nq,) and (ns,).
        sample : ReferenceSample
            Demanded pose, twist and acceleration of all outputs.

        Returns
        -------
        numpy.ndarray or casadi.SX
            u, shape (nu,), N and N m.

        Raises
        ------
        SingularConfigurationError
            If the margin of the decoupling matrix is below `singular_margin`.
        NonFiniteError
            If the state or the result is not finite.
        """
        pose, twist, acceleration = self.flat(sample)
        if not isinstance(q, (ca.SX, ca.MX)):
            q = self.model.robot.check_configuration(q, "argument `q`")
        u, _ = self.law(q, s, pose, twist, acceleration)
        if isinstance(u, np.ndarray):
            margin = self.margin(q)
            if margin < self.singular_margin:
                raise singular_error(self, q, margin)
            if not np.isfinite(u).all():
                raise NonFiniteError(
                    f"servo of `{self.name}`",
                    expected="finite torques",
                    came=str(u),
                    cure="The demand is too large for this state; check the reference.",
                )
        return u

    def error(self, q: Array, s: Array, sample: ReferenceSample) -> tuple[Array, Array]:
        """Pose and velocity error.

        Parameters
        ----------
        q, s : array_like
            Configuration and shape velocities, shapes (nq,) and (ns,).
        sample : ReferenceSample
            Demanded pose, twist and acceleration of all outputs.

        Returns
        -------
        x, ve : numpy.ndarray or casadi.SX
            log(r^-1 gamma) and r^-1 rdot - Ad gamma^-1 gammadot, shape (size,); for R^n
            x = gamma - r and ve = rdot - gammadot.
        """
        pose, twist, _ = self.flat(sample)
        return self.errors(q, s, pose, twist)

    def lyapunov(self, q: Array, s: Array, sample: ReferenceSample) -> Array:
        """Lyapunov function of the error, (5.4.35).

        Parameters
        ----------
        q, s : array_like
            Configuration and shape velocities, shapes (nq,) and (ns,).
        sample : ReferenceSample
            Demanded pose, twist and acceleration of all outputs.

        Returns
        -------
        float or casadi.SX
            (x KP x + ve I ve) / 2.
        """
        return self.error_dynamics.lyapunov(*self.error(q, s, sample))

    def margin(self, q: ArrayLike) -> float:
        """How far the decoupling matrix is from singular.

        Smallest singular value of D J H Mhat^(-1/2), where D multiplies linear rows by the
        square root of the mass that can move and angular rows by that and the robot's size: a
        number without unit, zero where some output direction cannot be commanded. Where the
        wheels come near to not determining the base, the model's `regularity` if that is less.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        float
            The margin.
        """
        q = as_floats(q, f"servo of `{self.name}`, argument `q`")
        scaled = self.scales[0][:, None] * self.decoupling(q)
        factor = np.linalg.cholesky(self.model.mass_matrix(q))
        metric = np.linalg.solve(factor, scaled.T)
        least = float(np.linalg.svd(metric, compute_uv=False)[-1])
        regularity = self.model.regularity(q)
        return least if regularity == 1.0 else min(least, regularity)

    @cached_property
    def scales(self) -> tuple[np.ndarray, np.ndarray]:
        """Factors that take the units from the decoupling matrix: of rows, of columns.

        Rows: square root of the mass that can move, for angular rows times the robot's size.
        Columns: square root of the reduced mass matrix's diagonal at the neutral configuration.
        """
        metric = np.diag(self.model.mass_matrix(self.model.robot.neutral()))
        return decoupling_scale(self), np.sqrt(metric)

    def audit(
        self,
        reference: Reference | None = None,
        duration: float | None = None,
        q0: ArrayLike | None = None,
    ) -> Audit:
        """Check the assumptions, with the outputs and, if given, along a reference.

        Parameters
        ----------
        reference : Reference, optional
            Reference of all outputs.
        duration : float, optional
            How long it is followed, s.
        q0 : array_like, optional
            Configuration from which the exact start is sought, shape (nq,).

        Returns
        -------
        Audit
            CON1-CON9, NHR1-NHR3 and DYN, the invertibility of the decoupling matrix.
        """
        rows = []
        path = None
        if reference is not None:
            path = self.feasibility(reference, float("nan") if duration is None else duration, q0)
            rows.append(
                AuditRow(
                    "CON4",
                    CON4,
                    AuditStatus.HOLDS if path.feasible else AuditStatus.FAILS,
                    path.why,
                    {"margin": path.margin, "reached": path.reached},
                )
            )
        if q0 is not None:
            rows.append(_consistency(self.model, self.model.robot.check_configuration(q0)))
        rows.append(self._invertibility(path, q0))
        return self.model.audit(self.outputs).replace(*rows)

    def _invertibility(self, path: Feasibility | None, q0: ArrayLike | None) -> AuditRow:
        """DYN: the law itself exists."""
        statement = "the decoupling matrix is invertible"
        margins = {}
        if q0 is not None:
            margins["at the start"] = self.margin(q0)
        if path is not None:
            margins["along the reference"] = path.margin
        if not margins:
            why = "no configuration was given"
            return AuditRow("DYN", statement, AuditStatus.NOT_CHECKED, why)
        least = min(margins.values())
        why = ", ".join(f"smallest margin {margin:.3g} {at}" for at, margin in margins.items())
        if q0 is not None and margins["at the start"] < self.singular_margin:
            why += f": {lost_direction(self, np.asarray(q0, dtype=float))}"
        return AuditRow(
            "DYN",
            statement,
            AuditStatus.HOLDS if least > self.singular_margin else AuditStatus.FAILS,
            why,
            {"margin": least},
        )

    def feasibility(
        self, reference: Reference, duration: float, q0: ArrayLike | None = None
    ) -> Feasibility:
        """Follow a reference exactly, without dynamics, and report where that ends (CON4).

        Parameters
        ----------
        reference : Reference
            Reference of all outputs.
        duration : float
            How long, s.
        q0 : array_like, optional
            Configuration from which the exact start is sought, shape (nq,).

        Returns
        -------
        Feasibility
            Whether the motion exists, its smallest margin, and the motion.
        """
        start = self.model.robot.neutral() if q0 is None else q0
        where = f"servo of `{self.name}`"
        demand = fitting(reference, self.outputs, where)
        length = scalar(duration, f"{where}, `duration`")
        if length <= 0.0:
            raise InfeasibleReferenceError(
                f"{where}, `duration`",
                expected="a time above zero, s",
                came=str(duration),
                cure="Say how long the reference is to be followed.",
            )
        return follow(self, demand, length, self.model.robot.check_configuration(start))

    def compile(self) -> Tick:
        """Make the law ready to be called at a high rate.

        Returns
        -------
        Tick
            ``tick(q, s, sample) -> u``; its `buffers` take the numbers without copies.
        """
        return Tick(self)

    def flat(self, sample: ReferenceSample) -> tuple[Array, Array, Array]:
        """Check a sample against the outputs and flatten it.

        Parameters
        ----------
        sample : ReferenceSample
            Demanded pose, twist and acceleration of all outputs.

        Returns
        -------
        pose, twist, acceleration : numpy.ndarray or casadi.SX
            Shapes (pose_size,), (size,) and (size,).

        Raises
        ------
        ShapeError
            If it does not fit the outputs.
        """
        if (
            isinstance(sample, ReferenceSample)
            and sample.pose.shape in ((self.pose_size,), (self.pose_size, 1))
            and sample.twist.shape[0] == self.size
        ):
            return sample.pose, sample.twist, sample.acceleration
        where = f"servo of `{self.name}`, reference"
        if not isinstance(sample, ReferenceSample):
            raise ShapeError(
                where,
                expected="a ReferenceSample(pose, twist, acceleration)",
                came=f"{type(sample).__name__} {sample!r:.60}",
                cure="Call the reference with a time to get one.",
            )
        if sample.is_matrix and [o.group in ("SE3", "R3xSO3") for o in self.outputs] != [True]:
            raise ShapeError(
                f"{where}, `pose`",
                expected=f"{self.pose_size} numbers in output order",
                came="a (4, 4) matrix",
                cure="A matrix is for a servo with one output that is a full pose.",
            )
        pose = sample.flat_pose
        for part, size, values in (
            ("pose", self.pose_size, pose),
            ("twist", self.size, sample.twist),
        ):
            if values.shape[0] != size:
                raise shape_error(f"{where}, `{part}`", (size,), values.shape)
        return pose, sample.twist, sample.acceleration


def _consistency(model: ReducedModel, q0: np.ndarray) -> AuditRow:
    """CON7: velocities come from the lift, so the wheels' rows vanish on them."""
    if not model.dependent:
        return AuditRow(
            "CON7", "the initial state obeys the wheels", AuditStatus.HOLDS, "no wheels"
        )
    rest = float(np.abs(model.robot.constraints(q0) @ model.lift(q0)[0]).max())
    return AuditRow(
        "CON7",
        "the initial state obeys the wheels",
        AuditStatus.HOLDS if rest < 1e-9 else AuditStatus.FAILS,
        f"by construction: velocities are lifted; constraint residual {rest:.1e}",
        {"residual": rest},
    )


def _solve_square(matrix: Array, right: Array) -> tuple[Array, Array]:
    """Solve by Householder QR; the pivots tell how near to singular the matrix is."""
    reflectors, upper, scales, rows, columns = ca.qr_sparse(matrix)
    solution = ca.qr_solve(right, reflectors, upper, scales, rows, columns)
    return solution, ca.fabs(ca.diag(upper))
