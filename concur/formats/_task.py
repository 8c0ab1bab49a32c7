"""Reader of tracking tasks from TOML files: robot, outputs, gains, reference, run, tolerances."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from concur.control import Output, Servo
from concur.control.references import Reference
from concur.deprecation import renamed_arguments, renamed_fields, warn
from concur.errors import ConcurError, DescriptionError, SingularConfigurationError
from concur.files import is_file
from concur.formats._configuration import read_configuration
from concur.formats._initial import InitialTable, check_initial, start_on_reference
from concur.formats._reference import REFERENCE_KINDS, read_reference
from concur.formats._robot import load, load_shipped, shipped_names
from concur.formats._servo import ServoTable, check_control_names, option_at_fault, read_servo
from concur.formats.tables import (
    FileName,
    NumberOrList,
    Positive,
    Quaternion,
    Table,
    Text,
    Vector3,
    Vector6,
    check,
    fault,
    is_number,
    located,
    missing_file,
    read_toml,
    show,
    unknown,
)
from concur.multibody import Mechanism
from concur.reduction import ReducedModel, reduce
from concur.simulation import (
    LONGEST_RUN,
    METHODS,
    MOST_STEPS,
    SHORTEST_STEP,
    Integrator,
    Run,
    Tolerances,
    simulate,
)


class TaskServo(Servo):
    """Servo of a task; a call, from when `Task.servo` was a method, returns it."""

    def __call__(self) -> Servo:
        """Return the servo, with a warning."""
        warn("task.servo()", "task.servo")
        return self


class StartVelocities(np.ndarray):
    """Shape velocities of a task's start; names as indices are deprecated."""

    names: tuple[str, ...] = ()

    def __getitem__(self, index: Any) -> Any:
        """Entries by index, or one by the name of its shape velocity, with a warning."""
        if not isinstance(index, str):
            return np.asarray(self)[index]
        warn(f"task.s0[{index!r}]", f"task.initial_velocities[{index!r}]")
        return float(self[self.names.index(index)])


@renamed_fields({"hold": "control_period"})
@dataclass(frozen=True, eq=False)
class Task:
    """A tracking task, read from a file by `load_task`.

    Parameters
    ----------
    name : str
        Name of the task.
    path : Path
        File it was read from.
    robot : Mechanism
        Robot that the servo is designed for.
    momentum : ndarray, shape (6,), or None
        Constant spatial momentum about the inertial origin, [linear; angular] (kg m/s,
        kg m^2/s); None if not given.
    outputs : tuple of Output
        Outputs that track the reference, in order.
    stiffness, damping : ndarray, shape (n, n)
        Diagonal gains on the error coordinates of all outputs (1/s^2, 1/s).
    reference : Reference
        Reference of all outputs, in their order.
    q0 : ndarray, shape (nq,)
        Configuration at the start.
    initial_velocities : dict of str to float
        Shape velocities at the start by name (rad/s, m/s); others are zero.
    duration : float
        Length of the run (s).
    dt : float
        Time step (s).
    method : str
        Integrator.
    control_period : float or None
        Control period of the servo, for which its torque is held (s); None for a continuous
        servo.
    tolerances : Tolerances
        Tolerances that the run must satisfy.
    plant : Mechanism or None
        Robot that is simulated, if it differs from the servo's model.
    plant_file : str or None
        File of the plant as written in the task.
    plant_momentum : ndarray, shape (6,), or None
        Spatial momentum of the plant, if it differs from that of the servo's model (kg m/s,
        kg m^2/s).
    servo_options : dict of str to any
        Further arguments of `Servo`: measured velocities, redundancy, damping, torque limits,
        and `integral`, shape (n, n), diagonal, zero for outputs without (1/s^3).
    stages : str, tuple of str, dict of str to float or list of float, or None
        Joints by which the robot is reduced further, as for `reduce`: "auto", names, or momenta by
        name (N m s, N s); None without stages.
    robot_file : str or None
        File of the robot as written in the task; None for a shipped robot.
    operating : dict of str to any, or None
        Arguments of `certify.operating_bounds`: a box of configurations in which the law must be
        regular and the motors sufficient; None if not given.
    """

    name: str
    path: Path
    robot: Mechanism
    momentum: NDArray[np.float64] | None
    outputs: tuple[Output, ...]
    stiffness: NDArray[np.float64]
    damping: NDArray[np.float64]
    reference: Reference
    q0: NDArray[np.float64]
    initial_velocities: Mapping[str, float]
    duration: float
    dt: float
    method: str
    control_period: float | None
    tolerances: Tolerances
    plant: Mechanism | None
    plant_file: str | None = None
    plant_momentum: NDArray[np.float64] | None = None
    servo_options: Mapping[str, Any] = field(default_factory=dict)
    stages: str | tuple[str, ...] | Mapping[str, float | list[float]] | None = None
    robot_file: str | None = None
    operating: Mapping[str, Any] | None = None

    @cached_property
    def servo(self) -> TaskServo:
        """Servo of the task's outputs with its gains, for the reduced robot; built at first use.

        Raises
        ------
        ConcurError
            If the robot cannot be reduced as requested, the outputs do not fit it, an option of the
            law is out of range, or the start names an unknown shape velocity. The error names the
            file and the place in it.
        """
        model = self._model()
        for option in ("torque_limits", "torque_weights"):
            named = self.servo_options.get(option)
            check_control_names(option, named, model.control_names, self.path)
        try:
            servo = TaskServo(
                model, self.outputs, self.stiffness, self.damping, **self.servo_options
            )
        except ConcurError as error:
            with located(self.path, *option_at_fault(error)):
                raise
        self.shape_velocities(servo)
        return servo

    @cached_property
    def s0(self) -> NDArray[np.float64]:
        """Shape velocities at the start, in the order of the servo's model, (ns,), rad/s and m/s.

        Raises
        ------
        ConcurError
            As of `servo`.
        """
        velocities = self.shape_velocities(self.servo).view(StartVelocities)
        velocities.names = self.servo.model.shape_names
        velocities.setflags(write=False)
        return velocities

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the properties that are computed again."""
        return {key: value for key, value in vars(self).items() if key not in ("servo", "s0")}

    def _model(self) -> ReducedModel:
        """Reduce the robot; on an error, also without its stages to find the cause."""
        if self.stages is None:
            return self._first_model()
        try:
            return reduce(self.robot, momentum=self.momentum, stages=self.stages)
        except ConcurError:
            self._first_model()  # an error without stages is not caused by them
            with located(self.path, "", "stages"):
                raise

    def _first_model(self) -> ReducedModel:
        """Reduce the robot without stages; attribute an error to the momentum or the robot."""
        try:
            return reduce(self.robot, momentum=self.momentum)
        except ConcurError as error:
            if error.where.endswith("`momentum`"):
                place = located(self.path, "", "momentum")
            elif self.robot_file is None:
                place = located(self.path, "", "robot")
            else:
                place = located(self.path.parent / self.robot_file, "")
            with place:
                raise

    def shape_velocities(self, servo: Servo) -> NDArray[np.float64]:
        """Shape velocities at the start as an array.

        Parameters
        ----------
        servo : Servo
            The task's servo.

        Returns
        -------
        ndarray, shape (ns,)
            Those of the start in the order of the servo's model (rad/s, m/s).

        Raises
        ------
        DescriptionError
            If the task names an unknown shape velocity.
        """
        names = servo.model.shape_names
        for name in self.initial_velocities:
            if name not in names:
                raise self._no_shape_velocity(name, servo.model)
        return np.array([self.initial_velocities.get(name, 0.0) for name in names])

    def _no_shape_velocity(self, name: str, model: ReducedModel) -> DescriptionError:
        """Build the error for an existing joint that has no independent start velocity."""
        body, names = name.split("[")[0], model.shape_names
        freedoms = [n for n in names if n.split("[")[0] == body]
        if freedoms:
            came, cure = f"`{name}`", f"Name its DOFs: {', '.join(freedoms)}."
        elif not next(b for b in self.robot.bodies if b.name == body).joint.nv:
            came, cure = f"`{name}`, which is fixed", "Remove it."
        else:
            source = "the wheels" if self.robot.wheels else "the momentum"
            if body in model.stages:
                source = f"the momentum of `{body}`"
            came = f"`{name}`, whose velocity follows from {source}"
            cure = f"Remove it: the shape velocities and {source} determine it."
        return fault(
            self.path,
            "[initial.s]",
            name,
            expected=f"a shape velocity ({', '.join(names)})",
            came=came,
            cure=cure,
        )

    def simulate(
        self, servo: Servo | None = None, progress: bool | Callable[[float], Any] = False
    ) -> Run:
        """Simulate the task on the full-order plant.

        Parameters
        ----------
        servo : Servo, optional
            Another servo of these outputs; default the task's.
        progress : bool or callable
            As for `simulate`.

        Returns
        -------
        Run
            The run.

        Raises
        ------
        SingularConfigurationError
            If the start is singular.
        SimulationError
            If the run stopped early; the attribute `run` of the error holds the computed part.
        """
        servo = self.servo if servo is None else servo
        try:
            return simulate(
                self.robot,
                servo,
                self.reference,
                self.duration,
                self.q0,
                self.shape_velocities(servo),
                plant=self.plant,
                progress=progress,
                momentum=self.plant_momentum,
                integrator=Integrator(self.method, self.dt, self.control_period),
            )
        except SingularConfigurationError:
            with located(self.path, "[initial.q]"):
                raise


Task.__init__ = renamed_arguments({"s0": "initial_velocities"}, both=True)(Task.__init__)  # type: ignore[method-assign]


def _known_method(name: str) -> str:
    if name not in METHODS:
        raise ValueError(f"one of {', '.join(METHODS)}")
    return name


def _known_stages(value: Any) -> Any:
    if value == "auto":
        return value
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(value)
    if isinstance(value, dict) and all(
        is_number(momentum) or (isinstance(momentum, list) and all(map(is_number, momentum)))
        for momentum in value.values()
    ):
        return value
    raise PydanticCustomError("stages", "stages expected")


class _OutputTable(Table):
    name: Text
    body: Text
    group: Text
    point: Vector3 | None = None
    axes: Text | None = None
    orientation: Quaternion | None = None
    normal: Vector3 | None = None
    relative_to: Text | None = None
    stiffness: NumberOrList
    damping: NumberOrList
    integral: NumberOrList | None = None


Step = Annotated[
    float,
    Field(
        ge=SHORTEST_STEP,
        le=LONGEST_RUN,
        description=f"a number above zero, from {SHORTEST_STEP:g} to {LONGEST_RUN:g}",
    ),
]


class _SimulationTable(Table):
    renamed: ClassVar[Mapping[str, str]] = {"hold": "control_period"}

    duration: Step
    dt: Step = 1e-3
    method: Annotated[
        str,
        AfterValidator(_known_method),
        Field(description="one of " + ", ".join(f'"{m}"' for m in METHODS)),
    ] = "rk4"
    control_period: Step | None = None


class _TolerancesTable(Table):
    renamed: ClassVar[Mapping[str, str]] = {"settling_time": "evaluate_after"}

    final_error: Positive = Tolerances.final_error
    deviation: Positive = Tolerances.deviation
    constraint: Positive = Tolerances.constraint
    evaluate_after: Positive | None = None
    margin: Positive = Tolerances.margin
    momentum: Positive = Tolerances.momentum


class _PlantTable(Table):
    file: FileName | None = None
    momentum: Vector6 | None = None


def _ranges(value: Any) -> Any:
    pair = isinstance(value, list) and len(value) == 2 and all(map(is_number, value))
    if pair or (isinstance(value, list) and all(map(_pair, value)) and value):
        return value
    raise PydanticCustomError("range", "range expected")


def _pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(is_number, value))


def _speeds(value: Any) -> Any:
    entries = list(value.values()) if isinstance(value, dict) else value
    numbers = entries if isinstance(entries, list) else [entries]
    if all(map(is_number, numbers)):
        return value
    raise PydanticCustomError("speeds", "speeds expected")


class _OperatingTable(Table):
    renamed: ClassVar[Mapping[str, str]] = {"least": "required_margin"}

    ranges: dict[
        str,
        Annotated[
            Any,
            AfterValidator(_ranges),
            Field(description="a lower and an upper end, or a list of such pairs"),
        ],
    ]
    speeds: Annotated[
        Any,
        AfterValidator(_speeds),
        Field(description="a number, a list of them, or a table of shape velocities"),
    ] = None
    acceleration: NumberOrList = 0.0
    pose_error: NumberOrList = 0.0
    velocity_error: NumberOrList = 0.0
    distance: Positive | None = None
    required_margin: Positive | None = None
    tolerance: Positive = 0.2
    budget: Annotated[
        int,
        # Some milliseconds per box: a million boxes take hours.
        Field(gt=0, le=1_000_000, description="a whole number above zero, at most 1000000"),
    ] = 2000


class _TaskTable(Table):
    name: Text
    robot: FileName
    momentum: Vector6 | None = None
    stages: Annotated[
        Any,
        AfterValidator(_known_stages),
        Field(description='"auto", a list of bodies, or a table of momenta by body'),
    ] = None
    outputs: Annotated[
        list[_OutputTable],
        # More than any robot has drives; each needs a graph.
        Field(min_length=1, max_length=100, description="at least one table [[outputs]]"),
    ]
    reference: Annotated[
        dict[str, dict[str, Any]], Field(description="a table [reference.<output>] per output")
    ]
    initial: InitialTable = InitialTable()
    servo: ServoTable = ServoTable()
    simulation: _SimulationTable
    tolerances: _TolerancesTable = _TolerancesTable()
    plant: _PlantTable = _PlantTable()
    operating: _OperatingTable | None = None


def load_task(path: str | PathLike[str]) -> Task:
    """Read a tracking task from a TOML file.

    Parameters
    ----------
    path : path
        The task. Its fields are ``name``; ``robot``, the name of a shipped robot or a file
        relative to the task; ``momentum`` (6 numbers, optional); ``stages`` (as for `reduce`,
        optional); a table ``[[outputs]]`` for each output with the arguments of `Output` and its
        ``stiffness``, ``damping`` and optionally ``integral`` (a number or one for each
        coordinate);
        ``[reference.<output>]`` with the ``kind`` (a constructor in `references`) and its
        arguments, and for outputs in R^n optionally ``relative_to``, the output whose reference it
        is added to; ``[initial.q]`` and ``[initial.s]`` with configurations by body and shape
        velocities by name, neutral and zero where not given, or ``[initial]`` with
        ``start = "on reference"`` and optionally ``near`` and ``offset``; ``[servo]`` with
        ``use_measured_velocity``, ``damping_threshold``, ``torque_limits``, ``torque_weights`` and
        a table ``redundancy``; ``[simulation]`` with ``duration``, ``dt``, ``method``,
        ``control_period``; ``[tolerances]`` with the fields of `Tolerances`; ``[plant]`` with the
        ``file`` of another robot to simulate and its ``momentum`` (both optional);
        ``[operating]`` with arguments of `certify.operating_bounds` (optional).

    Returns
    -------
    Task
        The task with its robot loaded and its reference built.

    Raises
    ------
    DescriptionError
        If the file cannot be read, a field is missing, unknown or of the wrong type, or a name
        does not exist.
    ConcurError
        If a constructor rejects a part; the error names file and table.
    """
    data = read_toml(path)
    if "bodies" in data and "outputs" not in data:
        raise fault(
            path,
            "",
            "",
            expected="a task file",
            came="a robot file (it has `bodies`)",
            cure=f"Use `concur check {path}`; a task names it in its field `robot`.",
        )
    task = check(_TaskTable, data, path)
    _check_times(task, path)
    check_initial(task.initial, path)
    robot = _robot(task.robot, path)
    outputs = tuple(_output(table, robot, task.outputs, path) for table in task.outputs)
    moving = task.plant
    read = Task(
        name=task.name,
        path=Path(path),
        robot=robot,
        momentum=None if task.momentum is None else _frozen(task.momentum),
        outputs=outputs,
        stiffness=_gains(outputs, task.outputs, "stiffness", path),
        damping=_gains(outputs, task.outputs, "damping", path),
        reference=read_reference(outputs, task.reference, data, path),
        q0=read_configuration(task.initial.q or {}, robot, path, "[initial.q]"),
        initial_velocities=_initial_velocities(task.initial.s or {}, robot, path),
        duration=task.simulation.duration,
        dt=task.simulation.dt,
        method=task.simulation.method,
        control_period=task.simulation.control_period,
        tolerances=_tolerances(task),
        plant=None if moving.file is None else _plant(moving.file, robot, path),
        plant_file=moving.file,
        plant_momentum=None if moving.momentum is None else _frozen(moving.momentum),
        servo_options=read_servo(task.servo, robot, path) | _integral(outputs, task.outputs, path),
        stages=_stages(task.stages, robot, path),
        robot_file=task.robot if _is_file(task.robot) else None,
        operating=_operating(task.operating, robot, path),
    )
    if task.initial.start is None:
        return read
    servo = read.servo
    found = start_on_reference(task.initial, servo, read.reference, path)
    velocities = dict(zip(servo.model.shape_names, found.s.tolist(), strict=True))
    started = replace(read, q0=_frozen(found.q), initial_velocities=velocities)
    started.__dict__["servo"] = servo  # the same one, which takes a while to build
    return started


def _check_times(task: _TaskTable, path: str | PathLike[str]) -> None:
    """Reject inconsistent times before anything is built."""
    run = task.simulation
    if run.duration / run.dt > MOST_STEPS:
        raise fault(
            path,
            "[simulation]",
            "duration",
            expected=f"at most {MOST_STEPS} steps of dt = {run.dt:g} s",
            came=f"{run.duration:g} s",
            cure="Shorten it, or use longer steps.",
        )
    for name, value in (("duration", run.duration), ("control_period", run.control_period)):
        if value is None:
            continue
        steps = round(value / run.dt)
        if steps < 1 or abs(steps * run.dt - value) > 1e-9 * max(1.0, value):
            raise fault(
                path,
                "[simulation]",
                name,
                expected=f"a whole number of steps of dt = {run.dt:g} s",
                came=f"{value:g} s",
                cure=f"Write {max(steps, 1) * run.dt:.10g}, or change `dt`.",
            )
    start = task.tolerances.evaluate_after
    if start is not None and start > run.duration:
        raise fault(
            path,
            "[tolerances]",
            "evaluate_after",
            expected=f"a time within the duration of {run.duration:g} s",
            came=f"{start:g} s",
            cure="Shorten it, or lengthen the duration.",
        )


def _operating(
    table: _OperatingTable | None, robot: Mechanism, path: str | PathLike[str]
) -> dict[str, Any] | None:
    """Reject unknown bodies; the servo checks the rest."""
    if table is None:
        return None
    bodies = [body.name for body in robot.bodies]
    for name in table.ranges:
        if name not in bodies:
            raise unknown(path, "[operating.ranges]", name, "a body", name, bodies)
    values = {name: getattr(table, name) for name in type(table).model_fields}
    return {name: value for name, value in values.items() if value is not None}


def _stages(
    stages: str | tuple[str, ...] | dict[str, Any] | None,
    robot: Mechanism,
    path: str | PathLike[str],
) -> str | tuple[str, ...] | dict[str, Any] | None:
    """Reject unknown bodies; the model checks whether their joints can be reduced."""
    if stages is not None and stages != "auto":
        bodies = [body.name for body in robot.bodies]
        for name in stages:
            if name not in bodies:
                raise unknown(path, "", "stages", "a body", name, bodies)
    return stages


def _robot(name: str, path: str | PathLike[str]) -> Mechanism:
    if _is_file(name):
        file = Path(path).parent / name
        if not is_file(file):
            raise missing_file(path, "", "robot", "a robot file", file)
        return load(file)
    known = shipped_names()
    if name not in known:
        raise unknown(path, "", "robot", "a shipped robot or a .toml file", name, known)
    return load_shipped(name)


def _is_file(name: str) -> bool:
    return "/" in name or "\\" in name or Path(name).suffix.lower() in (".toml", ".urdf")


def _plant(file: str, robot: Mechanism, path: str | PathLike[str]) -> Mechanism:
    whole = Path(path).parent / file
    if not is_file(whole):
        raise missing_file(path, "[plant]", "file", "a robot file", whole)
    plant = load(whole)
    expected, found = _structure(robot), _structure(plant)
    if expected != found:
        odd = [line for line in found if line not in expected]
        lost = [line for line in expected if line not in found]
        parts = [", ".join(odd), f"without {', '.join(lost)}" if lost else ""]
        came = " ".join(filter(None, parts)) or "another order of the bodies"
        raise fault(
            path,
            "[plant]",
            "file",
            expected="the bodies, joints and drives of the task's robot",
            came=came,
            cure="Copy the robot's file and change numbers only.",
        )
    return plant


def _structure(robot: Mechanism) -> list[str]:
    """Describe the properties that a plant shares with the robot, one line per body."""
    driven = robot.driven_bodies
    return [
        f"`{b.name}` ({type(b.joint).__name__} on {b.parent or 'the world'}"
        + (", driven)" if b.name in driven else ")")
        for b in robot.bodies
    ]


def _output(
    table: _OutputTable,
    robot: Mechanism,
    tables: Sequence[_OutputTable],
    path: str | PathLike[str],
) -> Output:
    label = _label(table)
    if sum(other.name == table.name for other in tables) > 1:
        raise fault(
            path,
            label,
            "name",
            expected="a unique name for each output",
            came=f"`{table.name}` twice",
            cure="Rename one of them.",
        )
    bodies = [body.name for body in robot.bodies]
    for key, body in (("body", table.body), ("relative_to", table.relative_to)):
        if body is not None and body not in bodies:
            raise unknown(path, label, key, "a body", body, bodies)
    if table.group not in REFERENCE_KINDS:
        raise unknown(path, label, "group", "a group", table.group, REFERENCE_KINDS)
    with located(path, label):
        return Output(**table.given({field.name for field in fields(Output)}))


def _gains(
    outputs: Sequence[Output],
    tables: Sequence[_OutputTable],
    field: str,
    path: str | PathLike[str],
) -> NDArray[np.float64]:
    diagonal: list[float] = []
    for output, table in zip(outputs, tables, strict=True):
        value = getattr(table, field)
        if value is None:  # an integral
            diagonal += [0.0] * output.dim
            continue
        numbers = [value] * output.dim if is_number(value) else list(value)
        if len(numbers) != output.dim or not all(0.0 < number < np.inf for number in numbers):
            raise fault(
                path,
                _label(table),
                field,
                expected="a number above zero, or "
                f"{output.dim} of them for an output in {output.group}",
                came=show(value),
                cure="Use gains above zero, with which the errors decay.",
            )
        diagonal += numbers
    return _frozen(np.diag(diagonal))


def _integral(
    outputs: Sequence[Output], tables: Sequence[_OutputTable], path: str | PathLike[str]
) -> dict[str, NDArray[np.float64]]:
    """Gain of integral action as an argument of `Servo`, if an output has one."""
    if all(table.integral is None for table in tables):
        return {}
    return {"integral": _gains(outputs, tables, "integral", path)}


def _initial_velocities(
    table: Mapping[str, float], robot: Mechanism, path: str | PathLike[str]
) -> dict[str, float]:
    bodies = [body.name for body in robot.bodies]
    for name in table:
        # Check only that the joints exist; the model determines the shape velocities later.
        if name.split("[")[0] not in bodies:
            raise unknown(path, "[initial.s]", name, "a joint", name, bodies)
    return dict(table)


def _tolerances(task: _TaskTable) -> Tolerances:
    values = {field.name: getattr(task.tolerances, field.name) for field in fields(Tolerances)}
    if values["evaluate_after"] is None:
        values["evaluate_after"] = 0.5 * task.simulation.duration
    return Tolerances(**values)


def _label(table: _OutputTable) -> str:
    return f'[[outputs]] "{table.name}"'


def _frozen(values: Any) -> NDArray[np.float64]:
    array = np.array(values, dtype=np.float64)
    array.setflags(write=False)
    return array
