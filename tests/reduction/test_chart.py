"""The chart of the coadjoint orbit: its two-form and equations, and where it ends.

The two-form is compared with (3.3.43) written out, and with the exterior derivative of the
one-form alpha_mu on the robot's whole configuration space; both in NumPy from Pinocchio's mass
matrices, differences of them and SciPy's exponential. The equations are compared with the full
order, and with the form that has no chart.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import pytest

from tests.groups.oracles import bracket, conjugation, pose_of
from tests.oracles import MomentumChart, assert_close, difference_quotient
from tests.reduction._floaters import Brackets, FullOrder, floater, reduced

GENERAL = (2.0, -1.5, 1.0, 0.8, 1.2, -0.6)
TURNING = (0.0, 0.0, 0.0, 0.8, 1.2, -0.6)
NONE = (0.0,) * 6

CASES = {
    # group, momentum, isotropy group
    "SE(3)": ("SE(3)", GENERAL, "SO(2)xR"),
    "SE(3), angular": ("SE(3)", TURNING, "SE(2)xR"),
    "SE(3), zero": ("SE(3)", NONE, "SE(3)"),
    "SE(2)xR": ("SE(2)xR", GENERAL, "R^2"),
    "SE(2)": ("SE(2)", GENERAL, "R"),
    "SE(2), angular": ("SE(2)", TURNING, "SE(2)"),
    "SO(3)": ("SO(3)", TURNING, "SO(2)"),
    "R^3": ("R^3", GENERAL, "R^3"),
    "SO(2)xR": ("SO(2)xR", GENERAL, "SO(2)xR"),
    "R^2": ("R^2", GENERAL, "R^2"),
    "SO(2)": ("SO(2)", GENERAL, "SO(2)"),
    "R": ("R", GENERAL, "R"),
    "H_p": ("H_p", GENERAL, "H_p"),
}


@dataclass(frozen=True)
class Case:
    name: str
    chart: MomentumChart
    full: FullOrder
    brackets: Brackets
    mu: np.ndarray

    def states(self, count: int) -> list[tuple[np.ndarray, ...]]:
        """Random zeta, joints, shape velocities and torques."""
        rng = np.random.default_rng(len(self.name))
        chart = self.chart
        return [
            (
                rng.uniform(-0.6, 0.6, chart.nc),
                chart.model.robot.random(rng)[chart.nh :],
                rng.uniform(-1.0, 1.0, chart.ns),
                rng.uniform(-2.0, 2.0, chart.nu),
            )
            for _ in range(count)
        ]

    @property
    def momentum(self) -> np.ndarray:
        """mu as a co-vector on twists of the frame of the base's joint."""
        return conjugation(self.chart.model.robot.base.placement.matrix).T @ self.mu

    def at(self, zeta: np.ndarray, joints: np.ndarray) -> np.ndarray:
        """Configuration on the slice, h = e."""
        h = self.chart.model.robot.base.joint.neutral
        return self.chart.configuration(h, zeta, joints)

    def chi(self, zeta: np.ndarray) -> np.ndarray:
        return pose_of(self.full.basis @ self.chart.isotropy.complement @ zeta)

    def body_twists(self, zeta: np.ndarray) -> np.ndarray:
        """chi^-1 d chi as twists (6, nc), by differences of SciPy's exponential."""
        columns = np.zeros((6, self.chart.nc))
        for i, unit in enumerate(np.eye(self.chart.nc)):
            slope = difference_quotient(lambda h, e=unit: self.chi(zeta + h * e), 1e-2)
            velocity = np.linalg.solve(self.chi(zeta), slope)
            columns[:3, i] = velocity[:3, 3]
            columns[3:, i] = velocity[2, 1], velocity[0, 2], velocity[1, 0]
        return columns


@functools.cache
def _case(name: str) -> Case:
    group, mu, isotropy = CASES[name]
    robot = floater(group, without=("plate", "slide"))
    chart = MomentumChart(reduced(robot, np.array(mu)))
    assert chart.isotropy.subgroup.name == isotropy
    return Case(name, chart, FullOrder(robot), Brackets(robot), np.array(mu))


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return _case(request.param)


# --- slice ------------------------------------------------------------------------------------


# --- two-form ---------------------------------------------------------------------------------


def _connection(case: Case, joints: np.ndarray) -> np.ndarray:
    """A as twists, shape (6, ns)."""
    q = np.concatenate([case.chart.model.robot.base.joint.neutral, joints])
    return case.full.basis @ case.full.blocks(q)[1]


def _written_out(case: Case, zeta: np.ndarray, joints: np.ndarray) -> np.ndarray:
    """(3.3.43) in a left-trivialised frame of the shape, with the term A~ of the thesis."""
    chart, full = case.chart, case.full
    nc, ns, nb = chart.nc, chart.ns, chart.nb
    q = case.at(zeta, joints)
    locked, _, _ = full.blocks(q)
    outward, across = conjugation(case.chi(zeta)), case.body_twists(zeta)
    form = _connection(case, joints)

    def along(s: np.ndarray) -> np.ndarray:
        rate = full.rate(q, np.concatenate([np.zeros(nb), s]))[chart.nh :]
        return difference_quotient(lambda h: _connection(case, joints + h * rate), 2e-3)

    slopes = [along(e) for e in np.eye(ns)]
    # A~: the connection of the isotropy group, from the locked inertia on it.
    kept = np.linalg.solve(outward, chart.isotropy.twists)
    inward = np.linalg.pinv(full.basis)
    inertia = inward.T @ locked @ inward
    moved = np.hstack([across, form])
    isotropic = np.linalg.solve(kept.T @ inertia @ kept, kept.T @ inertia @ moved)
    velocity = outward @ moved - chart.isotropy.twists @ isotropic

    result = np.zeros((nc + ns, nc + ns))
    for a, b in np.ndindex(nc + ns, nc + ns):
        value = bracket(velocity[:, a]) @ velocity[:, b]
        if a >= nc and b >= nc:
            u, w = np.eye(ns)[a - nc], np.eye(ns)[b - nc]
            shape = case.brackets(
                np.concatenate([np.zeros(nb), u]), np.concatenate([np.zeros(nb), w])
            )[nb:]
            turned = bracket(form @ u) @ form @ w + slopes[b - nc] @ u - slopes[a - nc] @ w
            value = value - outward @ (turned + form @ shape)
        result[a, b] = case.momentum @ value
    return result


def _exterior_derivative(case: Case, q: np.ndarray) -> np.ndarray:
    """d alpha_mu for the left-invariant fields of the robot, shape (nv, nv)."""
    full, nv = case.full, case.chart.nv

    def alpha(x: np.ndarray) -> np.ndarray:
        pi = full.body_momentum(x, case.mu)
        return np.concatenate([pi, full.blocks(x)[1].T @ pi])

    units = np.eye(nv)
    slopes = np.array(
        [difference_quotient(lambda h, e=e: alpha(q + h * full.rate(q, e)), 2e-3) for e in units]
    )
    turned = np.array([[alpha(q) @ case.brackets(a, b) for b in units] for a in units])
    return slopes - slopes.T - turned


@pytest.mark.by_default(4)
def test_two_form_is_that_of_the_theorem(case: Case) -> None:
    """Thesis: Theorem 3.3.6, (3.3.43), (3.3.45)."""
    for zeta, joints, _, _ in case.states(2):
        form = case.chart.two_form(zeta, joints)
        assert_close(form, -form.T, 1e-13)
        assert_close(form, _written_out(case, zeta, joints), 1e-8)


@pytest.mark.by_default(3)
def test_two_form_is_the_exterior_derivative_of_the_shift(case: Case) -> None:
    """Thesis: (3.2.27), (3.3.40)."""
    nc, nb, ns = case.chart.nc, case.chart.nb, case.chart.ns
    for zeta, joints, _, _ in case.states(2):
        onto = np.zeros((nb + ns, nc + ns))
        onto[:nb, :nc] = np.linalg.pinv(case.full.basis) @ case.body_twists(zeta)
        onto[nb:, nc:] = np.eye(ns)
        whole = _exterior_derivative(case, case.at(zeta, joints))
        assert_close(case.chart.two_form(zeta, joints), onto.T @ whole @ onto, 1e-7)


def test_shift_is_invariant_under_the_isotropy_group_only(case: Case) -> None:
    """Thesis: Lemma 3.2.5, Lemma 3.2.6."""
    nb, ns = case.chart.nb, case.chart.ns
    q = case.chart.model.robot.random(np.random.default_rng(2))
    whole = _exterior_derivative(case, q)
    placed = case.chart.model.robot.base.placement.matrix
    inward = np.linalg.pinv(case.full.basis) @ np.linalg.inv(
        conjugation(np.linalg.inv(placed) @ case.full.pose(q))
    )
    for twist in case.chart.isotropy.twists.T:
        field = np.concatenate([inward @ twist, np.zeros(ns)])
        assert_close(field @ whole, np.zeros(nb + ns), 1e-8)
    for twist in case.chart.isotropy.complement_twists.T:
        field = np.concatenate([inward @ twist, np.zeros(ns)])
        assert np.abs(field @ whole).max() > 1e-2


@pytest.mark.parametrize("name", ["R^3", "SO(2)xR", "R^2", "SO(2)", "R", "H_p"])
def test_group_that_commutes_has_the_derivative_of_the_connection_only(name: str) -> None:
    """Thesis: (3.2.28), Corollary 3.3.7, (3.3.46), (3.3.47)."""
    case = _case(name)
    assert case.chart.nc == 0
    nb, ns = case.chart.nb, case.chart.ns
    zeta = np.zeros(0)
    mu = case.full.basis.T @ case.momentum
    for _, joints, _, _ in case.states(2):
        q = case.at(zeta, joints)
        rates = [case.full.rate(q, np.concatenate([np.zeros(nb), e])) for e in np.eye(ns)]
        slopes = np.array(
            [
                difference_quotient(lambda h, r=r, q=q: case.full.blocks(q + h * r)[1].T @ mu, 2e-3)
                for r in rates
            ]
        )
        shapes = [np.concatenate([np.zeros(nb), e]) for e in np.eye(ns)]
        carried = case.full.blocks(q)[1].T @ mu
        turned = np.array([[carried @ case.brackets(a, b)[nb:] for b in shapes] for a in shapes])
        assert_close(case.chart.two_form(zeta, joints), slopes - slopes.T - turned, 1e-8)


# --- equations --------------------------------------------------------------------------------


def test_energy_and_velocity_are_those_of_the_robot(case: Case) -> None:
    """Thesis: (3.2.25), (3.3.40)-(3.3.42), Lemma 3.3.5."""
    for zeta, joints, s, _ in case.states(3):
        q = case.at(zeta, joints)
        p, v = case.full.blocks(q)[2] @ s, case.full.velocity(q, s, case.mu)
        assert_close(case.chart.velocity(zeta, joints, p), v, 1e-10)
        energy = case.chart.hamiltonian(zeta, joints, p)
        assert energy == pytest.approx(case.full.energy(q, v), rel=1e-10, abs=1e-10)


@pytest.mark.extended
def test_rates_are_those_of_the_full_order(case: Case) -> None:
    """Thesis: (3.2.17), (3.2.26), (3.3.44)."""
    chart, full, nb = case.chart, case.full, case.chart.nb
    for zeta, joints, s, u in case.states(3):
        q = case.at(zeta, joints)
        metric, v = full.blocks(q)[2], full.velocity(q, s, case.mu)
        p = metric @ s
        zetadot, shape, pdot = chart.vector_field(zeta, joints, p, u)
        eta = chart.reconstruction(zeta, joints, p)
        assert_close(shape, s, 1e-10)
        # The base: Ad_chi v1 = eta + X1 zetadot, with eta in the isotropy algebra.
        twist = full.basis @ v[:nb]
        moved = np.linalg.solve(conjugation(case.chi(zeta)), full.basis @ eta)
        assert_close(moved + case.body_twists(zeta) @ zetadot, twist, 1e-8)
        kept = chart.isotropy.algebra
        assert_close(kept @ np.linalg.pinv(kept) @ eta, eta, 1e-10)
        # The shape: d/dt (Mhat s) at full order.
        vdot = full.acceleration(q, v, np.concatenate([np.zeros(nb), u]))
        qdot = full.rate(q, v)
        turning = difference_quotient(lambda h, q=q, r=qdot: full.blocks(q + h * r)[2], 2e-3)
        assert_close(pdot, turning @ s + metric @ vdot[nb:], 1e-7)
        assert_close(pdot, chart.model.vector_field(q, p, u)[1], 1e-10)


# --- every part of the two-form counts --------------------------------------------------------

"""phat after one second of the free case study, from a simulation at full order."""


# --- where the chart ends ---------------------------------------------------------------------
