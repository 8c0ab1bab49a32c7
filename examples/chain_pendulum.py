"""A chain pendulum of three point masses on cables: its motion is chaotic.

Run this from anywhere: ``python examples/chain_pendulum.py``. It writes `chain_pendulum.png` into
the current folder.
"""

import matplotlib
import numpy as np

import concur as cc

matplotlib.use("Agg")
import matplotlib.pyplot as plt

# Each mass hangs on the one before. A ball joint with a point mass is a cable: its direction is a
# point on a two-sphere, which no pole makes singular.
masses, lengths = (1.0, 0.7, 0.5), (0.8, 0.6, 0.9)  # kg, m
bodies = [cc.Body("ceiling", cc.joints.Fixed())]
for mass, length in zip(masses, lengths, strict=True):
    before = lengths[len(bodies) - 2] if len(bodies) > 1 else 0.0
    bodies.append(
        cc.Body(
            f"mass{len(bodies)}",
            cc.joints.Spherical(),
            bodies[-1].name,
            cc.Pose((0, 0, -before)),
            cc.Inertia(mass, com=(0, 0, -length)),
        )
    )
robot = cc.Mechanism("chain", bodies, gravity=(0, 0, -9.81), actuated=())
model = cc.reduce(robot)
print(model)

# About the hanging rest each mode has two directions.
squares = np.sort(-(cc.control.linear_loop(model, at=robot.neutral()).poles() ** 2).real)[::4]
print("frequencies of the modes:", np.sqrt(squares) / (2 * np.pi), "Hz")

# The chain starts at rest, stretched almost sideways; a second one starts a billionth of a radian
# away. The first 1.5 seconds are alike.
start = robot.integrate(robot.neutral(), [1.6, 0.2, 0, 0.5, -0.9, 0, -0.4, 0.6, 0])
starts = [start, robot.integrate(start, model.lift(start)[0] @ ([1e-9] + [0.0] * 5))]
motions = [cc.simulation.forced_motion(model, None, 25.0, q, np.zeros(6), dt=0.01) for q in starts]


def tip(motion):
    """Path of the last mass, m."""
    poses = np.array([robot.pose(q, "mass3") for q in motion.q])
    return poses[:, :3, 3] - lengths[-1] * poses[:, :3, 2]


one, other = (tip(motion) for motion in motions)
apart = np.linalg.norm(one - other, axis=1)
energy = motions[0].energy
vertical = [robot.momentum(q, v)[5] for q, v in zip(motions[0].q, motions[0].v, strict=True)]
print(f"change of the energy {np.ptp(energy):.1e} J, of {energy[0]:.3f} J")
print(f"change of the vertical angular momentum {np.ptp(vertical):.1e} kg m^2/s")
print(f"distance of the two tips after 25 s: {apart[-1]:.2g} m")

figure = plt.figure(figsize=(10.0, 4.8))
space = figure.add_subplot(1, 2, 1, projection="3d")
for path, colour, name in ((one, "tab:blue", "first"), (other, "tab:orange", "second")):
    space.plot(*path[-800:].T, color=colour, lw=1.0, label=f"{name} chain")
points = [np.zeros(3)]
for name, length in zip(("mass1", "mass2", "mass3"), lengths, strict=True):
    pose = robot.pose(start, name)
    points.append(pose[:3, 3] - length * pose[:3, 2])
space.plot(*np.array(points).T, "ko-", lw=1.5, label="start")
space.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)", title="paths of the last mass, last 8 s")
space.legend(loc="upper left", fontsize="small")
space.set_aspect("equal")
space.locator_params(nbins=4)
plain = figure.add_subplot(1, 2, 2)
plain.semilogy(motions[0].t[1:], apart[1:])
plain.set(xlabel="time (s)", ylabel="distance of the last masses (m)")
plain.set_title("two starts 1e-9 rad apart")
plain.grid(alpha=0.3)
figure.tight_layout()
figure.savefig("chain_pendulum.png", dpi=100)
assert np.ptp(energy) < 1e-9
assert np.ptp(vertical) < 1e-9
assert apart[100] < 1e-6
