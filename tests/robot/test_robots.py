"""The robots that come with the package: structure, and numbers that were computed independently.

Momenta, connections and inertias come from the case studies or were computed outside this package;
matrices are left-trivialised, with the shape after the base.
"""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation

from concur import robots
from concur.io import shipped_names
from concur.robot import joints, suspicious_inertias
from tests.oracles import Pinocchio

# Freedoms of the joints and total mass (kg), added up by hand from the parts.
STATED = {
    "free_flyer": (6 + 6, 60 + 8 + 6 + 5 + 3 + 2 + 1.5),
    "orbital_crawler": (6 + 3 + 3 + 3, 400 + 40 + 6 + 4 + 1 + 1),
    "planar_floater": (3 + 2, 10 + 2 + 1.5),
    "servicer": (6 + 2 * 7, 1000 + 2 * 52),
    "station_arm": (6 + 7, 420000 + 2 * 243.66 + 4 * 105.98 + 314.88 + 279.2),
    "two_handed_spacecraft": (6 + 3 + 3, 100 + 8 + 6 + 3 + 2.5),
    "wheel_satellite": (6 + 3, 2 + 3 * 0.3),
}


def both(name: str):
    """A robot and the same in Pinocchio."""
    robot = getattr(robots, name)()
    return robot, Pinocchio(robot)


def test_there_is_a_function_for_every_file() -> None:
    assert sorted(robots.__all__) == shipped_names()


@pytest.mark.parametrize("name", robots.__all__)
def test_each_robot_tells_its_provenance_and_is_in_proportion(name: str) -> None:
    function = getattr(robots, name)
    assert function().name == name
    assert "chosen here" in " ".join((inspect.getdoc(function) or "").split())
    assert suspicious_inertias(function()) == ()


@pytest.mark.parametrize("name", STATED)
def test_floating_robots_are_as_stated(name: str) -> None:
    freedoms, mass = STATED[name]
    robot = getattr(robots, name)()
    base, *others = robot.bodies
    assert (robot.nv, robot.total_mass) == (freedoms, pytest.approx(mass, rel=1e-14))
    assert isinstance(base.joint, joints.Free | joints.Planar)
    assert robot.actuated == tuple(body.name for body in others if body.joint.nv)
    assert not np.any(robot.gravity)
    for body in robot.bodies:
        assert body.inertia.mass or isinstance(body.joint, joints.Fixed), body.name


# --- poses ------------------------------------------------------------------------------------

# Screw parameters of the crawler away from the initial pose.
GENERIC = [0.4, -0.3, 0.2, 0.5, -0.7, 0.9, 0.6, -0.25, 1.1, 0.3, 0.8, -0.4, 0.7, -1.2, 0.35]
HEIGHT = 2 * 1.3589 + 2 * 7.11  # two end effectors and two booms of the station's arm
POSES = {
    ("free_flyer", "tool"): [
        [1, 0, 0, 0.4 + 0.35 + 0.5 + 0.45 + 0.25 + 0.2 + 0.15],
        [0, 1, 0, 0],
        [0, 0, 1, 0.3],
    ],
    ("station_arm", "tip"): [
        [0, 0, -1, 6.0],
        [0, 1, 0, 3.0 - 2 * 0.5692 - 0.475],  # the offsets of shoulder, elbow and wrist along -y
        [1, 0, 0, 2.5 + HEIGHT],
    ],
    # Computed with 60 digits from the frames that the file states.
    ("orbital_crawler", "left_tip"): [
        [0.9931789886339382, -0.07311286916773026, -0.09082953758623988, 1.785896179051762],
        [0.10573371655151434, 0.23635402982999043, 0.9658970720357982, -0.333498006639361],
        [-0.04915157902114466, -0.9689124217106447, 0.24247235169095427, 2.0782386951974514],
    ],
    ("orbital_crawler", "right_tip"): [
        [0.7684197765395419, -0.07311286916773026, -0.6357558929219476, 1.793207465968535],
        [0.6326523137660455, 0.23635402982999043, 0.7374875066532267, -0.35713340962236007],
        [0.09634363969349323, -0.9689124217106447, 0.22787413663122016, 2.175129937368516],
    ],
    ("orbital_crawler", "left_tip", "moved"): [
        [-0.34095976998243227, 0.08957226896799439, -0.9358008569591354, 1.155782046360579],
        [0.7948115746933123, 0.5590538491343074, -0.23607912762811573, -0.30263419554796217],
        [0.5020169279885531, -0.8242788377727771, -0.26180794795593143, 2.541257615197835],
    ],
    ("orbital_crawler", "right_tip", "moved"): [
        [-0.40732159011364655, 0.5215339045849839, -0.7497276229375781, 1.1207575424993144],
        [0.3174947664360789, -0.6888492784909358, -0.6516776387204158, -0.24881239992901436],
        [-0.8563213155778561, -0.5034769685803493, 0.11499889823886042, 2.6179159379398866],
    ],
}


@pytest.mark.parametrize("key", POSES, ids="-".join)
def test_poses_are_those_of_the_drawings(key: tuple[str, ...]) -> None:
    robot = getattr(robots, key[0])()
    q = robot.neutral()
    if key[-1] == "moved":
        q = robot.integrate(q, GENERIC)
    np.testing.assert_allclose(robot.pose(q, key[1]), [*POSES[key], [0, 0, 0, 1]], atol=1e-13)


def test_rover_arm_reaches_where_the_drawing_says() -> None:
    # Case study 5.5: outputs at the reference configuration, computed independently.
    robot = robots.rover_arm()
    q = np.array([-0.3, -0.05, 0.1, 0.0, 0.0, 0.1, 1.2, -1.6])
    base = robot.pose(q, "chassis") @ [0.25, 0.0, 0.0, 1.0]
    hand = robot.pose(q, "forearm") @ [0.0, 0.2, 0.0, 1.0]
    np.testing.assert_allclose(base[:2], [-0.05124896, -0.02504165], atol=1e-8)
    np.testing.assert_allclose(hand[:3], [-0.04685913, 0.70455411, 0.29493197], atol=1e-8)
    assert robot.actuated == ("left_wheel", "right_wheel", "turret", "upper_arm", "forearm")
    assert robot.total_mass == pytest.approx(38.0)


def test_hands_of_the_servicer_mirror_each_other() -> None:
    robot = robots.servicer()
    angles = np.array([0.5, -0.4, 0.2, 1.0, -0.6, -0.4, 0.3])
    mirror = np.array([-1, 1, -1, 1, 1, -1, -1])  # turns about y stay, those about x, z reverse
    q = np.concatenate([robot.neutral()[:7], angles, mirror * angles])
    left, right = robot.pose(q, "left_hand"), robot.pose(q, "right_hand")
    reflection = np.diag([1.0, -1.0, 1.0, 1.0])
    np.testing.assert_allclose(right, reflection @ left @ reflection, atol=1e-14)
    assert left[1, 3] - right[1, 3] > 0.5


# --- momenta, connections, inertias -----------------------------------------------------------


def split(matrix: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Locked inertia, connection and reduced inertia of an inertia matrix."""
    locked = matrix[:count, :count]
    connection = np.linalg.solve(locked, matrix[:count, count:])
    return locked, connection, matrix[count:, count:] - matrix[count:, :count] @ connection


def test_momentum_of_the_free_flyer() -> None:
    twist = np.zeros((4, 4))
    a, b, c = 0.1, 0.2, -0.1
    twist[:3, :3], twist[:3, 3] = [[0, -c, b], [c, 0, -a], [-b, a, 0]], [0.1, -0.2, 0.3]
    base = expm(twist)
    attitude = Rotation.from_matrix(base[:3, :3]).as_quat()
    q = np.concatenate([base[:3, 3], attitude, [0.1, 1.0, -1.35, 0.1, 1.0, -1.5]])
    v = [0.02, -0.01, 0.015, 0.03, 0.02, -0.03, 0.05, -0.04, 0.03, 0.02, -0.03, 0.04]
    stated = [1.954790558, -1.255431220, 0.406422957, 0.447493141, 0.587019332, -0.149264686]
    for source in both("free_flyer"):
        np.testing.assert_allclose(source.momentum(q, np.array(v)), stated, atol=6e-10)


def test_connection_and_curvature_of_the_planar_floater() -> None:
    stated = [
        [-0.02353537617, 0.009964453231],
        [0.024594894827, 0.002709764475],
        [0.37776833803, 0.089819298441],
    ]
    inertia = [[0.27938875872, 0.078980240542], [0.078980240542, 0.069674465343]]
    for source in both("planar_floater"):

        def parts(shape, source=source):
            return split(source.mass_matrix(np.concatenate([np.zeros(3), shape])), 3)

        _, connection, reduced = parts([0.5, -0.8])
        np.testing.assert_allclose(connection, stated, atol=6e-12)
        np.testing.assert_allclose(reduced, inertia, atol=6e-12)
        for shape, curvature in (((0.5, -0.8), 0.0211705941892), ((0.6, 0.9), -0.0351056766622)):
            # d2 A1 - d1 A2 of the turning row: turns in the plane commute.
            h = 1e-4
            one, two = (
                (parts(shape + h * unit)[1] - parts(shape - h * unit)[1])[2] / (2 * h)
                for unit in np.eye(2)
            )
            assert two[0] - one[1] == pytest.approx(curvature, abs=1e-8)


def test_connection_curvature_and_momentum_of_the_wheel_satellite() -> None:
    # All are constant: alpha_i = Theta_C^-1 J_i e_i and A_i = [d x alpha_i; alpha_i].
    centre = 0.3 * 0.1 / 2.9 * np.ones(3)
    parts = [(2.0, np.zeros(3), np.diag([0.012, 0.014, 0.016]))]
    parts += [(0.3, 0.1 * axis, np.diag(4e-4 + 4e-4 * axis)) for axis in np.eye(3)]
    arms = [(mass, place - centre, own) for mass, place, own in parts]
    about = sum(own + mass * (r @ r * np.eye(3) - np.outer(r, r)) for mass, r, own in arms)
    turning = np.linalg.solve(about, 8e-4 * np.eye(3))
    robot, library = both("wheel_satellite")
    q, rng = robot.neutral(), np.random.default_rng(1)
    spin = np.concatenate([np.zeros(6), 2.0 * np.pi**2 * np.array([0.0, 1.0, 1.0])])
    for source in (robot, library):
        matrix = source.mass_matrix(q)
        np.testing.assert_allclose(source.mass_matrix(robot.random(rng)), matrix, atol=1e-15)
        _, connection, reduced = split(matrix, 6)
        np.testing.assert_allclose(connection[3:], turning, atol=1e-14)
        np.testing.assert_allclose(connection[:3], np.cross(centre, turning.T).T, atol=1e-15)
        printed = [7.662637e-4, 7.694805e-4, 7.721373e-4]
        np.testing.assert_allclose(np.diag(reduced), printed, atol=6e-11)
        (v1, w1), (v2, w2) = ((column[:3], column[3:]) for column in connection.T[:2])
        linear = np.cross(w1, v2) + np.cross(v1, w2)
        np.testing.assert_allclose(linear, [1.6414e-5, -1.6414e-5, 0.0], atol=6e-10)
        angular = [2.172205159e-5, 2.172205159e-5, 1.608397242e-3]
        np.testing.assert_allclose(np.cross(w1, w2), angular, atol=6e-13)
        stated = [0.0, 0.0, 0.0, 0.0, 1.579136704e-2, 1.579136704e-2]
        np.testing.assert_allclose(source.momentum(q, spin), stated, atol=6e-12)


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


def test_initial_state_of_the_two_handed_spacecraft() -> None:
    # Section 3.4, from its chart: angles about fixed and moving axes.
    tilt, about_x, about_z, ratio = 0.2, 0.15, -0.25, 5.0 / 20.0
    along = [ratio * np.sin(tilt), 0.1, -2.0 * ratio * np.sin(tilt / 2.0) ** 2]
    place = along + Rotation.from_euler("y", tilt).apply([0.3, 0.0, -0.2])
    attitude = Rotation.from_euler("YXZ", [tilt, about_x, about_z]).as_quat()
    ball = Rotation.from_euler("XYZ", [0.3, -0.4, 0.5]).as_quat()
    start = np.concatenate([place, attitude, ball, [0.6, -0.7, 0.8]])
    shape = [0.2, -0.1, 0.15, 0.3, -0.25, 0.2]
    linear = [-0.068116953549, 0.178621526871, -0.033643903895]
    angular = [-0.015870948904, -0.129919029042, -0.213480181949]
    v = np.array([*linear, *angular, *shape])
    for source in both("two_handed_spacecraft"):
        locked, connection, reduced = split(source.mass_matrix(start), 6)
        np.testing.assert_allclose(locked, LOCKED_INERTIA, atol=PRINTED)
        np.testing.assert_allclose(connection, CONNECTION, atol=PRINTED)
        np.testing.assert_allclose(reduced, REDUCED_INERTIA, atol=PRINTED)
        np.testing.assert_allclose(source.momentum(start, v), [0, 20, 0, 5, 0, 0], atol=1e-9)
        assert source.kinetic_energy(start, v) == pytest.approx(2.652218691075, abs=1e-10)
