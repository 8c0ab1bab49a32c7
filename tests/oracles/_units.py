"""The same robot, servo and reference with its numbers in other units of length, mass and time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import concur as cc
from concur.control import Servo
from concur.outputs import ReferenceSample
from concur.outputs.references import Reference, from_function
from concur.reduction import ReducedModel
from concur.robot.joints import Helical


@dataclass(frozen=True)
class Units:
    """How many of the other units make up a metre, a kilogram and a second."""

    length: float = 1.0
    mass: float = 1.0
    time: float = 1.0

    @property
    def force(self) -> float:
        return self.mass * self.length / self.time**2

    def coordinates(self, units: Sequence[str]) -> np.ndarray:
        """Factor of each coordinate, from its unit."""
        return np.array([self.length if unit == "m" else 1.0 for unit in units])

    def robot(self, robot: cc.Mechanism) -> cc.Mechanism:
        bodies = [self.body(body) for body in robot.bodies]
        wheels = [self.wheel(wheel) for wheel in robot.wheels]
        gravity = tuple(np.array(robot.gravity) * self.length / self.time**2)
        return replace(robot, bodies=bodies, wheels=wheels, gravity=gravity)

    def wheel(self, wheel: cc.Wheel) -> cc.Wheel:
        return replace(
            wheel,
            radius=wheel.radius * self.length,
            center=tuple(np.array(wheel.center) * self.length),
            ground=None if wheel.ground is None else wheel.ground * self.length,
        )

    def body(self, body: cc.Body) -> cc.Body:
        inertia, joint = body.inertia, body.joint
        if isinstance(joint, Helical):
            joint = replace(joint, pitch=joint.pitch * self.length)
        factors = self.coordinates(joint.coordinate_units)
        limits = body.limits
        if limits is not None and len(factors) and joint.quaternion_at is None:
            limits = np.array(limits) * factors[:, None]
            limits = limits[0] if len(limits) == 1 else limits
        return replace(
            body,
            joint=joint,
            placement=replace(
                body.placement, translation=np.array(body.placement.translation) * self.length
            ),
            inertia=cc.Inertia(
                inertia.mass * self.mass,
                com=np.array(inertia.com) * self.length,
                moments=np.array(inertia.moments) * self.mass * self.length**2,
            ),
            limits=limits,
        )

    def momentum(self, momentum: Sequence[float]) -> np.ndarray:
        unit = self.mass * self.length / self.time
        return np.array(momentum) * np.repeat([unit, unit * self.length], 3)

    def configuration(self, robot: cc.Mechanism, q: np.ndarray) -> np.ndarray:
        units = [unit for body in robot.bodies for unit in body.joint.coordinate_units]
        return np.asarray(q * self.coordinates(units))

    def shape_velocities(self, model: ReducedModel, s: np.ndarray) -> np.ndarray:
        units = [unit for body in model.robot.bodies for unit in body.joint.freedom_units]
        return np.asarray(s * self.coordinates([units[i] for i in model.shape]) / self.time)

    def efforts(self, units: Sequence[str]) -> np.ndarray:
        """Factor of each control, from its unit."""
        return np.array([self.force * (1.0 if u == "N" else self.length) for u in units])

    def errors(self, servo: Servo) -> np.ndarray:
        """Factor of each component of the error."""
        return self.coordinates([u for o in servo.outputs for u in o.lie.error_units])

    def servo(self, servo: Servo, model: ReducedModel | None = None) -> Servo:
        """The same law; its gains are metrics, so a metre of error must weigh what it weighed."""
        model = model or cc.reduce(self.robot(servo.model.robot), **self._given(servo.model))
        outputs = [
            replace(output, point=tuple(np.array(output.point) * self.length))
            for output in servo.outputs
        ]
        weight = self.length / self.errors(servo)
        metric = np.outer(weight, weight)
        limits = servo.torque_limits
        if limits is not None:
            limits = np.asarray(limits) * self.efforts(servo.model.control_units)[:, None]
        return replace(
            servo,
            model=model,
            outputs=outputs,
            stiffness=servo.stiffness * metric / self.time**2,
            damping=servo.damping * metric / self.time,
            inertia=np.asarray(servo.inertia) * metric,
            torque_limits=limits,
        )

    def _given(self, model: ReducedModel) -> dict[str, Any]:
        return {"momentum": self.momentum(model.momentum)} if model.takes_momentum else {}

    def sample(self, servo: Servo, sample: ReferenceSample) -> ReferenceSample:
        places = self.coordinates(_pose_units(servo))
        rates = self.errors(servo) / self.time
        return ReferenceSample(
            sample.flat_pose * places, sample.twist * rates, sample.acceleration * rates / self.time
        )

    def reference(self, servo: Servo, reference: Reference) -> Reference:
        return from_function(
            lambda t: self.sample(servo, reference(t / self.time)), servo.pose_size, servo.size
        )


def _pose_units(servo: Servo) -> list[str]:
    """Unit of each number of a pose: positions first, then an angle or a quaternion."""
    units = []
    for output in servo.outputs:
        metres = [unit for unit in output.lie.error_units if unit == "m"]
        units += metres + [""] * (output.lie.pose_size - len(metres))
    return units
