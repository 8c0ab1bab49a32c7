"""Lanes of robots: law, plant and step of the closed loop, as world by world."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import concur as cc
from concur.codegen import Evaluator, Lanes
from concur.control._tick import tick_function
from concur.simulation import Plant
from concur.simulation._step import step_function
from tests.benchmarks import _floating_job, _job
from tests.benchmarks._job import Moment
from tests.control._cases import gantry
from tests.oracles import random_floater

COUNT = 13
"""Of worlds: whole groups and a part of one."""


@cache
def rover() -> tuple[cc.Servo, list[Moment]]:
    task = _job.task()
    servo = _job.servo_of(task)
    return servo, _job.moments(task, servo, COUNT)


@cache
def free_flyer() -> tuple[cc.Servo, list[Moment]]:
    servo = _floating_job.free_flyer().servo()
    return servo, _floating_job.floating_moments(servo, _floating_job.START, COUNT)


@cache
def ball() -> tuple[cc.Servo, list[Moment]]:
    """A hand on a spherical joint, carried by three slides."""
    robot = gantry()
    output = cc.Output("hand", "hand", "SE3", (0.1, 0.2, -0.3))
    servo = cc.Servo(cc.reduce(robot), [output], 4.0 * np.eye(6), 4.0 * np.eye(6))
    rng = np.random.default_rng(5)
    found = []
    for _ in range(COUNT):
        q, s = robot.random(rng), rng.uniform(-0.5, 0.5, servo.ns)
        pose, (twist, acceleration) = servo.output(robot.random(rng)), rng.normal(size=(2, 6))
        sample = cc.ReferenceSample(pose, twist, acceleration)
        found.append(Moment(q, s, servo.model.velocity(q, s), sample))
    return servo, found


def rows(moments: list[Moment], *names: str) -> list[np.ndarray]:
    """Numbers of all worlds, one array each; those of the sample held over a step as `name3`."""
    found = []
    for name in names:
        own = name.rstrip("3")
        parts = [getattr(m if hasattr(m, own) else m.sample, own) for m in moments]
        array = np.array(parts)
        found.append(np.repeat(array[:, :, None], 3, axis=2) if name != own else array)
    return found


def assert_alike(evaluator: Evaluator, lanes: Lanes, arguments: list[np.ndarray]) -> None:
    """Compare with the interpreter, called world by world."""
    assert lanes.compiled
    results = lanes(*arguments)
    results = results if isinstance(results, tuple) else (results,)
    single = [evaluator(*(a[k] if a.ndim else a for a in arguments)) for k in range(COUNT)]
    single = [one if isinstance(one, tuple) else (one,) for one in single]
    for result, right in zip(results, zip(*single, strict=True), strict=True):
        wanted = np.array(right)
        difference = np.abs(result - wanted).max(initial=0.0)
        assert difference <= 1e-12 * max(1.0, np.abs(wanted).max(initial=0.0)), difference
        assert result.shape == wanted.shape


SCENES = {"rover": rover, "free-flyer": free_flyer, "ball": ball}


@pytest.mark.extended
@pytest.mark.parametrize("name", SCENES)
def test_law(compiler: None, name: str) -> None:
    servo, moments = SCENES[name]()
    arguments = rows(moments, "q", "s", "pose", "twist", "acceleration")
    if name == "free-flyer":  # each world has another momentum
        rng = np.random.default_rng(0)
        arguments.append(_floating_job.MOMENTUM + rng.uniform(-0.2, 0.2, (COUNT, 6)))
    evaluator = Evaluator(
        tick_function(servo), [(servo.nu,), (), (servo.size,), (), ()], f"law of {name}"
    )
    lanes = Lanes(evaluator)
    assert_alike(evaluator, lanes, arguments)
    u, _, _, _, status = lanes(*arguments)
    assert (status == 0.0).all()
    # A lost measurement gives no torque in its world, and changes nothing in the others.
    arguments[0] = arguments[0].copy()
    arguments[0][4, 1] = np.nan
    broken, *_, told = lanes(*arguments)
    assert_array_equal(broken[4], np.zeros(servo.nu))
    assert told[4] != 0.0
    assert_array_equal(np.delete(broken, 4, axis=0), np.delete(u, 4, axis=0))


@pytest.mark.extended
@pytest.mark.parametrize("name", SCENES)
def test_plant(compiler: None, name: str) -> None:
    servo, moments = SCENES[name]()
    plant = Plant(servo.model.robot)
    u = np.random.default_rng(1).uniform(-5.0, 5.0, (COUNT, plant.nu))
    evaluator = plant.buffered("acceleration")
    assert_alike(evaluator, Lanes(evaluator, width=4), [*rows(moments, "q", "v"), u])


@pytest.mark.extended
def test_plant_of_a_random_robot_with_spherical_joints(compiler: None) -> None:
    robot = random_floater("Spherical", 3)
    plant = Plant(robot)
    rng = np.random.default_rng(2)
    q = np.array([robot.random(rng) for _ in range(COUNT)])
    v, u = rng.uniform(-1.0, 1.0, (COUNT, robot.nv)), rng.normal(size=(COUNT, plant.nu))
    evaluator = plant.buffered("acceleration")
    assert_alike(evaluator, Lanes(evaluator), [q, v, u])


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "method"),
    [
        ("ball", "rk4"),
        pytest.param("ball", "rkmk4", marks=pytest.mark.slow),
        pytest.param("rover", "rk4", marks=pytest.mark.slow),
        pytest.param("free-flyer", "rk4", marks=pytest.mark.slow),
    ],
)
def test_step_of_the_closed_loop(compiler: None, name: str, method: str) -> None:
    servo, moments = SCENES[name]()
    step = step_function(servo, Plant(servo.model.robot), method, held=False)
    q, v, *command = rows(moments, "q", "v", "pose3", "twist3", "acceleration3")
    work = np.linspace(-1.0, 1.0, COUNT)
    lanes = Lanes(step)
    assert_alike(step, lanes, [q, v, work, np.array(1e-3), *command])
    # In place, again and again: the worlds go where they go one by one.
    states = [q.copy(), v.copy(), work.copy(), np.empty(COUNT)]
    advance = lanes.bind([*states[:3], np.array(1e-3), *command], states)
    for _ in range(5):
        advance()
    for k in (0, 7, COUNT - 1):
        single = [q[k], v[k], work[k]]
        for _ in range(5):
            *single, pivot = step(*single, 1e-3, *(part[k] for part in command))
        for state, right in zip(states, [*single, pivot], strict=True):
            np.testing.assert_allclose(state[k], right, rtol=1e-11, atol=1e-11)


@pytest.mark.slow
def test_threads_give_the_same_bits(compiler: None) -> None:
    servo, moments = rover()
    step = step_function(servo, Plant(servo.model.robot), "rk4", held=False)
    q, v, *command = rows(moments, "q", "v", "pose3", "twist3", "acceleration3")
    found = [Lanes(step, threads=n)(q, v, 0.0, 1e-3, *command) for n in (1, 2)]
    for one, two in zip(*found, strict=True):
        assert_array_equal(one, two)
