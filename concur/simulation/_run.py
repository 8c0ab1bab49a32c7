"""The record of a simulated run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, fields
from functools import cached_property
from importlib import import_module
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from concur._version import __version__
from concur.control import Law, TrackingLaw, given_options, law_parameters, tracking_law
from concur.errors import ConcurError, DescriptionError, shown
from concur.outputs import Output
from concur.reduction import wheel_names
from concur.results import Figures, Row, read_rows, show, stored_rows, verdict
from concur.robot import Mechanism, as_tree
from concur.simulation._findings import findings
from concur.simulation._friction import Friction
from concur.simulation._imperfections import imperfections_from
from concur.simulation._motors import motor_numbers
from concur.simulation._run_data import RunData, Tolerances
from concur.simulation._slip import Slip, load_names
from concur.simulation._stored import (
    MOMENTUM_COLUMNS,
    STORED,
    Columns,
    check_identity,
    coordinate_columns,
    identity,
    read_arrays,
    velocity_columns,
)
from concur.system import System
from concur.writers import to_toml

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SINGLE = ("t", "lyapunov", "scale", "margin", "constraint_residual", "energy", "work")
"""Arrays with one number per row."""

DRAWN = "Declare frames as `drawn` of the LagrangianSystem, or plot the run with run.plot()."
"""What to do for pictures of a system without bodies."""

_COORDINATE_UNITS = {"x": "m", "y": "m", "z": "m", "heading": "rad"}
"""Unit of a coordinate of an output: those of a quaternion have none."""


class Run(RunData):
    """States, torques and errors of a simulated closed loop, one row per time step.

    Parameters
    ----------
    robot : Mechanism or System
        The robot that was simulated, or another system.
    servo : TrackingLaw
        The law that drove it.
    arrays : mapping of str to numpy.ndarray
        The arrays below by name.
    method : str
        Integration method.
    control_period : float or None
        Control period of the servo, s; None for a continuous one.
    seconds : float
        Time the simulation took, s.
    friction : Friction, optional
        Friction of the plant at its controls.
    imperfections : Imperfections, optional
        Imperfections of the plant and the loop.
    slip : Slip, optional
        Friction of wheels that may slip.
    tolerances : Tolerances, optional
        Limits by which the run is judged beside those of the joints.
    required : tuple of Row
        Requirements of the task, judged.

    Attributes
    ----------
    t : numpy.ndarray
        Times, shape (k,), s.
    q, v, s : numpy.ndarray
        Configuration, velocity and shape velocity, shapes (k, nq), (k, nv), (k, ns).
    u : numpy.ndarray
        Control forces and torques, shape (k, nu), N and N m.
    q_range, v_range, u_range : numpy.ndarray
        Smallest and largest q, v and u, shapes (2, nq), (2, nv) and (2, nu): over all stages of
        all steps, of which the rows above hold the ends; of an adaptive method over its own steps.
        Torques are within the limits of motors where imperfections make these act.
    error, velocity_error : numpy.ndarray
        x = log(r^-1 gamma) and ve, shape (k, size).
    ideal : numpy.ndarray
        The exact error dynamics started from the first error, shape (k, size). Of a direction its
        length is theirs: the normals along which it is written turn with the error.
    lyapunov : numpy.ndarray
        Lyapunov function (x KP x + ve I ve) / 2 of pose and velocity error, shape (k,): the sum of
        its parts in m^2/s^2 and in rad^2/s^2. That of a `PassiveServo` in J.
    acceleration_residual : numpy.ndarray
        Part of the commanded output acceleration that is not achieved because of damping or torque
        limits, shape (k, size).
    scale : numpy.ndarray
        Share of the commanded output acceleration that limits leave, shape (k,); 1: none active.
    active : numpy.ndarray
        1 for each of the law's `limit_names` that is active, else 0, shape (k, limits).
    margin : numpy.ndarray
        Margin of the decoupling matrix, shape (k,).
    constraint_residual : numpy.ndarray
        Largest entry of C v, shape (k,), m/s.
    heat : numpy.ndarray
        Heat of each motor with `continuous`, shape (k, n), from 0 at the start; 1 is the limit.
    energy, work : numpy.ndarray
        Energy of the robot, and work of the drives since the start less that which dampers of
        springs took, shape (k,), J.
    momentum : numpy.ndarray
        Spatial momentum about the inertial origin, shape (k, 6); NaN for systems without bodies,
        in whose files it is left out.
    inner_momentum : numpy.ndarray
        The same of the joints' motion alone, the base at rest, shape (k, 6).
    pose, reference : numpy.ndarray
        Flat output coordinates, actual and reference, shape (k, pose_size).
    slip_speed : numpy.ndarray
        Slip speed of each wheel, shape (k, wheels), m/s, if the wheels may slip.
    wheel_load : numpy.ndarray
        Loads of wheels and supports, shape (k, loads), N, if the wheels may slip; below zero where
        one would lift off. They follow the motion with a delay of `Slip.time`.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> model = cc.reduce(robot)
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> servo = cc.Servo(model, [base, hand], stiffness=4, damping=4)
    >>> q0 = [0, 0, 0, 0, 0, -0.1, 1.0, -1.6]
    >>> goal = cc.references.hold(servo.output(q0))
    >>> run = cc.simulate(robot, servo, goal, 0.1, q0, [0] * 5, dt=0.01)
    >>> run.q.shape, run.u.shape
    ((11, 8), (11, 5))
    """

    def findings(self, tolerances: Tolerances | None) -> tuple[Row, ...]:
        """Compare the run with its limits.

        Parameters
        ----------
        tolerances : Tolerances or None
            Limits beside those of the joints.

        Returns
        -------
        tuple of Row
            Numbers with their limits; `Row.holds` is true if the limit is kept.
        """
        return findings(self, tolerances)

    @property
    def status(self) -> str:
        """Whether the run keeps all limits of its `rows`: "passed" or "failed"."""
        return verdict(self.rows)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """Numbers of the run beside their limits: those of joints and task, as far as it has some.

        A run of a task has its requirements first and is judged by its tolerances.
        """
        return (*self.required, *self.findings(self.tolerances))

    @property
    def figures(self) -> Figures:
        """Figures by name, see `concur.show.save_figures`."""
        return show("run_figures", self)

    @classmethod
    def load(
        cls, path: str | PathLike[str], servo: Law | None = None, plant: System | None = None
    ) -> Run:
        """Read a run from a file that `save` has written.

        Parameters
        ----------
        path : str or path-like
            The file.
        servo : Law, optional
            The law of the run, such as the servo of its task; default the servo that the file
            describes.
        plant : Mechanism or System, optional
            The robot that was simulated; default that of the law's model.

        Returns
        -------
        Run
            The run, with the arrays of the file.

        Raises
        ------
        DescriptionError
            If the file cannot be read, belongs to a robot or a law with other names, or does not
            describe its law.
        OutputError
            If `servo` is no law.

        Examples
        --------
        >>> task = concur.load_task("examples/rover_arm.toml")           # doctest: +SKIP
        >>> run = Run.load("out/rover_arm/run.h5", task.servo)           # doctest: +SKIP
        """
        if servo is None:  # readers of robots are above this package
            servo = import_module("concur.io").recorded_law(path)
        law = tracking_law(servo, "run, `servo`")
        robot: Any = law.model.system if plant is None else plant
        known = run_columns(robot, law, None)
        stored = {
            STORED.get(name, name): None if name in SINGLE else len(columns)
            for name, columns in known.items()
        }
        kinds = {"method": str, "control_period": float, "seconds": float}
        arrays, facts = read_arrays(path, stored, kinds)
        expected = {
            "controls": list(law.model.control_names),
            "outputs": [output.name for output in law.outputs],
            "output_groups": [output.group for output in law.outputs],
        }
        check_identity(path, facts, robot, arrays["q"][0], expected)
        parts = _parts(path, facts)
        arrays = {name: arrays[STORED.get(name, name)] for name in known}
        arrays.setdefault("heat", np.zeros((len(arrays["t"]), 0)))
        if not isinstance(robot, Mechanism):
            unknown = np.full((len(arrays["t"]), 6), np.nan)
            arrays |= dict.fromkeys(("momentum", "inner_momentum"), unknown)
        if (slip := parts.get("slip")) is not None:
            loads = len(load_names(robot, slip))
            widths = {"t": None, "slip_speed": len(slip.grip), "wheel_load": loads}
            arrays |= read_arrays(path, widths, {})[0]
        return cls(
            robot=robot,
            servo=law,
            arrays=arrays,
            method=facts["method"],
            control_period=facts["control_period"] or None,
            seconds=facts["seconds"],
            imperfections=imperfections_from(facts.get("imperfections")),
            **parts,
        )

    @property
    def columns(self) -> dict[str, Columns]:
        """Name and unit of each column by array, such as those of `u`; see `arrays`."""
        return run_columns(self.robot, self.servo, self.slip)

    def _arrays(self) -> dict[str, tuple[np.ndarray, Columns]]:
        return {name: (self.arrays[name], columns) for name, columns in self.columns.items()}

    def _texts(self) -> dict[str, str]:
        texts = {}
        if isinstance(self.robot, Mechanism):
            with suppress(ConcurError):  # a name or a number that no robot file may have
                texts["robot"] = to_toml(self.robot)
        placed = [asdict(output) for output in self.servo.outputs if not output.is_function]
        rows = json.dumps(stored_rows(self.rows))
        return texts | {"outputs": json.dumps(placed), "rows": rows}

    def plot(self) -> Figure:
        """Draw an overview of the run.

        Returns
        -------
        matplotlib.figure.Figure
            Errors, torques, path and health of the run.
        """
        return show("plot_run", self)

    def animate(self, fps: float = 12.0, speed: float = 1.0) -> Any:
        """Draw an animation of the run, which a notebook shows.

        Parameters
        ----------
        fps : float
            Frames per second of the animation.
        speed : float
            Seconds of the run per second of the animation.

        Returns
        -------
        concur.show.notebook.Animation
            GIF; `save` writes it to a file. `concur.show.animate` also writes MP4.

        Raises
        ------
        ConcurError
            If `fps` or `speed` is not positive.
        """
        _check_drawn(self.robot, "animation")
        return show("animation.animation", self, fps, speed)

    def _repr_html_(self) -> str:
        return show("notebook.run_html", self)

    def view(self, other: Run | None = None, *, port: int = 0, browser: bool = True) -> Any:
        """Show the run in three dimensions in a browser, with time, paths and curves.

        The page is served by a thread of this process: call `wait` of the result at the end of a
        script.

        Parameters
        ----------
        other : Run, optional
            A second run, shown as a ghost or beside this one.
        port : int
            Port of this machine; 0: any free port.
        browser : bool
            Whether to open the page in a browser, if this machine has a screen.

        Returns
        -------
        concur.show.viewer.RunViewer
            The viewer, with the address `url`; `close` ends it.

        Raises
        ------
        ConcurError
            If the port is in use.
        """
        runs = (self,) if other is None else (self, other)
        for run in runs:
            _check_drawn(run.robot, "view")
        return show("viewer.view_runs", runs, port, browser)

    def _facts(self) -> dict[str, Any]:
        servo = self.servo
        friction = {} if self.friction is None else asdict(self.friction)
        slip = {} if self.slip is None else {"slip": json.dumps(asdict(self.slip))}
        judged: dict[str, Any] = (
            {} if self.tolerances is None else {"tolerances": asdict(self.tolerances)}
        )
        judged |= {"required": stored_rows(self.required)} if self.required else {}
        return {
            "concur_version": __version__,
            "law": type(servo).__name__,
            "law_options": list(given_options(servo)),
            "law_parameters": law_parameters(servo),
            "singular_margin": servo.singular_margin,
            **({} if servo.torque_limits is None else {"torque_limits": servo.torque_limits}),
            **({"model_momentum": servo.model.momentum} if self.floats else {}),
            "model_differences": ", ".join(self.model_differences),
            "robot": servo.model.name,
            "plant": self.robot.name,
            "plant_differences": ", ".join(self.plant_differences),
            "velocities": list(self.robot.freedom_names),
            **identity(self.robot, self.q[0]),
            "shape": list(servo.model.shape_names),
            "controls": list(servo.model.control_names),
            "outputs": [output.name for output in servo.outputs],
            "output_groups": [output.group for output in servo.outputs],
            "output_relative_to": [output.relative_to or "" for output in servo.outputs],
            "stiffness": servo.stiffness,
            "damping": servo.damping,
            "inertia": servo.inertia,
            "method": self.method,
            "dt": self.dt,
            "control_period": 0.0 if self.control_period is None else self.control_period,
            "seconds": self.seconds,
            **{f"friction_{name}": value for name, value in friction.items()},
            **({} if self.imperfections is None else {"imperfections": self.imperfections.text}),
            **slip,
            **{name: json.dumps(value) for name, value in judged.items()},
        }


def _check_drawn(system: System, what: str) -> None:
    """Demand bodies, or frames that are drawn."""
    if not getattr(system, "drawn", ()):
        as_tree(system, f"{what} of a run of `{system.name}`", DRAWN)


def _parts(path: str | PathLike[str], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Friction and slip of the plant and what judges a run, from the attributes of a file."""
    names = [f.name for f in fields(Friction) if f"friction_{f.name}" in facts]
    made: dict[str, Callable[[Any], Any]] = {
        "slip": lambda given: Slip(**given),
        "tolerances": lambda given: Tolerances(**given),
        "required": read_rows,
    }
    try:
        rubs = {name: facts[f"friction_{name}"] for name in names}
        found = {
            name: make(json.loads(facts[name])) for name, make in made.items() if name in facts
        }
        return found | ({"friction": Friction(**rubs)} if rubs else {})
    except (ValueError, TypeError, OverflowError, RecursionError) as problem:
        raise DescriptionError(
            f"{path}, friction, slip and tolerances",
            expected="what `Run.save` has written",
            came=f"other attributes ({shown(str(problem), 100)})",
            cure="Save the run again.",
            file=str(path),
        ) from None


def run_columns(robot: Any, servo: TrackingLaw, slip: Slip | None) -> dict[str, Columns]:
    """Name and unit of each column of the arrays that a file of a run has, in their order."""
    model, outputs = servo.model, servo.outputs
    q, v = coordinate_columns(robot), velocity_columns(robot)
    u = list(zip(model.control_names, model.control_units, strict=True))

    def of_outputs(names: Callable[[Output], Any], units: Callable[[Output], Any]) -> Columns:
        return [
            (f"{output.name}.{name}", unit)
            for output in outputs
            for name, unit in zip(names(output), units(output), strict=True)
        ]

    errors = of_outputs(lambda one: one.coordinate_names, lambda one: one.coordinate_units)
    pose = of_outputs(lambda one: one.lie.coordinate_names, _pose_units)
    squares = " + ".join(dict.fromkeys(f"{unit}^2/s^2" for _, unit in errors))
    found: dict[str, Columns] = {
        "t": [("t", "s")],
        **{"q": q, "v": v, "s": [v[i] for i in model.shape], "u": u},
        **{"q_range": q, "v_range": v, "u_range": u},
        "error": errors,
        "velocity_error": [(name, f"{unit}/s") for name, unit in errors],
        "ideal": errors,
        "lyapunov": [("lyapunov", squares if servo.linearizes else "J")],
        "acceleration_residual": [(name, f"{unit}/s^2") for name, unit in errors],
        "scale": [("scale", "1")],
        "active": [(name, "1") for name in servo.limit_names],
        "margin": [("margin", "1")],
        "constraint_residual": [("constraint_residual", "m/s")],
        "energy": [("energy", "J")],
        "work": [("work", "J")],
    }
    if heated := list(motor_numbers("continuous", robot)):
        found["heat"] = [(name, "1") for name in heated]
    if isinstance(robot, Mechanism):  # without bodies there is no momentum
        found |= {"momentum": MOMENTUM_COLUMNS, "inner_momentum": MOMENTUM_COLUMNS}
    found |= {"pose": pose, "reference": pose}
    if slip is not None:
        found["slip_speed"] = [(name, "m/s") for name in wheel_names(robot)]
        found["wheel_load"] = [(name, "N") for name in load_names(robot, slip)]
    return found


def _pose_units(output: Output) -> tuple[str, ...]:
    """Units of the flat pose of an output: those of its errors where it is a vector."""
    if output.pose_size == output.dim:
        return output.coordinate_units
    return tuple(_COORDINATE_UNITS.get(name, "1") for name in output.lie.coordinate_names)
