"""The case study of section 3.4: structure, and the numbers of its initial state.

The numbers were computed independently of this package. Matrices are left-trivialised, in the
order base twist, angular velocity of the upper arm, and the three hinges.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from concur import robots
from concur.robot import joints
from tests.oracles._pinocchio import Pinocchio

MOMENTUM = np.array([0.0, 20.0, 0.0, 5.0, 0.0, 0.0])  # spatial, N s and N m s
SHAPE_VELOCITY = np.array([0.2, -0.1, 0.15, 0.3, -0.25, 0.2])
BASE_TWIST = [
    *(-0.068116953549, 0.178621526871, -0.033643903895),
    *(-0.015870948904, -0.129919029042, -0.213480181949),
]
LOCKED_INERTIA = [
    [119.5, 0, 0, 0, 4.7017440179, -34.3249503058],
    [0, 119.5, 0, -4.7017440179, 0, -9.1165618473],
    [0, 0, 119.5, 34.3249503058, 9.1165618473, 0],
    [0, -4.7017440179, 34.3249503058, 77.8129556949, 17.8469034704, 3.4260662665],
    [4.7017440179, 0, 9.1165618473, 17.8469034704, 18.2307404136, -9.7432210982],
    [-34.3249503058, -9.1165618473, 0, 3.4260662665, -9.7432210982, 83.7940455604],
]
CONNECTION = [
    [0.0044548438, -0.0007717979, -0.0071918148, 0.0114754543, 0.0001150648, 0.0036724792],
    [-0.0380704107, 0.0057653460, -0.0298152324, -0.0292884573, 0.0005491620, -0.0061854140],
    [0.0065427233, 0.0028470333, -0.0111434142, -0.0074173000, -0.0008153480, -0.0019939539],
    [0.3843825292, 0.0031340450, -0.1466467766, 0.1345312015, 0.0268574340, 0.0055482271],
    [0.1384444176, 0.1263622450, -0.2072363160, 0.0653148538, -0.0032024139, 0.0119417251],
    [0.1877690512, -0.0727983123, 0.3638985932, 0.0615150887, 0.0112773626, 0.0050156610],
]
REDUCED_INERTIA = [
    [5.1330610303, -0.2618638982, 0.7868283325, 3.0780684036, 0.3942824906, 0.4624290350],
    [-0.2618638982, 1.1494456698, -1.2124340480, -0.2941031379, -0.1932181589, 0.0246857212],
    [0.7868283325, -1.2124340480, 4.6654341331, 0.6722593747, 0.0005100411, 0.2488578748],
    [3.0780684036, -0.2941031379, 0.6722593747, 2.7406313609, 0.3590096384, 0.5562326872],
    [0.3942824906, -0.1932181589, 0.0005100411, 0.3590096384, 0.2350016613, -0.0182667405],
    [0.4624290350, 0.0246857212, 0.2488578748, 0.5562326872, -0.0182667405, 0.3202570371],
]
PRINTED = 6e-11  # a little over half a unit of the last printed digit


@pytest.fixture(scope="module")
def robot():
    return robots.two_handed_spacecraft()


@pytest.fixture(scope="module", params=["concur", "Pinocchio"])
def source(request, robot):
    return robot if request.param == "concur" else Pinocchio(robot)


@pytest.fixture(scope="module")
def start() -> np.ndarray:
    """The initial state, from its chart: angles about fixed and moving axes, section 3.4."""
    tilt, about_x, about_z, ratio = 0.2, 0.15, -0.25, 5.0 / 20.0
    along = [ratio * np.sin(tilt), 0.1, -2.0 * ratio * np.sin(tilt / 2.0) ** 2]
    place = along + Rotation.from_euler("y", tilt).apply([0.3, 0.0, -0.2])
    attitude = Rotation.from_euler("YXZ", [tilt, about_x, about_z]).as_quat()
    ball = Rotation.from_euler("XYZ", [0.3, -0.4, 0.5]).as_quat()
    return np.concatenate([place, attitude, ball, [0.6, -0.7, 0.8]])


def split(matrix):
    """Locked inertia, connection and reduced inertia of an inertia matrix."""
    locked = matrix[:6, :6]
    connection = np.linalg.solve(locked, matrix[:6, 6:])
    return locked, connection, matrix[6:, 6:] - matrix[6:, :6] @ connection


def test_structure_is_that_of_the_case_study(robot) -> None:
    assert [(body.name, body.parent, type(body.joint)) for body in robot.bodies] == [
        ("spacecraft", None, joints.Free),
        ("upper_arm", "spacecraft", joints.Spherical),
        ("forearm", "upper_arm", joints.Revolute),
        ("right_hand", "forearm", joints.Revolute),
        ("left_hand", "forearm", joints.Revolute),
    ]
    assert [body.joint.axis for body in robot.bodies[2:]] == [(1.0, 0.0, 0.0)] * 3


def test_initial_centres_of_mass_are_those_of_the_case_study(robot) -> None:
    # 3.4: l1 + l2/2, l1 + l2 + l3/2, l1 + l2 + l3 + l4 and + l5 along y; +-c along x.
    expected = [[0, 0, 0], [0, 1.4, 0], [0, 2.1, 0], [0.25, 2.7, 0], [-0.25, 2.75, 0]]
    found = [
        (robot.pose(robot.neutral(), body.name) @ [*body.inertia.com, 1.0])[:3]
        for body in robot.bodies
    ]
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_initial_state_is_the_printed_one(start: np.ndarray) -> None:
    printed = [
        *(0.303953439892, 0.1, -0.260597470346),
        *(0.061561950373, 0.108071193922, -0.131125270051, 0.983532870251),
        *(0.093306593773, -0.226566306890, 0.210983826856, 0.946280831966),
        *(0.6, -0.7, 0.8),
    ]
    np.testing.assert_allclose(start, printed, atol=1e-12)


def test_inertias_of_the_initial_state_are_the_printed_ones(source, start: np.ndarray) -> None:
    locked, connection, reduced = split(source.mass_matrix(start))
    np.testing.assert_allclose(locked, LOCKED_INERTIA, atol=PRINTED)
    np.testing.assert_allclose(connection, CONNECTION, atol=PRINTED)
    np.testing.assert_allclose(reduced, REDUCED_INERTIA, atol=PRINTED)


def test_momentum_and_energy_of_the_initial_state(source, start: np.ndarray) -> None:
    v = np.concatenate([BASE_TWIST, SHAPE_VELOCITY])
    np.testing.assert_allclose(source.momentum(start, v), MOMENTUM, atol=1e-9)
    assert source.kinetic_energy(start, v) == pytest.approx(2.652218691075, abs=1e-10)
