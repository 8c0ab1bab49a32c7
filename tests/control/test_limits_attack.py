"""Attacks on limits: smaller ones make no joint faster, and none ends a run."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

import concur as cc

pytestmark = pytest.mark.extended

Floats = NDArray[np.float64]
PERIOD = 4e-3
TICK = 1e-3  # light wrists turn within some milliseconds
SECONDS = 3.0

MOVING = (0.06, -0.04, 0.02, 0.08, 0.04, -0.06)


@dataclass(frozen=True)
class Shipped:
    """Outputs of a shipped robot, and where it starts.

    Parameters
    ----------
    outputs : tuple of tuple
        Arguments of each output.
    bent : dict
        Coordinates of joints at the start, by name; the others are zero.
    momentum : tuple of float, optional
        Of a robot that floats.
    distance : float
        Where a position is asked for, from the start along each axis, m.
    """

    outputs: tuple[tuple[Any, ...], ...]
    bent: dict[str, Any]
    momentum: tuple[float, ...] | None = None
    distance: float = 0.3


ARM = {"turret": -0.1, "upper_arm": 1.0, "forearm": -1.6}
SHIPPED = {
    "car_arm": Shipped(
        (("nose", "steering", "R2", (0.4, 0, 0)), ("hand", "hand", "R3", (0, 0.1, 0))),
        ARM | {"hand": 0.4},
    ),
    "crane_car": Shipped(
        (("nose", "steering", "R2", (0.5, 0, 0)), ("load", "boom", "R2", (2, 0, 0))),
        {"boom": -0.6, "column": 0.3},
    ),
    "free_flyer": Shipped(
        (("attitude", "spacecraft", "SO3"), ("hand", "tool", "R3")),
        {"turret": 0.5, "upper_arm": -1.5, "forearm": 2.1, "wrist_roll": 0.2, "wrist_pitch": -0.6},
        MOVING,
        0.1,
    ),
    "mecanum_arm": Shipped(
        (("base", "base", "SE2"), ("hand", "hand", "R3xSO3", (0, 0, 0.2))),
        {"joint_2": 0.6, "joint_3": 0.2, "joint_4": 1.3, "joint_5": -0.2, "joint_6": 0.9},
    ),
    "orbital_crawler": Shipped(
        (("left", "left_tip", "R3", (0.2, 0, 0)), ("right", "right_tip", "R3", (0.2, 0, 0))),
        {"arm": 0.5, "left_tip": 0.6, "right_tip": -0.7},
        MOVING,
    ),
    "planar_floater": Shipped(
        (("tip", "forearm", "R2", (0.4, 0, 0)),),
        {"upper_arm": 0.6, "forearm": -1.2},
        (0.3, -0.2, 0, 0, 0, 0.1),
        -0.3,
    ),
    "rover_arm": Shipped(
        (("base", "chassis", "R2", (0.25, 0, 0)), ("hand", "forearm", "R3", (0, 0.2, 0))), ARM
    ),
    "servicer": Shipped(
        (("antenna", "satellite", "SO3"), ("hand", "left_hand", "R3")),
        {"left_shoulder_pitch": 0.6, "left_forearm": -1.2, "right_forearm": -1.0},
        (0.5, -0.3, 0.2, 1.0, 0.5, -0.5),
        0.03,
    ),
    "station_arm": Shipped(
        (("tip", "tip", "R3xSO3"),),
        {"shoulder_yaw": 0.7, "upper_boom": -0.6, "lower_boom": 1.5, "wrist_pitch": -0.9}
        | {"wrist_yaw": 0.7},
        (4e2, -2e2, 1e2, 1e3, 2e3, -1e3),
    ),
    "tractor_trailers": Shipped((("nose", "tractor", "R2", (0.5, 0, 0)),), {}),
    "two_handed_spacecraft": Shipped(
        (("bus", "spacecraft", "SO3"), ("left", "left_hand", "R3", (0.1, 0, 0))),
        {"upper_arm": (0.2, -0.8, -0.6, 0.0), "forearm": 2.1, "right_hand": -1.8, "left_hand": 2.1},
        MOVING,
        0.02,
    ),
    "wheel_satellite": Shipped((("attitude", "satellite", "SO3"),), {}, (0, 0, 0, 0.1, 0, 0)),
}
"""Shipped robots whose motors are at least as many as their velocities: those that a servo has."""

SUBSETS = [
    (name, chosen)
    for name, shipped in SHIPPED.items()
    for count in range(1, len(shipped.outputs) + 1)
    for chosen in combinations(range(len(shipped.outputs)), count)
]


MOTIONS = [(*subset, True) for subset in SUBSETS if SHIPPED[subset[0]].momentum is not None]
MOTIONS += [(*subset, False) for subset in SUBSETS]
"""Subsets of outputs; those of robots that float also without their momentum."""


@cache
def reduced(name: str, still: bool = False) -> Any:
    momentum = (0.0,) * 6 if still else SHIPPED[name].momentum
    return cc.reduce(getattr(cc.robots, name)(), momentum=momentum)


def start(name: str) -> Floats:
    robot = reduced(name).robot
    q = robot.neutral()
    for body, angle in SHIPPED[name].bent.items():
        q[robot.q_slice(body)] = angle
    return np.asarray(robot.normalize(q))


def servo(name: str, chosen: tuple[int, ...], still: bool = False, **options: Any) -> cc.Servo:
    outputs = [cc.Output(*SHIPPED[name].outputs[k]) for k in chosen]
    return cc.Servo(reduced(name, still), outputs, 4.0, 4.0, **options)


def away(law: cc.Servo, q: Floats, distance: float) -> cc.ReferenceSample:
    """Demand to hold the outputs so far away, m, and turned by a third of the number, rad."""
    goal, k = np.array(law.output(q)), 0
    for output in law.outputs:
        if output.group.startswith(("R", "SE2")):
            size = 2 if output.group == "SE2" else int(output.group[1])
            goal[k] += distance
            k += 3 if output.group == "SE2" else size
        if output.group.endswith("SO3"):
            turn = Rotation.from_quat(goal[k : k + 4]) * Rotation.from_rotvec([0, 0, distance / 3])
            goal[k : k + 4] = turn.as_quat()
            k += 4
    assert k == len(goal)
    return cc.ReferenceSample(goal, np.zeros(law.size), np.zeros(law.size))


def moved(law: cc.Servo, goal: cc.ReferenceSample, q: Floats) -> Any:
    """Run with the law sampled, from rest."""
    model = law.model
    steps = cc.simulation.Integrator(dt=PERIOD, control_period=PERIOD, compiled=False)
    rest = np.zeros(model.ns)
    return cc.simulate(model.robot, law, lambda t: goal, SECONDS, q, rest, dt=steps)


def driven(law: cc.Servo, run: Any) -> Floats:
    """Largest speed of each joint that has a motor."""
    return np.asarray(np.abs(run.v[:, list(law.model.shape)]).max(axis=0))


def fastest(
    name: str, chosen: tuple[int, ...], still: bool, shares: tuple[float, ...]
) -> tuple[float, list[float]]:
    """Largest speed of any joint without limits, and with torque limits of these shares over it.

    The shares are of the largest torque without limits; weights are held with 30 % more.
    """
    free, q = servo(name, chosen, still), start(name)
    goal = away(free, q, SHIPPED[name].distance)
    run = moved(free, goal, q)
    at_rest = np.zeros(free.ns)
    weight = np.max([np.abs(free.model.bias(at, at_rest)) for at in run.q[::25]], axis=0)
    weight = weight if weight.shape == (free.nu,) else np.zeros(free.nu)
    before, peak, found = driven(free, run).max(), np.abs(run.u).max(), list[float]()
    for share in shares:
        limits = np.maximum(1.3 * weight, share * peak)
        rules = cc.Constraints()
        law = servo(name, chosen, still, torque_limits=list(limits), constraints=rules)
        now = moved(law, goal, q)
        assert (np.abs(now.u) <= limits * (1 + 1e-9)).all()
        found.append(float(driven(law, now).max() / before))
    return float(before), found


@pytest.mark.parametrize(("name", "chosen", "still"), MOTIONS)
def test_smaller_torque_limits_make_no_joint_faster(
    name: str, chosen: tuple[int, ...], still: bool
) -> None:
    """Down to a twentieth of the torque; a scaled command makes redundant joints 100 times faster.

    Slowed down, a robot without momentum stays near its path, on which it comes later: 2 permille
    are for what its motion deviates. With momentum its base drifts while it lags, so that the way
    back may be longer than that of the unlimited servo. That bound is measured.
    """
    carried = SHIPPED[name].momentum is not None and not still
    before, gains = fastest(name, chosen, still, (1.1, 0.5, 0.25, 0.1, 0.05))
    assert max(gains) <= (1.25 if carried else 1.002), f"{gains} of {before} rad/s"


def heaviest(model: Any, rng: np.random.Generator) -> Floats:
    """Largest torques that rest takes in any of many configurations."""
    at_rest = np.zeros(model.ns)
    poses = [model.robot.random(rng) for _ in range(3000)]
    return np.asarray(np.max([np.abs(model.bias(q, at_rest)) for q in poses], axis=0))


@pytest.mark.parametrize("momentum", [0.02, 0.0])
def test_momentum_carries_a_satellite_away_while_its_wheel_stops_it(momentum: float) -> None:
    """How far, in closed form; a wheel that brings it back turns faster, by any law.

    With the momentum L about an axis, the inertias J of satellite and I of wheel, and the torque u,
    it turns by L^2 (J - I) / (2 J^2 u) until it rests. To come back in the time T it turns at this
    angle over T the other way, on average, and the wheel faster than the L / I of rest.
    """
    robot = cc.robots.wheel_satellite()
    model, q = cc.reduce(robot, momentum=(0, 0, 0, momentum, 0, 0)), robot.neutral()
    mass, attitude = np.array(robot.mass_matrix(q)), [cc.Output("attitude", "satellite", "SO3")]
    turned = mass[3:6, 3:6] - mass[3:6, :3] @ np.linalg.solve(mass[:3, :3], mass[:3, 3:6])
    whole, wheel = turned[0, 0], mass[6, 6]
    sides, free = np.zeros(3), cc.Servo(model, attitude, 4.0, 4.0)
    place = free.output(robot.integrate(q, 0.1 * (momentum == 0.0) * np.eye(9)[3]))
    goal = cc.ReferenceSample(place, sides, sides)
    steps = cc.simulation.Integrator(dt=PERIOD, control_period=PERIOD, compiled=False)
    speeds = []
    for torque in (np.inf, 0.02, 0.01):
        law = free
        if torque < np.inf:
            rules = cc.Constraints()
            law = cc.Servo(model, attitude, 4.0, 4.0, torque_limits=torque, constraints=rules)
        run = cc.simulate(robot, law, lambda t: goal, 8.0, q, sides, dt=steps)
        error, speed = np.abs(run.error[:, 0]), np.abs(run.v[:, 6])
        speeds.append(speed.max())
        assert error[-1] < 1e-3
        if momentum and torque < np.inf:
            way = momentum**2 * (whole - wheel) / (2.0 * whole**2 * torque)
            assert error.max() == pytest.approx(way, rel=2e-3)
            back = run.t[error > 1e-3][-1] - run.t[np.argmax(error)]
            assert speed.max() > momentum / wheel + whole / wheel * 0.99 * way / back
    gains = np.array(speeds[1:]) / speeds[0]
    assert (gains > [1.15, 1.35]).all() if momentum else (gains <= 1.001).all()


def barely_strong(name: str, chosen: tuple[int, ...], rng: np.random.Generator) -> cc.Servo:
    """A servo whose torques are little more than any weight takes."""
    free = servo(name, chosen)
    scale = np.abs(moved(free, away(free, start(name), 0.3), start(name)).u).max()
    limits = np.maximum(1.02 * heaviest(free.model, rng), 0.1 * scale)
    return servo(name, chosen, torque_limits=list(limits), constraints=cc.Constraints())


def drawn(
    law: cc.Servo, name: str, rng: np.random.Generator
) -> tuple[Floats, Floats, cc.ReferenceSample]:
    """A state in motion, and a demand that may be out of reach."""
    robot = law.model.robot
    places = [robot.pose(start(name), body.name)[:3, 3] for body in robot.bodies]
    q, s = robot.random(rng), rng.uniform(-0.3, 0.3, law.model.ns)
    return q, s, away(law, q, rng.uniform(-3, 3) * float(np.ptp(places, axis=0).max()))


ATTACKED = [("rover_arm", (0, 1)), ("rover_arm", (0,)), ("free_flyer", (1,)), ("station_arm", (0,))]
ATTACKED += [("mecanum_arm", (1,))]


@pytest.mark.parametrize(("name", "chosen"), ATTACKED)
def test_random_starts_and_unreachable_references_end_no_run(
    name: str, chosen: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(39)
    law = barely_strong(name, chosen, rng)
    tick, model, robot, limits = law.compile(), law.model, law.model.robot, law.torque_limits[:, 1]
    for number in range(200):
        q, s, sample = drawn(law, name, rng)
        tick.reset()
        for _ in range(400):
            u = np.array(tick(q, s, sample))  # raises on a status that is not OK
            assert np.isfinite(u).all(), number
            assert (np.abs(u) <= limits * (1 + 1e-9)).all(), number
            s = s + TICK * np.asarray(model.acceleration(q, s, u))
            q = np.asarray(robot.integrate(q, TICK * np.asarray(model.velocity(q, s))))
            q = np.asarray(robot.normalize(q))
        assert np.isfinite(q).all(), number
        assert np.isfinite(s).all(), number


def test_weights_that_no_torque_holds_at_speed_turn_no_light_wrist() -> None:
    """At 4 ms, from a start after which joint 3 comes to a limit of its weight at 10 rad/s.

    With a limit as firm as at rest the hand turns much faster, for the reaction to it.
    """
    rng = np.random.default_rng(39)
    law = barely_strong("mecanum_arm", (1,), rng)
    tick, model, robot = law.compile(), law.model, law.model.robot
    for _ in range(223):
        q, s, sample = drawn(law, "mecanum_arm", rng)
    largest, met = 0.0, 0.0
    place = law.limit_names.index("weight on joint_3")
    for _ in range(100):
        u = np.array(tick(q, s, sample))
        s = s + PERIOD * np.asarray(model.acceleration(q, s, u))
        q = robot.integrate(q, PERIOD * np.asarray(model.velocity(q, s)))
        q = np.asarray(robot.normalize(q))
        largest, met = max(largest, float(np.abs(s).max())), met + tick.buffers.active[place]
    assert met > 0.0
    assert largest < 40.0


def test_light_wrists_do_not_take_over_from_joints_that_lack_torque() -> None:
    """Two of 900 starts at 4 ms, in which no weight takes more than its torque.

    Were slowing down no cheaper than other changes, wrists turned at 69 and 72 rad/s there, at any
    period from 0.25 ms on.
    """
    rng, found = np.random.default_rng(39), list[float]()
    law = barely_strong("mecanum_arm", (1,), rng)
    tick, model, robot = law.compile(), law.model, law.model.robot
    for number in range(228):
        q, s, sample = drawn(law, "mecanum_arm", rng)
        if number not in (179, 227):
            continue
        tick.reset()
        largest = 0.0
        for _ in range(400):
            u = np.array(tick(q, s, sample))
            s = s + PERIOD * np.asarray(model.acceleration(q, s, u))
            q = robot.integrate(q, PERIOD * np.asarray(model.velocity(q, s)))
            q = np.asarray(robot.normalize(q))
            largest = max(largest, float(np.abs(s).max()))
        found.append(largest)
    assert max(found) < 45.0


def test_shipped_robots_that_have_a_servo_are_attacked() -> None:
    """The others have fewer motors than velocities."""
    for name in set(dir(cc.robots)) - set(SHIPPED):
        robot = getattr(cc.robots, name)
        if not name.startswith("_") and name not in ("Mechanism", "load_shipped"):
            model = cc.reduce(robot())
            assert model.nu < model.ns
