"""What limits in the law cost: ticks in a loop in C, with no limit active and with many."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import casadi as ca
import numpy as np

import concur as cc
from concur.control import tick_function
from tests.benchmarks._floating_job import MOMENTUM
from tests.benchmarks._inner import OurInner, Rows
from tests.benchmarks._report import duration
from tests.benchmarks._robots import chain

GAIN, STATES, ROUNDS = 4.0, 50, 30
SHARES = 0.8, 0.3, 0.1
"""Torque limits, as shares of usual torques."""


@dataclass(frozen=True)
class Case:
    """A robot whose joints have limits of positions and speeds, its outputs, and where it starts.

    Parameters
    ----------
    robot : Mechanism
        The robot.
    outputs : list of Output
        Outputs.
    q0 : numpy.ndarray
        Configuration around which states are drawn.
    momentum : numpy.ndarray, optional
        Of a robot that floats.
    rules : dict
        Constraints beside those of joints.
    """

    robot: cc.Mechanism
    outputs: list[cc.Output]
    q0: np.ndarray
    momentum: np.ndarray | None = None
    rules: dict[str, Any] = field(default_factory=dict)

    def servo(self, **options) -> cc.Servo:
        """Build the servo."""
        model = cc.reduce(self.robot, momentum=self.momentum)
        return cc.Servo(model, self.outputs, GAIN, GAIN, **options)


def with_joint_limits(robot: cc.Mechanism) -> cc.Mechanism:
    """The robot with a range and a largest speed of every joint of one angle."""
    bodies = [
        replace(body, limits=(-2.8, 2.8), speed_limit=2.0)
        if body.parent is not None and body.joint.nv == 1
        else body
        for body in robot.bodies
    ]
    return replace(robot, bodies=tuple(bodies))


def rover(**rules: Any) -> Case:
    """The rover with its arm: gravity, five velocities, five outputs."""
    outputs = [
        cc.Output("base", "chassis", "R2", (0.25, 0.0, 0.0)),
        cc.Output("hand", "forearm", "R3", (0.0, 0.2, 0.0)),
    ]
    q0 = np.array([-0.45, -0.1, 0.1, 0, 0, -0.1, 1.0, -1.6])
    robot = replace(cc.robots.rover_arm(), supports={"caster": (0.75, 0.0, -0.1)})
    return Case(with_joint_limits(robot), outputs, q0, rules=rules)


def flyer(**rules: Any) -> Case:
    """The shipped free-flyer with momentum: six velocities, the pose of its hand."""
    robot = with_joint_limits(cc.robots.free_flyer())
    q0 = robot.neutral()
    q0[-6:] = 0.5, -1.5, 2.1, 0.2, -0.6, 0.6
    return Case(robot, [cc.Output("hand", "tool", "SE3")], q0, MOMENTUM, rules)


def arm(joints: int) -> Case:
    """A spacecraft with one arm of so many joints; the pose of its hand."""
    robot = with_joint_limits(chain(joints))
    q0 = robot.neutral()
    q0[-joints:] = 0.3 + np.random.default_rng(0).uniform(-0.6, 0.6, joints)
    return Case(robot, [cc.Output("hand", "link_tool", "SE3")], q0, MOMENTUM)


GROUND = {"grip": 0.8, "least_load": 1.0}

CASES: dict[str, Callable[[], Case]] = {
    "rover with an arm, 5 velocities": rover,
    "the same with grip and loads of wheels": lambda: rover(**GROUND),
    "the same with a least margin of 0.001": lambda: rover(margin=1e-3),
    "the same with a least margin of 0.1": lambda: rover(margin=0.1),
    "free-flyer with momentum, 6 velocities": flyer,
    "the same, with a least margin of 0.1": lambda: flyer(margin=0.1),
    "spacecraft with an arm of 12 joints": lambda: arm(12),
    "spacecraft with an arm of 20 joints": lambda: arm(20),
}


@cache
def _tick(servo: cc.Servo) -> ca.Function:
    return tick_function(servo, watched=True)


def drawn(servo: cc.Servo, q0: np.ndarray, far: float, fast: float) -> list[tuple]:
    """States near a configuration, with demands so far away."""
    rng, robot, found = np.random.default_rng(0), servo.model.robot, []
    for _ in range(STATES):
        q = np.asarray(robot.integrate(q0, 0.05 * rng.normal(size=robot.nv)))
        goal = servo.output(robot.integrate(q, far * rng.normal(size=robot.nv)))
        moving = far * rng.normal(size=(2, servo.size))
        found.append((q, fast * rng.normal(size=servo.ns), cc.ReferenceSample(goal, *moving)))
    return found


def inner(servo: cc.Servo, states: list[tuple]) -> OurInner:
    """The tick in a loop in C over states."""
    made = OurInner(_tick(servo), calls_of(servo, states))
    made.seconds(2)
    return made


def calls_of(servo: cc.Servo, states: list[tuple]) -> list[tuple[np.ndarray, ...]]:
    """Arguments of the tick in states."""
    momentum = servo.model.momentum if servo.model.takes_momentum else np.zeros(0)
    calls = []
    for q, s, sample in states:
        given = {"q": q, "s": s, "momentum": momentum, "before": np.zeros(2)}
        given |= dict(zip(("pose", "twist", "acceleration"), servo.flat(sample), strict=True))
        calls.append(tuple(given[name] for name in _tick(servo).name_in()))
    return calls


def shortest(runs: list[OurInner], rounds: int = ROUNDS) -> list[float]:
    """Shortest time of a call of each, s; they alternate."""
    times = [[run.seconds(10) / run.rows.count / 10 for run in runs] for _ in range(rounds)]
    return [float(time) for time in np.min(times, axis=0)]


def limits_ticks_table() -> str:
    """Ticks of all cases as a Markdown table."""
    lines = [
        "| robot | servo | constraints, none active | ratio | many active, mean | slowest state "
        "| limits active there, of all |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for name, make in CASES.items():
        case = make()
        rules = cc.Constraints(**case.rules)
        free = case.servo()
        kept = case.servo(torque_limits=1e5, constraints=rules)
        calm = drawn(free, case.q0, 0.02, 0.02)
        idle = shortest([inner(free, calm), inner(kept, calm)])
        usual = [np.abs(free.torque(*state)) for state in drawn(free, case.q0, 0.1, 0.2)]
        means, worst = [], (0.0, 0)
        for share in SHARES:
            limits = list(np.maximum(share * np.median(usual, axis=0), 1e-3))
            law = case.servo(torque_limits=limits, constraints=rules)
            states = drawn(law, case.q0, 0.5, 1.0)
            means += shortest([inner(law, states)])
            place = _tick(law).name_out().index("active")
            one = inner(law, states)
            for call in calls_of(law, states):
                one.rows = Rows([call])
                [time] = shortest([one], 8)
                worst = max(worst, (time, int(one.results[place].sum())))
        ratio, all_limits = idle[1] / idle[0], len(kept.limit_names)
        cells = [name, *map(duration, idle), f"{ratio:.2f}", duration(float(np.mean(means)))]
        cells += [duration(worst[0]), f"{worst[1]} of {all_limits}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
