"""Loops as references: derivatives, ends, interpolation, and arguments that do not fit."""

import numpy as np
import pytest

from concur.errors import ConcurError, ShapeError
from concur.outputs.references import Loop


def test_rates_are_derivatives_and_ends_are_the_start() -> None:
    rng = np.random.default_rng(0)
    cosine, sine = rng.uniform(-1, 1, (2, 3, 2))
    for rest in (True, False):
        loop = Loop([0.3, -0.2], cosine, sine, duration=3.0, cycles=2, rest=rest)
        t, h = np.array([0.4, 1.1, 2.6]), 1e-5
        before, at, after = (loop.sample(t + k * h) for k in (-1, 0, 1))
        for part in (0, 1):
            slope = (after[part] - before[part]) / (2 * h)
            np.testing.assert_allclose(at[part + 1], slope, rtol=1e-6, atol=1e-6)
        ends = loop.sample([-1.0, 0.0, 1.5, 3.0, 4.0])
        np.testing.assert_allclose(ends[0][[0, 1, 3, 4]], [[0.3, -0.2]] * 4, atol=1e-13)
        assert np.abs(ends[1][[0, 4]]).max() < 1e-12
        assert (np.abs(ends[1][[1, 3]]).max() < 1e-12) == rest
        # Half the time is one cycle.
        np.testing.assert_allclose(ends[0][2], loop.start, atol=1e-12)


def test_loop_through_points() -> None:
    for count in (3, 4, 7, 8):
        points = np.random.default_rng(count).uniform(-1, 1, (count, 2))
        loop = Loop.through(points)
        np.testing.assert_allclose(loop.places(np.arange(count) / count), points, atol=1e-13)
        # The area by the shoelace formula on many points of the curve.
        x, y = loop.places(np.arange(4000) / 4000).T
        area = np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) / 2
        assert loop.areas[0, 1] == pytest.approx(area, abs=1e-4)
        np.testing.assert_allclose(loop.reversed().areas, -loop.areas)


def test_wrong_arguments() -> None:
    row = [[0.1, 0.2]]
    with pytest.raises(ShapeError, match="sine: expected rows of 2 coefficients"):
        Loop([0, 0], row, [[0.1]])
    with pytest.raises(ShapeError, match="at least three points, got 2"):
        Loop.through(row * 2)
    with pytest.raises(ShapeError, match="a last point other than the first, got the first again"):
        Loop.through([[0, 0], [1, 0], [0, 1], [0, 0]])
    with pytest.raises(ConcurError, match="cycles: expected a whole number other than 0, got 0"):
        Loop([0, 0], row, row, cycles=0)
    with pytest.raises(ConcurError, match="duration"):
        Loop([0, 0], row, row, duration=0.0)
