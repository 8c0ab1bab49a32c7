"""A planar satellite that drifts and turns: its hull is a symmetry, its momentum constant."""

import casadi as ca
import numpy as np

import concur as cc
from concur.formulations import Factor
from concur.io import Task
from concur.outputs import FunctionOutput

MOMENTUM = (0.4, -0.2, 0.3)


def satellite(mass: float = 12.0) -> cc.LagrangianSystem:
    """A hull of a mass, kg, with two links that have motors."""
    hull = Factor("hull", "SE2")
    upper, lower = (Factor(name, "SO2", limits=(-2.5, 2.5)) for name in ("upper", "lower"))
    vx, vy, turn = ca.vertsplit(hull.v)
    bend = upper.q + lower.q
    elbow = ca.vertcat(0.4 + 0.6 * ca.cos(upper.q), 0.6 * ca.sin(upper.q))
    tip = elbow + 0.5 * ca.vertcat(ca.cos(bend), ca.sin(bend))
    kinetic = (mass * (vx**2 + vy**2) + 1.5 * turn**2) / 2
    for own_mass, place in ((1.0, elbow), (0.8, tip)):
        own = ca.jacobian(place, upper.q) * upper.v + ca.jacobian(place, lower.q) * lower.v
        speed = ca.vertcat(vx - turn * place[1], vy + turn * place[0]) + own
        kinetic += own_mass * ca.sumsqr(speed) / 2
    motors = [
        cc.Motor(f"{name} drive", name, 80.0, torque=0.05, speed=200.0, rotor=1e-6, encoder=4096)
        for name in ("upper", "lower")
    ]
    return cc.LagrangianSystem(
        kinetic, 0.0, [hull, upper, lower], inputs=motors, name="satellite", symmetry="hull"
    )


def task() -> Task:
    """Two links move; the hull follows by the momentum."""
    system = satellite()
    q = ca.SX.sym("q", system.nq)
    joints = FunctionOutput("joints", ca.Function("joints", [q], [q[3:]]), "R2")
    start = np.array([0.1, 0.2, 0.3, 0.5, -0.4])
    return Task(
        name="satellite",
        robot=system,
        momentum=np.array(MOMENTUM),
        outputs=(joints,),
        stiffness=16.0,
        damping=8.0,
        reference=cc.references.rest_to_rest(start[3:], [1.1, 0.5], 2.5),
        q0=start,
        duration=3.0,
        dt=4e-3,
        control_period=4e-3,
    )
