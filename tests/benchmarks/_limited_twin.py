"""The scenarios' robots in Pinocchio: the plant for every law, and what the peer is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import pinocchio as pin
from scipy.linalg.lapack import dgesv

import concur as cc
from tests.benchmarks._job import rolling
from tests.benchmarks._limited_scenarios import PERIOD, Scenario
from tests.benchmarks._pinocchio_model import build, configuration

AXES = pin.ReferenceFrame.LOCAL_WORLD_ALIGNED
STABILISATION = 10.0
"""Rate at which the wheels' slip dies away, 1/s."""


@dataclass(frozen=True)
class Nearness:
    """How near a capsule is to the ball.

    Parameters
    ----------
    distance : float
        Between the surfaces, less the least distance, m: below zero it is not kept.
    slope : numpy.ndarray
        Its derivative by the velocities of the robot, shape (nv,).
    rate : float
        Its rate, m/s.
    drift : float
        Its second derivative at zero acceleration, m/s^2.
    """

    distance: float
    slope: np.ndarray
    rate: float
    drift: float


class Twin:
    """A scenario's robot in Pinocchio.

    Parameters
    ----------
    scenario : Scenario
        Its robot, outputs and obstacle are read.
    """

    def __init__(self, scenario: Scenario) -> None:
        robot = scenario.robot
        self.scenario, self.robot = scenario, robot
        self.model = build(robot)
        self.planar = isinstance(robot.base.joint, cc.joints.Planar)
        self.driven = np.array([robot.v_slice(name).start for name in robot.actuated])
        self.angles = np.array([robot.q_slice(name).start for name in robot.actuated])
        self.base = np.setdiff1d(np.arange(robot.nv), self.driven)
        self.rows = rolling(robot) if robot.wheels else np.zeros((0, robot.nv))
        self.outputs = [
            self.model.addFrame(
                pin.Frame(
                    f"output {output.name}",
                    *self._place(output.body, np.array(output.point)),
                    pin.FrameType.OP_FRAME,
                )
            )
            for output in scenario.outputs
        ]
        self.data = self.model.createData()
        self.system = np.zeros((robot.nv + len(self.rows),) * 2)
        self.system[: robot.nv, robot.nv :] = -self.rows.T
        self.system[robot.nv :, : robot.nv] = self.rows
        self.free = None
        if scenario.ground is not None:
            bodies = [
                cc.Body(b.name, cc.joints.Free(), inertia=b.inertia) if b.parent is None else b
                for b in robot.bodies
            ]
            self.free = build(replace(robot, bodies=bodies, wheels=()))
            self.free_data = self.free.createData()
            self.spread = np.zeros((robot.nv + 3, robot.nv))
            self.spread[[0, 1, 5], [0, 1, 2]] = 1.0
            self.spread[6:, 3:] = np.eye(robot.nv - 3)
            self._place_supports()

    def _place(self, body: str, point: np.ndarray) -> tuple[int, pin.SE3]:
        """Joint that carries a body, and a point of the body there."""
        frame = self.model.frames[self.model.getFrameId(body)]
        return frame.parentJoint, frame.placement * pin.SE3(np.eye(3), point)

    def _place_supports(self) -> None:
        """Make the maps from a wrench on the base to loads and to forces of the wheels."""
        robot = self.robot
        radius = robot.wheels[0].radius
        half = robot.bodies[robot.index(robot.wheels[0].body)].placement.translation[1]
        places = np.array([(0.0, half), (0.0, -half), *(p[:2] for p in robot.supports.values())])
        lower = np.eye(6)  # moments about the point of the ground below the base
        lower[3, 1], lower[4, 0] = -radius, radius
        arms = np.vstack([np.ones(3), places[:, 1], -places[:, 0]])
        self.loads = np.linalg.inv(arms) @ lower[2:5]
        along = np.linalg.inv([[1.0, 1.0], [-half, half]]) @ lower[[0, 5]]
        self.forces = np.vstack([along, lower[1:2]])

    def configuration(self, q: np.ndarray) -> np.ndarray:
        """Our configuration in the library's coordinates."""
        return configuration(self.robot, q)

    def moved(self, q: np.ndarray, way: np.ndarray) -> np.ndarray:
        """Our configuration after a motion with constant velocity: way is that times the time."""
        if not self.planar:
            return pin.integrate(self.model, q, way)
        own = pin.integrate(self.model, self.configuration(q), way)
        return np.array([*own[:2], q[2] + way[2], *own[4:]])

    def acceleration(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Acceleration of the robot on ideal wheels, under the torques of its joints."""
        own, nv = self.configuration(q), self.robot.nv
        forces = -pin.nonLinearEffects(self.model, self.data, own, v)
        forces[self.driven] += u
        self.system[:nv, :nv] = pin.crba(self.model, self.data, own)
        decay = -STABILISATION * (self.rows @ v)
        return dgesv(self.system, np.concatenate([forces, decay]))[2][:nv]

    def step(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """State after one period with these torques, by the midpoint rule."""
        h = PERIOD
        start = self.acceleration(q, v, u)
        middle = v + h / 2 * start
        rate = self.acceleration(self.moved(q, h / 2 * v), middle, u)
        return self.moved(q, h * middle), v + h * rate

    def places(self, q: np.ndarray) -> list[pin.SE3]:
        """Poses of the outputs."""
        pin.framesForwardKinematics(self.model, self.data, self.configuration(q))
        return [self.data.oMf[frame] for frame in self.outputs]

    def kinematics(self, own: np.ndarray, v: np.ndarray) -> None:
        """Kinematic pass with Jacobians, for a configuration of the library."""
        pin.forwardKinematics(self.model, self.data, own, v, np.zeros(self.robot.nv))
        pin.computeJointJacobians(self.model, self.data)

    def commanded(self, v: np.ndarray, sample: cc.ReferenceSample) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the outputs, and what they have to make of accelerations, after `kinematics`.

        The commands are those of the gains with feed-forward, in inertial axes, less the drift.
        """
        pose, twist, rate = map(np.asarray, (sample.pose, sample.twist, sample.acceleration))
        rows, wanted = [], []
        given = self.scenario
        gains = zip(given.stiffness, given.damping, strict=True)
        for output, frame, (kp, kd) in zip(given.outputs, self.outputs, gains, strict=True):
            place = pin.updateFramePlacement(self.model, self.data, frame)
            jacobian = pin.getFrameJacobian(self.model, self.data, frame, AXES)
            drift = pin.getFrameClassicalAcceleration(self.model, self.data, frame, AXES)
            size = 2 if output.group == "R2" else 3
            error, own = pose[:size] - place.translation[:size], jacobian[:size]
            rows.append(own)
            command = kp * error + kd * (twist[:size] - own @ v) + rate[:size]
            wanted.append(command - drift.linear[:size])
            pose, twist, rate = pose[size:], twist[size:], rate[size:]
            if output.group == "R3xSO3":
                turn = pin.Quaternion(pose[:4]).matrix()
                error, own = pin.log3(turn @ place.rotation.T), jacobian[3:]
                rows.append(own)
                command = kp * error + kd * (turn @ twist[:3] - own @ v) + turn @ rate[:3]
                wanted.append(command - drift.angular)
                pose, twist, rate = pose[4:], twist[3:], rate[3:]
        return np.vstack(rows), np.concatenate(wanted)

    def lift(self, mass: np.ndarray, bias: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations of the robot as [matrix, offset] of those of its driven joints."""
        matrix, offset = np.zeros((self.robot.nv, len(self.driven))), np.zeros(self.robot.nv)
        matrix[self.driven] = np.eye(len(self.driven))
        base = self.base
        if len(self.rows):
            matrix[base] = -np.linalg.solve(self.rows[:, base], self.rows[:, self.driven])
        elif len(base):
            given = np.column_stack([mass[np.ix_(base, self.driven)], bias[base]])
            found = -np.linalg.solve(mass[np.ix_(base, base)], given)
            matrix[base], offset[base] = found[:, :-1], found[:, -1]
        return matrix, offset

    def errors(self, q: np.ndarray, sample: cc.ReferenceSample) -> np.ndarray:
        """Distance of each output from its reference, m, and angle of those that have one, rad."""
        found, pose = [], np.asarray(sample.pose)
        for output, place in zip(self.scenario.outputs, self.places(q), strict=True):
            size = 2 if output.group == "R2" else 3
            found.append(float(np.linalg.norm(pose[:size] - place.translation[:size])))
            pose = pose[size:]
            if output.group == "R3xSO3":
                wanted = pin.Quaternion(pose).matrix()
                found.append(float(np.linalg.norm(pin.log3(wanted @ place.rotation.T))))
                pose = pose[4:]
        return np.array(found)

    def nearness(self, v: np.ndarray) -> list[Nearness]:
        """How near the capsules are, for the state of the last kinematic pass with Jacobians."""
        return [
            min(
                (self._near(name, shape.capsule, v) for shape in self._shapes(name)),
                key=lambda near: near.distance,
            )
            for name in self.scenario.ball.bodies
        ]

    def _shapes(self, name: str):
        shape = self.robot.bodies[self.robot.index(name)].shape
        return shape if isinstance(shape, (list, tuple)) else [shape]

    def _near(self, name: str, capsule, v: np.ndarray) -> Nearness:
        joint, place = self._place(name, np.zeros(3))
        pose = self.data.oMi[joint] * place
        start, end = (pose.act(np.array(point)) for point in capsule[:2])
        ball = self.scenario.ball
        centre, way = np.array(ball.centre), end - start
        share = float((centre - start) @ way / (way @ way))
        inside = 0.0 < share < 1.0
        nearest = start + min(1.0, max(0.0, share)) * way
        away = nearest - centre
        length = float(np.linalg.norm(away))
        normal = away / length
        local = pin.SE3(np.eye(3), self.data.oMi[joint].actInv(nearest))
        rows = pin.getFrameJacobian(self.model, self.data, joint, local, AXES)[:3]
        motion = self.data.v[joint]
        turn = self.data.oMi[joint].rotation
        spin, speed = turn @ motion.angular, rows @ v
        own = self.data.a[joint]  # spatial, at zero acceleration of the joints
        arm = nearest - self.data.oMi[joint].translation
        classical = turn @ (own.linear + np.cross(motion.angular, motion.linear))
        classical += np.cross(turn @ own.angular, arm) + np.cross(spin, np.cross(spin, arm))
        square = speed @ speed + away @ classical - (normal @ speed) ** 2
        if inside:  # the nearest point moves along the segment
            square -= (np.cross(spin, way) @ away + speed @ way) ** 2 / (way @ way)
        return Nearness(
            length - ball.radius - capsule[2] - ball.distance,
            normal @ rows,
            float(normal @ speed),
            float(square / length),
        )

    def clearance(self, q: np.ndarray) -> float:
        """Least distance of the capsules from the ball, less the one to keep, m."""
        still = np.zeros(self.robot.nv)
        self.kinematics(self.configuration(q), still)
        return min(near.distance for near in self.nearness(still))

    def contact(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Wrench of the ground on the base as [matrix, offset] of the robot's acceleration."""
        own = np.array([*q[:2], 0.0, 0.0, 0.0, math.sin(q[2] / 2), math.cos(q[2] / 2), *q[3:]])
        speed = self.spread @ v
        matrix = pin.crba(self.free, self.free_data, own)
        bias = pin.nonLinearEffects(self.free, self.free_data, own, speed)
        return matrix[:6] @ self.spread, bias[:6]

    def load(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> float:
        """Least load of wheels and caster, N."""
        matrix, offset = self.contact(q, v)
        return float((self.loads @ (matrix @ self.acceleration(q, v, u) + offset)).min())

    def grip(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> float:
        """Least friction coefficient with which the wheels do not slip, the best sharing given."""
        matrix, offset = self.contact(q, v)
        wrench = matrix @ self.acceleration(q, v, u) + offset
        loads, (left, right, side) = (self.loads @ wrench)[:2], self.forces @ wrench
        if loads.min() <= 0.0:
            return math.inf
        along = np.abs([left, right])
        low = float((along / loads).max())
        high = low + abs(side) / loads.sum() + 1e-12
        for _ in range(40):
            middle = (low + high) / 2
            room = np.sqrt(np.maximum((middle * loads) ** 2 - along**2, 0.0)).sum()
            low, high = (middle, high) if room < abs(side) else (low, middle)
        return high
