"""A motion to a goal as a program in the splines of the shape and the duration.

The unknowns are the free parameters of the splines and the duration T. All other coordinates, such
as the pose of the base, follow by the reduced kinematics ``q' = T qdot(q, v(q, r' / T))``,
integrated by RK4 with exact derivatives; torques follow by inverse dynamics. So a robot on wheels
and one that floats with a constant momentum are the same program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from concur.codegen import compiled
from concur.control import Servo, signed_margin
from concur.errors import ConcurError
from concur.outputs import Output, output_motion
from concur.planning._clearances import distances, middles
from concur.planning._path_limits import Bounds
from concur.planning._splines import Splines
from concur.planning._targets import Target, rest_rows, target_rows
from concur.reduction import ReducedModel
from concur.robot import Clearance

STEPS = 45
"""Steps of the integration, and intervals between points at which limits hold."""

NEAR_SINGULAR = 3.0
"""Multiple of the least margin by which a violated one counts as a torque at twice its limit."""

FINE = 10
"""Steps of the dense check in each of these."""

NEAR = 0.1
"""Distance by which a violated distance counts as much as a torque at twice its limit, m."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Path:
    """A motion at points in time: other coordinates x, shape r with speeds s, rates a, and rows g.

    `e` are the rows of the goal, `slopes` those of g and e by the unknowns, and `carried` those of
    x.
    """

    points: Floats
    x: Floats
    r: Floats
    s: Floats
    a: Floats
    g: Floats
    e: Floats
    slopes: tuple[Floats, Floats] | None = None
    carried: Floats | None = None


@dataclass(frozen=True)
class Start:
    """State at the start: other coordinates, shape and shape velocities."""

    x: Floats
    r: Floats
    s: Floats


@dataclass(frozen=True, eq=False)
class Transcription:
    """Graphs and derivatives of a plan of one model, for any start and goal numbers."""

    model: ReducedModel
    outputs: tuple[Output, ...]
    targets: tuple[Target, ...]
    bounds: Bounds
    clearance: Clearance | None
    apart: float | None
    singular: float
    q0: Floats
    splines: Splines = field(default_factory=lambda: Splines(14))

    @cached_property
    def shape(self) -> list[int]:
        """Places of the shape in the configuration."""
        return list(self.model.shape_coordinates)

    @cached_property
    def rest(self) -> list[int]:
        """Places of all other coordinates."""
        return [k for k in range(self.model.nq) if k not in self.shape]

    @property
    def unknowns(self) -> int:
        """Number of unknowns: the free parameters by points and coordinates, and T."""
        return self.splines.free * self.model.ns + 1

    def configuration(self, x: Any, r: Any) -> Floats:
        """Configurations of the model, shape (..., nq)."""
        q = np.empty((*np.shape(x)[:-1], self.model.nq))
        q[..., self.rest], q[..., self.shape] = x, r
        return q

    # -- graphs ----------------------------------------------------------------------------------

    @cached_property
    def _symbols(self) -> tuple[Any, ...]:
        sizes = {"x": len(self.rest), "r": self.model.ns, "s": self.model.ns, "a": self.model.ns}
        x, r, s, a = (ca.SX.sym(name, size) for name, size in sizes.items())
        q = ca.SX(self.model.nq, 1)
        q[self.rest], q[self.shape] = x, r
        return q, x, r, s, a

    @cached_property
    def _rows(self) -> tuple[list[tuple[str, str, float, float]], Floats, Floats]:
        """Limits that are not of the shape alone: facts, and rows by quantities with offsets.

        The quantities are torques, speeds of controls with a speed-torque line, the margin, and
        distances. A row is within -1 and 1; quantity = limit * row + offset.
        """
        model, bounds = self.model, self.bounds
        lined, size = self._lined, self._quantities.shape[0]
        facts, rows, offsets = list[tuple[str, str, float, float]](), list[Floats](), list[float]()

        def add(name: str, unit: str, limit: float, offset: float, row: dict[int, float]) -> None:
            facts.append((name, unit, limit, offset))
            rows.append(np.zeros(size + len(self._distances)))
            for at, factor in row.items():
                rows[-1][at] = factor
            offsets.append(-offset / limit)

        for k, name in enumerate(model.control_names):
            if np.isfinite(bounds.torques[k]):
                most, unit = float(bounds.torques[k]), model.control_units[k]
                add(f"torque of {name}", unit, most, 0.0, {k: 1.0 / most})
            if k in lined:
                stall, free = bounds.line[k]
                row = {k: 1.0 / stall, model.nu + lined.index(k): 1.0 / free}
                add(f"speed-torque line of {name}", "", 1.0, 0.0, row)
        if self._margin is not None:
            scale = NEAR_SINGULAR * self.singular
            add("decoupling margin", "", -scale, self.singular + scale, {size - 1: -1.0 / scale})
        for k, (name, _, least) in enumerate(self._distances):
            add(name, "m", -NEAR, least + NEAR, {size + k: -1.0 / NEAR})
        return facts, np.reshape(rows, (len(rows), size + len(self._distances))), np.array(offsets)

    @cached_property
    def _lined(self) -> list[int]:
        """Controls with a speed-torque line."""
        return np.flatnonzero(np.isfinite(self.bounds.line[:, 1])).tolist()

    @cached_property
    def _distances(self) -> list[tuple[str, Any, float]]:
        q = self._symbols[0]
        return distances(self.model.robot, q, self.clearance, self.apart, self.q0)

    @cached_property
    def _quantities(self) -> Any:
        """Torques, speeds of controls with a line, and margin over SX."""
        q, _, _, s, _ = self._symbols
        speeds = ca.DM(self.bounds.turns[self._lined]) @ self.model.velocity(q, s)
        margin = ca.SX(0, 1) if self._margin is None else self._margin
        return ca.vertcat(self._torque, speeds if self._lined else ca.SX(0, 1), margin)

    @cached_property
    def _margin(self) -> Any:
        """Lower bound of the decoupling margin over SX, below zero beyond a singular posture."""
        if not self.singular:
            return None
        try:
            servo = Servo(self.model, self.outputs, 1.0, 1.0)
        except ConcurError:  # no servo tracks these outputs
            return None
        q = self._symbols[0]
        value = signed_margin(servo, q)
        start = ca.Function("at_start", [q], [value])(self.q0)
        return value * float(np.sign(float(start)))

    @cached_property
    def _torque(self) -> Any:
        """Torques over SX; of more controls than shape velocities the least by their limits."""
        q, _, _, s, a = self._symbols
        force, matrix = self.model.inverse_dynamics(q, s, a), self.model.input_matrix(q)
        if self.model.nu == self.model.ns:
            return ca.solve(matrix, force)
        finite = np.where(np.isfinite(self.bounds.torques), self.bounds.torques, 1.0)
        weight = ca.DM(np.diag(finite**2))
        return weight @ matrix.T @ ca.solve(matrix @ weight @ matrix.T, force)

    @property
    def facts(self) -> list[tuple[str, str, float, float]]:
        """Quantity, unit, limit and offset of each row of the path."""
        return self._rows[0]

    @property
    def one_sided(self) -> NDArray[np.bool_]:
        """Which rows have no lower limit."""
        return np.array([limit < 0.0 for _, _, limit, _ in self.facts], dtype=bool)

    @cached_property
    def _functions(self) -> dict[str, ca.Function]:
        q, x, r, s, a = self._symbols
        model = self.model
        time, slope = ca.SX.sym("T"), ca.SX.sym("d", model.ns)
        change = time * model.system.rate(q, model.velocity(q, slope / time))
        rate = ca.vertcat(ca.SX(0, 1), *[change[k] for k in self.rest])
        moved = ca.vertcat(r, slope, time)
        flow = _graph("flow", [x, r, slope, time], [rate, *_slopes(rate, x, moved)])
        plain = _graph("plain", [x, r, slope, time], [rate])
        rows, apart = self._quantities, ca.vertcat(ca.SX(0, 1), *[d for _, d, _ in self._distances])
        state = ca.vertcat(x, r, s, a)
        limits = _graph("limits", [x, r, s, a], [rows, *_slopes(rows, state)])
        fine = _graph("fine", [x, r, s, a], [rows])
        near = _graph("near", [x, r], [apart, *_slopes(apart, ca.vertcat(x, r))])
        far = _graph("far", [x, r], [apart])
        wanted = ca.SX.sym("wanted", sum(t.wanted.size for t in self.targets))
        v = model.velocity(q, s)
        motion = output_motion(model.system, self.outputs, q, v)
        at_goal, _ = target_rows(self.outputs, self.targets, motion, wanted)
        at_goal = ca.vertcat(at_goal, self._resting(motion))
        goal = _graph("goal", [x, r, s, wanted], [at_goal, *_slopes(at_goal, ca.vertcat(x, r, s))])
        qdot = model.system.rate(q, v)
        vdot = ca.jtimes(v, q, ca.densify(qdot)) + ca.jtimes(v, s, a)
        full = output_motion(model.system, self.outputs, q, v, vdot)
        samples = [full.coordinates, full.velocity, full.acceleration]
        outputs = _graph("outputs", [x, r, s, a], samples)
        count = STEPS * FINE
        places = ca.SX(0, 1) if self.clearance is None else middles(model.robot, q, self.clearance)
        passing = _graph("passing", [x, r], [places, *_slopes(places, x, r)])
        # Functions of the robot and its outputs alone are compiled once for all goals and limits.
        of_robot = {
            "transport": _step(flow, len(self.rest), model.ns).mapaccum("transport", STEPS),
            "limits": limits.map(STEPS + 1),
            "dense": _plain_step(plain, len(self.rest), model.ns).mapaccum("dense", count),
            "fine": fine.map(count + 1),
            "outputs": outputs.map(count + 1),
        }
        of_problem = {"near": near.map(STEPS + 1), "far": far.map(count + 1)}
        found = {"goal": goal, "passing": passing, "flow": flow}
        for functions in (of_robot, of_problem if self._distances else {}):
            made = compiled([*functions.values()]) if functions else None
            found |= (
                functions if made is None else dict(zip(functions, made.functions, strict=True))
            )
        return found

    def _resting(self, motion: Any) -> Any:
        """Rows of outputs that rest at the goal; without them the joints rest."""
        if not (self.model.takes_momentum and any(self.model.momentum)):
            return ca.SX(0, 1)
        return rest_rows(self.model, self.outputs, self.targets, motion)

    @cached_property
    def within(self) -> Floats:
        """Largest deviation of each row of the goal."""
        _, _, wanted = self._goal_sizes
        return wanted

    @cached_property
    def _goal_sizes(self) -> tuple[int, int, Floats]:
        q, _, _, s, _ = self._symbols
        motion = output_motion(self.model.system, self.outputs, q, self.model.velocity(q, s))
        wanted = ca.SX.sym("wanted", sum(t.wanted.size for t in self.targets))
        rows, within = target_rows(self.outputs, self.targets, motion, wanted)
        resting = self._resting(motion).shape[0]
        return rows.shape[0], resting, np.concatenate([within, np.zeros(resting)])

    @property
    def ends_moving(self) -> bool:
        """Whether the joints move at the goal, so that outputs rest there."""
        return self._goal_sizes[1] > 0

    # -- numbers ---------------------------------------------------------------------------------

    @cached_property
    def _bases(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Values by free parameters and by the start, at the points and between them."""
        places = np.linspace(0.0, 1.0, STEPS + 1)
        between = (places[1:] + places[:-1]) / 2.0
        at, mid = self.splines.at(places), self.splines.at(between)
        return (
            at @ self.splines.inner,
            mid @ self.splines.inner,
            at @ self.splines.start,
            mid @ self.splines.start,
        )

    @cached_property
    def _unknown_slopes(self) -> tuple[Floats, Floats]:
        """Slopes by the unknowns but T of the steps' arguments, and of value and derivatives."""
        at, mid, _, _ = self._bases
        unit = np.eye(self.model.ns)

        def spread(rows: Floats) -> Floats:
            found = np.einsum("tj,ab->tajb", rows, unit)
            return np.asarray(found.reshape(len(rows), self.model.ns, -1))

        parts = [at[0, :-1], at[1, :-1], mid[0], mid[1], at[0, 1:], at[1, 1:]]
        steps = np.concatenate([spread(rows) for rows in parts], axis=1)
        return steps, np.stack([spread(rows) for rows in at])

    def points(self, start: Start, unknowns: Floats) -> Floats:
        """Control points of the splines, shape (count, ns)."""
        free = unknowns[:-1].reshape(self.splines.free, -1)
        first = np.array([start.r, start.s * unknowns[-1]])
        return np.asarray(self.splines.inner @ free + self.splines.start @ first)

    def evaluate(self, start: Start, unknowns: Floats, wanted: Floats, bias: Floats) -> Path:
        """Path of the unknowns with slopes of its rows; `bias` is added to those of the goal."""
        free, time, ns, nx = unknowns[:-1], unknowns[-1], self.model.ns, len(self.rest)
        at, mid, at_start, mid_start = self._bases
        table, first = free.reshape(-1, ns), np.array([start.r, start.s * time])
        r, d, dd = at @ table + at_start @ first
        rm, dm, _ = mid @ table + mid_start @ first
        moves = np.concatenate([r[:-1], d[:-1], rm, dm, r[1:], d[1:]], axis=1)
        functions = self._functions
        found = [np.array(x) for x in functions["transport"](start.x, moves.T, time)]
        x = np.vstack([start.x, found[0].T])
        s, a = d / time, dd / time**2
        g, dg = self._limited(x, r, s, a)
        e, de = (np.array(y) for y in functions["goal"](x[-1], r[-1], s[-1], wanted))
        by_x = found[1].reshape(nx, STEPS, nx).transpose(1, 0, 2)
        by_moves = found[2].reshape(nx, STEPS, 6 * ns + 1).transpose(1, 0, 2)
        steps, values = self._unknown_slopes
        # By T: the arguments of a step move with it as the robot starts with a speed.
        speed = np.concatenate(
            [
                np.multiply.outer(y, start.s)
                for y in (
                    *(at_start[0, :-1, 1], at_start[1, :-1, 1], mid_start[0, :, 1]),
                    *(mid_start[1, :, 1], at_start[0, 1:, 1], at_start[1, 1:, 1]),
                )
            ],
            axis=1,
        )
        own = np.empty((STEPS, nx, free.size + 1))
        own[:, :, :-1] = by_moves[:, :, :-1] @ steps
        own[:, :, -1] = by_moves[:, :, -1] + np.einsum("tab,tb->ta", by_moves[:, :, :-1], speed)
        carried = np.zeros((STEPS + 1, nx, free.size + 1))
        for k in range(STEPS):
            carried[k + 1] = by_x[k] @ carried[k] + own[k]
        slopes = dg[:, :, :nx] @ carried
        by_time = (
            np.multiply.outer(at_start[0, :, 1], start.s),
            np.multiply.outer(at_start[1, :, 1], start.s) / time - d / time**2,
            np.multiply.outer(at_start[2, :, 1], start.s) / time**2 - 2.0 * dd / time**3,
        )
        for k, part in enumerate(by_time):
            rows = dg[:, :, nx + k * ns : nx + (k + 1) * ns]
            slopes[:, :, :-1] += rows @ values[k] / time**k
            slopes[:, :, -1] += np.einsum("tab,tb->ta", rows, part)
        ends = de[:, :nx] @ carried[-1]
        for k in range(2):
            rows = de[:, nx + k * ns : nx + (k + 1) * ns]
            ends[:, :-1] += rows @ values[k, -1] / time**k
            ends[:, -1] += rows @ by_time[k][-1]
        points = self.points(start, unknowns)
        return Path(points, x, r, s, a, g, e[:, 0] + bias, (slopes, ends), carried)

    def _limited(self, x: Floats, r: Floats, s: Floats, a: Floats) -> tuple[Floats, Floats]:
        """Rows of the limits at the points, and their slopes by x, r, s and a."""
        functions, (_, rows, offsets) = self._functions, self._rows
        nx, ns, size = x.shape[1], r.shape[1], self._quantities.shape[0]
        values, slopes = (np.array(y) for y in functions["limits"](x.T, r.T, s.T, a.T))
        slopes = slopes.reshape(size, len(x), nx + 3 * ns).transpose(1, 0, 2)
        g, dg = values.T @ rows[:, :size].T + offsets, rows[:, :size] @ slopes
        if self._distances:
            values, slopes = (np.array(y) for y in functions["near"](x.T, r.T))
            # A distance has no slope where middle lines cross.
            slopes = np.nan_to_num(slopes).reshape(len(values), len(x), nx + ns)
            g += values.T @ rows[:, size:].T
            dg[:, :, : nx + ns] += rows[:, size:] @ slopes.transpose(1, 0, 2)
        return g, dg

    def _limited_fine(self, x: Floats, r: Floats, s: Floats, a: Floats) -> tuple[Floats, Floats]:
        """Rows of the limits at the points of the dense check, and torques there."""
        functions, (_, rows, offsets) = self._functions, self._rows
        size = self._quantities.shape[0]
        values = np.array(functions["fine"](x.T, r.T, s.T, a.T)).T
        g = values @ rows[:, :size].T + offsets
        if self._distances:
            g += np.array(functions["far"](x.T, r.T)).T @ rows[:, size:].T
        return g, values[:, : self.model.nu]

    def to_goal(self, x: Floats, r: Floats, wanted: Floats) -> tuple[Floats, Floats]:
        """Rows of the goal that are of places, and their slopes by x and r."""
        e, slopes = self._functions["goal"](x, r, np.zeros(self.model.ns), wanted)
        count = self._goal_sizes[0]
        return np.array(e)[:count, 0], np.array(slopes)[:count, : x.size + r.size]

    def flow(self, x: Floats, r: Floats, slope: Floats, time: float) -> tuple[Floats, Floats]:
        """Rate of x over the unit interval, and its slopes by the rate of the shape."""
        rate, _, moved = self._functions["flow"](x, r, slope, time)
        ns = self.model.ns
        return np.array(rate)[:, 0], np.array(moved)[:, ns : 2 * ns]

    def passing(self, path: Path, point: int, capsule: int) -> tuple[Floats, Floats]:
        """Middle of a capsule at a point of a path, and its slopes by the unknowns, (3, n)."""
        rows = slice(3 * capsule, 3 * capsule + 3)
        found = self._functions["passing"](path.x[point], path.r[point])
        at, by_x, by_r = (np.array(y)[rows] for y in found)
        assert path.carried is not None
        slopes = by_x @ path.carried[point]
        slopes[:, :-1] += by_r @ self._unknown_slopes[1][0, point]
        return at[:, 0], slopes

    def dense(self, start: Start, unknowns: Floats, wanted: Floats) -> tuple[Path, Floats]:
        """Path at ten times as many points, and its torques."""
        time, count = float(unknowns[-1]), STEPS * FINE
        places = np.linspace(0.0, 1.0, 2 * count + 1)
        points = self.points(start, unknowns)
        r, d, dd = self.splines.at(places) @ points
        moves = [r[:-2:2], d[:-2:2], r[1::2], d[1::2], r[2::2], d[2::2]]
        functions = self._functions
        x = np.array(functions["dense"](start.x, np.concatenate(moves, axis=1).T, time))
        x = np.vstack([start.x, x.T])
        r, s, a = r[::2], d[::2] / time, dd[::2] / time**2
        q = self.configuration(x, r)
        q = np.array([self.model.system.normalize(row) for row in q])
        x = q[:, self.rest]
        g, u = self._limited_fine(x, r, s, a)
        e = np.array(functions["goal"](x[-1], r[-1], s[-1], wanted)[0])[:, 0]
        return Path(points, x, r, s, a, g, e), u

    def jerks(self, path: Path, duration: float) -> Floats:
        """Jerks of the shape at the points of a path."""
        places = np.linspace(0.0, 1.0, len(path.x))
        return np.asarray(self.splines.third(places) @ path.points / duration**3)

    def at_rest(self, start: Start) -> Floats:
        """Rows of the path at the start without acceleration."""
        count = STEPS * FINE + 1
        state = [np.tile(y, (count, 1)) for y in (start.x, start.r, start.s, 0.0 * start.s)]
        x, r, s, a = state
        return np.asarray(self._limited_fine(x, r, s, a)[0][0])

    def samples(self, path: Path) -> tuple[Floats, Floats, Floats]:
        """Coordinates, velocities and accelerations of the outputs along a dense path."""
        found = self._functions["outputs"](path.x.T, path.r.T, path.s.T, path.a.T)
        coordinates, velocity, acceleration = (np.array(y).T for y in found)
        return coordinates, velocity, acceleration


def _graph(name: str, arguments: Sequence[Any], results: Sequence[Any]) -> ca.Function:
    return ca.Function(name, arguments, [ca.densify(ca.SX(y)) for y in results], {"cse": True})


def _slopes(value: Any, *symbols: Any) -> list[Any]:
    return [ca.jacobian(value, symbol) for symbol in symbols]


def _step(flow: ca.Function, nx: int, ns: int) -> ca.Function:
    """RK4 step with its slopes by x and by the six arguments and T."""
    x, moves, time = ca.MX.sym("x", nx), ca.MX.sym("moves", 6 * ns), ca.MX.sym("T")
    h, size = 1.0 / STEPS, 6 * ns + 1
    parts = ca.vertsplit(moves, ns)

    def stage(at: Any, by_x: Any, by_moves: Any, k: int) -> tuple[Any, Any, Any]:
        rate, along, own = flow(at, parts[2 * k], parts[2 * k + 1], time)
        left = ca.MX.zeros(nx, 2 * ns * k)
        right = ca.MX.zeros(nx, size - 1 - 2 * ns * (k + 1))
        spread = ca.horzcat(left, own[:, :-1], right, own[:, -1])
        return rate, along @ by_x, along @ by_moves + spread

    unit, none = ca.MX(ca.DM.eye(nx)), ca.MX.zeros(nx, size)
    first = stage(x, unit, none, 0)
    base = x, unit, none
    second = stage(*_ahead(base, first, h / 2), 1)
    third = stage(*_ahead(base, second, h / 2), 1)
    last = stage(*_ahead(base, third, h), 2)
    ends = [
        y + h / 6 * (a + 2 * b + 2 * c + d)
        for y, a, b, c, d in zip(base, first, second, third, last, strict=True)
    ]
    return ca.Function("step", [x, moves, time], [ca.densify(y) for y in ends])


def _ahead(base: Sequence[Any], stage: Sequence[Any], h: float) -> tuple[Any, Any, Any]:
    x, by_x, by_moves = (y + h * k for y, k in zip(base, stage, strict=True))
    return x, by_x, by_moves


def _plain_step(plain: ca.Function, nx: int, ns: int) -> ca.Function:
    """RK4 step of the dense check."""
    x, moves, time = ca.MX.sym("x", nx), ca.MX.sym("moves", 6 * ns), ca.MX.sym("T")
    h, parts = 1.0 / (STEPS * FINE), ca.vertsplit(moves, ns)
    first = plain(x, parts[0], parts[1], time)
    second = plain(x + h / 2 * first, parts[2], parts[3], time)
    third = plain(x + h / 2 * second, parts[2], parts[3], time)
    last = plain(x + h * third, parts[4], parts[5], time)
    moved = x + h / 6 * (first + 2 * second + 2 * third + last)
    return ca.Function("plain_step", [x, moves, time], [moved])
