"""A vehicle on the hull of a spacecraft reaches out: kinematics of a tree of many joints.

The structure is that of the case study in section 2.5 of R. Chhabra's thesis (Toronto, 2014); the
numbers are our own. Run it from anywhere: ``python examples/orbital_crawler.py``. It writes
`orbital_crawler.png` into the current folder.
"""

import numpy as np

import concur as cc

np.set_printoptions(precision=4, suppress=True, linewidth=100)

# A free spacecraft, a vehicle on a plane of its hull, a ball joint, an arm, two tips.
robot = cc.robots.orbital_crawler()
print(robot.summary())

# Screw parameters say how far each joint has gone along its own twist: 6 + 3 + 3 + 1 + 1 + 1.
s = np.concatenate(
    [
        [0.4, -0.3, 0.2, 0.5, -0.7, 0.9],  # spacecraft
        [0.6, -0.25, 1.1],  # vehicle
        [0.3, 0.8, -0.4],  # ball
        [0.7, -1.2, 0.35],  # arm, left tip, right tip
    ]
)

# Where are the tips? Once by the product of exponentials, exp(T1 s1) ... exp(T5 s5) r0, in which
# all twists T are seen from the inertial frame; once by the recursion from body to body, whose
# coordinates are global: s leads to q, joint by joint. Both are the same map.
q = robot.configuration(s)
for tip in ("left_tip", "right_tip"):
    product, recursion = robot.forward(s, tip), robot.pose(q, tip)
    difference = np.abs(product - recursion).max()
    print(f"\n{tip} at {recursion[:3, 3]} m; the two ways differ by {difference:.0e}")

# The vehicle has wheels: it drives and turns, but cannot slip sideways. In its own axes that is
# one row on its twist (v_x, v_y, omega), and it takes one of the fifteen speeds away.
rolling = {"vehicle": [[0, 1, 0]]}
tips = ["left_tip", "right_tip"]

one = robot.modified_jacobian(s, "left_tip", rolling)
both = robot.stacked_jacobian(s, tips, rolling)
blocks = robot.branch_jacobians(s, tips, rolling)
print(f"\nspeeds: {robot.nv} of the joints, {both.shape[1]} with the wheels of the vehicle")
print("twist of the left tip when the vehicle drives, and when it turns:")
print(one[:, 6:8].T)

# How many motions of the two tips are independent? The thesis writes the map as two blocks, one
# for each branch, each with the speeds of the joints that it shares with the other. Taken as a
# matrix it has full rank, as if there were two robots. The robot has each joint once: its tips
# sit on one arm and can move against each other by their own two hinges only, 6 + 2 = 8.
print(f"rank of the block-diagonal map {blocks.shape}: {np.linalg.matrix_rank(blocks)}")
print(f"rank of the map of the robot   {both.shape}: {np.linalg.matrix_rank(both)}")

# Bring the left tip to a place on the other side of the vehicle while the spacecraft stays. Its
# point (0.2, 0, 0) is the end of the tip. Wheels bound how the vehicle gets there, not where.
hand = cc.Output("left", "left_tip", "R3xSO3", point=(0.2, 0.0, 0.0))
target = robot.pose(robot.neutral(), "left_tip") @ cc.Pose((0.2, 0.0, 0.0)).matrix
target[:3, 3] += [-0.6, 0.5, -0.1]
found = cc.inverse_kinematics(robot, [hand], target, robot.neutral(), fixed=["spacecraft"])
print(f"\ninverse kinematics: {found.why}")
reached = robot.pose(found.q, "left_tip") @ cc.Pose((0.2, 0.0, 0.0)).matrix
print(f"tip at {reached[:3, 3]} m, wanted {target[:3, 3]} m")
print(f"vehicle at x, y, heading = {found.q[robot.q_slice('vehicle')]} on the hull")

# What it looks like.
robot.plot(found.q, [hand]).savefig("orbital_crawler.png", dpi=110)
