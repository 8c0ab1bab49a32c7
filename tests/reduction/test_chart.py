"""The chart of the coadjoint orbit: its two-form and equations, and where it ends.

The two-form is compared with (3.3.43) written out, and with the exterior derivative of the
one-form alpha_mu on the robot's whole configuration space; both in NumPy from Pinocchio's mass
matrices, differences of them and SciPy's exponential. The equations are compared with the full
order, and with the form that has no chart.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import concur as cc
import concur.reduction
from tests.oracles import MomentumChart, assert_close, difference_quotient
from tests.reduction._floaters import Brackets, FullOrder, ad, adjoint, exp, floater, reduced

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
        return adjoint(self.chart.model.robot.base.placement.matrix).T @ self.mu

    def at(self, zeta: np.ndarray, joints: np.ndarray) -> np.ndarray:
        """Configuration on the slice, h = e."""
        h = self.chart.model.robot.base.joint.neutral
        return self.chart.configuration(h, zeta, joints)

    def chi(self, zeta: np.ndarray) -> np.ndarray:
        return exp(self.full.basis @ self.chart.isotropy.complement @ zeta)

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


def test_slice_is_the_exponential_of_the_complement(case: Case) -> None:
    chart, placed = case.chart, case.chart.model.robot.base.placement.matrix
    for zeta, joints, _, _ in case.states(3):
        assert_close(chart.pose(zeta), case.chi(zeta), 1e-13)
        q = case.at(zeta, joints)
        assert_close(case.full.pose(q), placed @ case.chi(zeta), 1e-13)
        basis, twists = case.full.basis, case.body_twists(zeta)
        assert_close(basis @ chart.body_twists(zeta), twists, 1e-8)
        outward = adjoint(case.chi(zeta))
        assert_close(basis @ chart.spatial_twists(zeta), outward @ twists, 1e-8)
        assert_close(chart.momentum(zeta), basis.T @ outward.T @ case.momentum, 1e-13)
        assert_close(chart.momentum(zeta), case.full.body_momentum(q, case.mu), 1e-13)


def test_orbit_has_as_many_coordinates_as_the_isotropy_group_leaves(case: Case) -> None:
    chart = case.chart
    assert chart.nc + chart.ni == chart.nb
    both = np.hstack([chart.isotropy.algebra, chart.spatial_twists(np.zeros(chart.nc))])
    assert abs(np.linalg.det(both)) > 1e-3
    assert chart.regularity(np.zeros(chart.nc)) == pytest.approx(1.0, abs=1e-14)


def test_split_undoes_configuration(case: Case) -> None:
    chart = case.chart
    rng = np.random.default_rng(17)
    for zeta, joints, _, _ in case.states(3):
        # Any element of the isotropy group: an exponential of its algebra.
        eta = chart.isotropy.algebra @ rng.uniform(-1.0, 1.0, chart.ni)
        robot = chart.model.robot
        h = robot.integrate(robot.neutral(), np.concatenate([eta, np.zeros(chart.ns)]))[: chart.nh]
        q = chart.configuration(h, zeta, joints)
        found_h, found_zeta, found_joints = chart.split(q)
        assert_close(found_zeta, zeta, 1e-10)
        assert_close(found_h, h, 1e-10)
        assert_close(found_joints, joints, 0.0)
        nearby = chart.split(q, near=zeta + 0.01)
        assert_close(nearby[1], zeta, 1e-10)


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
    outward, across = adjoint(case.chi(zeta)), case.body_twists(zeta)
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
        value = ad(velocity[:, a]) @ velocity[:, b]
        if a >= nc and b >= nc:
            u, w = np.eye(ns)[a - nc], np.eye(ns)[b - nc]
            shape = case.brackets(
                np.concatenate([np.zeros(nb), u]), np.concatenate([np.zeros(nb), w])
            )[nb:]
            turned = ad(form @ u) @ form @ w + slopes[b - nc] @ u - slopes[a - nc] @ w
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


def test_two_form_is_that_of_the_theorem(case: Case) -> None:
    """Thesis: Theorem 3.3.6, (3.3.43), (3.3.45)."""
    for zeta, joints, _, _ in case.states(2):
        form = case.chart.two_form(zeta, joints)
        assert_close(form, -form.T, 1e-13)
        assert_close(form, _written_out(case, zeta, joints), 1e-8)


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
        adjoint(np.linalg.inv(placed) @ case.full.pose(q))
    )
    for twist in case.chart.isotropy.twists.T:
        field = np.concatenate([inward @ twist, np.zeros(ns)])
        assert_close(field @ whole, np.zeros(nb + ns), 1e-8)
    for twist in case.chart.isotropy.complement_twists.T:
        field = np.concatenate([inward @ twist, np.zeros(ns)])
        assert np.abs(field @ whole).max() > 1e-2


def test_two_form_is_closed() -> None:
    # Joints of one freedom: the frame is one of coordinates, and the sum has three terms only.
    robot = floater("SE(3)", without=("ball", "plate", "screw"))
    chart = MomentumChart(reduced(robot, np.array(GENERAL)))
    rng = np.random.default_rng(8)
    point = rng.uniform(-0.5, 0.5, chart.no)

    def form(x: np.ndarray) -> np.ndarray:
        return chart.two_form(x[: chart.nc], x[chart.nc :])

    slopes = np.array(
        [difference_quotient(lambda h, e=e: form(point + h * e), 1e-2) for e in np.eye(chart.no)]
    )
    cyclic = slopes + slopes.transpose(1, 2, 0) + slopes.transpose(2, 0, 1)
    assert_close(cyclic, np.zeros_like(cyclic), 1e-8)
    assert np.abs(slopes).max() > 0.1


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


def test_zero_momentum_has_no_two_form() -> None:
    case = _case("SE(3), zero")
    assert case.chart.nc == 0
    for zeta, joints, s, _ in case.states(2):
        metric = case.full.blocks(case.at(zeta, joints))[2]
        form = case.chart.two_form(zeta, joints)
        assert_close(form, np.zeros((case.chart.ns, case.chart.ns)), 1e-15)
        energy = case.chart.hamiltonian(zeta, joints, metric @ s)
        assert energy == pytest.approx(s @ metric @ s / 2, rel=1e-12)


# --- equations --------------------------------------------------------------------------------


def test_energy_and_velocity_are_those_of_the_robot(case: Case) -> None:
    """Thesis: (3.2.25), (3.3.40)-(3.3.42)."""
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
        moved = np.linalg.solve(adjoint(case.chi(zeta)), full.basis @ eta)
        assert_close(moved + case.body_twists(zeta) @ zetadot, twist, 1e-8)
        kept = chart.isotropy.algebra
        assert_close(kept @ np.linalg.pinv(kept) @ eta, eta, 1e-10)
        # The shape: d/dt (Mhat s) at full order.
        vdot = full.acceleration(q, v, np.concatenate([np.zeros(nb), u]))
        qdot = full.rate(q, v)
        turning = difference_quotient(lambda h, q=q, r=qdot: full.blocks(q + h * r)[2], 2e-3)
        assert_close(pdot, turning @ s + metric @ vdot[nb:], 1e-7)
        assert_close(pdot, chart.model.vector_field(q, p, u)[1], 1e-10)


@pytest.mark.parametrize("name", ["SE(3), angular", "SE(2)xR", "SO(3)", "R^3"])
def test_motion_with_reconstruction_is_that_without_a_chart(name: str) -> None:
    chart = _case(name).chart
    model, robot, nc, nj = chart.model, chart.model.robot, chart.nc, chart.nj
    zeta, joints, s, _ = _case(name).states(1)[0]
    h0 = robot.integrate(
        robot.neutral(),
        np.concatenate([chart.isotropy.algebra @ np.linspace(0.2, 0.5, chart.ni), 0 * s]),
    )[: chart.nh]
    q0 = chart.configuration(h0, zeta, joints)
    p0 = model.mass_matrix(q0) @ s
    times = (0.0, 0.4, 1.0)

    def torque(t: float) -> np.ndarray:
        return np.sin(t + np.arange(chart.nu))

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        z, j, p = np.split(x, [nc, nc + nj])
        zetadot, shape, pdot = chart.vector_field(z, j, p, torque(t))
        v = np.concatenate([np.zeros(chart.nb), shape])
        return np.concatenate([zetadot, robot.rate(np.concatenate([h0, j]), v)[chart.nh :], pdot])

    def without(t: float, x: np.ndarray) -> np.ndarray:
        v, pdot = model.vector_field(x[: model.nq], x[model.nq :], torque(t))
        return np.concatenate([robot.rate(x[: model.nq], v), pdot])

    tight = {"method": "DOP853", "rtol": 1e-11, "atol": 1e-12}
    found = solve_ivp(
        rate, (0.0, 1.0), np.concatenate([zeta, joints, p0]), dense_output=True, **tight
    )
    plain = solve_ivp(without, (0.0, 1.0), np.concatenate([q0, p0]), t_eval=times, **tight)
    configurations = chart.reconstruct(
        lambda t: tuple(np.split(found.sol(t), [nc, nc + nj])), times, start=h0
    )
    for q, expected in zip(configurations, plain.y.T[:, : model.nq], strict=True):
        assert_close(robot.difference(expected, q), np.zeros(model.nv), 1e-8)


# --- every part of the two-form counts --------------------------------------------------------

SPACECRAFT_MU = np.array([0.0, 20.0, 0.0, 5.0, 0.0, 0.0])
SPACECRAFT_ZETA = np.array([0.3, -0.2, 0.15, -0.25])
SPACECRAFT_END = np.array(
    [
        2.407006072809,
        -0.357745813080,
        0.931990906588,
        1.752650656582,
        0.190262580502,
        0.316729554345,
    ]
)
"""phat after one second of the free case study, from a simulation at full order."""


def product_slice(zeta: ca.SX) -> tuple[ca.SX, ca.SX]:
    """chi(x, z, tX, tZ) = [R_X(tX) R_Z(tZ), (x, 0, z)]."""
    c, s = ca.cos(zeta[2]), ca.sin(zeta[2])
    turn_x = ca.blockcat([[1, 0, 0], [0, c, -s], [0, s, c]])
    c, s = ca.cos(zeta[3]), ca.sin(zeta[3])
    return turn_x @ ca.blockcat([[c, -s, 0], [s, c, 0], [0, 0, 1]]), ca.vertcat(zeta[0], 0, zeta[1])


@functools.cache
def _spacecraft() -> MomentumChart:
    return MomentumChart(reduced(cc.robots.two_handed_spacecraft(), SPACECRAFT_MU), product_slice)


def _end(whole: float, shape: float) -> np.ndarray:
    """phat after one second with another weight on the two-form and on its block of the shape."""
    chart = _spacecraft()
    nc, nj, free = chart.nc, chart.nj, np.zeros(chart.nu)
    ball = Rotation.from_euler("XYZ", [0.3, -0.4, 0.5]).as_quat()
    joints0 = np.concatenate([ball, [0.6, -0.7, 0.8]])
    h0 = chart.model.robot.base.joint.neutral
    s0 = np.array([0.2, -0.1, 0.15, 0.3, -0.25, 0.2])
    p0 = chart.model.mass_matrix(np.concatenate([h0, joints0])) @ s0

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        zeta, joints, p = np.split(x, [nc, nc + nj])
        zetadot, s, pdot = chart.vector_field(zeta, joints, p, free)
        form = chart.two_form(zeta, joints)
        wrong = whole * form
        wrong[nc:, nc:] *= shape
        # Take the right form out of the equations, and put the other in.
        slope = form[:nc, :nc] @ zetadot + form[:nc, nc:] @ s
        rest = pdot - form[nc:, :nc] @ zetadot - form[nc:, nc:] @ s
        zetadot = np.linalg.solve(wrong[:nc, :nc], slope - wrong[:nc, nc:] @ s)
        pdot = rest + wrong[nc:, :nc] @ zetadot + wrong[nc:, nc:] @ s
        v = np.concatenate([np.zeros(6), s])
        jointsdot = chart.model.robot.rate(np.concatenate([h0, joints]), v)[7:]
        return np.concatenate([zetadot, jointsdot, pdot])

    start = np.concatenate([SPACECRAFT_ZETA, joints0, p0])
    solution = solve_ivp(rate, (0.0, 1.0), start, method="DOP853", rtol=1e-9, atol=1e-10)
    return solution.y[nc + nj :, -1]


@pytest.mark.parametrize(
    ("whole", "shape", "error"), [(1.0, 1.0, 0.0), (-1.0, 1.0, 0.64), (1.0, 0.0, 0.51)]
)
def test_another_two_form_is_seen(whole: float, shape: float, error: float) -> None:
    found = np.abs(_end(whole, shape) - SPACECRAFT_END).max()
    assert found == pytest.approx(error, abs=0.006 if error else 1e-8)


# --- where the chart ends ---------------------------------------------------------------------


def test_global_form_passes_where_the_chart_ends() -> None:
    # Started at tX = pi/2 exactly.
    model = _spacecraft().model
    full = FullOrder(model.robot)
    turn = Rotation.from_euler("YXZ", [0.2, np.pi / 2, -0.25]).as_quat()
    ball = Rotation.from_euler("XYZ", [0.3, np.pi / 2, 0.5]).as_quat()
    q0 = np.concatenate([[0.3, 0.1, -0.2], turn, ball, [0.6, -0.7, 0.8]])
    s0 = np.array([0.2, -0.1, 0.15, 0.3, -0.25, 0.2])
    assert np.abs(_spacecraft().regularity([0.3, -0.2, np.pi / 2, -0.25])) < 1e-15

    def ours(t: float, x: np.ndarray) -> np.ndarray:
        v, pdot = model.vector_field(x[:14], x[14:], np.zeros(6))
        return np.concatenate([model.robot.rate(x[:14], v), pdot])

    def complete(t: float, x: np.ndarray) -> np.ndarray:
        q, v = x[:14], x[14:]
        return np.concatenate([full.rate(q, v), full.acceleration(q, v, np.zeros(12))])

    tight = {"method": "DOP853", "rtol": 1e-12, "atol": 1e-13}
    p0 = model.mass_matrix(q0) @ s0
    found = solve_ivp(ours, (0.0, 3.0), np.concatenate([q0, p0]), **tight).y[:, -1]
    v0 = full.velocity(q0, s0, SPACECRAFT_MU)
    expected = solve_ivp(complete, (0.0, 3.0), np.concatenate([q0, v0]), **tight).y[:, -1]
    q, p = expected[:14], full.blocks(expected[:14])[2] @ expected[20:]
    assert_close(found, np.concatenate([q, p]), 1e-10)
