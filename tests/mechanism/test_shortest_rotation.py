"""Frames of planes: orthonormal, with the normal as given, and turned the shortest way from z."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.transform import Rotation

from concur.robot import joints, shortest_rotation

ANGLES = [0.0, 1e-160, 1e-12, 1e-8, 1e-6, 1.3e-6, 1.5e-6, 1e-5, 1e-4, 1e-2, 0.7, 1.5, 1.6, 3.0]
DIRECTIONS = [0.0, 0.4, 2.0, -1.3]


def direction(tilt: float, turn: float, sign: float) -> np.ndarray:
    """Unit vector at an angle from z or from -z."""
    side = np.sin(tilt) * np.array([np.cos(turn), np.sin(turn)])
    return np.array([*side, sign * np.cos(tilt)])


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("tilt", ANGLES)
def test_frames_are_orthonormal_and_keep_the_normal(tilt: float, sign: float) -> None:
    for turn in DIRECTIONS:
        normal = direction(tilt, turn, sign)
        frame = shortest_rotation(normal)
        assert_allclose(frame.T @ frame, np.eye(3), rtol=0.0, atol=2e-15)
        assert np.linalg.det(frame) == pytest.approx(1.0, abs=1e-15)
        assert_allclose(frame[:, 2], normal, rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("tilt", [1.5e-6, 1e-5, 1e-3, 0.5, 2.0, 3.0])
def test_the_turn_is_the_shortest(tilt: float) -> None:
    for turn in DIRECTIONS:
        normal = direction(tilt, turn, -1.0)
        about = np.cross([0.0, 0.0, 1.0], normal)
        angle = np.arctan2(np.linalg.norm(about), normal[2])
        expected = Rotation.from_rotvec(about / np.linalg.norm(about) * angle).as_matrix()
        assert_allclose(shortest_rotation(normal), expected, rtol=0.0, atol=1e-15)


def test_round_off_in_a_normal_does_not_choose_the_axis_of_half_a_turn() -> None:
    # sin(pi) is no zero in floating point.
    for normal in ((0.0, 0.0, -1.0), (np.sin(np.pi), 0.0, -1.0), (0.0, np.sin(np.pi), -1.0)):
        assert_allclose(shortest_rotation(normal), np.diag([1.0, -1.0, -1.0]), atol=1e-15)


@pytest.mark.parametrize("tilt", [1e-7, 3e-6, 1e-5])
def test_planar_joints_with_normals_near_minus_z_move_in_their_plane(tilt: float) -> None:
    normal = direction(tilt, 0.4, -1.0)
    for joint in (joints.Planar(normal), joints.PlanarPrismatic(normal), joints.Sliding(normal)):
        linear = joint.basis[:3][:, [0, 1]]
        assert_allclose(linear.T @ linear, np.eye(2), rtol=0.0, atol=2e-15)
        assert_allclose(linear.T @ normal, 0.0, atol=1e-15)


def test_planes_are_horizontal_by_default():
    for joint in (joints.Planar, joints.PlanarPrismatic, joints.Sliding):
        assert joint() == joint((0, 0, 1))
