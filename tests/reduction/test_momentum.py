"""Reduction by momentum, without a chart: its equations against full order, and properties.

Expected values come from Pinocchio's mass matrices and differences of them, put together
in NumPy after the formulas; nothing of the package's dynamics is used for it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from concur.reduction import MomentumReduction
from concur.robot import Body, Mechanism, Pose
from concur.robots import wheel_satellite
from tests.groups.oracles import conjugation, pose_of
from tests.oracles import assert_close, difference_quotient
from tests.reduction._floaters import BASES, Formulas, FullOrder, floater, reduced

MU = np.array([2.0, -1.5, 1.0, 0.8, 1.2, -0.6])


@dataclass(frozen=True)
class Case:
    group: str
    model: MomentumReduction
    formulas: Formulas

    @property
    def full(self) -> FullOrder:
        return self.formulas.full

    def states(self, count: int) -> Iterator[tuple[np.ndarray, ...]]:
        """Random configurations, shape velocities and torques."""
        rng = np.random.default_rng(len(self.group) + 10 * self.model.nb)
        for _ in range(count):
            model = self.model
            yield (
                model.robot.random(rng),
                rng.uniform(-1.0, 1.0, model.ns),
                rng.uniform(-2.0, 2.0, model.nu),
            )


@functools.cache
def _case(group: str) -> Case:
    robot = floater(group)
    return Case(group, reduced(robot, MU), Formulas(robot))


@pytest.fixture(params=BASES)
def case(request: pytest.FixtureRequest) -> Case:
    return _case(request.param)


TELLING = ("SE(3)", "SE(2)xR", "SO(3)")
"""Groups for which the tests that build large graphs run always; for the others when slow."""


@pytest.fixture(
    params=[g if g in TELLING else pytest.param(g, marks=pytest.mark.slow) for g in BASES]
)
def thorough(request: pytest.FixtureRequest) -> Case:
    return _case(request.param)


# --- matrices ---------------------------------------------------------------------------------


@pytest.mark.by_default(3)
def test_lift_is_horizontal_and_carries_the_momentum(case: Case) -> None:
    """Thesis: (3.2.18), (3.2.19), (3.3.38)."""
    still = np.zeros(case.model.nv)
    for q, s, _ in case.states(5):
        horizontal, drift = case.model.lift(q)
        mass = case.full.mass_matrix(q)
        assert_close(case.full.momentum(q, horizontal @ s + still), np.zeros(case.model.nb), 1e-12)
        assert_close(horizontal.T @ mass @ horizontal, case.model.mass_matrix(q), 1e-12)
        expected = case.full.symmetry.T @ MU
        assert_close(case.full.momentum(q, horizontal @ s + drift), expected, 1e-12)
        assert_close(case.model.velocity(q, s), case.full.velocity(q, s, MU), 1e-11)


@pytest.mark.by_default(3)
def test_connection_is_that_of_the_locked_inertia_and_the_momentum_map(case: Case) -> None:
    """Thesis: (3.2.14)-(3.2.16), (3.2.20), (3.2.21), (3.3.34)-(3.3.37)."""
    nb, nv = case.model.nb, case.model.nv
    for q, _, _ in case.states(3):
        # Moving the base by a spatial twist of the group: v1 = Ad_q1^-1 of it.
        inward = np.linalg.pinv(case.full.basis) @ np.linalg.inv(conjugation(case.full.pose(q)))
        inward = inward @ case.full.symmetry
        infinitesimal = np.vstack([inward, np.zeros((nv - nb, nb))])
        momentum_map = np.array([case.full.momentum(q, e) for e in np.eye(nv)]).T
        locked = momentum_map @ infinitesimal
        assert_close(inward.T @ case.model.locked_inertia(q) @ inward, locked, 1e-12)
        # A_q = I^-1 M FL = Ad_q1 [1, A], and A_q phi_q = 1.
        ours = np.linalg.solve(inward, np.hstack([np.eye(nb), case.model.connection(q)]))
        assert_close(ours, np.linalg.solve(locked, momentum_map), 1e-11)
        assert_close(ours @ infinitesimal, np.eye(nb), 1e-12)


@pytest.mark.by_default(1)
def test_curvature_is_that_of_differences(thorough: Case) -> None:
    """Thesis: (3.2.24)."""
    case = thorough
    rng = np.random.default_rng(12)
    nb = case.model.nb
    for q, u, _ in case.states(3):
        w = rng.uniform(-1.0, 1.0, case.model.ns)
        connection = case.full.blocks(q)[1]
        fields = [np.concatenate([connection @ x, x]) for x in (u, w)]
        turned = case.formulas.brackets(*fields)
        along = [case.formulas.slope(lambda x: case.full.blocks(x)[1], q, x) for x in (u, w)]
        expected = along[0] @ w - along[1] @ u - connection @ turned[nb:] - turned[:nb]
        ours = case.model.curvature(q, u, w)
        assert_close(ours, expected, 1e-8)
        assert_close(case.model.curvature(q, w, u), -ours, 1e-12)
        pi = case.full.body_momentum(q, MU)
        form = case.model.two_form(q, np.zeros(case.model.ns))
        assert u @ form @ w == pytest.approx(pi @ ours, abs=1e-12 * (1 + np.abs(form).max()))
        assert_close(form, -form.T, 1e-14)


# --- accelerations and momentum rates ---------------------------------------------------------


def _force(case: Case, u: np.ndarray, wrench: np.ndarray | None = None) -> np.ndarray:
    base = np.zeros(case.model.nb) if wrench is None else wrench
    return np.concatenate([base, u])


@pytest.mark.by_default(1)
def test_momentum_rates_of_five_formulations(thorough: Case) -> None:
    """Thesis: (3.3.47)."""
    case = thorough
    for q, s, u in case.states(3):
        pi, metric = case.full.body_momentum(q, MU), case.full.blocks(q)[2]
        p, still = metric @ s, np.zeros(case.model.nb)
        vdot = case.full.acceleration(q, case.full.velocity(q, s, MU), _force(case, u))
        qdot = case.full.rate(q, case.full.velocity(q, s, MU))
        turning = difference_quotient(
            lambda h, q=q, qdot=qdot: case.full.blocks(q + h * qdot)[2], 2e-3
        )
        expected = turning @ s + metric @ vdot[case.model.nb :]

        assert_close(sum(case.formulas.terms(q, pi, p).values()) + u, expected, 1e-8)
        assert_close(case.formulas.without_curvature(q, pi, p) + u, expected, 1e-8)
        velocity, body_rate, pdot = case.model.hamilton_poincare(q, pi, p, u, still)
        assert_close(pdot, expected, 1e-8)
        assert_close(case.model.vector_field(q, p, u)[1], pdot, 1e-11)
        energy = case.full.energy(q, case.full.velocity(q, s, MU))
        assert case.model.hamiltonian(q, p) == pytest.approx(energy, rel=1e-11)
        assert_close(velocity, case.full.velocity(q, s, MU), 1e-11)
        assert_close(body_rate, case.formulas.body_rate(q, pi, p), 1e-11)


# --- motions ----------------------------------------------------------------------------------


def _run(rate, start: np.ndarray, duration: float) -> np.ndarray:  # type: ignore[no-untyped-def]
    solution = solve_ivp(rate, (0.0, duration), start, method="DOP853", rtol=1e-11, atol=1e-12)
    assert solution.success, solution.message
    return solution.y[:, -1]


def _torque(t: float, size: int) -> np.ndarray:
    return 0.8 * np.sin((1.0 + np.arange(size)) * t + 0.5 * np.arange(size))


@pytest.mark.by_default(1)
def test_motion_with_torques_and_a_wrench_is_that_of_the_full_order(thorough: Case) -> None:
    case = thorough
    model, full = case.model, case.full
    nq, nb, nu = model.nq, model.nb, model.nu
    q0, s0, _ = next(case.states(1))

    def wrench(t: float) -> np.ndarray:
        return 0.5 * np.cos(2 * t + np.arange(nb))

    def complete(t: float, x: np.ndarray) -> np.ndarray:
        q, v, _ = np.split(x, [nq, nq + model.nv])
        force = _force(case, _torque(t, nu), wrench(t))
        # f1 changes the spatial momentum on the group's twists by Ad*_q1^-1 f1.
        outward = (
            np.linalg.pinv(full.basis) @ np.linalg.inv(conjugation(full.pose(q))) @ full.symmetry
        )
        return np.concatenate(
            [full.rate(q, v), full.acceleration(q, v, force), outward.T @ wrench(t)]
        )

    def ours(t: float, x: np.ndarray) -> np.ndarray:
        q, pi, p = np.split(x, [nq, nq + nb])
        v, body_rate, pdot = model.hamilton_poincare(q, pi, p, _torque(t, nu), wrench(t))
        return np.concatenate([model.robot.rate(q, v), body_rate, pdot])

    v0 = full.velocity(q0, s0, MU)
    end = _run(complete, np.concatenate([q0, v0, full.symmetry.T @ MU]), 0.5)
    q, v, spatial = np.split(end, [nq, nq + model.nv])
    start = np.concatenate([q0, full.body_momentum(q0, MU), model.mass_matrix(q0) @ s0])
    q1, pi1, p1 = np.split(_run(ours, start, 0.5), [nq, nq + nb])
    mass = full.mass_matrix(q) @ v
    assert_close(q1, q, 1e-8)
    assert_close(pi1, mass[:nb], 1e-8)
    assert_close(p1, mass[nb:] - full.blocks(q)[1].T @ mass[:nb], 1e-8)
    assert_close(full.momentum(q, v), spatial, 1e-9)
    assert np.abs(spatial - full.symmetry.T @ MU).max() > 1e-2


# --- frames -----------------------------------------------------------------------------------


@pytest.mark.extended
def test_other_inertial_frame_changes_nothing_inside() -> None:
    robot = floater("SE(3)")
    rng = np.random.default_rng(6)
    shift = pose_of(np.array([0.5, -2.0, 1.0, 0.4, 0.9, -0.7]))
    there = np.linalg.inv(conjugation(shift)).T @ MU  # Ad*_(g^-1) mu
    here, moved = reduced(robot, MU), reduced(replace(robot, bodies=_carried(robot, shift)), there)
    for _ in range(3):
        q, p = robot.random(rng), rng.uniform(-1.0, 1.0, here.ns)
        u = rng.uniform(-1.0, 1.0, here.nu)
        assert_close(moved.body_momentum(q), here.body_momentum(q), 1e-13)
        assert moved.hamiltonian(q, p) == pytest.approx(here.hamiltonian(q, p), rel=1e-12)
        for ours, theirs in zip(
            here.vector_field(q, p, u), moved.vector_field(q, p, u), strict=True
        ):
            assert_close(ours, theirs, 1e-12)
    assert np.abs(there - MU).max() > 0.5


def _carried(robot: Mechanism, shift: np.ndarray) -> tuple[Body, ...]:
    """Bodies seen from another inertial frame: the base's joint frame is placed elsewhere."""
    base = robot.base
    return (replace(base, placement=_pose(shift @ base.placement.matrix)), *robot.bodies[1:])


def _pose(matrix: np.ndarray) -> Pose:
    return Pose(matrix[:3, 3], Rotation.from_matrix(matrix[:3, :3]).as_quat())


def test_satellite_with_wheels_is_a_gyrostat() -> None:
    """000: (5.15)-(5.25)."""
    axial, across, mass, arm = 8e-4, 4e-4, 0.3, 0.1
    total = 2.0 + 3 * mass
    centre = mass * arm / total * np.ones(3)

    def about(at: np.ndarray) -> np.ndarray:  # inertia of a unit mass
        return (at @ at) * np.eye(3) - np.outer(at, at)

    inertia = np.diag([0.012, 0.014, 0.016]) - total * about(centre)
    for axis in np.eye(3):
        own = across * np.eye(3) + (axial - across) * np.outer(axis, axis)
        inertia += own + mass * about(arm * axis)
    turning = axial * np.linalg.inv(inertia)
    robot = wheel_satellite()
    model, rng = (
        reduced(robot, np.array([0.3, -0.2, 0.5, 0.02, -0.01, 0.03])),
        np.random.default_rng(2),
    )
    for _ in range(5):
        q, s = robot.random(rng), rng.uniform(-30.0, 30.0, 3)
        torque = rng.uniform(-0.1, 0.1, 3)
        assert_close(model.connection(q)[3:], turning, 1e-13, floor=0.01)
        assert_close(model.mass_matrix(q), axial * (np.eye(3) - turning), 1e-12, floor=1e-4)
        omega = model.velocity(q, s)[3:6]
        momentum = inertia @ omega + axial * s  # about the centre of mass, body axes
        gyroscopic = turning.T @ np.cross(momentum, omega)
        expected = np.linalg.solve(axial * (np.eye(3) - turning), torque - gyroscopic)
        assert_close(model.acceleration(q, s, torque), expected, 1e-10)
