"""A satellite that rotates by its reaction wheels: 90 degrees about each axis, at zero momentum.

Run it from anywhere: ``python examples/turning_satellite.py``. It writes `turning_satellite.png`,
the loop of the wheels for the last axis, into the current folder.
"""

import numpy as np
from scipy.spatial.transform import Rotation

import concur as cc

np.set_printoptions(precision=4, suppress=True)

model = cc.reduce(cc.robots.wheel_satellite())

# The wheels turn and come back to their angles. A loop in the plane of two wheels rotates the
# satellite about the third axis, by the curvature times the area of the loop.
for axis in np.eye(3):
    plan = cc.planning.plan_loop(model, np.pi / 2 * axis, duration=20.0)

    # Computed torque at the wheels follows the loop on the full-order robot.
    law = cc.laws.ComputedTorque(model, plan.loop, stiffness=25.0, damping=10.0)
    run = cc.simulate(model.robot, law, None, 20.0, plan.start(), np.zeros(3), dt=0.05)
    turned = Rotation.from_quat(run.q[-1, 3:7])
    print(f"rotation vector {np.degrees(turned.as_rotvec())} degrees")
    print(f"  wheels at {run.q[-1, 7:]} rad, largest speed {np.abs(run.v[:, 6:]).max():.1f} rad/s")
    print(f"  largest angular momentum {np.abs(run.momentum).max():.1e} kg m^2/s")

# The centre of mass is at rest: no loop translates the satellite.
try:
    cc.planning.plan_loop(model, [0.1, 0.0, 0.0, 0.0, 0.0, 0.0])
except cc.errors.InfeasibleReferenceError as error:
    print(error)

plan.plot().savefig("turning_satellite.png", dpi=100)
