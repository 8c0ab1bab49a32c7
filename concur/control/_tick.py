"""The law as it is called in a loop: one compiled graph, buffers in, buffers out."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
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
from concur.control._core import LawCore
from concur.control._reading import is_one_pose
from concur.control._singularity import passed_error, refusal
from concur.control._state_bounds import check_state
from concur.control._tick_graph import KEPT, SAMPLE, TickStatus, tick_function
from concur.errors import ConcurError, NonFiniteError, OutputError
from concur.outputs import ReferenceSample, reference_for
from concur.outputs.references import LARGEST as LATEST
from concur.outputs.references import Reference

INPUTS = ("q", "s", *SAMPLE, "t", "momentum", "period")
"""Inputs of a tick's graph, as far as the law takes them."""

BUFFERS = {"pivot": "margin_bound", "missed": "acceleration_residual"}
"""Buffers of results, where the name differs."""

ALL = slice(None)
"""All of a memory: made once, as making a slice takes as long as a comparison."""


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
        Output: share of the commanded output acceleration that limits leave, shape (1,); 1 where
        none is active.
    active : numpy.ndarray
        Output: 1 for each of the law's `limit_names` that is active, else 0, shape (limits,).
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
    active: np.ndarray
    status: np.ndarray
    period: np.ndarray = field(default_factory=lambda: np.empty(0))
    state: np.ndarray = field(default_factory=lambda: np.empty(0))


class BufferedLaw(OneThread):
    """A law's graph called through buffers that are allocated once: what all ticks have in common.

    A tick belongs to the thread of its first call, until `release` or the end of the thread.

    Parameters
    ----------
    servo : LawCore
        The law.
    interpreted : bool
        Whether to leave the graph to CasADi's interpreter.
    reference : casadi.Function, optional
        Graph of a reference inside.
    """

    def __init__(
        self, servo: LawCore, interpreted: bool, reference: ca.Function | None = None
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
        value = servo if reference is None else (servo, reference.serialize())
        key = None if interpreted else fingerprint("tick", value)
        made, seconds = recalled(key), 0.0
        # With compiled code not even the graph is built.
        function = (
            tick_function(servo, watched=True, reference=reference, shown=True)
            if made is None
            else made.functions[0]
        )
        shapes = [function.size_out(i) for i in range(function.n_out())]
        can_fail = servo._symbols is ca.MX and made is None
        evaluator = Evaluator(function, shapes, where, can_fail=can_fail, kept=True)
        if made is None:
            seconds = time.perf_counter() - start
            made = None if interpreted else evaluator.compile(key)
        self._evaluator, self.compiled = evaluator, made is not None
        self.instructions = made.instructions[0] if made else instructions(evaluator.function)
        self.build_times = {
            "graph": seconds,
            "written": made.written if made else 0.0,
            "built": made.built if made else 0.0,
        }
        parts = {field.name: np.empty(0) for field in fields(TickBuffers)}
        views = [*zip(function.name_in(), evaluator.inputs, strict=True)]
        views += zip(function.name_out()[:-1], evaluator.outputs[:-1], strict=True)
        for name, view in views:
            parts[BUFFERS.get(name, name)] = view[:, 0]
        self._kept = parts.pop("before")
        parts["state"] = self._kept[KEPT:]
        parts["period"][:] = np.nan
        if "momentum" in servo.inputs:
            parts["momentum"][:] = servo.model.momentum
        self.buffers = TickBuffers(**parts)
        self._u = self.buffers.u
        self._status = memoryview(self.buffers.status.data)
        self._trigger = evaluator.trigger
        self._can_fail = evaluator.can_fail

    def _memories(self, *names: str) -> tuple[Any, ...]:
        """Memories of buffers, which take vectors faster than arrays do, and take nothing else."""
        return tuple(memoryview(getattr(self.buffers, name).data) for name in names)

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

    def _take(self, name: str, values: Vector) -> None:
        """Copy numbers of another type than the buffer's, or raise an error on what is wrong."""
        where = f"{self._where}, argument `{name}`"
        array, buffer = as_floats(values, where), getattr(self.buffers, name)
        if array.shape != buffer.shape:
            raise shape_error(where, buffer.shape, array.shape)
        buffer[:] = array

    def _refuse(self, status: TickStatus) -> None:
        buffers, servo, where = self.buffers, self.servo, self._where
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
        given = {name: getattr(buffers, name) for name in INPUTS}
        for name, values in given.items():
            if not np.isfinite(values).all():
                raise nonfinite_error(f"{where}, argument `{name}`", values)
        for name, values in given.items():
            if status is TickStatus.BAD_INPUT and np.abs(values).max(initial=0.0) > LARGEST:
                raise oversized_error(f"{where}, argument `{name}`", values)
        for name in ("q", "pose"):
            starts = servo._attitudes.get(name, {})
            error = attitude_error(f"{where}, argument `{name}`", name, given[name], starts)
            if error is not None:
                raise error
        q = buffers.q.copy()
        lost = status in (TickStatus.NO_RESULT, TickStatus.BAD_INPUT)
        u = np.full(servo.nu, np.nan) if lost else buffers.u
        if status is TickStatus.SINGULAR and buffers.margin_bound[0] >= servo.singular_margin:
            raise passed_error(servo, q)
        raise refusal(servo, q, u, float(buffers.margin_bound[0]))


def check_law(law: Any) -> None:
    """Reject what is not yet a law of this package."""
    if not isinstance(law, LawCore):
        raise OutputError(
            "tick, `law`",
            expected="a Servo, or another TrackingLaw",
            came=f"{type(law).__name__} {law!r:.40}",
            cure="Write `tracking_law(law).compile()` for a law of your own.",
        )


class Tick(BufferedLaw):
    """The whole law, called through buffers that are allocated once.

    Made by `Servo.compile`. A tick belongs to the thread of its first
    call, until `release` or the end of the thread; calls from others raise an error.

    Parameters
    ----------
    law : TrackingLaw
        The law: a `Servo`, or what `tracking_law` makes of any other `Law`.
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

    def __init__(self, law: LawCore, interpreted: bool = False) -> None:
        check_law(law)
        super().__init__(law, interpreted)
        self._inputs = self._memories(*INPUTS[:5])
        # A matrix is for one output that is a full pose; here its seven numbers would fit as well.
        matrix_fits = law.pose_size == 7 and not is_one_pose(law.outputs)
        timed = self.buffers.t.size or self.buffers.period.size
        self._groups: object = None
        self._careful = bool(self._can_fail or matrix_fits or timed or not law.size)

    def __reduce__(self) -> tuple[type[Tick], tuple[LawCore, bool]]:
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
        own_q, own_s, pose, twist, acceleration = self._inputs
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


class ReferenceTick(BufferedLaw):
    """A law with its reference inside, called through buffers that are allocated once.

    Made by `Servo.compile` with a reference. If the reference has a graph,
    law and reference are one function, as machine code; a custom Python function is called at each
    tick. It belongs to the thread of its first call, as a `Tick`.

    Parameters
    ----------
    law : TrackingLaw
        The law: a `Servo`, or what `tracking_law` makes of any other `Law`.
    reference : Reference or callable
        Reference of all outputs, or a function from time to `ReferenceSample`; None without
        outputs.
    interpreted : bool
        Whether to leave the graph to CasADi's interpreter: ready at once, and slower.

    Attributes
    ----------
    buffers : TickBuffers
        The arrays in use: fill `t`, `q`, `s` and, where the law takes it, `momentum`; call `run`;
        read `u`, and the reference in `pose`, `twist` and `acceleration`.
    reference : Reference
        The reference.
    compiled : bool
        Whether machine code is called; it is not where there is no compiler.
    instructions : int
        Length of the graph.
    build_times : dict of str to float
        What making it took, s: the `graph`, the C sources `written`, and these `built`, or found
        in the cache.

    Raises
    ------
    ConcurError
        If the reference does not fit the law's outputs.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> servo = cc.Servo(model, [base, hand], stiffness=[4, 9], damping=[4, 6])
    >>> q = [-0.45, -0.1, 0.1, 0, 0, -0.1, 1.0, -1.6]
    >>> tick = servo.compile(cc.references.hold(servo.output(q)), interpreted=True)
    >>> tick(0.0, q, [0.0] * 5).shape
    (5,)
    """

    def __init__(
        self,
        law: LawCore,
        reference: Reference | Callable[[float], ReferenceSample] | None,
        interpreted: bool = False,
    ) -> None:
        check_law(law)
        self.reference = reference_for(reference, law.outputs, f"tick of `{law.name}`")
        sampled = self.reference.graph()
        super().__init__(law, interpreted, sampled)
        self._has_graph = sampled is not None
        if not self.buffers.t.size:
            self.buffers = replace(self.buffers, t=np.zeros(1))
        self._inputs = self._memories("t", "q", "s")

    def __reduce__(self) -> tuple[type[ReferenceTick], tuple[LawCore, Reference, bool]]:
        return ReferenceTick, (self.servo, self.reference, self._interpreted)

    def run(self) -> int:
        """Evaluate reference and law on the buffers.

        Returns
        -------
        int
            0 if `buffers.u` may be used, else a `TickStatus`: BAD_INPUT also for a time beyond
            1e9 s and where the reference is not finite.
        """
        if not self._has_graph:
            if self._thread and get_ident() != self._thread:
                self._claim(self._where)
            self._sample()
        return super().run()

    def __call__(self, t: float, q: Vector, s: Vector) -> np.ndarray:
        """Control forces and torques for a time and a state.

        Parameters
        ----------
        t : float
            Time, s.
        q, s : array_like
            Configuration and velocities that the law takes, shapes (nq,) and (nw,).

        Returns
        -------
        numpy.ndarray
            u, shape (nu,), N and N m: a view that the next call overwrites.

        Raises
        ------
        NonFiniteError
            If an argument or the reference is not finite, or no torque achieves the commanded
            acceleration.
        ConcurError
            If the time is beyond 1e9 s, or the tick belongs to another thread.
        SingularConfigurationError
            If the decoupling matrix is singular.
        """
        if get_ident() != self._thread:
            self._claim(self._where)
        own_t, own_q, own_s = self._inputs
        try:
            own_t[0], own_q[ALL], own_s[ALL] = t, q, s
        except (TypeError, ValueError, NotImplementedError, BufferError):
            for name, values in (("t", np.reshape(t, -1)), ("q", q), ("s", s)):
                self._take(name, values)
        if self.run():
            self._refuse(TickStatus(int(self._status[0])))
        return self._u

    def _sample(self) -> None:
        """Call a custom function for the reference; no torque is left if it raises an error."""
        buffers = self.buffers
        parts = buffers.pose, buffers.twist, buffers.acceleration
        buffers.u[:], buffers.status[0] = 0.0, TickStatus.FAILED
        if not abs(buffers.t[0]) <= LATEST:
            buffers.pose[:] = np.nan
            return
        for part, values in zip(parts, self.reference.sample(buffers.t), strict=True):
            part[:] = values[0]

    def _refuse(self, status: TickStatus) -> None:
        where, t = self._where, self.buffers.t
        if not np.isfinite(t).all():
            raise nonfinite_error(f"{where}, argument `t`", t)
        if abs(t[0]) > LATEST:
            raise ConcurError(
                f"{where}, argument `t`",
                expected=f"a time within {LATEST:g} s",
                came=f"{t[0]:g} s",
                cure="Check the unit.",
            )
        for name in SAMPLE:
            values = getattr(self.buffers, name)
            if not np.isfinite(values).all():
                raise nonfinite_error(f"{where}, `{name}` of the reference at {t[0]:g} s", values)
        super()._refuse(status)
