"""A pendulum on the two-sphere in the angles that the motors of its gimbal measure."""

import casadi as ca
import numpy as np

import concur as cc
from concur.formulations import Factor
from concur.io import Task
from concur.outputs import FunctionOutput


def free() -> cc.LagrangianSystem:
    """The pendulum in its direction, without drives."""
    rod = Factor("rod", "S2", neutral=(0.0, 0.0, -1.0))
    kinetic = 0.6 * ca.sumsqr(rod.qdot) / 2
    return cc.LagrangianSystem(kinetic, 0.4 * 9.81 * rod.q[2], [rod], name="pendulum")


def direction(y: ca.SX) -> ca.SX:
    """Direction of the rod for the angles of the gimbal."""
    a, b = y[0], y[1]
    return ca.vertcat(-ca.sin(b), ca.sin(a) * ca.cos(b), -ca.cos(a) * ca.cos(b))


def task() -> Task:
    """The rod turns along great circles."""
    roll, pitch = (Factor(name, "SO2", limits=(-1.2, 1.2)) for name in ("roll", "pitch"))
    motors = [
        cc.Motor(f"{name} drive", name, 50.0, torque=0.5, speed=200.0, encoder=4096)
        for name in ("roll", "pitch")
    ]
    system = free().in_coordinates(
        [roll, pitch], direction(ca.vertcat(roll.q, pitch.q)), inputs=motors
    )
    y = ca.SX.sym("y", 2)
    rod = FunctionOutput("rod", ca.Function("rod", [y], [direction(y)]), "S2")
    points = np.array([[0.0, 0.0, -1.0], [0.5, 0.3, -0.81], [-0.3, 0.4, -0.87], [0.0, 0.0, -1.0]])
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return Task(
        name="gimbal",
        robot=system,
        outputs=(rod,),
        stiffness=25.0,
        damping=10.0,
        reference=cc.references.waypoints([0.0, 1.0, 2.0, 3.0], points, group="S2"),
        q0=system.neutral(),
        duration=3.0,
        dt=4e-3,
        control_period=4e-3,
    )
