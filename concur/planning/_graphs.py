"""Functions of a planned motion, built once for each robot with its outputs and kinds of goals.

All numbers of a problem are arguments: state, goal, obstacles. Other contents are kept
for further plans of the same model.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import NDArray

from concur.codegen import compiled
from concur.control import Servo, coupling, signed_margin
from concur.errors import ConcurError
from concur.outputs import Output, output_motion
from concur.planning._clearances import Pairs, distances, middles
from concur.planning._ground import Ground
from concur.planning._targets import Target, rest_rows, target_places, target_rows
from concur.reduction import ReducedModel

STEPS = 45
"""Steps of the integration, and intervals between points at which limits hold."""

FINE = 10
"""Steps of the dense check in each of these."""

KEPT_PROBLEMS = 8
"""Sets of functions that are kept for each model."""

KEPT_AS = "_plan_functions"
"""Name of these among the attributes of a model."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Graphs:
    """Functions of a model, its outputs and what is asked of them.

    `lined` are the controls with a line of speed and torque, `turns` their speeds by those of the
    robot, and `weight` that of each torque where there are more controls than shape velocities;
    `ground` are contacts whose loads or friction are limited, and `vias` the goals on the way.
    """

    model: ReducedModel
    outputs: tuple[Output, ...]
    targets: tuple[Target, ...]
    lined: tuple[int, ...]
    turns: Floats
    weight: Floats | None
    avoids_singular: bool
    pairs: Pairs
    ground: Ground | None = None
    vias: tuple[tuple[Target, ...], ...] = ()

    @classmethod
    def of(cls, model: ReducedModel, *parts: Any) -> Graphs:
        """Functions that are kept, or new ones."""
        made = cls(model, *parts)
        key = made._key
        known: Kept = vars(model).setdefault(KEPT_AS, Kept())  # freed with the model
        found = known.pop(key, made)
        known[key] = found
        while len(known) > KEPT_PROBLEMS:
            known.popitem(last=False)
        return found

    @property
    def _key(self) -> tuple[Any, ...]:
        weight = None if self.weight is None else self.weight.tobytes()
        asked = tuple(tuple(t.kept for t in own) for own in (self.targets, *self.vias))
        own = self.lined, self.turns.tobytes(), weight, self.avoids_singular, self.pairs
        # Outputs that are functions compare by their expressions.
        return self.outputs, asked, self.ground, *own

    @cached_property
    def shape(self) -> list[int]:
        """Places of the shape in the configuration."""
        return list(self.model.shape_coordinates)

    @cached_property
    def rest(self) -> list[int]:
        """Places of all other coordinates."""
        return [k for k in range(self.model.nq) if k not in self.shape]

    @cached_property
    def _symbols(self) -> tuple[Any, ...]:
        sizes = {"x": len(self.rest), "r": self.model.ns, "s": self.model.ns, "a": self.model.ns}
        x, r, s, a = (ca.SX.sym(name, size) for name, size in sizes.items())
        q = ca.SX(self.model.nq, 1)
        q[self.rest], q[self.shape] = x, r
        return q, x, r, s, a

    @cached_property
    def has_margin(self) -> bool:
        """Whether a servo tracks the outputs, so that its margin is kept."""
        return self._margin is not None

    @property
    def count(self) -> int:
        """Number of quantities: torques, speeds of controls with a line, margin, and ground."""
        return self.grounded_at + (self.ground.count if self.ground else 0)

    @property
    def margin_at(self) -> int:
        """Place of the margin among the quantities."""
        return self.model.nu + len(self.lined)

    @property
    def grounded_at(self) -> int:
        """Place of the first quantity of the ground."""
        return self.margin_at + self.has_margin

    @cached_property
    def quantities(self) -> Any:
        """Torques, speeds of controls with a line, margin, and ground over SX."""
        q, _, _, s, a = self._symbols
        speeds = ca.DM(self.turns) @ self.model.velocity(q, s) if self.lined else ca.SX(0, 1)
        margin = self._margin if self.has_margin else ca.SX(0, 1)
        torque, ground = self._torque, ca.SX(0, 1)
        if self.ground is not None:
            ground = self.ground.quantities(self.model, q, s, a, torque)
        return ca.vertcat(torque, speeds, margin, ground)

    @cached_property
    def _margin(self) -> Any:
        """Lower bound of the decoupling margin over SX; its sign changes at singular postures."""
        if not self.avoids_singular:
            return None
        try:
            servo = Servo(self.model, self.outputs, 1.0, 1.0)
        except ConcurError:  # no servo tracks these outputs
            return None
        return signed_margin(servo, self._symbols[0])

    @cached_property
    def _torque(self) -> Any:
        """Torques over SX; of more controls than shape velocities the least by their limits."""
        q, _, _, s, a = self._symbols
        force, matrix = self.model.inverse_dynamics(q, s, a), self.model.input_matrix(q)
        if self.weight is None:
            return ca.solve(matrix, force)
        weight = ca.DM(np.diag(self.weight))
        return weight @ matrix.T @ ca.solve(matrix @ weight @ matrix.T, force)

    @cached_property
    def functions(self) -> dict[str, Call]:
        """All functions."""
        q, x, r, s, a = self._symbols
        model = self.model
        time, slope = ca.SX.sym("T"), ca.SX.sym("d", model.ns)
        change = time * model.system.rate(q, model.velocity(q, slope / time))
        rate = ca.vertcat(ca.SX(0, 1), *[change[k] for k in self.rest])
        moved = ca.vertcat(r, slope, time)
        flow = _graph("flow", [x, r, slope, time], [rate, *_slopes(rate, x, moved)])
        plain = _graph("plain", [x, r, slope, time], [rate])
        rows, state = self.quantities, ca.vertcat(x, r, s, a)
        limits = _graph("limits", [x, r, s, a], [rows, *_slopes(rows, state)])
        fine = _graph("fine", [x, r, s, a], [rows])
        v = model.velocity(q, s)
        qdot = model.system.rate(q, v)
        vdot = ca.jtimes(v, q, ca.densify(qdot)) + ca.jtimes(v, s, a)
        full = output_motion(model.system, self.outputs, q, v, vdot)
        samples = [full.coordinates, full.velocity, full.acceleration]
        outputs = _graph("outputs", [x, r, s, a], samples)
        sizes, count = (len(self.rest), model.ns), STEPS * FINE
        # Functions of the robot and its outputs alone are compiled once for all goals and limits.
        found = {
            "transport": _step(flow, *sizes).mapaccum("transport", STEPS),
            "moved": _plain_step(plain, *sizes, STEPS).mapaccum("moved", STEPS),
            "dense": _plain_step(plain, *sizes, count).mapaccum("dense", count),
            "limits": limits.map(STEPS + 1),
            "values": fine.map(STEPS + 1),
            "fine": fine.map(count + 1),
            "outputs": outputs.map(count + 1),
        }
        made = _made(found)
        if self.pairs.names:
            made |= _made(self._of_pairs())
        vias = [(f"via{k}", self._via(own)) for k, own in enumerate(self.vias)]
        for name, function in (("goal", self._goal[0]), ("flow", flow), *self._passing(), *vias):
            made[name] = Call(function)
        return made

    @cached_property
    def posture(self) -> Call:
        """Goal, its numbers, centre of mass and rates of coordinates at rest, with slopes.

        Slopes are by velocities of joints that follow no other.
        """
        q, x, r, _, _ = self._symbols
        robot, count = self.model.robot, STEPS + 1
        wanted = ca.SX.sym("wanted", sum(t.wanted.size for t in self.targets))
        velocity, at = ca.SX.sym("v", robot.nv), ca.vertcat(x, r)
        rates = ca.jacobian(self.model.system.rate(q, velocity), velocity)
        rates = rates[[*self.rest, *self.shape], :] @ ca.DM(coupling(robot))
        motion = output_motion(self.model.system, self.outputs, q, ca.SX.zeros(robot.nv))
        e, _ = target_rows(self.outputs, self.targets, motion, wanted)
        places = ca.vertcat(*target_places(self.outputs, self.targets, motion))
        center, mass = ca.SX(3, 1), sum(body.inertia.mass for body in robot.bodies)
        for body in robot.bodies:
            pose, share = robot.pose(q, body.name), body.inertia.mass / mass
            center += share * (pose[:3, :3] @ ca.DM(body.inertia.com) + pose[:3, 3])
        slopes = [ca.jacobian(own, at) @ rates for own in (e, center)]
        results = [e, slopes[0], places, center, slopes[1], rates]
        return Call(_graph("posture", [x, r, wanted], results).map(count))

    def _of_pairs(self) -> dict[str, ca.Function]:
        """Distances, with their slopes or alone."""
        q, x, r, _, _ = self._symbols
        numbers = ca.SX.sym("numbers", self.pairs.size)
        apart = distances(self.model.robot, q, self.pairs, numbers)
        near = _graph("near", [x, r, numbers], [apart, *_slopes(apart, ca.vertcat(x, r))])
        far = _graph("far", [x, r, numbers], [apart])
        return {
            "near": near.map(STEPS + 1),
            "away": far.map(STEPS + 1),
            "far": far.map(STEPS * FINE + 1),
        }

    def _passing(self) -> list[tuple[str, ca.Function]]:
        q, x, r, _, _ = self._symbols
        places = middles(self.model.robot, q, self.pairs.capsules)
        return [("passing", _graph("passing", [x, r], [places, *_slopes(places, x, r)]))]

    def _via(self, targets: Sequence[Target]) -> ca.Function:
        """Rows of a goal on the way, with their slopes."""
        q, x, r, _, _ = self._symbols
        wanted = ca.SX.sym("wanted", sum(t.wanted.size for t in targets))
        still = ca.SX.zeros(self.model.robot.nv)
        motion = output_motion(self.model.system, self.outputs, q, still)
        rows, _ = target_rows(self.outputs, targets, motion, wanted)
        return _graph("via", [x, r, wanted], [rows, *_slopes(rows, x, r)])

    @cached_property
    def _goal(self) -> tuple[ca.Function, int, Floats]:
        """Rows of the goal with their slopes, how many of these rest, and what they may miss."""
        q, x, r, s, _ = self._symbols
        model = self.model
        wanted = ca.SX.sym("wanted", sum(t.wanted.size for t in self.targets))
        motion = output_motion(model.system, self.outputs, q, model.velocity(q, s))
        rows, within = target_rows(self.outputs, self.targets, motion, wanted)
        resting = ca.SX(0, 1)
        if model.takes_momentum and any(model.momentum):
            resting = rest_rows(model, self.outputs, self.targets, motion)
        both = ca.vertcat(rows, resting)
        slopes = _slopes(both, ca.vertcat(x, r, s))
        goal = _graph("goal", [x, r, s, wanted], [both, *slopes])
        count = resting.shape[0]
        return goal, count, np.concatenate([within, np.zeros(count)])

    @property
    def resting(self) -> int:
        """Number of rows of outputs that rest at the goal; with none the joints rest."""
        return self._goal[1]

    @property
    def within(self) -> Floats:
        """Largest deviation of each row of the goal, and then of the goals on the way."""
        ways = [np.full(len(t.rows), t.within) for own in self.vias for t in own]
        return np.concatenate([self._goal[2], *ways])

    @property
    def goals(self) -> int:
        """Number of rows of the goal that are of places."""
        return len(self._goal[2]) - self.resting


class Kept(OrderedDict[Any, Graphs]):
    """Functions by what they are for, the last used at the end; pickles and copies have none."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Kept, ()


class Call:
    """A function on NumPy arrays, without conversions; results have the shapes of the function."""

    def __init__(self, function: ca.Function) -> None:
        self.function = function
        buffer, self._trigger = function.buffer()
        self._given = [np.zeros(function.size_in(k), order="F") for k in range(function.n_in())]
        self._found = [np.zeros(function.size_out(k), order="F") for k in range(function.n_out())]
        for k, own in enumerate(self._given):
            buffer.set_arg(k, memoryview(own.reshape(-1, order="F").data))
        for k, own in enumerate(self._found):
            buffer.set_res(k, memoryview(own.reshape(-1, order="F").data))
        self._buffer = buffer  # lives as long as its trigger

    def __call__(self, *given: Any) -> list[Floats]:
        for own, value in zip(self._given, given, strict=True):
            value = np.asarray(value, dtype=float)
            own[:] = value[:, None] if value.ndim == 1 else value
        self._trigger()
        return [own.copy(order="F") for own in self._found]


def _made(functions: dict[str, ca.Function]) -> dict[str, Call]:
    """Functions as machine code if there is a compiler."""
    library = compiled([*functions.values()])
    found = functions.values() if library is None else library.functions
    return {name: Call(own) for name, own in zip(functions, found, strict=True)}


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


def _plain_step(plain: ca.Function, nx: int, ns: int, count: int) -> ca.Function:
    """RK4 step without slopes, one of `count`."""
    x, moves, time = ca.MX.sym("x", nx), ca.MX.sym("moves", 6 * ns), ca.MX.sym("T")
    h, parts = 1.0 / count, ca.vertsplit(moves, ns)
    first = plain(x, parts[0], parts[1], time)
    second = plain(x + h / 2 * first, parts[2], parts[3], time)
    third = plain(x + h / 2 * second, parts[2], parts[3], time)
    last = plain(x + h * third, parts[4], parts[5], time)
    moved = x + h / 6 * (first + 2 * second + 2 * third + last)
    return ca.Function("plain_step", [x, moves, time], [moved])
