"""Ways through the ideal loop of a program, recorded at each step: fixed steps, and SciPy's."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np
from scipy.integrate import solve_ivp

from concur.codegen import Evaluator
from concur.control import KEPT, Tick
from concur.outputs.references import Reference
from concur.simulation._integrator import ADAPTIVE, FASTEST
from concur.simulation._program import FORCE_STATES, FORCE_UNIT, Program
from concur.simulation._step import MOVING, graph_of, rate_function, split
from concur.system import System

CHECK_EVERY = 200
"""Steps between two checks of the decoupling margin."""


class Loop(ABC):
    """States of a run while it is computed, and what the law gave; NaN where nothing was computed.

    Parameters
    ----------
    program : Program
        The loop.
    reference : Reference
        What the law follows.
    p, x : numpy.ndarray
        Numbers of the world, and its state at the start, shapes (np,) and (nx,).
    steps : int
        Steps in the run.

    Attributes
    ----------
    x : numpy.ndarray
        States, shape (steps + 1, nx).
    u, missed, scale : numpy.ndarray
        What the law gave, shapes (steps + 1, nu), (steps + 1, size) and (steps + 1,).
    margin, orientation : numpy.ndarray
        Of the decoupling matrix, shape (steps + 1,).
    low, high : numpy.ndarray
        Smallest and largest (q, v, u) of the stages of the step that leads to a state, shape
        (steps + 1, nq + nv + nu).
    """

    def __init__(
        self, program: Program, reference: Reference, p: np.ndarray, x: np.ndarray, steps: int
    ) -> None:
        self.program, self.reference, self.numbers, self.steps = program, reference, p, steps
        law, plant, rows = program.law, program.plant, steps + 1
        self.x = np.full((rows, program.nx), np.nan)
        self.u, self.missed = np.full((rows, law.nu), np.nan), np.full((rows, law.size), np.nan)
        self.scale, self.margin, self.orientation = np.full((3, rows), np.nan)
        self.low, self.high = np.full((2, rows, plant.nq + plant.nv + law.nu), np.nan)
        self.x[0] = x

    @property
    def period(self) -> int:
        """Steps in a period of the law."""
        return self.program.steps_per_tick or 1

    @property
    def q(self) -> np.ndarray:
        """Configurations, a view."""
        return self.x[:, self.program.states["q"]]

    @property
    def v(self) -> np.ndarray:
        """Velocities, a view."""
        return self.x[:, self.program.states["v"]]

    @abstractmethod
    def advance(self, first: int) -> tuple[int, bool]:
        """Go on from a state; return the last step that was tried and whether it is valid."""

    def complete(self, count: int, done: int) -> None:
        """Fill in the law at the last of `count` states, when `done` steps were tried."""
        if self.program.steps_per_tick:
            # The residual stays that of the instant at which the torque was computed.
            kept = np.minimum(np.arange(count), done - 1)
            for rows in (self.u, self.missed, self.scale):
                rows[:count] = rows[kept]

    def arrays(self, count: int) -> dict[str, np.ndarray]:
        """Rows of the first states, as for `recorded_run`."""
        x, state = self.x[:count], self.program.state
        found = {"acceleration_residual": self.missed, "scale": self.scale, "u": self.u}
        found |= {"margin": self.margin, "low": self.low, "high": self.high}
        return {
            **{name: rows[:count] for name, rows in found.items()},
            **{name: state(x, name) for name in ("q", "v", "load")},
            "t": np.arange(count) * self.program.dt,
            "work": state(x, "work")[:, 0],
        }

    def finite(self, done: int, first: int = 0) -> int:
        """Count the leading valid states among done + 1; those before `first` are valid."""
        rows = slice(first, done + 1)
        good = np.isfinite(self.q[rows]).all(axis=1)
        good &= (np.abs(self.v[rows]) < FASTEST).all(axis=1)
        return first + int(np.argmin(good)) if not good.all() else done + 1

    def sample(self, times: np.ndarray) -> np.ndarray:
        """Inputs `sampled` of the law at some times, one row each."""
        sampled = self.program.law.sampled
        parts = (*self.reference.sample(times), times[:, None])[: len(sampled)]
        return np.column_stack([np.zeros((len(times), 0)), *parts])


class FixedStep(Loop):
    """Runge-Kutta steps, many in one call.

    Parameters
    ----------
    function : casadi.Function, optional
        Machine code of `Program.advance`; default the interpreted graph.
    """

    def __init__(
        self,
        program: Program,
        reference: Reference,
        p: np.ndarray,
        x: np.ndarray,
        steps: int,
        function: ca.Function | None = None,
    ) -> None:
        super().__init__(program, reference, p, x, steps)
        held = bool(program.steps_per_tick)
        if function is None:
            # The law is evaluated at the last state too.
            periods = -(-(steps + (not held)) // self.period)
            calls = -(-periods // most_periods(program))
            function = program.advance(-(-periods // calls))
        self._many = self._evaluator(function)
        self._single: Evaluator | None = None
        self._known = -1  # row up to which the law is known
        if held:
            self._rows = self.sample(np.arange(0, steps, self.period) * program.dt)
        else:
            self._rows = self.sample(np.arange(2 * steps + 1) * (program.dt / 2))

    def _evaluator(self, function: ca.Function) -> Evaluator:
        shapes = [function.size_out(i) for i in range(function.n_out())]
        made = Evaluator(function, shapes, f"simulation of `{self.program.plant.name}`")
        made.inputs[1][:] = self.numbers[:, None]
        made.inputs[2][:] = self.program.dt
        return made

    def advance(self, first: int) -> tuple[int, bool]:
        found = self._run(self._many, first)
        if found is not None:
            return self._keep(first, found)
        # A solver failed: find out where.
        if self._single is None:
            self._single = self._evaluator(self.program.advance(1))
        for k in range(first, self.steps, self.period):
            found = self._run(self._single, k)
            if found is None:
                return k + 1, False
            done, sound = self._keep(k, found)
            if not sound:
                break
        return done, sound

    def complete(self, count: int, done: int) -> None:
        super().complete(count, done)
        last = count - 1
        if not self.program.steps_per_tick and last > self._known:
            # The law at the end is the start of a step that leads out of the run.
            found = self._run(self._many, last)
            if found is not None:
                self._keep_law(last, 1, found)

    def _run(self, function: Evaluator, first: int) -> list[np.ndarray] | None:
        """Rows from a state on; beyond the end of the run the demand stands still."""
        x, *_, demand = function.inputs
        x[:, 0] = self.x[first]
        if self.program.steps_per_tick:
            places = first // self.period + np.arange(demand.shape[1])
        else:
            steps = first + np.arange(demand.shape[1] // 3)
            places = (2 * steps[:, None] + np.arange(3)).ravel()
        demand[:] = self._rows[np.minimum(places, len(self._rows) - 1)].T
        function.trigger()
        return [view.T for view in function.outputs] if function.succeeded else None

    def _keep(self, first: int, found: list[np.ndarray]) -> tuple[int, bool]:
        x, verdict, low, high = found[0], found[1][:, 0], *found[5:]
        count, spans = min(len(x), self.steps - first), self.program.states
        good = np.abs(x[:count, spans["v"]]).max(axis=1, initial=0.0) < FASTEST
        if self.program.steps_per_tick:
            ticked = np.repeat(verdict == 0.0, self.period)[:count]
        else:
            ticked = good = good & (verdict[:count] >= self.program.law.singular_margin)
        sound = good & ticked
        done = count if sound.all() else int(np.argmin(sound)) + 1
        self._keep_law(first, min(done + 1, len(x), self.steps + 1 - first), found)
        # Without a torque the robot has not moved.
        moved = done if not self.program.steps_per_tick or ticked[done - 1] else done - 1
        after = slice(first + 1, first + 1 + moved)
        self.x[after], self.low[after], self.high[after] = x[:moved], low[:moved], high[:moved]
        return first + done, bool(sound.all())

    def _keep_law(self, first: int, count: int, found: list[np.ndarray]) -> None:
        rows = slice(first, first + count)
        for known, given in zip((self.u, self.missed, self.scale), found[2:5], strict=True):
            values = np.repeat(given, self.period, axis=0)[:count]
            known[rows] = values if known.ndim > 1 else values[:, 0]
        self._known = first + count - 1


def most_periods(program: Program) -> int:
    """Periods between two checks of the decoupling margin."""
    return max(1, CHECK_EVERY // (program.steps_per_tick or 1))


class Adaptive(Loop):
    """SciPy's integrators over one step of the record.

    Parameters
    ----------
    robot : System
        The robot of the world.
    function : casadi.Function, optional
        Machine code of `rates_of`.
    tolerances : tuple of float
        Relative and absolute tolerance.
    """

    def __init__(
        self,
        program: Program,
        reference: Reference,
        p: np.ndarray,
        x: np.ndarray,
        steps: int,
        robot: System,
        function: ca.Function | None = None,
        tolerances: tuple[float, float] = (1e-10, 1e-12),
    ) -> None:
        super().__init__(program, reference, p, x, steps)
        self._rtol, self._atol = tolerances
        plant, where = program.plant, f"simulation of `{program.plant.name}`"
        function = rates_of(program) if function is None else function
        shapes = [function.size_out(i) for i in range(function.n_out())]
        self._rates = Evaluator(function, shapes, where)
        self._inputs = dict(zip(function.name_in(), self._rates.inputs, strict=True))
        self._inputs["p"][:, 0] = p
        self._robot, drives = robot, program.drives
        self._sticking = drives.sticking_functions(plant) if drives.dry else None
        # Quaternions leave the unit sphere within a step, which the robot's own method refuses.
        turn = graph_of(plant.robot.rate, "rate", plant.nq, plant.nv)
        self._turn = Evaluator(turn, [(plant.nq,)], where)
        self._tick: Tick | None = None
        if program.steps_per_tick:
            # A loop in Python has too few ticks for a compiler to pay off.
            self._tick = Tick(program.law, interpreted=True)
            self._tick.buffers.period[:] = program.control_period
        states, units = program.states, np.ones(program.nx)
        for name in FORCE_STATES:
            units[states[name]] = FORCE_UNIT
        self._memory = slice(states["law"].start + KEPT, states["law"].stop)
        parts = states["q"], states["v"], states["work"], self._memory, states["load"]
        self._places = np.r_[parts]
        self._units = units[self._places]

    def advance(self, first: int) -> tuple[int, bool]:
        for k in range(first, min(first + self.period * most_periods(self.program), self.steps)):
            if not self._one(k):
                return k + 1, False
        return k + 1, True

    def complete(self, count: int, done: int) -> None:
        super().complete(count, done)
        if not self.program.steps_per_tick:
            times = np.arange(count) * self.program.dt
            for k, row in enumerate(self.sample(times)):
                self._slope(row, self.x[k, self._places] * self._units)
                self._keep_law(k)

    def _keep_law(self, k: int) -> None:
        self.u[k], _, self.missed[k], scale = (
            view[:, 0] for view in self._rates.outputs[len(MOVING) - 1 :]
        )
        self.scale[k] = scale[0]

    def _slope(self, command: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Rates of (q, v, work, z, loads) under a command."""
        inputs, (nq, nv) = self._inputs, (self.program.plant.nq, self.program.plant.nv)
        nz = 0 if self._tick is not None else self.program.law.nz
        inputs["q"][:, 0], inputs["v"][:, 0] = y[:nq], y[nq : nq + nv]
        inputs["z"][:, 0] = y[nq + nv + 1 :][:nz]
        inputs["load"][:, 0] = y[nq + nv + 1 + self.program.law.nz :]
        inputs["command"][:, 0] = command
        self._rates.trigger()
        if not self._rates.succeeded:
            raise FloatingPointError
        vdot, work, moving, _, _, load = (view[:, 0] for view in self._rates.outputs[:6])
        still = np.zeros(self.program.law.nz - nz)
        turned = self._turn(y[:nq], y[nq : nq + nv])
        return np.concatenate([turned, vdot, work, moving, still, load])

    def _one(self, k: int) -> bool:
        plant, h = self.program.plant, self.program.dt
        if self._tick is not None and not self._ticked(self._tick, k):
            return False

        def slope(t: float, y: np.ndarray) -> np.ndarray:
            held = self._tick is not None
            return self._slope(self.u[k] if held else self.sample(np.array([t]))[0], y)

        start, span = self.x[k, self._places] * self._units, (k * h, (k + 1) * h)
        method = ADAPTIVE[self.program.method]
        try:
            response = self._stick(slope, span[0], start)
            end = solve_ivp(slope, span, start, method=method, rtol=self._rtol, atol=self._atol)
        except (ValueError, FloatingPointError):
            return False
        if not end.success or not np.abs(end.y[:, -1]).max() < FASTEST:
            return False
        # The ends of the integrator's own steps count as stages.
        met = []
        for t, y in zip(end.t, end.y.T, strict=True):
            slope(t, y)
            u = self._rates.outputs[len(MOVING) - 1][:, 0]
            met.append(np.concatenate([y[: plant.nq + plant.nv], u]))
        self.low[k + 1], self.high[k + 1] = np.min(met, axis=0), np.max(met, axis=0)
        y = end.y[:, -1]
        y[: plant.nq] = self._robot.check_configuration(y[: plant.nq])
        if self._sticking is not None:
            self._correct(y, response)
        self.x[k + 1] = self.x[k]
        self.x[k + 1, self._places] = y / self._units
        return True

    def _ticked(self, tick: Tick, k: int) -> bool:
        """Compute the command of a period at its start, and keep it."""
        law, buffers = self.program.law, tick.buffers
        if k % self.period:
            rows = (self.u, self.missed, self.scale)
            for known in rows:
                known[k] = known[k - 1]
            return True
        buffers.q[:], buffers.s[:] = self.q[k], law.law_velocities(self.v[k])
        parts = split(self.sample(np.array([k * self.program.dt])).T, law.sampled)
        for name, part in zip(law.sampled, parts, strict=True):
            getattr(buffers, name)[:] = part[:, 0]
        sound = tick.run() == 0
        self.u[k], self.missed[k] = buffers.u, buffers.acceleration_residual
        self.scale[k] = buffers.scale[0]
        self.x[k, self._memory] = buffers.state
        return sound

    def _stick(self, slope: Callable[..., np.ndarray], t: float, y: np.ndarray) -> list[Any]:
        """Set the shares of dry friction for a step, and return what controls move."""
        if self._sticking is None:
            return []
        share, plant = self._inputs["share"], self.program.plant
        share[:] = 0.0
        slope(t, y)
        vdot, u = self._rates.outputs[0][:, 0], self._rates.outputs[len(MOVING) - 1][:, 0]
        q, v, load = y[: plant.nq], y[plant.nq :][: plant.nv], y[len(y) - plant.nl :]
        empty, h = np.zeros(0), self.program.dt
        found = self._sticking[0](q, v, empty, load, u, vdot, empty, self.numbers, h)
        share[:] = found[0]
        return list(found[3:])

    def _correct(self, y: np.ndarray, response: list[Any]) -> None:
        """Correct the end of a step by dry friction, as `stepped` does."""
        plant, h = self.program.plant, self.program.dt
        q, v = y[: plant.nq], y[plant.nq :][: plant.nv]
        share, u = ca.DM(self._inputs["share"]), self._rates.outputs[len(MOVING) - 1][:, 0]
        assert self._sticking is not None
        found = self._sticking[1](q, v, np.zeros(0), self.numbers, share, h, *response)
        jump, _, faster = (np.array(part).ravel() for part in found)
        y[plant.nq + plant.nv] += h / 2 * (u @ faster)
        y[: plant.nq] = self._robot.integrate(q, h / 2 * jump)
        y[plant.nq :][: plant.nv] += jump


def rates_of(program: Program) -> ca.Function:
    """Rates of the loop: with its law, unless the command is held."""
    law = None if program.steps_per_tick else program.law
    return rate_function(program.plant, program.drives, law)
