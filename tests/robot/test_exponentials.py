"""Product of exponentials and its Jacobians: the case study of section 2.5, and general laws."""

import json
from pathlib import Path

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import block_diag

from concur import robot as kinematics
from concur import robots
from concur.errors import ShapeError, UnknownNameError
from concur.robot import joints
from tests.groups.oracles import conjugation

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
    """Thesis: Theorem 2.2.3, (2.2.6), (3.3.30)."""
    s, numbers = reference(state)
    for tip, key in zip(TIPS, ("FK5", "FK6"), strict=True):
        np.testing.assert_allclose(crawler.forward(s, tip), numbers[key], rtol=0, atol=1e-13)
        q = crawler.configuration(s)
        np.testing.assert_allclose(crawler.pose(q, tip), numbers[key], rtol=0, atol=1e-13)
        np.testing.assert_allclose(crawler.screw_parameters(q), s, rtol=0, atol=1e-13)


@STATES
def test_jacobians_of_the_case_study(crawler, state):
    """Thesis: Theorem 2.3.1, (2.3.7)."""
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


# --- laws --------------------------------------------------------------------------------------

GENERIC = reference("A")[0]


@pytest.mark.parametrize("observer", [None, "spacecraft", "ball", "right_tip"])
@pytest.mark.parametrize("other", [None, "spacecraft", "vehicle", "arm", "right_tip"])
def test_relative_twists_are_differences_of_poses(crawler, observer, other):
    """Thesis: (2.1.1), (2.3.12)."""
    s = GENERIC
    rates = np.random.default_rng(2).normal(size=15)

    def pose(x, body):
        return np.eye(4) if body is None else crawler.forward(x, body)

    def relative(h):
        return np.linalg.solve(pose(s + h * rates, other), pose(s + h * rates, "left_tip"))

    spatial = vee(slope(relative) @ np.linalg.inv(relative(0.0)))
    expected = np.linalg.solve(
        conjugation(pose(s, observer)), conjugation(pose(s, other)) @ spatial
    )
    actual = crawler.screw_jacobian(s, "left_tip", seen_from=observer, relative_to=other) @ rates
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-10)


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
