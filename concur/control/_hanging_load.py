"""A load on cables below a point with a thrust vector, which tracks by its flat output.

The point is that of a multicopter whose attitude is controlled much faster: its thrust f is any
vector. With masses m0, m1, ..., mn, cables of lengths l1, ..., ln, unit vectors q1, ..., qn down
the cables, and tensions T1, ..., Tn,

    m_i x_i'' = -T_i q_i + T_(i+1) q_(i+1) - m_i g e3,   m_0 x_0'' = f + T_1 q_1 - m_0 g e3.

There are three inputs for 3 + 2n degrees of freedom. The position y of the last mass is a flat
output: its derivatives up to the order 2n + 2 determine the motion and the thrust. From the top,
``T_n q_n = -m_n (y'' + g e3)``, ``x_(n-1) = y - l_n q_n``, and so on to f.

The law adds 2n integrators: the tension T_n of the last cable and its derivatives are its state z.
With them the measured state gives the derivatives of y up to the order 2n + 1, and the thrust makes
that of the order 2n + 2 what the path and the poles of the error ask for. So the error obeys
``(d/dt + rate)^(2n + 2) (y - path) = 0`` exactly, as long as all cables are taut and no two of them
that follow each other are at right angles. It is no statement about slack cables.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import as_floats, finite_floats
from concur.errors import DescriptionError, shown
from concur.formulations import Factor, LagrangianSystem
from concur.outputs import FunctionOutput, Reference, ReferenceSample, references
from concur.reduction import ReducedModel, reduce

TAUT = 1e-2
"""Tension of a cable in shares of the weight below it, at which the margin is `MARGIN`."""

MARGIN = 1e-3
"""Margin below which a law gives no torque."""


@dataclass(frozen=True, eq=False)
class HangingLoad:
    """Law for a load that hangs on a chain of cables from a point with a thrust vector.

    The system is underactuated: three forces for 3 + 2n degrees of freedom. It tracks by its
    differentially flat output, the position of the load, with a dynamic feedback that linearizes
    the error exactly; the state of the law is the tension of the last cable and its derivatives.

    Parameters
    ----------
    masses : sequence of float
        Mass of the point, of the masses at the joints of the cables, and of the load, kg; one more
        than `lengths`.
    lengths : sequence of float
        Length of each cable, from the point to the load, m.
    path : Reference or callable
        Position of the load, m: a reference in R^3 without tables, such as `polynomial` or
        `harmonic`, or a function of the time, a casadi.SX, to three expressions. It has
        derivatives up to the order 2n + 2.
    rate : float
        Rate of decay of the error, 1/s: all 2n + 2 poles are at ``-rate``.
    gravity : float
        Acceleration of gravity, m/s^2, along -z.

    Attributes
    ----------
    system : LagrangianSystem
        The point in R^3 and the directions of the cables, on two-spheres.
    model : ReducedModel
        Its reduced model.
    outputs : tuple of FunctionOutput
        The position of the load.
    order : int
        Order of the error equation, 2n + 2.

    Raises
    ------
    DescriptionError
        If a number is not above zero, the numbers of masses and lengths do not fit, or the path is
        no smooth function of the time in R^3.

    See Also
    --------
    linear_loop : A regulator of any underactuated system about a configuration at rest.

    Notes
    -----
    The margin of the law is the least tension in shares of the weight below the cable, and the
    least cosine between cables that follow each other. Where either is below 1e-2 there is no
    thrust.

    Examples
    --------
    >>> import casadi as ca, concur as cc
    >>> from concur.control import HangingLoad
    >>> law = HangingLoad([1.0, 0.4], [0.8], lambda t: [ca.sin(t), 0.0, 0.2 * t], rate=3.0)
    >>> q0, s0 = law.start()
    >>> run = cc.simulate(law.system, law, law.reference, 0.2, q0, s0, dt=1e-2)
    >>> bool(abs(law.load(run.q[-1]) - [0.19867, 0.0, 0.04]).max() < 1e-4)
    True
    """

    masses: Sequence[float]
    lengths: Sequence[float]
    path: Reference | Callable[[ca.SX], Any]
    rate: float
    gravity: float = 9.81
    torque_limits: None = field(default=None, init=False)
    system: LagrangianSystem = field(init=False)
    model: ReducedModel = field(init=False)
    outputs: tuple[FunctionOutput, ...] = field(init=False)

    def __post_init__(self) -> None:
        for name in ("masses", "lengths"):
            values = as_floats(getattr(self, name), f"hanging load, `{name}`")
            if values.ndim != 1 or not (np.isfinite(values).all() and (values > 0.0).all()):
                raise _refused(name, "numbers above zero", shown(getattr(self, name)))
            object.__setattr__(self, name, tuple(values.tolist()))
        if not self.lengths or len(self.masses) != len(self.lengths) + 1:
            came = f"{len(self.masses)} masses and {len(self.lengths)} lengths"
            raise _refused("masses", "one more mass than cables, and a cable", came)
        for name in ("rate", "gravity"):
            value = as_floats(getattr(self, name), f"hanging load, `{name}`")
            if value.shape or not 0.0 < float(value) < math.inf:
                raise _refused(name, "a number above zero", shown(getattr(self, name)))
            object.__setattr__(self, name, float(value))
        object.__setattr__(self, "system", self._system())
        object.__setattr__(self, "model", reduce(self.system))
        q = ca.SX.sym("q", self.system.nq)
        place = ca.Function("load", [q], [self._places(q)[-1]])
        object.__setattr__(self, "outputs", (FunctionOutput("load", place, "R3"),))
        _ = self._wanted

    @property
    def order(self) -> int:
        """Order of the error equation: 2 for the load, and 2 for each cable."""
        return 2 + 2 * len(self.lengths)

    def _system(self) -> LagrangianSystem:
        names = [f"cable{k}" for k in range(1, len(self.lengths) + 1)]
        point = Factor("point", "R3")
        cables = [Factor(name, "S2", neutral=(0.0, 0.0, -1.0)) for name in names]
        place, speed = point.q, point.v
        kinetic = self.masses[0] * ca.sumsqr(speed) / 2
        height = self.masses[0] * self.gravity * place[2]
        drawn: dict[str, Any] = {"point": place}
        for mass, length, cable in zip(self.masses[1:], self.lengths, cables, strict=True):
            place, speed = place + length * cable.q, speed + length * cable.qdot
            kinetic += mass * ca.sumsqr(speed) / 2
            height += mass * self.gravity * place[2]
            drawn[f"end of {cable.name}"] = place
        return LagrangianSystem(
            kinetic,
            height,
            [point, *cables],
            inputs=list(point.freedom_names),
            name="hanging load",
            drawn=drawn,
        )

    def _places(self, q: ca.SX) -> list[ca.SX]:
        """Positions of all masses."""
        places = [q[:3]]
        for k, length in enumerate(self.lengths):
            places.append(places[-1] + length * q[3 + 3 * k : 6 + 3 * k])
        return places

    def load(self, q: Any) -> np.ndarray:
        """Position of the load.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray
            Shape (3,), m.
        """
        place = ca.Function("load", [at := ca.SX.sym("q", self.system.nq)], [self._places(at)[-1]])
        return np.array(place(finite_floats(q, "hanging load, `q`", (self.system.nq,))))[:, 0]

    @cached_property
    def _wanted(self) -> ca.Function:
        """From the time to the derivatives of the path, shape (3, order + 1)."""
        t = ca.SX.sym("t")
        if isinstance(self.path, Reference):
            graph = self.path.graph()
            if graph is None or graph.is_a("MXFunction") or graph.size1_out(0) != 3:
                came = "one with tables, custom functions, or of another group"
                raise _refused("path", "a reference in R^3 of one formula", came)
            place = graph(t)[0]
        else:
            place = self._expressions(t)
        others = [symbol.name() for symbol in ca.symvar(place) if not ca.is_equal(symbol, t)]
        if place.shape != (3, 1) or others:
            came = f"one that depends on {', '.join(others)}" if others else f"shape {place.shape}"
            raise _refused("path", "three expressions of the time", came)
        at = ca.Function("at", [t], [place])
        if not any(np.isfinite(np.array(at(time))).all() for time in (0.0, 1.0)):
            # So do functions of `math`, which CasADi's symbols pass as NaN.
            raise _refused("path", "a finite place at 0 or 1 s", "NaN or infinity")
        rows = [place]
        for _ in range(self.order):
            rows.append(ca.jacobian(rows[-1], t))
        return ca.Function("path", [t], [ca.densify(ca.horzcat(*rows))])

    def _expressions(self, t: ca.SX) -> ca.SX:
        """Expressions of the path, as one column."""
        try:
            given: Any = self.path(t)
            parts = [given] if isinstance(given, ca.SX | ca.DM) else given
            place = ca.vertcat(*[ca.SX(part) for part in parts])
        except Exception as error:  # of the user's function, or of CasADi
            expected = "a function from the time, a CasADi symbol, to three expressions"
            raise _refused("path", expected, f"{type(error).__name__}: {error}") from error
        return place

    @property
    def reference(self) -> Reference:
        """The path as a reference of `outputs`, with which a run records its error."""
        if isinstance(self.path, Reference):
            return self.path

        def sample(t: float) -> ReferenceSample:
            rows = np.array(self._wanted(t))
            return ReferenceSample(rows[:, 0], rows[:, 1], rows[:, 2])

        return references.from_function(sample, 3, 3)

    @cached_property
    def flat(self) -> ca.Function:
        """Motion and thrust by derivatives of the position of the load.

        From its derivatives of the orders 0 to `order`, shape (3, order + 1), to `q`, `s` (nq,)
        and (ns,), the thrust `f` (3,), N, and the derivatives of the last tension, shape
        (order - 1,), N, N/s, ....
        """
        stack = ca.SX.sym("y", 3, self.order + 1)
        symbols = ca.vec(stack)
        shifted = ca.vertcat(symbols[3:], ca.SX(3, 1))

        def rate(expression: ca.SX) -> ca.SX:
            return ca.jtimes(expression, symbols, shifted)

        up = ca.SX([0.0, 0.0, self.gravity])
        place, pull = stack[:, 0], ca.SX(3, 1)
        cables, tensions = list[ca.SX](), list[ca.SX]()
        for mass, length in zip(self.masses[:0:-1], self.lengths[::-1], strict=True):
            pull = pull - mass * (rate(rate(place)) + up)
            tension = ca.norm_2(pull)
            cables.insert(0, pull / tension)
            tensions.append(tension)
            place = place - length * cables[0]
        thrust = self.masses[0] * (rate(rate(place)) + up) - pull
        turns = [ca.cross(cable, rate(cable)) for cable in cables]
        last = [tensions[0]]
        for _ in range(self.order - 2):
            last.append(rate(last[-1]))
        results = [
            ca.vertcat(place, *cables), ca.vertcat(rate(place), *turns), thrust, ca.vertcat(*last),
        ]  # fmt: skip
        return ca.Function(
            "flat", [stack], [ca.densify(part) for part in results], ["y"], ["q", "s", "f", "T"],
            {"cse": True},
        )  # fmt: skip

    def start(self, t: float = 0.0) -> tuple[np.ndarray, np.ndarray]:
        """Configuration and velocities on the path.

        Parameters
        ----------
        t : float
            Time, s.

        Returns
        -------
        q, s : numpy.ndarray
            Shapes (nq,) and (ns,). The state of the law at its start is that of the load at rest,
            so that on a path that begins with an acceleration the tension has an error first.
        """
        q, s, *_ = self.flat(self._wanted(finite_floats(t, "hanging load, `t`", ())))
        return np.array(q)[:, 0], np.array(s)[:, 0]

    def _measured(self, q: ca.SX, v: ca.SX, tension: ca.SX) -> tuple[ca.SX, list[ca.SX]]:
        """Derivatives of the load's position of the orders 0 to order - 1, and all tensions.

        `tension` is that of the last cable with its derivatives, (order - 2,).
        """
        n, up = len(self.lengths), ca.SX([0.0, 0.0, self.gravity])
        cables = [q[3 + 3 * k : 6 + 3 * k] for k in range(n)]
        rates = [ca.cross(v[3 + 3 * k : 6 + 3 * k], cables[k]) for k in range(n)]
        masses = self.masses
        pulls: list[ca.SX] = [ca.SX(0)] * (n + 1)  # tensions of the cables, and none below the load
        pulls[n - 1] = tension[0]
        for k in range(n - 2, -1, -1):
            below = -self.lengths[k + 1] * ca.sumsqr(rates[k + 1])
            below += pulls[k + 1] * (1 / masses[k + 2] + 1 / masses[k + 1])
            if k + 2 < n:
                below -= pulls[k + 2] * ca.dot(cables[k + 2], cables[k + 1]) / masses[k + 2]
            pulls[k] = masses[k + 1] * below / ca.dot(cables[k], cables[k + 1])
        after = [*cables, ca.SX(3, 1)]
        speeds = [
            (-pulls[k] * cables[k] + pulls[k + 1] * after[k + 1]) / masses[k + 1] - up
            for k in range(n)
        ]
        turning = [ca.SX(3, 1)]  # that of the first cable follows from the thrust, and is not used
        for k in range(1, n):
            turning.append(ca.cross(cables[k], speeds[k] - speeds[k - 1]) / self.lengths[k])
        state = ca.vertcat(q[3:], v[3:], tension)
        moving = ca.vertcat(*rates, *turning, tension[1:], ca.SX(1, 1))
        speed = v[:3] + sum(
            (length * rate for length, rate in zip(self.lengths, rates, strict=True)), ca.SX(3, 1)
        )
        stack = [self._places(q)[-1], speed, speeds[-1]]
        while len(stack) < self.order:
            stack.append(ca.jtimes(stack[-1], state, moving))
        return ca.horzcat(*stack), pulls[:n]

    def graph(self) -> ca.Function:
        """The law: thrust, rate of its state, and margin.

        Returns
        -------
        casadi.Function
            Of `t`, `q`, `s` and `z`, the deviation of the last tension from the weight of the load
            and its derivatives, shape (order - 2,).
        """
        t, q = ca.SX.sym("t"), ca.SX.sym("q", self.model.nq)
        s, z = ca.SX.sym("s", self.model.ns), ca.SX.sym("z", self.order - 2)
        weight = self.masses[-1] * self.gravity
        tension = ca.SX.sym("T", self.order - 2)
        stack, tensions = self._measured(q, s, tension)
        measured = ca.Function("measured", [q, s, tension], [stack, *tensions])
        stack, *tensions = measured(q, s, z + ca.vertcat(weight, ca.SX(self.order - 3, 1)))
        wanted = self._wanted(t)
        last = wanted[:, -1]
        for k in range(self.order):
            gain = math.comb(self.order, k) * self.rate ** (self.order - k)
            last += gain * (wanted[:, k] - stack[:, k])
        _, _, thrust, pulls = self.flat(ca.horzcat(stack, last))
        below = np.cumsum(self.masses[:0:-1])[::-1] * self.gravity
        shares = [pull / load for pull, load in zip(tensions, below.tolist(), strict=True)]
        cables = [q[3 + 3 * k : 6 + 3 * k] for k in range(len(self.lengths))]
        shares += [ca.dot(a, b) for a, b in pairwise(cables)]
        margin = ca.mmin(ca.vertcat(*shares)) * (MARGIN / TAUT)
        return ca.Function(
            "hanging_load",
            [t, q, s, z],
            [ca.densify(x) for x in (thrust, ca.vertcat(z[1:], pulls[-1]), margin)],
            ["t", "q", "s", "z"],
            ["u", "zdot", "margin_bound"],
            {"cse": True},
        )


def _refused(name: str, expected: str, came: str) -> DescriptionError:
    return DescriptionError(
        f"hanging load, `{name}`", expected=expected, came=came, cure="Correct the argument."
    )
