"""Uncertain rotations, gear ratios, centres and supports: the plant of the rebuilt robot."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import concur as cc
from concur.errors import ConcurError, ShapeError, SimulationError, UnknownNameError
from concur.robot import Body, Inertia, Mechanism, Motor, Pose, Support, Wheel, joints
from concur.simulation import Plant
from tests.oracles import Pinocchio, assert_close
from tests.simulation.test_worlds import EXAMPLES, ROBOTS, odd, refused


def bowl() -> Mechanism:
    """A ball that rolls in a hollow sphere."""
    inertia = Inertia(0.5, moments=(0.002, 0.002, 0.003))
    ball = Body("ball", joints.Free(), "ground", Pose((0.0, 0.0, -0.4)), inertia)
    wheel = Wheel("ball", 0.1, "ball", support=Support(radius=0.5, hollow=True))
    return Mechanism(
        "bowl", [Body("ground", joints.Fixed()), ball], [wheel], (0, 0, -9.81), actuated=()
    )


OTHERS = {"bowl": bowl(), "sleigh": cc.robots.chaplygin_sleigh(), **ROBOTS}


@functools.cache
def tilted(name: str) -> Plant:
    """All placements tilt and shift, but those of axles of `steering`, which only shift."""
    robot = OTHERS[name]
    steered = {n for s in robot.steering for n in (s.wheel, *s.guides)}
    steered |= {str(robot.bodies[robot.index(n)].parent) for n in steered}
    fields = ("inertia.mass", "inertia.com", "placement.translation", "placement.rotation")
    family = [
        f"{body.name}.{field}"
        for body in robot.bodies
        if body.parent is not None and body.inertia.mass
        for field in fields[: 3 if body.name in steered else 4]
    ]
    return Plant(robot, uncertain=family)


def world(plant: Plant, seed: int) -> dict[str, Any]:
    rng, found = np.random.default_rng(seed), {}
    scales = {"mass": 0.05, "com": 0.01, "translation": 0.02, "rotation": 0.1}
    for name in plant.uncertain or ():
        field = name.rpartition(".")[2]
        drawn = scales[field] * (rng.uniform() if field == "mass" else rng.normal(size=3))
        found[name] = 0.0 * drawn if name.startswith("front") and field == "translation" else drawn
    return found


def assert_same(plant: Plant, given: Any, other: Mechanism) -> None:
    rng = np.random.default_rng(4)
    q, v, u = other.random(rng), rng.normal(size=plant.nv), rng.normal(size=plant.nu)
    (p,) = plant.numbers(given)
    for came, due in zip(
        plant.world_acceleration(q, v, u, p), Plant(other).acceleration(q, v, u), strict=True
    ):
        assert_close(came, due, 1e-10)
    nominal = Plant(plant.robot).acceleration(q, v, u)[0]
    assert np.abs(nominal - plant.world_acceleration(q, v, u, p)[0]).max() > 1e-6


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", ["odd", "rover", "car", "floater", "mecanum", "marble"])
def test_tilted_placements_are_those_of_the_rebuilt_robot(name: str) -> None:
    plant = tilted(name)
    for seed in range(2):
        assert_same(plant, world(plant, seed), plant.rebuilt(world(plant, seed)))
    (p,) = plant.numbers({})
    state = plant.robot.neutral(), np.ones(plant.nv), np.ones(plant.nu)
    due = Plant(plant.robot).acceleration(*state)[0]
    assert_close(plant.world_acceleration(*state, p)[0], due, 1e-12)


def test_tilted_placements_move_the_plant_as_pinocchio_does() -> None:
    robot = replace(odd(), actuated=None, motors=(), mimics=())
    moving = ("arm", "plate", "slide", "hand")
    family = [f"{n}.placement.{field}" for n in moving for field in ("translation", "rotation")]
    plant, rng = Plant(robot, uncertain=family), np.random.default_rng(5)
    given = {name: 0.2 * rng.normal(size=3) for name in family}
    bodies = []
    for body in robot.bodies:
        pose, name = body.placement.matrix, body.name
        if name in moving:
            pose[:3, 3] += given[f"{name}.placement.translation"]
            turn = Rotation.from_rotvec(given[f"{name}.placement.rotation"])
            pose[:3, :3] = turn.as_matrix() @ pose[:3, :3]
        quaternion = Rotation.from_matrix(pose[:3, :3]).as_quat()
        bodies.append(replace(body, placement=Pose(tuple(pose[:3, 3]), tuple(quaternion))))
    oracle = Pinocchio(replace(robot, bodies=bodies))
    (p,) = plant.numbers(given)
    q, v, u = robot.random(rng), rng.normal(size=robot.nv), rng.normal(size=plant.nu)
    force = np.concatenate([np.zeros(6), u])
    due = np.linalg.solve(oracle.mass_matrix(q), force - oracle.bias(q, v))
    assert_close(plant.world_acceleration(q, v, u, p)[0], due, 1e-10)


def test_ratios_are_those_of_the_motors() -> None:
    robot = replace(
        odd(), actuated=(), mimics=(), motors=[Motor("pair", {"slide": 3.0, "arm": 2.0})]
    )
    plant = Plant(robot, uncertain=["pair.ratio"])
    assert plant.number_names == ("pair: ratio[0]", "pair: ratio[1]")
    assert plant.numbers({"pair.ratio": [[0.5, -0.1], [0, 0]]}).tolist() == [
        [3.5, 1.9],
        [3, 2],
    ]
    given = {"pair.ratio": [0.5, -0.1]}
    other = plant.rebuilt(given)
    slide, arm = robot.freedoms("slide", "arm")
    assert other.actuation(robot.neutral())[[slide, arm], 0].tolist() == [3.5, 1.9]
    assert_same(plant, given, other)
    assert_same(plant, given, replace(robot, motors=[Motor("pair", {"slide": 3.5, "arm": 1.9})]))


def test_centres_and_supports_are_those_of_the_wheels() -> None:
    sleigh, rolling = OTHERS["sleigh"], OTHERS["bowl"]
    (skate,) = sleigh.wheels
    plant = Plant(sleigh, uncertain=[f"{skate.body}.center"])
    given: dict[str, Any] = {f"{skate.body}.center": [0.03, -0.02, 0.0]}
    moved = tuple(np.array(skate.center) + given[f"{skate.body}.center"])
    assert_same(plant, given, replace(sleigh, wheels=[replace(skate, center=moved)]))
    assert_same(plant, given, plant.rebuilt(given))

    plant = Plant(rolling, uncertain=["ball.center", "ball.support.center", "ball.support.radius"])
    given = {"ball.support.center": [0.01, 0.02, -0.03], "ball.support.radius": 0.04}
    given["ball.center"] = [0.01, 0.0, -0.02]
    support = Support(radius=0.54, center=(0.01, 0.02, -0.03), hollow=True)
    ball = replace(rolling.wheels[0], center=(0.01, 0.0, -0.02), support=support)
    other = plant.rebuilt(given)
    assert other.wheels[0].support.radius == pytest.approx(0.54, rel=1e-15)
    assert replace(other.wheels[0], support=support) == ball
    assert_same(plant, given, other)


def test_declarations_that_cannot_be_are_refused_with_the_reason() -> None:
    car = cc.load(EXAMPLES / "drives" / "ackermann_car.toml")
    for robot, uncertain, kind, text in (
        (ROBOTS["rover"], ["chassis.placement.rotation"], SimulationError, "the base"),
        (ROBOTS["rover"], ["left_wheel.center"], SimulationError, "axis of its joint"),
        (ROBOTS["rover"], ["forearm.center"], SimulationError, "no wheel"),
        (ROBOTS["rover"], ["left_wheel.support.radius"], SimulationError, "a sphere"),
        (ROBOTS["marble"], ["ball.support.center"], SimulationError, "a plane"),
        (ROBOTS["rover"], ["forearm.ratio"], UnknownNameError, "a body, motor or spring"),
        (ROBOTS["odd"], ["jet.ratio"], UnknownNameError, "jet"),
        (ROBOTS["odd"], ["motor.inertia.mass"], UnknownNameError, "motor"),
        (car, ["front_right.placement.rotation"], SimulationError, "on an axle of the steering"),
        (car, ["left_steering.placement.rotation"], SimulationError, "on an axle of the steering"),
    ):
        refused(lambda r=robot, u=uncertain: Plant(r, uncertain=u), kind, text)


def test_worlds_at_the_edge_of_what_can_be() -> None:
    rolling = Plant(OTHERS["bowl"], uncertain=["ball.radius", "ball.support.radius"])
    motor = Plant(ROBOTS["odd"], uncertain=["motor.ratio"])

    def check(plant: Plant, given: Any, bad: bool) -> None:
        if not bad:
            plant.numbers(given)
            return
        with pytest.raises(SimulationError) as caught:
            plant.numbers(given)
        assert caught.value.world == 1
        assert caught.value.cure

    for least, bad in ((-0.399999, False), (-0.4, True)):
        check(rolling, {"ball.support.radius": [0.0, least]}, bad)
    for larger, bad in ((0.399, False), (0.4, True)):
        check(rolling, {"ball.radius": [0.0, larger]}, bad)
    for ratio, bad in ((-2.999, False), (-3.0, True), (-3.001, False)):
        check(motor, {"motor.ratio": [[0.0], [ratio]]}, bad)
    with pytest.raises(ShapeError, match=r"\(1,\)"):
        motor.numbers({"motor.ratio": 0.1})
    with pytest.raises(ConcurError, match="rotation"):
        tilted("rover").numbers({"forearm.placement.rotation": 0.1})


def test_axes_lean_up_to_84_degrees() -> None:
    plant = tilted("floater")
    for degrees, bad in ((84.0, False), (84.5, True), (95.5, True), (96.0, False), (170.0, False)):
        given = {"turret.placement.rotation": [np.deg2rad(degrees), 0.0, 0.0]}
        if bad:
            error = refused(lambda g=given: plant.numbers(g), SimulationError, "turret")
            assert error.world == 0
        else:
            assert_same(plant, given, plant.rebuilt(given))
