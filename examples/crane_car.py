"""A load swings on a cable under the crane of a car, and a linear regulator damps it.

`crane_car.toml` tracks references with the same car and without a load. Run this from anywhere:
``python examples/crane_car.py``. It writes `crane_car.png` into the current folder.
"""

import control
import matplotlib
import numpy as np

import concur as cc

matplotlib.use("Agg")
import matplotlib.pyplot as plt

np.set_printoptions(precision=3, suppress=True, linewidth=100)

# A point mass of 40 kg on a cable of 1.2 m, under the tip of the boom. The cable is a ball joint;
# the spin about it moves no mass and is divided out, so that two shape velocities remain.
car = cc.robots.crane_car()
mass = cc.Inertia(40.0, com=(0, 0, -1.2))
load = cc.Body("load", cc.joints.Spherical(), "boom", cc.Pose((2.0, 0, 0)), mass)
robot = cc.Mechanism(
    "crane_load", [*car.bodies, load], car.wheels, (0, 0, -9.81), actuated=car.actuated
)
model = cc.reduce(robot)
print(model)

# Four motors and six shape velocities: no servo. The error says which velocities have no motor.
try:
    cc.Servo(model, [cc.Output("load", "load", "R3", point=(0, 0, -1.2))], 1.0, 2.0)
except cc.errors.OutputError as error:
    print(error)

# The boom is raised by 35 degrees, the column looks to the left. The load hangs straight down.
rest = robot.neutral()
rest[robot.q_slice("column")] = 1.0
rest[robot.q_slice("boom")] = -0.6
rest[robot.q_slice("load")] = [0.0, np.sin(0.3), 0.0, np.cos(0.3)]
still = np.zeros(model.ns)
holding = np.linalg.lstsq(model.input_matrix(rest), model.bias(rest, still), rcond=None)[0]
print("torques that hold the load:", dict(zip(model.control_names, holding, strict=True)))

# The linear loop about this rest, without a law: the load is a pendulum, the rest integrates.
loop = cc.control.linear_loop(model, at=rest)
print("poles without a law:", loop.poles()[abs(loop.poles()) > 0.01])

# Weights: one over the square of what counts as a large angle, rad, rate or torque, N m.
large = {"steering": 0.3, "column": 0.3, "left_wheel": 1.0, "boom": 0.3}
angles = np.array([large.get(name, 0.1) for name in model.shape_names])
weights = np.concatenate([angles, 3 * angles]) ** -2.0
torques = np.array([20.0, 500.0, 100.0, 200.0])
gain, _, poles = control.lqr(loop, np.diag(weights), np.diag(torques**-2.0))
print("poles with the regulator:", np.sort(poles))

# For comparison motors that hold their angles stiffly, and ignore the load.
motors = [model.shape_names.index(name) for name in model.control_names]
inertia = np.diag(model.mass_matrix(rest))[motors]
locked = np.zeros((4, 2 * model.ns))
locked[range(4), motors] = 400.0 * inertia
locked[range(4), [model.ns + i for i in motors]] = 40.0 * inertia


def law(gain):
    """Control torques: those that hold the load, less the gain times the deviation."""

    def torques(t, q, s):
        deviation = robot.difference(rest, q)[list(model.shape)]
        return holding - gain @ np.concatenate([deviation, s])

    return torques


# The load starts 12 degrees from the vertical, in a direction across the boom and along it.
start = robot.integrate(rest, model.lift(rest)[0] @ [0, 0, 0, 0, 0.17, 0.12])
motions = {
    name: cc.simulation.forced_motion(model, law(found), 12.0, start, still, dt=0.02)
    for name, found in (("stiff motors", locked), ("regulator", gain))
}


def swing(motion):
    """Angle of the cable from the vertical, degrees."""
    lines = np.array([robot.pose(q, "load")[:3, 2] for q in motion.q])
    return np.degrees(np.arctan2(np.hypot(lines[:, 0], lines[:, 1]), lines[:, 2]))


figure, (above, middle, below) = plt.subplots(3, 1, figsize=(7.5, 7.5), sharex=True)
for name, motion in motions.items():
    above.plot(motion.t, swing(motion), label=name)
    print(f"{name}: largest angle in the last 3 s {swing(motion)[-150:].max():.2g} deg")
    print(f"  energy balance {np.abs(motion.energy_balance).max():.1e} J")
above.set_ylabel("angle of the cable\nfrom the vertical (deg)")
above.legend()
damped = motions["regulator"]
for name in model.control_names:
    moved = damped.q[:, robot.q_slice(name)][:, 0] - rest[robot.q_slice(name)]
    middle.plot(damped.t, moved, label=name)
middle.set_ylabel("regulator:\ndeviation of joints (rad)")
middle.legend(ncols=4, fontsize="small")
for k, name in enumerate(model.control_names):
    below.plot(damped.t, damped.u[:, k] / 1e3, label=name)
below.set_ylabel("regulator:\ntorques (kN m)")
below.set_xlabel("time (s)")
for axes in (above, middle, below):
    axes.grid(alpha=0.3)
figure.suptitle("A load of 40 kg on a cable of 1.2 m, under the crane of a car")
figure.tight_layout()
figure.savefig("crane_car.png", dpi=100)
assert swing(damped)[-150:].max() < 0.1 < 5.0 < swing(motions["stiff motors"])[-150:].max()
