"""The servo: input-output linearization with feed-forward and proportional-derivative action.

The law is in `_law.py`; here is what a user calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array, Vector
from concur.control._allocation import SOLVER, read_limits, read_weights
from concur.control._conditions import audit
from concur.control._export import SPEED_LIMIT, export_servo
from concur.control._feasibility import Feasibility, feasibility
from concur.control._gains import read_gain
from concur.control._iosystem import to_iosystem
from concur.control._law import law_function
from concur.control._loop import loop_response
from concur.control._matching import matching_outputs
from concur.control._mismatch import MomentumMismatch, momentum_mismatch
from concur.control._reach import Reach, reach
from concur.control._redundancy import Redundancy
from concur.control._reference_tick import ReferenceTick
from concur.control._sample import ReferenceSample
from concur.control._singularity import check_decoupling, vouched
from concur.control._start import Start, start
from concur.control._tick import Tick
from concur.control._tracking_law import RENAMED, TrackingLaw
from concur.control.references import Reference
from concur.deprecation import renamed_fields
from concur.errors import OutputError
from concur.mechanism import scalar
from concur.reduction import Audit

if TYPE_CHECKING:
    import control
    from matplotlib.figure import Figure

    from concur.codegen import CFolder


@renamed_fields(RENAMED)
@dataclass(frozen=True, eq=False, repr=False)
class Servo(TrackingLaw):
    """Tracker of outputs on Lie groups for a reduced robot.

    Parameters
    ----------
    model : ReducedModel
        The reduced robot, from `reduce`.
    outputs : sequence of Output
        Outputs that follow a reference; at most as many coordinates as shape velocities.
    stiffness, damping : float, sequence or array_like
        KP and KD on the outputs' algebra: a number, one entry per output (each a number or
        one number per coordinate), or a symmetric positive definite matrix.
    inertia : float, sequence or array_like, optional
        Metric I of the error dynamics, given in the same ways; default the identity.
    singular_margin : float
        Margin of the decoupling matrix below which no torque is returned.
    redundancy : Redundancy, optional
        Rule for the internal motion when there are more shape velocities than output coordinates;
        default `Redundancy()`: least acceleration energy, and coming to rest.
    damping_threshold : float, optional
        Margin below which the equation is solved with damping instead of being refused; what
        is not achieved is the `acceleration_residual`. Default: refused below
        `singular_margin`.
    torque_limits : float, sequence or mapping, optional
        Limits of the controls, N and N m: a number, one per control, or pairs of lower and
        upper limit; also by name of the control. The commanded acceleration is scaled down, in
        its direction, to what they allow; where no scale is feasible, as when they cannot hold
        the robot's weight, the output acceleration is the nearest one. Default: none.
    use_measured_velocity : bool
        Whether the law takes all measured velocities of the robot v, shape (nv,), in place of
        the shape velocities s: the momentum then is the one measured, not the model's.
    torque_weights : sequence or mapping, optional
        Of more controls than shape velocities, such as four motors of a mecanum base, those with
        the least ``u^T W u`` are taken, within limits if there are any. Diagonal of W: one
        positive number per control, or by name of the control with 1 for the others. Default: ones.
    integral : float, sequence or array_like, optional
        KI on the outputs' algebra, given as the other gains, and zero for outputs without integral
        action: the commanded acceleration has ``I^-1 KI z`` in addition, with ``zdot = x``, the
        pose error. So a constant disturbance, such as a wrong mass, leaves no error. The error of
        R^n obeys ``s^3 + KD s^2 + KP s + KI``, which decays for KI below KP KD. While limits or
        damping leave out acceleration along the error of an output, its part of z does not change
        (anti-windup). z is a state: `Tick` keeps it, `simulate` integrates it. Default: none.

    Raises
    ------
    OutputError
        If there are more output coordinates than shape velocities, the gains are not positive
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

    inertia: Any = None

    def __post_init__(self) -> None:
        outputs = matching_outputs(self.model, self.outputs)
        object.__setattr__(self, "outputs", outputs)
        where = f"servo of `{self.name}`"
        if self.inertia is None:
            object.__setattr__(self, "inertia", 1.0)
        for name in ("stiffness", "damping", "inertia"):
            matrix = read_gain(f"{where}, `{name}`", getattr(self, name), outputs)
            object.__setattr__(self, name, matrix)
        if self.integral is not None:
            matrix = read_gain(f"{where}, `integral`", self.integral, outputs, definite=False)
            object.__setattr__(self, "integral", matrix if matrix.any() else None)
        self._check_options(where)
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
                "`damping_threshold`.",
            )
        object.__setattr__(self, "singular_margin", least)
        if not isinstance(self.use_measured_velocity, (bool, np.bool_)):
            raise OutputError(
                f"{where}, `use_measured_velocity`",
                expected="True or False",
                came=repr(self.use_measured_velocity)[:40],
                cure="True if the law takes all measured velocities.",
            )
        rule = self.redundancy
        if rule is not None and not isinstance(rule, Redundancy):
            raise OutputError(
                f"{where}, `redundancy`",
                expected="a Redundancy",
                came=f"{type(rule).__name__} {rule!r:.40}",
                cure='Write for example Redundancy(objective="rest").',
            )
        if size == self.model.ns:
            # Nothing is left over for a rule to act on.
            object.__setattr__(self, "redundancy", None)
        else:
            rule = (rule or Redundancy()).checked(f"{where}, `redundancy`", self.model)
            object.__setattr__(self, "redundancy", rule)
        if self.damping_threshold is not None:
            zone = scalar(self.damping_threshold, f"{where}, `damping_threshold`")
            if not zone > 0.0:
                raise OutputError(
                    f"{where}, `damping_threshold`",
                    expected="a margin above zero",
                    came=str(zone),
                    cure="A quarter of `servo.margin` at a good configuration is usual; leave it "
                    "out to refuse singular configurations.",
                )
            object.__setattr__(self, "damping_threshold", zone)
        if self.torque_limits is not None:
            names = self.model.control_names
            limits = read_limits(f"{where}, `torque_limits`", self.torque_limits, names)
            limits.setflags(write=False)
            object.__setattr__(self, "torque_limits", limits)
        if self.torque_weights is not None:
            weights = read_weights(
                f"{where}, `torque_weights`", self.torque_weights, self.model.control_names
            )
            object.__setattr__(self, "torque_weights", weights)

    def __str__(self) -> str:
        lines = [f"servo of {self.name}: {self.size} output coordinates, {self.nu} controls"]
        start = 0
        for output in self.outputs:
            part = slice(start, start + output.dim)
            start = part.stop
            gains = (
                f"{kind} {', '.join(f'{x:g}' for x in dict.fromkeys(np.diag(matrix)[part]))}"
                for kind, matrix in (
                    ("stiffness", self.stiffness),
                    ("damping", self.damping),
                    ("integral", self.integral),
                )
                if matrix is not None
            )
            frame = f" relative to `{output.relative_to}`" if output.relative_to else ""
            whose = f"{output.name}: {output.group} of `{output.body}`{frame}"
            lines.append(f"{whose}, {', '.join(gains)}")
        if self.redundancy is not None:
            lines.append(f"internal motion: {self.redundancy}")
        if self.damping_threshold is not None:
            lines.append(f"damped below a margin of {self.damping_threshold:g}")
        if self.torque_limits is not None:
            lines.append("torques limited")
        if self.nu > self.ns:
            weighted = "weighted" if self.torque_weights is not None else "least"
            lines.append(f"torques shared among {self.nu} controls, {weighted}")
        if self.use_measured_velocity:
            lines.append("takes measured velocities")
        return "\n".join(lines)

    def graph(
        self, solver: str = SOLVER, sided: bool = False, measured: bool | None = None
    ) -> ca.Function:
        return law_function(self, solver, sided, measured)

    def torque(
        self, q: Vector, s: Vector, sample: ReferenceSample, z: Vector | None = None
    ) -> Array:
        """Control forces and torques for a state and a reference.

        Parameters
        ----------
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).
        sample : ReferenceSample
            Reference pose, twist and acceleration of all outputs.
        z : array_like, optional
            Integral of the pose error, shape (nz,), of a servo with integral action; default zero.

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
        given = (q, s, *self.flat(sample))
        u, pivot = (self.law(*given) if z is None else self.law_with_state(*given, z))[:2]
        return vouched(self, q, u, pivot) if isinstance(u, np.ndarray) else u

    def error(self, q: Vector, s: Vector, sample: ReferenceSample) -> tuple[Vector, Vector]:
        """Pose and velocity error.

        Parameters
        ----------
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).
        sample : ReferenceSample
            Reference pose, twist and acceleration of all outputs.

        Returns
        -------
        x, ve : numpy.ndarray or casadi.SX
            log(r^-1 gamma) and r^-1 rdot - Ad gamma^-1 gammadot, shape (size,); for R^n
            x = gamma - r and ve = rdot - gammadot.
        """
        return self.errors(q, s, *self.flat(sample)[:2])

    def lyapunov(self, q: Vector, s: Vector, sample: ReferenceSample) -> Array:
        """Lyapunov function of the error, (5.4.35).

        Parameters
        ----------
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).
        sample : ReferenceSample
            Reference pose, twist and acceleration of all outputs.

        Returns
        -------
        float or casadi.SX
            (x KP x + ve I ve) / 2.
        """
        return self.error_dynamics.lyapunov(*self.error(q, s, sample))

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
        return audit(self, reference, duration, q0)

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
        return feasibility(self, reference, duration, q0)

    def start(
        self,
        reference: Reference | Callable[[float], ReferenceSample],
        near: ArrayLike | None = None,
        t: float = 0.0,
        offset: Any = None,
        speed: str = "reference",
    ) -> Start:
        """Find a state in which the outputs follow a reference.

        Inverse kinematics gives q, and the lift gives s with J (H s + h) = r^-1 rdot. Motions that
        the outputs do not determine, such as the heading of a rover or the base of a robot that
        floats, stay as `near` as possible. Where the nearest posture is close to singular, others
        are tried.

        Parameters
        ----------
        reference : Reference or callable
            Reference of all outputs.
        near : array_like, optional
            Configuration in the vicinity, shape (nq,); default neutral. It is moved into the
            limits of the joints.
        t : float
            Time at which the outputs are on the reference, s.
        offset : dict of str to array_like, or array_like, optional
            Pose error log(r^-1 gamma) at the start by name of the output, each (dim,), or of all
            outputs, (size,): m and rad in the output's algebra, in R^n reference minus output.
        speed : str
            "reference": the velocity error is zero; "rest": the shape velocities are zero.

        Returns
        -------
        Start
            Configuration and shape velocities, what is reached, and the margin.

        Raises
        ------
        UnknownNameError
            If `speed` or an output's name does not exist.
        OutputError
            If an offset turns by pi rad or more, or the reference does not fit the outputs.
        ShapeError, NonFiniteError, DescriptionError
            If `near`, `t` or `offset` has the wrong shape or is not finite, or `near` contradicts
            joints that follow others.

        Examples
        --------
        >>> import concur as cc
        >>> model = cc.reduce(cc.robots.rover_arm())
        >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
        >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
        >>> servo = cc.Servo(model, [base, hand], stiffness=4, damping=4)
        >>> found = servo.start(cc.references.hold([0.5, 0.0, 0.8, 0.1, 0.4]))
        >>> found.solved
        True
        """
        return start(self, reference, near, t, offset, speed)

    def reach(
        self,
        reference: Reference | Callable[[float], ReferenceSample],
        duration: float,
        q0: ArrayLike | None = None,
    ) -> Reach:
        """Seek configurations along a reference by inverse kinematics.

        Parameters
        ----------
        reference : Reference or callable
            Reference of all outputs.
        duration : float
            Time up to which it is sought, s.
        q0 : array_like, optional
            Configuration from which the search starts, shape (nq,); default neutral.

        Returns
        -------
        Reach
            Configurations, remaining errors and margins at twenty-one times.

        Raises
        ------
        InfeasibleReferenceError
            If the duration is not above zero.
        """
        return reach(self, reference, duration, q0)

    @cached_property
    def as_measured(self) -> Servo:
        """The same servo with a law that takes all measured velocities."""
        return self if self.use_measured_velocity else replace(self, use_measured_velocity=True)

    @cached_property
    def unmeasured(self) -> Servo:
        """The same servo with a law that takes shape velocities."""
        return replace(self, use_measured_velocity=False) if self.use_measured_velocity else self

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

    @overload
    def compile(self, reference: None = None, *, interpreted: bool = False) -> Tick: ...

    @overload
    def compile(
        self,
        reference: Reference | Callable[[float], ReferenceSample],
        *,
        interpreted: bool = False,
    ) -> ReferenceTick: ...

    def compile(
        self,
        reference: Reference | Callable[[float], ReferenceSample] | None = None,
        *,
        interpreted: bool = False,
    ) -> Tick | ReferenceTick:
        """Make the law ready to be called at a high rate: one graph, as machine code.

        A tick takes every number that is finite and not absurd (1e18): there is no bound of
        speeds in it, which exported C has (`TOO_FAST`, code 7). Check what is measured first.

        Parameters
        ----------
        reference : Reference or callable, optional
            Reference of all outputs, which becomes a part of the law; a custom Python function
            is called at each tick.
        interpreted : bool
            Whether to leave the graph to CasADi's interpreter: ready at once, five to ten times
            slower.

        Returns
        -------
        Tick or ReferenceTick
            ``tick(q, s, sample) -> u``, or with a reference ``tick(t, q, s) -> u``, a view that
            the next call overwrites; its `buffers` take the numbers without copies, and the
            momentum too where the model rests on one: ``tick.buffers.momentum[:] = mu``, then
            ``tick.run()``.

        Raises
        ------
        ConcurError
            If `interpreted` is not a bool, or the reference does not fit the outputs.

        Warns
        -----
        CompilerWarning
            Once per process, if there is no C compiler, so that the interpreter is used.
        """
        if reference is None:
            return Tick(self, interpreted)
        return ReferenceTick(self, reference, interpreted)

    def export(
        self,
        directory: str | PathLike[str],
        target: str = "c",
        name: str | None = None,
        precision: str = "double",
        speed_limit: ArrayLike = SPEED_LIMIT,
        fmi: str = "3.0",
        reference: Reference | Callable[[float], ReferenceSample] | None = None,
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
        reference : Reference, optional
            Reference of all outputs, with a graph, which becomes a part of the law: the time `t`
            (s) is an input in place of `pose`, `twist` and `acceleration`.

        Returns
        -------
        CFolder or pathlib.Path
            The folder, whose README explains how to compile, test and use it. Of a unit, the
            archive, named after it.

        Raises
        ------
        UnknownNameError
            If there is no such target.
        ConcurError
            If an option is out of range, the law cannot be exported so, or the files cannot be
            written.
        """
        return export_servo(self, directory, target, name, precision, speed_limit, fmi, reference)
