"""Plans to random goals: how many are reached, and how fast."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import concur as cc
from concur.errors import InfeasibleReferenceError
from concur.planning import PlanLimits
from concur.planning._targets import targets_of
from concur.robot import Obstacle
from tests.benchmarks._report import duration

Problem = tuple[Any, ...]
"""Model, outputs, start, goals, limits and obstacles of a plan."""

MOMENTUM = (6.0, -4.0, 3.0, 2.0, -1.5, 1.0)
STEPS = 60

LONG = 40
"""Guesses of a long search."""

NEAREST = "the nearest goal within reach is"


def plans_table(count: int = 40, seed: int = 0, only: str = "") -> str:
    """Plan to random goals, as a Markdown table; compiling is not timed.

    Goals that are not reached are named by the limit that forbids them. Inverse kinematics, another
    search, is asked for a posture where none was found, and a long search where no cause is named.
    """
    lines = [
        "| problem | goals | reached | refused with the limit | so by inverse kinematics "
        "| not reached | so after a long search | median | 90 % | longest |",
        "| --- |" + " ---: |" * 9,
    ]
    notes = list[str]()
    for label, (share, problems) in CASES.items():
        if only not in label:
            continue
        found = _measured(problems(np.random.default_rng(seed)), max(2, round(share * count)))
        seconds = [one.seconds for one in found]
        times = [duration(float(x)) for x in (*np.quantile(seconds, [0.5, 0.9]), max(seconds))]
        numbers = [
            len(found), *(sum(getattr(one, part) for one in found) for part in COUNTED)
        ]  # fmt: skip
        lines.append(f"| {' | '.join([label, *map(str, numbers), *times])} |")
        for cause, often in Counter(one.cause for one in found if one.cause).most_common():
            notes.append(f"- {label}, {often} of {len(found)}: {cause}.")
    return "\n".join([*lines, "", *notes]).rstrip()


COUNTED = ("reached", "refused", "confirmed", "failed", "lost")


@dataclass(frozen=True)
class Measured:
    """What became of one goal: seconds, verdicts, and the limit that forbids it."""

    seconds: float
    reached: bool
    refused: bool
    confirmed: bool
    failed: bool
    lost: bool
    cause: str


def _measured(problems: Iterator[Problem], count: int) -> list[Measured]:
    """Plan to some goals; problems that start in an obstacle are drawn again."""
    made = list[Measured]()
    while len(made) < count:
        problem = next(problems)
        try:
            made or cc.plan(*problem, guesses=1)
            begin = time.process_time()
            found = cc.plan(*problem)
        except InfeasibleReferenceError:
            continue
        spent = time.process_time() - begin
        refused = not found.reached and NEAREST in found.why
        failed = not found.reached and not refused
        lost = failed and not cc.plan(*problem, guesses=LONG).reached
        cause = "" if found.reached else re.sub(".* away, ", "", found.why.split(";")[0])
        confirmed = refused and not _has_posture(*problem[:4])
        made.append(Measured(spent, found.reached, refused, confirmed, failed, lost, cause))
    return made


def _has_posture(model: Any, outputs: Any, q0: Any, goals: Any) -> bool:
    """Whether inverse kinematics finds a posture at whole goals, limits of torques apart."""
    targets = targets_of(outputs, goals, "plan")
    asked = [outputs[target.output] for target in targets]
    target = np.concatenate([target.wanted for target in targets])
    return bool(cc.inverse_kinematics(model.robot, asked, target, q0, tolerance=1e-6).solved)


def _rover(
    rng: np.random.Generator, post: bool = False, anywhere: bool = False
) -> Iterator[Problem]:
    """Base and hand of random postures within 2.5 m; with a post half way there.

    With `anywhere` the hand has a goal in a box around the base, which its arm may not reach.
    """
    robot = cc.robots.rover_arm()
    model, q0 = cc.reduce(robot), np.array([0, 0, 0, 0, 0, 0.2, 1.0, -1.6])
    base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    while True:
        q, far, way = q0.copy(), rng.uniform(1.5 if post else 0.3, 2.5), rng.uniform(-np.pi, np.pi)
        q[:3] = far * np.cos(way), far * np.sin(way), rng.uniform(-np.pi, np.pi)
        q[5:] = rng.uniform((-2.0, 0.2, -2.2), (2.0, 1.3, -0.5))
        at, hold = (
            (robot.pose(q, o.body) @ [*o.point, 1.0])[: 2 if o is base else 3] for o in (base, hand)
        )
        if anywhere:
            hold = np.array([*(at + rng.uniform(-0.8, 0.8, 2)), rng.uniform(0.1, 1.1)])
        half = (*(0.5 * np.add(at, [0.25, 0.0]) + rng.uniform(-0.1, 0.1, 2)), 0.0)
        posts = [Obstacle("post", half, (*half[:2], 0.5), 0.1, distance=0.02)] if post else []
        goals = {"base": at} if post else {"base": at, "hand": hold}
        outputs = [base] if post else [base, hand]
        yield model, outputs, q0, goals, PlanLimits(torques=10.0, speeds=5.0), posts


def _floater(rng: np.random.Generator, kind: str) -> Iterator[Problem]:
    """Where a random motion of the joints in 3 s ends; or the base turned with the joints back."""
    robot = cc.robots.free_flyer()
    model = cc.reduce(robot, momentum=None if kind == "turned" else MOMENTUM)
    q0, root = robot.neutral(), robot.base.name
    q0[7:] = 0.3, 0.7, -1.3, 0.2, 0.6, 0.1
    hand, base = cc.Output("hand", "hand", "R3xSO3"), cc.Output("base", root, "SO3")
    limits = PlanLimits(torques=30.0, speeds=1.0)
    arm = cc.Output("hand", "hand", "R3xSO3", relative_to=root)
    folded = np.linalg.inv(robot.pose(q0, root)) @ robot.pose(q0, "hand")
    while True:
        if kind == "turned":
            axis = rng.normal(size=3)
            turn = Rotation.from_rotvec(np.radians(10.0) * axis / np.linalg.norm(axis)).as_quat()
            yield model, [base, arm], q0, {"base": turn, "hand": folded}, limits, []
            continue
        q, change, step = q0.copy(), rng.uniform(-0.8, 0.8, 6), 3.0 / STEPS
        for k in range(STEPS):
            share = (k + 0.5) / STEPS
            s = change * 30.0 * share**2 * (1.0 - share) ** 2 / 3.0
            half = robot.integrate(q, 0.5 * step * model.velocity(q, s))
            q = robot.integrate(q, step * model.velocity(half, s))
        place = robot.pose(q, "hand")
        if kind == "both":
            yield model, [hand, base], q0, {"hand": place, "base": q[3:7]}, limits, []
            continue
        ends = np.array([place[:3, 3], robot.pose(q0, "hand")[:3, 3]])
        mid = np.add(ends.mean(axis=0), [0.0, 0.0, 0.1])
        if np.linalg.norm(ends - mid, axis=1).min() < 0.3:  # the goal would be in the ball
            continue
        ball = Obstacle("ball", mid, mid, 0.08, distance=0.02, capsules=("hand",))
        yield model, [hand], q0, {"hand": place}, limits, [ball]


CASES: dict[str, tuple[float, Callable[[np.random.Generator], Iterator[Problem]]]] = {
    "rover: base and hand": (1.0, _rover),
    "rover: base, and hand in a box around it": (1.0, lambda rng: _rover(rng, anywhere=True)),
    "rover: base, past a post": (0.5, lambda rng: _rover(rng, post=True)),
    "free-flyer with momentum: pose of the hand, past a ball": (
        0.5,
        lambda rng: _floater(rng, "hand"),
    ),
    "free-flyer with momentum: pose of the hand, attitude of the base": (
        0.5,
        lambda rng: _floater(rng, "both"),
    ),
    "free-flyer: base turned by 10 degrees, joints back": (
        0.5,
        lambda rng: _floater(rng, "turned"),
    ),
}
"""Problems with their share of the goals."""
