"""Whether torques within the limits of a law can hold the weight, and keep the limits of joints.

At a state the smallest share r of the limits of controls is sought with which some shape
acceleration sdot keeps the rows of the joints' limits, ``low <= a sdot + b <= high``:

    r lower <= u <= r upper,    u = G sdot + g + Z w,

w the part of the controls that makes no force on the shape. Above one no torque within the limits
keeps the rows; the law then keeps them as nearly as it can. At rest sdot is zero: r is what the
weight needs. All states are one linear program of independent blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import scipy
from numpy.typing import ArrayLike

from concur.codegen import as_floats
from concur.control._constraint_rows import GroundLimits, ground_limits, limit_rows
from concur.control._core import LawCore
from concur.control._feasibility import feasibility
from concur.control._holding import torque_bounds
from concur.control._law import controls
from concur.control._limited import law_function
from concur.control._reading import read_each
from concur.control._sharing import unfelt
from concur.errors import OutputError
from concur.outputs import ReferenceSample
from concur.outputs.references import Reference
from concur.results import Row
from concur.robot import Mechanism, as_tree

INSTANTS = 41
"""Largest number of instants of a reference at which limits of joints are examined."""

SAMPLES = 256
"""States of a box, a power of two."""

ROUNDING = 1e-6
"""Share of a limit that the solution of the linear program may be off."""

TINY = 1e-9
"""Share of its limit by which a control may push where it can only pull."""


@dataclass(frozen=True, eq=False)
class TorqueReserve:
    """Shares of the limits of torques that the weight and the limits of joints need.

    Parameters
    ----------
    weight : float
        Largest share of its limit that a control needs at rest; above one the weight needs more
        than there is. Infinite where no torques hold it.
    joints : float
        Largest share that the limits of joints need; 0 without such limits, infinite where no
        torques keep them.
    rows : tuple of Row
        Both in %, with control, torque, limit and place.

    Examples
    --------
    >>> import concur as cc
    >>> task = cc.load_task("examples/rover_arm.toml")
    >>> servo = task.with_law({"kind": "servo", "torque_limits": 5.0}).law
    >>> found = servo.torque_reserve(task.reference, task.duration, task.q0)
    >>> found.holds, found.problems[0].partition(" at ")[0]
    (False, 'upper_arm needs 7.46 N m to hold the weight, 5 N m are available')
    """

    weight: float
    joints: float
    rows: tuple[Row, ...]

    @property
    def holds(self) -> bool:
        """Whether torques within their limits hold the weight and keep the limits of joints."""
        return all(row.holds is not False for row in self.rows)

    @property
    def problems(self) -> tuple[str, ...]:
        """What cannot be kept, a sentence each."""
        return tuple(row.place for row in self.rows if row.holds is False)


@dataclass(frozen=True, eq=False)
class _States:
    """States (q, v), and the place of each in words."""

    q: np.ndarray
    v: np.ndarray
    places: list[str]


def torque_reserve(
    self: LawCore,
    reference: Reference | Callable[[float], ReferenceSample],
    duration: float,
    q0: ArrayLike | None = None,
    ranges: Mapping[str, Any] | None = None,
    speeds: Mapping[str, float] | ArrayLike = 0.0,
) -> TorqueReserve:
    """Examine whether torques within the limits hold the weight and keep the limits of joints.

    Along the exact motion on the reference: at rest, at its speeds, and with each joint at an end
    of its range. With `ranges` also at states of this box, which are samples: no proof.

    Parameters
    ----------
    reference : Reference
        Reference of all outputs.
    duration : float
        How long it is followed, s.
    q0 : array_like, optional
        Configuration from which the exact start is sought, shape (nq,); default neutral.
    ranges : mapping of str to pair of float, optional
        A box: lower and upper end of the coordinate of each joint by name of the body, rad or m, a
        list of pairs for several coordinates; others are as in q0. Default: none.
    speeds : float, array_like or mapping of str to float, optional
        Largest shape velocities in the box, rad/s or m/s: one for all, one for each, or by name.
        Default: at rest.

    Returns
    -------
    TorqueReserve
        The largest shares of the limits that are needed, with their places; without rows for a law
        without limits of torques.

    Raises
    ------
    OutputError
        If a range or a speed is not of this robot.
    InfeasibleReferenceError
        If the duration is not above zero.
    """
    if self.torque_limits is None:
        return TorqueReserve(0.0, 0.0, ())
    robot = as_tree(self.model.system, f"servo of `{self.name}`", "Simulate the loop.")
    path = feasibility(self, reference, duration, q0)
    first = robot.check_configuration(robot.neutral() if q0 is None else q0)
    q, s, times = path.configurations, path.speeds, path.times
    if not len(q):  # the start is singular or out of reach
        q, s, times = first[None], np.zeros((1, self.ns)), np.zeros(1)
    places = [f"t = {time:.3g} s" for time in times]
    resting = _states(self, q, np.zeros_like(s), places)
    few = np.unique(np.linspace(0, len(q) - 1, INSTANTS).astype(int))
    chosen = [places[k] for k in few]
    moving, ends = [_states(self, q[few], s[few], chosen)], _at_ends(self, robot, q[few], chosen)
    if ranges is not None:
        box = _box(self, robot, first, ranges, speeds)
        moving.append(_states(self, *box, ["a sample of the box"] * SAMPLES))
        moving.append(_states(self, box[0], np.zeros_like(box[1]), moving[-1].places))
        resting = _joined([resting, moving[-1]])
    program = _Program(self)
    ground = ground_limits(self)
    weight, needed = _largest(self, program(resting), resting, rest=True)
    purpose = "to hold the weight" if np.any(robot.gravity) else "at rest"
    rows = [_row("torque at rest, largest share of its limit", weight, purpose, needed)]
    if ground is not None:
        rows += _loads_at_rest(robot, ground, resting)
    joints = 0.0
    if program.limited:
        every = _joined([*moving, *ends])
        own = program(_joined(moving)) + (program(_joined(ends), True) if ends else [])
        joints, needed = _largest(self, own, every, rest=False)
        label = "torque for limits of joints, largest share of its limit"
        rows.append(_row(label, joints, "to keep the limits of joints", needed))
        rows += _met(self, program, reference, _states(self, q[few], s[few], chosen), times[few])
    return TorqueReserve(weight, joints, tuple(rows))


def _met(
    law: LawCore, program: _Program, reference: Any, states: _States, times: np.ndarray
) -> list[Row]:
    """Row of the limits that the exact motion would exceed, so that the law leaves it there."""
    free, met = law_function(law, limited=False), dict[str, list[str]]()
    shape = states.v[:, list(law.model.shape)]
    inputs = {"q": states.q, "s": states.v if law.use_measured_velocity else shape}
    for k, (parts, time) in enumerate(zip(program(states), times, strict=True)):
        names = ("pose", "twist", "acceleration")
        given = dict(zip(names, map(np.asarray, law.flat(reference(float(time)))), strict=True))
        given |= {name: value[k] for name, value in inputs.items()}
        given |= {"momentum": np.array(law.model.momentum)} if "momentum" in law.inputs else {}
        u = np.array(free.call(given)["u"])[:, 0]
        value = parts[4][:, : law.ns] @ np.asarray(law.model.acceleration(states.q[k], shape[k], u))
        beyond = np.fmax(value - parts[6], parts[5] - value)
        for name in dict.fromkeys(np.array(program.names)[beyond > ROUNDING].tolist()):
            met.setdefault(name, []).append(states.places[k])
    if not met:
        return []
    place = ", ".join(f"{name} at {found[0]}" for name, found in met.items())
    share = 100.0 * max(map(len, met.values())) / len(times)
    label = "share of the exact motion in which a limit is active"
    return [Row(label, share, unit="%", place=place)]


def _loads_at_rest(robot: Mechanism, ground: GroundLimits, states: _States) -> list[Row]:
    """Rows of the smallest loads and moments of the ground with the robot at rest."""
    at, still = ca.SX.sym("q", robot.nq), ca.SX.zeros(robot.nv)
    found, _ = ground.beyond(robot, at, still, still)
    parts = ca.Function("rest", [at], [ca.vertcat(ca.SX(0, 1), *(part for _, part in found))])
    values = np.array([np.array(parts(q))[:, 0] for q in states.q])
    rows = list[Row]()
    for (name, _), column in zip(found, values.T, strict=True):
        unit = "N" if name.startswith("load") else "N m"
        least = ground.loads[name.removeprefix("load of ")] if unit == "N" else ground.tipping
        k = int(np.argmin(column))
        own = float(column[k] + least)
        asked = f"the limit is {least:.3g} {unit}"
        place = f"{name} is {own:.3g} {unit} at rest at {states.places[k]}, {asked}"
        label = f"{name} at rest, smallest"
        rows.append(Row.judged(label, own, least, unit, at_least=True, place=place))
    return rows


def _row(label: str, share: float, purpose: str, needed: tuple[str, str]) -> Row:
    """Row of a share, in %; `needed` is a control with its torque, and the rest."""
    place = f"{needed[0]} {purpose} {needed[1]}".replace(" , ", ", ")
    return Row(label, 100.0 * share, 100.0, "%", place, share <= 1.0 + ROUNDING)


def _states(law: LawCore, q: np.ndarray, s: np.ndarray, places: list[str]) -> _States:
    pairs = zip(q, s, strict=True)
    v = [np.asarray(law.model.velocity(at, speed)) for at, speed in pairs]
    return _States(q, np.reshape(v, (len(q), -1)), places)


def _joined(parts: list[_States]) -> _States:
    places = [place for part in parts for place in part.places]
    return _States(np.vstack([p.q for p in parts]), np.vstack([p.v for p in parts]), places)


def _at_ends(law: LawCore, robot: Mechanism, q: np.ndarray, places: list[str]) -> list[_States]:
    """The same configurations with each joint at each end of its range, at rest."""
    found = list[_States]()
    if law.constraints is None or not law.constraints.joints:
        return found
    names = [body.joint_label for body in robot.bodies for _ in range(body.joint.nq)]
    for c, ends in enumerate(robot.limits):
        for end, side in zip(ends, ("lower", "upper"), strict=True):
            if np.isfinite(end):
                moved = q.copy()
                moved[:, c] = end
                moved = np.array([robot.coupled(one) for one in moved])
                own = [f"{place} with {names[c]} at its {side} limit" for place in places]
                found.append(_states(law, moved, np.zeros((len(q), law.ns)), own))
    return found


def _box(
    law: LawCore,
    robot: Mechanism,
    first: np.ndarray,
    ranges: Mapping[str, Any],
    speeds: Mapping[str, float] | ArrayLike,
) -> tuple[np.ndarray, np.ndarray]:
    """Configurations and shape velocities of samples of a box."""
    where, names = f"servo of `{law.name}`, torque reserve", law.model.shape_names
    ends = np.column_stack([first, first])
    for name, pairs in ranges.items():
        own = ends[robot.q_slice(name)]
        given = np.reshape(as_floats(pairs, f"{where}, range of `{name}`"), (-1, 2))
        if given.shape != own.shape or not (given[:, 0] <= given[:, 1]).all():
            raise OutputError(
                f"{where}, range of `{name}`",
                expected=f"{len(own)} pair(s) of lower and upper end",
                came=f"{pairs!r:.60}",
                cure="Give a pair for each coordinate of the joint, rad or m.",
            )
        own[:] = given
    if isinstance(speeds, Mapping):
        speeds = dict.fromkeys(names, 0.0) | dict(speeds)
    fastest = read_each(f"{where}, `speeds`", speeds, names, "shape velocity", zero=True)
    shares = scipy.stats.qmc.Sobol(law.nq + law.ns, scramble=False).random(SAMPLES)
    shares[0] = 0.5
    q = ends[:, 0] + shares[:, : law.nq] * (ends[:, 1] - ends[:, 0])
    q = np.array([robot.coupled(robot.normalize(one)) for one in q])
    return q, (2.0 * shares[:, law.nq :] - 1.0) * fastest


class _Program:
    """Matrices of the linear program at states: of controls, their limits, and joints' rows."""

    def __init__(self, law: LawCore) -> None:
        model, q, v = law.model, ca.SX.sym("q", law.nq), ca.SX.sym("v", law.nv)
        forces = ca.horzcat(model.mass_matrix(q), model.shape_forces(q, v, ca.SX(law.ns, 1)))
        torques = controls(model, q, forces, law.torque_weights)[0]
        parts = [torques[:, : law.ns]]
        more = law.nu - model.nd
        if more:
            parts.append(unfelt(model.effect(q), law.torque_weights))
        rows = limit_rows(law, q, v)
        self.names = [row.names[0] for row in rows]
        self.limited, self._of_joints = len(rows), np.array([row.of_joint for row in rows])
        lengths = [ca.fmax(ca.norm_2(row.row), TINY) for row in rows]
        ends = [(part - row.drift for part in row.bounds) for row in rows]
        wide = [ca.horzcat(r.row, ca.SX(1, more) if r.unfelt is None else r.unfelt) for r in rows]
        scaled = [
            (whole / length, *(end / length for end in pair))
            for whole, length, pair in zip(wide, lengths, ends, strict=True)
        ]
        barriers = [ca.vertcat(*column) for column in zip(*scaled, strict=True)] or [
            ca.SX(0, law.ns + more), ca.SX(0, 1), ca.SX(0, 1)
        ]  # fmt: skip
        results = [ca.horzcat(*parts), torques[:, law.ns :], *torque_bounds(law, q, v), *barriers]
        self._at = ca.Function("reserve", [q, v], [*map(ca.densify, results)], {"cse": True})

    def __call__(self, states: _States, of_joints: bool = False) -> list[list[np.ndarray]]:
        """Of each state: map and offset of the controls, lower and upper limits, rows, their ends.

        Vectors are flat. On request rows are those of joints alone, for states that others exclude.
        """
        found = []
        for q, v in zip(states.q, states.v, strict=True):
            parts = [np.array(part) for part in self._at(q, v)]
            if of_joints:
                parts[4:] = [part[self._of_joints] for part in parts[4:]]
            found.append([part if k in (0, 4) else part.ravel() for k, part in enumerate(parts)])
        return found


def _largest(
    law: LawCore, program: list[list[np.ndarray]], states: _States, rest: bool
) -> tuple[float, tuple[str, str]]:
    """The largest share needed; and in words which control needs what, its limit, and where."""
    needed, u = _solved(law, program, rest)
    k = int(np.argmax(needed))
    where, share = f"at {states.places[k]}", float(needed[k])
    if np.isnan(u[k]).any():
        return share, ("no torques are enough", where)
    low, high = program[k][2:4]
    i = int(np.argmax(_shares(u[k], low, high)))
    name, unit, own = law.model.control_names[i], law.model.control_units[i], float(u[k, i])
    most = float(high[i] if own >= 0.0 else low[i])
    most, own = (abs(most), abs(own)) if most * own > 0.0 else (most, own)
    there = f", {most:.3g} {unit} are available {where}"
    return share, (f"{name} needs {own:.3g} {unit}", there)


def _shares(u: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Share of its limit that each control takes; infinite where it cannot push this way."""
    slack = TINY * np.fmax(np.fmax(np.abs(low), np.abs(high)), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        up = np.where(high > 0.0, u / high, np.where(u <= high + slack, 0.0, np.inf))
        down = np.where(low < 0.0, u / low, np.where(u >= low - slack, 0.0, np.inf))
    return np.asarray(np.maximum(np.maximum(up, down), 0.0))


def _solved(
    law: LawCore, program: list[list[np.ndarray]], rest: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Smallest share needed at each state, shape (k,), and its controls (k, nu)."""
    more = law.nu - law.ns
    if rest and not more:
        u = np.array([parts[1] for parts in program])
        return np.array([_shares(*parts[1:4]).max() for parts in program]), u
    blocks, ends = list[np.ndarray](), list[np.ndarray]()
    for matrix, offset, low, high, rows, least, most in program:
        own, sides = matrix[:, law.ns :] if rest else matrix, (high, -low)
        parts, limits = list[np.ndarray](), list[np.ndarray]()
        for sign, side in zip((1.0, -1.0), sides, strict=True):
            # With the last unknown, the share: u - share upper <= 0, where upper is above zero.
            size = np.where(np.isfinite(side) & (side != 0.0), np.abs(side), 1.0)
            grown = np.where(np.isfinite(side), np.maximum(side, 0.0), 0.0)
            parts.append(np.hstack([sign * own, -grown[:, None]]) / size[:, None])
            fixed = np.where(np.isfinite(side), np.minimum(side, 0.0), np.inf)
            limits.append((fixed - sign * offset) / size)
        if not rest:
            wide = np.hstack([rows, np.zeros((len(rows), 1))])
            parts += [wide, -wide]
            limits += [most, -least]
        blocks.append(np.vstack(parts))
        ends.append(np.concatenate(limits))
    alive = list(range(len(blocks)))
    found = _linear(blocks, ends)
    if not found.success:
        alive = [k for k in alive if _linear(blocks[k : k + 1], ends[k : k + 1]).success]
        found = _linear([blocks[k] for k in alive], [ends[k] for k in alive]) if alive else found
    needed, u = np.full(len(blocks), np.inf), np.full((len(blocks), law.nu), np.nan)
    for k, x in zip(alive, np.split(found.x, len(alive)) if alive else [], strict=True):
        matrix, offset = program[k][:2]
        needed[k], u[k] = x[-1], (matrix[:, law.ns :] if rest else matrix) @ x[:-1] + offset
    return needed, u


def _linear(blocks: list[np.ndarray], ends: list[np.ndarray]) -> Any:
    """Independent linear programs as one: the least of the last unknown, which is not negative."""
    width = blocks[0].shape[1]
    cost = np.tile(np.r_[np.zeros(width - 1), 1.0], len(blocks))
    bounds = [*[(None, None)] * (width - 1), (0.0, None)] * len(blocks)
    rows, limits = scipy.sparse.block_diag(blocks, "csr"), np.concatenate(ends)
    use = np.isfinite(limits)
    return scipy.optimize.linprog(
        cost, A_ub=rows[use], b_ub=limits[use], bounds=bounds, method="highs"
    )
