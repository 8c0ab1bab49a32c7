"""The servo: input-output linearization with feed-forward and proportional-derivative action.

The law is in `_law.py`, its methods for users are in `_tracking_law.py`; here are its options.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import casadi as ca

from concur.control._constraint_rows import ground_limits
from concur.control._constraints import Constraints
from concur.control._limited import law_function, limit_names
from concur.control._loop import loop_response
from concur.control._reading import matching_outputs, positive, read_each, read_gain
from concur.control._redundancy import Redundancy
from concur.control._tracking_law import TrackingLaw
from concur.errors import OutputError, shown
from concur.results import show
from concur.tables import INTERNAL

if TYPE_CHECKING:
    from matplotlib.figure import Figure


ZONE = 0.4
"""Threshold of the damping of a servo with constraints, by default."""


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
        Rule for the internal motion when there are more shape velocities than output coordinates.
        Default: least acceleration energy, coming to rest.
    damping_threshold : float, optional
        Share of the usual decoupling margin, the median of random configurations, below which
        directions that the outputs are about to lose are damped instead of refused;
        `acceleration_residual` is the rest. Default: refused below `singular_margin`; with
        `constraints` 0.4.
    torque_limits : bool, float, sequence or mapping, optional
        Limits of the controls, N and N m: a number, one per control, or pairs of lower and
        upper limit; also by name of the control; True: those of the robot's motors and joints,
        which hold beside numbers too, where they are narrower. Where limits do not suffice the
        law slows all joints down together. Default: none; with `constraints` those of the robot.
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
    longest_period : float, optional
        With integral action: longest time from a tick to the next, s; a tick rejects a longer one
        as bad input. Default: 3 over the fastest rate of the errors, above which no sampled loop
        with these gains is stable.
    largest_state : float or array_like, optional
        With integral action: largest magnitude of z, m s and rad s, a number or one per output
        coordinate, shape (nz,). A tick holds z there, and rejects a larger one as bad input.
        Default: what commands the acceleration that the stiffness commands at an error of 100 times
        the robot's size, or 100 rad.
    constraints : Constraints, optional
        Limits that the law keeps beside those of its torques: positions, speeds and accelerations
        of the joints, and distances from obstacles. Default: none.

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

    inertia: Annotated[Any, INTERNAL] = None
    constraints: Constraints | None = None  # type: ignore[misc]
    _cures: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("stiffness", "damping", "integral", "inertia", "gains"),
        "Gains stand beside each output: [[outputs]], stiffness = 4.0, damping = 4.0.",
    )

    def __post_init__(self) -> None:
        outputs = matching_outputs(self.model, self.outputs)
        object.__setattr__(self, "outputs", outputs)
        where = f"servo of `{self.model.name}`"
        if self.inertia is None:
            object.__setattr__(self, "inertia", 1.0)
        for name in ("stiffness", "damping", "inertia"):
            matrix = read_gain(f"{where}, `{name}`", getattr(self, name), outputs)
            object.__setattr__(self, name, matrix)
        if self.integral is not None:
            matrix = read_gain(f"{where}, `integral`", self.integral, outputs, definite=False)
            object.__setattr__(self, "integral", matrix if matrix.any() else None)
            self._check_integral(f"{where}, `integral`")
        self._check_options(where)
        self._check_decoupling()

    def _check_options(self, where: str) -> None:
        size = sum(output.dim for output in self.outputs)
        self._check_common(where, 0 if self.integral is None else size)
        rule = self.redundancy
        if rule is not None and not isinstance(rule, Redundancy):
            raise OutputError(
                f"{where}, `redundancy`",
                expected="a Redundancy",
                came=f"{type(rule).__name__} {rule!r:.40}",
                cure='Write for example Redundancy(objective="rest").',
            )
        if self.size == self.ns:
            # Nothing is left over for a rule to act on.
            object.__setattr__(self, "redundancy", None)
        else:
            rule = (rule or Redundancy()).checked(f"{where}, `redundancy`", self.model)
            object.__setattr__(self, "redundancy", rule)
        if self.constraints is not None:
            self._check_constraints(where)
        if self.damping_threshold is not None:
            cure = "A quarter of `servo.margin` at a good configuration is usual."
            place = f"{where}, `damping_threshold`"
            zone = positive(place, self.damping_threshold, "a margin above zero", cure)
            object.__setattr__(self, "damping_threshold", zone)

    def _check_integral(self, where: str) -> None:
        """Refuse an integral of the error of a direction, whose normals turn while it grows."""
        start = 0
        for output in self.outputs:
            span = slice(start, start + output.dim)
            start = span.stop
            if output.group == "S2" and self.integral is not None and self.integral[span].any():
                raise OutputError(
                    f"{where}, output `{output.name}`",
                    expected="zero for a direction",
                    came=f"{self.integral[span.start, span.start]:g}",
                    cure="Leave it out, or follow the attitude: an output in SO3.",
                )

    def _check_constraints(self, where: str) -> None:
        """Check names, and take what constraints presuppose: limits of torques, and damping."""
        given = self.constraints
        if not isinstance(given, Constraints):
            raise OutputError(
                f"{where}, `constraints`",
                expected="Constraints",
                came=f"{type(given).__name__} {given!r:.40}",
                cure="Write for example Constraints(speeds=False).",
            )
        for name, kind, known in (
            ("accelerations", "freedom", self.model.system.freedom_names),
            ("weights", "output", tuple(output.name for output in self.outputs)),
        ):
            if getattr(given, name) is not None:
                read_each(f"{where}, `constraints.{name}`", getattr(given, name), known, kind)
        given.clearance(self.model.system)
        ground_limits(self)
        if self.damping_threshold is None:
            object.__setattr__(self, "damping_threshold", ZONE)

    def __str__(self) -> str:
        gains = {
            "stiffness": self.stiffness, "damping": self.damping, "integral": self.integral
        }  # fmt: skip
        lines = [f"servo of {self.name}: {self.size} output coordinates, {self.nu} controls"]
        lines += self._output_lines(gains)
        if self.redundancy is not None:
            lines.append(f"internal motion: {self.redundancy}")
        if self.damping_threshold is not None:
            lines.append(f"damped below a margin of {self.damping_threshold:g}")
        if self.limit_names:
            lines.append(f"keeps limits: {shown(', '.join(self.limit_names), 100)}")
        if self.nu > self.model.nd:
            weighted = "weighted" if self.torque_weights is not None else "least"
            lines.append(f"torques shared among {self.nu} controls, {weighted}")
        if self.use_measured_velocity:
            lines.append("takes measured velocities")
        return "\n".join(lines)

    def _build(self) -> ca.Function:
        return law_function(self)

    @cached_property
    def limit_names(self) -> tuple[str, ...]:
        """Names of the limits that the law keeps, in the order of its result `active`."""
        return () if self.torque_limits is None else limit_names(self)

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
        response = loop_response(self, duration)
        return show("step_figure", response), show("margin_figure", response)
