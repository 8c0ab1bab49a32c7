"""A base on four driven mecanum wheels with an arm: five motors, four shape velocities."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from concur.outputs import Output
from concur.reduction import reduce
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints

R = 0.076
CORNERS = {"fl": (1, 1, -45), "fr": (1, -1, 45), "rl": (-1, 1, 45), "rr": (-1, -1, -45)}
WHEELS = tuple(CORNERS)
WEIGHTS = np.array([1.0, 4.0, 0.5, 2.0, 3.0])


def base(*driven: str) -> Mechanism:
    """Four mecanum wheels and an arm."""
    spin = Inertia(0.5, moments=(0.001, 0.0015, 0.001))
    body, link = Inertia(8.0, (0.02, 0.01, 0), (0.1, 0.1, 0.2)), Inertia(2.0, (0.3, 0, 0))
    axle = joints.Revolute((0, 1, 0))
    link = replace(link, moments=(0.01, 0.02, 0.02))
    bodies = [
        Body("base", joints.Planar(), inertia=body),
        *(
            Body(name, axle, "base", Pose((0.25 * x, 0.2 * y, 0)), spin)
            for name, (x, y, _) in CORNERS.items()
        ),
        Body("arm", joints.Revolute((0, 0, 1)), "base", Pose((0.1, 0, 0)), link),
    ]
    wheels = [
        Wheel(name, R, kind="mecanum", roller_angle=np.deg2rad(angle))
        for name, (_, _, angle) in CORNERS.items()
    ]
    return Mechanism("mecanum", bodies, wheels, actuated=[*driven, "arm"])


OUTPUTS = [
    Output("place", "base", "R2"),
    Output("heading", "base", "SO2"),
    Output("arm", "arm", "SO2"),
]
FOUR, THREE = reduce(base(*WHEELS)), reduce(base(*WHEELS[:3]))
# r psi' = vx -+ vy -+ (lx + ly) w: so rr = fl + fr - rl, a row of B^T H.
ACTUATION = np.vstack([np.eye(4)[:3], [1.0, 1.0, -1.0, 0.0], np.eye(4)[3]]).T
