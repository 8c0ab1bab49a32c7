"""Product of exponentials and its Jacobians: the case study of section 2.5, and general laws."""

import json
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import block_diag, expm
from scipy.spatial.transform import Rotation

from concur import robot as kinematics
from concur import robots
from concur.errors import ShapeError, UnknownNameError
from concur.robot import Body, Inertia, Mechanism, Pose, joints

DATA = Path(__file__).parents[1] / "data" / "kinematics_reference.json"
REFERENCE = json.loads(DATA.read_text(encoding="utf-8"))
STATES = pytest.mark.parametrize("state", "ABCD")
TIPS = ("left_tip", "right_tip")
ROLLING = {"vehicle": [[0.0, 1.0, 0.0]]}
SHARED = list(range(13))  # columns of the joints that carry both tips
COLUMNS = {"left_tip": [*SHARED, 13], "right_tip": [*SHARED, 14]}


@pytest.fixture(scope="module")
def crawler():
    """Vehicle that rolls on a free spacecraft and carries an arm with two tips, section 2.5."""
    return robots.orbital_crawler()


def reference(state):
    numbers = REFERENCE["states"][state]
    s = np.concatenate([numbers["s"][str(joint)] for joint in range(1, 7)])
    return s, {key: np.array(value) for key, value in numbers.items() if key not in ("s", "fro")}


def number(function, s):
    """Value of a function of expressions."""
    symbol = ca.SX.sym("s", len(s))
    return np.array(ca.Function("f", [symbol], [ca.densify(function(symbol))])(s))


def skew(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0.0]])


def adjoint(pose):
    R, p = pose[:3, :3], pose[:3, 3]
    return np.block([[R, skew(p) @ R], [np.zeros((3, 3)), R]])


def ad(twist):
    v, w = skew(twist[:3]), skew(twist[3:])
    return np.block([[w, v], [np.zeros((3, 3)), w]])


def vee(matrix):
    return np.array([*matrix[:3, 3], matrix[2, 1], matrix[0, 2], matrix[1, 0]])


def slope(function, h=2e-3):
    """Derivative at zero of a smooth function of one number, to fourth order."""

    def half(h):
        return (function(h) - function(-h)) / (2 * h)

    return (4 * half(h / 2) - half(h)) / 3


def body_maps(robot, s):
    """diag(D_1, ..., D_N)."""
    return block_diag(
        *[kinematics.body_map(body.joint, s[robot.v_slice(body.name)]) for body in robot.bodies]
    )


# --- reference numbers -------------------------------------------------------------------------


def test_joint_screws_at_the_neutral_configuration(crawler):
    for tip, count in zip(TIPS, (5, 6), strict=True):
        columns = crawler.screw_jacobian(np.zeros(15), tip)
        for i in range(1, count + 1):
            body = crawler.bodies[i - 1]
            if crawler.index(body.name) in crawler.path(crawler.index(tip)):
                expected = np.array(REFERENCE["joint_bases_in_A0"][str(i)]).reshape(6, -1)
                found = columns[:, crawler.v_slice(body.name)]
                np.testing.assert_allclose(found, expected, rtol=0, atol=1e-14)


@STATES
def test_forward_kinematics_of_the_case_study(crawler, state):
    """Thesis: (2.2.6)."""
    s, numbers = reference(state)
    for tip, key in zip(TIPS, ("FK5", "FK6"), strict=True):
        np.testing.assert_allclose(crawler.forward(s, tip), numbers[key], rtol=0, atol=1e-13)
        q = crawler.configuration(s)
        np.testing.assert_allclose(crawler.pose(q, tip), numbers[key], rtol=0, atol=1e-13)


@STATES
def test_jacobians_of_the_case_study(crawler, state):
    """Thesis: (2.3.7)."""
    s, numbers = reference(state)
    for tip, key in zip(TIPS, ("J5", "J6"), strict=True):
        jacobian = crawler.screw_jacobian(s, tip)
        own = COLUMNS[tip]
        np.testing.assert_allclose(jacobian[:, own], numbers[key], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(np.delete(jacobian, own, axis=1), 0.0)


@STATES
def test_rolling_in_the_case_study(crawler, state):
    """Thesis: (2.3.13)."""
    s, numbers = reference(state)
    sigma = kinematics.admissible(joints.Planar(), s[6:9], ROLLING["vehicle"])
    np.testing.assert_allclose(sigma, numbers["Sigma"], rtol=0, atol=1e-13)
    for tip, key in zip(TIPS, ("Jbar5", "Jbar6"), strict=True):
        modified = number(lambda x, b=tip: crawler.modified_jacobian(x, b, ROLLING), s)
        assert modified.shape == (6, 14)
        own = [*range(12), 12 if tip == "left_tip" else 13]
        np.testing.assert_allclose(modified[:, own], numbers[key], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(np.delete(modified, own, axis=1), 0.0)
        # Without rows nothing is constrained.
        free = number(lambda x, b=tip: crawler.modified_jacobian(x, b), s)
        np.testing.assert_array_equal(free, crawler.screw_jacobian(s, tip))


@STATES
def test_two_branches_as_an_array_and_as_a_map(crawler, state):
    """Thesis: (2.3.13). Misprint 001-3."""
    s, numbers = reference(state)
    array = number(lambda x: crawler.branch_jacobians(x, TIPS, ROLLING), s)
    stacked = number(lambda x: crawler.stacked_jacobian(x, TIPS, ROLLING), s)
    expected = block_diag(numbers["Jbar5"], numbers["Jbar6"])
    np.testing.assert_allclose(array, expected, rtol=0, atol=1e-12)
    norm = REFERENCE["states"][state]["fro"]["Jbar"]
    assert np.linalg.norm(array) == pytest.approx(norm, abs=1e-12)
    assert stacked.shape == (12, 14)
    assert np.linalg.norm(stacked) == pytest.approx(norm, abs=1e-12)
    assert np.linalg.matrix_rank(array, tol=1e-9) == 12
    assert np.linalg.matrix_rank(stacked, tol=1e-9) == 8
    # The array agrees with the map where the shared velocities are the same.
    speeds = np.random.default_rng(1).normal(size=14)
    repeated = np.concatenate([speeds[:13], speeds[:12], speeds[13:]])
    np.testing.assert_allclose(array @ repeated, stacked @ speeds, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("state", "slips"), [("A", True), ("B", True), ("C", False), ("D", True)])
def test_what_the_case_study_prints_is_not_rolling(crawler, state, slips):
    s, numbers = reference(state)
    side = kinematics.body_map(joints.Planar(), s[6:9])[1]
    np.testing.assert_allclose(side @ numbers["Sigma"], 0.0, atol=1e-13)
    assert (np.abs(side @ numbers["Sigma_literal"]).max() > 0.1) == slips
    # The printed matrix is right wherever the heading is the initial one.
    assert (np.abs(side @ numbers["Sigma_printed"]).max() > 0.1) == (state in "AD")
    jacobians = [crawler.screw_jacobian(s, tip)[:, COLUMNS[tip]] for tip in TIPS]
    for name in ("literal", "printed"):
        rates = block_diag(np.eye(6), numbers[f"Sigma_{name}"], np.eye(5))
        norm = np.sqrt(sum(np.linalg.norm(jacobian @ rates) ** 2 for jacobian in jacobians))
        expected = REFERENCE["states"][state]["fro"][f"Jbar_{name}"]
        assert norm == pytest.approx(expected, abs=1e-12)


@STATES
def test_screw_parameters_of_the_case_study(crawler, state):
    s, _ = reference(state)
    q = crawler.configuration(s)
    assert q.shape == (17,)
    np.testing.assert_allclose(crawler.screw_parameters(q), s, rtol=0, atol=1e-13)


# --- laws --------------------------------------------------------------------------------------

GENERIC = reference("A")[0]


def test_at_rest_the_poses_are_the_initial_ones(crawler):
    for i, body in enumerate(crawler.bodies, start=1):
        expected = REFERENCE["absolute_initial_poses"][str(i)]
        pose = crawler.forward(np.zeros(15), body.name)
        np.testing.assert_allclose(pose, expected, rtol=0, atol=1e-15)


def test_another_inertial_frame_moves_poses_and_twists(crawler):
    g = expm(np.array([[0, -0.5, 0.2, 1], [0.5, 0, -0.9, 2], [-0.2, 0.9, 0, -3], [0, 0, 0, 0]]))
    base = crawler.bodies[0]
    rotation = Rotation.from_matrix(g[:3, :3] @ base.placement.rotation_matrix)
    placement = Pose((g @ base.placement.matrix)[:3, 3], rotation.as_quat())
    moved = Mechanism(
        "moved", [Body(base.name, base.joint, None, placement, base.inertia), *crawler.bodies[1:]]
    )
    for tip in TIPS:
        np.testing.assert_allclose(
            moved.forward(GENERIC, tip), g @ crawler.forward(GENERIC, tip), atol=1e-14
        )
        np.testing.assert_allclose(
            moved.screw_jacobian(GENERIC, tip),
            adjoint(g) @ crawler.screw_jacobian(GENERIC, tip),
            atol=1e-13,
        )


def test_arm_of_revolute_joints_has_brocketts_screws():
    """Three revolute joints and a slide: axes and points in space, nothing else."""
    inertia = Inertia(1.0, moments=(1.0, 1.0, 1.0))
    arm = Mechanism(
        "arm",
        [
            Body("base", joints.Fixed(), placement=Pose((0, 0, 0.1))),
            Body("turret", joints.Revolute((0, 0, 1)), "base", Pose((0, 0, 0.2)), inertia),
            Body("upper", joints.Revolute((0, 1, 0)), "turret", Pose((0.1, 0, 0.3)), inertia),
            Body("slide", joints.Prismatic((1, 0, 0)), "upper", Pose((0.5, 0, 0)), inertia),
            Body("hand", joints.Revolute((1, 0, 0)), "slide", Pose((0.2, 0.1, 0)), inertia),
        ],
    )
    s = np.array([0.4, -1.1, 0.3, 2.5])
    points = [(0, 0, 0.3), (0.1, 0, 0.6), None, (0.8, 0.1, 0.6)]
    axes = np.array([(0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 0, 0)])
    moved, columns = np.eye(4), []
    for angle, point, axis in zip(s, points, axes, strict=True):
        screw = (
            np.array([*axis, 0, 0, 0])
            if point is None
            else np.array([*np.cross(point, axis), *axis])
        )
        columns.append(adjoint(moved) @ screw)
        matrix = np.zeros((4, 4))
        matrix[:3, :3], matrix[:3, 3] = skew(screw[3:]), screw[:3]
        moved = moved @ expm(angle * matrix)
    moved[:3, 3] += moved[:3, :3] @ (0.8, 0.1, 0.6)
    np.testing.assert_allclose(arm.forward(s, "hand"), moved, rtol=0, atol=1e-14)
    np.testing.assert_allclose(
        arm.screw_jacobian(s, "hand"), np.column_stack(columns), rtol=0, atol=1e-14
    )
    np.testing.assert_array_equal(arm.configuration(s), s)


@pytest.mark.parametrize("observer", [None, "spacecraft", "ball", "right_tip"])
@pytest.mark.parametrize("other", [None, "spacecraft", "vehicle", "arm", "right_tip"])
def test_relative_twists_are_differences_of_poses(crawler, observer, other):
    """Thesis: (2.1.1)."""
    s = GENERIC
    rates = np.random.default_rng(2).normal(size=15)

    def pose(x, body):
        return np.eye(4) if body is None else crawler.forward(x, body)

    def relative(h):
        return np.linalg.solve(pose(s + h * rates, other), pose(s + h * rates, "left_tip"))

    spatial = vee(slope(relative) @ np.linalg.inv(relative(0.0)))
    expected = np.linalg.solve(adjoint(pose(s, observer)), adjoint(pose(s, other)) @ spatial)
    actual = crawler.screw_jacobian(s, "left_tip", seen_from=observer, relative_to=other) @ rates
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-10)


def test_twists_add_up_along_the_path(crawler):
    """Thesis: (2.3.12)."""
    whole = crawler.screw_jacobian(GENERIC, "left_tip")
    first = crawler.screw_jacobian(GENERIC, "ball")
    rest = crawler.screw_jacobian(GENERIC, "left_tip", relative_to="ball")
    np.testing.assert_allclose(first + rest, whole, rtol=0, atol=1e-15)
    np.testing.assert_array_equal(rest[:, :12], 0.0)
    np.testing.assert_array_equal(crawler.screw_jacobian(GENERIC, "ball", relative_to="ball"), 0.0)


def test_columns_do_not_depend_on_later_joints(crawler):
    other = GENERIC.copy()
    other[9:] += 0.7
    a, b = (crawler.screw_jacobian(s, "left_tip") for s in (GENERIC, other))
    np.testing.assert_array_equal(a[:, :9], b[:, :9])
    assert np.abs(a[:, 12:14] - b[:, 12:14]).max() > 0.1


@STATES
def test_body_form_is_the_body_jacobian_of_the_recursion(crawler, state):
    """Thesis: (2.3.11)."""
    s = reference(state)[0]
    q = crawler.configuration(s)
    for body in crawler.bodies:
        np.testing.assert_allclose(
            crawler.screw_jacobian(s, body.name, seen_from=body.name),
            crawler.jacobian(q, body.name) @ body_maps(crawler, s),
            rtol=0,
            atol=1e-13,
        )


def test_derivatives_of_spatial_and_body_columns(crawler):
    """Sdot_j = ad(V_j) S_j, and Jdot_j = -ad(V of the tip relative to j) J_j in body form."""
    s, v = GENERIC, np.random.default_rng(3).normal(size=15)
    rates = np.linalg.solve(body_maps(crawler, s), v)

    def columns(x, seen_from=None):
        jacobian = crawler.screw_jacobian(x, "left_tip", seen_from=seen_from)
        return jacobian @ np.linalg.inv(body_maps(crawler, x))

    spatial, body = columns(s), columns(s, "left_tip")
    spatial_rate = slope(lambda h: columns(s + h * rates))
    body_rate = slope(lambda h: columns(s + h * rates, "left_tip"))
    for link in crawler.bodies[:5]:
        own = crawler.v_slice(link.name)
        until, after = slice(0, own.stop), slice(own.stop, None)
        np.testing.assert_allclose(
            spatial_rate[:, own],
            ad(spatial[:, until] @ v[until]) @ spatial[:, own],
            rtol=0,
            atol=2e-9,
        )
        np.testing.assert_allclose(
            body_rate[:, own], -ad(body[:, after] @ v[after]) @ body[:, own], rtol=0, atol=2e-9
        )


def test_derivatives_are_finite_at_rest(crawler):
    s = ca.SX.sym("s", 15)
    pose = crawler.forward(s, "left_tip")
    stacked = crawler.stacked_jacobian(s, TIPS, ROLLING)
    for expression in (pose, stacked):
        flat = ca.densify(ca.vec(expression))
        total = ca.dot(flat, ca.DM(np.linspace(0.5, 1.5, flat.numel())))
        gradient = ca.gradient(total, s)
        along = ca.jtimes(gradient, s, ca.DM(np.linspace(-1, 1, 15)))  # Hessian times a vector
        function = ca.Function("f", [s], [flat, ca.jacobian(flat, s), gradient, along])
        for point in (np.zeros(15), 1e-9 * GENERIC, GENERIC):
            assert all(np.isfinite(np.array(ca.densify(x))).all() for x in function(point))


def test_wrong_names_are_told(crawler):
    with pytest.raises(UnknownNameError, match="left_tip"):
        crawler.forward(GENERIC, "left_tp")
    with pytest.raises(UnknownNameError, match="vehicle"):
        crawler.screw_jacobian(GENERIC, "left_tip", seen_from="vehicl")
    with pytest.raises(UnknownNameError, match="vehicle"):
        crawler.screw_jacobian(GENERIC, "left_tip", relative_to="vehicl")
    s = ca.SX.sym("s", 15)
    with pytest.raises(UnknownNameError, match="vehicle"):
        crawler.modified_jacobian(s, "left_tip", {"vehicl": [[0, 1, 0]]})
    with pytest.raises(ShapeError, match="rows"):
        crawler.modified_jacobian(s, "left_tip", {"vehicle": [[0, 1]]})
    with pytest.raises(ShapeError):
        crawler.forward(GENERIC[:14], "left_tip")


def test_one_freedom_behind_fixed_joints():
    door = Mechanism(
        "door",
        [
            Body("wall", joints.Fixed(), placement=Pose((0, 0, 1))),
            Body("frame", joints.Fixed(), "wall", Pose((1, 0, 0))),
            Body(
                "door",
                joints.Revolute((0, 0, 1)),
                "frame",
                inertia=Inertia(1.0, moments=(1, 1, 1)),
            ),
            Body("handle", joints.Fixed(), "door", Pose((0.5, 0, 0))),
        ],
    )
    for body in ("wall", "frame", "door", "handle"):
        np.testing.assert_allclose(
            door.forward([0.5], body), door.pose([0.5], body), rtol=0, atol=1e-15
        )
    np.testing.assert_allclose(
        door.screw_jacobian([0.5], "handle")[:, 0], [0, -1, 0, 0, 0, 1], rtol=0, atol=1e-15
    )
    np.testing.assert_array_equal(door.screw_jacobian([0.5], "frame"), np.zeros((6, 1)))
    np.testing.assert_array_equal(door.screw_parameters(door.configuration([7.0])), [7.0])
