"""Constants of motion of the reduced system, and the reduction by them.

Full-order motions are Pinocchio's, with multipliers for wheels; the two-forms of the small systems
are written by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from concur.errors import ReductionError, ShapeError, UnknownNameError
from concur.reduction import (
    ConstantOfMotion,
    ConstantsOfMotion,
    LevelSet,
    ReducedModel,
    constants_of_motion,
    reduce,
)
from concur.reduction._constants import constants_on
from concur.reduction._phase_space import PhaseSpace, phase_space
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints
from concur.robots import chaplygin_sleigh, crane_car, planar_floater, rover_arm, tractor_trailers
from tests.oracles import (
    Constrained,
    CraneNumbers,
    Pinocchio,
    RoverNumbers,
    assert_close,
    crane,
    crane_rows,
    difference_quotient,
    full_order,
    random_rover,
    rover,
    rover_rows,
    rover_without_arm,
)
from tests.reduction._reduced import Reference
from tests.reduction._staged import GENERIC, Z, ball_rover

N = RoverNumbers()
C = CraneNumbers()
BETA = 0.7


@dataclass(frozen=True)
class Plane(PhaseSpace):
    """A point of unit mass on the plane with Omega = Omega_can - field(x, y, p) dx^dy."""

    field: Callable[[ca.SX, ca.SX], ca.SX]
    quaternions: ClassVar = {}
    structure: ClassVar = np.zeros((2, 2, 2))
    name = "plane"
    nq = ns = 2
    nu = 1
    coordinate_names = ("x", "y")
    momentum_names = ("x", "y")
    control_names = ("pull",)

    def energy(self, q: ca.SX, p: ca.SX) -> ca.SX:
        return ca.dot(p, p) / 2

    def curvature(self, q: ca.SX, p: ca.SX) -> ca.SX:
        value = self.field(q, p)
        return ca.vertcat(ca.horzcat(0, value), ca.horzcat(-value, 0))

    def frame(self, q: ca.SX) -> ca.SX:
        return ca.SX.eye(2)

    def inputs(self, q: ca.SX) -> ca.SX:
        return ca.vertcat(ca.SX(1), ca.SX(0))

    def momenta(self, q: ca.SX, p: ca.SX) -> dict[str, ca.SX]:
        return {"p[x]": p[0], "p[y]": p[1]}

    def draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return rng.normal(size=2), rng.normal(size=2)


def merry_go_round(driven: tuple[str, ...] = (), offset: float = 0.0) -> Mechanism:
    """Build a rover with a disc that turns freely and a generic boom about the same axis on it.

    The boom feels its angle to the chassis: turning the disc alone under it changes nothing.
    The momentum of neither joint is constant, their difference is while the disc is balanced.
    """
    disc = Inertia(3.0, (offset, 0.0, 0.05), (0.1, 0.1, 0.2))
    boom = Inertia(2.0, (0.3, 0.1, 0.0), GENERIC)
    bodies = [
        *rover().bodies[:3],
        Body("disc", joints.Revolute(Z), "chassis", Pose((0.2, 0.05, 0.1)), disc),
        Body("boom", joints.Revolute(Z), "disc", Pose((0.0, 0.0, 0.1)), boom),
    ]
    wheels = [Wheel("left", N.b), Wheel("right", N.b)]
    actuated = ("left", "right", *driven)
    return Mechanism("merry", bodies, wheels, gravity=(0, 0, -9.81), actuated=actuated)


def top(moments: tuple[float, float, float], height: float) -> Mechanism:
    """Build a top on a point."""
    bodies = [
        Body("ground", joints.Fixed(), None, Pose(), Inertia(1.0, moments=(1.0, 1.0, 1.0))),
        Body("top", joints.Spherical(), "ground", Pose(), Inertia(2.0, (0, 0, height), moments)),
    ]
    return Mechanism("top", bodies, gravity=(0, 0, -9.81), actuated=())


def two_form_of(space: PhaseSpace, q: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Omega_can - Xi on single-axis joints, as a matrix: iota_X Omega = Omega^T X."""
    n = space.ns
    form = np.array(ca.DM(space.curvature(ca.SX(q), ca.SX(p))))
    return np.block([[-form, np.eye(n)], [-np.eye(n), np.zeros((n, n))]])


def slopes_of_two_form(space: PhaseSpace, q: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Differences of Omega along the shape coordinates and the momenta."""
    steps = [(np.eye(space.nq)[i], 0 * p) for i in space.lines]
    steps += [(0 * q, direction) for direction in np.eye(space.ns)]
    return np.array(
        [
            difference_quotient(lambda e, x=x, y=y: two_form_of(space, q + e * x, p + e * y))
            for x, y in steps
        ]
    )


# --- fields, brackets and the exterior derivative ---------------------------------------------


@pytest.mark.extended
def test_field_is_that_of_the_two_form() -> None:
    """Thesis: Proposition 4.2.12, Corollary 4.2.13."""
    model = reduce(crane_car())
    one = constants_of_motion(
        model, lambda q, p: p[0] * ca.sin(q[7]) + p[1] * p[2] - ca.cos(q[3]) * p[3]
    )["h1"]
    rng = np.random.default_rng(1)
    shape = [3, 4, 5, 7]
    for _ in range(5):
        q, s = model.robot.random(rng), rng.uniform(-1.0, 1.0, 4)
        p = model.mass_matrix(q) @ s

        def h(z: np.ndarray, q: np.ndarray = q) -> float:
            moved = q.copy()
            moved[shape] = z[:4]
            return one.value(moved, z[4:])

        at = np.concatenate([q[shape], p])
        slope = [
            difference_quotient(lambda e, d=direction, at=at, h=h: h(at + e * d))
            for direction in np.eye(8)
        ]
        form = model.two_form(q, p)
        omega = np.block([[-form, np.eye(4)], [-np.eye(4), np.zeros((4, 4))]])
        assert_close(np.concatenate(one.field(q, p)) @ omega, slope, 1e-9)


@pytest.mark.extended
def test_bracket_is_the_rate_along_the_motion_with_multipliers() -> None:
    """Thesis: (4.2.13)."""
    model = reduce(rover())
    full = Constrained(Pinocchio(rover()), rover_rows(N.b, N.c))
    reference = Reference(full, shape=[3, 4, 5, 6, 7], dependent=[0, 1, 2])
    found = constants_of_motion(
        model,
        {
            "mixed": lambda q, p: p[0] * ca.cos(q[5]) + p[1] * p[3] + q[4] * q[6],
            "energy": model.hamiltonian,
            "wheels": lambda q, p: p[0] + p[1],
        },
    )
    rng = np.random.default_rng(2)
    still = np.zeros(8)
    for _ in range(5):
        q, s = model.robot.random(rng), rng.uniform(-1.0, 1.0, 5)
        p = reference.mass_matrix(q) @ s
        qdot = full.oracle.rate(q, reference.lift(q) @ s)
        pdot = reference.momentum_rate(q, s, still)

        def ahead(
            one: ConstantOfMotion,
            e: float,
            state: tuple[np.ndarray, ...] = (q, qdot, p, pdot),
        ) -> float:
            x, xdot, y, ydot = state
            return one.value(x + e * xdot, y + e * ydot)

        for one in found:
            rate = difference_quotient(partial(ahead, one))
            assert one.bracket(q, p) == pytest.approx(rate, rel=1e-8, abs=1e-8)
    assert [one.conserved for one in found] == [False, True, False]


@pytest.mark.by_default(1)
@pytest.mark.parametrize("robot", [crane_car(), rover(), ball_rover()], ids=lambda r: r.name)
def test_contraction_of_the_exterior_derivative(robot: Mechanism) -> None:
    space = phase_space(reduce(robot))
    n = space.ns
    for q, p in space.states(3, 3):
        whole = np.array([space.contracted(q, p, *np.split(e, 2)) for e in np.eye(2 * n)])
        # A three-form, of order one since the two-form is linear in the momenta.
        assert_close(whole, -whole.transpose(1, 0, 2), 1e-13)
        assert np.abs(whole).max() > 1e-3
        vector = np.random.default_rng(4).normal(size=2 * n)
        contracted = space.contracted(q, p, *np.split(vector, 2))
        assert_close(contracted, np.tensordot(vector, whole, 1), 1e-12)
        if len(space.lines) < n:
            continue
        turned = slopes_of_two_form(space, q, p)
        expected = turned + turned.transpose(1, 2, 0) + turned.transpose(2, 0, 1)
        assert_close(whole, expected, 1e-9)


# --- the theorem's conditions -----------------------------------------------------------------


def test_constants_that_are_not_in_involution() -> None:
    """Thesis: Proposition 4.2.16, Theorem 4.2.17. Misprint 001-29."""
    # Each satisfies all that theorem 4.2.17 prints; the groups are translations and commute.
    space = Plane(lambda q, p: BETA)
    found = constants_on(space, [lambda q, p: p[0] - BETA * q[1], lambda q, p: p[1] + BETA * q[0]])
    for one, direction in zip(found, np.eye(2), strict=True):
        assert one.reducible, str(one)
        velocity, pdot = one.field([0.3, -0.2], [1.1, 0.4])
        np.testing.assert_allclose(velocity, direction, rtol=0, atol=1e-15)
        np.testing.assert_allclose(pdot, 0.0, rtol=0, atol=1e-15)
        alone = found.only(one.name)
        assert (alone.reducible, alone.dimension, alone.dimension_after) == (True, 4, 2)
    assert not found.involutive
    assert not found.reducible
    assert found.dimension_after == 4
    assert "not in involution" in str(found)
    with pytest.raises(ReductionError, match="not in involution"):
        found.level_set([0.0, 0.0], [1.0, 0.0])
    assert [one.controls for one in found] == [("pull",), ()]


def test_search_finds_the_constants_of_the_plane() -> None:
    found = constants_on(Plane(lambda q, p: BETA))
    assert found.names == ("p[y] + 0.7 x", "p[x] - 0.7 y")
    assert [one.controls for one in found] == [(), ("pull",)]


def test_energy_is_constant_but_generates_no_motion_of_the_shape() -> None:
    space = Plane(lambda q, p: q[1] * p[1])
    found = constants_on(space, {"energy": space.energy})
    assert found["energy"].conserved
    assert not found["energy"].generator
    assert not found.reducible
    assert "not affine" in str(found)


@dataclass(frozen=True)
class Winded(Plane):
    """The same, the control blowing along y, more or less along x."""

    def inputs(self, q: ca.SX) -> ca.SX:
        return ca.vertcat(0, ca.cos(q[0]))


def test_control_whose_force_the_group_does_not_keep() -> None:
    found = constants_on(Winded(lambda q, p: 0.0 * q[0]), {"p[x]": lambda q, p: p[0]})
    assert found.reducible
    assert (found.controls, found.turned, found.free_controls) == ((), ("pull",), ())
    assert found.level_set([0.1, 0.2], [0.3, 0.4]).nu == 0
    across = constants_on(Winded(lambda q, p: 0.0 * q[0]), {"p[y]": lambda q, p: p[1]})
    assert (across.controls, across.turned) == (("pull",), ())


def test_torques_on_a_ball_seen_from_both_sides() -> None:
    # Torques in the body's axes are the same after a turn from the left, not from the right.
    robot = replace(top((0.05, 0.05, 0.02), 0.15), actuated=("top",))
    found = constants_of_motion(reduce(robot))
    assert found.names == ("p[top[wz]]", "P[top[wz]]")
    own, vertical = (found.only(name) for name in found.names)
    assert (own.controls, own.turned) == (("top[wz]",), ("top[wx]", "top[wy]"))
    assert (vertical.controls, vertical.turned) == (("top[wx]", "top[wy]", "top[wz]"), ())


# --- robots -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def balanced() -> tuple[ReducedModel, ConstantsOfMotion]:
    model = reduce(rover_without_arm(replace(N, l0=0.0)))
    return model, constants_of_motion(model)


@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    ("robot", "acting"),
    [
        (rover_without_arm(replace(N, l0=0.0)), {"p[left]": {"left"}, "p[right]": {"right"}}),
        (merry_go_round(driven=("boom",)), {"p[disc] - p[boom]": {"boom"}}),
        (merry_go_round(driven=("disc",)), {"p[disc] - p[boom]": {"disc"}}),
        (merry_go_round(), {"p[disc] - p[boom]": set()}),
    ],
    ids=["platform", "boom", "disc", "free"],
)
def test_controls_that_change_a_constant(robot: Mechanism, acting: dict[str, set[str]]) -> None:
    model = reduce(robot)
    found = constants_of_motion(model)
    assert {one.name: set(one.controls) for one in found} == acting
    full = Constrained(Pinocchio(robot), rover_rows(N.b, N.c))
    reference = Reference(full, shape=list(model.shape), dependent=[0, 1, 2])
    rng = np.random.default_rng(6)
    q, s = robot.random(rng), rng.uniform(-1.0, 1.0, model.ns)
    qdot, p = full.oracle.rate(q, reference.lift(q) @ s), reference.mass_matrix(q) @ s
    for control, row in zip(model.control_names, robot.actuated_freedoms, strict=True):
        pdot = reference.momentum_rate(q, s, 1.5 * np.eye(model.nv)[row])
        for one in found:
            rate = difference_quotient(
                lambda e, one=one, pdot=pdot: one.value(q + e * qdot, p + e * pdot)
            )
            assert (abs(rate) > 0.1) == (control in one.controls)
            assert abs(rate) > 0.1 or abs(rate) < 1e-9


@pytest.mark.by_default(2)
@pytest.mark.parametrize(
    "robot",
    [
        rover_without_arm(),
        rover_arm(),
        merry_go_round(offset=0.02),
        *(random_rover(seed).robot for seed in range(3)),
    ],
    ids=lambda robot: robot.name,
)
def test_nothing_is_found_where_there_is_nothing(robot: Mechanism) -> None:
    found = constants_of_motion(reduce(robot))
    assert len(found) == 0
    assert "no constant of motion was found" in str(found)
    assert not found.reducible


@pytest.mark.extended
def test_crane_keeps_a_momentum_that_is_no_symmetry() -> None:
    # Turning the axle on the spot, the wheels rolling by c/b: (p_psi1 - c/b p_psi2)' = 0. The rates
    # of the reference state, without torques, confirm it.
    rates = np.array([13.656084280211, 5.852607548664])
    assert rates[0] == pytest.approx(C.c / C.b * rates[1], rel=1e-12)
    model = reduce(crane())
    found = constants_of_motion(model)
    assert found.names == ("p[axle] - 2.33333 p[left]", "p[column]")
    turning = found["p[axle] - 2.33333 p[left]"]
    assert turning.conserved
    assert turning.generator
    # ... but its group changes the two-form: Xi has the legs psi1 and psi2.
    assert not turning.basic
    assert not turning.reducible
    assert found["p[column]"].reducible
    with pytest.raises(ReductionError, match="two-form"):
        found.only(turning.name).level_set(np.zeros(8), np.ones(4))

    full = Constrained(Pinocchio(crane()), crane_rows(C.l, C.b, C.c))
    q0 = np.array([1, -2, 0.4, 0.35, -0.5, 0.8, -0.3, 0.25])
    s0 = np.array([0.05, -0.4, 1.0, 0.3])
    times = np.linspace(0.0, 10.0, 6)
    q, v = full.simulate(q0, model.velocity(q0, s0), lambda t, q, v: np.zeros(8), times)
    values = [
        one.value(x, model.mass_matrix(x) @ y[[3, 4, 5, 7]])
        for one in found
        for x, y in zip(q, v, strict=True)
    ]
    for kept in np.split(np.array(values), 2):
        np.testing.assert_allclose(kept, kept[0], rtol=1e-10, atol=0)
    wheel = [(model.mass_matrix(x) @ y[[3, 4, 5, 7]])[2] for x, y in zip(q, v, strict=True)]
    assert np.ptp(wheel) > 5e-3 * np.abs(wheel).max()


@pytest.mark.extended
def test_constant_of_two_joints_together() -> None:
    robot = merry_go_round()
    with pytest.raises(ReductionError, match="keeps its momentum"):
        reduce(robot, stages=["boom"])
    found = constants_of_motion(reduce(robot))
    assert found.names == ("p[disc] - p[boom]",)
    # It is the momentum of the disc alone: a stage of the disc, while the boom turns back.
    staged = reduce(robot, stages={"disc": 0.3})
    assert staged.seen_from == "link"
    rng = np.random.default_rng(9)
    q, s = robot.random(rng), rng.normal(size=3)
    v = staged.velocity(q, s)
    p = staged.first.mass_matrix(q) @ v[list(staged.first.shape)]
    assert found["p[disc] - p[boom]"].value(q, p) == pytest.approx(0.3, rel=1e-12)
    full = Constrained(Pinocchio(robot), rover_rows(N.b, N.c))
    still = np.zeros(robot.nv)
    vdot, _ = full.acceleration(q, v, still)
    rates = staged.lift(q)[0] @ staged.acceleration(q, s, np.zeros(2))
    assert_close(rates + staged.drift_acceleration(q, s), vdot, 1e-9)
    assert (found.dimension, found.dimension_after, found.controls) == (8, 6, ())
    driven = constants_of_motion(reduce(merry_go_round(driven=("boom",))))
    assert driven.names == found.names
    assert driven.controls == ("boom",)


@pytest.mark.extended
def test_reduced_motion_of_two_joints_together_is_the_full_motion() -> None:
    """Thesis: Theorem 4.2.18, (4.2.21)."""
    robot = merry_go_round()
    model = reduce(robot)
    full = Constrained(Pinocchio(robot), rover_rows(N.b, N.c))
    found = constants_of_motion(model)
    q0, s0 = np.array([0.3, -0.2, 0.7, 0.4, -0.9, 0.5, 0.35]), np.array([2.0, -1.0, 0.8, -0.5])
    left = found.level_set(q0, model.mass_matrix(q0) @ s0)
    assert left.nx == left.dimension == 6
    times = np.linspace(0.0, 10.0, 11)
    assert left.control_names == ("left", "right")

    def law(t: float) -> np.ndarray:
        return np.array([0.4 * np.sin(2 * t), -0.3 * np.cos(3 * t)])

    x, g = integrate(left, times, law)
    q, v = full.simulate(
        q0,
        model.velocity(q0, s0),
        lambda t, q, v: np.array([0, 0, 0, *law(t), 0, 0]),
        times,
    )
    for k in range(len(times)):
        reached, p = left.moved(x[k], g[k])
        np.testing.assert_allclose(reached[3:], q[k, 3:], rtol=0, atol=1e-8)
        s = np.linalg.solve(model.mass_matrix(q[k]), p)
        np.testing.assert_allclose(model.velocity(q[k], s), v[k], rtol=0, atol=1e-8)
        energy = full.oracle.kinetic_energy(q[k], v[k]) + full.oracle.potential_energy(q[k])
        assert left.hamiltonian(x[k]) == pytest.approx(energy, rel=1e-9)
    assert np.ptp(q[:, 5]) > 1.0  # the disc went round, and the slice did not


def integrate(
    left: LevelSet, times: np.ndarray, law: Callable[[float], np.ndarray] = lambda t: np.zeros(0)
) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates that are left, and the motion along the groups, at times."""

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        return np.concatenate(left.vector_field(y[: left.nx], law(t)))

    start = np.concatenate([left.start, np.zeros(left.m)])
    found = solve_ivp(
        rate, (0.0, times[-1]), start, method="DOP853", t_eval=times, rtol=1e-12, atol=1e-13
    )
    assert found.success, found.message
    return found.y[: left.nx].T, found.y[left.nx :].T


@pytest.mark.extended
def test_heavy_symmetric_top_is_left_with_its_nutation() -> None:
    robot = top((0.05, 0.05, 0.02), 0.15)
    model = reduce(robot)
    found = constants_of_motion(model)
    assert found.names == ("p[top[wz]]", "P[top[wz]]")
    assert (found.dimension, found.dimension_after) == (6, 2)
    q0 = np.array([np.sin(0.3), 0.0, 0.0, np.cos(0.3)])
    v0 = np.array([0.4, 1.1, 25.0])
    left = found.level_set(q0, model.mass_matrix(q0) @ v0)
    assert left.dimension == 2
    times = np.linspace(0.0, 3.0, 7)
    x, g = integrate(left, times)
    q, v = full_order(robot, q0, v0, lambda t, q, v: np.zeros(0), times)
    for k in range(len(times)):
        reached, p = left.moved(x[k], g[k])
        same = np.sign(reached @ q[k])
        np.testing.assert_allclose(same * reached, q[k], rtol=0, atol=1e-8)
        np.testing.assert_allclose(p, model.mass_matrix(q[k]) @ v[k], rtol=0, atol=1e-8)
        assert left.regularity(x[k]) > 0.1
    assert np.ptp(1 - 2 * (q[:, 0] ** 2 + q[:, 1] ** 2)) > 1e-3  # it nutates


@pytest.mark.extended
def test_free_body_keeps_three_momenta_of_which_one_reduces() -> None:
    found = constants_of_motion(reduce(top((0.5, 0.4, 0.3), 0.0)))
    assert found.names == ("P[top[wx]]", "P[top[wy]]", "P[top[wz]]")
    assert all(one.reducible for one in found)
    assert not found.reducible
    assert not found.only("P[top[wx]]", "P[top[wz]]").reducible
    alone = found.only("P[top[wz]]")
    assert (alone.reducible, alone.dimension_after) == (True, 4)
    heavy = constants_of_motion(reduce(top((0.5, 0.4, 0.3), 0.2)))
    assert heavy.names == ("P[top[wz]]",)


def test_constants_after_a_stage() -> None:
    # On the reduced phase space of the second stage, which has a part of Xi that is constant.
    model = reduce(crane(undriven="column"), stages={"column": -11.5})
    found = constants_of_motion(model, {"turning": lambda q, p: p[0] - C.c / C.b * p[1]})
    assert found["turning"].conserved
    assert not found["turning"].basic


# --- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("candidates", "came"),
    [
        (lambda q, p: p, "shape"),
        (lambda q, p: 1.0, "float"),
        (lambda q, p: p[0] + ca.SX.sym("k"), "k too"),
        ("p[0]", "str"),
        ([3], "int"),
        (lambda q, p: p[0] + q[0], "`chassis"),
    ],
)
def test_candidates_that_are_no_functions_on_the_phase_space(candidates: object, came: str) -> None:
    with pytest.raises(ReductionError, match=came):
        constants_of_motion(reduce(rover_without_arm()), candidates)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "came"),
    [
        (reduce(chaplygin_sleigh()), "part of the velocity"),
        (reduce(tractor_trailers()), "depend on the position"),
        (reduce(planar_floater(), momentum=[0.3, 0, 0, 0, 0, 0.5]), "depend on the position"),
        (rover_arm(), "Mechanism"),
    ],
    ids=["sleigh", "trailers", "floater", "robot"],
)
def test_models_without_a_phase_space_of_the_shape(model: ReducedModel, came: str) -> None:
    with pytest.raises(ReductionError, match=came):
        constants_of_motion(model)


def test_dependent_and_trivial_constants_do_not_reduce() -> None:
    model = reduce(merry_go_round())
    found = constants_of_motion(
        model,
        {
            "one": lambda q, p: p[2] - p[3],
            "twice": lambda q, p: 2 * (p[2] - p[3]),
            "nothing": lambda q, p: ca.SX(3.0),
        },
    )
    assert found.only("one").reducible
    assert not found.only("one", "twice").reducible
    assert "independent" in "; ".join(found.only("one", "twice").reasons)
    assert found["nothing"].conserved
    assert not found["nothing"].reducible
    assert not found.only("nothing").reducible


def test_level_set_refuses_what_is_no_state() -> None:
    found = constants_of_motion(reduce(merry_go_round()))
    with pytest.raises(ShapeError, match="`q`"):
        found.level_set(np.zeros(3), np.ones(4))
    with pytest.raises(ShapeError, match="`shift`"):
        found.level_set(np.zeros(7), np.ones(4)).moved(np.zeros(6), np.zeros(2))
    with pytest.raises(UnknownNameError, match="p\\[disc\\] - p\\[boom\\]"):
        found["p[disc]"]
    assert [one.name for one in found] == ["p[disc] - p[boom]"]


def test_level_set_where_the_fields_stand_still() -> None:
    # The vertical and the own axis of an upright top are one.
    found = constants_of_motion(reduce(top((0.05, 0.05, 0.02), 0.15)))
    with pytest.raises(ReductionError, match="another configuration"):
        found.level_set([0.0, 0.0, 0.0, 1.0], [0.1, 0.2, 0.3])
