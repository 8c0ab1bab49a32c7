"""A motion to a goal as a program in the splines of the shape and the duration.

The unknowns are the free parameters of the splines and the duration T. All other coordinates, such
as the pose of the base, follow by the reduced kinematics ``q' = T qdot(q, v(q, r' / T))``,
integrated by RK4 with exact derivatives; torques follow by inverse dynamics. So a robot on wheels
and one that floats with a constant momentum are the same program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concur.control import GroundLimits
from concur.outputs import Output
from concur.planning._clearances import leasts_of, numbers_of, pairs_of
from concur.planning._graphs import FINE, STEPS, Call, Graphs
from concur.planning._ground import Ground
from concur.planning._path_limits import Bounds
from concur.planning._splines import Splines
from concur.planning._targets import Target
from concur.reduction import ReducedModel
from concur.robot import Clearance

NEAR_SINGULAR = 3.0
"""Multiple of the least margin by which a violated one counts as a torque at twice its limit."""

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
    """State at the start: other coordinates, shape, shape velocities and shape accelerations."""

    x: Floats
    r: Floats
    s: Floats
    a: Floats

    def parts(self, time: float) -> Floats:
        """Shape with two derivatives over the unit interval, for a duration, shape (3, ns)."""
        return np.array([self.r, self.s * time, self.a * time**2])

    def parts_by_time(self, time: float) -> Floats:
        """Slopes of these by the duration."""
        return np.array([0.0 * self.r, self.s, 2.0 * self.a * time])


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
    ground: GroundLimits | None = None
    vias: tuple[tuple[Target, ...], ...] = ()
    places: tuple[int, ...] = ()  # points at which it passes the goals on the way
    splines: Splines = field(default_factory=lambda: Splines(14))

    @cached_property
    def graphs(self) -> Graphs:
        """Functions of the problem, which others of its kind share."""
        model, bounds = self.model, self.bounds
        lined = tuple(np.flatnonzero(np.isfinite(bounds.line[:, 1])).tolist())
        finite = np.where(np.isfinite(bounds.torques), bounds.torques, 1.0)
        return Graphs.of(
            *(model, self.outputs, self.targets, lined, bounds.turns[list(lined)]),
            *(None if model.nu == model.ns else finite**2, self.singular > 0.0),
            pairs_of(model.robot, self.clearance, self.apart),
            *(Ground.of(self.ground), self.vias),
        )

    @property
    def shape(self) -> list[int]:
        """Places of the shape in the configuration."""
        return self.graphs.shape

    @property
    def rest(self) -> list[int]:
        """Places of all other coordinates."""
        return self.graphs.rest

    @property
    def unknowns(self) -> int:
        """Number of unknowns: the free parameters by points and coordinates, and T."""
        return self.splines.free * self.model.ns + 1

    def configuration(self, x: Any, r: Any) -> Floats:
        """Configurations of the model, shape (..., nq)."""
        q = np.empty((*np.shape(x)[:-1], self.model.nq))
        q[..., self.rest], q[..., self.shape] = x, r
        return q

    @property
    def within(self) -> Floats:
        """Largest deviation of each row of the goal."""
        return self.graphs.within

    @property
    def ends_moving(self) -> bool:
        """Whether the joints move at the goal, so that outputs rest there."""
        return self.graphs.resting > 0

    @property
    def drifts(self) -> bool:
        """Whether the robot moves on with a momentum."""
        return bool(self.model.takes_momentum and any(self.model.momentum))

    @cached_property
    def rolling(self) -> NDArray[np.bool_]:
        """Which shape coordinates move the base along, so that a pose does not determine them."""
        wheels = {wheel.body for wheel in self.model.robot.wheels}
        return np.array([name in wheels for name in self.model.shape_names])

    @property
    def is_crowded(self) -> bool:
        """Whether the goal has more rows of places than the shape has coordinates.

        Then the way decides about the end, as where base and hand of a satellite have goals.
        """
        return self.graphs.goals > self.model.ns

    # -- limits ----------------------------------------------------------------------------------

    @cached_property
    def _numbers(self) -> Floats:
        """Ends and radius of the obstacles, one column."""
        return numbers_of(self.clearance)[:, None]

    @cached_property
    def _least(self) -> Floats:
        """Least distances of the pairs, -inf for those that have none."""
        if not self.graphs.pairs.names:
            return np.zeros(0)
        x, r = (np.tile(self.q0[own][:, None], STEPS + 1) for own in (self.rest, self.shape))
        (now,) = self._functions["away"](x, r, self._numbers)
        return leasts_of(self.clearance, self.apart, now[:, 0])

    @cached_property
    def _sign(self) -> float:
        """Sign of the margin at the start: beyond a singular posture it has the other."""
        states = [self.q0[self.rest], self.q0[self.shape], *np.zeros((2, self.model.ns))]
        (now,) = self._functions["values"](*[np.tile(y[:, None], STEPS + 1) for y in states])
        return float(np.sign(now[self.graphs.margin_at, 0]))

    @cached_property
    def _rows(self) -> tuple[list[tuple[str, str, float, float]], Floats, Floats]:
        """Limits that are not of the shape alone: facts, and rows by quantities with offsets.

        The quantities are torques, speeds of controls with a speed-torque line, the margin, those
        of the ground, and distances. A row is within -1 and 1; quantity = limit * row + offset.
        """
        model, bounds, graphs = self.model, self.bounds, self.graphs
        size = graphs.count
        facts, rows, offsets = list[tuple[str, str, float, float]](), list[Floats](), list[float]()

        def add(name: str, unit: str, limit: float, offset: float, row: dict[int, float]) -> None:
            facts.append((name, unit, limit, offset))
            rows.append(np.zeros(size + len(self._least)))
            for at, factor in row.items():
                rows[-1][at] = factor
            offsets.append(-offset / limit)

        for k, name in enumerate(model.control_names):
            if np.isfinite(bounds.torques[k]):
                most, unit = float(bounds.torques[k]), model.control_units[k]
                add(f"torque of {name}", unit, most, 0.0, {k: 1.0 / most})
            if k in graphs.lined:
                stall, free = bounds.line[k]
                row = {k: 1.0 / stall, model.nu + graphs.lined.index(k): 1.0 / free}
                add(f"speed-torque line of {name}", "", 1.0, 0.0, row)
        if graphs.has_margin:
            scale = NEAR_SINGULAR * self.singular
            row = {graphs.margin_at: -self._sign / scale}
            add("decoupling margin", "", -scale, self.singular + scale, row)
        if self.ground is not None and graphs.ground is not None:
            for name, unit, scale, lowest, parts in graphs.ground.rows(model, self.ground):
                row = {graphs.grounded_at + at: -part / scale for at, part in parts.items()}
                add(name, unit, -scale, lowest + scale, row)
        for k, (name, least) in enumerate(zip(graphs.pairs.names, self._least, strict=True)):
            if np.isfinite(least):
                add(name, "m", -NEAR, float(least) + NEAR, {size + k: -1.0 / NEAR})
        return facts, np.reshape(rows, (len(rows), size + len(self._least))), np.array(offsets)

    @property
    def facts(self) -> list[tuple[str, str, float, float]]:
        """Quantity, unit, limit and offset of each row of the path."""
        return self._rows[0]

    @cached_property
    def one_sided(self) -> NDArray[np.bool_]:
        """Which rows have no lower limit."""
        return np.array([limit < 0.0 for _, _, limit, _ in self.facts], dtype=bool)

    @property
    def _functions(self) -> dict[str, Call]:
        return self.graphs.functions

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
        first = self.splines.start @ start.parts(float(unknowns[-1]))
        return np.asarray(self.splines.inner @ free + first)

    def _moves(self, start: Start, unknowns: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Shape with two derivatives at the points, and the arguments of the steps between."""
        time, ns = unknowns[-1], self.model.ns
        at, mid, at_start, mid_start = self._bases
        table, first = unknowns[:-1].reshape(-1, ns), start.parts(float(time))
        r, d, dd = at @ table + at_start @ first
        rm, dm, _ = mid @ table + mid_start @ first
        return r, d, dd, np.concatenate([r[:-1], d[:-1], rm, dm, r[1:], d[1:]], axis=1)

    def _times(self, time: float, count: int = STEPS) -> Floats:
        return np.full((1, count), time)

    def values(self, start: Start, unknowns: Floats, wanted: Floats, bias: Floats) -> Path:
        """Path of the unknowns without slopes."""
        time, functions = unknowns[-1], self._functions
        r, d, dd, moves = self._moves(start, unknowns)
        (found,) = functions["moved"](start.x, moves.T, self._times(time))
        x = np.vstack([start.x, found.T])
        s, a = d / time, dd / time**2
        g = self._limited_at("values", "away", x, r, s, a)[0]
        e = self._misses(x, r, s, wanted)
        return Path(self.points(start, unknowns), x, r, s, a, g, e + bias)

    @cached_property
    def _parts(self) -> list[int]:
        """Where the numbers of the goals on the way begin."""
        sizes = [sum(t.wanted.size for t in own) for own in (self.targets, *self.vias)]
        return [int(end) for end in np.cumsum(sizes)[:-1]]

    def _misses(self, x: Floats, r: Floats, s: Floats, wanted: Floats, fine: int = 1) -> Floats:
        """Rows of the goal, and of the goals on the way, with `fine` points in each interval."""
        goal, *others = np.split(wanted, self._parts)
        found = [self._functions["goal"](x[-1], r[-1], s[-1], goal)[0]]
        for k, (at, own) in enumerate(zip(self.places, others, strict=True)):
            found.append(self._functions[f"via{k}"](x[fine * at], r[fine * at], own)[0])
        return np.concatenate(found)[:, 0]

    def evaluate(self, start: Start, unknowns: Floats, wanted: Floats, bias: Floats) -> Path:
        """Path of the unknowns with slopes of its rows; `bias` is added to those of the goal."""
        free, time, ns, nx = unknowns[:-1], unknowns[-1], self.model.ns, len(self.rest)
        _, _, at_start, mid_start = self._bases
        r, d, dd, moves = self._moves(start, unknowns)
        functions = self._functions
        found = functions["transport"](start.x, moves.T, self._times(time))
        x = np.vstack([start.x, found[0].T])
        s, a = d / time, dd / time**2
        g, dg = self.limited(x, r, s, a)
        goal, *others = np.split(wanted, self._parts)
        e, de = functions["goal"](x[-1], r[-1], s[-1], goal)
        by_x = found[1].reshape(nx, STEPS, nx).transpose(1, 0, 2)
        by_moves = found[2].reshape(nx, STEPS, 6 * ns + 1).transpose(1, 0, 2)
        steps, values = self._unknown_slopes
        # By T: the arguments of a step move with it as the robot starts with a speed.
        at_time, mid_time = (y @ start.parts_by_time(float(time)) for y in (at_start, mid_start))
        moved = at_time[0, :-1], at_time[1, :-1], *mid_time[:2], at_time[0, 1:], at_time[1, 1:]
        speed = np.concatenate(moved, axis=1)
        own = np.empty((STEPS, nx, free.size + 1))
        own[:, :, :-1] = by_moves[:, :, :-1] @ steps
        own[:, :, -1] = by_moves[:, :, -1] + np.einsum("tab,tb->ta", by_moves[:, :, :-1], speed)
        carried = np.zeros((STEPS + 1, nx, free.size + 1))
        for k in range(STEPS):
            carried[k + 1] = by_x[k] @ carried[k] + own[k]
        slopes = dg[:, :, :nx] @ carried
        by_time = (
            at_time[0],
            at_time[1] / time - d / time**2,
            at_time[2] / time**2 - 2.0 * dd / time**3,
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
        for k, (at, own) in enumerate(zip(self.places, others, strict=True)):
            miss, *parts = functions[f"via{k}"](x[at], r[at], own)
            rows = parts[0] @ carried[at]
            rows[:, :-1] += parts[1] @ values[0, at]
            rows[:, -1] += parts[1] @ by_time[0][at]
            e, ends = np.concatenate([e, miss]), np.concatenate([ends, rows])
        points = self.points(start, unknowns)
        return Path(points, x, r, s, a, g, e[:, 0] + bias, (slopes, ends), carried)

    def limited(self, x: Floats, r: Floats, s: Floats, a: Floats) -> tuple[Floats, Floats]:
        """Rows of the limits at the points, and their slopes by x, r, s and a."""
        functions, (_, rows, offsets) = self._functions, self._rows
        nx, ns, size = x.shape[1], r.shape[1], self.graphs.count
        values, slopes = functions["limits"](x.T, r.T, s.T, a.T)
        slopes = slopes.reshape(size, len(x), nx + 3 * ns).transpose(1, 0, 2)
        g, dg = values.T @ rows[:, :size].T + offsets, rows[:, :size] @ slopes
        if len(self._least):
            values, slopes = functions["near"](x.T, r.T, self._numbers)
            # A distance has no slope where middle lines cross.
            slopes = np.nan_to_num(slopes).reshape(len(values), len(x), nx + ns)
            g += values.T @ rows[:, size:].T
            dg[:, :, : nx + ns] += rows[:, size:] @ slopes.transpose(1, 0, 2)
        return g, dg

    def _limited_at(
        self, fine: str, far: str, x: Floats, r: Floats, s: Floats, a: Floats
    ) -> tuple[Floats, Floats]:
        """Rows of the limits at points by functions without slopes, and torques there."""
        functions, (_, rows, offsets) = self._functions, self._rows
        size = self.graphs.count
        values = functions[fine](x.T, r.T, s.T, a.T)[0].T
        g = values @ rows[:, :size].T + offsets
        if len(self._least):
            g += functions[far](x.T, r.T, self._numbers)[0].T @ rows[:, size:].T
        return g, values[:, : self.model.nu]

    def to_goal(self, x: Floats, r: Floats, wanted: Floats, leg: int = -1) -> tuple[Floats, Floats]:
        """Rows of places at the end of a leg, by default the last, and their slopes by x and r."""
        own = np.split(wanted, self._parts)[(leg + 1) % (len(self.vias) + 1)]
        if 0 <= leg < len(self.vias):
            e, *parts = self._functions[f"via{leg}"](x, r, own)
            return e[:, 0], np.hstack(parts)
        e, slopes = self._functions["goal"](x, r, np.zeros(self.model.ns), own)
        return e[: self.graphs.goals, 0], slopes[: self.graphs.goals, : x.size + r.size]

    def flow(self, x: Floats, r: Floats, slope: Floats, time: float) -> tuple[Floats, Floats]:
        """Rate of x over the unit interval, and its slopes by the rate of the shape."""
        rate, _, moved = self._functions["flow"](x, r, slope, time)
        ns = self.model.ns
        return rate[:, 0], moved[:, ns : 2 * ns]

    def middle(self, path: Path, point: int, capsule: int) -> Floats:
        """Middle of a capsule at a point of a path."""
        found = self._functions["passing"](path.x[point], path.r[point])
        return found[0][3 * capsule : 3 * capsule + 3, 0]

    def passing(self, path: Path, point: int, capsule: int) -> tuple[Floats, Floats]:
        """Middle of a capsule at a point of a path, and its slopes by the unknowns, (3, n)."""
        rows = slice(3 * capsule, 3 * capsule + 3)
        found = self._functions["passing"](path.x[point], path.r[point])
        at, by_x, by_r = (y[rows] for y in found)
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
        steps = np.concatenate(moves, axis=1).T
        (x,) = functions["dense"](start.x, steps, self._times(time, count))
        x = np.vstack([start.x, x.T])
        r, s, a = r[::2], d[::2] / time, dd[::2] / time**2
        q = self.configuration(x, r)
        q = np.array([self.model.system.normalize(row) for row in q])
        x = q[:, self.rest]
        g, u = self._limited_at("fine", "far", x, r, s, a)
        return Path(points, x, r, s, a, g, self._misses(x, r, s, wanted, FINE)), u

    def jerks(self, path: Path, duration: float) -> Floats:
        """Jerks of the shape at the points of a path."""
        places = np.linspace(0.0, 1.0, len(path.x))
        return np.asarray(self.splines.third(places) @ path.points / duration**3)

    def at_rest(self, start: Start) -> Floats:
        """Rows of the path at the start without acceleration."""
        state = [np.tile(y, (STEPS + 1, 1)) for y in (start.x, start.r, start.s, 0.0 * start.s)]
        return np.asarray(self._limited_at("values", "away", *state)[0][0])

    def samples(self, path: Path) -> tuple[Floats, Floats, Floats]:
        """Coordinates, velocities and accelerations of the outputs along a dense path."""
        found = self._functions["outputs"](path.x.T, path.r.T, path.s.T, path.a.T)
        coordinates, velocity, acceleration = (y.T for y in found)
        return coordinates, velocity, acceleration
