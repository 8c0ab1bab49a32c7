"""Walls of the heading: motions stay inside, and reversing has no wall."""

from __future__ import annotations

import numpy as np

from concur._polynomials import Space
from concur.proofs._heading import Heading, candidate

SPACE = Space((1,))


def straight(speed: float, turning: float, step: float = 0.01, n: int = 2000) -> Heading:
    """The point moves at a speed along a circle with a rate of turn."""
    times = np.arange(2 * n + 1) * step / 2
    speeds = speed * np.array([np.cos(turning * times), np.sin(turning * times)])
    middle = np.arange(n) * step + step / 2
    angle = SPACE.symbol(0, np.full(n, turning * step / 2), turning * middle)
    start = -np.arcsin(0.25 * turning / speed)
    return candidate(start, 0.25, step, speeds, [speed * angle.cos(), speed * angle.sin()])


def test_the_candidate_hardly_errs() -> None:
    heading = straight(0.3, 0.2)
    assert heading.defect.max() < 2e-7
    assert 1.15 < heading.forward[0].min() <= heading.forward[1].max() < 1.2
    assert heading.growth == 1.0


def test_constant_walls_are_those_of_the_formula() -> None:
    """Straight on, v sin b = eps; with |wc| = 0.1, v sin b = l |wc| (1 - cos b) + eps."""
    heading = straight(0.29, 0.0)
    for eps in (0.002, 0.05, 0.1, 0.2):
        b = heading.wall(1e-4, np.full(2000, eps))[-1]
        assert abs(np.sin(b) - eps / 0.29) < 1e-4, (eps, b)
    assert not np.isfinite(heading.wall(1e-4, np.full(2000, 0.33))[-1])
    curved = straight(0.29, 0.1)
    b = curved.wall(1e-4, np.full(2000, 0.1))[-1]
    assert b > 0.352 + 0.003
    assert -1e-6 <= 0.29 * np.sin(b) - 0.025 * (1 - np.cos(b)) - 0.1 < 2e-3


def test_sampled_headings_stay_inside_and_come_near() -> None:
    heading = straight(0.3, 0.3)
    rng = np.random.default_rng(2)
    step, n = heading.step, 600
    eps = 0.05 * np.exp(-np.arange(n) * step)
    wall = heading.wall(0.1, np.append(eps, np.zeros(2000 - n)))
    times, largest = step * np.arange(n), np.zeros(n)
    for case in range(6):
        theta = heading.cubics[:, 0] @ [1, -1, 1, -1] + 0.0999 * (-1) ** case
        for k, t in enumerate(times):
            v = 0.3 * np.array([np.cos(0.3 * t), np.sin(0.3 * t)])
            for _ in range(4):
                across = np.array([-np.sin(theta), np.cos(theta)])
                sign = (-1) ** case if case < 4 else rng.choice([-1, 1])
                theta += step / 4 * across @ (v + sign * 0.999 * eps[k] * across) / 0.25
            centre = heading.cubics[:, k].sum()
            assert abs(theta - centre) <= wall[k] + 0.3 * step
            largest[k] = max(largest[k], abs(theta - centre))
    assert (wall[:n] < 1.15 * largest + 0.003).all()
    assert wall[599] < wall[0]


def test_reversing_grows() -> None:
    heading = straight(-0.3, 0.0)
    assert 0.9e10 < heading.growth < 4e10  # exp(1.2 * 20) = 2.6e10
    assert not np.isfinite(heading.wall(1e-3, np.full(2000, 1e-4))).all()
    assert np.isfinite(heading.wall(1e-13, np.full(2000, 0.0))[100])


def test_segments_contain_the_candidate() -> None:
    heading = straight(0.3, 0.5)
    first, last = np.array([0, 10, 40]), np.array([10, 40, 41])
    model = heading.model(SPACE, 0, first, last)
    for column, (i, j) in enumerate(zip(first, last, strict=True)):
        for k in range(i, j):
            for d in np.linspace(-1, 1, 7):
                value = heading.cubics[:, k] @ d ** np.arange(4)
                place = 2 * (k - i + (d + 1) / 2) / (j - i) - 1
                one = model.take(np.array([column]))
                assert abs(value - one.at(np.array([[place]]))[0]) <= one.r[0]
    assert model.r.max() < 1e-4


def test_models_of_segments_contain_the_candidate() -> None:
    """Cubics that no parabola over several steps follows."""
    rng = np.random.default_rng(4)
    cubics = rng.normal(size=(4, 9)) * [[1.0], [0.3], [0.1], [0.05]]
    none = np.zeros(9)
    heading = Heading(cubics, (none, none), none, none, 0.01, 0.25)
    first, last = np.array([0, 1, 5]), np.array([1, 5, 9])
    model = heading.model(SPACE, 0, first, last)
    for d in np.linspace(-1.0, 1.0, 41):
        for b, (i, j) in enumerate(zip(first, last, strict=True)):
            place = (d + 1) / 2 * (j - i)
            k = min(int(place), j - i - 1)
            own = cubics[:, i + k] @ (2 * (place - k) - 1) ** np.arange(4)
            one = model.take(np.array([b]))
            assert abs(one.at(np.array([[d]]))[0] - own) <= one.r[0]


def test_walls_are_above_the_growth_that_they_allow() -> None:
    """Coarse steps of walls that fall and rise, against fine steps of the inequality itself."""
    n, step, arm = 30, 0.1, 0.25
    for low, turning, defect, start, speed in (
        (1.2, 0.0, 0.0, 0.6, 0.0),
        (1.2, 0.5, 0.0, 0.6, 0.01),
        (0.2, 3.0, 0.0, 0.2, 0.01),
        (-0.5, 0.1, 0.0, 0.01, 0.001),
        (1.0, 0.0, 0.2, 0.0, 0.0),
    ):
        rows = np.full(n, low), np.full(n, turning), np.full(n, defect)
        heading = Heading(np.zeros((4, n)), (rows[0], rows[0]), rows[1], rows[2], step, arm)
        wall, b, fine = heading.wall(start, np.full(n, speed)), start, step / 200
        for k in range(n):
            for _ in range(200):
                if np.isfinite(wall[k]):
                    assert b <= wall[k] * (1 + 1e-9), (low, turning, defect, k)
                rate = -low * np.sin(b) + turning * (1 - np.cos(b)) + speed / arm + defect
                half = b + fine / 2 * rate
                b += fine * (
                    -low * np.sin(half) + turning * (1 - np.cos(half)) + speed / arm + defect
                )
