"""Parallel parking: a rover on two wheels moves 0.3 m sideways, and its wheels come back.

Run it from anywhere: ``python examples/parked_rover.py``. It writes `parked_rover_loop.png` and
`parked_rover.png` into the current folder.
"""

import numpy as np

import concur as cc
from concur.show import new_figure, styled

model = cc.reduce(cc.robots.rover_arm())
arm = [[-0.3, 0.3]] * 3  # rad: the arm takes a small part in the loop
plan = cc.planning.plan_loop(
    model, [0.0, 0.3, 0.0], limits=[[-9.0, 9.0]] * 2 + arm, speed_limits=4.0, duration=10.0
)
print(plan)
plan.plot().savefig("parked_rover_loop.png", dpi=100)

# The torques of the plan move the reduced model; no feedback is needed without disturbances.
motion = cc.simulation.forced_motion(
    model,
    plan.torque,
    plan.loop.duration,
    plan.start(),
    np.zeros(5),
    dt=cc.simulation.Integrator("dop853", 0.1, rtol=1e-9),
)
print("rover at x, y, heading =", motion.q[-1, :3].round(6))
print("wheels at", motion.q[-1, 3:5].round(6), "rad")

with styled():
    figure = new_figure(7.0, 3.6)
    axes = figure.subplots()
    x, y, heading = motion.q[:, :3].T
    axes.plot(x, y, label="middle of the axle")
    every = slice(0, None, max(1, len(x) // 16))
    axes.quiver(
        x[every], y[every], np.cos(heading[every]), np.sin(heading[every]), width=0.004, scale=18.0
    )
    axes.plot(x[[0, -1]], y[[0, -1]], "o", label="start and end")
    axes.set_xlabel("x [m]")
    axes.set_ylabel("y [m]")
    axes.set_title(f"A rover parks sideways in {plan.loop.duration:.1f} s")
    axes.set_aspect("equal", adjustable="datalim")
    axes.legend(loc="lower left")
    figure.savefig("parked_rover.png", dpi=100)
