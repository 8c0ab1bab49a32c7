"""Four laws carry a payload that is 50 % heavier than in their model: linearizing and passive ones.

Run it from anywhere: ``python examples/wrong_payload.py``. It writes `wrong_payload.png` into the
working directory: errors and torques of a rover that carries 3 kg; the model of its laws has 2 kg.
"""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np

import concur as cc


def carrying(robot, mass):
    """The robot with a cube of 0.1 m in its hand."""
    cube = cc.Inertia(mass, (0, 0, 0), tuple([mass * 0.01 / 6] * 3))
    hook = cc.Body("payload", cc.joints.Fixed(), "forearm", cc.Pose((0, 0.2, 0)), cube)
    return replace(robot, bodies=(*robot.bodies, hook))


rover = cc.robots.rover_arm()
model, plant = cc.reduce(carrying(rover, 2.0)), cc.Plant(carrying(rover, 3.0))
outputs = [
    cc.Output("base", "chassis", "R2", point=(0.25, 0.0, 0.0)),
    cc.Output("hand", "forearm", "R3", point=(0.0, 0.2, 0.0)),
]
servo = cc.Servo(model, outputs, stiffness=[4, 9], damping=[4, 6])
passive = cc.PassiveServo(model, outputs, stiffness=[60, 90], damping=[80, 60], rate=[2, 3])
laws = {
    "linearizing servo": servo,
    "linearizing, integral action": replace(servo, integral=[2.0, 6.0]),
    "passive servo": passive,
    "passive, adaptive": replace(passive, payload="payload"),
}

q0 = [0.0, 0.0, 0.0, 0.0, 0.0, -0.1, 1.0, -1.6]
here = servo.output(q0)
path = cc.references.rest_to_rest(here, np.add(here, [0.8, 0.1, 0.8, 0.1, -0.05]), 5.0)
figure, axes = plt.subplots(1, 2, figsize=(10.0, 4.4), layout="constrained")
final = {}
for name, law in laws.items():
    run = cc.simulate(model.robot, law, path, 8.0, q0, np.zeros(5), plant=plant, dt=4e-3)
    error = 1e3 * np.linalg.norm(run.error[:, 2:], axis=1)
    final[name] = error[-1]
    axes[0].semilogy(run.t[1:], error[1:], label=name)
    axes[1].plot(run.t, np.abs(run.u).max(axis=1), label=name)
    print(f"{name}: {error[-1]:.3g} mm after 8 s, at most {error.max():.3g} mm")
axes[0].set(xlabel="time (s)", ylabel="error of the hand (mm)", title="payload 50 % too heavy")
axes[0].set_ylim(1e-3, 1e3)
axes[1].set(xlabel="time (s)", ylabel="largest torque (N m)", title="torques of the motors")
for panel in axes:
    panel.grid(alpha=0.3)
figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
figure.savefig("wrong_payload.png", dpi=100)
assert final["passive servo"] < 0.2 * final["linearizing servo"]
assert final["passive, adaptive"] < 0.1 < final["linearizing, integral action"]
