"""The record of a simulated run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from concur._version import __version__
from concur.control import MomentumMismatch, Servo
from concur.control._joint_limits import JointLimits
from concur.mechanism._size import robot_size
from concur.multibody import Mechanism
from concur.simulation._findings import Finding, Tolerances, error_parts, findings
from concur.simulation._hdf5 import (
    MOMENTUM_COLUMNS,
    coordinate_columns,
    velocity_columns,
    write,
)
from concur.simulation._momentum import momentum_drift

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The arrays of a run; no unit here where the columns have their own (`Run._columns`).
UNITS = {
    "t": "s",
    "q": None,
    "v": None,
    "s": None,
    "u": None,
    "q_range": None,
    "v_range": None,
    "u_range": None,
    "error": None,
    "velocity_error": None,
    "ideal": None,
    "lyapunov": None,
    "missed": None,
    "scale": "1",
    "margin": "1",
    "constraint_residual": "m/s",
    "energy": "J",
    "work": "J",
    "momentum": None,
    "inner_momentum": None,
    "pose": None,
    "reference": None,
}

# Unit of a coordinate of an output: those of a quaternion have none.
_COORDINATE_UNITS = {"x": "m", "y": "m", "z": "m", "heading": "rad"}


@dataclass(frozen=True, eq=False)
class Run:
    """States, torques and errors of a simulated closed loop, one row per time step.

    Parameters
    ----------
    robot : Mechanism
        The robot that was simulated.
    servo : Servo
        The law that drove it.
    t : numpy.ndarray
        Times, shape (k,), s.
    q, v, s : numpy.ndarray
        Configuration, velocity and shape velocity, shapes (k, nq), (k, nv), (k, ns).
    u : numpy.ndarray
        Control forces and torques, shape (k, nu), N and N m.
    q_range, v_range, u_range : numpy.ndarray
        Smallest and largest q, v and u, shapes (2, nq), (2, nv) and (2, nu): over all stages of
        all steps, of which the rows above hold the ends; of an adaptive method over its own steps.
    error, velocity_error : numpy.ndarray
        x = log(r^-1 gamma) and ve, shape (k, size).
    ideal : numpy.ndarray
        The exact error dynamics started from the first error, shape (k, size).
    lyapunov : numpy.ndarray
        Lyapunov function (x KP x + ve I ve) / 2 of pose and velocity error, shape (k,): the sum of
        its parts in m^2/s^2 and in rad^2/s^2.
    missed : numpy.ndarray
        Output acceleration given up by damping or to torque limits, shape (k, size).
    scale : numpy.ndarray
        Size to which torque limits scaled the demand, shape (k,); 1: not active, 0: no room in
        its direction.
    margin : numpy.ndarray
        Margin of the decoupling matrix, shape (k,).
    constraint_residual : numpy.ndarray
        Largest entry of C v, shape (k,), m/s.
    energy, work : numpy.ndarray
        Energy of the robot and work of the drives since the start, shape (k,), J.
    momentum : numpy.ndarray
        Spatial momentum about the inertial origin, shape (k, 6).
    inner_momentum : numpy.ndarray
        The same of the joints' motion alone, the base at rest, shape (k, 6).
    pose, reference : numpy.ndarray
        Flat output coordinates, actual and demanded, shape (k, pose_size).
    method : str
        Integration method.
    hold : float or None
        Sampling period of the servo, s; none when it ran continuously.
    seconds : float
        Time the simulation took, s.
    """

    robot: Mechanism
    servo: Servo
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    s: np.ndarray
    u: np.ndarray
    q_range: np.ndarray
    v_range: np.ndarray
    u_range: np.ndarray
    error: np.ndarray
    velocity_error: np.ndarray
    ideal: np.ndarray
    lyapunov: np.ndarray
    missed: np.ndarray
    scale: np.ndarray
    margin: np.ndarray
    constraint_residual: np.ndarray
    energy: np.ndarray
    work: np.ndarray
    momentum: np.ndarray
    inner_momentum: np.ndarray
    pose: np.ndarray
    reference: np.ndarray
    method: str
    hold: float | None
    seconds: float

    def __str__(self) -> str:
        worst = ", ".join(f"{name} {norm[-1]:.3g}" for name, norm in self.error_norms.items())
        return (
            f"run of {self.robot.name}: {self.t[-1]:g} s in steps of {self.dt:g} s by "
            f"{self.method}, final errors (m, rad): {worst}, "
            f"smallest margin {self.margin.min():.3g}"
        )

    @property
    def dt(self) -> float:
        """Step of the record, s; zero for a run that holds its start only."""
        return float(self.t[1] - self.t[0]) if self.t.size > 1 else 0.0

    @cached_property
    def plant_differences(self) -> tuple[str, ...]:
        """What of the simulated robot differs from the servo's model, in words."""
        model, plant = self.servo.model.robot, self.robot
        if model is plant:
            return ()
        found = []
        for known, moving in zip(model.bodies, plant.bodies, strict=True):
            parts = (("inertia", "inertia"), ("joint", "joint axis"), ("placement", "placement"))
            found += [
                f"{words} of `{known.name}`"
                for part, words in parts
                if getattr(known, part) != getattr(moving, part)
            ]
        if model.wheels != plant.wheels:
            found.append("wheels")
        if tuple(model.gravity) != tuple(plant.gravity):
            found.append("gravity")
        return tuple(found)

    @property
    def deviation(self) -> np.ndarray:
        """Error minus the ideal error, shape (k, size)."""
        return np.asarray(self.error - self.ideal)

    @property
    def energy_balance(self) -> np.ndarray:
        """Energy gained minus work done since the start, shape (k,), J; zero up to round-off."""
        return np.asarray(self.energy - self.energy[0] - self.work)

    @property
    def floats(self) -> bool:
        """Whether the robot floats freely, its momentum constant."""
        return self.servo.model.takes_momentum

    @cached_property
    def momentum_drift(self) -> np.ndarray:
        """Deviation of a floating robot's momentum from that at the start, relative, (k,).

        Zero up to round-off and the integrator's error; translations and rotations apart,
        each against the momentum itself or what the joints move inside the robot.
        """
        return momentum_drift(self.robot, self.momentum, self.inner_momentum, self.momentum[0])

    @cached_property
    def stage_drifts(self) -> dict[str, np.ndarray]:
        """Deviation of each further stage's momentum from that at the start, relative, (k,).

        By the stage's joint: against the momentum itself or what the joint's own motion makes of
        it, whichever is larger. Of a joint that is reduced by two parts, that of the worse one.
        Angular momenta are divided by the robot's size before they are compared with linear ones.
        """
        model = self.servo.model.on(self.robot)
        drifts: dict[str, np.ndarray] = {}
        reach = robot_size(self.robot)
        for stage in model.chain:
            pairs = [stage.momentum_residual(q, v) for q, v in zip(self.q, self.v, strict=True)]
            length = np.where([u == "N m s" for u in stage.momentum_units], reach, 1.0)
            rest, own = (np.array(part) / length for part in zip(*pairs, strict=True))
            theta = np.array(stage.theta) / length
            size = max(float(np.linalg.norm(theta)), float(np.abs(own).max(initial=0.0)))
            # A deviation at the start may turn with the joint, but it keeps its size.
            apart = np.abs(np.linalg.norm(rest, axis=1) - np.linalg.norm(rest[0]))
            drift = apart / size if size > 0.0 else apart
            drifts[stage.joint] = np.maximum(drifts.get(stage.joint, 0.0), drift)
        return drifts

    @cached_property
    def mismatch(self) -> MomentumMismatch | None:
        """Momentum that the servo assumes against that at the start; none unless it floats."""
        return self.servo.mismatch(self.q[0], self.v[0]) if self.floats else None

    @cached_property
    def joint_limits(self) -> JointLimits:
        """Limits of the joints; where robot and plant differ, the narrower ones."""
        return JointLimits.of(self.robot, self.servo.model.robot)

    @property
    def control_units(self) -> tuple[str, ...]:
        """Unit of each control."""
        return self.servo.model.control_units

    @cached_property
    def error_norms(self) -> dict[str, np.ndarray]:
        """Norm of each output's error over time, shape (k,), by output name.

        Metres and radians are apart: an output with both has two entries, such as "hand, position"
        and "hand, rotation".
        """
        return {name: norm for name, _, norm in error_parts(self)}

    def findings(self, tolerances: Tolerances) -> tuple[Finding, ...]:
        """Measure the run against what it is to keep.

        Parameters
        ----------
        tolerances : Tolerances
            Limits.

        Returns
        -------
        tuple of Finding
            Numbers with their limits; `Finding.holds` says whether a limit is kept.
        """
        return findings(self, tolerances)

    def save(
        self, path: str | PathLike[str], facts: Mapping[str, str | float] | None = None
    ) -> Path:
        """Write the run to an HDF5 file.

        Parameters
        ----------
        path : str or path-like
            File to write; an existing one is replaced.
        facts : mapping of str to str or float, optional
            Further attributes of the file, such as the name of the task.

        Returns
        -------
        pathlib.Path
            The file. Each array is a dataset named as here. One with several columns has their
            names and units in the attributes `columns` and `units`; `unit` lists the units that
            occur. Names of bodies, outputs and controls, gains, method, step and package
            version are attributes of the file.

        Raises
        ------
        DescriptionError
            If the file cannot be written.
        """
        own = self._columns()
        arrays = {
            name: (getattr(self, name), own[name] if unit is None else [(name, unit)])
            for name, unit in UNITS.items()
        }
        return write(path, arrays, {**self._facts(), **(facts or {})})

    def plot(self) -> Figure:
        """Draw an overview of the run.

        Returns
        -------
        matplotlib.figure.Figure
            Errors, torques, path and health of the run.
        """
        from concur.plotting import plot_run

        return plot_run(self)

    def _columns(self) -> dict[str, list[tuple[str, str]]]:
        """Name and unit of each column of the arrays whose units depend on the robot."""
        robot, model, outputs = self.robot, self.servo.model, self.servo.outputs
        v = velocity_columns(robot)
        errors = [
            (f"{output.name}.{name}", unit)
            for output in outputs
            for name, unit in zip(output.coordinate_names, output.coordinate_units, strict=True)
        ]
        pose = [
            (f"{output.name}.{name}", _COORDINATE_UNITS.get(name, "1"))
            for output in outputs
            for name in output.lie.coordinate_names
        ]
        squares = dict.fromkeys(f"{unit}^2/s^2" for _, unit in errors)
        return {
            "q": coordinate_columns(robot),
            "v": v,
            "s": [v[i] for i in model.shape],
            "u": (controls := list(zip(model.control_names, self.control_units, strict=True))),
            "q_range": coordinate_columns(robot),
            "v_range": v,
            "u_range": controls,
            "error": errors,
            "velocity_error": [(name, f"{unit}/s") for name, unit in errors],
            "ideal": errors,
            "missed": [(name, f"{unit}/s^2") for name, unit in errors],
            "lyapunov": [("lyapunov", " + ".join(squares))],
            "momentum": list(MOMENTUM_COLUMNS),
            "inner_momentum": list(MOMENTUM_COLUMNS),
            "pose": pose,
            "reference": pose,
        }

    def _facts(self) -> dict[str, Any]:
        servo = self.servo
        return {
            "concur_version": __version__,
            "robot": servo.model.robot.name,
            "plant": self.robot.name,
            "plant_differences": ", ".join(self.plant_differences),
            "bodies": [body.name for body in self.robot.bodies],
            "velocities": list(self.robot.freedom_names),
            "shape": list(servo.model.shape_names),
            "controls": list(servo.model.control_names),
            "outputs": [output.name for output in servo.outputs],
            "output_groups": [output.group for output in servo.outputs],
            "stiffness": servo.stiffness,
            "damping": servo.damping,
            "inertia": servo.inertia,
            "method": self.method,
            "dt": self.dt,
            "hold": 0.0 if self.hold is None else self.hold,
            "seconds": self.seconds,
        }
