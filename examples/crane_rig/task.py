"""A tower crane, described by its energies, whose hook goes round a loop.

    concur track examples/crane_rig/task.py
    concur-rig check examples/crane_rig/rig.toml --mock

The load hangs from the trolley on a guided hoist, so it does not swing.
"""

import casadi as ca

import concur as cc
from concur.formulations import Factor
from concur.io import Task
from concur.outputs import FunctionOutput
from concur.simulation import Tolerances

LOAD, TROLLEY, JIB = 400.0, 150.0, 30e3  # kg, kg, kg m^2
HEIGHT = 20.0  # m


def crane() -> cc.LagrangianSystem:
    """Jib, trolley and hoist; each has a motor with its gear."""
    slew = Factor("slew", "SO2", limits=(-3.0, 3.0))
    trolley = Factor("trolley", "R", neutral=(8.0,), limits=(2.0, 15.0))
    hoist = Factor("hoist", "R", neutral=(6.0,), limits=(1.0, 18.0))
    along = ca.vertcat(ca.cos(slew.q), ca.sin(slew.q), 0)
    hook = trolley.q * along + ca.vertcat(0, 0, HEIGHT - hoist.q)
    rates = {slew.q: slew.v, trolley.q: trolley.v, hoist.q: hoist.v}
    speed = sum((ca.jacobian(hook, q) @ v for q, v in rates.items()), ca.SX.zeros(3))
    drive = ca.sumsqr(trolley.v) + (trolley.q * slew.v) ** 2
    kinetic = (JIB * slew.v**2 + TROLLEY * drive + LOAD * ca.sumsqr(speed)) / 2
    motors = [
        cc.Motor(name, moved, gear, rotor=0.02, torque=torque, speed=150.0, encoder=4096)
        for name, moved, gear, torque in (
            ("slew drive", "slew", 400.0, 60.0),
            ("trolley drive", "trolley", 50.0, 40.0),
            ("winch", "hoist", 60.0, 120.0),
        )
    ]
    top = ca.SX([0.0, 0.0, HEIGHT])
    return cc.LagrangianSystem(
        kinetic,
        LOAD * 9.81 * hook[2],
        [slew, trolley, hoist],
        inputs=motors,
        name="tower crane",
        drawn={
            "mast": ca.SX.zeros(3),
            "top": top,
            "trolley": top + trolley.q * along,
            "hook": hook,
        },
    )


def task() -> Task:
    """The hook goes round a loop in space."""
    system = crane()
    q = ca.SX.sym("q", system.nq)
    jib = ca.vertcat(ca.cos(q[0]), ca.sin(q[0]))
    hook = FunctionOutput(
        "hook", ca.Function("hook", [q], [ca.vertcat(q[1] * jib, HEIGHT - q[2])]), "R3"
    )
    points = [(8, 0, 14), (9, 2, 13), (8, 4, 12), (6, 2, 13), (8, 0, 14)]
    loop = cc.references.waypoints([0.0, 2.5, 5.0, 7.5, 10.0], points)
    return Task(
        name="crane",
        robot=system,
        outputs=(hook,),
        stiffness=4.0,
        damping=4.0,
        reference=loop,
        q0=system.neutral(),
        duration=10.0,
        dt=4e-3,
        control_period=4e-3,
        tolerances=Tolerances(final_error=1e-3, evaluate_after=5.0),
    )
