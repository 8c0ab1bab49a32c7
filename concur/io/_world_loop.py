"""The loop of a task in many worlds: rows of deviations become inputs of one program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from concur.codegen import Batch, Rollout
from concur.control import JointLimits, TrackingLaw
from concur.errors import ConcurError, SimulationError
from concur.io._nominal import BY_AXIS, OF_ROBOT
from concur.outputs.references import Reference
from concur.robot import Mechanism, joint_names, joint_place
from concur.simulation import (
    KINDS,
    Imperfections,
    Plant,
    Program,
    Run,
    Slip,
    ValidRange,
    loop_program,
    program_run,
    valid_ranges,
)
from concur.tables import fault, located

Values: TypeAlias = Mapping[tuple[str, str], NDArray[np.float64]]
"""Deviations by kind and name, shape (B,) or (B, components)."""


@dataclass(frozen=True, eq=False)
class WorldInputs:
    """Inputs of a program in some worlds.

    Parameters
    ----------
    x0 : numpy.ndarray
        States at the start, shape (B, nx).
    p : numpy.ndarray
        Numbers of the worlds, shape (B, np).
    reference : numpy.ndarray
        Rows of the reference, shape (ticks, nr) for all worlds, or (B, ticks, nr).
    delay, jitter : numpy.ndarray
        Delay of commands and its random part, shape (B,), control periods.
    invalid : dict of int to str
        Reason for each row whose numbers are not physical. Its inputs are the nominal ones.
    """

    x0: NDArray[np.float64]
    p: NDArray[np.float64]
    reference: NDArray[np.float64]
    delay: NDArray[np.float64]
    jitter: NDArray[np.float64]
    invalid: dict[int, str]


@dataclass(frozen=True, eq=False)
class WorldLoop:
    """Closed loop of a task whose uncertain quantities are inputs of one program.

    Parameters
    ----------
    path : path
        File of the task.
    servo : TrackingLaw
        Law of the task.
    robot : Mechanism
        Robot that moves, with nominal numbers.
    reference : Reference
        Nominal reference.
    reference_with : callable
        Reference with changed fields of its tables, by output and field.
    q0, s0 : numpy.ndarray
        Nominal configuration and shape velocities at the start.
    momentum : numpy.ndarray or None
        True momentum without the error of the imperfections; None: that of the servo's model.
    imperfections : Imperfections
        Fixed imperfections.
    slip : Slip or None
        Friction of wheels that may slip; None: they roll.
    times : tuple of float
        Duration, step of integration and control period, s.
    method : str
        Integrator.
    names : tuple of (str, str)
        Kind and name of the uncertain quantities.
    """

    path: str | PathLike[str]
    servo: TrackingLaw
    robot: Mechanism
    reference: Reference
    reference_with: Callable[[Mapping[tuple[str, str], Any]], Reference]
    q0: NDArray[np.float64]
    s0: NDArray[np.float64]
    momentum: NDArray[np.float64] | None
    imperfections: Imperfections
    slip: Slip | None
    times: tuple[float, float, float]
    method: str
    names: tuple[tuple[str, str], ...]

    def __post_init__(self) -> None:
        model = self.servo.model
        starts = [name for kind, name in self.names if kind == "initial_s"]
        if others := [name for name in starts if name not in model.shape_names]:
            raise fault(
                self.path,
                "[uncertainty.initial_s]",
                "",
                expected=f"shape velocities: {', '.join(model.shape_names)}",
                came=f"also {', '.join(others)}, which follow from them",
                cure='Name the shape velocities one by one: "*" stands for all velocities.',
            )
        for kind, name in self.names:
            if kind == "momentum" and not model.takes_momentum:
                raise fault(
                    self.path,
                    f"[uncertainty.{kind}]",
                    name,
                    expected="a robot that floats",
                    came=f"`{name}`",
                    cure="Remove it.",
                )
        duration, _, period = self.times
        if abs(self.ticks * period - duration) > 1e-9 * max(1.0, duration):
            raise fault(
                self.path,
                "[simulation]",
                "duration",
                expected=f"a whole number of control periods of {period:g} s",
                came=f"{duration:g} s",
                cure=f"Write {max(self.ticks, 1) * period:.10g}.",
            )

    @property
    def ticks(self) -> int:
        """Number of ticks of the run."""
        return round(self.times[0] / self.times[2])

    @cached_property
    def plant(self) -> Plant:
        """Plant with the uncertain numbers of the robot as inputs."""
        own = [f"{name}.{OF_ROBOT[kind]}" for kind, name in self.names if kind in OF_ROBOT]
        return Plant(self.robot, uncertain=own or None, slip=self.slip)

    @cached_property
    def program(self) -> Program:
        """Graphs of tick and step."""
        with located(self.path, "[simulation]"):
            return loop_program(
                self.servo,
                self.plant,
                self.imperfections,
                [
                    scalar
                    for kind, name in self.names
                    if kind in KINDS
                    for scalar in _scalars(kind, name)
                ],
                self.times[1],
                self.times[2],
                self.method,
            )

    def valid_ranges(self, constraint: float) -> tuple[ValidRange, ...]:
        """Ranges that the run of a world keeps if it is valid.

        Parameters
        ----------
        constraint : float
            Largest residual of the constraints of wheels that roll, m/s.

        Returns
        -------
        tuple of ValidRange
            As of `concur.simulation.valid_ranges`.
        """
        limits = JointLimits.of(self.robot, self.servo.model.system)
        limits = limits.without_torques if self.imperfections.motors else limits
        return valid_ranges(self.robot, self.slip, limits, constraint)

    def inputs(self, values: Values, count: int) -> WorldInputs:
        """Inputs of the program in some worlds.

        Parameters
        ----------
        values : mapping
            Deviations by kind and name, of `names`.
        count : int
            Number of worlds, B.

        Returns
        -------
        WorldInputs
            The inputs; invalid rows are named with their reason.
        """
        invalid: dict[int, str] = {}
        kept = {key: np.array(rows, dtype=float) for key, rows in values.items()}
        while True:
            try:
                return self._inputs(kept, count, invalid)
            except ConcurError as error:
                # Errors of one world have its row; all others concern the task.
                row = error.data.get("world")
                if row is None or row in invalid:
                    raise
                invalid[row] = str(error)
                for rows in kept.values():
                    rows[row] = 0.0

    def run(
        self,
        values: Values,
        number: int = 0,
        seed: int = 0,
        rollout: Rollout | None = None,
    ) -> Run:
        """Run one world with a full record.

        Parameters
        ----------
        values : mapping
            Deviations by kind and name, of `names`, with a leading axis of one world.
        number, seed : int
            Number of the world and seed: the key of jitter and noise.
        rollout : Rollout, optional
            The compiled program; default: compiled for long runs.

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
        inputs = self.inputs(values, 1)
        if inputs.invalid:
            raise fault(
                self.path,
                "[world]",
                "",
                expected="deviations with physical numbers",
                came=inputs.invalid[0],
                cure="Correct the deviations.",
            )
        changes = {
            (kind.split(".", 1)[1], name): rows[0]
            for (kind, name), rows in values.items()
            if kind.startswith("reference.")
        }
        numbers = {
            f"{name}.{OF_ROBOT[kind]}": rows[0]
            for (kind, name), rows in values.items()
            if kind in OF_ROBOT
        }
        world = Batch(inputs.x0, inputs.p, [number], seed, inputs.delay, inputs.jitter)
        moving = self.plant.of_world(numbers) if self.plant.n_numbers else None
        reference = self.reference_with(changes) if changes else self.reference
        return program_run(self.program, reference, self.ticks, world, moving, rollout)

    def _inputs(self, values: Values, count: int, invalid: dict[int, str]) -> WorldInputs:
        program, model = self.program, self.servo.model
        numbers: dict[str, Any] = {}
        scalars: dict[tuple[str, str], Any] = {}
        q0, s0 = np.tile(self.q0, (count, 1)), np.tile(self.s0, (count, 1))
        momentum = None
        if model.takes_momentum:
            true = model.momentum if self.momentum is None else self.momentum
            error = self.imperfections.momentum_error
            momentum = np.tile(np.array(true) + (np.array(error) if error else 0.0), (count, 1))
        moves = np.zeros((count, self.robot.nv))
        for (kind, name), rows in values.items():
            if kind in OF_ROBOT:
                numbers[f"{name}.{OF_ROBOT[kind]}"] = rows
            elif kind in BY_AXIS:
                keys = _scalars(kind, name)
                scalars |= {key: rows[:, k] for k, key in enumerate(keys)}
            elif kind in KINDS:
                scalars[kind, name] = rows
            elif kind == "initial_q":
                place = joint_place(self.robot, joint_names(self.robot)[name])
                moves[:, place.rows] = rows.reshape(count, -1)
            elif kind == "initial_s":
                s0[:, model.shape_names.index(name)] += rows
            elif kind == "momentum" and momentum is not None:
                momentum[:, :3] += rows if name == "linear" else 0.0
                momentum[:, 3:] += rows if name == "angular" else 0.0
        if any(kind == "initial_q" for kind, _ in values):
            moved = map(self.robot.integrate, q0, moves)
            q0 = np.array([np.array(q) for q in moved])
            if isinstance(self.robot, Mechanism):
                q0 = np.array([self.robot.coupled(q) for q in q0])
        p = program.numbers(self.plant.numbers(numbers) if numbers else None, scalars)
        delay, jitter = program.delays(scalars, count)
        reference = self._references(values, count)
        p = np.array(np.broadcast_to(p, (count, p.shape[1])))
        return WorldInputs(program.start(q0, s0, momentum, p), p, reference, delay, jitter, invalid)

    def _references(self, values: Values, count: int) -> NDArray[np.float64]:
        """Rows of the reference: of all worlds, or of each if its fields differ."""
        changed = {key: rows for key, rows in values.items() if key[0].startswith("reference.")}
        if not changed:
            return self.program.reference(self.reference, self.ticks)
        found = []
        for world in range(count):
            fields = {
                (kind.split(".", 1)[1], name): rows[world] for (kind, name), rows in changed.items()
            }
            try:
                found.append(self.program.reference(self.reference_with(fields), self.ticks))
            except ConcurError as error:
                raise SimulationError(
                    f"world {world}, {error.where}",
                    expected=error.expected,
                    came=error.came,
                    cure=error.cure,
                    world=world,
                ) from None
        return np.array(found)


def _scalars(kind: str, name: str) -> list[tuple[str, str]]:
    """Uncertain numbers of an imperfection: one, or one for each axis of a wrench."""
    return [(kind, f"{name}.{axis}") for axis in "xyz"] if kind in BY_AXIS else [(kind, name)]
