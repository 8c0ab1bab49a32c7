"""Random robots: trees with every kind of joint, and rovers of any geometry."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.spatial.transform import Rotation

from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints


def _direction(rng: np.random.Generator) -> np.ndarray:
    direction = rng.normal(size=3)
    return direction / np.linalg.norm(direction)


def _inertia(rng: np.random.Generator, scale: float = 1.0) -> Inertia:
    """Inertia of a random cloud of matter: its second moments are any positive matrix."""
    root = rng.normal(size=(3, 3)) * 0.2
    second = root @ root.T + 1e-3 * np.eye(3)
    mass = scale * rng.uniform(0.5, 3.0)
    tensor = mass * (np.trace(second) * np.eye(3) - second)
    return Inertia(mass, com=rng.uniform(-0.3, 0.3, 3), moments=0.5 * (tensor + tensor.T))


def _placement(rng: np.random.Generator) -> Pose:
    rotation = Rotation.from_rotvec(rng.uniform(0.0, np.pi) * _direction(rng))
    return Pose(rng.uniform(-0.5, 0.5, 3), rotation.as_quat())


def _joint(kind: str, rng: np.random.Generator) -> joints.Joint:
    if kind in ("Revolute", "Prismatic"):
        return getattr(joints, kind)(_direction(rng))
    if kind == "Planar":
        # A plain normal as often as a slanted one, and the seam of the turn to it.
        normal = [(0, 0, 1), (0, 0, -1), _direction(rng), _direction(rng)][rng.integers(4)]
        return joints.Planar(normal)
    return getattr(joints, kind)()


KINDS = ("Fixed", "Revolute", "Prismatic", "Planar", "Spherical", "Free")


def random_tree_parts(seed: int) -> tuple[str, list[Body], np.ndarray]:
    """Draw name, bodies and gravity of a tree of 7 to 10 joints of every kind.

    The order of the joints, the branching, axes, normals, placements, inertias and gravity are
    random; a welded body has no mass now and then; the bodies are not listed depth first.
    """
    rng = np.random.default_rng(seed)
    spare = rng.choice(["Revolute", "Prismatic", "Fixed", "Revolute"], rng.integers(1, 5))
    kinds = rng.permutation([*KINDS, *spare])
    bodies: list[Body] = []
    for i, kind in enumerate(kinds):
        # A chain in half the cases, a fork otherwise.
        parent = None if i == 0 else bodies[-1 if rng.random() < 0.5 else rng.integers(i)].name
        massless = kind == "Fixed" and rng.random() < 0.4
        bodies.append(
            Body(
                f"body{i}",
                _joint(str(kind), rng),
                parent=parent,
                placement=_placement(rng),
                inertia=Inertia(0.0) if massless else _inertia(rng),
            )
        )
    return f"tree{seed}", bodies, rng.uniform(-10.0, 10.0, 3)


@lru_cache(maxsize=16)
def random_tree(seed: int) -> Mechanism:
    """Build the robot of `random_tree_parts`; tests share it, and the graphs that it keeps."""
    name, bodies, gravity = random_tree_parts(seed)
    return Mechanism(name, bodies, gravity=gravity)


EVERY_JOINT = tuple(name for name in joints.__all__ if name != "Joint")


def random_robot(
    seed: int, kinds: tuple[str, ...] = EVERY_JOINT, base: str | None = None, limits: bool = False
) -> Mechanism:
    """Build a tree with one joint of each kind, in random order unless a base is named.

    With limits, coordinates, speeds and torques have bounds now and then.
    """
    rng = np.random.default_rng(20_000 + seed)
    order = [*([base] if base else []), *rng.permutation([k for k in kinds if k != base])]
    bodies: list[Body] = []
    for i, kind in enumerate(map(str, order)):
        directed = ("Revolute", "Prismatic", "Cylindrical", "Sliding", "PlanarPrismatic")
        if kind in directed:
            joint = getattr(joints, kind)(_direction(rng))
        else:
            joint = joints.Helical(_direction(rng), 0.1) if kind == "Helical" else _joint(kind, rng)
        bounds: dict[str, object] = {}
        if limits and joint.nq and joint.quaternion_at is None and rng.random() < 0.6:
            pairs = np.sort(rng.uniform(-2.0, 2.0, (joint.nq, 2)), axis=1)
            pairs[rng.random((joint.nq, 2)) < 0.3] = np.nan
            infinite = np.array([-np.inf, np.inf]) * np.ones((joint.nq, 2))
            bounds["limits"] = np.where(np.isnan(pairs), infinite, pairs)
        for name in ("speed_limit", "torque_limit"):
            if limits and joint.nv and rng.random() < 0.6:
                bounds[name] = rng.choice([*rng.uniform(1.0, 9.0, 3), np.inf], joint.nv)
        parent = None if i == 0 else bodies[rng.integers(i)].name
        bodies.append(
            Body(f"b{i}", joint, parent, _placement(rng), _inertia(rng), **bounds)  # type: ignore[arg-type]
        )
    moving = [body.name for body in bodies[1:] if body.joint.nv]
    actuated = list(rng.permutation(moving)[: rng.integers(len(moving) + 1)]) if limits else None
    return Mechanism(f"robot{seed}", bodies, gravity=rng.uniform(-9, 9, 3), actuated=actuated)


def random_velocity(robot: Mechanism, rng: np.random.Generator) -> np.ndarray:
    """Draw a velocity of order one."""
    return rng.uniform(-2.0, 2.0, robot.nv)


@dataclass(frozen=True)
class RandomRover:
    """A rover with its wheel geometry as numbers, for rows written by hand.

    Parameters
    ----------
    robot : Mechanism
        Bodies chassis, left, right and three of an arm.
    middle : numpy.ndarray
        Midpoint of the axle in the base frame, shape (2,), m.
    heading : float
        Angle from the base's x axis to the rolling direction, rad.
    radius, half_track : float
        Of the wheels, m.
    """

    robot: Mechanism
    middle: np.ndarray
    heading: float
    radius: float
    half_track: float

    def rows(self, q: np.ndarray) -> np.ndarray:
        """No side slip, left wheel rolls, right wheel rolls: rows on v."""
        along = np.array([np.cos(self.heading), np.sin(self.heading)])
        across = np.array([-along[1], along[0]])
        left, right = (self.middle + sign * self.half_track * across for sign in (1, -1))
        rows = np.zeros((3, self.robot.nv))
        for row, direction, point in (
            (0, across, self.middle),
            (1, along, left),
            (2, along, right),
        ):
            rows[row, :2] = direction
            rows[row, 2] = direction @ np.array([-point[1], point[0]])
        rows[1, 3] = rows[2, 4] = -self.radius
        return rows


@lru_cache(maxsize=16)
def random_rover(seed: int) -> RandomRover:
    """Build a rover on two wheels with an arm of three joints, of generic geometry.

    The base frame is not on the axle, the wheels do not point along its x axis, left and right
    wheel differ in mass, the arm stands anywhere; its first axis is within 0.6 rad of the
    vertical and the others are arbitrary.
    """
    rng = np.random.default_rng(10_000 + seed)
    middle, heading = rng.uniform(-0.2, 0.2, 2), rng.uniform(-np.pi, np.pi)
    radius, half_track = rng.uniform(0.06, 0.15), rng.uniform(0.15, 0.35)
    across = np.array([-np.sin(heading), np.cos(heading)])

    def wheel(name: str, sign: int) -> Body:
        spin, mass = rng.uniform(0.003, 0.01), rng.uniform(0.5, 2.0)
        # Symmetric about its axle, or the mass matrix would see the wheel turn.
        tensor = spin * np.outer([*across, 0], [*across, 0]) + 0.6 * spin * (
            np.eye(3) - np.outer([*across, 0], [*across, 0])
        )
        point = middle + sign * half_track * across
        return Body(
            name,
            joints.Revolute((*across, 0.0)),
            parent="chassis",
            placement=Pose((*point, radius)),
            inertia=Inertia(mass, moments=tensor),
        )

    tilt = Rotation.from_rotvec([*rng.uniform(-0.4, 0.4, 2), 0.0]).apply([0.0, 0.0, 1.0])
    bodies = [
        Body("chassis", joints.Planar(), inertia=_inertia(rng, 6.0)),
        wheel("left", 1),
        wheel("right", -1),
        Body("turret", joints.Revolute(tilt), "chassis", _placement(rng), _inertia(rng)),
        Body("upper", joints.Revolute(_direction(rng)), "turret", _placement(rng), _inertia(rng)),
        Body("fore", joints.Revolute(_direction(rng)), "upper", _placement(rng), _inertia(rng)),
    ]
    robot = Mechanism(
        f"rover{seed}",
        bodies,
        wheels=[Wheel("left", radius), Wheel("right", radius)],
        gravity=(0.0, 0.0, -9.81),
    )
    return RandomRover(robot, middle, heading, radius, half_track)
