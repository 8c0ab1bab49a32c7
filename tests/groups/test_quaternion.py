"""Unit quaternions against SciPy's rotations."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from scipy.spatial.transform import Rotation

from concur.groups import quaternion

from .oracles import (
    LONG_ROTATION_VECTORS,
    QUATERNIONS,
    ROTATION_VECTORS,
    SLANTED,
    differences,
    near,
    often,
    unit_quaternions,
    vectors,
)

every_quaternion = pytest.mark.parametrize("q", QUATERNIONS.values(), ids=QUATERNIONS.keys())
ALL_VECTORS = {**ROTATION_VECTORS, **LONG_ROTATION_VECTORS}


def with_nonnegative_w(q):
    return -q if q[3] < 0 else q


@often
@given(unit_quaternions(), unit_quaternions())
def test_product_is_composition(a, b):
    product = quaternion.multiply(a, b)
    expected = Rotation.from_quat(a) * Rotation.from_quat(b)
    near(quaternion.to_matrix(product), expected.as_matrix(), 1e-14)
    assert np.linalg.norm(product) == pytest.approx(1.0, abs=1e-14)


@often
@given(unit_quaternions(), vectors(3, 5.0))
def test_matrix_and_rotate(q, x):
    expected = Rotation.from_quat(q)
    near(quaternion.to_matrix(q), expected.as_matrix(), 1e-14)
    near(quaternion.rotate(q, x), expected.apply(x), 1e-14)


@often
@given(unit_quaternions())
def test_from_matrix_inverts_to_matrix(q):
    back = quaternion.from_matrix(Rotation.from_quat(q).as_matrix())
    assert back[3] >= 0
    assert abs(back @ q) == pytest.approx(1.0, abs=1e-14)
    near(quaternion.to_matrix(back), Rotation.from_quat(q).as_matrix(), 1e-14)


@pytest.mark.parametrize("largest", range(4))
@pytest.mark.parametrize("other", [0.0, 1e-9, 0.3, -0.3])
def test_from_matrix_whichever_entry_is_largest(largest, other):
    q = np.full(4, other)
    q[largest] = 1.0
    q /= np.linalg.norm(q)
    back = quaternion.from_matrix(Rotation.from_quat(q).as_matrix())
    assert back[3] >= 0
    near(abs(back @ q), 1.0, 1e-15)
    if q[3] > 0:
        near(back, q, 1e-15)


@pytest.mark.parametrize("w", ALL_VECTORS.values(), ids=ALL_VECTORS.keys())
def test_exp(w):
    q = quaternion.exp(w)
    half = np.linalg.norm(w) / 2
    near(q, [*np.sinc(half / np.pi) * w / 2, np.cos(half)], 1e-15)
    near(quaternion.to_matrix(q), Rotation.from_rotvec(w).as_matrix(), 1e-14)


@pytest.mark.parametrize("w", ROTATION_VECTORS.values(), ids=ROTATION_VECTORS.keys())
def test_log_inverts_exp(w):
    near(quaternion.log(quaternion.exp(w)), w, 1e-15)


@often
@given(unit_quaternions())
def test_log_is_the_rotation_vector_of_the_shorter_way(q):
    w = quaternion.log(q)
    assert np.linalg.norm(w) <= np.pi + 1e-14
    near(Rotation.from_rotvec(w).as_matrix(), Rotation.from_quat(q).as_matrix(), 1e-14)
    if abs(q[3]) > 1e-9:
        near(w, Rotation.from_quat(with_nonnegative_w(q)).as_rotvec(), 1e-14)
        near(quaternion.log(-q), w, 1e-15)


@every_quaternion
def test_log_ignores_the_norm(q):
    near(quaternion.log(3.0 * q), quaternion.log(q), 1e-15)
    near(quaternion.log(0.01 * q), quaternion.log(q), 1e-15)


@pytest.mark.parametrize("tangent", np.sqrt(0.05) * np.array([1 - 1e-9, 1 - 1e-15, 1 + 1e-9]))
def test_log_on_both_sides_of_its_seam(tangent):
    near(quaternion.log([*tangent * SLANTED, 1.0]), 2 * np.arctan(tangent) * SLANTED, 5e-16)


@often
@given(unit_quaternions(), vectors(3, 3.0))
def test_rate_gives_the_body_angular_velocity(q, w):
    qdot = quaternion.rate(q, w)
    assert qdot @ q == pytest.approx(0.0, abs=1e-14)
    step = 1e-6
    ahead, behind = (Rotation.from_quat(q) * Rotation.from_rotvec(s * w) for s in (step, -step))
    slope = (ahead.as_matrix() - behind.as_matrix()) / (2 * step)
    through_q = differences(quaternion.to_matrix, q) @ qdot
    near(through_q, slope, 1e-8)
