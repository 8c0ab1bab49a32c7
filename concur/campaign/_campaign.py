"""Campaign of a task: worlds to robustness of its requirements, by one compiled program."""

from __future__ import annotations

import hashlib
import json
import math
import platform
import threading
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain
from typing import Any, Literal, TypeAlias

import casadi as ca
import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from concur._version import __version__
from concur.campaign._result import LIMITED, CampaignResult, Method, is_share
from concur.codegen import Batch, Demand, Rollout
from concur.errors import DescriptionError
from concur.io import Task, WorldInputs, WorldLoop
from concur.robot import Mechanism, controls
from concur.simulation import Run, ValidRange
from concur.system import System
from concur.worlds import Requirement, Uncertainty
from concur.writers import to_toml

Outcome: TypeAlias = tuple[NDArray[np.float64], dict[int, str]]
"""Values of worlds, shape (n, m), and the reason of each row without values, by its index."""

Way: TypeAlias = Literal["max", "min", "count_above"]

MOST_NUMBERS = 2**25
"""Numbers of references that are kept at once, 256 MB, if each world has its own."""

MOST_WORLDS = 64
"""Number of worlds whose inputs are computed at once: each invalid one costs a repetition."""

EXTREMES: Mapping[str, tuple[Way, ...]] = {
    "error": ("max",),
    "torque": ("max", "min"),
    "margin": ("min",),
    "load": ("min",),
    **dict.fromkeys(LIMITED, ("count_above",)),
}
"""Kinds of signals whose extremes a result contains.

Of a torque that of its absolute value; of a limit the share of the time in which it was active.
"""


class Campaign:
    """Evaluator of a task: robustness of its requirements in worlds of its uncertainty.

    Robot, law and program are built and compiled once per process, at the first use. A world whose
    numbers are not physical has NaN in all columns: it fails every requirement. A campaign travels
    to other processes as its task, which they build again.

    Parameters
    ----------
    task : Task
        The task.
    seed : int
        Seed of the draws, of jitter and of noise.
    uncertainty : Uncertainty, optional
        Uncertain quantities; default those of the task's file.
    requirements : sequence of Requirement, optional
        Requirements on each run; default those of the task's file.

    Attributes
    ----------
    task : Task
        The task.
    seed : int
        The seed.
    uncertainty : Uncertainty
        The uncertain quantities.
    requirements : tuple of Requirement
        The requirements.
    looks : set of int
        Numbers of independent worlds at which `verify` has answered with this campaign.

    Raises
    ------
    DescriptionError
        If the task is one world of a campaign.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from scipy.stats import uniform
    >>> import concur as cc
    >>> from concur.campaign import Campaign
    >>> from concur.worlds import Quantity, Requirement, Uncertainty
    >>> mass = Uncertainty((Quantity("mass", "forearm", uniform(-0.05, 0.1), unit="kg"),))
    >>> slow = Requirement("speed", "speed forearm", (("speed:forearm", -3.0, 3.0),), 3.0, "rad/s")
    >>> task = replace(cc.load_task("examples/rover_arm.toml"), duration=0.01)
    >>> campaign = Campaign(task, uncertainty=mass, requirements=[slow])
    >>> values = campaign.evaluate(range(2), mass.draw(range(2)))
    >>> campaign.columns[0], bool((values[:, 0] > 0).all())
    ('speed forearm', True)
    """

    def __init__(
        self,
        task: Task,
        seed: int = 0,
        uncertainty: Uncertainty | None = None,
        requirements: Sequence[Requirement] | None = None,
    ) -> None:
        if task.world is not None:
            raise DescriptionError(
                f"campaign of `{task.name}`",
                expected="a task with [uncertainty]",
                came="a task of one world, with [world]",
                cure="Use `concur track` for one world.",
            )
        self.task, self.seed = task, seed
        self.uncertainty = task.uncertainty if uncertainty is None else uncertainty
        self.requirements = task.requirements if requirements is None else tuple(requirements)
        self.looks: set[int] = set()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """Leave out all that each process builds and compiles."""
        arguments = self.task, self.seed, self.uncertainty, self.requirements
        return Campaign, arguments, {"looks": self.looks}

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the values: requirements, "extreme SIGNAL", "invalid" and "stopped", s.

        "invalid" is the index of the range that makes a run invalid, -1 of a valid one.
        """
        names = [requirement.name for requirement in self.requirements]
        return (*names, *(f"extreme {name}" for name in self._extremes), "invalid", "stopped")

    @property
    def facts(self) -> Mapping[str, str]:
        """Facts that the values depend on, a short text or a hash by field."""
        task, inputs, rollout = self.task, self._inputs(self._nominal), self._rollout
        arrays = inputs.x0, inputs.p, inputs.reference, inputs.delay, inputs.jitter
        shares = np.linspace(0.05, 0.95, 9)[:, None].repeat(self.uncertainty.size, axis=1)
        drawn = [f"{deviation:.12g}" for deviation in self.uncertainty.at(shares).flat]
        hashed: dict[str, Any] = {
            "robot": _described(task.plant or task.robot),
            "law": self._loop.program.tick.serialize(),
            "nominal world": b"\0".join(array.tobytes() for array in arrays),
            "reference": task.reference_tables,
            "uncertainty": (self.uncertainty.labels, drawn),
            "requirements": self.requirements,
            "valid ranges": self._ranges,
            "imperfections": task.imperfections,
        }
        return {
            "task": task.name,
            **{name: _hash(value) for name, value in hashed.items()},
            "seed": str(self.seed),
            "duration": f"{task.duration!r} s",
            "program": rollout.key,
            "width": str(rollout.width),
            "processor": f"{platform.machine()} {platform.processor()}".strip(),
            "casadi": ca.__version__,
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "concur": __version__,
        }

    @property
    def key(self) -> str:
        """Hash of the facts, hexadecimal."""
        return hashlib.sha256(json.dumps(dict(self.facts), sort_keys=True).encode()).hexdigest()

    def prepare(self) -> None:
        """Build and compile the loop, once; refuse intervals with numbers that are not physical.

        Raises
        ------
        DescriptionError
            If an end of an interval gives numbers that are not physical, with file, table and
            field; or a requirement needs a signal that the loop lacks.
        """
        _ = self._rollout

    def check(self) -> None:
        """As `prepare`, without the compile.

        Raises
        ------
        DescriptionError
            As for `prepare`.
        """
        _ = self._demands

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
        return self.outcome(numbers, worlds)[0]

    def outcome(self, numbers: ArrayLike, worlds: ArrayLike) -> Outcome:
        """Evaluate worlds with one thread, with the reasons of those without values.

        Parameters
        ----------
        numbers, worlds : array_like
            As of `evaluate`.

        Returns
        -------
        values : numpy.ndarray
            As of `evaluate`.
        reasons : dict of int to str
            Reason why the numbers of a world are not physical, by its row.
        """
        keys, rows = np.asarray(numbers, dtype=np.int64), np.asarray(worlds, dtype=float)
        size, reasons = MOST_WORLDS, dict[int, str]()
        if any(one.kind.startswith("reference.") for one in self.uncertainty.quantities):
            loop = self._loop
            size = min(size, max(1, MOST_NUMBERS // (loop.ticks * self._rollout.sizes.nr)))
        values = np.empty((len(keys), len(self.columns)))
        for first in range(0, len(keys), size):
            part = slice(first, first + size)
            with self._lock:  # evaluated methods share buffers
                inputs = self._inputs(rows[part])
            values[part] = self._rolled(keys[part], inputs)
            reasons |= {first + row: reason for row, reason in inputs.invalid.items()}
        values[list(reasons)] = np.nan
        return values, reasons

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
        values = self.uncertainty.values(np.asarray(world, dtype=float)[None])
        return self._loop.run(values, number, self.seed, self._rollout)

    def result(
        self,
        numbers: NDArray[np.int64],
        worlds: NDArray[np.float64],
        values: NDArray[np.float64],
        reasons: Mapping[int, str],
        method: Method = "independent",
    ) -> CampaignResult:
        """Make the result of a campaign.

        Parameters
        ----------
        numbers, worlds : numpy.ndarray
            Numbers of worlds, shape (n,), and deviations, shape (n, d).
        values, reasons : numpy.ndarray, mapping of int to str
            As of `outcome`.
        method : str
            How the worlds were drawn.

        Returns
        -------
        CampaignResult
            The result; worlds without values are crashes with their reason.
        """
        count, units = len(self.requirements), _units(self._loop)
        return CampaignResult(
            quantities=tuple((one.label, one.unit) for one in self.uncertainty.quantities),
            columns=tuple((one.name, one.unit) for one in self.requirements),
            numbers=numbers,
            worlds=worlds,
            values=values[:, :count],
            stopped=np.nan_to_num(values[:, -1], nan=0.0),
            duration=self.task.duration,
            method=method,
            seed=self.seed,
            key=self.key,
            signals=tuple((name, units.get(name, "")) for name in self._extremes),
            extremes=values[:, count:-2],
            crashes={int(numbers[row]): reason for row, reason in reasons.items()},
            limits=_limits(self.requirements),
            invalid={
                int(number): self._ranges[int(cause)].reason(time)
                for number, cause, time in zip(numbers, values[:, -2], values[:, -1], strict=True)
                if cause >= 0
            },
            looks=tuple(self.looks) if method == "independent" else (),
        )

    @property
    def _nominal(self) -> NDArray[np.float64]:
        return np.zeros((1, self.uncertainty.size))

    @cached_property
    def _loop(self) -> WorldLoop:
        loop = self.task.loop(self.uncertainty.values(self._nominal))
        self._check_ends(loop)
        return loop

    @cached_property
    def _ranges(self) -> tuple[ValidRange, ...]:
        return self._loop.valid_ranges(self.task.tolerances.constraint)

    @cached_property
    def _extremes(self) -> tuple[str, ...]:
        """Names of the signals whose extremes the values contain."""
        signals = self._loop.program.signals
        return tuple(name for name in signals if name.split(":")[0] in EXTREMES)

    @cached_property
    def _demands(self) -> tuple[list[Demand], ...]:
        """Numbers that the rollout reduces: of each requirement, each extreme, each valid range."""
        loop, signals = self._loop, self._loop.program.signals
        last = loop.ticks - 1
        found = [one.demands(signals, loop.ticks, loop.times[2]) for one in self.requirements]
        for name in self._extremes:
            ways, at = EXTREMES[name.split(":")[0]], signals.index(name)
            found.append([Demand(at, way, 0, last) for way in ways])
        for one in self._ranges:
            at = signals.index(one.signal)
            ends = (("first_below", one.low), ("first_above", one.high))
            found.append([Demand(at, way, 0, last, end) for way, end in ends if math.isfinite(end)])
        return tuple(found)

    @cached_property
    def _rollout(self) -> Rollout:
        _ = self._demands  # faults of requirements are found before the compile
        program = self._loop.program
        return Rollout(program.tick, program.step, program.steps_per_tick, program.noises)

    def _check_ends(self, loop: WorldLoop) -> None:
        """Refuse intervals whose ends, all else nominal, are not physical."""
        quantities = self.uncertainty.quantities
        ends = [(k, end) for k, one in enumerate(quantities) for end in one.support]
        ends = [(k, end) for k, end in ends if np.isfinite(end)]
        rows = np.zeros((len(ends), len(quantities)))
        for at, (k, end) in enumerate(ends):
            rows[at, k] = end
        invalid = loop.inputs(self.uncertainty.values(rows), len(rows)).invalid if ends else {}
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

    def _inputs(self, rows: NDArray[np.float64]) -> WorldInputs:
        return self._loop.inputs(self.uncertainty.values(rows), len(rows))

    def _rolled(self, numbers: NDArray[np.int64], inputs: WorldInputs) -> NDArray[np.float64]:
        """Values of worlds from the inputs of the program."""
        loop, groups = self._loop, self._demands
        batch = Batch(inputs.x0, inputs.p, numbers, self.seed, inputs.delay, inputs.jitter)
        flat = tuple(chain(*groups))
        rolled = self._rollout(batch, inputs.reference, ticks=loop.ticks, demands=flat)
        parts = np.split(rolled.values, list(accumulate(map(len, groups))), axis=1)
        own, extremes = len(self.requirements), len(self._extremes)
        causes, until = self._valid_until(parts[own + extremes : -1], rolled.stopped, inputs.x0)
        columns = [
            requirement.value(part, until, loop.ticks)
            for requirement, part in zip(self.requirements, parts, strict=False)
        ]
        signs = np.array([1.0, -1.0])  # of two ends the larger one, without its sign
        for name, part in zip(self._extremes, parts[own : own + extremes], strict=True):
            largest = np.max(part * signs[: part.shape[1]], axis=1)
            ticked = np.minimum(rolled.stopped + 1, loop.ticks)  # with that at which it stopped
            columns.append(largest / ticked if is_share(name) else largest)
        return np.column_stack([*columns, causes, until * loop.times[2]])

    def _valid_until(
        self,
        left: Sequence[NDArray[np.float64]],
        stopped: NDArray[np.int64],
        x0: NDArray[np.float64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Index of the range that each run leaves, and the ticks up to which it goes and is valid.

        From the ticks at which runs leave each range, below and above.
        """
        program, ticks = self._loop.program, self._loop.ticks
        first = np.full((len(stopped), len(left)), np.inf)
        for column, one, found in zip(first.T, self._ranges, left, strict=True):
            # Signals of a step are those of the next tick, those of the start are in no step.
            late = program.signals.index(one.signal) >= program.tick_signals
            column[:] = np.where(found < ticks, found + late, np.inf).min(axis=1)
        for k, start in enumerate(program.state(x0, "load").T):  # the first ranges are of loads
            first[self._ranges[k].outside(start), k] = 0.0
        leaves = first.min(axis=1, initial=np.inf)
        invalid = leaves <= stopped
        causes = np.full(len(stopped), -1)
        if left:
            causes[invalid] = first[invalid].argmin(axis=1)
        until = np.where(invalid, np.minimum(leaves, ticks - 1), stopped)
        return causes, until.astype(np.int64)


def _units(loop: WorldLoop) -> dict[str, str]:
    """Units of the signals whose extremes a result contains."""
    model = loop.servo.model
    controls = zip(model.control_names, model.control_units, strict=True)
    units = {f"torque:{name}": unit for name, unit in controls}
    units |= {f"load:{name}": "N" for name in loop.plant.load_names}
    for output in loop.servo.outputs:
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


def _described(robot: System) -> str:
    """Text of a robot; of a system without bodies its names, the program has its equations."""
    if isinstance(robot, Mechanism):
        return to_toml(robot)
    names = robot.freedom_names, robot.constraint_names, controls(robot)
    return f"{robot.name} {names} {getattr(robot, 'text', '')}"


def _hash(value: Any) -> str:
    """Hash of bytes, or of the text of any other value."""
    data = value if isinstance(value, bytes) else str(value).encode()
    return hashlib.sha256(data).hexdigest()[:16]
