"""Mechanical connection, curvature and reduced inertia of the floater in the plane.

Rows of the connection in the order vx, vy, omega. The numbers were computed independently of this
package.
"""

from __future__ import annotations

import numpy as np
import pytest

from concur import robots
from tests.oracles._pinocchio import Pinocchio

CONNECTION = [
    [-0.02353537617, 0.009964453231],
    [0.024594894827, 0.002709764475],
    [0.37776833803, 0.089819298441],
]
REDUCED_INERTIA = [[0.27938875872, 0.078980240542], [0.078980240542, 0.069674465343]]
CURVATURE = {(0.5, -0.8): 0.0211705941892, (0.6, 0.9): -0.0351056766622}


@pytest.fixture(scope="module")
def robot():
    return robots.planar_floater()


@pytest.fixture(scope="module", params=["concur", "Pinocchio"])
def source(request, robot):
    return robot if request.param == "concur" else Pinocchio(robot)


def connection(source, shape, base=(0.0, 0.0, 0.0)):
    matrix = source.mass_matrix(np.concatenate([base, shape]))
    return np.linalg.solve(matrix[:3, :3], matrix[:3, 3:])


def turn_curvature(source, shape):
    """d2 A1 - d1 A2 of the turning row, by central differences: turns in the plane commute."""
    step = 1e-4

    def slope(joint, column):
        ahead, behind = (np.array(shape) + sign * step * np.eye(2)[joint] for sign in (1, -1))
        difference = connection(source, ahead) - connection(source, behind)
        return difference[2, column] / (2.0 * step)

    return slope(1, 0) - slope(0, 1)


def test_connection_and_reduced_inertia_are_those_of_the_independent_computation(source) -> None:
    matrix = source.mass_matrix(np.array([0.0, 0.0, 0.0, 0.5, -0.8]))
    found = connection(source, (0.5, -0.8))
    np.testing.assert_allclose(found, CONNECTION, atol=6e-12)
    reduced = matrix[3:, 3:] - matrix[3:, :3] @ found
    np.testing.assert_allclose(reduced, REDUCED_INERTIA, atol=6e-12)


@pytest.mark.parametrize("shape", CURVATURE)
def test_curvature_is_that_of_the_independent_computation(source, shape) -> None:
    assert turn_curvature(source, shape) == pytest.approx(CURVATURE[shape], abs=1e-8)
