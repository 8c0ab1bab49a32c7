"""The servo: input-output linearization with feed-forward and proportional-derivative action.

What it computes is in `_law.py`; here is what a user holds in hand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import LARGEST, Array, EvaluatedMethods, as_floats, evaluated, shape_error
from concur.control._allocation import read_limits
from concur.control._attitudes import demanded_quaternions
from concur.control._conditions import consistency, invertibility, matching_counts
from concur.control._error_dynamics import ErrorDynamics
from concur.control._export import SPEED_LIMIT, export_servo
from concur.control._feasibility import Feasibility, follow
from concur.control._fitting import fitting
from concur.control._gains import read_gain
from concur.control._iosystem import to_iosystem
from concur.control._joint_limits import within_limits
from concur.control._law import law, limited_law
from concur.control._loop import loop_response
from concur.control._matching import matching_outputs
from concur.control._mismatch import MomentumMismatch, momentum_mismatch
from concur.control._output import Output
from concur.control._output_groups import Product
from concur.control._output_kinematics import (
    output_coordinates,
    output_jacobian,
    output_poses,
)
from concur.control._redundancy import Redundancy
from concur.control._sample import ReferenceSample
from concur.control._singularity import (
    SINGULAR,
    check_decoupling,
    decoupling_margins,
    decoupling_scale,
    lacks_leverage,
    refusal,
    singular_error,
)
from concur.control._tick import Tick
from concur.control.references import Reference
from concur.errors import InfeasibleReferenceError, OutputError, ShapeError
from concur.kinematics import body_accelerations, body_twists, joint_poses
from concur.mechanism import scalar
from concur.reduction import CON4, Audit, AuditRow, AuditStatus, ReducedModel

if TYPE_CHECKING:
    import control
    from matplotlib.figure import Figure

    from concur.codegen._c_export import CFolder


@dataclass(frozen=True, eq=False)
class Servo(EvaluatedMethods):
    """Tracker of outputs on Lie groups for a reduced robot.

    Parameters
    ----------
    model : ReducedModel
        The reduced robot, from `reduce`.
    outputs : sequence of Output
        What is to follow a reference; at most as many coordinates as there are controls.
    stiffness, damping : float, sequence or array_like
        KP and KD on the outputs' algebra: a number, one entry per output (each a number or
        one number per coordinate), or a symmetric positive definite matrix.
    inertia : float, sequence or array_like, optional
        Metric I of the error dynamics, given in the same ways; default the identity.
    singular_margin : float
        Margin of the decoupling matrix below which no torque is given out.
    redundancy : Redundancy, optional
        Rule for the internal motion when there are more controls than output coordinates;
        default `Redundancy()`: least acceleration energy, and coming to rest.
    damped_below : float, optional
        Margin below which the equation is solved with damping instead of being refused; what
        is given up of the demand is reported as `missed`. Default: refused below
        `singular_margin`.
    torque_limits : float, sequence or mapping, optional
        Limits of the controls, N and N m: a number, one per control, or pairs of lower and
        upper limit; also by name of the control. The demand is scaled down, in its own
        direction, to what they allow; where no scale has room, as when they cannot hold the
        robot's weight, the output acceleration is the nearest one. Default: none.
    measured : bool
        Whether the law takes all measured velocities of the robot v, shape (nv,), in place of
        the shape velocities s: the momentum then is the one measured, not the model's.

    Raises
    ------
    OutputError
        If there are more output coordinates than controls, the gains are not positive
        definite, an option is out of range, or the decoupling matrix is singular everywhere.
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

    COMPILED = ("law", "output", "errors", "decoupling")

    model: ReducedModel
    outputs: Sequence[Output]
    stiffness: Any
    damping: Any
    inertia: Any = None
    singular_margin: float = SINGULAR
    redundancy: Redundancy | None = None
    damped_below: float | None = None
    torque_limits: Any = None
    measured: bool = False
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
        self._check_options(where)
        dynamics = ErrorDynamics(Product([output.lie for output in outputs]), **gains)
        object.__setattr__(self, "error_dynamics", dynamics)
        check_decoupling(self)

    def _check_options(self, where: str) -> None:
        size = sum(output.dim for output in self.outputs)
        least = scalar(self.singular_margin, f"{where}, `singular_margin`")
        if not least > 0.0:
            raise OutputError(
                f"{where}, `singular_margin`",
                expected="a margin above zero",
                came=str(least),
                cure="Leave it out for the default; to pass singular configurations there is "
                "`damped_below`.",
            )
        object.__setattr__(self, "singular_margin", least)
        if not isinstance(self.measured, (bool, np.bool_)):
            raise OutputError(
                f"{where}, `measured`",
                expected="True or False",
                came=repr(self.measured)[:40],
                cure="Say whether the law gets all measured velocities.",
            )
        rule = self.redundancy
        if rule is not None and not isinstance(rule, Redundancy):
            raise OutputError(
                f"{where}, `redundancy`",
                expected="a Redundancy",
                came=f"{type(rule).__name__} {rule!r:.40}",
                cure='Write for example Redundancy(objective="rest").',
            )
        if size == self.nu:
            # Nothing is left over for a rule to act on.
            object.__setattr__(self, "redundancy", None)
        else:
            rule = (rule or Redundancy()).checked(f"{where}, `redundancy`", self.model)
            object.__setattr__(self, "redundancy", rule)
        if self.damped_below is not None:
            zone = scalar(self.damped_below, f"{where}, `damped_below`")
            if not zone > 0.0:
                raise OutputError(
                    f"{where}, `damped_below`",
                    expected="a margin above zero",
                    came=str(zone),
                    cure="A quarter of `servo.margin` at a good configuration is usual; leave it "
                    "out to refuse singular configurations.",
                )
            object.__setattr__(self, "damped_below", zone)
        if self.torque_limits is not None:
            names = self.model.control_names
            limits = read_limits(f"{where}, `torque_limits`", self.torque_limits, names)
            limits.setflags(write=False)
            object.__setattr__(self, "torque_limits", limits)

    def __str__(self) -> str:
        lines = [f"servo of {self.name}: {self.size} output coordinates, {self.nu} controls"]
        start = 0
        for output in self.outputs:
            part = slice(start, start + output.dim)
            start = part.stop
            gains = (
                f"{kind} {', '.join(f'{x:g}' for x in dict.fromkeys(np.diag(matrix)[part]))}"
                for kind, matrix in (("stiffness", self.stiffness), ("damping", self.damping))
            )
            lines.append(f"{output.name}: {output.group} of `{output.body}`, {', '.join(gains)}")
        if self.redundancy is not None:
            lines.append(f"internal motion: {self.redundancy}")
        if self.damped_below is not None:
            lines.append(f"damped below a margin of {self.damped_below:g}")
        if self.torque_limits is not None:
            lines.append("torques limited")
        if self.measured:
            lines.append("takes measured velocities")
        return "\n".join(lines)

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.model.name

    @property
    def quaternions(self) -> Mapping[int, str]:
        """Where the quaternions start in q, and the bodies whose joints they turn."""
        return self.model.quaternions

    @property
    def attitudes(self) -> Mapping[str, Mapping[int, str]]:
        """Where quaternions start in q and in a demanded pose, and what they belong to."""
        return {**super().attitudes, "pose": demanded_quaternions(self)}

    @property
    def nq(self) -> int:
        """Number of configuration coordinates."""
        return self.model.nq

    @property
    def nv(self) -> int:
        """Number of velocities of the robot."""
        return self.model.nv

    @property
    def ns(self) -> int:
        """Number of shape velocities."""
        return self.model.ns

    @property
    def nu(self) -> int:
        """Number of controls."""
        return self.model.nu

    @property
    def takes_matrix(self) -> bool:
        """Whether a demanded pose may be a matrix (4, 4): of one output that is a full pose."""
        return [output.group in ("SE3", "R3xSO3") for output in self.outputs] == [True]

    @property
    def nw(self) -> int:
        """Number of velocities that the law takes: ns, or nv when they are measured."""
        return self.model.nv if self.measured else self.model.ns

    @property
    def velocity_names(self) -> tuple[str, ...]:
        """Name of each velocity that the law takes."""
        names = self.model.robot.freedom_names
        return names if self.measured else self.model.shape_names

    def taken(self, v: Array) -> Array:
        """Pick from all velocities of the robot those that the law takes.

        Parameters
        ----------
        v : numpy.ndarray or casadi.SX
            Velocities of the robot, shape (nv,) or (k, nv).

        Returns
        -------
        numpy.ndarray or casadi.SX
            v itself when they are measured, else the shape velocities.
        """
        if self.measured:
            return v
        shape = list(self.model.shape)
        return v[..., shape] if isinstance(v, np.ndarray) else v[shape]

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

    @evaluated("(nq),(nw)->(nv)")
    def velocity(self, q: Array, s: Array) -> Array:
        """All velocities of the robot, from those that the law takes.

        Parameters
        ----------
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            v, shape (nv,).
        """
        return s if self.measured else self.model.velocity(q, s)

    @evaluated("(nq),(nw)->(size),(size)")
    def output_motion(self, q: Array, s: Array) -> tuple[Array, Array]:
        """Output velocity and its rate at zero shape acceleration.

        Parameters
        ----------
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).

        Returns
        -------
        velocity : numpy.ndarray or casadi.SX
            r^-1 rdot, shape (size,).
        drift : numpy.ndarray or casadi.SX
            b in d/dt(r^-1 rdot) = J H sdot + b, shape (size,).
        """
        robot = self.model.robot
        relative = joint_poses(robot, q)
        v = self.velocity(q, s)
        twists = body_twists(robot, relative, v)
        rates = body_accelerations(robot, relative, twists, v, self.model.velocity_drift(q, v))
        velocities, drifts = [], []
        placed = output_poses(robot, self.outputs, q)
        for output, pose in zip(self.outputs, placed, strict=True):
            i = robot.index(output.body)
            twist, rate = output.moved(twists[i]), output.moved(rates[i])
            velocities.append(output.lie.velocity(pose, twist))
            drifts.append(output.lie.acceleration(pose, twist, rate))
        return ca.vertcat(*velocities), ca.vertcat(*drifts)

    @evaluated("(nq),(pose_size)->(size)")
    def pose_error(self, q: Array, pose: Array) -> Array:
        """Pose error for flat output coordinates.

        Parameters
        ----------
        q, pose : array_like
            Configuration and demanded flat coordinates, shapes (nq,) and (pose_size,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            x = log(r^-1 gamma), shape (size,).
        """
        return self.error_dynamics.group.error(self.output(q), pose)

    @evaluated("(nq),(nw),(pose_size),(size)->(size),(size)")
    def errors(self, q: Array, s: Array, pose: Array, twist: Array) -> tuple[Array, Array]:
        """Pose and velocity error for a flat reference.

        Parameters
        ----------
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).
        pose, twist : array_like
            Demanded flat coordinates and velocity, shapes (pose_size,) and (size,).

        Returns
        -------
        x, ve : numpy.ndarray or casadi.SX
            log(r^-1 gamma) and r^-1 rdot - Ad gamma^-1 gammadot, shape (size,).
        """
        x = self.pose_error(q, pose)
        carried = self.error_dynamics.group.transport(x) @ twist
        return x, self.output_motion(q, s)[0] - carried

    @evaluated("(nq),(nw),(pose_size),(size),(size)->(nu),(),(size),()")
    def law(
        self, q: Array, s: Array, pose: Array, twist: Array, acceleration: Array
    ) -> tuple[Array, Array, Array, Array]:
        """The whole law on flat arrays: what is compiled, simulated and exported.

        Parameters
        ----------
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).
        pose, twist, acceleration : array_like
            Demanded flat coordinates, velocity and its rate, shapes (pose_size,), (size,)
            and (size,).

        Returns
        -------
        u : numpy.ndarray or casadi.SX
            Control forces and torques, shape (nu,), N and N m.
        pivot : float or casadi.SX
            Distance of the scaled decoupling matrix, the rolling constraints and H^T B from
            singular, whichever is nearest, without unit: zero where one of them is singular.
        missed : numpy.ndarray or casadi.SX
            Output acceleration given up by damping or to torque limits, shape (size,).
        scale : float or casadi.SX
            Size to which torque limits scaled the demand: 1 when they are not active, 0 where
            they leave no room in its direction, whatever its size.
        """
        if self.torque_limits is not None:
            # The programme inside makes it a function of MX, which is called as it is.
            return cast("tuple[Array, Array, Array, Array]", limited_law(self))
        return law(self, q, s, pose, twist, acceleration)[:4]

    def torque(self, q: Array, s: Array, sample: ReferenceSample) -> Array:
        """Control forces and torques for a state and a reference.

        Parameters
        ----------
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).
        sample : ReferenceSample
            Demanded pose, twist and acceleration of all outputs.

        Returns
        -------
        numpy.ndarray or casadi.SX
            u, shape (nu,), N and N m.

        Raises
        ------
        SingularConfigurationError
            If the margin of the decoupling matrix, or that with which the controls act on all
            shape velocities, is below `singular_margin`.
        NonFiniteError
            If the state or the result is not finite.
        """
        pose, twist, acceleration = self.flat(sample)
        u, pivot, _, _ = self.law(q, s, pose, twist, acceleration)
        if isinstance(u, np.ndarray):
            margin = self.margin(q)
            if margin < self.refused_below:
                raise singular_error(self, q, margin)
            # With limits or damping the pivot tells of wheels, actuation and a failed programme;
            # otherwise it is a lower bound of the margin too, which is checked itself.
            guarded = self.torque_limits is not None or self.damped_below is not None
            low = pivot < self.singular_margin
            if not np.abs(u).sum() <= LARGEST or (low and (guarded or lacks_leverage(self, q))):
                raise refusal(self, q, u, pivot)
        return u

    def error(self, q: Array, s: Array, sample: ReferenceSample) -> tuple[Array, Array]:
        """Pose and velocity error.

        Parameters
        ----------
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).
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
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).
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
        model = self.model
        at = (self.decoupling(q), model.mass_matrix(q), np.asarray(model.regularity(q)))
        return float(decoupling_margins(self, *(values[None] for values in at))[0])

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
            CON1-CON9, NHR1-NHR3 and DYN, the invertibility of the decoupling matrix; if the
            robot's joints have limits also LIM, that the exact motion keeps them.

        Raises
        ------
        InfeasibleReferenceError
            If a reference comes without a duration.
        """
        rows = []
        path = None
        if reference is not None:
            if duration is None:
                raise InfeasibleReferenceError(
                    f"servo of `{self.name}`, `duration`",
                    expected="a duration in s, beside the reference",
                    came="no value",
                    cure="Call audit(reference, duration, q0).",
                )
            path = self.feasibility(reference, duration, q0)
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
            rows.append(consistency(self.model, self.model.robot.check_configuration(q0)))
        if self.redundancy is not None:
            rows.append(matching_counts(self))
        rows.append(invertibility(self, path, q0))
        within = within_limits(self, path, reference)
        if within is not None:
            rows.append(within)
        working_set = None
        if path is not None and len(path.configurations):
            working_set = path.configurations
        elif q0 is not None:
            working_set = self.model.robot.check_configuration(q0)
        return self.model.audit(self.outputs, working_set).replace(*rows)

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

    @property
    def refused_below(self) -> float:
        """Margin below which the law gives out no torque: none when it is damped there."""
        return self.singular_margin if self.damped_below is None else 0.0

    @cached_property
    def as_measured(self) -> Servo:
        """The same servo with a law that takes all measured velocities."""
        return self if self.measured else self._taking(measured=True)

    @cached_property
    def unmeasured(self) -> Servo:
        """The same servo with a law that takes shape velocities."""
        return self._taking(measured=False) if self.measured else self

    def _taking(self, measured: bool) -> Servo:
        """The same servo for other velocities: checked already, with the same graphs of q."""
        other = copy(self)
        object.__setattr__(other, "measured", measured)
        known = self.__dict__.get("_evaluators", {})
        shared = ("Servo.decoupling", "Servo.output", "Servo.pose_error")
        other.__dict__["_evaluators"] = {k: v for k, v in known.items() if k[0] in shared}
        other.__dict__.pop("_compiled", None)
        return other

    def mismatch(self, q: ArrayLike, v: ArrayLike) -> MomentumMismatch:
        """Compare the momentum that the law assumes with that of a measured state.

        Parameters
        ----------
        q, v : array_like
            Measured configuration and velocity, the base's included, shapes (nq,) and (nv,).

        Returns
        -------
        MomentumMismatch
            Both momenta, and what their difference does to the law.

        Raises
        ------
        ReductionError
            If the robot's reduction does not rest on a momentum.
        """
        return momentum_mismatch(self, q, v)

    def to_iosystem(self, closed_loop: bool = False) -> control.NonlinearIOSystem:
        """Wrap the law, or the reduced closed loop, as a system of python-control.

        Parameters
        ----------
        closed_loop : bool
            Whether the model comes with the law: then the states are (q, s), the inputs the
            reference, and the outputs the robot's outputs, errors and controls.

        Returns
        -------
        control.NonlinearIOSystem
            A system without states, from state and reference to controls; or the closed loop.
        """
        return to_iosystem(self, closed_loop)

    def plot_loop(self, duration: float | None = None) -> tuple[Figure, Figure]:
        """Draw the linearised loop: how errors settle, and what margins there are.

        Parameters
        ----------
        duration : float, optional
            Time shown of the step response, s; default some settling times.

        Returns
        -------
        step, margins : matplotlib.figure.Figure
            Response of each coordinate to a step of its reference with the settling times; gain
            and phase over frequency and the loop in the complex plane with its margins.
        """
        from concur.plotting import margin_figure, step_figure

        response = loop_response(self, duration)
        return step_figure(response), margin_figure(response)

    def compile(self, interpreted: bool = False) -> Tick:
        """Make the law ready to be called at a high rate: one graph, as machine code.

        A tick takes every number that is finite and not absurd (1e18): there is no bound of
        speeds in it, which exported C has (`TOO_FAST`, code 7). Check what is measured first.

        Parameters
        ----------
        interpreted : bool
            Whether to leave the graph to CasADi's interpreter: ready at once, five to ten times
            slower.

        Returns
        -------
        Tick
            ``tick(q, s, sample) -> u``, a view that the next call overwrites; its `buffers` take
            the numbers without copies, and the momentum too where the model rests on one:
            ``tick.buffers.momentum[:] = mu``, then ``tick.run()``.

        Raises
        ------
        ConcurError
            If `interpreted` is no truth value.

        Warns
        -----
        CompilerWarning
            Once per process, if there is no C compiler and the interpreter goes on.
        """
        return Tick(self, interpreted)

    def export(
        self,
        directory: str | PathLike[str],
        target: str = "c",
        name: str | None = None,
        precision: str = "double",
        speed_limit: ArrayLike = SPEED_LIMIT,
        fmi: str = "3.0",
    ) -> CFolder | Path:
        """Write the law for a controller, or as a unit that other simulators load.

        Parameters
        ----------
        directory : path
            Folder of the files; made if it is missing.
        target : str
            "c" for C99 without libraries, with what it takes to try it; "fmu" for a unit for
            co-simulation, with sources and, where a compiler is found, a binary for this machine.
        name : str, optional
            With what all names in the code begin, or the name of a unit; default the robot's name,
            for a unit with "_servo" behind it.
        precision : str
            "double", or "single" for controllers without double precision: the error is measured
            and written beside the code.
        speed_limit : float or array_like
            Velocity above which the code refuses a state, m/s or rad/s; a number, or one for
            each velocity that the law takes. For C only: a unit has no bound of speeds, and takes
            every number that is finite and not absurd (1e18).
        fmi : str
            Version of FMI of a unit, "3.0" or "2.0"; for units only.

        Returns
        -------
        CFolder or pathlib.Path
            What was written; its README says how it is compiled, tried and used. Of a unit, the
            archive, named after it.

        Raises
        ------
        UnknownNameError
            If there is no such target.
        ConcurError
            If an option is out of range, the law cannot be exported so, or the files cannot be
            written.
        """
        return export_servo(self, directory, target, name, precision, speed_limit, fmi)

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
        if sample.is_matrix and not self.takes_matrix:
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
