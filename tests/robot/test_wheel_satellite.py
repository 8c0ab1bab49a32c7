"""Mechanical connection, curvature and reduced inertia of the satellite with wheels.

All are constant. The source puts the angular part of a twist first; here it comes last.
"""

from __future__ import annotations

import numpy as np
import pytest

from concur import robots
from tests.oracles._pinocchio import Pinocchio

CENTRE = 0.3 * 0.1 / 2.9 * np.ones(3)  # centre of mass of the whole, in the satellite's frame
CURVATURE = [  # linear part, then angular
    *(1.6414e-5, -1.6414e-5, 0.0),
    *(2.172205159e-5, 2.172205159e-5, 1.608397242e-3),
]


@pytest.fixture(scope="module")
def robot():
    return robots.wheel_satellite()


@pytest.fixture(scope="module", params=["concur", "Pinocchio"])
def source(request, robot):
    return robot if request.param == "concur" else Pinocchio(robot)


@pytest.fixture(scope="module")
def matrix(source, robot):
    return source.mass_matrix(robot.neutral())


@pytest.fixture(scope="module")
def connection(matrix):
    return np.linalg.solve(matrix[:6, :6], matrix[:6, 6:])


def test_inertia_matrix_is_constant(source, robot, matrix) -> None:
    rng = np.random.default_rng(1)
    for _ in range(3):
        np.testing.assert_allclose(source.mass_matrix(robot.random(rng)), matrix, atol=1e-15)


def test_connection_is_that_of_the_inertia_about_the_centre_of_mass(connection) -> None:
    # alpha_i = Theta_C^-1 J_i e_i and A_i = [d x alpha_i; alpha_i].
    parts = [(2.0, np.zeros(3), np.diag([0.012, 0.014, 0.016]))]
    for axis in np.eye(3):
        parts.append((0.3, 0.1 * axis, np.diag(4e-4 + 4e-4 * axis)))
    about = sum(
        own + mass * (r @ r * np.eye(3) - np.outer(r, r))
        for mass, r, own in ((m, place - CENTRE, own) for m, place, own in parts)
    )
    turning = np.linalg.solve(about, 8e-4 * np.eye(3))
    np.testing.assert_allclose(connection[3:], turning, atol=1e-14)
    np.testing.assert_allclose(connection[:3], np.cross(CENTRE, turning.T).T, atol=1e-15)


def test_curvature_is_that_of_the_independent_computation(connection) -> None:
    # B_12 = [A_1, A_2], since the connection is constant.
    (v1, w1), (v2, w2) = ((column[:3], column[3:]) for column in connection.T[:2])
    bracket = np.concatenate([np.cross(w1, v2) + np.cross(v1, w2), np.cross(w1, w2)])
    np.testing.assert_allclose(bracket[:3], CURVATURE[:3], atol=6e-10)
    np.testing.assert_allclose(bracket[3:], CURVATURE[3:], atol=6e-13)


def test_reduced_inertia_is_that_of_the_independent_computation(matrix, connection) -> None:
    reduced = matrix[6:, 6:] - matrix[6:, :6] @ connection
    printed = [7.662637e-4, 7.694805e-4, 7.721373e-4]
    np.testing.assert_allclose(np.diag(reduced), printed, atol=6e-11)


def test_spinning_up_from_rest_gives_the_stated_momentum(source, robot) -> None:
    # Base at rest, wheels at 2 pi^2 (0, 1, 1) rad/s: J times that, about the wheels' axes.
    v = np.concatenate([np.zeros(6), 2.0 * np.pi**2 * np.array([0.0, 1.0, 1.0])])
    stated = [0.0, 0.0, 0.0, 0.0, 1.579136704e-2, 1.579136704e-2]
    np.testing.assert_allclose(source.momentum(robot.neutral(), v), stated, atol=6e-12)
