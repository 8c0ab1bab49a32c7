"""Tables of a task file: fields and their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import numpy as np
from annotated_types import Ge, Le, Len

from concur.control import Servo
from concur.io._imperfections import IMPERFECTIONS
from concur.io._initial import InitialTable
from concur.io._plan import PlanTable
from concur.outputs import Output
from concur.simulation import (
    LONGEST_RUN,
    METHODS,
    MOST_STEPS,
    SHORTEST_STEP,
    Slip,
    Tolerances,
)
from concur.tables import (
    NUMBER,
    Expected,
    FileName,
    InFiles,
    Text,
    Vector6,
    any_of,
    is_number_or_list,
    list_of,
    one_of,
    refused,
    table_of,
    variant,
)


def _is_stages(value: Any) -> bool:
    entries = value.values() if isinstance(value, dict) else ()
    named = isinstance(value, list) and all(isinstance(name, str) for name in value)
    return (
        value == "auto"
        or named
        or (isinstance(value, dict) and all(map(is_number_or_list, entries)))
    )


Stages = Annotated[
    Any,
    Expected(
        '"auto", a list of bodies, or a table of momenta by body',
        _is_stages,
        any_of(
            {"enum": ["auto"]},
            list_of({"type": "string"}),
            table_of(any_of(NUMBER, list_of(NUMBER))),
        ),
    ),
]
Step = Annotated[
    float,
    Ge(SHORTEST_STEP),
    Le(LONGEST_RUN),
    Expected(f"a number above zero, from {SHORTEST_STEP:g} to {LONGEST_RUN:g}"),
]


Gain = Annotated[
    float | Sequence[float],
    Expected("a number or a list of numbers", shape=any_of(NUMBER, list_of(NUMBER))),
]


@dataclass(frozen=True)
class Gains:
    """A tracked quantity of a body: an output with the gains of its errors.

    Parameters
    ----------
    stiffness : float or sequence of float
        Gain of the pose error, 1/s^2: one number, or one per coordinate.
    damping : float or sequence of float
        Gain of the velocity error, 1/s: one number, or one per coordinate.
    integral : float or sequence of float, optional
        Gain of integral action, 1/s^3: one number, or one per coordinate. Default: none.
    """

    stiffness: Gain
    damping: Gain
    integral: Gain | None = None


TrackedOutput: Any = variant(Gains, "TrackedOutput", Output)
"""Table of an output: its fields and its gains."""


@dataclass(frozen=True)
class SimulationTable:
    """Duration and method of the simulation.

    Parameters
    ----------
    duration : float
        Duration of the run, s; a multiple of `dt`.
    dt : float, optional
        Step of integration and recording, s.
    method : str, optional
        Integrator.
    control_period : float, optional
        Time for which the torque is held, s; a multiple of `dt`. Default: continuous.
    """

    duration: Step
    dt: Step = 1e-3
    method: Annotated[str, one_of(METHODS)] = "rk4"
    control_period: Step | None = None

    def __post_init__(self) -> None:
        if self.duration / self.dt > MOST_STEPS:
            expected = f"at most {MOST_STEPS} steps of dt = {self.dt:g} s"
            raise refused(
                ("duration",), expected, f"{self.duration:g} s", "Shorten it, or use longer steps."
            )
        for name in ("duration", "control_period"):
            value = getattr(self, name)
            if value is None:
                continue
            steps = round(value / self.dt)
            if steps < 1 or abs(steps * self.dt - value) > 1e-9 * max(1.0, value):
                expected = f"a whole number of steps of dt = {self.dt:g} s"
                cure = f"Write {max(steps, 1) * self.dt:.10g}, or change `dt`."
                raise refused((name,), expected, f"{value:g} s", cure)


@dataclass(frozen=True)
class PlantTable:
    """The simulated robot, if it differs from the model of the law.

    Parameters
    ----------
    file : str, optional
        Robot file, relative to the task's folder: the same bodies, joints and drives, with other
        masses, placements or wheels. Default: the robot.
    momentum : sequence of float, optional
        True momentum of a robot with a floating base: linear, kg m/s, then angular, kg m^2/s.
        Default: `momentum` of the task.
    slip : table, optional
        Friction of wheels that may slip. Default: the wheels roll.
    """

    file: FileName | None = None
    momentum: Vector6 | None = None
    slip: Annotated[Any, InFiles(Slip.of)] = None


@dataclass(frozen=True)
class TaskTable:
    """A whole task file.

    Parameters
    ----------
    name : str
        Name of the task, used in the report.
    robot : str
        A robot file, relative to the task's folder, or the name of a shipped robot.
    momentum : sequence of float, optional
        Constant spatial momentum of a robot with a floating base, about the inertial origin:
        linear, kg m/s, then angular, kg m^2/s. Default: zero.
    stages : str, optional
        Unactuated joints with conserved momentum, by which the robot is reduced: `"auto"` (all of
        them, at zero momentum), a list of bodies, or a table with the momentum of each body's
        joint, N m s about an axis and N s along one. Default: none.
    outputs : sequence
        Tracked quantities of bodies.
    reference : mapping, optional
        Reference of each output: a table with its `kind` and fields. Default: that of `plan`.
    initial : table, optional
        The initial state. Default: neutral, at rest.
    servo : table, optional
        Options of the servo. Default: none.
    plan : table, optional
        Goal of the motion, from which `concur plan` makes all references. Default: none.
    law : mapping, optional
        Another law than a servo: its `kind`, `"passive"`, `"pd"`, `"computed torque"` or
        `"FILE.py:NAME"`, and its options. Default: a servo.
    laws : sequence, optional
        Laws for `concur compare`, each with a `name`, a `kind` and its options; of a `"servo"`
        these are fields of `[servo]` and gains. Default: none.
    simulation : table
        Duration and method.
    tolerances : table, optional
        Limits for a run that passes. Default: those of the fields.
    plant : table, optional
        The simulated robot, if it differs from the model of the law. Default: the robot.
    operating : table, optional
        Box of configurations in which the decoupling margin and the torques are proved. Default:
        none.
    proof : table, optional
        Starts, imperfections and limits that `concur prove` proves; an entry by output, control or
        shape velocity is a number for all, or a table by name. Default: none.
    imperfections : table, optional
        Friction, lags, delays, noise and disturbances of the simulated robot; an entry by control
        or joint is a number for all, or a table by name, and names that it lacks are ideal.
        Default: none.
    requirements : sequence, optional
        Conditions on a run, for campaigns. Default: tolerances and limits.
    uncertainty : mapping, optional
        Quantities that differ between the worlds of a campaign. Default: none.
    world : mapping, optional
        Deviations of the one world that is simulated. Default: none.
    """

    name: Text
    robot: FileName
    outputs: Annotated[
        Sequence[dict[str, Any]],
        Len(1, 100),  # more than any robot has drives; each needs a graph
        Expected("at least one table [[outputs]]"),
    ]
    simulation: SimulationTable
    reference: Annotated[
        Mapping[str, dict[str, Any]], Expected("a table [reference.<output>] per output")
    ] = field(default_factory=dict)
    momentum: Vector6 | None = None
    stages: Stages = None
    initial: InitialTable = field(default_factory=InitialTable)
    servo: Annotated[Any, InFiles(Servo)] = None
    plan: PlanTable | None = None
    law: Annotated[dict[str, Any], Expected("a table [law] with a `kind`")] | None = None
    laws: Annotated[
        Sequence[dict[str, Any]], Len(0, 100), Expected("tables [[laws]] with a `kind`")
    ] = ()
    tolerances: Tolerances = field(default_factory=Tolerances)
    plant: PlantTable = field(default_factory=PlantTable)
    operating: Annotated[dict[str, Any], Expected("a table")] | None = None
    proof: Annotated[dict[str, Any], Expected("a table")] | None = None
    imperfections: Annotated[Any, InFiles(IMPERFECTIONS)] = None
    requirements: (
        Annotated[Sequence[dict[str, Any]], Len(1, 1000), Expected("tables [[requirements]]")]
        | None
    ) = None
    uncertainty: Annotated[dict[str, Any], Expected("tables [uncertainty.<kind>]")] | None = None
    world: Annotated[dict[str, Any], Expected("tables [world.<kind>]")] | None = None

    def __post_init__(self) -> None:
        start, duration = self.tolerances.evaluate_after, self.simulation.duration
        if duration < start < np.inf:
            expected = f"a time within the duration of {duration:g} s"
            cure = "Shorten it, or lengthen the duration."
            raise refused(("tolerances", "evaluate_after"), expected, f"{start:g} s", cure)
        names = [table.get("name") for table in self.outputs]
        for k, name in enumerate(names):
            if isinstance(name, str) and name in names[:k]:
                expected, cure = "a unique name for each output", "Rename one of them."
                raise refused(("outputs", k, "name"), expected, f"`{name}` twice", cure)
        if self.plan is not None and self.reference:
            expected = "[reference.<output>] for each output, or [plan] for all"
            raise refused(("plan", None), expected, "both", "Remove one of them.")
        if self.uncertainty is not None and self.world is not None:
            expected = "[uncertainty] for many worlds, or [world] for one"
            raise refused(("world", None), expected, "both", "Remove one of them.")
