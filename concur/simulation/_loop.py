"""A closed loop as two graphs: a tick of the law, a step of the plant.

The state x holds configuration and velocity, work, the law's memory, and the states of drives; the
numbers p of a world are those of its robot, followed by those of its uncertain imperfections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import Sizes
from concur.control import (
    KEPT,
    TickStatus,
    TrackingLaw,
    decoupling_margin,
    taken_velocities,
    tick_function,
)
from concur.simulation._drives import Drives
from concur.simulation._imperfections import Imperfections, Scalar
from concur.simulation._motors import motor_numbers
from concur.simulation._plant import Plant
from concur.simulation._run_data import coordinate_signals, error_parts, limit_signals
from concur.simulation._step import MOVING, Step, split

FORCE_STATES = ("work", "torque", "load")
FORCE_UNIT = 2.0**40
"""Unit of these states, SI: no size of a robot makes them reach the bound of divergence.

A power of two, so that it changes no bit of the results."""

_Ticked = tuple[dict[str, ca.MX], ca.MX, list[ca.MX]]


@dataclass(frozen=True, eq=False)
class Loop:
    """A closed loop as graphs; `Program` describes its fields."""

    law: TrackingLaw
    plant: Plant
    imperfections: Imperfections
    uncertain: tuple[Scalar, ...]
    dt: float
    steps_per_tick: int
    method: str
    ideal: bool = False

    @cached_property
    def states(self) -> dict[str, slice]:
        """Parts of x by name."""
        drives = self.drives
        sizes = {
            "q": self.plant.nq,
            "v": self.plant.nv,
            "work": 1,
            "law": KEPT + self.law.nz,
            "torque": len(drives.lagging),
            "spring": len(drives.flexible),
            "motor": len(drives.flexible),
            "load": self.plant.nl,
            "heat": len(drives.heated),
            "time": 1,
        }
        ends = np.cumsum([0, *sizes.values()]).tolist()
        return {name: slice(*ends[k : k + 2]) for k, name in enumerate(sizes)}

    @property
    def noises(self) -> int:
        """Number of standard normal numbers of a tick."""
        return len(self.drives.noisy)

    @cached_property
    def signals(self) -> tuple[str, ...]:
        """Names of the signals, those of the tick first."""
        plant = self.plant
        kinds = {
            "speed": plant.robot.freedom_names,
            "slip": plant.wheel_names,
            "load": plant.load_names,
            "tipping": plant.edge_names,
            "motor_speed": tuple(self._shared),
            "heat": motor_numbers("continuous", plant.robot),
        }
        of_step = (f"{kind}:{name}" for kind, names in kinds.items() for name in names)
        return (*self._of_tick, *of_step)

    @property
    def _shared(self) -> dict[str, tuple[float, np.ndarray]]:
        """Motors with several joints whose speed has a limit."""
        return getattr(self.plant.robot, "motor_speeds", {})

    @property
    def tick_signals(self) -> int:
        """Number of signals of the tick."""
        return len(self._of_tick)

    @cached_property
    def _of_tick(self) -> tuple[str, ...]:
        rolls = self.plant.slip is None and self.plant.nf
        return (
            *("status", "margin"),
            *("error:" + ":".join(name) for name, _, _ in error_parts(self.law.outputs)),
            *(f"torque:{name}" for name in self.law.model.control_names),
            *coordinate_signals(self.plant.robot),
            *("pivot", *(["constraint"] if rolls else [])),
            *limit_signals(self.law),
        )

    @property
    def nx(self) -> int:
        """Length of the state x."""
        return int(self.states["time"].stop)

    @property
    def n_numbers(self) -> int:
        """Length of the numbers p."""
        return self.plant.n_numbers + len(self._inputs) + self.ideal

    @property
    def sizes(self) -> Sizes:
        """Lengths of the inputs and results of the graphs."""
        law, plant = self.law, self.plant
        nr = sum(law.sampled.values()) * (1 if self.steps_per_tick else 3) + 1
        if not self.ideal:
            ny, of_step = self.tick_signals, len(self.signals) - self.tick_signals
        else:
            ends = 2 * (plant.nq + plant.nv + law.nu)
            ny, of_step = 2 + law.size + len(law.limit_names), ends
            if not self.steps_per_tick:
                ny, of_step = ny + ends, 0
        return Sizes(self.nx, self.n_numbers, nr, self.noises, law.nu, ny, of_step)

    @property
    def control_period(self) -> float:
        """Control period, s."""
        return self.dt * (self.steps_per_tick or 1)

    def state(self, x: np.ndarray, name: str) -> np.ndarray:
        """Part of states x in SI units.

        Parameters
        ----------
        x : numpy.ndarray
            States, shape (..., nx).
        name : str
            One of `states`.

        Returns
        -------
        numpy.ndarray
            Shape (..., n).
        """
        return x[..., self.states[name]] * (FORCE_UNIT if name in FORCE_STATES else 1.0)

    @cached_property
    def tick(self) -> ca.Function:
        """Tick of the law."""
        sizes = self.sizes
        given = {"x": sizes.nx, "p": sizes.np, "r": sizes.nr, "n": sizes.noises}
        x, p, r, n = (ca.MX.sym(name, size) for name, size in given.items())
        make = self._sampled if self.steps_per_tick else self._continuous
        after, u, rows = make(self._parts(x), p, r, n)
        results = [self._together(after), u, ca.densify(ca.vertcat(*rows))]
        return ca.Function("tick", [x, p, r, n], results, [*given], ["x_next", "u", "y"])

    @cached_property
    def step(self) -> ca.Function:
        """Step of the plant under a held command."""
        plant = self.plant
        x, p, u = (
            ca.MX.sym(*of) for of in (("x", self.nx), ("p", self.n_numbers), ("u", plant.nu))
        )
        part, step = self._stepped(self._parts(x), p, u)
        own, signals = p[: plant.n_numbers, :], [part["v"]]
        if self.ideal:
            signals = step.rows[-2:]
        elif plant.slip is not None:
            signals += [plant.slip_speeds(part["q"], part["v"], own), part["load"]]
            signals += [plant.tipping(part["q"], part["load"], own)] if plant.edges else []
        if not self.ideal:
            signals += [ca.DM(row).T @ part["v"] for _, row in self._shared.values()]
            signals.append(part["heat"])
        results = [self._together(part), ca.vertcat(*signals)]
        return ca.Function("step", [x, p, u], results, ["x", "p", "u"], ["x_next", "y"])

    def _sampled(self, part: dict[str, ca.MX], p: ca.MX, r: ca.MX, n: ca.MX) -> _Ticked:
        """State, command and signals after a tick that reads the state."""
        law, plant, drives = self.law, self.plant, self.drives
        own, w = p[: plant.n_numbers, :], self._deviations(p)
        q, v = drives.measured_function()(part["q"], part["v"], w, n)
        seen = q, taken_velocities(law, v)
        period = self.steps_per_tick * self._h(p)
        found = self._law(seen, split(r, law.sampled), part["law"], period)
        u, pivot, missed, scale, active, status, part["law"] = found
        part["time"] = r[-1]
        # Drives start with the first command as their torque.
        loaded = drives.loaded_function()(u, w)
        for name, start in zip(("torque", "spring"), loaded, strict=True):
            part[name] = ca.if_else(r[-1] <= 0.0, start, part[name])
        if self.ideal:
            return part, u, [status, missed, scale, active]
        rows = [status, *self._judged(part["q"], r[: law.pose_size, :]), u, part["q"], pivot]
        if plant.slip is None and plant.nf:
            rows.append(self._residual(part["q"], part["v"], own))
        if law.limit_names:
            rows += [ca.mmax(active), active]
        return part, u, rows

    def _continuous(self, part: dict[str, ca.MX], p: ca.MX, r: ca.MX, n: ca.MX) -> _Ticked:
        """State after a step in which the law acts, its torque at the start, and signals."""
        demand, part["time"] = ca.reshape(r[:-1], -1, 3), r[-1]
        after, step = self._stepped(part, p, demand)
        pivot, u, *others = step.rows
        fine = pivot >= self.law.singular_margin
        status = ca.if_else(fine, float(TickStatus.OK), float(TickStatus.SINGULAR))
        return after, u, [status, *others]

    def _h(self, p: ca.MX) -> ca.MX | float:
        """The step, s."""
        return p[-1] if self.ideal else self.dt

    def _deviations(self, p: ca.MX) -> ca.MX:
        """Numbers of the uncertain imperfections."""
        return p[self.plant.n_numbers : self.n_numbers - self.ideal, :]

    def _stepped(
        self, part: dict[str, ca.MX], p: ca.MX, command: ca.MX
    ) -> tuple[dict[str, ca.MX], Step]:
        """Parts of a state after a step, and the step."""
        drives, w, h = self.drives, self._deviations(p), self._h(p)
        part, acts = dict(part), not self.steps_per_tick
        p = p[: self.n_numbers - self.ideal, :]
        step = Step(self.plant, drives, self.method, self.law if acts else None)
        if not acts:
            command, part["torque"] = drives.torque_function()(command, part["torque"], w)
        active = drives.active_function()(part["time"])
        memory = part["law"]
        part["z"] = memory[KEPT:, :] if acts else ca.MX(0, 1)
        state = [part[name] for name in MOVING]
        moved = step(state, h, _at_nodes(command), _at_nodes(active), p)
        part |= dict(zip(MOVING, moved, strict=True))
        if acts:
            part["law"] = ca.vertcat(memory[:KEPT, :], part["z"])
        part["time"] = part["time"] + h
        return part, step

    def _law(
        self, seen: Any, sampled: list[ca.MX], memory: ca.MX, period: ca.MX | float
    ) -> list[ca.MX]:
        """Results of the law's tick (u, pivot, missed, scale, active, status), and its memory."""
        law = self.law
        others = [ca.MX(ca.DM(law.model.momentum))] if "momentum" in law.inputs else []
        others += [ca.MX(period)] if law.nz else []
        # States stay below 1e6: the size of the answer, a sum of squares, is kept as its root.
        before = ca.vertcat(memory[0], memory[1] ** 2, memory[KEPT:, :])
        tick = tick_function(law, watched=True)
        results = tick.call([*seen, *sampled, *others, before])
        found = {"active": ca.MX(0, 1)} | dict(zip(tick.name_out(), results, strict=True))
        after = found["after"]
        names = ("u", "pivot", "missed", "scale", "active", "status")
        memory = ca.vertcat(after[0], ca.sqrt(after[1]), after[KEPT:, :])
        return [*(found[name] for name in names), memory]

    def _judged(self, q: ca.MX, pose: ca.MX) -> list[ca.MX]:
        """Decoupling margin, and norms of the errors of outputs, m and rad apart."""
        law, at, due = self.law, ca.SX.sym("q", q.shape[0]), ca.SX.sym("pose", pose.shape[0])
        x = law.pose_error(at, due) if law.size else ca.SX(0, 1)
        parts = [places.tolist() for _, _, places in error_parts(law.outputs)]
        norms = [ca.norm_2(x[places, :]) for places in parts]
        margin = ca.Function("margin", [at], [decoupling_margin(law, at)], {"cse": True})
        errors = ca.Function("errors", [at, due], [ca.vertcat(ca.SX(0, 1), *norms)])
        return [margin(q), errors(q, pose)]

    @property
    def _residual(self) -> ca.Function:
        """Largest residual of the constraints of wheels that roll, m/s, from (q, v, numbers)."""
        plant = self.plant
        sizes = {"q": plant.nq, "v": plant.nv, "p": plant.n_numbers}
        q, v, p = (ca.SX.sym(name, size) for name, size in sizes.items())
        rows = plant.symbolic(p).constraints(q)
        return ca.Function("residual", [q, v, p], [ca.norm_inf(rows @ v)])

    def _parts(self, x: ca.MX) -> dict[str, ca.MX]:
        """Parts of a state in SI units."""
        parts = {name: x[span, :] for name, span in self.states.items()}
        return parts | {name: FORCE_UNIT * parts[name] for name in FORCE_STATES}

    def _together(self, parts: dict[str, ca.MX]) -> ca.MX:
        """State of its parts."""
        parts = parts | {name: parts[name] / FORCE_UNIT for name in FORCE_STATES}
        return ca.vertcat(*(parts[name] for name in self.states))

    @property
    def _where(self) -> str:
        return f"imperfect `{self.plant.name}`"

    @property
    def _inputs(self) -> tuple[Scalar, ...]:
        """Uncertain imperfections in the order of p."""
        return tuple(key for key in self.uncertain if key[0] != "timing")

    @cached_property
    def drives(self) -> Drives:
        """Drives of the robot as graphs."""
        return Drives(self.imperfections, self.plant.robot, self._inputs, self.dt)


def _at_nodes(columns: ca.MX) -> Callable[[float], ca.MX]:
    """Column of a node from 0 to 1."""
    return lambda node: columns[:, round(2 * node)]
