"""The law as it is called in a loop: one compiled graph, buffers in, buffers out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from enum import IntEnum
from functools import reduce
from threading import get_ident
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import (
    LARGEST,
    Evaluator,
    OneThread,
    Vector,
    as_floats,
    attitude_error,
    fingerprint,
    instructions,
    nonfinite_error,
    oversized_error,
    recalled,
    shape_error,
)
from concur.control._allocation import SOLVER
from concur.control._attitudes import attitudes
from concur.control._control_law import Law
from concur.control._own_law import tracking_law
from concur.control._singularity import answer_scale, passed_error, refusal
from concur.control._state_bounds import check_state
from concur.control._tracking_law import TrackingLaw
from concur.errors import ConcurError, NonFiniteError
from concur.outputs._sample import ReferenceSample

SAMPLE = ("pose", "twist", "acceleration")
"""Parts of a flat reference."""

INPUTS = ("q", "s", *SAMPLE, "t", "momentum", "period")
"""Inputs of a tick's graph, as far as the law takes them."""

RESULTS = ("u", "pivot", "missed", "scale", "status")
"""Results of a tick's graph, in order."""

BUFFERS = {"pivot": "margin_bound", "missed": "acceleration_residual"}
"""Buffers of results, where the name differs."""

KEPT = 2
"""Numbers that a watched tick keeps for the next, before the law's state: side of singular, and
size of the answer."""

ALL = slice(None)
"""All of a memory: made once, as making a slice takes as long as a comparison."""

LEAP = 10.0
"""Growth of the answer from one tick to the next, from which on it is compared with `RUNAWAY`."""

RUNAWAY = 1e4
"""Answer, times the distance from singular, above which one that leapt is not believed; 1 is the
answer to an error of the robot's size."""


class TickStatus(IntEnum):
    """Status of a tick; with any but OK the controls are zero."""

    OK = 0
    """The controls may be used."""
    BAD_INPUT = 1
    """An input is not finite, or above 1e18; or the period or the state of the law is beyond its
    `state_bounds`."""
    INVALID_QUATERNION = 2
    """A quaternion of the configuration or of the reference pose is off unit norm by over 1e-3."""
    SINGULAR = 3
    """The law is nearer to singular than the servo's `singular_margin`, or passed a singular
    configuration since the last tick: a determinant changed its sign, or the answer leapt."""
    NO_RESULT = 4
    """The controls are not finite, or above 1e18: the commanded acceleration is too large."""
    NO_TORQUE_WITHIN_LIMITS = 5
    """No torques within limits were found, or the configuration is singular to the last bit."""
    FAILED = 6
    """The evaluation did not run to its end."""


@dataclass(frozen=True, eq=False)
class TickBuffers:
    """Arrays that the law reads and writes in place.

    Parameters
    ----------
    q, s : numpy.ndarray
        Inputs: state, to be filled before a call; s holds all velocities when the servo measures
        them.
    pose, twist, acceleration : numpy.ndarray
        Inputs: flat reference; outputs of a `ReferenceTick`: the reference at the time `t`.
    t : numpy.ndarray
        Input: time, s, shape (1,); shape (0,) where the law takes none.
    momentum : numpy.ndarray
        Input: spatial momentum about the inertial origin, [linear; angular], kg m/s and
        kg m^2/s, shape (6,), preset to the model's; shape (0,) where the law takes none.
    u : numpy.ndarray
        Output: control forces and torques, shape (nu,); zero unless the status is zero.
    margin_bound : numpy.ndarray
        Output: distance of the law from singular, shape (1,), without unit.
    acceleration_residual : numpy.ndarray
        Output: acceleration residual, the part of the commanded output acceleration that is not
        achieved because of damping or torque limits, shape (size,).
    scale : numpy.ndarray
        Output: scale factor of torque limits, shape (1,); 1: not active,
        0: no room in its direction.
    status : numpy.ndarray
        Output: a `TickStatus` as a number, shape (1,).
    period : numpy.ndarray
        Input: time from this tick to the next, s, by which the state of a law that has one is
        advanced, shape (1,), to be filled once; shape (0,) for laws without a state. From 0, with
        which the state stays as it is, to the law's `state_bounds.period`; else BAD_INPUT.
    state : numpy.ndarray
        State z of the law, such as an integral, shape (nz,): each tick takes it and writes the next
        one, within the law's `state_bounds.state`; zero at the start and after `reset`. A state
        beyond is BAD_INPUT.
    """

    q: np.ndarray
    s: np.ndarray
    pose: np.ndarray
    twist: np.ndarray
    acceleration: np.ndarray
    t: np.ndarray
    momentum: np.ndarray
    u: np.ndarray
    margin_bound: np.ndarray
    acceleration_residual: np.ndarray
    scale: np.ndarray
    status: np.ndarray
    period: np.ndarray = field(default_factory=lambda: np.empty(0))
    state: np.ndarray = field(default_factory=lambda: np.empty(0))


class BufferedLaw(OneThread):
    """A law's graph called through buffers that are allocated once: what all ticks have in common.

    A tick belongs to the thread of its first call, until `release` or the end of the thread.

    Parameters
    ----------
    servo : TrackingLaw
        The law.
    interpreted : bool
        Whether to leave the graph to CasADi's interpreter.
    value : object
        Value that determines the graph, for the fingerprint of compiled code.
    graph : callable
        Makes the graph: watched, with `before` as the last input and `after` as the last result.
    """

    def __init__(
        self, servo: TrackingLaw, interpreted: bool, value: Any, graph: Callable[[], ca.Function]
    ) -> None:
        start = time.perf_counter()
        self._where = where = f"tick of `{servo.name}`"
        if not isinstance(interpreted, (bool, np.bool_)):
            raise ConcurError(
                f"{where}, `interpreted`",
                expected="True or False",
                came=f"{interpreted!r:.40}",
                cure="Leave it out for machine code, which needs a C compiler.",
            )
        self.servo = servo
        self._interpreted = interpreted
        key = None if interpreted else fingerprint("tick", value)
        made, seconds = recalled(key), 0.0
        # With compiled code not even the graph is built.
        function = graph() if made is None else made.functions[0]
        shapes = [function.size_out(i) for i in range(function.n_out())]
        can_fail = servo.symbols is ca.MX if made is None else made.solver
        evaluator = Evaluator(function, shapes, where, can_fail=can_fail, kept=True)
        if made is None:
            seconds = time.perf_counter() - start
            made = None if interpreted else evaluator.compile(key)
        self._evaluator = evaluator
        self.compiled, self.build_times = made is not None, {"graph": seconds}
        if made is None:
            self.instructions = instructions(evaluator.function)
            self.build_times |= {"written": 0.0, "built": 0.0}
        else:
            self.instructions = made.instructions[0]
            self.build_times |= {"written": made.written, "built": made.built}
        parts = {field.name: np.empty(0) for field in fields(TickBuffers)}
        views = [*zip(function.name_in(), evaluator.inputs, strict=True)]
        views += zip(function.name_out()[:-1], evaluator.outputs[:-1], strict=True)
        for name, view in views:
            parts[BUFFERS.get(name, name)] = view[:, 0]
        self._kept = parts.pop("before")
        parts["state"] = self._kept[KEPT:]
        parts["period"][:] = np.nan
        if servo.takes_momentum:
            parts["momentum"][:] = servo.model.momentum
        self.buffers = TickBuffers(**parts)
        self._u = self.buffers.u
        self._status = memoryview(self.buffers.status.data)
        self._trigger = evaluator.trigger
        self._can_fail = evaluator.can_fail

    def __repr__(self) -> str:
        taken = [f"{name} {getattr(self.buffers, name).size}" for name in ("q", "s", "pose")]
        kind = "machine code" if self.compiled else "interpreted"
        return (
            f"Tick(`{self.servo.name}`: {', '.join(taken)} -> u {self._u.size}; {kind}, "
            f"{self.instructions} instructions)"
        )

    def reset(self) -> None:
        """Forget the tick before: the next one starts another motion. A law's state is zero then.

        A tick compares the side of singular configurations on which it is, and the size of its
        answer, with those of the tick before, and so notices a singular configuration that a step
        jumped over. Call this before states that do not follow from each other by motion.
        `Servo.torque` keeps nothing.

        Raises
        ------
        ConcurError
            If the tick belongs to another thread.
        """
        if self._thread and get_ident() != self._thread:
            self._claim(self._where)
        self._kept[:] = 0.0

    def release(self) -> None:
        """Let another thread take the tick over; its state and memory stay.

        A tick belongs to the thread that called it first. Calls from other threads raise an error,
        because they would overwrite the numbers that this thread reads.

        Raises
        ------
        ConcurError
            If the tick belongs to another thread.
        """
        self._unclaim(self._where)

    def run(self) -> int:
        """Evaluate the law on the buffers.

        Those who fill the buffers themselves use them from one thread at a time: this method does
        not make the tick that of a thread, as a call does.

        Returns
        -------
        int
            0 if `buffers.u` may be used, else another `TickStatus`.

        Raises
        ------
        ConcurError
            If the tick belongs to another thread.
        """
        if self._thread and get_ident() != self._thread:
            self._claim(self._where)
        self._trigger()
        if self._can_fail and not self._evaluator.succeeded:
            self.buffers.u[:] = 0.0
            self.buffers.status[0] = TickStatus.FAILED
        return int(self._status[0])

    def update(self) -> bool:
        """Evaluate the law on the buffers.

        Returns
        -------
        bool
            Whether `buffers.u` may be used: the evaluation ran to its end, all its numbers are
            finite, and the distance from singular is not below the servo's `singular_margin`.
        """
        return self.run() == 0

    def _take(self, name: str, values: Vector) -> None:
        """Copy numbers of another type than the buffer's, or raise an error on what is wrong."""
        where = f"tick of `{self.servo.name}`, argument `{name}`"
        array, buffer = as_floats(values, where), getattr(self.buffers, name)
        if array.shape != buffer.shape:
            raise shape_error(where, buffer.shape, array.shape)
        buffer[:] = array

    def _refuse(self, status: TickStatus) -> None:
        buffers, servo = self.buffers, self.servo
        where = f"tick of `{servo.name}`"
        if status is TickStatus.FAILED:
            raise ConcurError(
                where,
                expected="an evaluation that succeeds",
                came="a failure of the quadratic program inside",
                cure="No torque is returned; check the state, the reference and the limits.",
            )
        if status is TickStatus.BAD_INPUT and servo.nz:
            bounds, period = servo.state_bounds, float(buffers.period[0])
            if not 0.0 <= period <= bounds.period:
                raise (NonFiniteError if np.isnan(period) else ConcurError)(
                    f"{where}, `buffers.period`",
                    expected=f"a time of zero or more, up to {bounds.period:.6g} s",
                    came=f"{period:g} s",
                    cure="Fill in the time from one tick to the next once, such as "
                    "`tick.buffers.period[:] = 0.001`; the law's `longest_period` is the bound.",
                )
            check_state(f"{where}, `buffers.state`", buffers.state, bounds.state)
        for name in INPUTS:
            values = getattr(buffers, name)
            if not np.isfinite(values).all():
                raise nonfinite_error(f"{where}, argument `{name}`", values)
        for name in INPUTS:
            values = getattr(buffers, name)
            if status is TickStatus.BAD_INPUT and np.abs(values).max(initial=0.0) > LARGEST:
                raise oversized_error(f"{where}, argument `{name}`", values)
        for name in ("q", "pose"):
            starts = servo.attitudes.get(name, {})
            error = attitude_error(
                f"{where}, argument `{name}`", name, getattr(buffers, name), starts
            )
            if error is not None:
                raise error
        q = buffers.q.copy()
        lost = status in (TickStatus.NO_RESULT, TickStatus.BAD_INPUT)
        u = np.full(servo.nu, np.nan) if lost else buffers.u
        if status is TickStatus.SINGULAR and buffers.margin_bound[0] >= servo.singular_margin:
            raise passed_error(servo, q)
        raise refusal(servo, q, u, float(buffers.margin_bound[0]))


class Tick(BufferedLaw):
    """The whole law, called through buffers that are allocated once.

    Made by `Servo.compile`, or from any other `Law`. A tick belongs to the thread of its first
    call, until `release` or the end of the thread; calls from others raise an error.

    Parameters
    ----------
    law : Law
        The law, such as a `Servo`.
    interpreted : bool
        Whether to leave the graph to CasADi's interpreter: ready at once, and slower.

    Attributes
    ----------
    buffers : TickBuffers
        The arrays in use: fill the inputs, call `run`, read `u`.
    compiled : bool
        Whether machine code is called; it is not where there is no compiler.
    instructions : int
        Length of the graph.
    build_times : dict of str to float
        What making it took, s: the `graph`, the C sources `written`, and these `built`, or found
        in the cache.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> model = cc.reduce(robot)
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> servo = cc.Servo(model, [base, hand], stiffness=4, damping=4)
    >>> tick = cc.control.Tick(servo)
    >>> tick.buffers.q.shape
    (8,)
    """

    def __init__(self, law: Law, interpreted: bool = False) -> None:
        servo = tracking_law(law, "tick, `law`")
        super().__init__(servo, interpreted, servo, lambda: tick_function(servo, watched=True))
        # Memories take vectors faster than arrays do, and take nothing else.
        self._memories: tuple[Any, ...] = tuple(
            memoryview(getattr(self.buffers, name).data) for name in INPUTS[:5]
        )
        # A matrix is for one output that is a full pose; here its seven numbers would fit as well.
        matrix_fits = servo.pose_size == 7 and not servo.takes_matrix
        timed = self.buffers.t.size or self.buffers.period.size
        self._groups: object = None
        self._careful = bool(self._can_fail or matrix_fits or timed or not servo.size)

    def __reduce__(self) -> tuple[type[Tick], tuple[TrackingLaw, bool]]:
        return Tick, (self.servo, self._interpreted)

    def __call__(
        self, q: Vector, s: Vector, sample: ReferenceSample | None = None, t: float = 0.0
    ) -> np.ndarray:
        """Control forces and torques for a state and a reference.

        Parameters
        ----------
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).
        sample : ReferenceSample, optional
            Reference pose, twist and acceleration of all outputs, where there are any.
        t : float
            Time, s, for a law that takes it.

        Returns
        -------
        numpy.ndarray
            u, shape (nu,), N and N m: a view that the next call overwrites.

        Raises
        ------
        NonFiniteError
            If an input is not finite, or no torque achieves the commanded acceleration.
        SingularConfigurationError
            If the decoupling matrix is singular.
        ConcurError
            If the tick belongs to another thread, or the period or the state is out of bounds.
        """
        if get_ident() != self._thread:
            self._claim(self._where)
        own_q, own_s, pose, twist, acceleration = self._memories
        try:
            own_q[ALL] = q
            own_s[ALL] = s
            pose[ALL] = sample.flat_pose  # type: ignore[union-attr]
            twist[ALL] = sample.twist  # type: ignore[union-attr]
            acceleration[ALL] = sample.acceleration  # type: ignore[union-attr]
        except (TypeError, ValueError, NotImplementedError, BufferError, AttributeError):
            self._fill(q, s, sample)
        if sample is not None and sample.groups is not self._groups:
            self.servo.flat(sample)
            self._groups = sample.groups
        if self._careful:
            if sample is not None and sample.is_matrix:
                self.servo.flat(sample)
            self.buffers.t[:] = t
            self.run()
        else:
            self._trigger()
        if self._status[0]:
            self._refuse(TickStatus(int(self._status[0])))
        return self._u

    def _fill(self, q: Vector, s: Vector, sample: ReferenceSample | None) -> None:
        """Copy inputs of other types than those of the buffers."""
        self._take("q", q)
        self._take("s", s)
        buffers = self.buffers
        buffers.pose[:], buffers.twist[:], buffers.acceleration[:] = self.servo.flat(sample)


def tick_function(servo: TrackingLaw, solver: str = SOLVER, watched: bool = False) -> ca.Function:
    """The whole law with its checks: what is compiled and exported.

    The momentum is an input where the model rests on one, so that it may be estimated while the
    robot runs: velocities of the base follow from it and go to the law that takes all velocities.

    Parameters
    ----------
    servo : TrackingLaw
        The law.
    solver : str
        As for `allocation`, which torque limits need.
    watched : bool
        Whether it compares itself with the tick before: the last input `before` (2,) is the last
        output `after` of that one, zero at the first.

    Returns
    -------
    casadi.Function
        Inputs q (nq,), s (nw,), those in `sampled`, momentum (6,) where the law
        `takes_momentum`, and of a law with a state the period; its state z (nz,) is the last part
        of `before` and `after`, which it has without `watched` too. Outputs u (nu,), zero unless
        the status is; pivot, missed (size,), scale, and status, a `TickStatus` as a number. Over
        SX; over MX with torque limits, which have a quadratic program inside.
    """
    given = servo.takes_momentum
    law = servo.graph(solver, sided=watched, measured=given or servo.use_measured_velocity)
    kind = ca.SX if law.is_a("SXFunction") else ca.MX
    sizes = {"q": servo.nq, "s": servo.nw, **servo.sampled}
    inputs = [kind.sym(name, size) for name, size in sizes.items()]
    taken = inputs.copy()
    taken[0], taken[2], valid = attitudes(servo).call([inputs[0], inputs[2]])
    if given:
        sizes["momentum"] = 6
        inputs.append(kind.sym("momentum", 6))
        taken[1] = _velocity(servo).call([taken[0], inputs[1], inputs[-1]])[0]
    known = KEPT if watched else 0
    memory = [kind.sym("before", known + servo.nz)] if known + servo.nz else []
    if servo.nz:
        sizes["period"] = 1
        inputs.append(kind.sym("period"))
        taken.append(memory[0][known:])
    results = law.call(taken)
    total = ca.sumsqr(ca.vertcat(*inputs))
    times = inputs[-1:] if servo.nz else []
    checked = _checks(servo, watched).call([total, valid, *results, *times, *memory])
    inputs += memory
    names_in = [*sizes, *(["before"] if memory else [])]
    names_out = [*RESULTS, *(["after"] if memory else [])]
    options = {"cse": True} if kind is ca.SX else {}
    return ca.Function("tick", inputs, checked, names_in, names_out, options)


def _velocity(servo: TrackingLaw) -> ca.Function:
    """All velocities, from those of the shape and the momentum."""
    inputs = [ca.SX.sym("q", servo.nq), ca.SX.sym("s", servo.ns), ca.SX.sym("momentum", 6)]
    v = ca.densify(servo.model.velocity(*inputs))
    return ca.Function("velocity", inputs, [v], {"cse": True})


def _checks(servo: TrackingLaw, watched: bool) -> ca.Function:
    """Results of the law, torques zero unless everything is as it must be, with a status."""
    total, valid = ca.SX.sym("total"), ca.SX.sym("valid")
    u, missed = ca.SX.sym("u", servo.nu), ca.SX.sym("missed", servo.size)
    pivot, scale = ca.SX.sym("pivot"), ca.SX.sym("scale")
    # Comparisons with NaN are false, so each test asks for what must hold.
    units = 1.0 / answer_scale(servo)
    size = ca.sumsqr(u * units)
    finite = size <= (LARGEST * np.min(units, initial=LARGEST)) ** 2
    tests = [
        (total <= LARGEST**2, TickStatus.BAD_INPUT),
        (valid, TickStatus.INVALID_QUATERNION),
        (pivot >= servo.singular_margin, TickStatus.SINGULAR),
        (finite, TickStatus.NO_RESULT),
    ]
    if servo.torque_limits is not None:
        # The margin bound is zero if the program found no solution.
        tests.insert(2, (ca.fabs(pivot) > 0.0, TickStatus.NO_TORQUE_WITHIN_LIMITS))
    inputs = [total, valid, u, pivot, missed, scale]
    known = KEPT if watched else 0
    before, side = ca.SX.sym("before", known + servo.nz), ca.SX.sym("side")
    rate, period = ca.SX.sym("zdot", servo.nz), ca.SX.sym("period")
    if watched:
        inputs.append(side)
        # Zero is kept where there is no tick before.
        leapt = ca.logic_and(before[1] > 0.0, size > LEAP**2 * before[1])
        away = ca.logic_and(leapt, size * pivot**2 > (RUNAWAY if servo.size else np.inf) ** 2)
        passed = ca.logic_or(side * before[0] < 0.0, away)
        tests.append((ca.logic_not(passed), TickStatus.SINGULAR))
    if servo.nz:
        inputs += [rate, period]
        bounds = servo.state_bounds
        entries = zip(ca.vertsplit(before[known:]), bounds.state, strict=True)
        kept = [ca.fabs(z) <= float(most) for z, most in entries]
        sound = [tests[0][0], period >= 0.0, period <= bounds.period, *kept]
        tests[0] = reduce(ca.logic_and, sound), TickStatus.BAD_INPUT
        # A rate without a number must not become a state; and `after` follows from all of `before`
        # through the status, so that one can be written over the other.
        tests.append((ca.sumsqr(rate) <= LARGEST**2, TickStatus.NO_RESULT))
    if known + servo.nz:
        inputs.append(before)
    status = ca.SX(0)
    for holds, otherwise in reversed(tests):
        status = ca.if_else(holds, status, int(otherwise))
    given = ca.if_else(status == 0, u, 0.0)
    results, after = [given, pivot, missed, scale, status], list[ca.SX]()
    if watched:
        # A singular configuration clears the memory; other faults keep it. This depends on the
        # status only.
        forget = ca.if_else(status == int(TickStatus.SINGULAR), 0.0, before[:KEPT])
        after.append(ca.if_else(status == 0, ca.vertcat(side, size), forget))
    if servo.nz:
        z, most = before[known:], ca.DM(bounds.state)
        moved = ca.fmin(ca.fmax(z + period * rate, -most), most)
        after.append(ca.if_else(status == 0, moved, z))
    if after:
        results.append(ca.vertcat(*after))
    return ca.Function("checks", inputs, results)
