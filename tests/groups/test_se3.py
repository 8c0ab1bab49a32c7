"""Rigid motions against matrix exponentials, conjugations and commutators."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from concur.groups import se3

from .oracles import (
    LONG_TWISTS,
    SLANTED,
    TWISTS,
    bracket,
    conjugation,
    cross_matrix,
    integral,
    near,
    often,
    pose_of,
    twist_matrix,
    unit_quaternions,
    vectors,
)

ALL = {**TWISTS, **LONG_TWISTS}
every_twist = pytest.mark.parametrize("twist", ALL.values(), ids=ALL.keys())


@often
@given(vectors(6, 5.0))
def test_hat_and_vee(twist):
    np.testing.assert_array_equal(se3.hat(twist), twist_matrix(twist))
    np.testing.assert_array_equal(se3.vee(se3.hat(twist)), twist)


@every_twist
def test_exp_is_the_matrix_exponential(twist):
    near(se3.exp(twist), expm(twist_matrix(twist)))


@pytest.mark.parametrize(
    "twist",
    [t for name, t in TWISTS.items() if "half turn" not in name],
    ids=[name for name in TWISTS if "half turn" not in name],
)
def test_log_inverts_exp(twist):
    near(se3.log(pose_of(twist)), twist, 2e-14)
    near(se3.log(se3.exp(twist)), twist, 2e-14)


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
def test_log_is_accurate_near_the_half_turn(gap):
    twist = np.array([1.0, 2.0, 3.0, *((np.pi - gap) * SLANTED)])
    near(se3.log(se3.exp(twist)), twist, 5e-15)


@pytest.mark.parametrize("axis", [*np.eye(3), *-np.eye(3), SLANTED, np.array([0.6, 0, -0.8])])
def test_log_of_a_half_turn_is_one_of_its_two_logarithms(axis):
    pose = np.eye(4)
    pose[:3, :3] = 2 * np.outer(axis, axis) - np.eye(3)
    pose[:3, 3] = 1.0, 2.0, 3.0
    twist = se3.log(pose)
    near(abs(twist[3:] @ axis), np.pi, 1e-15)
    near(expm(twist_matrix(twist)), pose, 1e-13)


@pytest.mark.parametrize("twist", LONG_TWISTS.values(), ids=LONG_TWISTS.keys())
def test_log_takes_the_shorter_way(twist):
    shorter = se3.log(se3.exp(twist))
    assert np.linalg.norm(shorter[3:]) <= np.pi
    near(expm(twist_matrix(shorter)), expm(twist_matrix(twist)), 1e-12)


@often
@given(vectors(3, 5.0), unit_quaternions())
def test_pose(translation, q):
    pose = se3.pose(translation, q)
    np.testing.assert_array_equal(pose[:3, 3], translation)
    np.testing.assert_array_equal(pose[3], [0, 0, 0, 1])
    near(pose[:3, :3], Rotation.from_quat(q).as_matrix(), 1e-14)


@every_twist
def test_adjoint_is_conjugation(twist):
    near(se3.adjoint(pose_of(twist)), conjugation(pose_of(twist)), 1e-13)


@often
@given(vectors(6, 5.0))
def test_ad_is_the_commutator(twist):
    near(se3.ad(twist), bracket(twist), 1e-14)


@every_twist
def test_adjoint_of_exp_is_exp_of_ad(twist):
    """Thesis: (2.3.9)."""
    near(se3.adjoint(se3.exp(twist)), expm(bracket(twist)))


@every_twist
def test_differentials_are_integrals(twist):
    near(se3.dexp_spatial(twist), integral(bracket(twist)))
    near(se3.dexp_body(twist), integral(-bracket(twist)))


@pytest.mark.parametrize(
    "twist",
    [*TWISTS.values(), LONG_TWISTS["near a turn"]],
    ids=[*TWISTS, "near a turn"],
)
def test_inverse_differentials(twist):
    near(se3.dexp_spatial_inverse(twist) @ integral(bracket(twist)), np.eye(6), 4e-12)
    near(se3.dexp_body_inverse(twist) @ integral(-bracket(twist)), np.eye(6), 4e-12)


@pytest.mark.parametrize("frame", [np.zeros(6), np.array([0.3, -0.2, 0.5, 0.1, 0.7, -0.4])])
def test_error_moves_with_the_inverse_differential(frame):
    """xdot = -B(x) ve for x = log(r^-1 gamma), gamma at rest and r moving with ve."""
    r, gamma = pose_of(frame), pose_of(np.array([0.4, -0.3, 0.2, 0.5, -0.7, 0.9]))
    velocity = np.array([0.3, 0.1, -0.2, 0.2, -0.4, 0.6])
    error = se3.log(np.linalg.inv(r) @ gamma)

    def error_after(time):
        return se3.log(np.linalg.inv(r @ expm(time * twist_matrix(velocity))) @ gamma)

    rate = (error_after(1e-6) - error_after(-1e-6)) / 2e-6
    near(rate, -se3.dexp_spatial_inverse(error) @ velocity, 1e-9)


def test_spatial_differential_is_not_the_printed_one():
    """The thesis's (2.4.22) is the exponential of ad only if w . v is 0 or |w|^2.

    Misprint 001-5.
    """
    twist = np.array([0.4, -0.3, 0.2, 0.5, -0.7, 0.9])
    v, w = twist[:3], twist[3:]
    square, pitch = w @ w, w @ v / (w @ w)
    turn, shift, rotation = cross_matrix(w), cross_matrix(v), expm(cross_matrix(w))
    lie = turn @ shift - shift @ turn
    commutator = (lie @ rotation - rotation @ lie) / square
    upper = se3.adjoint(se3.exp(twist))[:3, 3:]
    near(upper, commutator + pitch * turn @ rotation, 1e-14)
    printed = commutator + pitch * turn @ expm(pitch * turn)
    assert np.max(np.abs(upper - printed)) == pytest.approx(0.2477, abs=1e-4)
