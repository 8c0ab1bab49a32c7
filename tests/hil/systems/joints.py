"""A post with a tool on a joint of several freedoms, as motors on shafts can move it."""

import casadi as ca
import numpy as np

import concur as cc
from concur.io import Task
from concur.outputs import FunctionOutput

KIND = "cylindrical"
X, Y, Z = np.eye(3)
CHAINS = {
    # One joint of two freedoms, whose coordinates are an angle and a length.
    "cylindrical": [("quill", cc.joints.Cylindrical(Z))],
    # Chains that move a body as a ball joint or a planar joint does.
    "ball": [(n, cc.joints.Revolute(a)) for n, a in (("yaw", Z), ("pitch", Y), ("roll", X))],
    "planar": [
        ("along", cc.joints.Prismatic(X)),
        ("across", cc.joints.Prismatic(Y)),
        ("turn", cc.joints.Revolute(Z)),
    ],
}
WHOLE = {"ball": cc.joints.Spherical(), "planar": cc.joints.Planar()}
OUTPUTS = {"ball": "SO3", "planar": "SE2"}
TOOL = cc.Inertia(2.0, (0.05, 0.02, 0.1), (0.03, 0.04, 0.05))
GOALS = {
    "cylindrical": [0.8, 0.15],
    "ball": [0.2, -0.3, 0.4, 0.8],
    "planar": [0.2, -0.1, 0.9],
}


def robot(whole: bool = False) -> cc.Mechanism:
    """The post and its tool; `whole` with the joint of several freedoms, without motors."""
    bodies = [cc.Body("post", cc.joints.Fixed(), inertia=cc.Inertia(5.0, moments=(1, 1, 1)))]
    chain = [("tool", WHOLE[KIND])] if whole else CHAINS[KIND]
    for k, (name, joint) in enumerate(chain):
        own = TOOL if k == len(chain) - 1 else cc.Inertia(0.0)
        bodies.append(cc.Body(name, joint, bodies[-1].name, inertia=own))
    made = cc.Mechanism(KIND, bodies, gravity=(0.0, 0.0, -9.81), actuated=[] if not whole else None)
    if whole:
        return made
    motors = [
        cc.Motor(f"{name} drive", name, 10.0, torque=3.0, speed=40.0) for name in made.freedom_names
    ]
    return cc.Mechanism(KIND, bodies, gravity=(0.0, 0.0, -9.81), actuated=[], motors=motors)


def task(whole: bool = False) -> Task:
    """The tool turns, or moves, to a goal."""
    own = robot(whole)
    if KIND in OUTPUTS:
        output = cc.Output("tool", own.bodies[-1].name, OUTPUTS[KIND])
    else:
        q = ca.SX.sym("q", own.nq)
        output = FunctionOutput("tool", ca.Function("tool", [q], [q]), "R2")
    goal = np.array(GOALS[KIND])
    if KIND == "ball":
        goal /= np.linalg.norm(goal)
        reference = cc.references.rest_to_rest([0.0, 0.0, 0.0, 1.0], goal, 1.5, group="SO3")
    else:
        reference = cc.references.rest_to_rest(np.zeros(len(goal)), goal, 1.5)
        reference = cc.references.planar(reference) if KIND == "planar" else reference
    return Task(
        name=KIND,
        robot=own,
        outputs=(output,),
        stiffness=25.0,
        damping=10.0,
        reference=reference,
        q0=own.neutral(),
        duration=2.0,
        dt=4e-3,
        control_period=4e-3,
    )
