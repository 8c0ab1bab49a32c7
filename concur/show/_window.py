"""Window of space that an animation shows, and curves clipped to it."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter1d

from concur.show.style import Floats

# Side of a window that follows the robot, relative to the largest extent of the robot.
_SIDE = 2.5
# Smallest height and width of the window, relative to its longest side.
_LEAST_HEIGHT = 0.12
_LEAST_WIDTH = 0.35


def windows(
    robot: Floats, curves: Floats, bases: Floats, ground_height: float | None, smoothing: float
) -> tuple[Floats, Floats]:
    """Return the corners of the window of every frame; all windows have the same size.

    A course shorter than twice the window is shown completely. On a longer one the window
    follows the base along every axis on which the course exceeds it. Points of the robot
    are (k, n, 3), of other curves (m, 3), of the base (f, 3), in the world frame, m.
    """
    extent = float(np.max(np.ptp(robot, axis=1)))
    side = _SIDE * max(extent, 1e-3)
    course = np.concatenate([robot.reshape(-1, 3), curves])
    first, last = course.min(axis=0), course.max(axis=0)
    span = last - first
    # With a ground the window always extends from there to the top of the motion.
    level = ground_height is not None and first[2] > ground_height - 0.1 * extent
    whole = float(np.max(span[:2] if level else span)) <= 2.0 * side
    follows = np.zeros(3, dtype=bool) if whole else span > side
    follows[2] = follows[2] and not level

    size = np.where(follows, side, span + 0.1 * extent)
    least = np.max(size) * np.array([_LEAST_WIDTH, _LEAST_WIDTH, _LEAST_HEIGHT])
    size = np.maximum(size, least)
    centre = np.tile((first + last) / 2, (len(bases), 1))
    smooth = gaussian_filter1d(bases, smoothing, axis=0, mode="nearest")
    # The robot extends to two fifths of the side; a margin of a twelfth keeps it inside.
    smooth = np.clip(smooth, bases - side / 12, bases + side / 12)
    centre[:, follows] = smooth[:, follows]
    low, high = centre - size / 2, centre + size / 2
    if level and ground_height is not None:
        low[:, 2] = ground_height
        high[:, 2] = ground_height + max(last[2] + 0.05 * extent - ground_height, least[2])
    return low, high


def clipped(curve: Floats, low: Floats, high: Floats) -> Floats:
    """Curve, (n, 3), with a gap (NaN) wherever it is outside a window."""
    inside = np.all((curve >= low) & (curve <= high), axis=1)
    return np.asarray(np.where(inside[:, None], curve, np.nan))


def dashed(curve: Floats, period: float) -> Floats:
    """Curve, (n, 3), as dashes of length `period` that do not move when the curve is clipped.

    Matplotlib starts its dashes at the first visible point: they would creep along a curve whose
    start leaves the window.
    """
    length = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(curve, axis=0), axis=1))])
    number = np.arange(int(length[-1] / period * 10) + 1)
    places = [np.interp(number * period / 10, length, column) for column in curve.T]
    return np.where((number % 10 < 7)[:, None], np.stack(places, axis=1), np.nan)
