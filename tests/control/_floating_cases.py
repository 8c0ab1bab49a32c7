"""Floating robots with momentum, demands that tumble along, and their outputs by others' means.

Outputs, errors and commands are computed here with Pinocchio, SciPy and matrices, so that a
servo can be held against what its robot really does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.integrate import solve_ivp
from scipy.linalg import block_diag, expm
from scipy.spatial.transform import Rotation

from concur import robots
from concur.control import Servo
from concur.outputs import Output, Reference, ReferenceSample
from concur.reduction import reduce
from concur.robot import Mechanism
from tests.groups.oracles import bracket, conjugation, cross_matrix, integral, pose_of, twist_matrix
from tests.oracles import Pinocchio

Growth = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
"""A scalar function of times with its two derivatives."""


def steady(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return t, np.ones_like(t), np.zeros_like(t)


def bend(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return 1 - np.cos(t), np.sin(t), np.cos(t)


def swing(rate: float) -> Growth:
    def growth(t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        sin, cos = np.sin(rate * t), np.cos(rate * t)
        return sin, rate * cos, -(rate**2) * sin

    return growth


class Chain(Reference):
    """A product of fixed poses (4, 4) and of exponentials exp(twist f(t)) as a demand.

    Parameters
    ----------
    factors : sequence
        Matrices, or pairs of a twist and a `Growth`.
    group : str
        "SE3", "R3xSO3", "SO3" or "R3".
    """

    def __init__(self, factors: Sequence[object], group: str) -> None:
        self._factors, self._group = factors, group
        self.pose_size, self.size = {
            "SE3": (7, 6),
            "R3xSO3": (7, 6),
            "SO3": (4, 3),
            "R3": (3, 3),
        }[group]

    def motion(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Poses (k, 4, 4), body twists (k, 6) and their rates (k, 6)."""
        pose = np.tile(np.eye(4), (len(times), 1, 1))
        twist, rate = np.zeros((2, len(times), 6))
        for factor in self._factors:
            if isinstance(factor, np.ndarray):
                moved, speed, second = factor[None], np.zeros((1, 6)), np.zeros((1, 6))
            else:
                axis, growth = factor
                f, fdot, fddot = growth(times)
                moved = expm(np.multiply.outer(f, twist_matrix(axis)))
                speed, second = np.multiply.outer(fdot, axis), np.multiply.outer(fddot, axis)
            pose, carried, changed = pose @ moved, _back(moved, twist), _back(moved, rate)
            rate = changed - _bracket(speed, carried) + second
            twist = carried + speed
        return pose, twist, rate

    def _evaluate(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        poses, twists, rates = self.motion(times)
        turn, place = poses[:, :3, :3], poses[:, :3, 3]
        attitude = Rotation.from_matrix(turn).as_quat()
        v, w, vdot, wdot = twists[:, :3], twists[:, 3:], rates[:, :3], rates[:, 3:]
        if self._group != "SE3":
            vdot = np.einsum("kij,kj->ki", turn, vdot + np.cross(w, v))
            v = np.einsum("kij,kj->ki", turn, v)
        pairs = (place, attitude), (v, w), (vdot, wdot)
        kept = {"SO3": slice(1, 2), "R3": slice(0, 1)}.get(self._group, slice(0, 2))
        return tuple(np.hstack(pair[kept]) for pair in pairs)  # type: ignore[return-value]


def _back(pose: np.ndarray, twist: np.ndarray) -> np.ndarray:
    """Ad of the inverse, row by row."""
    turn, place = pose[:, :3, :3], pose[:, :3, 3]
    linear = twist[:, :3] + np.cross(twist[:, 3:], place)
    parts = (np.einsum("kji,kj->ki", turn, part) for part in (linear, twist[:, 3:]))
    return np.hstack(list(parts))


def _bracket(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    v, w, x, y = one[:, :3], one[:, 3:], other[:, :3], other[:, 3:]
    return np.hstack([np.cross(w, x) + np.cross(v, y), np.cross(w, y)])


# The free-flyer of servo-and-lyapunov check A.
CHECK_A_S0 = np.array([0.05, -0.04, 0.03, 0.02, -0.03, 0.04])
CHECK_A_V0 = np.array([0.02, -0.01, 0.015, 0.03, 0.02, -0.03, *CHECK_A_S0])
CHECK_A_X0 = np.array([-0.08, 0.06, 0.07, 0.3, -0.22, 0.25])
CHECK_A_MOMENTUM = np.array(
    [1.954790558, -1.255431220, 0.406422957, 0.447493141, 0.587019332, -0.149264686]
)


def flat_pose(pose: np.ndarray) -> np.ndarray:
    """Position and quaternion of a matrix."""
    return np.array([*pose[:3, 3], *Rotation.from_matrix(pose[:3, :3]).as_quat()])


CHECK_A_Q0 = np.array(
    [*flat_pose(expm(twist_matrix(np.array([0.1, -0.2, 0.3, 0.1, 0.2, -0.1])))),
     0.1, 1.0, -1.35, 0.1, 1.0, -1.5]
)  # fmt: skip


def check_a_demand(group: str = "SE3") -> Chain:
    """Motion of the hand in check A: drift, then a pose off the hand's, then two swings."""
    robot = robots.free_flyer()
    momentum = Pinocchio(robot).momentum(CHECK_A_Q0, CHECK_A_V0)
    drift = np.array([*momentum[:3] / robot.total_mass, 0.0, 0.0, 0.0])
    start = Pinocchio(robot).pose(CHECK_A_Q0, "tool") @ expm(twist_matrix(CHECK_A_X0))
    factors = [
        (drift, steady),
        start,
        (np.array([0.0, 0.0, 0.0, 0.1, 0.05, -0.08]), swing(0.8)),
        (np.array([0.03, -0.03, 0.02, 0.0, 0.0, 0.0]), bend),
    ]
    return Chain(factors, group)


@dataclass(frozen=True)
class Tumble:
    """A robot that spins with locked joints about a principal axis while it drifts.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    q0 : numpy.ndarray
        Configuration at the start.
    rate : float
        Rate of the spin, rad/s.
    drift : sequence of float
        Velocity of the centre of mass, m/s.
    axis : int
        Principal axis of the locked robot, from that of the smallest moment to the largest.
    """

    robot: Mechanism
    q0: np.ndarray
    rate: float
    drift: Sequence[float] = (0.02, -0.03, 0.01)
    axis: int = 2

    @property
    def spin(self) -> np.ndarray:
        """Angular velocity in inertial axes, rad/s."""
        turn = Rotation.from_quat(self.q0[3:7]).as_matrix()
        inertia, centre = self._locked()
        own = inertia[3:, 3:] + inertia[0, 0] * cross_matrix(centre) @ cross_matrix(centre)
        return turn @ (self.rate * np.linalg.eigh(own)[1][:, self.axis])

    @property
    def centre(self) -> np.ndarray:
        """Centre of mass at the start, m."""
        turn = Rotation.from_quat(self.q0[3:7]).as_matrix()
        return self.q0[:3] + turn @ self._locked()[1]

    @property
    def momentum(self) -> np.ndarray:
        """Spatial momentum about the inertial origin, shape (6,)."""
        turn = Rotation.from_quat(self.q0[3:7]).as_matrix()
        spin, arm = self.spin, self.q0[:3] - self.centre
        base = np.array([*(turn.T @ (self.drift + np.cross(spin, arm))), *(turn.T @ spin)])
        still = np.zeros(self.robot.nv - 6)
        return Pinocchio(self.robot).momentum(self.q0, np.array([*base, *still]))

    def carried(self, factors: Sequence[object], group: str) -> Chain:
        """A motion that is given for a robot at rest, carried along by the tumbling."""
        about = np.array([*-np.cross(self.spin, self.centre), *self.spin])
        drift = np.array([*self.drift, 0.0, 0.0, 0.0])
        return Chain([(drift, steady), (about, steady), *factors], group)

    def turns(self, t: np.ndarray, q: np.ndarray, v: np.ndarray) -> float:
        """Revolutions of the base about the spin's axis, by the trapezium rule."""
        along = Rotation.from_quat(q[:, 3:7]).apply(v[:, 3:6]) @ (self.spin / abs(self.rate))
        return float(np.trapezoid(along, t) / (2 * np.pi))

    def _locked(self) -> tuple[np.ndarray, np.ndarray]:
        inertia = Pinocchio(self.robot).mass_matrix(self.q0)[:6, :6]
        first = inertia[3:, :3] / inertia[0, 0]  # the cross matrix of the centre of mass
        return inertia, np.array([first[2, 1], first[0, 2], first[1, 0]])


@dataclass(frozen=True)
class _Atom:
    """A simple factor of the outputs: "SE3", "SO3" or "R3" of a point of a body."""

    kind: str
    body: str
    offset: np.ndarray

    @property
    def size(self) -> int:
        return 6 if self.kind == "SE3" else 3

    @property
    def pose_size(self) -> int:
        return {"SE3": 7, "SO3": 4, "R3": 3}[self.kind]


class OutputOracle:
    """Motion of the outputs of a robot, actual and expected, by Pinocchio and matrices.

    Parameters
    ----------
    robot : Mechanism
        Its description is read.
    outputs : sequence of Output
        In "SE3", "R3xSO3", "SO3" or "R3".
    """

    def __init__(self, robot: Mechanism, outputs: Sequence[Output]) -> None:
        self.robot, self.plant = robot, Pinocchio(robot)
        self._atoms = [
            _Atom(kind, output.body, pose_of(np.array([*output.point, 0.0, 0.0, 0.0])))
            for output in outputs
            for kind in (("R3", "SO3") if output.group == "R3xSO3" else (output.group,))
        ]

    @property
    def body(self) -> str:
        """Body of the first output."""
        return self._atoms[0].body

    def poses(self, q: np.ndarray) -> list[np.ndarray]:
        """Pose of the frame behind each factor of the outputs."""
        return [self.plant.pose(q, atom.body) @ atom.offset for atom in self._atoms]

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """Velocities of the robot to those of the outputs."""
        rows = []
        for atom, pose in zip(self._atoms, self.poses(q), strict=True):
            own = conjugation(np.linalg.inv(atom.offset)) @ self.plant.jacobian(q, atom.body)
            rows.append({"SE3": own, "SO3": own[3:], "R3": pose[:3, :3] @ own[:3]}[atom.kind])
        return np.vstack(rows)

    def acceleration(self, q: np.ndarray, v: np.ndarray, u: np.ndarray) -> np.ndarray:
        """Rate of the output velocity that control forces really make."""
        tau = np.zeros(self.robot.nv)
        tau[list(self.robot.actuated_freedoms)] = u
        vdot = self.plant.forward_dynamics(q, v, tau)
        return self.jacobian(q) @ vdot + self.drift(q, v)

    def drift(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Rate of the output velocity without any acceleration of the robot."""
        parts = []
        for atom, pose in zip(self._atoms, self.poses(q), strict=True):
            to_point = conjugation(np.linalg.inv(atom.offset))
            own = to_point @ self.plant.velocity_product(q, v, atom.body)
            twist = to_point @ self.plant.jacobian(q, atom.body) @ v
            moved = pose[:3, :3] @ (own[:3] + np.cross(twist[3:], twist[:3]))
            parts.append({"SE3": own, "SO3": own[3:], "R3": moved}[atom.kind])
        return np.concatenate(parts)

    def errors(
        self, q: np.ndarray, v: np.ndarray, sample: ReferenceSample
    ) -> tuple[np.ndarray, np.ndarray]:
        """x = log(r^-1 gamma) and ve."""
        x = self._logarithm(q, sample)
        return x, self.jacobian(q) @ v - self._blocks(expm, x) @ sample.twist

    def command(
        self, servo: Servo, q: np.ndarray, v: np.ndarray, sample: ReferenceSample
    ) -> np.ndarray:
        """Wanted rate of the output velocity, feedback and feed-forward, with a servo's gains."""
        x, ve = self.errors(q, v, sample)
        transport, mapped = self._blocks(expm, x), self._blocks(_inverse_integral, x)
        turned = self._blocks(lambda algebra: algebra, self.jacobian(q) @ v)
        push = mapped.T @ servo.stiffness @ x - servo.damping @ ve
        ahead = transport @ sample.acceleration - turned @ transport @ sample.twist
        return np.linalg.solve(servo.inertia, push) + ahead

    def ideal(
        self, servo: Servo, x: np.ndarray, ve: np.ndarray, times: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Errors by their own equation, integrated from the first time."""
        n, scale = len(x), np.linalg.inv(servo.inertia)

        def slope(_: float, z: np.ndarray) -> np.ndarray:
            mapped = self._blocks(_inverse_integral, z[:n])
            push = mapped.T @ servo.stiffness @ z[:n] - servo.damping @ z[n:]
            return np.concatenate([-mapped @ z[n:], scale @ push])

        span = times[0], times[-1]
        end = solve_ivp(slope, span, [*x, *ve], "DOP853", times, rtol=1e-10, atol=1e-12)
        return end.y[:n].T, end.y[n:].T

    def sample(
        self, q: np.ndarray, rng: np.random.Generator, angle: float = 1.2, size: float = 0.3
    ) -> ReferenceSample:
        """Draw a demand with a rotation up to an angle and a distance up to a size."""
        flat = []
        for atom, pose in zip(self._atoms, self.poses(q), strict=True):
            axis = rng.normal(size=3)
            phi = rng.uniform(0.0, angle) * axis / np.linalg.norm(axis)
            away = pose @ pose_of(np.array([*rng.uniform(-size, size, 3), *phi]))
            kept = {"SE3": slice(0, 7), "SO3": slice(3, 7), "R3": slice(0, 3)}[atom.kind]
            flat.append(flat_pose(away)[kept])
        n = sum(atom.size for atom in self._atoms)
        return ReferenceSample(np.concatenate(flat), *rng.uniform(-0.5, 0.5, (2, n)))

    def _logarithm(self, q: np.ndarray, sample: ReferenceSample) -> np.ndarray:
        places = np.cumsum([atom.pose_size for atom in self._atoms])[:-1]
        wanted = np.split(sample.flat_pose, places)
        pairs = zip(self._atoms, self.poses(q), wanted, strict=True)
        return np.concatenate([_logarithm(atom.kind, pose, flat) for atom, pose, flat in pairs])

    def _blocks(
        self, function: Callable[[np.ndarray], np.ndarray], twists: np.ndarray
    ) -> np.ndarray:
        """Block diagonal matrix of a function of ad."""
        algebras = {"SE3": bracket, "SO3": cross_matrix, "R3": lambda _: np.zeros((3, 3))}
        ends = np.cumsum([atom.size for atom in self._atoms])[:-1]
        parts = zip(self._atoms, np.split(twists, ends), strict=True)
        return block_diag(*[function(algebras[atom.kind](part)) for atom, part in parts])


def _inverse_integral(algebra: np.ndarray) -> np.ndarray:
    return np.linalg.inv(integral(algebra))


def _logarithm(kind: str, pose: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """log(r^-1 gamma); the rotation by SciPy, which is exact near a half turn."""
    if kind == "R3":
        return wanted - pose[:3, 3]
    attitude = Rotation.from_matrix(pose[:3, :3]).inv() * Rotation.from_quat(wanted[-4:])
    phi = attitude.as_rotvec()
    if kind == "SO3":
        return phi
    place = pose[:3, :3].T @ (wanted[:3] - pose[:3, 3])
    return np.array([*np.linalg.solve(integral(cross_matrix(phi)), place), *phi])


SERVOS: dict[str, tuple[Callable[[], Mechanism], list[Output]]] = {
    "hand of the free-flyer": (robots.free_flyer, [Output("hand", "tool", "SE3")]),
    "hand with its attitude apart": (robots.free_flyer, [Output("hand", "tool", "R3xSO3")]),
    "base attitude and hand": (
        robots.free_flyer,
        [Output("base", "spacecraft", "SO3"), Output("hand", "tool", "R3")],
    ),
    "two hands": (
        robots.two_handed_spacecraft,
        [
            Output("right", "right_hand", "R3", (0.0, 0.3, 0.0)),
            Output("left", "left_hand", "R3", (0.0, 0.35, 0.0)),
        ],
    ),
    "both hands of the servicer": (
        robots.servicer,
        [Output("left", "left_hand", "SE3"), Output("right", "right_hand", "SE3")],
    ),
    "tip on the station": (robots.station_arm, [Output("tip", "tip", "SE3")]),
    "three wheels": (robots.wheel_satellite, [Output("attitude", "satellite", "SO3")]),
    "tip of the crawler": (
        robots.orbital_crawler,
        [Output("left", "left_tip", "R3xSO3", (0.1, 0.2, 0.0))],
    ),
}
"""Robots that float, and outputs; servicer, station and crawler have joints left over."""


@cache
def build(name: str, seed: int = 1, **options: object) -> tuple[Servo, OutputOracle]:
    """Build a servo of `SERVOS` at the momentum of a random motion, and its oracle."""
    make, outputs = SERVOS[name]
    robot, rng = make(), np.random.default_rng(seed)
    oracle = OutputOracle(robot, outputs)
    momentum = oracle.plant.momentum(robot.random(rng), 0.3 * rng.normal(size=robot.nv))
    options = {"stiffness": 9.0, "damping": 5.0, **options}
    return Servo(reduce(robot, momentum=momentum), outputs, **options), oracle  # type: ignore[arg-type]


def states(
    servo: Servo, count: int, seed: int = 2, speed: float = 0.3, margin: float = 0.05
) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Draw configurations away from singular ones, with shape velocities and all velocities.

    The base's velocity is from Pinocchio's mass matrix and the momentum, not from the lift.
    """
    robot, rng = servo.model.robot, np.random.default_rng(seed)
    plant = Pinocchio(robot)
    while count:
        q, s = robot.random(rng), speed * rng.normal(size=servo.ns)
        if servo.margin(q) > margin:
            count -= 1
            yield q, s, full_velocity(plant, servo.model.momentum, q, s)


def full_velocity(
    plant: Pinocchio, momentum: Sequence[float], q: np.ndarray, s: np.ndarray
) -> np.ndarray:
    """Velocities of a robot on a free base at a momentum, solved for by Pinocchio's."""
    still, unit = np.zeros(6 + len(s)), np.eye(6 + len(s))
    columns = np.column_stack([plant.momentum(q, e) for e in unit])
    still[6:] = s
    still[:6] = np.linalg.solve(columns[:, :6], momentum - columns[:, 6:] @ s)
    return still


def flyer(**options: object) -> Servo:
    """A satellite whose hand has a pose, with the momentum of check A."""
    model = reduce(robots.free_flyer(), momentum=CHECK_A_MOMENTUM)
    return Servo(model, [Output("hand", "tool", "SE3")], 4.0, 2.8, **options)  # type: ignore[arg-type]
