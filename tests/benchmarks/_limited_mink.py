"""mink, where it is installed: differential inverse kinematics followed by a servo of the joints.

Mink keeps limits of positions, speeds and distances, of velocities that it integrates to wanted
joint angles; rolling of the wheels is an equality there. It knows no torques and no momentum. The
angles are followed by computed torque, which is clipped at the limits of the motors.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import mujoco
import numpy as np
import pinocchio as pin

import concur as cc
from tests.benchmarks._limited_scenarios import PERIOD, Scenario
from tests.benchmarks._limited_twin import Twin
from tests.benchmarks._mujoco_model import configuration, described, turned

INSTALLED = all(map(find_spec, ("mink", "qpsolvers", "daqp")))

STIFFNESS, DAMPING = 100.0, 20.0
"""Gains of the servo of the joints, 1/s^2 and 1/s."""

AHEAD = 20.0
"""Largest acceleration that is fed forward, rad/s^2: wanted speeds jump where limits begin."""


class Mink:
    """The controller, called as a law: state and demand in, torques out.

    Parameters
    ----------
    scenario : Scenario
        Robot, outputs and limits are read.
    """

    def __init__(self, scenario: Scenario) -> None:
        import mink

        self.mink, self.scenario, self.twin = mink, scenario, Twin(scenario)
        robot = scenario.robot
        self.model = self._model()
        self.wanted = mink.Configuration(self.model, configuration(robot, scenario.q0))
        self.tasks = []
        for output in scenario.outputs:
            cost = (10.0, 10.0, 0.0) if output.group == "R2" else 1.0
            task = mink.FrameTask(f"output {output.name}", "site", cost, 0.0, lm_damping=1.0)
            self.tasks.append(task)
        self.tasks.append(mink.DampingTask(self.model, cost=0.2))
        speeds = {
            name: float(limit)
            for name, limit in zip(
                robot.actuated, np.asarray(robot.speed_limits)[self.twin.driven], strict=True
            )
            if np.isfinite(limit)
        }
        self.limits = [mink.ConfigurationLimit(self.model, gain=0.05)]
        if speeds:
            self.limits.append(mink.VelocityLimit(self.model, speeds))
        if scenario.ball is not None:
            bodies = [f"capsule {name}" for name in scenario.ball.bodies]
            self.limits.append(
                mink.CollisionAvoidanceLimit(
                    self.model,
                    [(bodies, ["ball"])],
                    gain=0.05,
                    minimum_distance_from_collisions=scenario.ball.distance,
                    collision_detection_distance=0.3,
                )
            )
        self.rolling = [_rows(mink, robot, self.twin.rows)] if robot.wheels else []
        self.speed = np.zeros(robot.nu)

    def _model(self) -> mujoco.MjModel:
        scenario = self.scenario
        spec = described(scenario.robot)
        spec.option.disableflags, spec.compiler.degree = 0, False
        for output in scenario.outputs:
            spec.body(output.body).add_site(name=f"output {output.name}", pos=output.point)
        limits = cc.control.JointLimits.of(scenario.robot).positions
        for name, angle in zip(scenario.robot.actuated, self.twin.angles, strict=True):
            if np.isfinite(limits[angle]).all():
                spec.joint(name).range, spec.joint(name).limited = limits[angle], True
        if scenario.ball is not None:
            sphere, capsule = mujoco.mjtGeom.mjGEOM_SPHERE, mujoco.mjtGeom.mjGEOM_CAPSULE
            ball = scenario.ball
            size = (ball.radius, 0, 0)
            spec.worldbody.add_geom(name="ball", type=sphere, size=size, pos=ball.centre)
            for name in ball.bodies:
                start, end, radius = self.twin._shapes(name)[0].capsule
                spec.body(name).add_geom(
                    name=f"capsule {name}",
                    type=capsule,
                    size=(radius, 0, 0),
                    fromto=(*start, *end),
                    mass=0.0,
                )
        return spec.compile()

    def __call__(
        self, t: float, q: np.ndarray, v: np.ndarray, sample: cc.ReferenceSample
    ) -> np.ndarray:
        mink, twin, pose = self.mink, self.twin, np.asarray(sample.pose)
        for task, output in zip(self.tasks, self.scenario.outputs, strict=False):
            size = 2 if output.group == "R2" else 3
            place = np.zeros(3)
            place[:size], pose = pose[:size], pose[size:]
            task.set_target(mink.SE3.from_translation(place))
        try:
            speeds = mink.solve_ik(
                self.wanted,
                self.tasks,
                PERIOD,
                "daqp",
                limits=self.limits,
                constraints=self.rolling,
            )
        except mink.NoSolutionFound as error:
            raise RuntimeError("mink finds no solution") from error
        self.wanted.integrate_inplace(speeds, PERIOD)
        ahead = (speeds[twin.driven] - self.speed) / PERIOD
        self.speed = speeds[twin.driven]
        away = self.wanted.q[twin.angles] - q[twin.angles]
        ahead = np.clip(ahead, -AHEAD, AHEAD)
        command = STIFFNESS * away + DAMPING * (self.speed - v[twin.driven]) + ahead
        return self._torques(q, v, command)

    def _torques(self, q: np.ndarray, v: np.ndarray, command: np.ndarray) -> np.ndarray:
        """Computed torque with wheels that roll, clipped."""
        twin = self.twin
        lift, _ = twin.lift(np.zeros(0), np.zeros(0))  # no momentum here
        forces = pin.rnea(twin.model, twin.data, twin.configuration(q), v, lift @ command)
        return np.clip(lift.T @ forces, -self.scenario.torques, self.scenario.torques)


def _rows(mink: Any, robot: cc.Mechanism, rows: np.ndarray) -> Any:
    """Task that wheels roll: an equality for mink's programme."""

    class Rolling(mink.Task):
        def __init__(self) -> None:
            super().__init__(cost=np.ones(len(rows)))

        def compute_error(self, configuration: Any) -> np.ndarray:
            return np.zeros(len(rows))

        def compute_jacobian(self, configuration: Any) -> np.ndarray:
            own = configuration.q  # a planar base has the same coordinates
            return rows @ np.linalg.inv(turned(robot, own))

    return Rolling()
