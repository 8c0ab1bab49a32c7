"""Rotation matrices and rotation vectors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from concur.groups import so3

from .oracles import (
    LONG_ROTATION_VECTORS,
    ROTATION_VECTORS,
    SLANTED,
    cross_matrix,
    integral,
    near,
    often,
    vectors,
)

ALL = {**ROTATION_VECTORS, **LONG_ROTATION_VECTORS}
every_vector = pytest.mark.parametrize("w", ALL.values(), ids=ALL.keys())
short = vectors(3, 1.8)


@often
@given(vectors(3, 5.0), vectors(3, 5.0))
def test_skew_is_the_cross_product(w, x):
    near(so3.skew(w) @ x, np.cross(w, x))


@often
@given(vectors(3, 5.0))
def test_vee_inverts_skew_and_ignores_symmetric_parts(w):
    np.testing.assert_array_equal(so3.vee(so3.skew(w)), w)
    near(so3.vee(so3.skew(w) + np.array([[1, 2, 3], [2, 5, 7], [3, 7, 4.0]])), w)


@every_vector
def test_exp_is_the_matrix_exponential(w):
    near(so3.exp(w), expm(cross_matrix(w)))
    near(so3.exp(w), Rotation.from_rotvec(w).as_matrix(), 2e-15)


@often
@given(short)
def test_log_inverts_exp(w):
    near(so3.log(so3.exp(w)), w, 1e-13)


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6, 1e-8, 1e-10])
def test_log_is_accurate_near_the_half_turn(gap):
    w = (np.pi - gap) * SLANTED
    near(so3.log(so3.exp(w)), w, 1e-15)


@pytest.mark.parametrize("size", [1e-3, 1e-9, 1e-100, 1e-170, 1e-300])
def test_log_is_accurate_relative_to_a_small_angle(size):
    w = size * SLANTED
    np.testing.assert_allclose(so3.log(so3.exp(w)), w, rtol=1e-14)


@pytest.mark.parametrize(
    "axis", [*np.eye(3), *-np.eye(3), SLANTED, [0.6, 0.8, 0], [0, -0.6, 0.8], [1e-8, 0, 1]]
)
def test_log_of_a_half_turn_is_one_of_its_two_logarithms(axis):
    axis = np.array(axis) / np.linalg.norm(axis)
    rotation = 2 * np.outer(axis, axis) - np.eye(3)
    w = so3.log(rotation)
    assert np.linalg.norm(w) == pytest.approx(np.pi, abs=1e-14)
    near(abs(w @ axis), np.pi, 1e-15)
    near(so3.exp(w), rotation, 2e-15)


@every_vector
def test_differentials_are_integrals(w):
    near(so3.dexp_spatial(w), integral(cross_matrix(w)))
    near(so3.dexp_body(w), integral(-cross_matrix(w)))


@pytest.mark.parametrize(
    "w",
    [*ROTATION_VECTORS.values(), LONG_ROTATION_VECTORS["near a turn"]],
    ids=[*ROTATION_VECTORS, "near a turn"],
)
def test_inverse_differentials(w):
    near(so3.dexp_spatial_inverse(w) @ integral(cross_matrix(w)), np.eye(3))
    near(so3.dexp_body_inverse(w) @ integral(-cross_matrix(w)), np.eye(3))
