"""Planar motions against the motions of SE(3) they are part of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from concur.groups import se2

from .oracles import (
    LONG_PLANAR_TWISTS,
    PLANAR_TWISTS,
    PLANE,
    bracket,
    conjugation,
    integral,
    near,
    often,
    planar,
    twist_matrix,
    twist_of,
    vectors,
)

ALL = {**PLANAR_TWISTS, **LONG_PLANAR_TWISTS}
every_twist = pytest.mark.parametrize("twist", ALL.values(), ids=ALL.keys())
short_twist = pytest.mark.parametrize("twist", PLANAR_TWISTS.values(), ids=PLANAR_TWISTS.keys())
poses = vectors(3, 4.0)
GAPS = [1e-2, 1e-5, 1e-10, 0.0]


def restricted(matrix):
    return matrix[np.ix_(PLANE, PLANE)]


@every_twist
def test_exp_is_the_matrix_exponential(twist):
    pose = se2.exp(twist)
    assert pose[2] == twist[2]
    near(se2.to_pose(pose), expm(twist_matrix(planar(twist))))


@short_twist
def test_log_inverts_exp(twist):
    near(se2.log(se2.exp(twist)), twist, 1e-14)


@often
@given(vectors(2, 5.0), st.floats(-3.1, 3.1), st.integers(-5, 5))
def test_log_takes_the_angle_modulo_a_turn(position, theta, turns):
    pose = np.array([*position, theta + 2 * np.pi * turns])
    twist = se2.log(pose)
    assert twist[2] == pytest.approx(theta, abs=2e-14)
    near(expm(twist_matrix(planar(twist))), se2.to_pose(pose), 1e-12)


@pytest.mark.parametrize("gap", GAPS)
@pytest.mark.parametrize("sign", [1, -1])
def test_log_at_the_half_turn(gap, sign):
    pose = np.array([1.0, 2.0, sign * (np.pi - gap)])
    twist = se2.log(pose)
    assert twist[2] == pytest.approx(pose[2], abs=1e-15)
    near(se2.exp(twist), pose, 1e-14)


@often
@given(poses, poses)
def test_compose_is_the_product_of_poses(a, b):
    near(se2.to_pose(se2.compose(a, b)), se2.to_pose(a) @ se2.to_pose(b), 1e-14)


@often
@given(vectors(3, 3.1))
def test_from_pose_inverts_to_pose(pose):
    near(se2.from_pose(se2.to_pose(pose)), pose, 1e-15)


@often
@given(poses, vectors(3, 2.0))
def test_rate_has_the_given_body_twist(pose, twist):
    step = 1e-6
    rate = se2.rate(pose, twist)
    slope = (se2.to_pose(pose + step * rate) - se2.to_pose(pose - step * rate)) / (2 * step)
    near(twist_of(np.linalg.solve(se2.to_pose(pose), slope)), planar(twist), 1e-8)


@often
@given(poses)
def test_adjoint_is_conjugation(pose):
    near(se2.adjoint(pose), restricted(conjugation(se2.to_pose(pose))), 1e-13)


@often
@given(vectors(3, 5.0))
def test_ad_is_the_bracket(twist):
    np.testing.assert_array_equal(se2.ad(twist), restricted(bracket(planar(twist))))


@every_twist
def test_differentials_are_integrals(twist):
    operator = restricted(bracket(planar(twist)))
    near(se2.dexp_spatial(twist), integral(operator))
    near(se2.dexp_body(twist), integral(-operator))


@pytest.mark.parametrize(
    "twist",
    [*PLANAR_TWISTS.values(), LONG_PLANAR_TWISTS["near a turn"], np.array([0.3, -0.2, 6.2])],
)
def test_inverse_differentials(twist):
    operator = restricted(bracket(planar(twist)))
    near(se2.dexp_spatial_inverse(twist) @ integral(operator), np.eye(3))
    near(se2.dexp_body_inverse(twist) @ integral(-operator), np.eye(3))
