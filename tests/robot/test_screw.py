"""Screw parameters of single joints, (2.1.3) to (2.1.5), against matrix exponentials."""

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

from concur import robot as kinematics
from concur.errors import NonFiniteError, ShapeError, SingularConfigurationError
from concur.robot import Body, Inertia, Mechanism, helical_plane, joints
from tests.groups.oracles import bracket, twist_matrix

SLANTED = (0.6, -0.3, 1.1)
ABELIAN = [
    joints.Fixed(),
    joints.Revolute(SLANTED),
    joints.Prismatic(SLANTED),
    joints.Helical(SLANTED, -0.3),
    joints.Cylindrical(SLANTED),
    joints.Sliding(SLANTED),
    joints.Cartesian(),
]
TURNING = [
    joints.Planar(),
    joints.Planar(SLANTED),
    joints.PlanarPrismatic(),
    joints.PlanarPrismatic(SLANTED),
    joints.Spherical(),
    joints.Free(),
]
JOINTS = ABELIAN + TURNING
ANGLES = [0.0, 1e-170, 1e-9, 1e-5, 1e-3, 0.5, 2.0 - 1e-12, 2.0, 2.0 + 1e-12, 3.1, 5.9, 6.2]


def label(joint):
    slanted = getattr(joint, "normal", getattr(joint, "axis", (0.0,)))[0] != 0.0
    return type(joint).__name__ + "-slanted" * slanted


every_joint = pytest.mark.parametrize("joint", JOINTS, ids=label)
turning_joint = pytest.mark.parametrize("joint", TURNING, ids=label)


def integral(operator):
    """Integral of exp(x operator) over x from 0 to 1, as a block of a larger exponential."""
    n = len(operator)
    blocks = np.block([[operator, np.eye(n)], [np.zeros((n, 2 * n))]])
    return expm(blocks)[:n, n:]


def body_map(joint, s):
    basis = joint.basis
    return np.linalg.pinv(basis) @ integral(-bracket(basis @ s)) @ basis


def pose(joint, q):
    rotation, translation = joint.pose(ca.SX(ca.DM(q)))
    matrix = np.eye(4)
    matrix[:3, :3], matrix[:3, 3] = ca.evalf(rotation), np.array(ca.evalf(translation)).ravel()
    return matrix


def with_angle(joint, angle, rng, span=1.5):
    """Screw parameters of order one with a given rotation angle."""
    s = rng.uniform(-span, span, joint.nv)
    turning = joint.basis[3:] @ s
    rotates = np.abs(joint.basis[3:]).max(axis=0, initial=0.0) > 0
    if rotates.any():
        s[rotates] *= angle / np.linalg.norm(turning)
    return s


def samples(joint, angles=ANGLES, largest=np.inf):
    """Points at the given angles, and for SE(3) those where directions are special."""
    rng = np.random.default_rng(3)
    points = [with_angle(joint, angle, rng) for angle in angles]
    points += [np.zeros(joint.nv)]
    if type(joint) is joints.Free:
        points += [
            np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.0]),
            np.array([1.0, 2.0, 3.0, 0.0, 0.0, 6.2]),
            np.array([0.0, 0.0, 0.0, 1.0, 2.0, 0.5]),
            np.array([1.0, 2.0, 0.5, 1.0, 2.0, 0.5]),
            np.array([2.0, -1.0, 0.0, 1.0, 2.0, 0.5]),
        ]
    return [s for s in points if np.linalg.norm(joint.basis[3:] @ s) <= largest]


def single(joint):
    return Mechanism("single", [Body("body", joint, inertia=Inertia(1.0, moments=(1, 1, 1)))])


def inverse_map(joint, s):
    """Inverse of the body map: all velocities are admissible without rows."""
    return kinematics.admissible(joint, s, np.zeros((0, joint.nv)))


@every_joint
def test_coordinates_and_rates_are_those_of_the_exponential(joint):
    """Thesis: Theorem 2.1.5, (2.1.3), (2.1.4)."""
    robot, h = single(joint), 1e-3
    for s in samples(joint):
        q, exact = robot.configuration(s), body_map(joint, s)
        np.testing.assert_allclose(pose(joint, q), expm(twist_matrix(joint.basis @ s)), atol=2e-14)
        np.testing.assert_allclose(kinematics.body_map(joint, s), exact, atol=3e-14)
        np.testing.assert_allclose(inverse_map(joint, s) @ exact, np.eye(joint.nv), atol=2e-12)
        if np.linalg.norm(joint.basis[3:] @ s) <= np.pi - 1e-10:
            np.testing.assert_allclose(robot.screw_parameters(q), s, rtol=0, atol=1e-13)
        for unit in np.eye(joint.nv):
            ahead, behind, near, back = (
                robot.configuration(s + step * unit) for step in (h, -h, h / 2, -h / 2)
            )
            slope = (8 * (near - back) - (ahead - behind)) / (6 * h)
            np.testing.assert_allclose(robot.rate(q, exact @ unit), slope, atol=1e-11)


# --- charts of the thesis: (2.1.3) in other coordinates ----------------------------------------


def c(t):
    """Stumpff quotients c1, c2, c3 of an angle, by their series."""
    series = [[1.0], [0.5], [1 / 6]]
    for k, terms in enumerate(series, start=1):
        for i in range(1, 60):
            terms.append(-terms[-1] * t / ((2 * i + k - 1) * (2 * i + k)))
    return [sum(terms) for terms in series]


def planar_charts(s):
    """Coordinates, Z and W of SE(2) in the charts of section 2.5 (A) and chapter 4 (B)."""
    s1, s2, s3 = s
    c1, c2, c3 = c(s3**2)
    cos, sin = np.cos(s3), np.sin(s3)
    q_a = np.array([c1 * s1 + s3 * c2 * s2, -s3 * c2 * s1 + c1 * s2, s3])
    q_b = np.array([c1 * s1 - s3 * c2 * s2, s3 * c2 * s1 + c1 * s2, s3])
    z_a = np.array(
        [
            [c1, s3 * c2, s1 * s3 * (c3 - c2) + s2 * (c1 - c2)],
            [-s3 * c2, c1, -s1 * (c1 - c2) + s2 * s3 * (c3 - c2)],
            [0, 0, 1],
        ]
    )
    z_b = np.array(
        [
            [c1, -s3 * c2, s1 * s3 * (c3 - c2) - s2 * (c1 - c2)],
            [s3 * c2, c1, s1 * (c1 - c2) + s2 * s3 * (c3 - c2)],
            [0, 0, 1],
        ]
    )
    w_a = np.array([[1, 0, -q_a[1]], [0, 1, q_a[0]], [0, 0, 1]])
    w_b = np.array([[cos, sin, 0], [-sin, cos, 0], [0, 0, 1]])
    return (q_a, z_a, w_a), (q_b, z_b, w_b)


@pytest.mark.parametrize("angle", [0.0, 1e-5, 1.1, -2.9, 5.9])
def test_both_planar_charts_have_the_same_body_map(angle):
    joint, s = joints.Planar(), np.array([0.6, -0.25, angle])
    (q_a, z_a, w_a), (q_b, z_b, w_b) = planar_charts(s)
    np.testing.assert_allclose(single(joint).configuration(s), q_b, atol=1e-14)
    moved = pose(joint, q_b)
    np.testing.assert_allclose(moved[:2, :2] @ q_a[:2], moved[:2, 3], atol=1e-14)
    for z, w in ((z_a, w_a), (z_b, w_b)):
        np.testing.assert_allclose(w @ z, kinematics.body_map(joint, s), atol=1e-14)
    determinant = 2 * (1 - np.cos(angle)) / angle**2 if abs(angle) > 1e-3 else 1.0
    assert np.linalg.det(z_a) == pytest.approx(determinant, abs=1e-10)


# --- where the chart ends ----------------------------------------------------------------------


@pytest.mark.parametrize("joint", ABELIAN, ids=label)
def test_joints_that_commute_are_regular_everywhere(joint):
    """Misprint 001-1."""
    s, robot = np.full(joint.nv, 2 * np.pi), single(joint)
    np.testing.assert_array_equal(kinematics.body_map(joint, s), np.eye(joint.nv))
    np.testing.assert_array_equal(inverse_map(joint, s), np.eye(joint.nv))
    np.testing.assert_array_equal(robot.screw_parameters(robot.configuration(s)), s)


FULL_TURNS = [
    (joints.Planar(), [0.3, -0.8, 2 * np.pi], 1),
    (joints.Planar(), [0.3, -0.8, -4 * np.pi], 1),
    (joints.Spherical(), np.array([0.6, 0.0, 0.8]) * 2 * np.pi, 1),
    (joints.PlanarPrismatic(), [0.3, -0.8, 0.5, 2 * np.pi], 2),
    (joints.Free(), [0.8, 0.5, -0.6, 1.2 * np.pi, 0.0, 1.6 * np.pi], 2),
    (joints.Free(), [0.8, 0.5, 0.6, 3.6 * np.pi, 0.0, 4.8 * np.pi], 4),
]


@pytest.mark.parametrize(("joint", "s", "rank"), FULL_TURNS)
def test_rank_and_refusal_after_full_turns(joint, s, rank):
    s, robot = np.array(s), single(joint)
    assert np.linalg.matrix_rank(kinematics.body_map(joint, s), tol=1e-9) == rank
    with pytest.raises(SingularConfigurationError) as caught:
        kinematics.admissible(joint, s, np.eye(joint.nv)[:1])
    turn = np.linalg.norm(joint.basis[3:] @ s)
    assert caught.value.angle == pytest.approx(turn, abs=1e-12)
    assert caught.value.distance == pytest.approx(0.0, abs=1e-14)
    # The cure works.
    again = robot.screw_parameters(robot.configuration(s))
    np.testing.assert_allclose(
        expm(twist_matrix(joint.basis @ again)),
        expm(twist_matrix(joint.basis @ s)),
        rtol=0,
        atol=1e-13,
    )
    inverse_map(joint, again)


@turning_joint
@pytest.mark.parametrize("turns", [1, 2])
def test_singular_from_a_full_turn_on(joint, turns):
    rng = np.random.default_rng(5)
    for offset in (2e-6, -2e-6, 5e-7, -5e-7):
        s = with_angle(joint, 2 * np.pi * turns + offset, rng)
        if abs(offset) > 1e-6:
            assert np.isfinite(inverse_map(joint, s)).all()
        else:
            with pytest.raises(SingularConfigurationError) as caught:
                inverse_map(joint, s)
            assert caught.value.distance == pytest.approx(abs(offset), abs=1e-13)
    inverse_map(joint, with_angle(joint, 1e-7, rng))


@turning_joint
@pytest.mark.parametrize("angle", [0.0, 1e-9, 3.1, 3.2, 2 * np.pi - 1e-7, 8.0, 17.0])
def test_shortest_parameters_of_a_pose(joint, angle):
    s, robot = with_angle(joint, angle, np.random.default_rng(6)), single(joint)
    short = robot.screw_parameters(robot.configuration(s))
    expected = abs(angle - 2 * np.pi * np.round(angle / (2 * np.pi)))
    assert np.linalg.norm(joint.basis[3:] @ short) == pytest.approx(expected, abs=1e-13)
    moved = expm(twist_matrix(joint.basis @ short))
    np.testing.assert_allclose(moved, expm(twist_matrix(joint.basis @ s)), rtol=0, atol=1e-12)
    if angle < 3.1:
        np.testing.assert_allclose(short, s, rtol=0, atol=1e-13)


# --- no NaN, in values and derivatives ---------------------------------------------------------

SMOOTH = {
    "configuration": lambda joint, s: single(joint).configuration(s),
    "body_map": kinematics.body_map,
    "inverse": inverse_map,
}


def derivatives(expression, variable):
    """Value, forward Jacobian, reverse gradient of a weighted sum, and its Hessian."""
    flat = ca.densify(ca.vec(expression))
    weights = np.random.default_rng(8).uniform(0.5, 1.5, flat.numel())
    total = ca.dot(flat, ca.DM(weights))
    hessian, _ = ca.hessian(total, variable)
    return ca.Function(
        "derivatives",
        [variable],
        [ca.densify(x) for x in (flat, ca.jacobian(flat, variable))]
        + [ca.densify(x) for x in (ca.gradient(total, variable), hessian)],
    )


@turning_joint
@pytest.mark.parametrize("function", SMOOTH.values(), ids=SMOOTH)
def test_values_and_derivatives_are_finite_and_right(function, joint):
    s = ca.SX.sym("s", joint.nv)
    evaluate = derivatives(function(joint, s), s)
    for point in samples(joint, [0.0, 1e-170, 1e-9, 1e-3, 2.0, 2.0 + 1e-12, 5.9], largest=6.0):
        value, jacobian, gradient, hessian = (np.array(x) for x in evaluate(point))
        for part in (value, jacobian, gradient, hessian):
            assert np.isfinite(part).all(), point
        step = 1e-5
        for k, unit in enumerate(np.eye(joint.nv)):
            ahead, behind = evaluate(point + step * unit), evaluate(point - step * unit)
            for i, exact in ((0, jacobian), (2, hessian)):
                slope = np.array(ahead[i] - behind[i])[:, 0] / (2 * step)
                size = 1.0 + np.abs(exact).max()
                np.testing.assert_allclose(slope, exact[:, k], rtol=0, atol=3e-8 * size)


def test_bad_input_is_named():
    for function in (kinematics.body_map, inverse_map):
        with pytest.raises(ShapeError, match="screw parameters of a Planar joint"):
            function(joints.Planar(), [1.0, 2.0])
    with pytest.raises(NonFiniteError, match="screw parameters of a Spherical joint"):
        kinematics.body_map(joints.Spherical(), [1.0, np.nan, 0.0])
    with pytest.raises(ShapeError, match="rows"):
        kinematics.admissible(joints.Planar(), np.zeros(3), [0, 1, 0])
    with pytest.raises(ShapeError, match="rows"):
        kinematics.admissible(joints.Planar(), np.zeros(3), [[0, 1]])
    with pytest.raises(ShapeError, match="rows"):
        kinematics.admissible(joints.Planar(), np.zeros(3), ca.SX.sym("x", 1, 3))
    with pytest.raises(NonFiniteError, match="rows"):
        kinematics.admissible(joints.Planar(), np.zeros(3), [[0, np.inf, 0]])


# --- the group without exponential chart -------------------------------------------------------


def helical_robot(normal, pitch):
    slide, nut = helical_plane("nut", normal, pitch, inertia=Inertia(1.0, moments=(1, 1, 1)))
    return Mechanism("nut", [slide, nut])


def test_helical_plane_reaches_what_the_exponential_misses():
    pitch, (x, y) = 0.2, (0.7, -0.4)
    robot = helical_robot((0, 0, 1), pitch)
    theta = 2 * np.pi
    expected = np.eye(4)
    expected[:3, 3] = x, y, pitch * theta
    np.testing.assert_allclose(robot.pose([x, y, theta], "nut"), expected, atol=1e-14)
    jacobian = robot.jacobian([x, y, theta], "nut")
    assert np.linalg.svd(jacobian, compute_uv=False)[-1] > 0.9
    # No generator a E1 + b E2 + theta E_p: a full turn always comes back above the axis.
    for a, b in ((1.0, 0.0), (0.0, 1.0), (30.0, -20.0)):
        moved = expm(twist_matrix(np.array([a, b, pitch * theta, 0, 0, theta])))
        np.testing.assert_allclose(moved[:2, 3], 0.0, atol=1e-13)
    # Near the full turn the generator exists and is of size 2 pi |(x, y)| / |theta - 2 pi|.
    near = theta - 1e-4
    v2 = integral(near * np.array([[0.0, -1.0], [1.0, 0.0]]))
    size = np.linalg.norm(np.linalg.solve(v2, [x, y]))
    assert size == pytest.approx(2 * np.pi * np.hypot(x, y) / 1e-4, rel=1e-3)


def test_helical_plane_has_the_poses_and_twists_of_its_subgroup():
    """Thesis: (2.4.21)."""
    rng = np.random.default_rng(9)
    for _ in range(20):
        normal, pitch = rng.normal(size=3), rng.uniform(-0.5, 0.5)
        robot = helical_robot(normal, pitch)
        n = normal / np.linalg.norm(normal)
        plane = joints.Sliding(normal).basis
        screw = np.concatenate([pitch * n, n])
        x, y, theta = rng.uniform(-3, 3, 3) * (1, 1, 3)
        expected = expm(twist_matrix(plane @ [x, y])) @ expm(twist_matrix(theta * screw))
        np.testing.assert_allclose(robot.pose([x, y, theta], "nut"), expected, atol=1e-13)
        algebra = np.column_stack([plane, screw])
        twists = robot.jacobian([x, y, theta], "nut")
        inside = algebra @ np.linalg.pinv(algebra) @ twists
        np.testing.assert_allclose(inside, twists, atol=1e-13)
        assert np.linalg.matrix_rank(twists) == 3


# --- nonholonomic displacement subgroups -------------------------------------------------------

ROLLING = [[0.0, 1.0, 0.0]]
STATE_A = np.array([0.6, -0.25, 1.1])


def rolling_by_hand(s):
    """(2.1.5c)."""
    s1, s2, s3 = s
    gamma = s3 / 2 / np.tan(s3 / 2) if s3 else 1.0
    g = (1 - gamma) / s3**2 if abs(s3) > 1e-2 else 1 / 12 + s3**2 / 720
    return np.array([[gamma, s2 / 2 + g * s1 * s3], [s3 / 2, -s1 / 2 + g * s2 * s3], [0, 1]])


def rolling_literal(s):
    """(2.1.5) with the constraint ydot_2 = 0 of the case study, taken by its letter."""
    s1, s2, s3 = s
    sigma = rolling_by_hand(s)
    gamma = sigma[0, 0]
    g = (1 - gamma) / s3**2 if s3 else 1 / 12
    return np.array([[gamma, -s2 / 2 + g * s1 * s3], [s3 / 2, s1 / 2 + g * s2 * s3], [0, 1]])


def rolling_printed(s):
    """Columns of Z where (2.1.5) wants those of its inverse: what the case study prints."""
    return planar_charts(s)[0][1][:, [0, 2]]


def side_slip(s, sigma):
    """Body velocity vy for unit vx and for unit omega."""
    return body_map(joints.Planar(), s)[1] @ sigma


@pytest.mark.parametrize(
    "s", [STATE_A, [0.6, -0.25, 0.0], [0.3, 2.0, 1e-9], [-2.0, 1.3, -2.9], [1.0, 1.0, 6.2]]
)
@pytest.mark.parametrize("joint", TURNING[:2], ids=label)
def test_rolling_along_x(joint, s):
    sigma = kinematics.admissible(joint, s, ROLLING)
    np.testing.assert_allclose(sigma, rolling_by_hand(s), atol=1e-13)
    np.testing.assert_allclose(side_slip(np.array(s), sigma), 0.0, atol=1e-13)
    twist = body_map(joints.Planar(), np.array(s)) @ sigma
    np.testing.assert_allclose(twist, [[1, 0], [0, 0], [0, 1]], atol=1e-12)
    (q_a, z_a, _), (_, z_b, _) = planar_charts(s)
    np.testing.assert_allclose(z_a @ sigma, [[1, q_a[1]], [0, -q_a[0]], [0, 1]], atol=1e-12)
    theta = s[2]
    np.testing.assert_allclose(
        z_b @ sigma, [[np.cos(theta), 0], [np.sin(theta), 0], [0, 1]], atol=1e-12
    )


def test_rolling_on_a_circle():
    """Thesis: (2.1.5)."""
    speed, turning, time = 0.7, -0.4, 3.0
    sigma = kinematics.admissible(joints.Planar(), time * np.array([speed, 0, turning]), ROLLING)
    np.testing.assert_allclose(sigma @ [speed, turning], [speed, 0, turning], atol=1e-14)


def test_the_printed_and_the_literal_form_slip_sideways():
    """Misprints 001-9, 001-10."""
    printed, literal = rolling_printed(STATE_A), rolling_literal(STATE_A)
    np.testing.assert_allclose(printed[0], [0.8101885091467594, -0.2841587027018754], atol=1e-15)
    np.testing.assert_allclose(printed[1], [-0.49673079870402054, -0.13412530898559397], atol=1e-15)
    np.testing.assert_allclose(literal[0], [0.8970727830714454, 0.18114211832466612], atol=1e-15)
    np.testing.assert_allclose(literal[1], [0.55, 0.27660745069805576], atol=1e-15)
    assert side_slip(STATE_A, literal) == pytest.approx([0.0, 0.3619304058], abs=1e-10)
    assert np.abs(side_slip(STATE_A, printed)).max() > 0.5
    # The printed one is right where the heading is the initial one, and there only.
    straight = np.array([0.6, -0.25, 0.0])
    np.testing.assert_allclose(rolling_printed(straight), rolling_by_hand(straight), atol=1e-15)
    assert np.abs(side_slip(straight, rolling_literal(straight))).max() > 0.5


def test_kernels_are_in_reduced_echelon_form():
    rng = np.random.default_rng(11)
    for _ in range(50):
        count = int(rng.integers(1, 7))
        rank = int(rng.integers(0, count + 1))
        rows = rng.normal(size=(rank + 1, rank)) @ rng.normal(size=(rank, count))
        basis = kinematics.kernel(rows, count)
        assert basis.shape == (count, count - rank)
        np.testing.assert_allclose(rows @ basis, 0.0, atol=1e-9)
        where = [np.flatnonzero((basis == unit).all(axis=1)) for unit in np.eye(count - rank)]
        assert all(len(rows_found) >= 1 for rows_found in where)
    np.testing.assert_array_equal(kinematics.kernel(ROLLING, 3), np.eye(3)[:, [0, 2]])
    np.testing.assert_array_equal(kinematics.kernel(np.zeros((0, 3)), 3), np.eye(3))
    assert kinematics.kernel(np.eye(3), 3).shape == (3, 0)
