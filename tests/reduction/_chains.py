"""Chain pendulums by the equations on two-spheres, written out, and as trees of bodies.

Numbers of equations are those of T. Lee, M. Leok and N. H. McClamroch, "Global formulations of
Lagrangian and Hamiltonian mechanics on two-spheres". Reference numbers were computed from these
equations and from a model of point masses with multipliers, independently of the package.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from concur.robot import Body, Inertia, Mechanism, Pose, joints

G = 9.81
MASSES, LENGTHS = (1.0, 0.7, 0.5), (0.8, 0.6, 0.9)
DIRECTIONS = np.array([[0.6, 0, -0.8], [2 / 7, 3 / 7, -6 / 7], [-4 / 9, 1 / 9, -8 / 9]])
TURNS = np.array([[0.8, 0.5, 0.6], [0.9, 0.4, 0.5], [0.5, -2.0, -0.5]])
TORQUE, FORCE = np.array([0.3, -0.2, 0.5]), np.array([1.0, -2.0, 0.5])

FREE = {
    1: [(0, 7.3575, 0)],
    2: [
        (2.10404819277108, 9.1108734939759, 1.57803614457831),
        (-7.4606265060241, -6.21718875502008, -5.59546987951807),
    ],
    3: [
        (2.86437995519626, 9.74448329599688, 2.14828496639719),
        (-10.42617298139671, -2.28221226583552, -4.61649712671666),
        (3.03108989967858, -6.73575533261907, -2.35751436641667),
    ],
}
FORCED = {
    1: [(-1.325, 5.67, -0.99375)],
    2: [
        (2.36248192771084, 8.45123493975903, 1.77186144578313),
        (-11.62740791738382, -7.84426850258175, -7.79793689041882),
    ],
    3: [
        (3.28227021991098, 9.21772518325915, 2.46170266493324),
        (-10.64678152217773, -2.91793706786562, -5.00789570799205),
        (-1.06814438810125, -7.61262838309462, -0.4175063538362),
    ],
}
ENERGY = {1: (0.4, -6.2784), 2: (1.18844, -14.20488), 3: (2.5565757142857146, -23.79065142857143)}
VERTICAL = {1: 0.384, 2: 1.11672, 3: 1.18387714285714}
AFTER = {  # directions and angular velocities after a second, of the links named by their place
    1: {
        0: (
            (-0.52257172577302, -0.19156422357257, -0.83079596753333),
            (-0.52485391407608, -1.17038432689179, 0.6),
        )
    },
    2: {
        0: (
            (-0.31021244180803, -0.23501091111835, -0.92116128479372),
            (-0.83900263488054, -0.24577640027042, 0.34524810916236),
        ),
        1: (
            (-0.88746516977257, -0.01510182755899, -0.46062729754643),
            (-0.66062453439969, -0.1136774986361, 1.27651575512505),
        ),
    },
    3: {
        2: (
            (0.24088805067746, 0.35015720293669, -0.90518665493497),
            (-0.45720799820808, 4.38848250335274, 1.57594326793362),
        )
    },
}
FREQUENCIES = {
    1: (G / 0.8,),
    2: (8.48848639238842, 40.15276360761154),
    3: (5.77705689588342, 21.65593048095584, 65.87879833744644),
}


def chain(count: int, moments: tuple[float, float] = (0.0, 0.0), **options: object) -> Mechanism:
    """Hang links from a ceiling: masses at their ends, with moments across and about the line."""
    across, about = moments
    bodies = [Body("ceiling", joints.Fixed())]
    for i in range(count):
        at = (0.0, 0.0, -LENGTHS[i - 1]) if i else (0.0, 0.0, 0.0)
        load = Inertia(MASSES[i], (0.0, 0.0, -LENGTHS[i]), (across, across, about))
        bodies.append(Body(f"link{i}", joints.Spherical(), bodies[-1].name, Pose(at), load))
    return Mechanism("chain", bodies, gravity=(0.0, 0.0, -G), **{"actuated": (), **options})


def along(direction: np.ndarray) -> Rotation:
    """Turn of a link whose line, its -z axis, has a direction."""
    down = np.array([0.0, 0.0, -1.0])
    across = np.cross(down, direction)
    sine = np.linalg.norm(across)
    if sine < 1e-12:
        return Rotation.from_euler("x", 0.0 if direction[2] < 0.0 else np.pi)
    return Rotation.from_rotvec(across / sine * np.arctan2(sine, down @ direction))


def state(
    robot: Mechanism, directions: np.ndarray, turns: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Configuration and velocities for directions and angular velocities in space."""
    q, v = robot.neutral(), np.zeros(robot.nv)
    before, turning = Rotation.identity(), np.zeros(3)
    for i, (direction, turn) in enumerate(zip(directions, turns, strict=True)):
        own = along(direction)
        q[4 * i : 4 * i + 4] = (before.inv() * own).as_quat()
        v[3 * i : 3 * i + 3] = own.inv().apply(turn - turning)
        before, turning = own, turn
    return q, v


def two_sphere_accelerations(
    directions: np.ndarray,
    turns: np.ndarray,
    torque: np.ndarray | None = None,
    force: np.ndarray | None = None,
) -> np.ndarray:
    """Angular accelerations (n, 3), (40): a torque on the first link, a force on the last mass."""
    n = len(directions)
    torque, force = (np.zeros(3) if x is None else x for x in (torque, force))
    matrix, right = np.zeros((3 * n, 3 * n)), np.zeros(3 * n)
    for i, q in enumerate(directions):
        rows = slice(3 * i, 3 * i + 3)
        for j, other in enumerate(directions):
            mass = sum(MASSES[max(i, j) : n]) * LENGTHS[i] * LENGTHS[j]
            if i == j:
                matrix[rows, rows] = mass * np.eye(3)
                continue
            block = (q @ other) * np.eye(3) - np.outer(other, q)  # S(q)^T S(other)
            matrix[rows, 3 * j : 3 * j + 3] = mass * block
            right[rows] += mass * (turns[j] @ turns[j]) * np.cross(q, other)
        weight = sum(MASSES[i:n]) * G * LENGTHS[i]
        right[rows] += weight * np.cross([0.0, 0.0, 1.0], q) + LENGTHS[i] * np.cross(q, force)
    right[:3] += torque - (directions[0] @ torque) * directions[0]
    return np.linalg.solve(matrix, right).reshape(n, 3)
