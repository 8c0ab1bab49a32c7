"""Cells that a segment reaches: sampled positions lie in them, and halves of them suffice."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from concur._polynomials import Model
from concur.proofs import _cells
from concur.proofs._cells import reached
from concur.proofs._quantities import CLOCK, DELTA, SPACE
from concur.proofs._recheck_cover import PARTS
from concur.proofs._recheck_motion import cells_reached
from concur.proofs._recheck_smooth import Smooth
from tests.proofs._rover import prover, rover, states

T, EDGE = 0.05, 0.0125
X, VE, WALL = np.array([0.004, 0.012]), np.array([0.004, 0.006]), 0.05


def positions(duration: float, wall: float) -> list[Model]:
    """Of the hand from the output of the base, in axes of the base, over the whole task."""
    case = prover(duration)
    first, last = np.array([0]), np.array([case.count])
    return case.centre.nominal(case.heading, first, last, np.array([wall])).relative


@pytest.fixture(scope="module")
def relative():
    return positions(T, WALL)


def indices(cells: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(cell) for cell in cells.tolist()}


def halves(cells: np.ndarray) -> np.ndarray:
    corners = np.array(list(itertools.product((0, 1), repeat=3)))
    return (2 * cells[:, None] + corners).reshape(-1, 3)


def test_sampled_positions_are_in_the_cells_and_in_their_halves(relative) -> None:
    case, rng = prover(T), np.random.default_rng(4)
    whole = reached(relative, X, EDGE)
    parts = reached(relative, X, EDGE / 2, halves(whole))
    assert whole is not None
    assert parts is not None
    held = indices(whole)
    for _ in range(300):
        q, _ = states(case, rng, T * rng.uniform(), X, VE, WALL)
        y = rover().servo.output(q)
        c, s = np.cos(q[2]), np.sin(q[2])
        x = np.array([[c, s], [-s, c]]) @ (y[2:4] - y[:2])
        place = np.array([*x, y[4]])
        assert tuple(np.floor(place / EDGE).astype(int).tolist()) in held
        assert tuple(np.floor(2 * place / EDGE).astype(int).tolist()) in indices(parts)


def passed(relative: list[Model], x: tuple[float, float], edge: float) -> np.ndarray:
    """Cells that many samples pass."""
    rng, n = np.random.default_rng(5), 100_000
    d = np.zeros((DELTA + 1, n))
    d[CLOCK], d[DELTA] = rng.uniform(-1, 1, (2, n))
    disc, ball = (rng.normal(size=(k, n)) for k in (2, 3))
    place = np.array([m.at(d) for m in relative]) + x[1] * ball / np.linalg.norm(ball, axis=0)
    place[:2] += x[0] * disc / np.linalg.norm(disc, axis=0)
    return np.unique(np.floor(place / edge).astype(int), axis=1).T


@pytest.mark.by_default(2)
@pytest.mark.parametrize("x", [(0.004, 0.012), (0.02, 0.0), (0.0, 0.02)])
@pytest.mark.parametrize("motion", ["turning", "still", "parabola"])
def test_cells_are_those_that_dense_samples_pass_and_few_others(motion, x) -> None:
    time, edge = SPACE.symbol(CLOCK), 0.003
    parabola = [0.06 * time + 0.2, 0.02 * time * time + 0.7, SPACE.symbol(DELTA, 0.002)]
    turned = positions(T, WALL if motion == "turning" else 1e-4)
    relative = parabola if motion == "parabola" else turned
    samples = passed(relative, x, edge)
    held = indices(reached(relative, np.array(x), edge))
    assert indices(samples) <= held
    if motion != "parabola":
        if x[0] and x[1]:
            assert len(held) < 2 * len(samples)
        return
    # The checker has its own test of a cell.
    line, bend = np.zeros((2, 3, 1)), np.zeros((3, 3, 1))
    line[0, 0], line[1, 2], bend[0, 1] = 0.06, 0.002, 0.02
    middle = np.array([[0.2], [0.7], [0.0]])
    smooth = Smooth(middle, line, bend, np.zeros((3, 3, 1)))
    assert cells_reached(
        smooth, np.array(x), samples * edge, np.full(len(samples), edge), PARTS
    ).all()
    box = np.array(sorted(held))
    own = cells_reached(smooth, np.array(x), box * edge, np.full(len(box), edge), PARTS)
    assert len(samples) <= own.sum() < len(box)


def test_halves_of_cells_are_those_of_the_finer_lattice(relative) -> None:
    whole = reached(relative, X, EDGE)
    fine = reached(relative, X, EDGE / 2)
    for some in (whole, whole[::2]):
        own = {cell for cell in indices(fine) if tuple(i // 2 for i in cell) in indices(some)}
        assert indices(reached(relative, X, EDGE / 2, halves(some))) == own


def test_too_many_cells_are_none(relative, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = reached(relative, X, EDGE)
    box = int(np.prod(whole.max(axis=0) - whole.min(axis=0) + 1))
    for most in (box, box - 1):
        monkeypatch.setattr(_cells, "MOST", most)
        assert (reached(relative, X, EDGE) is None) is (most < box)
        assert (reached(relative, X, EDGE, np.zeros((box, 3), dtype=int)) is None) is (most < box)


def test_no_cell_is_left_out_where_nothing_is_known(relative) -> None:
    wild = [m.with_remainder(np.full(1, np.nan)) for m in relative]
    assert reached(wild, X, EDGE) is None
    some = np.array([[1000, 1000, 1000]])
    assert len(reached(wild, X, EDGE, some)) == 1
    assert len(reached(relative, X, EDGE, some)) == 0
