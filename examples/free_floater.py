"""A satellite with an arm and without thrusters: its hand tracks a target, step by step.

The command line does the last part from a file: `free_floater.toml`. Run this from anywhere:
``python examples/free_floater.py``. It writes `free_floater.png` into the current folder.
"""

import numpy as np

import concur as cc

np.set_printoptions(precision=4, suppress=True, linewidth=100)

# A satellite of 60 kg with an unactuated base, and an arm of six actuated joints.
robot = cc.robots.free_flyer()
print(robot.freedom_names)

# Without external forces the momentum of the robot is constant: three numbers in kg m/s and three
# in kg m^2/s, about the inertial origin. With it, six joint velocities determine all twelve
# velocities: v = H s + h.
momentum = [0.5, -0.3, 0.2, 2.5, 0.8, 0.8]
model = cc.reduce(robot, momentum=momentum)
print(f"{model.kind} reduction: {model.reason}")

# The base velocity has two parts: the locked velocity, which is the base's part of h and remains
# with the joints at rest; and -A s, with the mechanical connection A and joint velocities s.
q0 = robot.neutral()
q0[robot.q_slice("spacecraft")] = [-0.5, -0.15, -0.2, 0.0, 0.0, 0.0, 1.0]
q0[7:] = [0.5, -1.5, 2.1, 0.2, -0.4, 0.8]
_, drift = model.lift(q0)
print("twist of the base, joints at rest:", drift[:6])
print("angular velocity of the base for 1 rad/s of the turret:", -model.connection(q0)[3:, 0])
print("drift of the centre of mass:", model.com_velocity, "m/s")

# A torque swings the turret for 2 s: the satellite rotates the other way, in addition to its
# tumbling. The lift gives the base velocity, so the momentum is exact.
swing = cc.simulation.forced_motion(
    model, lambda t: [3.0 * np.sin(np.pi * t), 0, 0, 0, 0, 0], duration=2.0, q0=q0, s0=np.zeros(6)
)
print("rotation of the turret:", swing.q[-1, 7] - q0[7], "rad")
print("largest relative drift of the momentum:", swing.momentum_drift.max())

# The hand tracks a full pose, an element of SE(3). The gains follow from a settling time: a small
# error falls to 2 % within 1.5 s.
hand = cc.Output("hand", "tool", "SE3")
gains = cc.design_gains([hand], settling_time=1.5)
print(gains)
servo = cc.Servo(model, [hand], *gains)

# The reference is a grapple point on a tumbling target, given in the frame of the target. It drifts
# with the centre of mass of the robot; otherwise it would leave the reach of the arm.
approach = cc.references.rest_to_rest(
    [0.95, 0.1, 0.05, 0.28, 0.0, 0.0, 0.96],
    [1.2, 0.3, 0.1, 0.0, 0.0, 0.0, 1.0],
    duration=5.0,
    group="SE3",
)
tumbling = cc.references.moving(approach, [0.0, 0.0, 0.0, 0.32, 0.08, 0.12])
reference = cc.references.drifting(tumbling, model.com_velocity)
print(servo.feasibility(reference, 6.0, q0).why)

# The law relies on the assumed momentum. If the true momentum is 95 % of it, `mismatch` estimates
# the tracking error without a simulation.
true = 0.95 * np.array(momentum)
v = model.velocity(q0, np.zeros(6), true)
print(servo.mismatch(q0, v))

# Three runs on the full-order robot: with the assumed momentum, with the other momentum, and with
# the other momentum and a servo that uses the measured velocity of the base.
measuring = cc.Servo(model, [hand], *gains, use_measured_velocity=True)
cases = {
    "as assumed": (servo, None),
    "wrong": (servo, true),
    "wrong, measured": (measuring, true),
}
runs = {}
for name, (law, real) in cases.items():
    moving = cc.simulation.RealPlant(momentum=real)
    runs[name] = cc.simulate(robot, law, reference, 6.0, q0, np.zeros(6), dt=5e-3, plant=moving)
    ends = {part: f"{norm[-1]:.1e}" for part, norm in runs[name].error_norms.items()}
    print(f"{name}: error at the end (m, rad) {ends}")

run = runs["as assumed"]
print("deviation from the exact error dynamics:", np.abs(run.deviation).max())
print("relative drift of the momentum:", run.momentum_drift.max())
run.plot().savefig("free_floater.png", dpi=100)
