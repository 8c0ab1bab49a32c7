"""Joint angles from parameters: the only root lies inside, other branches are told apart."""

from __future__ import annotations

import casadi as ca
import numpy as np

from concur._polynomials import Space
from concur.proofs._configurations import Equations, inverse_matrix

SPACE = Space((2, 1))


def arm() -> Equations:
    """Two links of 0.4 and 0.3 m whose tip is at p."""
    x, p = ca.SX.sym("x", 2), ca.SX.sym("p", 2)
    tip = ca.vertcat(
        0.4 * ca.cos(x[0]) + 0.3 * ca.cos(x[0] + x[1]),
        0.4 * ca.sin(x[0]) + 0.3 * ca.sin(x[0] + x[1]),
    )
    return Equations(x, p, tip - p, "test")


def closed_form(p: np.ndarray, side: float) -> np.ndarray:
    """Angles by the law of cosines."""
    elbow = side * np.arccos((p @ p - 0.25) / 0.24)
    return np.array(
        [
            np.arctan2(p[1], p[0]) - np.arctan2(0.3 * np.sin(elbow), 0.4 + 0.3 * np.cos(elbow)),
            elbow,
        ]
    )


def test_the_root_lies_inside_and_little_else() -> None:
    radius = np.array([1e-3, 0.02, 0.05, 0.3])
    ball = SPACE.block(0, radius)
    place = [ball[0] + 0.45, ball[1] + 0.2]
    guess = np.repeat(closed_form(np.array([0.45, 0.2]), 1.0)[:, None], 4, axis=1) + 0.01
    found = arm().solve(place, guess)
    assert found.solved.tolist() == [True, True, True, False]  # 0.3 m reaches singular ones
    rng = np.random.default_rng(1)
    for k in range(3):
        worst = np.zeros(2)
        for _ in range(300):
            d = rng.normal(size=3)
            d /= np.linalg.norm(d[:2])
            root = closed_form(np.array([0.45, 0.2]) + radius[k] * d[:2], 1.0)
            for i, model in enumerate(found.models):
                one = model.take(np.array([k]))
                error = abs(one.at(d[:, None])[0] - root[i])
                assert error <= one.r[0]
                worst[i] = max(worst[i], error)
        own = np.array([model.r[k] for model in found.models])
        assert (own < 8 * worst + 1e-11).all(), (radius[k], own / worst)


def test_singular_cells_have_no_bound() -> None:
    ball = SPACE.block(0, np.array([0.01]))
    found = arm().solve([ball[0] + 0.69, ball[1]], closed_form(np.array([0.69, 0.0]), 1.0)[:, None])
    assert not found.solved[0]
    assert not np.isfinite(found.models[0].bound[0])


def test_branches_are_told_apart() -> None:
    places = np.array([[0.45, 0.2], [0.46, 0.2], [0.46, 0.2]]).T
    sides = [1.0, 1.0, -1.0]
    guess = np.array([closed_form(p, s) for p, s in zip(places.T, sides, strict=True)]).T
    ball = SPACE.block(0, np.full(3, 0.01))
    found = arm().solve([ball[0] + places[0], ball[1] + places[1]], guess)
    assert found.solved.all()
    here, there = np.array([[0.5], [0.0], [0.0]]), np.array([[-0.5], [0.0], [0.0]])
    first, second = np.array([0, 0]), np.array([1, 2])
    assert found.same_branch(first, here, second, there).tolist() == [True, False]
    # Points that mean different places.
    assert not found.same_branch(first[:1], here, second[:1], here)[0]


def test_inverses_are_enclosed() -> None:
    rng = np.random.default_rng(2)
    space = Space((3,))
    middle, slopes = rng.normal(size=(4, 4)) + 3 * np.eye(4), rng.normal(size=(3, 4, 4))
    halves = np.array([0.01, 0.1, 3.0])
    matrix = np.empty((4, 4), dtype=object)
    for i in range(4):
        for j in range(4):
            parts = [space.symbol(k, halves * slopes[k, i, j]) for k in range(3)]
            matrix[i, j] = parts[0] + parts[1] + parts[2] + middle[i, j]
    inverse = inverse_matrix(matrix)
    assert np.isfinite([m.bound for m in inverse.ravel()]).all(axis=0).tolist() == [
        True,
        True,
        False,
    ]
    for k in range(2):
        worst = np.zeros((4, 4))
        for _ in range(200):
            d = rng.normal(size=3)
            d /= np.linalg.norm(d)
            exact = np.linalg.inv(middle + halves[k] * np.einsum("k,kij->ij", d, slopes))
            value = np.array(
                [[m.take(np.array([k])).at(d[:, None])[0] for m in r] for r in inverse]
            )
            worst = np.maximum(worst, np.abs(value - exact))
        own = np.array([[m.r[k] for m in row] for row in inverse])
        assert (worst <= own).all()
        assert own.max() < 40 * worst.max() + 1e-11
