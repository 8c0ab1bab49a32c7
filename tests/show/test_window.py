from __future__ import annotations

import numpy as np
import pytest

from concur.show._window import clipped, dashed, windows


def straight(length, frames=50):
    """Return points of a robot 1 m long and 0.5 m high on a straight course, and its bases."""
    bases = np.linspace([0.0, 0.0, 0.1], [length, 0.0, 0.1], frames)
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.2, 0.2) for z in (-0.1, 0.4)])
    return bases[:, None] + corners, bases


@pytest.mark.parametrize("length", [3.0, 30.0])
def test_robot_is_always_in_view_and_the_window_keeps_its_size(length):
    robot, bases = straight(length)
    low, high = windows(robot, np.empty((0, 3)), bases, 0.0, smoothing=4.0)
    assert np.all(robot >= low[:, None])
    assert np.all(robot <= high[:, None])
    np.testing.assert_allclose(high - low, np.tile(high[0] - low[0], (50, 1)))


def test_short_course_is_shown_whole():
    robot, bases = straight(3.0)
    target = np.array([[3.9, 0.0, 0.2]])
    low, high = windows(robot, target, bases, 0.0, smoothing=4.0)
    assert np.ptp(low, axis=0).max() == 0.0
    assert np.all((target[0] > low) & (target[0] < high))


def test_window_follows_the_base_along_a_long_course():
    robot, bases = straight(30.0)
    low, high = windows(robot, np.empty((0, 3)), bases, 0.0, smoothing=4.0)
    size = high[0] - low[0]
    assert 2.0 < size[0] < 3.5
    centre = (low + high) / 2
    assert np.abs(centre[:, 0] - bases[:, 0]).max() < 0.1 * size[0]
    # Across the course there is nothing to follow.
    assert np.ptp(centre[:, 1:], axis=0).max() == 0.0


def test_window_moves_smoothly():
    robot, bases = straight(30.0, frames=200)
    shaken = bases.copy()
    shaken[::2, 0] += 0.1
    low, _ = windows(robot, np.empty((0, 3)), shaken, 0.0, smoothing=4.0)
    jerk, shake = (np.abs(np.diff(x[20:-20, 0], 2)).max() for x in (low, shaken))
    assert jerk < 0.01 * shake


def test_window_stands_on_the_ground_and_ends_above_the_motion():
    robot, bases = straight(30.0)
    low, high = windows(robot, np.empty((0, 3)), bases, 0.0, smoothing=4.0)
    assert np.all(low[:, 2] == 0.0)
    assert 0.5 < high[0, 2] < 0.6


def test_without_a_ground_heights_are_followed_too():
    robot, bases = straight(30.0)
    low, high = windows(robot[..., ::-1], np.empty((0, 3)), bases[:, ::-1], None, smoothing=4.0)
    assert np.all(np.abs((low + high)[:, 2] / 2 - bases[:, 0]) < 0.3)


def test_clipped_curve_has_gaps_outside():
    curve = np.linspace([-1.0, 0.0, 0.0], [2.0, 0.0, 0.0], 31)
    cut = clipped(curve, np.zeros(3), np.ones(3))
    inside = ~np.isnan(cut[:, 0])
    np.testing.assert_array_equal(cut[inside], curve[inside])
    assert cut[inside, 0].min() >= 0.0
    assert cut[inside, 0].max() <= 1.0
    assert inside.sum() in (10, 11)


def test_dashes_have_equal_lengths_and_lie_on_the_curve():
    angle = np.linspace(0.0, np.pi, 2000) ** 2 / np.pi
    curve = np.stack([np.cos(angle), np.sin(angle), np.zeros_like(angle)], axis=1)
    dashes = dashed(curve, np.pi / 10)
    drawn = ~np.isnan(dashes[:, 0])
    np.testing.assert_allclose(np.linalg.norm(dashes[drawn], axis=1), 1.0, atol=1e-5)
    assert np.sum(np.diff(drawn.astype(int)) == -1) == 10
    assert 0.6 < drawn.mean() < 0.8


def test_point_at_rest_has_no_dashes():
    assert dashed(np.ones((5, 3)), 0.1).shape == (1, 3)
