"""A satellite with an arm: nobody steers it, yet its hand follows what it should, step by step.

The command line does the last part from a file: `free_floater.toml`. Run this from anywhere:
``python examples/free_floater.py``. It writes `free_floater.png` into the current folder.
"""

import numpy as np

import concur as cc

np.set_printoptions(precision=4, suppress=True, linewidth=100)

# A satellite of 60 kg whose base is free and not driven, and an arm of six joints that are.
robot = cc.robots.free_flyer()
print(robot.freedom_names)

# Nothing pushes from outside, so the momentum of the whole is constant: three numbers in kg m/s
# and three in kg m^2/s, about the inertial origin. With it, six joint velocities determine all
# twelve velocities: v = H s + h.
momentum = [0.5, -0.3, 0.2, 2.5, 0.8, 0.8]
model = cc.reduce(robot, momentum=momentum)
print(f"{model.kind} reduction: {model.reason}")

# Two things move the satellite. The momentum does, even with the joints at rest: the locked
# velocity, the base's part of h. And the joints do, by the connection A: the base answers a joint
# velocity s with -A s.
q0 = robot.neutral()
q0[robot.q_slice("spacecraft")] = [-0.5, -0.15, -0.2, 0.0, 0.0, 0.0, 1.0]
q0[7:] = [0.5, -1.5, 2.1, 0.2, -0.4, 0.8]
_, drift = model.lift(q0)
print("twist of the base, joints at rest:", drift[:6])
print("turn of the base for 1 rad/s of the turret:", -model.connection(q0)[3:, 0])
print("drift of the centre of mass:", model.centre_velocity, "m/s")

# Let a torque swing the turret for 2 s: the satellite turns the other way, on top of its tumbling.
# The base is lifted, not integrated: the momentum cannot drift.
swing = cc.forced_motion(
    model, lambda t: [3.0 * np.sin(np.pi * t), 0, 0, 0, 0, 0], duration=2.0, q0=q0, s0=np.zeros(6)
)
print("the turret has turned by", swing.q[-1, 7] - q0[7], "rad")
print("largest relative drift of the momentum:", swing.momentum_drift.max())

# The hand shall follow a whole pose, an element of SE(3). Gains from a wish: a small error is down
# to 2 % after 1.5 s.
hand = cc.Output("hand", "tool", "SE3")
gains = cc.design_gains([hand], settling_time=1.5)
print(gains)
servo = cc.Servo(model, [hand], *gains)

# The reference is a grapple point on a target that tumbles, given in the target's own frame, and
# drifts along with the centre of mass: what does not would get out of reach.
approach = cc.references.rest_to_rest(
    [0.95, 0.1, 0.05, 0.28, 0.0, 0.0, 0.96],
    [1.2, 0.3, 0.1, 0.0, 0.0, 0.0, 1.0],
    duration=5.0,
    group="SE3",
)
tumbling = cc.references.moving(approach, [0.0, 0.0, 0.0, 0.32, 0.08, 0.12])
reference = cc.references.drifting(tumbling, model.centre_velocity)
print(servo.feasibility(reference, 6.0, q0).why)

# What the law believes matters: were the robot in truth at 95 % of this momentum, this is how
# wrong it would be, before anything is simulated.
true = 0.95 * np.array(momentum)
v = model.at_momentum(true).velocity(q0, np.zeros(6))
print(servo.mismatch(q0, v))

# Three runs on the full-order robot: with the momentum that the servo assumes, with the other
# one, and with the other one but a servo that measures the velocity of the base.
measuring = cc.Servo(model, [hand], *gains, measured=True)
cases = {
    "as assumed": (servo, None),
    "wrong": (servo, true),
    "wrong, measured": (measuring, true),
}
runs = {}
for name, (law, real) in cases.items():
    runs[name] = cc.simulate(robot, law, reference, 6.0, q0, np.zeros(6), dt=5e-3, momentum=real)
    ends = {part: f"{norm[-1]:.1e}" for part, norm in runs[name].error_norms.items()}
    print(f"{name}: error at the end (m, rad) {ends}")

run = runs["as assumed"]
print("distance from the exact error dynamics:", np.abs(run.deviation).max())
print("relative drift of the momentum:", run.momentum_drift.max())
run.plot().savefig("free_floater.png", dpi=100)
