"""Connections against closed forms: sphere, hyperbolic plane, rotations; and an oracle in NumPy."""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

import concur as cc
from concur.errors import ConcurError, DescriptionError, ShapeError, UnknownNameError
from concur.formulations import Factor
from concur.geometry import Connection, Frame
from tests.oracles import _affinity as affinity
from tests.oracles import difference_quotient

UNITS = np.eye(3)


# --- surfaces ----------------------------------------------------------------------------------


def sphere(radius: float = 1.0) -> Connection:
    q = ca.SX.sym("q", 2)
    return Connection.of_metric(q, radius**2 * ca.diag(ca.vertcat(1, ca.sin(q[0]) ** 2)))


def half_plane() -> Connection:
    q = ca.SX.sym("q", 2)
    return Connection.of_metric(q, ca.SX.eye(2) / q[1] ** 2)


def points(q: np.ndarray) -> np.ndarray:
    """Unit vectors of polar angle and azimuth."""
    polar, azimuth = np.asarray(q).T
    flat = np.sin(polar)
    return np.column_stack([flat * np.cos(azimuth), flat * np.sin(azimuth), np.cos(polar)])


@pytest.mark.parametrize(
    ("made", "gauss", "metric"),
    [
        (sphere(2.0), 0.25, lambda q: 4.0 * np.diag([1.0, np.sin(q[0]) ** 2])),
        (half_plane(), -1.0, lambda q: np.eye(2) / q[1] ** 2),
    ],
    ids=["sphere", "hyperbolic plane"],
)
def test_surfaces_have_the_curvature_of_gauss(made: Connection, gauss: float, metric: Any) -> None:
    """R(u, w) y = K (<w, y> u - <u, y> w), in all directions; and no torsion."""
    rng = np.random.default_rng(0)
    for _ in range(10):
        q, (u, w, y) = rng.uniform(0.4, 2.5, 2), rng.normal(size=(3, 2))
        g = metric(q)
        expected = gauss * ((w @ g @ y) * u - (u @ g @ y) * w)
        np.testing.assert_allclose(made.curvature(q, u, w, y), expected, rtol=1e-9, atol=1e-10)
        np.testing.assert_allclose(made.torsion(q, u, w), 0.0, atol=1e-12)


def test_autoparallels_of_the_sphere_are_great_circles() -> None:
    """000: (7.1). 004: (122), (123)."""
    q, v, times = np.array([0.9, 0.3]), np.array([0.7, -1.1]), np.linspace(0.0, 3.0, 13)
    bends = [np.sin(0.9) * np.cos(0.9) * 1.1**2, 2 * 0.7 * 1.1 / np.tan(0.9)]
    np.testing.assert_allclose(sphere().autoparallel_rate(q, v), [v, bends], rtol=1e-12)
    found, speeds = sphere().autoparallel(q, v, times)
    start, h = points(q[None])[0], 1e-6
    tangent = (points((q + h * v)[None]) - points((q - h * v)[None]))[0] / (2 * h)
    speed = np.linalg.norm(tangent)
    assert speed == pytest.approx(np.sqrt(v[0] ** 2 + (np.sin(q[0]) * v[1]) ** 2))
    phase = speed * times[:, None]
    circle = np.cos(phase) * start + np.sin(phase) * tangent / speed
    np.testing.assert_allclose(points(found), circle, atol=1e-8)
    kept = speeds[:, 0] ** 2 + (np.sin(found[:, 0]) * speeds[:, 1]) ** 2
    np.testing.assert_allclose(kept, speed**2, rtol=1e-9)


def test_autoparallels_of_the_half_plane_are_circles_about_its_edge() -> None:
    """x = c + r tanh(t), y = r / cosh(t) at unit speed."""
    c, r, times = 0.4, 1.3, np.linspace(-1.0, 1.5, 11)
    start = np.array([c + r * np.tanh(times[0]), r / np.cosh(times[0])])
    slope = np.array([r / np.cosh(times[0]) ** 2, -r * np.tanh(times[0]) / np.cosh(times[0])])
    found, _ = half_plane().autoparallel(start, slope, times)
    expected = np.column_stack([c + r * np.tanh(times), r / np.cosh(times)])
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("polar", [0.3, 1.0, np.pi / 2, 2.2])
def test_transport_round_a_parallel_turns_by_its_solid_angle(polar: float) -> None:
    times, frame = np.linspace(0.0, 2 * np.pi, 9), np.diag([1.0, np.sin(polar)])
    start = np.array([0.6, -0.8])
    moved = sphere().transport(
        lambda t: ([polar, t], [0.0, 1.0]), np.linalg.solve(frame, start), times
    )
    turn = 2 * np.pi * (1 - np.cos(polar))
    c, s = np.cos(turn), np.sin(turn)
    np.testing.assert_allclose(frame @ moved[-1], np.array([[c, -s], [s, c]]) @ start, atol=1e-8)
    np.testing.assert_allclose(np.linalg.norm(moved @ frame, axis=1), 1.0, rtol=1e-10)


def test_curvature_is_the_transport_round_a_small_loop() -> None:
    """u first, then w, and back: the change is -R(u, w) y, of a connection with torsion."""
    q = ca.SX.sym("q", 2)
    made = Connection(
        q,
        [
            ca.vertcat(ca.horzcat(0.3, q[0]), ca.horzcat(q[1] ** 2, 0.2)),
            ca.vertcat(ca.horzcat(ca.sin(q[1]), 0.1), ca.horzcat(0.4 * q[0], -0.5)),
        ],
    )
    at, y, size = np.array([0.4, 0.7]), np.array([1.0, -0.3]), 1e-3
    corners = at + size * np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]]) - size / 2
    moved = y
    for start, end in pairwise(corners):
        moved = made.transport(
            lambda t, a=start, b=end: (a + t * (b - a), b - a), moved, [0.0, 1.0]
        )[-1]
    change = (moved - y) / size**2
    np.testing.assert_allclose(change, -made.curvature(at, [1, 0], [0, 1], y), atol=2e-3)


# --- rotations ---------------------------------------------------------------------------------


def rotations() -> tuple[ca.SX, Frame]:
    """Quaternions (x, y, z, w) with body angular velocities: four coordinates, three fields."""
    q = ca.SX.sym("q", 4)
    x, y, z, w = ca.vertsplit(q)
    fields = ca.vertcat(
        ca.horzcat(w, -z, y), ca.horzcat(z, w, -x), ca.horzcat(-y, x, w), ca.horzcat(-x, -y, -z)
    )
    return q, Frame(q, fields / 2)


def euler() -> tuple[ca.SX, Frame]:
    """Angles 3-1-3 with body angular velocities, by the matrix T of (55) in source 004."""
    q = ca.SX.sym("q", 3)
    theta, psi = q[1], q[2]
    forms = ca.vertcat(
        ca.horzcat(ca.sin(theta) * ca.sin(psi), ca.cos(psi), 0),
        ca.horzcat(ca.sin(theta) * ca.cos(psi), -ca.sin(psi), 0),
        ca.horzcat(ca.cos(theta), 0, 1),
    )
    return q, Frame(q, forms=forms)


ANGLES = np.array([0.2, 1.0, -0.3])
PLACES = {
    "quaternions": (rotations, Rotation.from_euler("ZXZ", ANGLES).as_quat()),
    "angles": (euler, ANGLES),
}


def turns(chart: str, places: np.ndarray) -> Rotation:
    return (
        Rotation.from_quat(places)
        if chart == "quaternions"
        else Rotation.from_euler("ZXZ", np.atleast_2d(places))
    )


@pytest.mark.parametrize("chart", PLACES)
def test_brackets_of_body_rates_are_cross_products(chart: str) -> None:
    """000: (2.6), (2.11). 003: (12), (17), (18)."""
    make, at = PLACES[chart]
    _, frame = make()
    epsilon = np.array([[np.cross(u, w) for w in UNITS] for u in UNITS]).transpose(2, 0, 1)
    np.testing.assert_allclose(frame.coefficients(at), epsilon, atol=1e-12)
    u, w = np.random.default_rng(1).normal(size=(2, 3))
    np.testing.assert_allclose(frame.bracket(at, u, w), np.cross(u, w), atol=1e-12)


@pytest.mark.parametrize("chart", PLACES)
def test_the_canonical_connection_of_rotations(chart: str) -> None:
    """004: (57). No curvature, cross products as torsion; autoparallels turn about a body axis."""
    make, at = PLACES[chart]
    made, flat = Connection.canonical(*make()), Connection(*make()[:1], frame=make()[1])
    u, w, y = np.random.default_rng(2).normal(size=(3, 3))
    np.testing.assert_allclose(made.torsion(at, u, w), np.cross(u, w), atol=1e-12)
    np.testing.assert_allclose(flat.torsion(at, u, w), -np.cross(u, w), atol=1e-12)
    for one in (made, flat):
        np.testing.assert_allclose(one.curvature(at, u, w, y), 0.0, atol=1e-11)
    times, spin = np.linspace(0.0, 1.0, 5), np.array([-0.3154, 0.3428, 0.9702])
    found, speeds = made.autoparallel(at, spin, times)
    np.testing.assert_allclose(speeds, np.tile(spin, (5, 1)), atol=1e-12)
    expected = Rotation.from_euler("ZXZ", ANGLES) * Rotation.from_rotvec(times[:, None] * spin)
    np.testing.assert_allclose(turns(chart, found).as_matrix(), expected.as_matrix(), atol=1e-9)


def test_the_round_metric_of_rotations() -> None:
    """Of equal inertias: half the bracket, and R(u, w) y = [[u, w], y] / -4."""
    q, frame = rotations()
    made, at = Connection.of_metric(q, 0.7 * ca.SX.eye(3), frame), PLACES["quaternions"][1]
    u, w, y = np.random.default_rng(3).normal(size=(3, 3))
    np.testing.assert_allclose(made.along(at, u) @ w, np.cross(u, w) / 2, atol=1e-12)
    expected = -np.cross(np.cross(u, w), y) / 4
    np.testing.assert_allclose(made.curvature(at, u, w, y), expected, atol=1e-12)


@pytest.mark.parametrize("chart", PLACES)
def test_free_bodies_move_along_autoparallels_of_their_inertia(chart: str) -> None:
    """Euler's equations, by SciPy; the angular momentum in inertial axes is constant."""
    make, at = PLACES[chart]
    q, frame = make()
    inertia, spin, times = np.diag([2.0, 3.0, 4.0]), [0.1, 1.0, 0.1], np.linspace(0.0, 1.5, 7)
    made = Connection.of_metric(q, ca.SX(inertia), frame)
    found, speeds = made.autoparallel(at, spin, times)
    expected = solve_ivp(
        lambda _, w: np.linalg.solve(inertia, np.cross(inertia @ w, w)),
        (0.0, times[-1]),
        spin,
        "DOP853",
        times,
        rtol=1e-12,
        atol=1e-13,
    ).y.T
    np.testing.assert_allclose(speeds, expected, atol=1e-9)
    momenta = turns(chart, found).apply(speeds @ inertia)
    np.testing.assert_allclose(momenta, np.tile(momenta[0], (7, 1)), atol=1e-8)
    # Koszul's formula by hand, of constant inertias.
    symbols = made.symbols(at)
    assert symbols[0, 1, 2] == pytest.approx((2 + 4 - 3) / (2 * 2))
    assert symbols[0, 2, 1] == pytest.approx((4 - 3 - 2) / (2 * 2))
    assert symbols[2, 0, 1] == pytest.approx((4 + 3 - 2) / (2 * 4))


# --- any metric and any frame ------------------------------------------------------------------


def bent(n: int, seed: int) -> tuple[ca.SX, ca.SX, ca.SX]:
    """Coordinates, fields and a metric without any symmetry."""
    rng, q = np.random.default_rng(seed), ca.SX.sym("q", n)

    def matrix() -> ca.SX:
        return ca.SX(rng.normal(size=(n, n))) + sum(
            (ca.SX(0.3 * rng.normal(size=(n, n))) * ca.sin(rng.normal() + q[k]) for k in range(n)),
            ca.SX(n, n),
        )

    root = matrix()
    return q, matrix() + 3 * ca.SX.eye(n), root @ root.T + ca.SX.eye(n)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_any_metric_in_any_frame(n: int) -> None:
    """004: (3), (42)-(46). In NumPy, with slopes by differences."""
    q, fields, metric = bent(n, n)
    frame = Frame(q, fields)
    made = Connection.of_metric(q, metric, frame)
    numbers = ca.Function("numbers", [q], [fields, metric])
    at = np.random.default_rng(9).normal(size=n)
    E, g = (np.array(part) for part in numbers(at))

    def slopes(f: Any) -> np.ndarray:
        """Derivatives along the fields, in a last index."""
        ways = [difference_quotient(lambda h, e=e: f(at + h * e), step=1e-3) for e in E.T]
        return np.stack(ways, axis=-1)

    dE, dg = (slopes(lambda x, k=k: np.array(numbers(x)[k])) for k in (0, 1))
    c = np.einsum("ka,aij->kij", np.linalg.inv(E), dE.transpose(0, 2, 1) - dE)
    np.testing.assert_allclose(frame.coefficients(at), c, atol=1e-7)
    symbols = made.symbols(at)
    np.testing.assert_allclose(symbols, affinity.christoffel(g, dg, c), atol=1e-7)
    assert abs(affinity.nonmetricity(g, dg, symbols)).max() < 1e-7
    whole = affinity.curvature(symbols, c, slopes(made.symbols))
    u, w, y = np.random.default_rng(1).normal(size=(3, n))
    np.testing.assert_allclose(
        made.curvature(at, u, w, y), np.einsum("ijkl,j,k,l->i", whole, y, u, w), atol=1e-5
    )
    np.testing.assert_allclose(made.torsion(at, u, w), 0.0, atol=1e-12)


def test_curvature_and_torsion_do_not_depend_on_the_frame() -> None:
    q, fields, metric = bent(3, 7)
    frame = Frame(q, fields)
    plain = Connection.of_metric(q, metric)
    own = Connection.of_metric(q, fields.T @ metric @ fields, frame)
    at = np.array([0.3, -0.4, 0.9])
    E = np.array(frame.fields(at))
    vectors = np.random.default_rng(4).normal(size=(3, 3))
    np.testing.assert_allclose(
        E @ own.curvature(at, *vectors), plain.curvature(at, *(vectors @ E.T)), atol=1e-9
    )
    skew = Connection(q, [fields, metric, fields.T])
    symbols = skew.symbols(at)
    expected = np.einsum("kij,i,j->k", symbols - symbols.transpose(0, 2, 1), *vectors[:2])
    np.testing.assert_allclose(skew.torsion(at, *vectors[:2]), expected, atol=1e-12)


# --- systems -----------------------------------------------------------------------------------


def test_free_motions_of_an_arm_are_its_geodesics() -> None:
    """Two links in a plane, by the equations in textbooks."""
    joints = [Factor("shoulder", "SO2"), Factor("elbow", "SO2")]
    (a, da), (b, db) = [(joint.q, joint.v) for joint in joints]
    one = 0.5 * ca.vertcat(-ca.sin(a) * da, ca.cos(a) * da)
    two = 2 * one + 0.4 * ca.vertcat(-ca.sin(a + b), ca.cos(a + b)) * (da + db)
    kinetic = (1.3 * ca.sumsqr(one) + 0.2 * da**2 + 0.8 * ca.sumsqr(two) + 0.1 * (da + db) ** 2) / 2
    arm = cc.LagrangianSystem(kinetic, 0.0, joints)
    q = ca.SX.sym("q", 2)
    made = Connection.of_metric(q, arm.mass_matrix(q), Frame.of(arm))
    alpha, beta = 1.3 * 0.25 + 0.2 + 0.8 * (1.0 + 0.16) + 0.1, 0.8 * 0.4
    delta = 0.8 * 0.16 + 0.1

    def slope(_: float, x: np.ndarray) -> np.ndarray:
        c, s = np.cos(x[1]), np.sin(x[1])
        mass = [[alpha + 2 * beta * c, delta + beta * c], [delta + beta * c, delta]]
        force = beta * s * np.array([x[3] * (2 * x[2] + x[3]), -(x[2] ** 2)])
        return np.concatenate([x[2:], np.linalg.solve(mass, force)])

    start, times = np.array([0.3, 1.1, 0.9, -1.4]), np.linspace(0.0, 2.0, 5)
    expected = solve_ivp(slope, (0, 2), start, "DOP853", times, rtol=1e-12, atol=1e-13).y.T
    found, speeds = made.autoparallel(start[:2], start[2:], times)
    np.testing.assert_allclose(np.hstack([found, speeds]), expected, atol=1e-9)


def test_frames_of_systems_have_the_brackets_of_their_groups() -> None:
    """SE(2) of a sleigh: turning carries its axes along."""
    frame = Frame.of(cc.robots.chaplygin_sleigh())
    expected = np.zeros((3, 3, 3))
    expected[1, 2, 0], expected[1, 0, 2] = 1.0, -1.0
    expected[0, 2, 1], expected[0, 1, 2] = -1.0, 1.0
    np.testing.assert_allclose(frame.coefficients([0.4, -0.2, 0.9]), expected, atol=1e-12)
    rod = Factor("rod", "S2")
    ball = cc.LagrangianSystem(ca.sumsqr(rod.qdot), 0.0, [rod])
    with pytest.raises(DescriptionError, match="spin of a two-sphere"):
        Frame.of(ball)


def test_copies_and_expressions() -> None:
    made = pickle.loads(pickle.dumps(sphere()))
    q = ca.SX.sym("q", 2)
    vectors = [0.8, 0.1], [1.0, 0.0], [0.0, 1.0], [0.3, 1.0]
    graph = ca.Function("f", [q], [made.curvature(q, *vectors[1:])])
    np.testing.assert_allclose(
        np.array(graph(vectors[0])).ravel(), sphere().curvature(*vectors), atol=1e-14
    )
    assert "2 velocities over 2 coordinates" in repr(made)
    assert "2 velocities" in repr(made.frame)


# --- refusals ----------------------------------------------------------------------------------

Q = ca.SX.sym("q", 2)
ONE, OTHER = ca.SX.eye(2), ca.SX.sym("p")


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: Frame([1.0, 2.0]), DescriptionError, "a column of symbols"),
        (lambda: Frame(2 * Q), DescriptionError, "a column of symbols"),
        (lambda: Frame(Q, fields=ONE, forms=ONE), DescriptionError, "both"),
        (lambda: Frame(Q, forms=ca.SX(2, 3)), ShapeError, r"shape \(2, 2\), got shape \(2, 3\)"),
        (lambda: Frame(Q, fields=ca.SX(3, 2)), ShapeError, r"got shape \(3, 2\)"),
        (lambda: Frame(Q, fields=OTHER * ONE), UnknownNameError, "`p`"),
        (lambda: Frame(Q, fields=ca.horzcat(Q, 2 * Q)), DescriptionError, "depend on each other"),
        (lambda: Frame(Q, fields=ca.SX.ones(2, 3)), DescriptionError, "depend on each other"),
        (lambda: Frame(Q, fields="x"), DescriptionError, "casadi.SX"),
        (lambda: Connection(Q, [ONE]), ShapeError, "2 matrices, one for each upper index, got 1"),
        (lambda: Connection(Q, [ONE, ca.SX(3, 3)]), ShapeError, "entry 1"),
        (lambda: Connection(Q, OTHER), ShapeError, "2 matrices"),
        (lambda: Connection(Q, None, "x"), DescriptionError, "a Frame over 2 coordinates"),
        (lambda: Connection(Q, None, rotations()[1]), DescriptionError, "a Frame over 2"),
        (
            lambda: Connection.of_metric(Q, ca.vertcat(ca.horzcat(1, 2), ca.horzcat(0, 1))),
            DescriptionError,
            "symmetric matrix, got entries 2 and 0 of 0, 1",
        ),
        (
            lambda: Connection.of_metric(Q, ca.diag(ca.vertcat(1, 0))),
            DescriptionError,
            "a regular matrix, got a singular one",
        ),
        (lambda: Connection.of_metric(Q, Q @ Q.T), DescriptionError, "a regular matrix"),
        (lambda: sphere().autoparallel([1.0], [1.0, 0.0], [0.0, 1.0]), ShapeError, "`q`"),
        (lambda: sphere().autoparallel([1.0, 0.0], [1.0, 0.0], [1.0, 0.0]), ShapeError, "increas"),
        (lambda: half_plane().autoparallel([0, 1], [0, np.nan], [0, 1]), ConcurError, "`v`"),
        (lambda: sphere().symbols([0.3]), ShapeError, "`q`"),
    ],
)
def test_what_does_not_fit_is_refused(make: Any, kind: type[ConcurError], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()


def test_motions_that_leave_their_coordinates_are_refused() -> None:
    """A connection whose velocity reaches infinity after one second: vdot = v^2."""
    q = ca.SX.sym("q", 1)
    made = Connection(q, [-ca.SX.eye(1)])
    found, speeds = made.autoparallel([0.0], [1.0], [0.0, 0.5, 0.9])
    np.testing.assert_allclose(speeds[:, 0], [1.0, 2.0, 10.0], rtol=1e-9)
    np.testing.assert_allclose(found[:, 0], -np.log([1.0, 0.5, 0.1]), atol=1e-9)
    with pytest.raises(ConcurError, match="Choose coordinates that are regular"):
        made.autoparallel([0.0], [1.0], [0.0, 1.1])


@pytest.mark.parametrize(("size", "refused"), [(1e-9, False), (1e-7, True)])
def test_fields_whose_bracket_leaves_them_are_refused(size: float, refused: bool) -> None:
    """Heisenberg's fields span no surface: [d/dx, d/dy + x d/dz] is d/dz."""
    q = ca.SX.sym("q", 3)

    def made() -> Frame:
        across = ca.vertcat(0, ca.sin(q[0]) + 2, size * q[0])
        return Frame(q, ca.horzcat(ca.vertcat(1, 0, 0), across))

    if not refused:
        assert made().n == 2
        return
    with pytest.raises(DescriptionError, match="that of 0 and 1 leaves them"):
        made()


@pytest.mark.parametrize(("angle", "refused"), [(1e-4, False), (1e-6, True)])
def test_metrics_that_are_nearly_singular(angle: float, refused: bool) -> None:
    """Of two velocities whose energies differ by an angle, in m and in nm; null directions too."""
    unit = ca.diag(ca.vertcat(1.0, 1e-9))
    nearly = unit @ ca.SX([[1, np.cos(angle)], [np.cos(angle), 1]]) @ unit
    assert Connection.of_metric(Q, ca.SX([[0, 1], [1, 0]])).n == 2
    if not refused:
        assert Connection.of_metric(Q, nearly).n == 2
        return
    with pytest.raises(DescriptionError, match="a regular matrix"):
        Connection.of_metric(Q, nearly)


@pytest.mark.parametrize(("skew", "refused"), [(1e-10, False), (1e-8, True)])
def test_metrics_that_are_nearly_symmetric(skew: float, refused: bool) -> None:
    metric = ca.SX([[1.0, 0.2], [0.2 + skew, 1.0]])
    if not refused:
        assert Connection.of_metric(Q, metric).n == 2
        return
    with pytest.raises(DescriptionError, match="a symmetric matrix"):
        Connection.of_metric(Q, metric)


@pytest.mark.parametrize(("angle", "refused"), [(1e-9, False), (1e-11, True)])
def test_fields_that_nearly_depend_on_each_other(angle: float, refused: bool) -> None:
    fields = ca.SX([[1.0, 1.0], [0.0, angle]])
    if not refused:
        assert Frame(Q, fields).n == 2
        return
    with pytest.raises(DescriptionError, match="depend on each other"):
        Frame(Q, fields)


@pytest.mark.parametrize("chart", PLACES)
def test_non_metricity_and_admissibility_on_rotations(chart: str) -> None:
    """004: (18), (19), (21), (23), (24). Of a rigid body: both laws by cross products."""
    make, at = PLACES[chart]
    q, frame = make()
    inertia = np.diag([2.0, 3.0, 5.0])
    u, v = np.random.default_rng(7).normal(size=(2, 3))
    turn = np.cross(u, np.eye(3)).T  # u x y as a matrix
    metrics = {"unequal": inertia, "equal": np.eye(3)}
    canonical = Connection.canonical(q, frame)
    half = Connection(q, [0.5 * ca.SX(ca.DM(c)) for c in frame.coefficients(at)], frame)
    for name, g in metrics.items():
        metric = lambda x, g=g: ca.SX(ca.DM(g))  # noqa: E731
        own = Connection.of_metric(q, ca.SX(ca.DM(g)), frame)
        # Christoffel's keeps lengths; all but the half of c are admissible for unequal inertias.
        np.testing.assert_allclose(own.non_metricity(at, metric, u), 0.0, atol=1e-12)
        np.testing.assert_allclose(own.lacking_forces(at, metric, v), 0.0, atol=1e-12)
        bent = -(g @ turn + turn.T @ g)
        np.testing.assert_allclose(canonical.non_metricity(at, metric, u), bent, atol=1e-12)
        assert (np.abs(bent).max() > 0.1) == (name == "unequal")
        np.testing.assert_allclose(canonical.lacking_forces(at, metric, v), 0.0, atol=1e-12)
        lacking = -0.5 * np.cross(g @ v, v)
        np.testing.assert_allclose(half.lacking_forces(at, metric, v), lacking, atol=1e-12)
        assert (np.abs(lacking).max() > 0.1) == (name == "unequal")


def test_coordinates_without_symbols_lack_the_slopes_of_the_metric() -> None:
    """Polar coordinates of the sphere: g = diag(1, sin^2), g_22,1 = sin(2 theta)."""
    q = ca.SX.sym("q", 2)
    flat, at, v = Connection(q), [0.8, 0.3], [0.7, -1.1]

    def metric(x: ca.SX) -> ca.SX:
        return ca.diag(ca.vertcat(1, ca.sin(x[0]) ** 2))

    slope = np.sin(1.6)
    found = flat.non_metricity(at, metric, [2.0, 5.0])
    np.testing.assert_allclose(found, np.diag([0.0, 2.0 * slope]), atol=1e-12)
    found = flat.lacking_forces(at, metric, v)
    np.testing.assert_allclose(found, [-slope * 1.1**2 / 2, 0.0], atol=1e-12)
    with pytest.raises(ShapeError, match="metric"):
        flat.non_metricity(at, lambda x: ca.SX.eye(3), v)


def test_connections_of_robots_are_admissible() -> None:
    robot = cc.robots.planar_floater()
    q = ca.SX.sym("q", robot.nq)
    motion = Connection.of_metric(q, robot.mass_matrix(q), Frame.of(robot))
    rng = np.random.default_rng(3)
    at, v = robot.random(rng), rng.normal(size=robot.nv)
    lacking = motion.lacking_forces(at, robot.mass_matrix, v)
    np.testing.assert_allclose(lacking, 0.0, atol=1e-10)
    plain = Connection(q, frame=Frame.of(robot))
    rate = (robot.mass_matrix(robot.integrate(at, 1e-6 * v)) - robot.mass_matrix(at)) / 1e-6
    # With zero symbols the law is pdot = f, which lacks the bias less the change of inertia.
    expected = robot.bias(at, v) - rate @ v
    found = plain.lacking_forces(at, robot.mass_matrix, v)
    np.testing.assert_allclose(found, expected, atol=1e-4)
