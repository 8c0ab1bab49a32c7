"""Declared closed-loop motion of a floater, and the tube of errors and base pose about it.

The candidate is a cubic spline through a numerical solution; what is wrong with it counts as
forcing. Each segment has a constant matrix A_k, and deviations of error and base pose obey one
linear cascade, so that an error's effect on the base is counted with its sign (`_variations`).

**What holds.** If `tube` returns radii, then for every start within the radii at the start and
every disturbance within D, dx, eta and dv stay within them as long as |d| <= D.
"""

from __future__ import annotations

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from concur._polynomials import Floats, norm_bound
from concur.errors import OutputError
from concur.outputs.references import Reference
from concur.proofs._configurations import Configurations
from concur.proofs._decided import Decided
from concur.proofs._floating import Demand, Floater, State
from concur.proofs._heading import hermite
from concur.proofs._symbols import CLOCK
from concur.proofs._variations import Kernels, kernels

ROUNDS = 8
"""Candidates of the tube that are tried."""

LEAST = 1e-7
"""Smallest radius of a ball (m, rad)."""

BLOCK = 48
"""Segments computed side by side; a multiple of `PARTS`."""

FINER = 2
"""Parts of a segment for the defect of the base's candidate."""

PARTS = 4
"""Segments in a step of the kernels."""


class Declared:
    """Motion from the declared start, as a spline on a uniform grid.

    Parameters
    ----------
    robot : Floater
        Graphs of the robot.
    reference : Reference
        Reference of the hand.
    q0, s0 : numpy.ndarray
        Declared start, shapes (13,) and (6,).
    length : float
        Length of a segment (s).
    count : int
        Number of segments.
    """

    def __init__(
        self,
        robot: Floater,
        reference: Reference,
        q0: Floats,
        s0: Floats,
        length: float,
        count: int,
    ) -> None:
        self.robot, self.length, self.count = robot, length, count
        self.reference = Decided(reference, robot.where)
        times: Floats = np.asarray(length * np.arange(count + 1), dtype=np.float64)
        half = np.full(count, length / 2 * (1 + 1e-9))
        self.reference.check_continuity(times[:-1] + length / 2, half)
        servo = robot.servo
        sample = reference(0.0)
        self.start = np.array(servo.errors(q0, s0, sample.flat_pose, sample.twist))
        rate = _motion(robot)

        def slope(t: float, y: Floats) -> Floats:
            _, twist, _ = self.reference.plain(t)
            return np.asarray(rate(y[:6], y[6:12], y[12:], twist)).ravel()

        first = np.concatenate([*self.start, q0])
        found = solve_ivp(
            slope, (0.0, times[-1]), first, method="DOP853", t_eval=times, rtol=1e-10, atol=1e-12,
            max_step=length,
        )  # fmt: skip
        path = found.y
        if path.shape[1] <= count or not np.isfinite(path).all():
            end = length * max(path.shape[1] - 1, 0)
            raise OutputError(
                robot.where,
                expected=f"a declared motion of {length * count:g} s",
                came=f"none after {end:.2f} s, where the decoupling matrix may be singular",
                cure="Start from another posture, move the reference, or prove a shorter task.",
            )
        slopes = np.array([slope(t, y) for t, y in zip(times, path.T, strict=True)]).T
        # Errors, then quaternion and position of the base.
        rows = [*range(12), 15, 16, 17, 18, 12, 13, 14]
        self.path = path
        self.cubics = hermite(path[rows], slopes[rows], length)
        self.demand = self._demand(1)

    def _demand(self, parts: int) -> Demand:
        """Models over all segments, each in parts of equal length."""
        half, count = self.length / parts / 2, self.count * parts
        middle: Floats = np.asarray((np.arange(count) + 0.5) * (2 * half), dtype=np.float64)
        space = self.robot.symbols.space
        rates = self.reference.models(space, CLOCK, middle, np.full(count, half))
        value, change = [], []
        for c0, c1, c2, c3 in np.moveaxis(_split(self.cubics, parts), 0, 1):
            d = space.symbol(CLOCK, np.ones(count))
            square = d * d
            # d^3 differs from 3 d / 4 by a quarter of Chebyshev's polynomial at most.
            own = d * (c1 + 0.75 * c3) + square * c2 + c0
            value.append(own.with_remainder(own.r + np.abs(c3) / 4 * (1 + 1e-12)))
            change.append((d * (2 * c2) + square * (3 * c3) + c1) * (1 / half))
        angles = np.repeat((self.path[19:, :-1] + self.path[19:, 1:]) / 2, parts, axis=1)
        return Demand(
            rates[0],
            rates[1],
            rates[2],
            rates[3],
            value[:6],
            value[6:12],
            value[12:],
            change[:6],
            change[6:12],
            change[12:],
            angles,
        )

    def tube(self, start: Floats) -> Tube:
        """Tube that has no segment yet, for radii (3,) of dx, eta and dv at the start."""
        fine, parts, rest = self._demand(FINER), [], []
        for k in range(0, self.count * FINER, BLOCK * FINER):
            some = np.arange(k, min(k + BLOCK * FINER, self.count * FINER))
            least = np.full((3, len(some)), LEAST)
            state = self.robot.state(fine.take(some), least, np.zeros((2, len(some))))
            linear = np.nan_to_num(state.linear(least))
            parts.append(linear.reshape(-1, PARTS * FINER, 18, 18).mean(axis=1))
            rest.append(norm_bound(state.rates[6:12]))
        steps = np.concatenate(parts)
        defect = np.concatenate(rest).reshape(-1, FINER).mean(axis=1)
        own = kernels(steps, (6, 6, 6), self.length * PARTS, PARTS)
        return Tube(self, own, np.repeat(steps, PARTS, axis=0), defect, start)


class Tube:
    """Radii of dx, eta and dv over segments, found block by block in time.

    Parameters
    ----------
    declared : Declared
        Candidate.
    kernels : Kernels
        Of the linear parts.
    matrices : numpy.ndarray
        Linear parts A_k, shape (segments, 18, 18).
    defect : numpy.ndarray
        Means over segments of bounds of eta's rate at y = 0, (segments,).
    start : numpy.ndarray
        Radii at the start, (3,).

    Attributes
    ----------
    radii, forcing : numpy.ndarray
        Radii of each segment, and bounds of what the rates are beyond A y, (3, segments).
    """

    def __init__(
        self,
        declared: Declared,
        kernels: Kernels,
        matrices: Floats,
        defect: Floats,
        start: Floats,
    ) -> None:
        self._declared, self._kernels = declared, kernels
        self._matrices, self._defect, self._start = matrices, defect, start
        self._last: Configurations | None = None
        self.radii = np.zeros((3, declared.count))
        self.forcing = np.zeros((3, declared.count))
        # Its part by disturbances and errors of the momentum.
        self._push = np.zeros((3, declared.count))

    @property
    def growth(self) -> float:
        """Largest factor by which a small error of the base's pose grows."""
        return float(self._kernels.start[:, 1, 1].max())

    def close(self, some: np.ndarray, disturbance: Floats, errors: Floats) -> State | str:
        """Find radii on the next segments; their state, or what fails.

        For bounds of |d| there (b,) and of the momentum's error (2, b). The segments before must
        be closed.
        """
        robot, declared = self._declared.robot, self._declared
        demand, last = declared.demand.take(some), max(int(some[0]) - 1, 0)
        push = np.zeros((3, len(some)))
        push[2] = disturbance
        still = np.full((3, len(some)), LEAST)
        radii = np.maximum(self.radii[:, [last]] if some[0] else self._start[:, None], still)
        self.forcing[:, some] = push + self.forcing[:, [last]] * (some[0] > 0)
        self._push[:, some] = push
        first = self._kernels.reached(self._start, self.forcing, some)
        radii = np.maximum(1.02 * first, np.minimum(radii, first)) + LEAST
        for _ in range(ROUNDS):
            state = robot.state(demand, radii, errors)
            if not state.phi.solved.all():
                return f"no unique joint angles within the tube{self._shares(some)}"
            slopes = robot.slopes(demand, state)
            forcing, push[1] = state.forcing(robot.symbols, radii, self._matrices[some], slopes)
            forcing[1] += self._defect[some]
            if not np.isfinite(forcing + push).all():
                return f"the base's velocity has no bound within the tube{self._shares(some)}"
            self.forcing[:, some], self._push[:, some] = forcing + push, push
            found = self._kernels.reached(self._start, self.forcing, some)
            if (found < radii).all():
                if not self._continues(some, state):
                    return f"the joint angles may be on another branch{self._shares(some)}"
                self.radii[:, some] = radii
                return state
            radii = np.where(found < radii, radii, found * 1.03 + LEAST)
        return f"the tube grows faster than it closes{self._shares(some)}"

    def _shares(self, some: np.ndarray) -> str:
        """Parts of the deviations at the end of some segments."""
        push = [self._push * np.array(row)[:, None] for row in ([0, 0, 1], [0, 1, 0])]
        parts = {
            "starts": (self._start, 0.0 * self.forcing),
            "disturbances": (0.0 * self._start, push[0]),
            "errors of the momentum": (0.0 * self._start, push[1]),
            "second order": (0.0 * self._start, self.forcing - self._push),
        }
        last = {name: self._kernels.reached(*own, some)[:2, -1] for name, own in parts.items()}
        texts = []
        for k, name in enumerate(("hand", "base")):
            whole = sum(part[k] for part in last.values())
            own = [
                f"{part[k]:.2g} by {key}" for key, part in last.items() if part[k] > 0.01 * whole
            ]
            texts.append(f"the {name} deviates by up to {whole:.2g} (m, rad), {', '.join(own)}")
        time = (int(some[-1]) + 1) * self._declared.length
        return f": until {time:.2f} s {' and '.join(texts)}"

    def keep(self, state: State) -> None:
        """Continue from the last segment of a closed block."""
        self._last = state.phi

    def _continues(self, some: np.ndarray, state: State) -> bool:
        """Whether segments share their joint angles on the candidate where they meet."""
        count, phi = len(some), state.phi
        end = np.zeros((self._declared.robot.symbols.space.size, count - 1))
        end[CLOCK] = 1.0
        here, last = np.arange(count - 1), np.array([-1])
        inside = phi.same_branch(here, end, here + 1, -end).all()
        if self._last is not None:
            meet = self._last.same_branch(last, end[:, :1], np.zeros(1, int), -end[:, :1], phi)
            return bool(inside and meet.all())
        declared = self._declared.path[19:, 0]
        apart = [
            abs(m.take(here[:1]).at(-end[:, :1])[0] - angle) + 1e-9 <= box
            for m, angle, box in zip(phi.models, declared, phi.unique[:, 0], strict=True)
        ]
        return bool(inside and all(apart))


def _motion(robot: Floater) -> ca.Function:
    """Rates of (x, ve, q) of the closed loop from x, ve, q and the reference's twist."""
    servo = robot.servo
    x, ve, q, twist = (ca.SX.sym(name, n) for name, n in (("x", 6), ("v", 6), ("q", 13), ("t", 6)))
    group = servo.error_dynamics.group
    desired = ve + group.transport(x) @ twist
    drift = servo.motion(q, servo.velocity(q, ca.SX(6, 1)))[0]
    s = ca.solve(servo.decoupling(q), desired - drift)
    moved = servo.model.robot.rate(q, servo.velocity(q, s))
    xdot, vedot = servo.error_dynamics.rate(x, ve)
    return ca.Function("motion", [x, ve, q, twist], [ca.vertcat(xdot, vedot, moved)])


def _split(cubics: Floats, parts: int) -> Floats:
    """The same cubics over equal parts of each segment."""
    h = 1.0 / parts
    found = []
    for m in (2 * np.arange(parts) + 1) * h - 1.0:
        c0, c1, c2, c3 = cubics
        found.append(
            [
                c0 + m * (c1 + m * (c2 + m * c3)),
                h * (c1 + m * (2 * c2 + 3 * m * c3)),
                h**2 * (c2 + 3 * m * c3),
                h**3 * c3,
            ]
        )
    whole = np.moveaxis(np.array(found), 0, -1)
    return whole.reshape(*whole.shape[:-2], -1)
