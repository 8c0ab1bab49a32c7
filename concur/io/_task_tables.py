"""Tables of a task file: fields and their types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from annotated_types import Ge, Gt, Le, Len

from concur.control import Servo
from concur.io._imperfections import ImperfectionsTable
from concur.io._initial import InitialTable
from concur.io._proof import ProofTable
from concur.outputs import Output
from concur.simulation import LONGEST_RUN, METHODS, SHORTEST_STEP, Slip, Tolerances
from concur.tables import (
    NUMBER,
    PAIR,
    Expected,
    FileName,
    InFiles,
    NumberOrList,
    Positive,
    Text,
    Vector6,
    any_of,
    is_number_or_list,
    is_pair,
    list_of,
    one_of,
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


def _is_ranges(value: Any) -> bool:
    several = isinstance(value, list) and value and all(map(is_pair, value))
    return bool(several) or is_pair(value)


def _is_speeds(value: Any) -> bool:
    return is_number_or_list(list(value.values()) if isinstance(value, dict) else value)


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
Ranges = Annotated[
    Any,
    Expected(
        "a lower and an upper end, or a list of such pairs",
        _is_ranges,
        any_of(PAIR, list_of(PAIR, 1)),
    ),
]
Speeds = Annotated[
    Any,
    Expected(
        "a number, a list of them, or a table of shape velocities",
        _is_speeds,
        any_of(NUMBER, list_of(NUMBER), table_of(NUMBER)),
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


@dataclass(frozen=True)
class TolerancesTable:
    """Limits for a run that passes, beside those of the robot's joints.

    Parameters
    ----------
    final_error : float, optional
        Largest output error at the end, m or rad.
    deviation : float, optional
        Largest deviation of an error coordinate from the exact error dynamics, m or rad.
    constraint : float, optional
        Largest slip of a wheel, m/s.
    evaluate_after : float, optional
        No limit: the report gives the largest error after this time, s, within the duration.
        Default: half the duration.
    margin : float, optional
        Least decoupling margin, without unit.
    momentum : float, optional
        Largest relative drift of the momentum of a robot with a floating base.
    """

    final_error: Positive = Tolerances.final_error
    deviation: Positive = Tolerances.deviation
    constraint: Positive = Tolerances.constraint
    evaluate_after: Positive | None = None
    margin: Positive = Tolerances.margin
    momentum: Positive = Tolerances.momentum


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
class OperatingTable:
    """Box of configurations in which `concur certify` proves margin and torques.

    Parameters
    ----------
    ranges : mapping
        Lower and upper end of the coordinate of each joint, rad or m; a list of pairs for several
        coordinates. Required for all coordinates that the law depends on.
    speeds : object, optional
        Largest shape velocities, rad/s or m/s: a number, one for each, or a table by name. Default:
        only the margin is bounded.
    acceleration : float or sequence of float, optional
        Largest acceleration of the reference, m/s^2 or rad/s^2: a number, or one for each
        coordinate of the outputs.
    pose_error : float or sequence of float, optional
        Largest pose error, m or rad: a number, or one for each coordinate.
    velocity_error : float or sequence of float, optional
        Largest velocity error, m/s or rad/s: a number, or one for each coordinate.
    distance : float, optional
        Largest distance of a floating base from the inertial origin, m; required with linear
        momentum. Default: none.
    required_margin : float, optional
        Required decoupling margin, without unit. Default: the margin below which the law gives no
        torque.
    tolerance : float, optional
        Relative accuracy of the bounds.
    budget : int, optional
        Largest number of boxes.
    """

    ranges: Mapping[str, Ranges]
    speeds: Speeds = None
    acceleration: NumberOrList = 0.0
    pose_error: NumberOrList = 0.0
    velocity_error: NumberOrList = 0.0
    distance: Positive | None = None
    required_margin: Positive | None = None
    tolerance: Positive = 0.2
    budget: Annotated[
        int,
        Gt(0),
        Le(1_000_000),  # some milliseconds per box: a million boxes take hours
        Expected("a whole number above zero, at most 1000000"),
    ] = 2000


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
    reference : mapping
        Reference of each output: a table with its `kind` and fields.
    initial : table, optional
        The initial state. Default: neutral, at rest.
    servo : table, optional
        Options of the law. Default: none.
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
    reference: Annotated[
        Mapping[str, dict[str, Any]], Expected("a table [reference.<output>] per output")
    ]
    simulation: SimulationTable
    momentum: Vector6 | None = None
    stages: Stages = None
    initial: InitialTable = field(default_factory=InitialTable)
    servo: Annotated[Any, InFiles(Servo)] = None
    tolerances: TolerancesTable = field(default_factory=TolerancesTable)
    plant: PlantTable = field(default_factory=PlantTable)
    operating: OperatingTable | None = None
    proof: ProofTable | None = None
    imperfections: ImperfectionsTable | None = None
    requirements: (
        Annotated[Sequence[dict[str, Any]], Len(1, 1000), Expected("tables [[requirements]]")]
        | None
    ) = None
    uncertainty: Annotated[dict[str, Any], Expected("tables [uncertainty.<kind>]")] | None = None
    world: Annotated[dict[str, Any], Expected("tables [world.<kind>]")] | None = None
