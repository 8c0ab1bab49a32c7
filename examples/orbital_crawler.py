"""A vehicle on the hull of a spacecraft: kinematics of a tree with many joints.

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

# Screw parameters: the displacement of each joint along its twist, 6 + 3 + 3 + 1 + 1 + 1.
s = np.concatenate(
    [
        [0.4, -0.3, 0.2, 0.5, -0.7, 0.9],  # spacecraft
        [0.6, -0.25, 1.1],  # vehicle
        [0.3, 0.8, -0.4],  # ball
        [0.7, -1.2, 0.35],  # arm, left tip, right tip
    ]
)

# Poses of the tips in two ways: by the product of exponentials, exp(T1 s1) ... exp(T5 s5) r0, with
# all twists T in the inertial frame; and by the recursion from body to body, in global
# coordinates q that follow from s joint by joint. Both are the same map.
q = robot.configuration(s)
for tip in ("left_tip", "right_tip"):
    product, recursion = robot.forward(s, tip), robot.pose(q, tip)
    difference = np.abs(product - recursion).max()
    print(f"\n{tip} at {recursion[:3, 3]} m; the two ways differ by {difference:.0e}")

# The vehicle has wheels: it moves forward and rotates, but does not slip sideways. In vehicle axes
# this is one row on its twist (v_x, v_y, omega), which removes one of the fifteen velocities.
rolling = {"vehicle": [[0, 1, 0]]}
tips = ["left_tip", "right_tip"]

one = robot.modified_jacobian(s, "left_tip", rolling)
both = robot.stacked_jacobian(s, tips, rolling)
blocks = robot.branch_jacobians(s, tips, rolling)
print(f"\nvelocities: {robot.nv} of the joints, {both.shape[1]} with the wheels of the vehicle")
print("twist of the left tip when the vehicle moves forward, and when it rotates:")
print(one[:, 6:8].T)

# The number of independent motions of the two tips: the thesis writes the map as two blocks, one
# for each branch, and both contain the velocities of the shared joints. As a matrix this map has
# full rank, as if there were two robots. The robot has each joint once: both tips are on one arm,
# and only their two hinges move them relative to each other, 6 + 2 = 8.
print(f"rank of the block-diagonal map {blocks.shape}: {np.linalg.matrix_rank(blocks)}")
print(f"rank of the map of the robot   {both.shape}: {np.linalg.matrix_rank(both)}")

# Inverse kinematics: move the end of the left tip, its point (0.2, 0, 0), to a position on the
# other side of the vehicle, with the spacecraft fixed. The wheels restrict velocities, and not
# the configurations that the vehicle can reach.
hand = cc.Output("left", "left_tip", "R3xSO3", point=(0.2, 0.0, 0.0))
target = robot.pose(robot.neutral(), "left_tip") @ cc.Pose((0.2, 0.0, 0.0)).matrix
target[:3, 3] += [-0.6, 0.5, -0.1]
found = cc.inverse_kinematics(robot, [hand], target, robot.neutral(), fixed=["spacecraft"])
print(f"\ninverse kinematics: {found.why}")
reached = robot.pose(found.q, "left_tip") @ cc.Pose((0.2, 0.0, 0.0)).matrix
print(f"tip at {reached[:3, 3]} m, target {target[:3, 3]} m")
print(f"vehicle at x, y, heading = {found.q[robot.q_slice('vehicle')]} on the hull")

# A picture of the result.
robot.plot(found.q, [hand]).savefig("orbital_crawler.png", dpi=110)
