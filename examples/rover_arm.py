"""A rover tracks references with base and hand: the task of `rover_arm.toml`, step by step.

Run it from anywhere: ``python examples/rover_arm.py``. It writes `rover_arm.png` and
`rover_arm.h5` into the current folder.
"""

import numpy as np

import concur as cc

# The robot: an unactuated planar base, two wheels, an arm of three joints.
robot = cc.robots.rover_arm()
print(robot.constraint_names)

# Five velocities remain free, those of the motors. v = H s is the lift.
model = cc.reduce(robot)
print(model.kind, model.shape_names)

# The outputs: a point of the chassis in the plane, the hand in space.
base = cc.Output("base", "chassis", "R2", point=(0.25, 0.0, 0.0))
hand = cc.Output("hand", "forearm", "R3", point=(0.0, 0.2, 0.0))
servo = cc.Servo(model, [base, hand], stiffness=[4.0, 9.0], damping=[4.0, 6.0])

# The references: a smooth path of the base, a circle of the hand beside it.
path = cc.references.waypoints(
    times=[0.0, 4.0, 8.0],
    points=[[0.0, 0.0], [1.2, 0.2], [2.4, 0.0]],
    rates=[[0.3, 0.0], [0.3, 0.0]],
)
circle = cc.references.circle(center=[0.15, 0.75, 0.15], radius=0.07, period=8.0)
reference = cc.references.stack(path, cc.references.relative(circle, to=path))

# The audit follows the reference exactly and checks for singular configurations.
q0 = [-0.45, -0.1, 0.1, 0.0, 0.0, -0.1, 1.0, -1.6]
audit = servo.audit(reference, duration=7.5, q0=q0)
print(audit)

# Closed loop on the full-order robot: eight velocities, wheels held by constraint forces.
run = cc.simulate(robot, servo, reference, duration=7.5, q0=q0, s0=[2.0, 2.0, 0.0, 0.0, 0.0])
print("error at the end:", {name: norm[-1] for name, norm in run.error_norms.items()})
print("deviation from the exact error dynamics:", np.abs(run.deviation).max())
print("largest constraint residual:", run.constraint_residual.max())

run.save("rover_arm.h5")
run.plot().savefig("rover_arm.png", dpi=100)
