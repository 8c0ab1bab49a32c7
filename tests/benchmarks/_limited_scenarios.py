"""Scenarios in which a limit is in the way: robot, outputs, reference and obstacle as data.

The limits of joints stand in the robots, where every law finds them. References go somewhere, wait
there, and in most scenarios come back, so that a law shows what it does while it is limited, at
rest against the limit, and afterwards.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any

import numpy as np

import concur as cc
from concur.robot import Shape

PERIOD = 1e-3
"""Time from one tick to the next, s."""

BASE = cc.Output("base", "chassis", "R2", (0.25, 0.0, 0.0))
HAND = cc.Output("hand", "forearm", "R3", (0.0, 0.2, 0.0))
START = np.array([0.0, 0.0, 0.0, 0.0, 0.0, -0.1, 1.0, -1.6])
"""Start of the rover: its shoulder holds 5.86 N m against gravity."""

FLOATING_START = np.array([0.0] * 6 + [1.0, 0.5, -1.5, 2.1, 0.2, -0.6, 0.6])
MOMENTUM = np.array([0.2, -0.1, 0.1, 0.3, -0.2, 0.2])
"""Of the free-flyer about the inertial origin, kg m/s and kg m^2/s."""

ARM_START = np.array([0.3, 0.6, 0.2, 1.3, -0.2, 0.9, 0.0])


@dataclass(frozen=True)
class Ball:
    """A ball at rest, and the bodies whose capsules keep away from it.

    Parameters
    ----------
    centre : tuple of float
        Its centre, shape (3,), m.
    radius : float
        Its radius, m.
    bodies : tuple of str
        Bodies that keep away.
    distance : float
        Least distance of their capsules from it, m.
    """

    centre: tuple[float, float, float]
    radius: float
    bodies: tuple[str, ...]
    distance: float = 0.01


@dataclass(frozen=True)
class Ground:
    """Friction of the wheels of a rover on two wheels and a caster, and loads.

    Parameters
    ----------
    grip : float
        Friction coefficient of the wheels.
    load : float
        Least load of wheels and caster, N.
    """

    grip: float
    load: float = 0.0


@dataclass(frozen=True)
class Move:
    """One part of a reference: to a place in some time, and a wait there.

    Parameters
    ----------
    offset : tuple of float
        From the start's outputs: their coordinates (R^n), m; of a pose its position.
    seconds, wait : float
        Times of travel and rest, s.
    """

    offset: tuple[float, ...]
    seconds: float
    wait: float


@dataclass(frozen=True, eq=False)
class Scenario:
    """One robot, what it is asked to do, and what is in the way.

    Parameters
    ----------
    name, shown : str
        Name of files, and title.
    robot : Mechanism
        The robot with its limits.
    outputs : tuple of Output
        Outputs.
    stiffness, damping : tuple of float
        Gains, one per output.
    q0 : numpy.ndarray
        Configuration at the start, which is at rest.
    moves : tuple of Move
        The reference.
    momentum : numpy.ndarray, optional
        Of a floating robot.
    ball : Ball, optional
        An obstacle.
    ground : Ground, optional
        Friction that wheels have, and least loads.
    threshold : float, optional
        Margin below which the servo without constraints is damped.
    """

    name: str
    shown: str
    robot: cc.Mechanism
    outputs: tuple[cc.Output, ...]
    stiffness: tuple[float, ...]
    damping: tuple[float, ...]
    q0: np.ndarray
    moves: tuple[Move, ...]
    momentum: np.ndarray | None = None
    ball: Ball | None = None
    ground: Ground | None = None
    threshold: float | None = None

    @cached_property
    def model(self) -> cc.reduction.ReducedModel:
        """The reduced robot."""
        return cc.reduce(self.robot, momentum=self.momentum)

    @property
    def s0(self) -> np.ndarray:
        """Shape velocities at the start."""
        return np.zeros(self.model.ns)

    @property
    def torques(self) -> np.ndarray:
        """Largest controls, shape (nu,); infinite without a limit."""
        return np.asarray(self.robot.control_limits)

    def servo(self, **options: Any) -> cc.Servo:
        """Build our servo."""
        gains = list(self.stiffness), list(self.damping)
        return cc.Servo(self.model, list(self.outputs), *gains, **options)

    @cached_property
    def reference(self) -> Journey:
        """The reference, which starts where the robot is."""
        return Journey(self)

    @cached_property
    def demands(self) -> list[cc.ReferenceSample]:
        """The reference at all ticks."""
        return [self.reference(k * PERIOD) for k in range(round(self.duration / PERIOD))]

    @property
    def duration(self) -> float:
        """How long the scenario takes, s."""
        return float(sum(move.seconds + move.wait for move in self.moves))

    @property
    def limited_rest(self) -> tuple[float, float]:
        """Last half second of the first wait, in which the limit is in the way at rest, s."""
        end = self.moves[0].seconds + self.moves[0].wait
        return end - 0.5, end

    @property
    def arrival(self) -> float:
        """Time from which on the reference is at rest in its last place, s."""
        return self.duration - self.moves[-1].wait


class Journey:
    """Moves one after the other as a reference: a callable of time.

    Parameters
    ----------
    scenario : Scenario
        What is asked.
    """

    def __init__(self, scenario: Scenario) -> None:
        here = scenario.servo().output(scenario.q0)
        pose = scenario.outputs[0].group if scenario.outputs[0].group.endswith("SO3") else None
        before, begin = here, 0.0
        self.parts = []
        for move in scenario.moves:
            goal = here.copy()
            goal[: len(move.offset)] += move.offset
            part = cc.references.rest_to_rest(before, goal, move.seconds, begin, group=pose)
            self.parts.append((begin, part))
            before, begin = goal, begin + move.seconds + move.wait

    def __call__(self, t: float) -> cc.ReferenceSample:
        """Demand at a time."""
        part = next(part for begin, part in reversed(self.parts) if t >= begin)
        return part(t)


def with_limits(
    robot: cc.Mechanism,
    torque: float | Mapping[str, float],
    positions: Mapping[str, tuple[float, float]] | None = None,
    speed: float | None = None,
) -> cc.Mechanism:
    """The robot with limits of its driven joints: torque of all or by name, range, speed."""
    bodies = []
    for body in robot.bodies:
        changed: dict[str, Any] = {}
        if body.name in robot.actuated:
            largest = torque if isinstance(torque, (int, float)) else torque.get(body.name)
            changed = {"torque_limit": largest, "speed_limit": speed}
            if positions and body.name in positions:
                changed["limits"] = positions[body.name]
        bodies.append(replace(body, **changed))
    return replace(robot, bodies=bodies)


@cache
def seven_joints() -> cc.Mechanism:
    """Build the arm of the `mecanum_arm` on a floor: seven joints for the place of its hand."""
    whole = cc.robots.mecanum_arm()
    floor = cc.Body("floor", cc.joints.Fixed())
    bodies = [body for body in whole.bodies if body.name.startswith("joint") or body.name == "hand"]
    first, *rest = bodies
    start = replace(first, parent="floor", placement=cc.Pose((0.0, 0.0, 0.4)))
    shapes = {
        name: Shape("capsule", (0.05, 0.2), cc.Pose((0.0, 0.0, 0.1)))
        for name in ("joint_3", "joint_4", "joint_5", "hand")
    }
    arm = [replace(body, shape=shapes.get(body.name, ())) for body in (start, *rest)]
    return cc.Mechanism("seven_joints", [floor, *arm], gravity=whole.gravity)


def _rover(name: str, shown: str, moves: Sequence[Move], torque: Any, **more: Any) -> Scenario:
    positions, speed = more.pop("positions", None), more.pop("speed", None)
    robot = with_limits(cc.robots.rover_arm(), torque, positions, speed)
    if carried := more.pop("carried", 0.0):
        changed = [
            replace(b, inertia=replace(b.inertia, mass=carried)) if b.name == "forearm" else b
            for b in robot.bodies
        ]
        robot = replace(robot, bodies=changed)
    if "ground" in more:
        robot = replace(robot, supports={"caster": (0.75, 0.0, -0.1)})
    gains = {"stiffness": (4.0, 9.0), "damping": (4.0, 6.0)}
    given = {"outputs": (BASE, HAND), "q0": START, **gains} | more
    return Scenario(f"rover-{name}", f"Rover: {shown}", robot, moves=tuple(moves), **given)


def _floater(name: str, shown: str, moves: Sequence[Move], torque: Any, **more: Any) -> Scenario:
    positions, speed = more.pop("positions", None), more.pop("speed", None)
    robot = with_limits(cc.robots.free_flyer(), torque, positions, speed)
    hand = (cc.Output("hand", "tool", "R3xSO3"),)
    gains = {"stiffness": (4.0,), "damping": (4.0,), "momentum": MOMENTUM}
    given = {"outputs": hand, "q0": FLOATING_START, **gains} | more
    return Scenario(f"floater-{name}", f"Free-flyer: {shown}", robot, moves=tuple(moves), **given)


def _arm(name: str, shown: str, moves: Sequence[Move], torque: Any, **more: Any) -> Scenario:
    positions, speed = more.pop("positions", None), more.pop("speed", None)
    robot = with_limits(seven_joints(), torque, positions, speed)
    hand = (cc.Output("hand", "hand", "R3", (0.0, 0.0, 0.2)),)
    gains = {"stiffness": (9.0,), "damping": (6.0,)}
    given = {"outputs": hand, "q0": ARM_START, **gains} | more
    return Scenario(f"arm-{name}", f"Arm of 7 joints: {shown}", robot, moves=tuple(moves), **given)


STILL = (0.0,) * 5


@cache
def scenarios() -> dict[str, Scenario]:
    """All scenarios by name."""
    made = [
        _rover(
            "weak",
            "reach with 6.2 N m where gravity takes 5.86, in the end 6.23, and back",
            [Move((0.0, 0.0, 0.16, 0.0, 0.05), 1.0, 3.0), Move(STILL, 1.0, 3.0)],
            6.2,
        ),
        _rover(
            "fast",
            "reach in 0.4 s with 8 N m",
            [Move((0.0, 0.0, 0.14, 0.08, 0.03), 0.4, 4.6)],
            8.0,
        ),
        _rover(
            "sprint",
            "base 3 m in 1 s with wheels of 3 N m",
            [Move((3.0, 0.0, 3.0, 0.0, 0.0), 1.0, 7.0)],
            {"left_wheel": 3.0, "right_wheel": 3.0, "turret": 10.0, "upper_arm": 10.0}
            | {"forearm": 10.0},
        ),
        _rover(
            "far",
            "hand 0.3 m out of reach, and back",
            [Move((0.0, 0.0, 0.3, 0.5, 0.0), 2.0, 3.0), Move(STILL, 2.0, 3.0)],
            30.0,
            speed=6.0,
            threshold=0.1,
        ),
        _rover(
            "heavy",
            "a place where 6.2 N m are below gravity, and back",
            [Move((0.0, 0.0, 0.1, 0.15, -0.1), 2.0, 3.0), Move(STILL, 2.0, 6.0)],
            6.2,
        ),
        _rover(
            "stop",
            "a joint limit in the way, and back",
            [Move((0.0, 0.0, 0.1, 0.15, 0.0), 2.0, 3.0), Move(STILL, 2.0, 3.0)],
            20.0,
            positions={"forearm": (-2.6, -1.3)},
            speed=6.0,
        ),
        _rover(
            "ball",
            "a ball in the way of the hand",
            [Move((0.0, 0.0, -0.5, 0.0, 0.05), 3.0, 5.0)],
            20.0,
            speed=6.0,
            ball=Ball((0.23, 0.85, 0.2), 0.08, ("forearm", "upper_arm")),
        ),
        _rover(
            "slip",
            "wheels about to slip: 1 m in 1 s with a grip of 0.25",
            [Move((1.0, 0.0, 1.0, 0.0, 0.0), 1.0, 6.0)],
            20.0,
            ground=Ground(0.25),
        ),
        _rover(
            "tip",
            "about to tip over: 5 kg in the hand, to a place beside the wheels, and back",
            [Move((0.0, 0.0, -0.1, 0.25, -0.05), 1.0, 4.0), Move(STILL, 2.0, 4.0)],
            60.0,
            ground=Ground(0.6, 10.0),
            carried=5.0,
        ),
        _floater("fast", "reach in 0.6 s with 6 N m", [Move((0.15, 0.1, -0.1), 0.6, 5.4)], 6.0),
        _floater(
            "far",
            "hand 0.4 m out of reach, and back",
            [Move((0.9, 0.0, 0.2), 2.0, 5.0), Move((0.0, 0.0, 0.0), 2.0, 3.0)],
            60.0,
            speed=6.0,
            threshold=0.05,
        ),
        _floater(
            "stop",
            "a joint limit in the way, and back",
            [Move((0.25, 0.1, 0.0), 2.0, 3.0), Move((0.0, 0.0, 0.0), 2.0, 3.0)],
            60.0,
            positions={"forearm": (1.8, 2.8)},
            speed=6.0,
        ),
        _floater(
            "ball",
            "a ball in the way of the hand",
            [Move((0.0, -0.6, 0.0), 3.0, 5.0)],
            60.0,
            speed=6.0,
            ball=Ball((1.6, 0.3, 0.32), 0.08, ("hand", "wrist_pitch")),
        ),
        _arm(
            "weak",
            "reach with little more torque than gravity takes",
            [Move((0.1, 0.1, 0.1), 0.5, 4.5)],
            {"joint_1": 20.0, "joint_2": 44.0, "joint_3": 20.0, "joint_4": 19.0}
            | {"joint_5": 5.0, "joint_6": 5.0, "hand": 2.0},
        ),
        _arm(
            "far",
            "hand 0.3 m out of reach, and back",
            [Move((0.9, 0.0, 0.0), 2.0, 6.0), Move((0.0, 0.0, 0.0), 2.0, 3.0)],
            80.0,
            speed=6.0,
            threshold=0.05,
        ),
        _arm(
            "heavy",
            "a place where torques are below gravity, and back",
            [Move((0.3, 0.1, -0.2), 2.0, 20.0), Move((0.0, 0.0, 0.0), 2.0, 3.0)],
            {"joint_1": 20.0, "joint_2": 44.0, "joint_3": 20.0, "joint_4": 19.0}
            | {"joint_5": 5.0, "joint_6": 5.0, "hand": 2.0},
        ),
        _arm(
            "stop",
            "a joint limit in the way, and back",
            [Move((0.3, 0.1, 0.1), 2.0, 7.0), Move((0.0, 0.0, 0.0), 2.0, 3.0)],
            80.0,
            positions={"joint_4": (1.1, 2.2)},
            speed=6.0,
        ),
        _arm(
            "ball",
            "a ball in the way of the hand",
            [Move((0.0, -0.6, 0.0), 3.0, 5.0)],
            80.0,
            speed=6.0,
            ball=Ball((0.62, -0.03, 0.52), 0.08, ("hand", "joint_5")),
        ),
    ]
    return {scenario.name: scenario for scenario in made}
