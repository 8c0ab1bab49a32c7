"""Steps of a loop by SciPy's integrators, as functions that take the place of Runge-Kutta steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import casadi as ca
import numpy as np
import scipy

from concur.codegen import Evaluator
from concur.control import KEPT
from concur.outputs import Reference
from concur.simulation._grid import Grid
from concur.simulation._integrator import ADAPTIVE, FASTEST
from concur.simulation._loop import FORCE_STATES, FORCE_UNIT
from concur.simulation._program import Program
from concur.simulation._step import MOVING, graph_of, rate_function
from concur.system import System

U = len(MOVING) - 1
"""Place of the torque among the results of `rate_function`."""


class InPython(ca.Callback):  # type: ignore[misc]
    """A Python function as one of CasADi: NaN, and what it raises as `fault`, where it fails."""

    def __init__(
        self, name: str, given: Sequence[int], found: Sequence[int], of: Callable[..., Any]
    ) -> None:
        super().__init__()
        self._given, self._found, self._of = given, found, of
        self.fault: BaseException | None = None
        self.construct(name, {})

    def get_n_in(self) -> int:
        """Number of arguments."""
        return len(self._given)

    def get_n_out(self) -> int:
        """Number of results."""
        return len(self._found)

    def get_sparsity_in(self, i: int) -> ca.Sparsity:
        """Columns."""
        return ca.Sparsity.dense(self._given[i], 1)

    def get_sparsity_out(self, i: int) -> ca.Sparsity:
        """Columns."""
        return ca.Sparsity.dense(self._found[i], 1)

    def eval(self, arguments: Sequence[ca.DM]) -> list[np.ndarray]:
        """Results; CasADi itself would print what is raised."""
        try:
            return list(self._of(*(np.array(argument).ravel() for argument in arguments)))
        except BaseException as fault:
            self.fault = fault
            return [np.full(size, np.nan) for size in self._found]

    def check(self) -> None:
        """Raise what was raised in a call."""
        if self.fault is not None:
            raise self.fault


class AdaptiveSteps:
    """Steps of an ideal program by an adaptive method.

    Parameters
    ----------
    program : Program
        The loop.
    reference : Reference
        What a law follows that acts continuously.
    grid : Grid
        Steps, which end at the knots of the reference.
    robot : System
        The robot of the world.
    rates : casadi.Function
        `rates_of` the program, or its machine code.
    tolerances : tuple of float
        Relative and absolute tolerance.

    Attributes
    ----------
    graphs : tuple of casadi.Function
        Tick and step, as `Program.tick` and `Program.step`; a step is None if the law acts in it.
    step : InPython
        The one that moves the state.
    """

    def __init__(
        self,
        program: Program,
        reference: Reference,
        grid: Grid,
        robot: System,
        rates: ca.Function,
        tolerances: tuple[float, float],
    ) -> None:
        self._program, self._reference, self._grid, self._robot = program, reference, grid, robot
        self._rtol, self._atol = tolerances
        plant, where = program.plant, f"simulation of `{program.plant.name}`"
        shapes = [rates.size_out(i) for i in range(rates.n_out())]
        self._rates = Evaluator(rates, shapes, where)
        self._inputs = dict(zip(rates.name_in(), self._rates.inputs, strict=True))
        drives = program.drives
        self._sticking = drives.sticking_functions(plant) if drives.dry else None
        # Quaternions leave the unit sphere within a step, which the robot's own method refuses.
        turn = graph_of(plant.robot.rate, "rate", plant.nq, plant.nv)
        self._turn = Evaluator(turn, [(plant.nq,)], where)
        states, units = program.states, np.ones(program.nx)
        for name in FORCE_STATES:
            units[states[name]] = FORCE_UNIT
        memory = slice(states["law"].start + KEPT, states["law"].stop)
        parts = states["q"], states["v"], states["work"], memory, states["load"], states["heat"]
        self._places = np.r_[parts]
        self._units, sizes = units[self._places], program.sizes
        tick, step = [sizes.nx, sizes.np, sizes.nr, 0], [sizes.nx, sizes.np, sizes.nu]
        self.graphs: tuple[ca.Function, ca.Function | None]
        if program.steps_per_tick:
            self.step = InPython("step", step, [sizes.nx, sizes.ny_step], self._held)
            self.graphs = program.tick, self.step
        else:
            self.step = InPython("tick", tick, [sizes.nx, sizes.nu, sizes.ny], self._acting)
            self.graphs = self.step, None

    def _held(self, x: np.ndarray, p: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, ...]:
        after, *ends = self._moved(x, p, lambda _: u)
        return after, np.concatenate(ends)

    def _acting(
        self, x: np.ndarray, p: np.ndarray, r: np.ndarray, _: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        x[-1] = r[-1]
        begin, _, end = self._grid.nodes
        step = min(int(np.searchsorted(self._grid.ends, x[-1])), len(begin) - 1)
        demand = partial(self._demand, (begin[step], end[step]))
        self._slope(demand(x[-1]), x[self._places] * self._units, p)
        u, _, *others = (view[:, 0].copy() for view in self._rates.outputs[U : U + 5])
        after, *ends = self._moved(x, p, demand)
        return after, u, np.concatenate([[0.0], *others, *ends])

    def _demand(self, sides: tuple[float, float], t: float) -> np.ndarray:
        """Inputs `sampled` of the law, on one side of the knots at the ends of a step."""
        times = np.clip([t], *sides)
        parts = (*self._reference.sample(times), times[:, None])
        return np.concatenate(
            [np.zeros(0), *(p[0] for p in parts[: len(self._program.law.sampled)])]
        )

    def _slope(self, command: np.ndarray, y: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Rates of (q, v, work, z, loads, heat) under a command."""
        inputs, (nq, nv) = self._inputs, (self._program.plant.nq, self._program.plant.nv)
        law, held = self._program.law, bool(self._program.steps_per_tick)
        nz = 0 if held else law.nz
        inputs["q"][:, 0], inputs["v"][:, 0] = y[:nq], y[nq : nq + nv]
        inputs["z"][:, 0] = y[nq + nv + 1 :][:nz]
        behind = nq + nv + 1 + law.nz
        load, inputs["heat"][:, 0] = np.split(y[behind:], [self._program.plant.nl])
        inputs["load"][:, 0], inputs["p"][:, 0] = load, p[:-1]
        inputs["command"][:, 0] = command
        self._rates.trigger()
        if not self._rates.succeeded:
            raise FloatingPointError
        vdot, work, moving, _, _, *last = (view[:, 0] for view in self._rates.outputs[:U])
        still, turned = np.zeros(law.nz - nz), self._turn(y[:nq], y[nq : nq + nv])
        return np.concatenate([turned, vdot, work, moving, still, *last])

    def _moved(
        self, x: np.ndarray, p: np.ndarray, command: Callable[[float], np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """State after a step, and the smallest and largest (q, v, u) in it."""
        plant, law, h = self._program.plant, self._program.law, float(p[-1])
        start, begin = x[self._places] * self._units, float(x[-1])
        ends = np.full((2, plant.nq + plant.nv + law.nu), np.nan)
        method = ADAPTIVE[self._program.method]

        def slope(t: float, y: np.ndarray) -> np.ndarray:
            return self._slope(command(t), y, p)

        try:
            response = self._stick(slope, begin, start, p)
            span, tolerances = (begin, begin + h), {"rtol": self._rtol, "atol": self._atol}
            found = scipy.integrate.solve_ivp(slope, span, start, method=method, **tolerances)
        except (ValueError, FloatingPointError):
            return np.full(len(x), np.nan), *ends
        if not found.success or not np.abs(found.y[:, -1]).max() < FASTEST:
            return np.full(len(x), np.nan), *ends
        # The ends of the integrator's own steps count as stages.
        met = []
        for t, y in zip(found.t, found.y.T, strict=True):
            slope(t, y)
            met.append(np.concatenate([y[: plant.nq + plant.nv], self._rates.outputs[U][:, 0]]))
        y = found.y[:, -1]
        y[: plant.nq] = self._robot.check_configuration(y[: plant.nq])
        if self._sticking is not None:
            self._correct(y, p, response)
        after = x.copy()
        after[self._places], after[-1] = y / self._units, begin + h
        return after, np.min(met, axis=0), np.max(met, axis=0)

    def _stick(
        self, slope: Callable[..., np.ndarray], t: float, y: np.ndarray, p: np.ndarray
    ) -> list[Any]:
        """Set the shares of dry friction for a step, and return what controls move."""
        if self._sticking is None:
            return []
        share, plant = self._inputs["share"], self._program.plant
        share[:] = 0.0
        slope(t, y)
        vdot, u = self._rates.outputs[0][:, 0], self._rates.outputs[U][:, 0]
        q, v = y[: plant.nq], y[plant.nq :][: plant.nv]
        load = self._inputs["load"][:, 0]
        empty = np.zeros(0)
        found = self._sticking[0](q, v, empty, load, u, vdot, empty, p[:-1], p[-1])
        share[:] = found[0]
        return list(found[3:])

    def _correct(self, y: np.ndarray, p: np.ndarray, response: list[Any]) -> None:
        """Correct the end of a step by dry friction, as `stepped` does."""
        plant, h = self._program.plant, p[-1]
        q, v = y[: plant.nq], y[plant.nq :][: plant.nv]
        share, u = ca.DM(self._inputs["share"]), self._rates.outputs[U][:, 0]
        assert self._sticking is not None
        found = self._sticking[1](q, v, np.zeros(0), u, p[:-1], share, h, *response)
        jump, _, faster = (np.array(part).ravel() for part in found)
        y[plant.nq + plant.nv] += h / 2 * (u @ faster)
        y[: plant.nq] = self._robot.integrate(q, h / 2 * jump)
        y[plant.nq :][: plant.nv] += jump


def rates_of(program: Program) -> ca.Function:
    """Rates of the loop: with its law, unless the command is held."""
    law = None if program.steps_per_tick else program.law
    return rate_function(program.plant, program.drives, law)
