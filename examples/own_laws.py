"""Two custom laws of about ten lines each, simulated on a rover beside servo and baselines.

A law has a `model`, `torque_limits` (None if it keeps none) and a `graph` from t, q and s to u, see
`concur.control.Law`. Run this from anywhere: ``python examples/own_laws.py``. It writes
`own_laws.png`, the distances from the goal, into the current folder.
"""

from dataclasses import dataclass

import casadi as ca
import numpy as np

import concur as cc
from concur.show import new_figure


@dataclass
class Brake:
    """Dampers at all joints, with the weight held: the robot comes to rest wherever it is."""

    model: cc.reduction.ReducedModel
    damping: float
    torque_limits: None = None

    def graph(self) -> ca.Function:
        q, s = ca.SX.sym("q", self.model.nq), ca.SX.sym("s", self.model.ns)
        u = self.model.bias(q, ca.SX(self.model.ns, 1)) - self.damping * s
        return ca.Function("brake", [q, s], [u], ["q", "s"], ["u"])


@dataclass
class Jacobian:
    """A spring and a damper between a body's point and a goal, by the transposed Jacobian."""

    servo: cc.Servo  # model and outputs; its gains are not used
    goal: np.ndarray
    torque_limits: None = None

    @property
    def model(self) -> cc.reduction.ReducedModel:
        return self.servo.model

    def graph(self) -> ca.Function:
        q, s = ca.SX.sym("q", self.model.nq), ca.SX.sym("s", self.model.ns)
        rows = self.servo.decoupling(q)  # from shape velocities to output velocities
        force = 80.0 * self.servo.pose_error(q, self.goal) - 40.0 * rows @ s
        u = rows.T @ force - 0.5 * s + self.model.bias(q, ca.SX(self.model.ns, 1))
        return ca.Function("jacobian", [q, s], [u], ["q", "s"], ["u"])


robot = cc.robots.rover_arm()
model = cc.reduce(robot)
base = cc.Output("base", "chassis", "R2", point=(0.25, 0.0, 0.0))
hand = cc.Output("hand", "forearm", "R3", point=(0.0, 0.2, 0.0))
servo = cc.Servo(model, [base, hand], stiffness=[4, 9], damping=[4, 6])
q0, duration = np.array([-0.45, -0.1, 0.1, 0.0, 0.0, -0.1, 1.0, -1.6]), 5.0

start = servo.output(q0)
goal = start + np.array([0.3, 0.0, 0.3, 0.02, -0.05])
path = cc.references.rest_to_rest(start, goal, 3.0)

# The baselines follow a path of the joints, which is made once from that of the outputs.
joints = cc.laws.joint_reference(servo, path, duration, q0)
laws = {
    "servo": servo,
    "PD": cc.laws.PD(model, joints, stiffness=20.0, damping=5.0),
    "computed torque": cc.laws.ComputedTorque(model, joints, stiffness=9.0, damping=6.0),
    "brake": Brake(model, damping=3.0),
    "transposed Jacobian": Jacobian(servo, goal),
}
figure = new_figure(7.0, 3.6)
axes = figure.subplots()
for name, law in laws.items():
    reference = path if law is servo else None
    run = cc.simulate(robot, law, reference, duration, q0, [0.0] * 5, dt=5e-3)
    distance = [np.linalg.norm(servo.output(q) - goal) for q in run.q]
    away = distance[-1]
    axes.semilogy(run.t, distance, label=name)
    print(f"{name}: {away:.3f} m from the goal, largest torque {np.abs(run.u).max():.1f} N m")
    assert name == "brake" or away < 0.05, name
axes.set(xlabel="time (s)", ylabel="distance from the goal (m)")
axes.legend(ncols=2)
figure.savefig("own_laws.png", dpi=100)
