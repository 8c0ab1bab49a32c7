"""A law with its reference inside: a function of time, configuration and velocities."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import get_ident
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import Vector, nonfinite_error
from concur.control._allocation import HOLE, SOLVER
from concur.control._control_law import Law
from concur.control._own_law import tracking_law
from concur.control._tick import ALL, RESULTS, SAMPLE, BufferedLaw, TickStatus, tick_function
from concur.control._tracking_law import TrackingLaw
from concur.errors import ConcurError
from concur.outputs._fitting import reference_for
from concur.outputs._sample import ReferenceSample
from concur.outputs.references import LARGEST as LATEST
from concur.outputs.references import Reference


class ReferenceTick(BufferedLaw):
    """A law with its reference inside, called through buffers that are allocated once.

    Made by `Servo.compile` with a reference, or from any other `Law`. If the reference has a graph,
    law and reference are one function, as machine code; a custom Python function is called at each
    tick. It belongs to the thread of its first call, as a `Tick`.

    Parameters
    ----------
    law : Law
        The law, such as a `Servo`.
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
        law: Law,
        reference: Reference | Callable[[float], ReferenceSample] | None,
        interpreted: bool = False,
    ) -> None:
        servo = tracking_law(law, "tick, `law`")
        self.reference = reference_for(reference, servo.outputs, f"tick of `{servo.name}`")
        sampled = self.reference.graph()
        if sampled is None:
            super().__init__(servo, interpreted, servo, lambda: tick_function(servo, watched=True))
            if not self.buffers.t.size:
                self.buffers = replace(self.buffers, t=np.zeros(1))
        else:
            super().__init__(
                servo,
                interpreted,
                (servo, sampled.serialize()),
                lambda: reference_tick_function(servo, sampled, watched=True, shown=True),
            )
        self._has_graph = sampled is not None
        self._memories: tuple[Any, ...] = tuple(
            memoryview(getattr(self.buffers, name).data) for name in ("t", "q", "s")
        )

    def __reduce__(self) -> tuple[type[ReferenceTick], tuple[TrackingLaw, Reference, bool]]:
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
        memories = self._memories
        try:
            memories[0][0], memories[1][ALL], memories[2][ALL] = t, q, s
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
        where, t = f"tick of `{self.servo.name}`", self.buffers.t
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


def exported_tick(servo: TrackingLaw, reference: Reference | None = None) -> ca.Function:
    """The tick of a law for an export, alone or with a reference inside."""
    if reference is None:
        return tick_function(servo, HOLE, watched=True)
    graph = reference.graph()
    if graph is None:
        raise ConcurError(
            f"export of `{servo.name}`, `reference`",
            expected="a reference with a graph",
            came="one with a custom Python function",
            cure="Make it of the functions in `references`, or export the law without a reference.",
        )
    return reference_tick_function(servo, graph, HOLE, watched=True)


def reference_tick_function(
    servo: TrackingLaw,
    reference: ca.Function,
    solver: str = SOLVER,
    watched: bool = False,
    shown: bool = False,
) -> ca.Function:
    """A law with its checks and a reference inside: what is compiled and exported.

    Parameters
    ----------
    servo : TrackingLaw
        The law.
    reference : casadi.Function
        Graph of the reference.
    solver, watched : str and bool
        As for `tick_function`.
    shown : bool
        Whether the reference is a result too.

    Returns
    -------
    casadi.Function
        Inputs t, q, s and the others of `tick_function` but the reference; its outputs, and with
        `shown` pose, twist and acceleration before `after`. Over MX if the reference has tables.
    """
    tick = tick_function(servo, solver, watched)
    names = [name for name in tick.name_in() if name not in (*SAMPLE, "t")]
    kind = ca.SX if tick.is_a("SXFunction") and reference.is_a("SXFunction") else ca.MX
    inputs = {"t": kind.sym("t")} | {name: kind.sym(name, tick.size1_in(name)) for name in names}
    t = inputs["t"]
    sample = dict(zip(SAMPLE, reference.call([t], True, False), strict=True))
    # A time out of range counts as a state that is not finite.
    late = ca.if_else(ca.fabs(t) <= LATEST, 0.0, np.nan)
    given = inputs | sample | {"q": inputs["q"] + late}
    found = dict(
        zip(tick.name_out(), tick.call([given[name] for name in tick.name_in()]), strict=True)
    )
    results = {name: found.pop(name) for name in RESULTS} | (sample if shown else {}) | found
    options = {"cse": True} if kind is ca.SX else {}
    return ca.Function(
        "tick", [*inputs.values()], [*results.values()], [*inputs], [*results], options
    )
