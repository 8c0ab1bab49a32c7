"""Systems that are no trees of bodies: reduced, simulated in full order, moved by forces.

A `Lagrangian` system has energies and constraints that are linear in the velocities. The motions
are compared with closed forms and with an integration of equations derived by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import concur as cc
from concur.codegen import EvaluatedMethods, evaluated
from concur.errors import NonFiniteError, ReductionError, ShapeError, SimulationError
from concur.system import MEMBERS

Energy = Callable[..., Any]


@dataclass(frozen=True)
class Lagrangian(EvaluatedMethods):
    """Coordinates whose rates are the velocities: T(q, v) - V(q), rows C(q) with C v = 0."""

    name: str
    freedom_names: tuple[str, ...]
    effort_units: tuple[str, ...]
    actuated_freedoms: tuple[int, ...]
    kinetic: Energy
    potential: Energy
    rows: Energy | None = None
    constraint_names: tuple[str, ...] = ()

    nq = property(lambda self: len(self.freedom_names))
    nv = property(lambda self: len(self.freedom_names))
    nf = property(lambda self: len(self.constraint_names))

    def neutral(self):
        return np.zeros(self.nq)

    def random(self, rng):
        return rng.uniform(-1.0, 1.0, self.nq)

    def check_configuration(self, q, where="q"):
        array = np.asarray(q, dtype=float)
        if array.shape != (self.nq,):
            raise ShapeError(where, expected=f"{self.nq} numbers", came=str(q), cure="Count them.")
        if not np.isfinite(array).all():
            raise NonFiniteError(where, expected="finite numbers", came=str(q), cure="Check them.")
        return array

    def rate(self, q, v):
        return v

    def integrate(self, q, dv):
        return q + dv

    def dexp_inverse(self, dv, v):
        return v

    def normalize(self, coordinates):
        return coordinates

    @evaluated("(nq),(nv)->()")
    def kinetic_energy(self, q, v):
        return self.kinetic(q, v)

    @evaluated("(nq)->()")
    def potential_energy(self, q):
        return self.potential(q)

    @evaluated("(nq)->(nv,nv)")
    def mass_matrix(self, q):
        v = ca.SX.sym("v", self.nv)
        return ca.hessian(self.kinetic(q, v), v)[0]

    @evaluated("(nq),(nv),(nv)->(nv)")
    def inverse_dynamics(self, q, v, vdot):
        x, w = ca.SX.sym("q", self.nq), ca.SX.sym("v", self.nv)
        momenta = ca.gradient(self.kinetic(x, w), w)
        forces = ca.jtimes(momenta, x, w) - ca.gradient(self.kinetic(x, w) - self.potential(x), x)
        return ca.Function("bias", [x, w], [forces])(q, v) + self.mass_matrix(q) @ vdot

    @evaluated("(nq),(nv)->(nv)")
    def bias(self, q, v):
        return self.inverse_dynamics(q, v, ca.SX(self.nv, 1))

    @evaluated("(nq)->(nf,nv)")
    def constraints(self, q):
        return ca.SX(0, self.nv) if self.rows is None else self.rows(q)


# A bead on a hoop that a motor turns about its vertical diameter; the angle counts from below.
MASS, RADIUS, INERTIA, GRAVITY = 0.3, 0.5, 0.02, 9.81
HOOP = Lagrangian(
    "bead on a hoop",
    ("hoop", "bead"),
    ("N m", "N m"),
    (0,),
    lambda q, v: (
        (INERTIA * v[0] ** 2 + MASS * RADIUS**2 * (v[1] ** 2 + (ca.sin(q[1]) * v[0]) ** 2)) / 2
    ),
    lambda q: -MASS * GRAVITY * RADIUS * ca.cos(q[1]),
)
# A particle with zdot = y xdot, a constraint that no surface makes; x is driven.
WEIGHT = 2.0
PARTICLE = Lagrangian(
    "particle",
    ("x", "y", "z"),
    ("N", "N", "N"),
    (0,),
    lambda q, v: WEIGHT * ca.sumsqr(v) / 2,
    lambda q: ca.SX(0),
    lambda q: ca.horzcat(q[1], 0, -1),
    ("z follows x",),
)
# A knife edge on a slope: it does not slip sideways, and glides and turns freely.
SLOPE, TURN = 3.0, 0.4
EDGE = Lagrangian(
    "knife edge",
    ("x", "y", "heading"),
    ("N", "N", "N m"),
    (0, 2),
    lambda q, v: (WEIGHT * (v[0] ** 2 + v[1] ** 2) + TURN * v[2] ** 2) / 2,
    lambda q: -WEIGHT * SLOPE * q[0],
    lambda q: ca.horzcat(ca.sin(q[2]), -ca.cos(q[2]), 0),
    ("no slip sideways",),
)


def integrated(plant: cc.Plant, u: Callable[[float], list[float]], y0: Any, t: np.ndarray) -> Any:
    """Motion of the full-order plant."""

    def slope(time, y):
        q, v = np.split(y, 2)
        return np.concatenate([plant.robot.rate(q, v), plant.acceleration(q, v, u(time))[0]])

    return solve_ivp(slope, (0.0, t[-1]), y0, "DOP853", t, rtol=1e-12, atol=1e-13).y


@pytest.mark.parametrize("method", ["dop853", "rkmk4"])
def test_bead_moves_as_its_equations_say(method):
    def u(t):
        return [0.05 * np.cos(3.0 * t)]

    def by_hand(t, y):
        (_, bead), (turn, fall) = y[:2], y[2:]
        s, c = np.sin(bead), np.cos(bead)
        inertia = INERTIA + MASS * RADIUS**2 * s**2
        turning = (u(t)[0] - 2 * MASS * RADIUS**2 * s * c * turn * fall) / inertia
        return [turn, fall, turning, s * c * turn**2 - GRAVITY / RADIUS * s]

    model = cc.reduce(HOOP)
    assert (model.kind, model.ns, model.shape_names) == ("unreduced", 2, ("hoop", "bead"))
    q0, s0 = [0.3, 1.1], [2.0, -0.5]
    motion = cc.simulation.forced_motion(
        model, u, 2.0, q0, s0, dt=cc.simulation.Integrator(method, 5e-3)
    )
    start = [*q0, *s0]
    true = solve_ivp(by_hand, (0.0, 2.0), start, "DOP853", motion.t, rtol=1e-12, atol=1e-13).y
    assert np.abs(np.hstack([motion.q, motion.s]).T - true).max() < 1e-6
    if method == "dop853":
        assert np.abs(np.hstack([motion.q, motion.s]).T - true).max() < 1e-10
        assert np.abs(motion.energy_balance).max() < 1e-10
    assert np.abs(integrated(cc.Plant(HOOP), u, start, motion.t) - true).max() < 1e-9


def test_forced_particle_and_its_reduced_dynamics():
    """By hand: m (1 + y^2) xddot + m y ydot xdot = u, yddot = 0."""
    model = cc.reduce(PARTICLE)
    q, s, u = np.array([0.2, -0.8, 0.5]), np.array([1.5, 0.6]), np.array([0.9])
    mass = WEIGHT * (1.0 + q[1] ** 2)
    assert model.mass_matrix(q) == pytest.approx(np.diag([mass, WEIGHT]), abs=1e-14)
    assert model.bias(q, s) == pytest.approx([WEIGHT * q[1] * s[1] * s[0], 0.0], abs=1e-14)
    sdot = [(u[0] - WEIGHT * q[1] * s[1] * s[0]) / mass, 0.0]
    assert model.acceleration(q, s, u) == pytest.approx(sdot, abs=1e-14)
    vdot, force = cc.Plant(PARTICLE).acceleration(q, model.velocity(q, s), u)
    assert vdot[:2] == pytest.approx(sdot, abs=1e-13)
    assert force == pytest.approx([-WEIGHT * vdot[2]], abs=1e-12)


def test_knife_edge_on_a_slope_goes_along_a_cycloid():
    """Released at rest, turning at w: x = g/(2 w^2) sin^2 wt, y = g/(2 w^2) (wt - sin(2wt)/2)."""
    model, w = cc.reduce(EDGE), 1.2
    assert model.shape_names == ("x", "heading")  # x or y may follow: y, which has no drive
    motion = cc.simulation.forced_motion(model, None, 1.0, [0.0, 0.0, 0.0], [0.0, w], dt=0.05)
    half, phase = SLOPE / (2.0 * w**2), w * motion.t
    assert np.abs(motion.q[:, 0] - half * np.sin(phase) ** 2).max() < 1e-10
    assert np.abs(motion.q[:, 1] - half * (phase - np.sin(2.0 * phase) / 2.0)).max() < 1e-10


def test_knife_edge_stops_where_its_velocities_do_not_follow():
    model = cc.reduce(EDGE)
    heading = [0.0, 0.3, -1.4, np.pi / 2 - 1e-7, np.pi / 2 + 1e-7]
    found = [model.regularity([0.0, 0.0, angle]) for angle in heading]
    assert found == pytest.approx(np.abs(np.cos(heading)), abs=1e-12)
    assert [model.side([0.0, 0.0, angle]) for angle in heading] == [-1, -1, -1, -1, 1]
    with pytest.raises(SimulationError, match="the constraints do not determine y"):
        cc.simulation.forced_motion(model, None, 1.0, [0.0, 0.0, np.pi / 2], [0.0, 0.0])


def scaled(system: Lagrangian, factor: float) -> Lagrangian:
    """The same knife edge with y in another unit of length, and its constraint too."""
    return Lagrangian(
        system.name,
        system.freedom_names,
        system.effort_units,
        system.actuated_freedoms,
        lambda q, v: system.kinetic(q, ca.vertcat(v[0], factor * v[1], v[2])),
        system.potential,
        lambda q: 100.0 * system.rows(q) @ ca.diag(ca.DM([1.0, factor, 1.0])),
        system.constraint_names,
    )


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_regularity_has_no_unit(factor):
    plain, other = cc.reduce(EDGE), cc.reduce(scaled(EDGE, factor))
    assert other.shape == plain.shape
    q = [0.0, 0.0, 0.7]
    assert other.regularity(q) == pytest.approx(plain.regularity(q), rel=1e-9)


def test_what_needs_bodies_says_so():
    model = cc.reduce(HOOP)
    expected = "`bead on a hoop`.*: expected a Mechanism: a tree of bodies, got the Lagrangian"
    motion = cc.simulation.forced_motion(model, None, 0.1, [0.0, 1.0], [1.0, 0.0], dt=0.1)
    for ask in (
        lambda: model.robot,
        lambda: cc.reduce(HOOP, momentum=np.zeros(6)),
        lambda: cc.reduce(HOOP, stages="auto"),
        lambda: cc.Plant(HOOP).tree,
        lambda: cc.reduction.conservation(model, "hoop"),
        lambda: cc.Servo(model, [cc.Output("bead", "bead", "R")], 1.0, 1.0),
        lambda: motion.momentum,
    ):
        with pytest.raises(ReductionError, match=expected):
            ask()
    assert model.audit()["CON1"].status.value == "holds"  # all but wheels


@pytest.mark.parametrize("member", MEMBERS)
def test_each_member_is_asked_for(member):
    class Lacking:
        def __getattr__(self, name):
            if name == member:
                raise AttributeError(name)
            return getattr(HOOP, name)

    with pytest.raises(ReductionError, match=f"another system with its members.*without {member}"):
        cc.reduce(Lacking())
    with pytest.raises(SimulationError, match=f"without {member}"):
        cc.Plant(Lacking())


def test_constraints_that_follow_from_each_other_are_refused():
    twice = Lagrangian(
        "twice",
        PARTICLE.freedom_names,
        PARTICLE.effort_units,
        (0,),
        PARTICLE.kinetic,
        PARTICLE.potential,
        lambda q: ca.vertcat(PARTICLE.rows(q), 2.0 * PARTICLE.rows(q)),
        ("first", "again"),
    )
    with pytest.raises(ReductionError, match="2 that determine no choice of velocities: first, a"):
        cc.reduce(twice)


def test_constraints_that_leave_no_motion_are_refused():
    still = Lagrangian(
        "still",
        ("x",),
        ("N",),
        (0,),
        lambda q, v: v[0] ** 2,
        lambda q: ca.SX(0),
        lambda q: ca.SX(1),
        ("x rests",),
    )
    with pytest.raises(ReductionError, match="fewer independent constraints than the 1 veloc"):
        cc.reduce(still)
