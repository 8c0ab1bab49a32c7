"""The robot of an emulated rig: the full-order plant with zero-order hold of the torques."""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from hil._concur import (
    Evaluator,
    Friction,
    Plant,
    check_friction,
    fingerprint,
    recalled,
)
from hil._machine import base_of
from hil._transmission import transmission_of
from hil.errors import RigError

if TYPE_CHECKING:
    from hil.settings import Rig

RELEASE = 0.01
"""Fraction of an axis' torque limit above which the robot is released. It is above the torque of
MIT drives at zero command, half a unit of their 12 bits."""

LOADED = 0.1
"""Tolerance of a torque that counts as that of the watchdog test, as a fraction of it."""


class RobotPlant:
    """The moving robot of a rig: Runge-Kutta steps of the full-order plant.

    The robot is held until the first significant torque, as on a stand or in a dock: arms do not
    fall while the drives are set up, and floating robots do not drift before the run. The stand
    withstands the torques of the watchdog test too, on any number of axes. The robot is then
    released with joints at rest and wheels without slip; a floating robot has the task's momentum.
    """

    def __init__(self, rig: Rig, q0: ArrayLike | None = None, held: bool = True) -> None:
        task = rig.task
        robot = task.plant or task.robot
        self.robot, self.base = robot, base_of(robot)
        if self.base is not None:
            q = ca.SX.sym("q", robot.nq)
            self._base_pose = ca.Function("base_pose", [q], self.base.pose(q))
        self.dt = rig.emulator.dt
        self._transmission = transmission_of(robot, str(rig.path))
        names = self._transmission.motors
        if tuple(axis.name for axis in rig.axes) != names:
            raise RigError(
                f"rig `{rig.name}`, axes",
                expected=f"the controls of `{robot.name}` in order: {', '.join(names)}",
                came=", ".join(axis.name for axis in rig.axes),
                cure="Give each control of the robot one axis, in this order.",
            )
        rubbing = {motor.name: motor.friction for motor in robot.motors if any(motor.friction)}
        viscous, coulomb, stribeck = (
            {name: numbers[k] for name, numbers in rubbing.items()} for k in range(3)
        )
        friction = Friction.of(
            robot,
            {**viscous, **rig.emulator.viscous},
            {**coulomb, **rig.emulator.friction},
            stribeck,
        )
        rubs = any((*friction.viscous, *friction.coulomb))
        plant = Plant(robot, friction=friction if rubs else None)
        check_friction(plant, self.dt)
        self._step = _step(plant)
        self._q, self._v = self._step.inputs[0][:, 0], self._step.inputs[1][:, 0]
        self._h, self._u = self._step.inputs[3], self._step.inputs[2][:, 0]
        self._q_next, self._v_next = (view[:, 0] for view in self._step.outputs)
        self.torque = np.zeros(len(names))  # of each motor, N m; the caller writes it
        self.time = 0.0  # instant reached, s since the start
        self.steps = 0
        self._q[:] = robot.check_configuration(task.q0 if q0 is None else q0, "emulator, `q0`")
        model = task.law.model
        if task.plant_momentum is not None and model.takes_momentum:
            model = model.at_momentum(task.plant_momentum)
        model = model if robot is task.robot else model.on(robot)
        self._v[:] = model.velocity(self._q, np.zeros(model.ns))
        self.held = held
        self._readings: list[tuple[float, float]] | None = None
        self._rates = list(self._transmission.v)
        self._slight = np.array([RELEASE * axis.torque_limit for axis in rig.axes])
        self._load = np.array([axis.test_torque for axis in rig.axes])

    @property
    def q(self) -> NDArray[np.float64]:
        """Configuration, shape (nq,); a copy."""
        return self._q.copy()

    @property
    def v(self) -> NDArray[np.float64]:
        """Velocity, shape (nv,); a copy."""
        return np.zeros_like(self._v) if self.held else self._v.copy()

    def positions(self) -> list[float]:
        """Positions of the motors, rad (m)."""
        return [position for position, _ in self.readings()]

    def velocities(self) -> list[float]:
        """Velocities of the motors, rad/s (m/s)."""
        return [velocity for _, velocity in self.readings()]

    def readings(self) -> list[tuple[float, float]]:
        """Position and velocity of each motor, rad and rad/s (m and m/s)."""
        if self._readings is None:
            positions = self._transmission.of_configuration(self._q)
            velocities = self._transmission.of_joints(self.v[self._rates])
            self._readings = list(zip(positions.tolist(), velocities.tolist(), strict=True))
        return self._readings

    def rests(self) -> bool:
        """Whether the robot is held with the present `torque`."""
        if not self.held:
            return False
        size = np.abs(self.torque)
        tested = np.abs(size - self._load) <= LOADED * self._load
        return bool(((size <= self._slight) | tested).all())

    def step(self, h: float) -> None:
        """Integrate over a time h, s, with constant `torque`."""
        if self.rests():
            self.time += h
            return
        self.held, self._readings = False, None
        self._u[:] = self.torque
        self._h[0, 0] = h
        self._step.trigger()
        total = float(self._q_next.sum() + self._v_next.sum())
        if not math.isfinite(total):
            raise RigError(
                f"emulated robot `{self.robot.name}`",
                expected="a finite motion",
                came=f"a non-finite state after {self.time:.3f} s",
                cure="Use a shorter `dt` in `[emulator]`, or smaller torques.",
            )
        self._q[:] = self._q_next
        self._v[:] = self._v_next
        self.time += h
        self.steps += 1

    def base_pose(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Position (m) and unit quaternion (x, y, z, w) of the base; at rest without a base."""
        if self.base is None:
            return np.zeros(3), np.array([0.0, 0.0, 0.0, 1.0])
        turn, place = (np.array(part) for part in self._base_pose(self._q))
        return place[:, 0], np.asarray(Rotation.from_matrix(turn).as_quat(), dtype=np.float64)


def _step(plant: Plant) -> Evaluator:
    """One step with constant torque, compiled if there is a compiler."""
    code = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    key = fingerprint(f"emulator {code}", plant)
    shapes = [(plant.nq,), (plant.nv,)]
    where = f"step of `{plant.name}`"
    made = recalled(key)
    if made is not None:
        return Evaluator(made.functions[0], shapes, where)
    evaluator = Evaluator(plant.step_function(), shapes, where)
    evaluator.compile(key)
    return evaluator
