"""How long it takes from a description to the first torque: compiled anew, and from the cache."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np

import concur as cc
from tests.benchmarks._floating_job import DAMPING, MOMENTUM, STIFFNESS
from tests.benchmarks._many_laws import PLANAR_MOMENTUM
from tests.benchmarks._robots import chain, dual_arm, humanoid, tilted_free_flyer
from tests.benchmarks._rover_comparisons import drawn


@dataclass(frozen=True)
class Build:
    """Times of one build, s.

    Parameters
    ----------
    robot : str
        What was built.
    freedoms : int
        Velocities of the robot.
    instructions : int
        Length of the graph of the law.
    compiled : bool
        Whether there was a compiler.
    graph, written, built, whole : float
        Expressions, C sources, compiling, and everything from the description to the first torque.
    again : float
        Everything, with what was compiled in the cache.
    """

    robot: str
    freedoms: int
    instructions: int
    compiled: bool
    graph: float
    written: float
    built: float
    whole: float
    again: float


def _hands(*bodies: str) -> list[cc.Output]:
    return [cc.Output(body, body, "SE3") for body in bodies]


def _floater(robot: cc.Mechanism, momentum: np.ndarray, outputs: list[cc.Output]) -> cc.Servo:
    model = cc.reduce(described(robot), momentum=momentum)
    return cc.Servo(model, outputs, STIFFNESS, DAMPING)


def described(robot: cc.Mechanism) -> cc.Mechanism:
    """Make a robot from its bodies anew, so that nothing is known of it yet."""
    return cc.Mechanism(
        robot.name, robot.bodies, robot.wheels, robot.gravity, actuated=robot.actuated
    )


def _planar() -> cc.Servo:
    hand = cc.Output("hand", "forearm", "R2", (0.4, 0.0, 0.0))
    return _floater(cc.robots.planar_floater(), PLANAR_MOMENTUM, [hand])


def _rover() -> cc.Servo:
    job = drawn()[0]
    return cc.Servo(cc.reduce(described(job.robot)), job.outputs, job.stiffness, job.damping)


ROBOTS: dict[str, Callable[[], cc.Servo]] = {
    "planar floater": _planar,
    "rover with an arm": _rover,
    "free-flyer, 6 joints": lambda: _floater(cc.robots.free_flyer(), MOMENTUM, _hands("tool")),
    "the same without structural zeros": lambda: _floater(
        tilted_free_flyer(), MOMENTUM, _hands("tool")
    ),
    "two arms of 7 joints": lambda: _floater(
        dual_arm(), MOMENTUM, _hands("left_tool", "right_tool")
    ),
    "24 joints": lambda: _floater(chain(24), MOMENTUM, _hands("link_tool")),
    "48 joints": lambda: _floater(chain(48), MOMENTUM, _hands("link_tool")),
    "humanoid of 40 joints": lambda: _floater(humanoid(), MOMENTUM, _hands("left_arm8")),
}


def build_times(name: str) -> Build:
    """Build a law twice: with an empty cache, and with what the first one left there."""
    make = ROBOTS[name]
    make()  # imports, and what all robots share
    with tempfile.TemporaryDirectory() as place, cache_at(place):
        begin = time.perf_counter()
        servo = make()
        tick = servo.compile()
        tick.run()
        whole = time.perf_counter() - begin
        begin = time.perf_counter()
        make().compile().run()
        again = time.perf_counter() - begin
    times = tick.build_times
    return Build(
        name,
        servo.model.robot.nv,
        tick.instructions,
        tick.compiled,
        times["graph"],
        times["written"],
        times["built"],
        whole,
        again,
    )


@contextmanager
def cache_at(place: str) -> Iterator[None]:
    """Keep compiled code elsewhere for a while."""
    before = os.environ.get("CONCUR_CACHE")
    os.environ["CONCUR_CACHE"] = place
    try:
        yield
    finally:
        if before is None:
            del os.environ["CONCUR_CACHE"]
        else:
            os.environ["CONCUR_CACHE"] = before
