"""Campaign of a task: worlds to robustness of its requirements, by one compiled program."""

from __future__ import annotations

import hashlib
import math
import platform
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from concur._version import __version__
from concur.campaign._evaluator import key_of
from concur.campaign._result import CampaignResult, Method
from concur.codegen import Batch, Demand, Rolled, Rollout
from concur.control import Servo
from concur.errors import DescriptionError
from concur.io import Task, WorldInputs, WorldLoop
from concur.simulation import Run, ValidRange
from concur.worlds import Requirement
from concur.writers import to_toml

MOST_NUMBERS = 2**25
"""Numbers of references that are kept at once, 256 MB, if each world has its own."""

MOST_WORLDS = 64
"""Number of worlds whose inputs are computed at once: each invalid one costs a repetition."""

INVALID = "invalid"
"""Name of the column with the index of the range that makes a run invalid; -1 of a valid one."""

STOPPED = "stopped"
"""Name of the column with the time at which a world stopped."""


@dataclass(frozen=True, eq=False)
class _Ready:
    """Compiled loop of a campaign, and the demands on its signals."""

    loop: WorldLoop
    rollout: Rollout
    demands: tuple[Demand, ...]
    requirements: tuple[tuple[Requirement, slice], ...]
    extremes: tuple[tuple[str, slice], ...]
    ranges: tuple[ValidRange, ...]
    validity: slice
    of_range: NDArray[np.int64]
    lock: threading.Lock = field(default_factory=threading.Lock)


class Campaign:
    """Evaluator of a task: robustness of its requirements in worlds of its uncertainty.

    Robot, law and program are built and compiled once per process, at the first use. A world whose
    numbers are not physical has NaN in all columns: it fails every requirement.

    Parameters
    ----------
    task : Task
        Task with `uncertainty` and `requirements`.
    seed : int
        Seed of the draws, of jitter and of noise.

    Attributes
    ----------
    task : Task
        The task.
    seed : int
        The seed.
    looks : set of int
        Numbers of independent worlds at which `verify` has answered with this campaign.

    Raises
    ------
    DescriptionError
        If the task is one world of a campaign.

    Examples
    --------
    >>> from dataclasses import replace
    >>> import concur as cc
    >>> from concur.campaign import Campaign
    >>> from concur.worlds import Quantity, Requirement, Uncertainty, Uniform
    >>> mass = Quantity("mass", "forearm", Uniform(-0.05, 0.05), unit="kg")
    >>> slow = Requirement("speed", "speed forearm", (("speed:forearm", -3.0, 3.0),), 3.0, "rad/s")
    >>> task = cc.load_task("examples/rover_arm.toml")
    >>> task = replace(task, duration=0.01, requirements=(slow,), uncertainty=Uncertainty((mass,)))
    >>> campaign = Campaign(task)
    >>> worlds = task.uncertainty.draw(range(2))
    >>> values = campaign.evaluate(range(2), worlds)
    >>> campaign.columns[0], bool((values[:, 0] > 0).all())
    ('speed forearm', True)
    """

    def __init__(self, task: Task, seed: int = 0) -> None:
        if task.world is not None:
            raise DescriptionError(
                f"campaign of `{task.name}`",
                expected="a task with [uncertainty]",
                came="a task of one world, with [world]",
                cure="Use `concur track` for one world.",
            )
        self.task = task
        self.seed = seed
        self.looks: set[int] = set()

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the values: requirements, "extreme SIGNAL", "invalid" and "stopped", s."""
        names = [requirement.name for requirement in self.task.requirements]
        return (*names, *(f"extreme {name}" for name, _ in self._ready.extremes), INVALID, STOPPED)

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts that the values depend on, a short text or a hash by field."""
        task, ready, nominal = self.task, self._ready, self._nominal
        arrays = nominal.x0, nominal.p, nominal.reference, nominal.delay, nominal.jitter
        return {
            "task": task.name,
            "robot": _hash(to_toml(task.plant or task.robot)),
            "law": _hash(ready.loop.program.tick.serialize()),
            "nominal world": _hash(*(array.tobytes() for array in arrays)),
            "reference": _hash(repr(task.reference_tables)),
            "uncertainty": _hash(repr(task.uncertainty)),
            "requirements": _hash(repr(task.requirements)),
            "valid ranges": _hash(repr(ready.ranges)),
            "imperfections": _hash(repr(task.imperfections)),
            "seed": str(self.seed),
            "duration": f"{task.duration!r} s",
            "program": ready.rollout.key,
            "width": str(ready.rollout.width),
            "processor": f"{platform.machine()} {platform.processor()}".strip(),
            "casadi": ca.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "concur": __version__,
        }

    def prepare(self) -> None:
        """Build and compile the loop, once; refuse intervals with numbers that are not physical.

        Raises
        ------
        DescriptionError
            If an end of an interval gives numbers that are not physical, with file, table and
            field; or a requirement needs a signal that the loop lacks.
        """
        _ = self._ready

    def check(self) -> None:
        """As `prepare`, without the compile.

        Raises
        ------
        DescriptionError
            As for `prepare`.
        """
        _ = self._loop

    def evaluate(self, numbers: ArrayLike, worlds: ArrayLike) -> NDArray[np.float64]:
        """Evaluate worlds with one thread.

        Parameters
        ----------
        numbers : array_like of int
            Numbers of the worlds, shape (n,).
        worlds : array_like
            Deviations from nominal numbers, shape (n, d), as of `Uncertainty.draw`.

        Returns
        -------
        numpy.ndarray
            Values by `columns`, shape (n, m); NaN where the numbers of a world are not physical.
        """
        keys = np.asarray(numbers, dtype=np.int64)
        rows = np.asarray(worlds, dtype=float)
        ready = self._ready
        size = MOST_WORLDS
        if any(
            quantity.kind.startswith("reference.") for quantity in self.task.uncertainty.quantities
        ):
            size = max(1, min(size, MOST_NUMBERS // (ready.loop.ticks * ready.rollout.sizes.nr)))
        parts = [
            self._evaluated(ready, keys[at : at + size], rows[at : at + size])
            for at in range(0, len(keys), size)
        ]
        return np.concatenate([np.zeros((0, len(self.columns))), *parts])

    def reasons(self, worlds: ArrayLike) -> dict[int, str]:
        """Why the numbers of worlds are not physical.

        Parameters
        ----------
        worlds : array_like
            Deviations, shape (n, d).

        Returns
        -------
        dict of int to str
            Reason by row; empty if all worlds are physical.
        """
        rows, loop = np.asarray(worlds, dtype=float), self._ready.loop
        return {
            at + row: reason
            for at in range(0, len(rows), MOST_WORLDS)
            for row, reason in self._inputs(loop, rows[at : at + MOST_WORLDS]).invalid.items()
        }

    def replay(self, world: ArrayLike, number: int = 0) -> Run:
        """Run one world of the campaign with a full record: the same motion bit by bit.

        Parameters
        ----------
        world : array_like
            Deviations, shape (d,).
        number : int
            Number of the world.

        Returns
        -------
        Run
            The run, with a row for each control period.

        Raises
        ------
        DescriptionError
            If the numbers of the world are not physical.
        SimulationError
            If the run stopped early; the attribute `run` of the error holds the computed part.
        """
        values = self.task.uncertainty.values(np.asarray(world, dtype=float)[None])
        return self._ready.loop.run(values, number, self.seed, self._ready.rollout)

    def result(
        self,
        numbers: NDArray[np.int64],
        worlds: NDArray[np.float64],
        values: NDArray[np.float64],
        method: Method = "independent",
    ) -> CampaignResult:
        """Make the result of a campaign.

        Parameters
        ----------
        numbers, worlds, values : numpy.ndarray
            Numbers of worlds, shape (n,), deviations, shape (n, d), and values of `evaluate`.
        method : str
            How the worlds were drawn.

        Returns
        -------
        CampaignResult
            The result; worlds whose numbers are not physical are crashes with their reason.
        """
        task, count, ranges = self.task, len(self.task.requirements), self._ready.ranges
        lost = np.flatnonzero(np.isnan(values).all(axis=1))
        units = _units(self._ready.loop.servo, self._loop.plant.load_names)
        return CampaignResult(
            quantities=tuple((made.label, made.unit) for made in task.uncertainty.quantities),
            columns=tuple((made.name, made.unit) for made in task.requirements),
            numbers=numbers,
            worlds=worlds,
            values=values[:, :count],
            stopped=np.nan_to_num(values[:, -1], nan=0.0),
            duration=task.duration,
            method=method,
            seed=self.seed,
            key=key_of(self.facts),
            signals=tuple((name, units.get(name, "")) for name, _ in self._ready.extremes),
            extremes=values[:, count:-2],
            crashes={
                int(numbers[lost[row]]): reason
                for row, reason in self.reasons(worlds[lost]).items()
            },
            limits=_limits(task.requirements),
            invalid={
                int(number): ranges[int(cause)].reason(time)
                for number, cause, time in zip(numbers, values[:, -2], values[:, -1], strict=True)
                if cause >= 0
            },
            looks=tuple(self.looks) if method == "independent" else (),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Leave out all that each process builds and compiles."""
        return {"task": self.task, "seed": self.seed, "looks": self.looks}

    @cached_property
    def _nominal(self) -> WorldInputs:
        loop = self._ready.loop
        return self._inputs(loop, np.zeros((1, self.task.uncertainty.size)))

    @cached_property
    def _loop(self) -> WorldLoop:
        task = self.task
        none = np.zeros((1, task.uncertainty.size))
        loop = task.loop(task.uncertainty.values(none))
        self._check_ends(loop)
        for requirement in task.requirements:
            requirement.demands(loop.program.signals, loop.ticks, loop.times[2])
        return loop

    @cached_property
    def _ready(self) -> _Ready:
        task, loop = self.task, self._loop
        program = loop.program
        demands: list[Demand] = []
        requirements, extremes = [], []
        period = loop.times[2]
        for requirement in task.requirements:
            needed = requirement.demands(program.signals, loop.ticks, period)
            requirements.append((requirement, slice(len(demands), len(demands) + len(needed))))
            demands += needed
        ways = {"error": ("max",), "torque": ("max", "min"), "margin": ("min",), "load": ("min",)}
        for at, name in enumerate(program.signals):
            kinds = ways.get(name.split(":")[0], ())
            if kinds:
                extremes.append((name, slice(len(demands), len(demands) + len(kinds))))
                demands += [Demand(at, way, 0, loop.ticks - 1) for way in kinds]
        ranges = loop.valid_ranges(task.tolerances.constraint)
        first, of_range = len(demands), list[int]()
        for k, one in enumerate(ranges):
            at = program.signals.index(one.signal)
            for way, end in (("first_below", one.low), ("first_above", one.high)):
                if math.isfinite(end):
                    of_range.append(k)
                    demands.append(Demand(at, way, 0, loop.ticks - 1, end))
        validity = slice(first, len(demands))
        rollout = Rollout(program.tick, program.step, program.steps_per_tick, program.noises)
        return _Ready(
            *(loop, rollout, tuple(demands), tuple(requirements), tuple(extremes), ranges),
            *(validity, np.array(of_range, dtype=np.int64)),
        )

    def _check_ends(self, loop: WorldLoop) -> None:
        """Refuse intervals whose ends, all else nominal, are not physical."""
        quantities = self.task.uncertainty.quantities
        ends = [
            (k, end)
            for k, quantity in enumerate(quantities)
            for end in quantity.distribution.support
            if np.isfinite(end)
        ]
        rows = np.zeros((len(ends), len(quantities)))
        for row, (k, end) in enumerate(ends):
            rows[row, k] = end
        invalid = self._inputs(loop, rows).invalid if ends else {}
        for row in sorted(invalid):
            k, end = ends[row]
            quantity = quantities[k]
            raise DescriptionError(
                f"{self.task.path}, [uncertainty.{quantity.kind}], field `{quantity.name}`",
                expected="deviations with physical numbers in the whole interval",
                came=f"{end:g} {quantity.unit}: {invalid[row]}".replace(" :", ":").rstrip("."),
                cure="Narrow the interval.",
                file=str(self.task.path),
                table=f"[uncertainty.{quantity.kind}]",
                field=quantity.name,
            )

    def _inputs(self, loop: WorldLoop, rows: NDArray[np.float64]) -> WorldInputs:
        return loop.inputs(self.task.uncertainty.values(rows), len(rows))

    def _evaluated(
        self, ready: _Ready, numbers: NDArray[np.int64], worlds: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        loop = ready.loop
        with ready.lock:  # evaluated methods share buffers
            inputs = self._inputs(loop, worlds)
        batch = Batch(inputs.x0, inputs.p, numbers, self.seed, inputs.delay, inputs.jitter)
        rolled = ready.rollout(batch, inputs.reference, ticks=loop.ticks, demands=ready.demands)
        stopped, causes = _valid_until(ready, rolled, inputs.x0)
        columns = [
            requirement.value(rolled.values[:, part], stopped, loop.ticks)
            for requirement, part in ready.requirements
        ]
        columns += [_largest(rolled.values[:, part]) for _, part in ready.extremes]
        values = np.column_stack([*columns, causes, stopped * loop.times[2]])
        values[list(inputs.invalid)] = np.nan
        return values


def _valid_until(
    ready: _Ready, rolled: Rolled, x0: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ticks up to which each run goes and is valid, and the index of the range that it leaves."""
    program, ticks = ready.loop.program, ready.loop.ticks
    found = rolled.values[:, ready.validity]
    # Signals of a step are those of the next tick, those of the start are in no step.
    signals = [program.signals.index(one.signal) for one in ready.ranges]
    late = np.array(signals, dtype=np.int64)[ready.of_range] >= program.tick_signals
    rows = np.where(found < ticks, found + late, np.inf)
    for k, start in enumerate(program.state(x0, "load").T):  # the first ranges are those of loads
        rows[ready.ranges[k].outside(start), k] = 0.0
    first = rows.min(axis=1, initial=np.inf)
    invalid = first <= rolled.stopped
    causes = np.full(len(found), -1)
    if invalid.any():
        causes[invalid] = ready.of_range[rows[invalid].argmin(axis=1)]
    until = np.where(invalid, np.minimum(first, ticks - 1), rolled.stopped)
    return until.astype(np.int64), causes


def _units(servo: Servo, loads: Sequence[str]) -> dict[str, str]:
    """Units of the signals whose extremes a result contains."""
    model = servo.model
    controls = zip(model.control_names, model.control_units, strict=True)
    units = {f"torque:{name}": unit for name, unit in controls}
    units |= {f"load:{name}": "N" for name in loads}
    for output in servo.outputs:
        kinds = list(dict.fromkeys(output.coordinate_units))
        for unit in kinds:
            part = {"m": ":position", "rad": ":rotation"}[unit] * (len(kinds) > 1)
            units[f"error:{output.name}{part}"] = unit
    return units


def _limits(requirements: Sequence[Requirement]) -> dict[str, tuple[float, float]]:
    """Limits of the extremes of whole runs; those of a torque are without sign."""
    found = {}
    for made in requirements:
        for signal, low, high in made.bounds if made.after == 0.0 else ():
            if low == -high:
                found[signal] = (-math.inf, high)
            elif math.isinf(low) or math.isinf(high):
                found[signal] = (low, high)
    return found


def _largest(reduced: NDArray[np.float64]) -> NDArray[np.float64]:
    """Extreme of a signal: the reduced value, or the larger of both ends without its sign."""
    if reduced.shape[1] == 1:
        return reduced[:, 0]
    return np.asarray(np.maximum(reduced[:, 0], -reduced[:, 1]))


def _hash(*parts: str | bytes) -> str:
    found = hashlib.sha256()
    for part in parts:
        found.update(part.encode() if isinstance(part, str) else part)
        found.update(b"\0")
    return found.hexdigest()[:16]
