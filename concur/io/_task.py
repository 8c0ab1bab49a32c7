"""Reader of tracking tasks from TOML files: robot, outputs, gains, reference, run, tolerances."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from concur._progress import busy
from concur.control import KINDS, Constraints, JointLimits, Redundancy, Servo, TrackingLaw
from concur.errors import (
    ConcurError,
    DescriptionError,
    SimulationError,
    SingularConfigurationError,
)
from concur.files import given, recorded
from concur.io._configuration import read_configuration
from concur.io._imperfections import read_slip
from concur.io._initial import joint_of, read_state, spinning, start_on_reference
from concur.io._nominal import nominal_values
from concur.io._plan import PlanTable, check_planned, read_planned
from concur.io._proof_task import proof_task
from concur.io._python_task import is_python, python_task
from concur.io._reference import held_at_start, read_reference
from concur.io._requirements import read_requirements
from concur.io._task_parts import (
    check_control_names,
    check_law,
    check_reserve,
    frozen,
    is_robot_file,
    law_words,
    option_at_fault,
    read_law,
    read_laws,
    read_operating,
    read_outputs,
    read_plant,
    read_robot,
    read_stages,
)
from concur.io._task_tables import TaskTable
from concur.io._uncertainty import read_uncertainty, read_world
from concur.io._world_file import write_world
from concur.io._world_loop import WorldLoop
from concur.outputs import Output, references
from concur.outputs.references import Reference
from concur.reduction import ReducedModel, reduce
from concur.results import Row
from concur.robot import Mechanism
from concur.simulation import (
    Imperfections,
    Integrator,
    Plant,
    RealPlant,
    Run,
    Slip,
    Tolerances,
    first_invalid,
    run_signals,
    simulate,
    valid_ranges,
)
from concur.tables import build, fault, located, placed, read_toml, show
from concur.worlds import Requirement, Uncertainty, World

if TYPE_CHECKING:
    from concur.proofs import Statement


@dataclass(frozen=True)
class Source:
    """Files that a task was read from.

    Parameters
    ----------
    path : Path
        The task file.
    files : mapping of str to bytes
        Content of the files by their names.
    read : mapping of str to any
        Fields of the task that was read.
    """

    path: Path
    files: Mapping[str, bytes]
    read: Mapping[str, Any]


FINAL_ERROR = 1e-3
"""Limit of the errors at the end, m and rad, where torques are held or the plant is another."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Task:
    """A tracking task: robot, law, reference, plant, start and times.

    `load_task` reads one from a file, with the requirements, uncertainty and proof that stand there
    beside it; in Python these are arguments of `verify`.

    Parameters
    ----------
    name : str
        Name of the task.
    path : Path
        File it was read from; of a task made in Python the name in errors.
    robot : Mechanism or LagrangianSystem
        Robot that the servo is designed for.
    momentum : ndarray, shape (6,), or None
        Constant spatial momentum about the inertial origin, [linear; angular] (kg m/s,
        kg m^2/s); None if not given.
    outputs : tuple of Output
        Outputs that track the reference, in order.
    stiffness, damping : ndarray, shape (n, n), or as for `Servo`
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
    law_table : dict of str to any
        Kind and options of the law, as written; empty for a servo.
    law_source : str
        Text of the Python file of a law of the kind "FILE.py:NAME", else empty.
    laws : dict of str to dict
        Further laws by name: kind and options, for `with_law` and comparisons.
    stages : str, tuple of str, dict of str to float or list of float, or None
        Joints by which the robot is reduced further, as for `reduce`: "auto", names, or momenta by
        name (N m s, N s); None without stages.
    robot_file : str or None
        File of the robot as written in the task; None for a shipped robot.
    operating : dict of str to any, or None
        Arguments of `certify.operating_bounds`: a box of configurations in which the law must be
        regular and the motors sufficient; None if not given.
    proof : dict of str to any, or None
        Starts, imperfections and limits of a proof, from which `statement` is made.
    imperfections : Imperfections or None
        Imperfections of the plant; None if not given.
    slip : Slip or None
        Friction of the plant's wheels, which may slip; None if they roll.
    requirements : tuple of Requirement
        Requirements on a run: those of the file, or those of tolerances and limits.
    states_requirements : bool
        Whether the file states requirements.
    uncertainty : Uncertainty
        Quantities that differ between worlds; empty if none is declared.
    world : World or None
        The world that is simulated; None for the nominal one.
    reference_tables : dict of str to dict
        Tables of the reference, as written.
    source : Source or None
        Files that the task was read from: a pickle contains these, and what was changed since.

    Examples
    --------
    >>> import concur as cc
    >>> task = cc.load_task("examples/rover_arm.toml")
    >>> [output.name for output in task.outputs]
    ['base', 'hand']

    In Python:

    >>> from concur.io import Task
    >>> robot = cc.robots.rover_arm()
    >>> nose = cc.Output("nose", "chassis", "R2", point=(0.25, 0, 0))
    >>> goal = cc.references.hold([0.3, 0.0])
    >>> made = Task(
    ...     robot=robot, outputs=(nose,), stiffness=4.0, damping=4.0, reference=goal,
    ...     q0=robot.neutral(), duration=0.1)
    >>> float(made.simulate().t[-1])
    0.1
    """

    name: str = "task"
    path: Path = Path("task.toml")
    robot: Mechanism
    momentum: NDArray[np.float64] | None = None
    outputs: tuple[Output, ...]
    stiffness: ArrayLike
    damping: ArrayLike
    reference: Reference
    q0: NDArray[np.float64]
    initial_velocities: Mapping[str, float] = field(default_factory=dict)
    duration: float
    dt: float = 1e-3
    method: str = "rk4"
    control_period: float | None = None
    tolerances: Tolerances = field(default_factory=Tolerances)
    plant: Mechanism | None = None
    plant_file: str | None = None
    plant_momentum: NDArray[np.float64] | None = None
    servo_options: Mapping[str, Any] = field(default_factory=dict)
    law_table: Mapping[str, Any] = field(default_factory=dict)
    law_source: str = ""
    laws: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    stages: str | tuple[str, ...] | Mapping[str, float | list[float]] | None = None
    robot_file: str | None = None
    operating: Mapping[str, Any] | None = None
    proof: Mapping[str, Any] | None = None
    imperfections: Imperfections | None = None
    slip: Slip | None = None
    requirements: tuple[Requirement, ...] = ()
    states_requirements: bool = False
    uncertainty: Uncertainty = field(default_factory=Uncertainty)
    world: World | None = None
    reference_tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    source: Source | None = field(default=None, repr=False)

    @cached_property
    def law(self) -> TrackingLaw:
        """Law of the task, of the kind in ``[law]``; a `Servo` by default. Built at first use.

        Raises
        ------
        ConcurError
            As of `servo`, or if an option of the law is out of range.
        """
        if self.law_table.get("kind", "servo") == "servo":
            return self.servo
        motion = self.reference, self.duration, self.q0
        return read_law(self.law_table, self.law_source, self.nominal.servo, motion, self.path)

    @property
    def nominal(self) -> Task:
        """The task with a servo of the same outputs and gains in place of its law."""
        return replace(self, law_table={}, law_source="")

    def with_law(self, law: str | Mapping[str, Any]) -> Task:
        """Make the same task with another law.

        Parameters
        ----------
        law : str or mapping
            Name of one of `laws`; a kind, with options behind commas, such as
            ``"passive, rate = 2.0"``; or a table with `kind` and options. Limits of torques,
            weights of controls and measured velocities of ``[servo]`` hold for every kind that has
            them. A task with ``[servo.constraints]`` takes servos and laws of Python files alone:
            other kinds do not keep them.

        Returns
        -------
        Task
            The task with this law.

        Raises
        ------
        ConcurError
            If there is no such kind or option, or the kind does not keep the limits of
            ``[servo.constraints]``; others are rejected by `law`.

        Examples
        --------
        >>> import concur as cc
        >>> task = cc.load_task("examples/rover_arm.toml")
        >>> type(task.with_law("passive").law).__name__
        'PassiveServo'
        """
        table = law_words(law, self.laws) if isinstance(law, str) else dict(law)
        source = check_law(table, "", self.path, f'law "{table.get("kind", law)}"')
        options = {key: value for key, value in table.items() if key not in ("kind", "name")}
        kind, nominal = table["kind"], self.nominal
        if kind == "servo":
            gains = {key: options.pop(key) for key in ("stiffness", "damping") if key in options}
            for key, make in {"constraints": Constraints, "redundancy": Redundancy}.items():
                if isinstance(own := options.get(key), Mapping):
                    options[key] = build(make, own, self.path, at=("laws", key))
            return replace(nominal, servo_options={**self.servo_options, **options}, **gains)
        if kind in KINDS:
            if self.servo_options.get("constraints") is not None:
                raise fault(
                    self.path,
                    "[servo.constraints]",
                    "",
                    expected="a servo or a law of a Python file, which keep limits",
                    came=f'the kind "{kind}"',
                    cure="Remove the table, so that no law of the comparison keeps these limits.",
                )
            taken = signature(KINDS[kind]).parameters
            shared = ("torque_limits", "torque_weights", "use_measured_velocity")
            for key in shared:
                if key in taken and key in self.servo_options:
                    options.setdefault(key, self.servo_options[key])
        return replace(nominal, law_table={"kind": kind, **options}, law_source=source)

    @cached_property
    def servo(self) -> Servo:
        """Servo of the task's outputs with its gains, for the reduced robot; built at first use.

        Raises
        ------
        ConcurError
            If the robot cannot be reduced as requested, the outputs do not fit it, an option of the
            law is out of range, the start names an unknown shape velocity, or the law of the task
            is of another kind. The error names the file and the place in it.
        """
        if self.law_table.get("kind", "servo") != "servo":
            raise fault(
                self.path,
                "[law]",
                "kind",
                expected="a servo, whose error dynamics are known",
                came=show(self.law_table["kind"]),
                cure="Remove [law]: certificates, proofs and designs of gains are for a servo.",
            )
        model = self._model()
        for option in ("torque_limits", "torque_weights"):
            named = self.servo_options.get(option)
            check_control_names(option, named, model.control_names, self.path)
        try:
            servo = Servo(model, self.outputs, self.stiffness, self.damping, **self.servo_options)
            check_reserve(self.servo_options, "[servo]", model, self.path)
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
            As of `servo`, but for its kind.
        """
        velocities = self.shape_velocities(self.law)
        velocities.setflags(write=False)
        return velocities

    @property
    def law_file(self) -> Path | None:
        """Python file of an own law, whose code runs when the law is built."""
        if not self.law_source:
            return None
        return self.path.parent / str(self.law_table["kind"]).rpartition(":")[0]

    @property
    def statement(self) -> Statement | None:
        """What `concur prove` proves; None without a table ``[proof]``.

        Raises
        ------
        ConcurError
            If the table names an unknown control or joint, or the servo cannot be built.
        """
        if self.proof is None:
            return None
        from concur.io._proof import statement

        limits = JointLimits.of(self.robot, self.plant or self.robot)
        return statement(self.proof, self.servo, limits, self.path)

    def proof_text(self) -> str:
        """Text of a task file with the robot `robot.toml`: the task in the file of a proof.

        It has outputs, law, reference, start and times, all numbers to the last bit. Limits and
        imperfections are those of `statement`, which stands beside it in that file.

        Returns
        -------
        str
            The text.

        Raises
        ------
        OutputError
            If the law has options that proofs of tasks do not cover.
        """
        return proof_task(self)

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as the text of the files, and as what was changed since they were read."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "source"}
        if self.source is None:
            return _made, (values,)
        read = self.source.read
        changed = {name: value for name, value in values.items() if value is not read[name]}
        return _read_again, (self.source.path, self.source.files, changed)

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

    def shape_velocities(self, servo: TrackingLaw) -> NDArray[np.float64]:
        """Shape velocities at the start as an array.

        Parameters
        ----------
        servo : TrackingLaw
            The task's law.

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
        names, index = model.shape_names, self.robot.joints[joint_of(self.robot, name)]
        body, span = self.robot.bodies[index], self.robot.v_spans[index]
        freedoms = [n for n in self.robot.freedom_names[span] if n in names]
        if freedoms:
            came, cure = f"`{name}`", f"Name its DOFs: {', '.join(freedoms)}."
        elif not body.joint.nv:
            came, cure = f"`{name}`, which is fixed", "Remove it."
        else:
            source = "the wheels" if self.robot.wheels else "the momentum"
            if body.joint_label in model.stages:
                source = f"the momentum of `{body.joint_label}`"
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
        self, servo: TrackingLaw | None = None, progress: bool | Callable[[float], Any] = False
    ) -> Run:
        """Simulate the task on the full-order plant.

        With `imperfections` or a `world` the law is sampled, in each step where there is no control
        period, and the record has one row for each period.

        Parameters
        ----------
        servo : TrackingLaw, optional
            Another law of these outputs; default the task's.
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
        try:
            return self._judged(self._simulated(self.law if servo is None else servo, progress))
        except (SimulationError, KeyboardInterrupt) as error:
            given = error.data if isinstance(error, SimulationError) else vars(error)
            if "run" in given:
                given["run"] = self._judged(given["run"])
            raise

    def _judged(self, run: Run) -> Run:
        """Run with the tolerances and requirements by which it is judged."""
        required: list[Row] = []
        if self.states_requirements or self.world is not None:  # else tolerances and limits
            units = {made.name: made.unit for made in self.requirements}
            required = [
                # Zero does not hold: the smallest float does.
                Row.judged(
                    f"requirement {name}", value, 0.0, units[name], "robustness",
                    at_least=True, slack=-math.ulp(0.0),
                )
                for name, value in self.robustness(run).items()
            ]  # fmt: skip
        return replace(run, tolerances=self.tolerances, required=tuple(required))

    def _simulated(self, servo: TrackingLaw, progress: bool | Callable[[float], Any]) -> Run:
        if self.world is not None or self.imperfections is not None:
            world = self.world or World()
            with busy(progress, f"simulating {self.name}"):
                loop = self.loop(world.values, servo)
                return loop.run(world.values, world.number, world.seed)
        try:
            return simulate(
                self.robot,
                servo,
                self.reference,
                self.duration,
                self.q0,
                self.shape_velocities(servo),
                Integrator(self.method, self.dt, self.control_period, progress=progress),
                RealPlant(
                    self.plant if self.slip is None else self._slipping(),
                    momentum=self.plant_momentum,
                ),
            )
        except SingularConfigurationError:
            with located(self.path, "[initial.q]"):
                raise

    def robustness(self, run: Run) -> dict[str, float]:
        """Robustness of the requirements in a run of this task.

        Parameters
        ----------
        run : Run
            The run, also one that stopped early.

        Returns
        -------
        dict of str to float
            Robustness by name of the requirement, above zero if it holds, in its unit. Signals are
            those of the control periods; of speed, slip and loads a campaign has all steps. A run
            that is not valid from some time on counts as stopped there.
        """
        period = self.control_period or self.dt
        ticks, stride = round(self.duration / period), max(round(period / (run.dt or period)), 1)
        signals = run_signals(run)
        limits, real = run.joint_limits, run.imperfections
        limits = limits if real is None or not real.motors else limits.without_torques
        ranges = valid_ranges(run.robot, run.slip, limits, self.tolerances.constraint)
        invalid = first_invalid(ranges, signals)
        stopped = None if invalid is None else min(invalid[0] // stride, ticks - 1)
        # The last row has no period.
        rows = {name: values[:-1:stride] for name, values in signals.items()}
        return {
            made.name: made.robustness(
                {name: rows[name] for name in (*made.signals, "margin")}, ticks, period, stopped
            )
            for made in self.requirements
        }

    def _slipping(self) -> Plant:
        return Plant(self.plant or self.robot, slip=self.slip)

    def loop(self, names: Iterable[tuple[str, str]], servo: TrackingLaw | None = None) -> WorldLoop:
        """Make the closed loop of the task with uncertain quantities as inputs of its graphs.

        Parameters
        ----------
        names : iterable of (str, str)
            Kind and name of the quantities, as of `Uncertainty.values`.
        servo : TrackingLaw, optional
            Another law of these outputs; default the task's.

        Returns
        -------
        WorldLoop
            The loop, sampled with the control period; with `dt` for a continuous servo.

        Raises
        ------
        DescriptionError
            If the model has no such start velocity or momentum, or the duration is no multiple of
            the control period.
        """
        servo = self.law if servo is None else servo
        return WorldLoop(
            path=self.path,
            servo=servo,
            robot=self.plant or self.robot,
            reference=self.reference,
            reference_with=self._reference_with,
            q0=self.q0,
            s0=self.shape_velocities(servo),
            momentum=self.plant_momentum,
            imperfections=self.imperfections or Imperfections(motors=False),
            slip=self.slip,
            times=(self.duration, self.dt, self.control_period or self.dt),
            method=self.method,
            names=tuple(names),
        )

    def with_world(self, row: ArrayLike, number: int = 0, seed: int = 0) -> Task:
        """Make the task of one world of the uncertainty.

        Parameters
        ----------
        row : array_like
            Deviations, a row of `Uncertainty.draw`, shape (d,).
        number, seed : int
            Number of the world and seed of the campaign: the key of jitter and noise.

        Returns
        -------
        Task
            The task with this `world` and without `uncertainty`.
        """
        world = World(self.uncertainty.world(row), number, seed)
        return replace(self, world=world, uncertainty=Uncertainty())

    def write_world(
        self, path: str | PathLike[str], row: ArrayLike, number: int = 0, seed: int = 0
    ) -> Path:
        """Write one world of the uncertainty as a task file, for `concur track`.

        The text of the task's file is kept, with a table ``[world]`` in place of ``[uncertainty]``.

        Parameters
        ----------
        path : path
            File to write; an existing one is replaced.
        row : array_like
            Deviations, a row of `Uncertainty.draw`, shape (d,).
        number, seed : int
            Number of the world and seed of the campaign.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        ConcurError
            If the file of the task cannot be read, or the new one cannot be written.
        """
        write_world(self.path, Path(path), World(self.uncertainty.world(row), number, seed))
        return Path(path)

    def _reference_with(self, changes: Mapping[tuple[str, str], Any]) -> Reference:
        """Reference with deviations of fields of its tables, by output and field."""
        tables = {name: dict(table) for name, table in self.reference_tables.items()}
        for (output, field_name), change in changes.items():
            if field_name not in tables.get(output, ()):
                raise fault(
                    self.path,
                    f"[reference.{output}]",
                    field_name,
                    expected="a field of the file's reference, to which a deviation is added",
                    came="a reference without it",
                    cure="Omit this uncertain quantity.",
                )
            value = np.asarray(tables[output][field_name], dtype=float) + change
            tables[output][field_name] = value.tolist()
        return read_reference(self.outputs, tables, self.path, self.duration)


def load_task(path: str | PathLike[str]) -> Task:
    """Read a tracking task from a TOML file, or run a Python file that makes one.

    Parameters
    ----------
    path : path
        The task. A file ``.py`` is executed: its ``task`` is a `Task`, or a function that returns
        one; its robot may be a `LagrangianSystem`. In a TOML file the fields are ``name``;
        ``robot``, the name of a shipped robot or a file relative to the task; ``momentum`` (6
        numbers, optional); ``stages`` (as for `reduce`, optional); a table ``[[outputs]]`` for each
        output with the arguments of `Output` and its ``stiffness``, ``damping`` and optionally
        ``integral`` (a number or one for each coordinate); ``[reference.<output>]`` with the
        ``kind`` (a constructor in `references`) and its arguments, and for outputs in R^n
        optionally ``relative_to``, the output whose reference it is added to; ``[initial.q]`` and
        ``[initial.s]`` with configurations by joint and shape velocities by name, neutral and zero
        where not given, or ``[initial]`` with ``start = "on reference"`` and optionally ``near``
        and ``offset``; ``[servo]`` with ``use_measured_velocity``, ``damping_threshold``,
        ``torque_limits``, ``torque_weights`` and a table ``redundancy``; ``[law]`` with the
        ``kind`` of another law and its arguments (optional); ``[[laws]]`` with the ``name``,
        ``kind`` and arguments of laws to compare (optional); ``[simulation]`` with ``duration``,
        ``dt``, ``method``, ``control_period``; ``[tolerances]`` with the fields of `Tolerances`;
        ``[plant]`` with the ``file`` of another robot to simulate and its ``momentum`` (both
        optional); ``[operating]`` with arguments of `certify.operating_bounds`, ``[proof]`` with
        those of `proofs.Statement` (both optional); ``[imperfections]`` with arguments of
        `Imperfections.of`; ``[[requirements]]``; ``[uncertainty.<kind>]`` with intervals or
        distributions by name, or ``[world.<kind>]`` with the deviations of one world (all
        optional).

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

    Examples
    --------
    >>> import concur as cc
    >>> task = cc.load_task("examples/rover_arm.toml")
    >>> task.name, task.duration
    ('slalom with circling hand', 20.0)
    """
    with recorded() as files:
        written = is_python(path)
        task = replace(python_task(path, Task), path=Path(path)) if written else _read(path)
    servo = task.__dict__.get("servo")
    made = replace(task, source=Source(Path(path), files, dict(vars(task))))
    if servo is not None:
        made.__dict__["servo"] = servo  # the same one, which takes a while to build
    return made


def _made(values: Mapping[str, Any]) -> Task:
    """Make a task of its fields."""
    return Task(**values)


def _read_again(path: Path, files: Mapping[str, bytes], changed: Mapping[str, Any]) -> Task:
    """Read a task from the content of its files, and change what was changed."""
    with given(files):
        task = load_task(path)
    return replace(task, **changed) if changed else task


def load_goal(path: str | PathLike[str]) -> tuple[Task, PlanTable]:
    """Read a task whose references are still to be planned, and its goal.

    Parameters
    ----------
    path : str or path-like
        Task file with a table ``[plan]``.

    Returns
    -------
    tuple of Task and PlanTable
        The task, whose references are at rest in the origin, and the goal.

    Raises
    ------
    DescriptionError
        As of `load_task`; or without ``[plan]``.

    Examples
    --------
    >>> from concur.io import load_goal
    >>> task, goal = load_goal("examples/planned_rover.toml")
    >>> sorted(goal.goals)
    ['base', 'hand']
    """
    table = build(TaskTable, read_toml(path), path)
    if table.plan is None:
        raise fault(
            path,
            "",
            "plan",
            expected="a table [plan] with the goals",
            came="a task without one",
            cure="Write [plan.goals] with a pose for each output; remove [reference.<output>].",
        )
    return _read(path, planning=True), table.plan


def _read(path: str | PathLike[str], planning: bool = False) -> Task:
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
    task = build(TaskTable, data, path)
    robot = read_robot(task.robot, path)
    outputs, gains = read_outputs(task.outputs, robot, path)
    moving, tolerances = task.plant, task.tolerances
    if not math.isfinite(tolerances.evaluate_after):
        tolerances = replace(tolerances, evaluate_after=0.5 * task.simulation.duration)
    as_modelled = not (task.simulation.control_period or task.imperfections or moving.file)
    if "final_error" not in data.get("tolerances", {}) and not as_modelled:
        tolerances = replace(tolerances, final_error=FINAL_ERROR)
    options = task.servo.keywords if task.servo else {}
    rule = options.get("redundancy")
    if rule is not None and rule.posture is not None:
        read_configuration(rule.posture, robot, path, "[servo.redundancy.posture]")
    # The joints of the velocities exist; the model determines those that are free later.
    start, momentum, velocities = read_state(task.initial, task.momentum, robot, path)
    planned: Mapping[str, Any] | None = None
    if planning:
        if task.initial.start is not None:
            cure = "Write `q`, and `s` if it moves."
            raise fault(
                path, "[initial]", "start", expected="a start that is written",
                came="one on the reference", cure=cure,
            )  # fmt: skip
        reference = references.stack(*[_at_origin(output) for output in outputs])
    elif task.plan is not None:
        reference, planned = read_planned(task.plan, outputs, path)
    else:
        tables = task.reference
        still = {k for k, x in tables.items() if x.get("kind") == "hold" and "point" not in x}
        if held := [output for output in outputs if output.name in still]:
            written = None if task.initial.start else start
            tables = held_at_start(held, tables, robot, written, path)
            task = replace(task, reference=tables)
        reference = read_reference(outputs, tables, path, task.simulation.duration)
    beside = "[servo]" if task.servo else ""
    beside = beside or "integral" * any("integral" in table for table in task.outputs)
    read = Task(
        name=task.name,
        path=Path(path),
        robot=robot,
        momentum=None if momentum is None else frozen(momentum),
        outputs=outputs,
        stiffness=gains.pop("stiffness"),
        damping=gains.pop("damping"),
        reference=reference,
        q0=start,
        initial_velocities=velocities,
        duration=task.simulation.duration,
        dt=task.simulation.dt,
        method=task.simulation.method,
        control_period=task.simulation.control_period,
        tolerances=tolerances,
        plant=None if moving.file is None else read_plant(moving.file, robot, path),
        plant_file=moving.file,
        plant_momentum=None if moving.momentum is None else frozen(moving.momentum),
        servo_options=options | gains,
        law_table=task.law or {},
        law_source=check_law(task.law or {"kind": "servo"}, beside, path),
        laws=read_laws(task.laws, path),
        stages=read_stages(task.stages, robot, path),
        robot_file=task.robot if is_robot_file(task.robot) else None,
        operating=None if task.operating is None else read_operating(data, robot, path),
        proof=None if task.proof is None else _proof(data, outputs, task, path),
        reference_tables=task.reference if planned is None else planned,
    )
    if task.plan is not None and not planning:
        check_planned(read, task.plan)
    if task.initial.start is None:
        return replace(read, **_worlds(read, task, data))
    servo = read.nominal.servo
    found = start_on_reference(task.initial, servo, read.reference, path)
    s = found.s
    if task.initial.spin_deg is not None:
        momentum, s = spinning(task.initial, servo, found, path)
        read = replace(read, momentum=frozen(momentum))
        servo = read.nominal.servo
    velocities = dict(zip(servo.model.shape_names, s.tolist(), strict=True))
    read = replace(read, q0=frozen(found.q), initial_velocities=velocities)
    started = replace(read, **_worlds(read, task, data))
    if read.law_table.get("kind", "servo") == "servo":
        started.__dict__["servo"] = servo  # the same one, which takes a while to build
    return started


def _at_origin(output: Output) -> Reference:
    """Rest of an output in the origin of its group."""
    still = ca.DM(output.lie.coordinates((ca.DM.eye(3), ca.DM(3, 1))))
    group = output.group if still.numel() > 3 and not output.is_function else None
    return references.hold(np.array(still)[:, 0], group)


def _proof(
    data: Mapping[str, Any],
    outputs: Sequence[Output],
    task: TaskTable,
    path: str | PathLike[str],
) -> dict[str, Any]:
    """Table of a proof; its classes are imported if there is one."""
    from concur.io._proof import read_proof

    return read_proof(data, outputs, task.simulation.control_period, path)


def _worlds(task: Task, table: TaskTable, data: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a task with imperfections, requirements, uncertainty and world."""
    path, robot = task.path, task.plant or task.robot
    with placed(path, data, ("imperfections",)):
        real = table.imperfections and table.imperfections(robot)
    slip = read_slip(table.plant.slip, robot, path)
    limits = JointLimits.of(task.robot, robot)
    if table.requirements is None and real is not None and real.motors:
        limits = limits.without_torques
    times = task.duration, task.control_period or task.dt
    found: dict[str, Any] = {
        "imperfections": real,
        "slip": slip,
        "requirements": read_requirements(
            table.requirements,
            limits,
            task.outputs,
            task.tolerances,
            times,
            slip,
            path,
        ),
        "states_requirements": table.requirements is not None,
    }
    if table.uncertainty is None and table.world is None:
        return found
    momentum = task.momentum if task.plant_momentum is None else task.plant_momentum
    nominal = nominal_values(robot, real, slip, momentum, task.initial_velocities, table.reference)
    found["uncertainty"] = read_uncertainty(table.uncertainty, nominal, path)
    found["world"] = read_world(table.world, nominal, path)
    return found
