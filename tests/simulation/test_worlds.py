"""Uncertain numbers as inputs: the plant is that of a robot that was built with these numbers."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import concur as cc
from concur import robot as dynamics
from concur.codegen import Batch, Rollout, instructions
from concur.codegen._compiler import Compiler
from concur.codegen._evaluator import UNSOUND, dense
from concur.codegen._rollout_c import expanded
from concur.errors import (
    ConcurError,
    InertiaError,
    NonFiniteError,
    ReductionError,
    ShapeError,
    SimulationError,
    UnknownNameError,
)
from concur.robot import (
    Body,
    Inertia,
    Mechanism,
    Mimic,
    Motor,
    Pose,
    Support,
    Wheel,
    joints,
)
from concur.robot._inertia import unphysical
from concur.simulation import Integrator, Plant, RealPlant, loop_program
from concur.simulation._program import ideal_program
from tests.oracles import assert_close
from tests.simulation.test_systems import PARTICLE

EXAMPLES = Path(__file__).parents[2] / "examples"
ALL = ("inertia.mass", "inertia.com", "inertia.moments", "placement.translation")


def odd() -> Mechanism:
    """A floating robot with a thruster, a joint that follows, and a body fixed to another."""
    inertia = Inertia(2.0, (0.1, -0.05, 0.2), (0.3, 0.25, 0.2))
    turned = Pose((0.3, 0.1, -0.2), (0.5, 0.1, -0.2, 0.8366600265340756))
    return Mechanism(
        "odd",
        [
            Body("hull", joints.Free(), inertia=inertia),
            Body("arm", joints.Revolute((0, 1, 1)), "hull", turned, inertia),
            Body("plate", joints.Fixed(), "arm", Pose((0.0, 0.4, 0.1)), inertia),
            Body("slide", joints.Prismatic((1, 0, 0)), "plate", turned, inertia),
            Body("hand", joints.Revolute((0, 0, 1)), "plate", Pose((0.2, 0.1, 0.0)), inertia),
        ],
        actuated=["arm"],
        motors=[
            Motor("jet", body="plate", wrench=(1, 0.5, 0, 0, 0, 0), point=(0.1, 0.2, 0.3)),
            Motor("motor", joints={"slide": 3.0}),
        ],
        mimics=[Mimic("hand", of="arm", multiplier=-0.5)],
    )


def marble() -> Mechanism:
    """A ball that rolls freely on a plane."""
    inertia = Inertia(0.5, moments=(0.002, 0.002, 0.003))
    ball = Body("ball", joints.Free(), "ground", Pose((0.0, 0.0, 0.1)), inertia)
    wheel = Wheel("ball", 0.1, "ball", support=Support())
    return Mechanism(
        "marble", [Body("ground", joints.Fixed()), ball], [wheel], (0, 0, -9.81), actuated=()
    )


ROBOTS = {
    "odd": odd(),
    "marble": marble(),
    "rover": cc.robots.rover_arm(),
    "floater": cc.robots.free_flyer(),
    "car": cc.load(EXAMPLES / "drives" / "ackermann_car.toml"),
    "swerve": cc.load(EXAMPLES / "drives" / "swerve.toml"),
    "mecanum": cc.robots.mecanum_arm(),
}


def declared(robot: Mechanism, fields: tuple[str, ...] = (*ALL, "radius")) -> list[str]:
    """All numbers of these fields that the bodies can have."""
    wheels = {wheel.body for wheel in robot.wheels}
    return [
        f"{body.name}.{field}"
        for body in robot.bodies
        if body.inertia.mass or body.name in wheels
        for field in fields
        if (field != "radius" or body.name in wheels)
        and (field != "placement.translation" or body.parent is not None)
    ]


def drawn(robot: Mechanism, names: Sequence[str], count: int, seed: int = 0) -> dict[str, Any]:
    """Deviations that leave all wheels on their plane and all axles on their steering axes."""
    rng = np.random.default_rng(seed)
    forks = {joint for _, joint in robot.steering_joints}
    forks |= {name for names, _ in robot.steering_joints for name in names}
    worlds: dict[str, Any] = {}
    for body in robot.bodies:
        own = body.inertia
        for field, scale, shape in (
            ("inertia.mass", 0.3 * own.mass, ()),
            ("inertia.com", 0.02, (3,)),
            ("placement.translation", 0.02, (3,)),
        ):
            worlds[f"{body.name}.{field}"] = scale * rng.uniform(-1, 1, (count, *shape))
        # Less mass everywhere, and more of it somewhere: always physical.
        points = 0.05 * rng.normal(size=(count, 3, 3))
        spread = 0.1 * own.mass * points @ np.swapaxes(points, 1, 2)
        trace = np.trace(spread, axis1=1, axis2=2)[:, None, None]
        more = trace * np.eye(3) - spread + rng.uniform(-0.2, 0.2, (count, 1, 1)) * own.tensor
        worlds[f"{body.name}.inertia.moments"] = more[:, (0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]
    radius = rng.uniform(-0.01, 0.01, count)
    for wheel in robot.wheels:
        worlds[f"{wheel.body}.radius"] = radius
        carrier = None
        if wheel.support is None:  # along the axle
            worlds[f"{wheel.body}.placement.translation"] *= (0.0, 1.0, 0.0)
            carrier = robot.bodies[robot.index(wheel.body)].parent
        risen = carrier if carrier in forks else wheel.body
        if f"{wheel.body}.radius" in names:
            worlds[f"{risen}.placement.translation"][:, 2] = radius
    return {name: worlds[name] for name in names}


def one(worlds: Mapping[str, Any], k: int) -> dict[str, Any]:
    return {name: values[k] for name, values in worlds.items()}


def built(robot: Mechanism, world: Mapping[str, Any]) -> Mechanism:
    """The robot built anew, with all checks."""
    bodies = []
    for body in robot.bodies:
        own, name = body.inertia, body.name
        xx, yy, zz, xy, xz, yz = world.get(f"{name}.inertia.moments", np.zeros(6))
        tensor = own.tensor + np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        com = np.array(own.com) + world.get(f"{name}.inertia.com", np.zeros(3))
        shift = world.get(f"{name}.placement.translation", np.zeros(3))
        inertia = Inertia(own.mass + world.get(f"{name}.inertia.mass", 0.0), tuple(com), tensor)
        place = np.array(body.placement.translation) + shift
        pose = Pose(tuple(place), body.placement.rotation)
        bodies.append(replace(body, inertia=inertia, placement=pose))
    wheels = [
        replace(wheel, radius=wheel.radius + world.get(f"{wheel.body}.radius", 0.0))
        for wheel in robot.wheels
    ]
    return replace(robot, bodies=bodies, wheels=wheels)


@functools.cache
def cases(name: str) -> tuple[Plant, dict[str, Any], np.ndarray]:
    robot = ROBOTS[name]
    plant = Plant(robot, uncertain=declared(robot))
    worlds = drawn(robot, plant.uncertain or (), 3)
    return plant, worlds, plant.numbers(worlds)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", ROBOTS)
def test_dynamics_are_those_of_the_robot_built_with_the_numbers(name: str) -> None:
    plant, worlds, numbers = cases(name)
    robot, rng = ROBOTS[name], np.random.default_rng(1)
    q, v = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    p, force = ca.SX.sym("p", plant.n_numbers), ca.SX.sym("f", robot.nv)
    inside: Any = plant.symbolic(p)
    parts = [
        inside.mass_matrix(q),
        inside.bias(q, v),
        inside.constraints(q),
        dynamics.forward_dynamics(inside, q, v, force),
        inside.momentum(q, v),
        inside.normalize(q),
    ]
    graph = ca.Function("graph", [q, v, force, p], [ca.densify(part) for part in parts])
    assert numbers.shape == (3, plant.n_numbers)
    for k in range(3):
        other = built(robot, one(worlds, k))
        assert other.constraint_names == robot.constraint_names
        q0, v0 = other.random(rng), rng.normal(size=robot.nv)
        f0, u0 = rng.normal(size=robot.nv), rng.normal(size=plant.nu)
        off = q0 + 0.02 * rng.normal(size=robot.nq)
        assert_close(
            np.array(graph(off, v0, f0, numbers[k])[5]).ravel(), other.normalize(off), 1e-10
        )
        found = [np.array(part) for part in graph(q0, v0, f0, numbers[k])]
        mass, bias = other.mass_matrix(q0), other.bias(q0, v0)
        assert_close(found[0], mass, 1e-10)
        assert_close(found[1].ravel(), bias, 1e-10)
        assert_close(found[2], other.constraints(q0), 1e-10)
        assert_close(found[3].ravel(), np.linalg.solve(mass, f0 - bias), 1e-8)
        assert_close(found[4].ravel(), other.momentum(q0, v0), 1e-10)
        for one_plant in (Plant(other), Plant(plant.rebuilt(one(worlds, k)))):
            for came, due in zip(
                plant.world_acceleration(q0, v0, u0, numbers[k]),
                one_plant.acceleration(q0, v0, u0),
                strict=True,
            ):
                assert_close(came, due, 1e-10)


def test_inputs_are_the_numbers_that_can_change() -> None:
    robot = ROBOTS["rover"]
    masses = Plant(robot, uncertain=declared(robot, ("inertia.mass",)))
    everything = Plant(robot, uncertain=declared(robot, ALL[:3]))
    assert masses.n_numbers == 11
    assert everything.n_numbers == 45
    worlds = drawn(robot, masses.uncertain or (), 8)
    assert (np.ptp(masses.numbers(worlds), axis=0) > 0).all()
    assert Plant(robot).n_numbers == 0
    assert Plant(robot).number_names == ()
    assert len(set(everything.number_names)) == 45


def test_effects_that_are_rounding_are_no_inputs() -> None:
    robot = ROBOTS["odd"]
    for mass, some in ((1e-11, True), (1e-15, False)):  # of 10 kg
        bodies = [*robot.bodies, Body("dust", joints.Fixed(), "hand", inertia=Inertia(mass))]
        dusty = replace(robot, bodies=bodies)
        assert (Plant(dusty, uncertain=["dust.inertia.com"]).n_numbers > 0) is some
        assert Plant(dusty, uncertain=["dust.inertia.mass"]).n_numbers > 0


def test_worlds_without_an_axis_are_for_all() -> None:
    plant = Plant(
        ROBOTS["rover"],
        uncertain=["forearm.inertia.com", "forearm.inertia.mass", "turret.inertia.mass"],
    )
    assert plant.uncertain == ("forearm.inertia.com", "forearm.inertia.mass", "turret.inertia.mass")
    com = [0.0, 0.01, 0.0]
    several = plant.numbers({"forearm.inertia.mass": [0.1, 0.2], "forearm.inertia.com": com})
    for k, mass in enumerate((0.1, 0.2)):
        single = plant.numbers(
            {"forearm.inertia.mass": mass, "forearm.inertia.com": com, "turret.inertia.mass": 0.0}
        )
        assert_array_equal(several[[k]], single)
    assert plant.numbers({"forearm.inertia.mass": np.zeros(0)}).shape == (0, plant.n_numbers)


def refused(call: Any, kind: type[ConcurError], *texts: str) -> ConcurError:
    with pytest.raises(kind) as caught:
        call()
    for text in texts:
        assert text in str(caught.value)
    assert caught.value.cure
    return caught.value


def test_a_world_that_cannot_be_is_refused_with_its_number() -> None:
    robot = ROBOTS["rover"]
    plant = Plant(robot, uncertain=declared(robot))

    def world(name: str, bad: Any, good: Any) -> Any:
        return lambda: plant.numbers({name: [good, good, bad, bad]})

    zero, six = np.zeros(3), np.zeros(6)
    narrow = np.array([0.0, 0.0, 0.0031, 0, 0, 0])  # (0.005, 0.001, 0.005): up to 0.001 more
    off_diagonal = np.array([0, 0, 0, 0.003, 0, 0])
    for bad, reason in ((-1.0, "without mass"), (-1.0000001, "a mass of zero or more")):
        error = refused(world("forearm.inertia.mass", bad, -0.999), InertiaError, reason)
        assert error.where == "world 2 of `rover_arm`, body `forearm`"
        assert error.world == 2
    for bad, good in ((narrow, narrow * 0.3), (off_diagonal, off_diagonal * 0.3)):
        error = refused(world("forearm.inertia.moments", bad, good), InertiaError, "`forearm`")
        assert error.world == 2
    error = refused(world("left_wheel.radius", -0.1, -0.0999), SimulationError, "`radius`")
    assert error.world == 2
    world("forearm.inertia.mass", -0.999, 0.0)()
    world("forearm.inertia.moments", narrow * 0.3, six)()
    world("left_wheel.radius", -0.0999, 0.0)()
    world("turret.placement.translation", zero, zero)()
    refused(lambda: plant.rebuilt({"forearm.inertia.mass": -1.0}), InertiaError, "world 0")


def test_moments_are_judged_as_those_of_an_inertia() -> None:
    rng, judged = np.random.default_rng(4), []
    for _ in range(300):
        moments = rng.choice([0.0, 1.0, 1.5, 2.0 + 1e-8, 2.0 - 1e-8, -1e-13, -1e-11, 1e-3], 3)
        mass = rng.choice([0.0, 1.0, -1.0])
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        tensor = turn @ np.diag(moments) @ turn.T
        tensor = (tensor + tensor.T) / 2
        try:
            Inertia(mass, moments=tensor)  # type: ignore[arg-type]
            judged.append((False, mass, tensor))
        except InertiaError:
            judged.append((True, mass, tensor))
    wrong, masses, tensors = (np.array(part) for part in zip(*judged, strict=True))
    assert_array_equal(unphysical(masses, tensors), wrong)
    assert 20 < wrong.sum() < 280


def test_a_motion_without_mass_is_refused() -> None:
    tip = Inertia(1.0, (0.1, 0.0, 0.0))
    robot = Mechanism(
        "rod",
        [
            Body("base", joints.Fixed()),
            Body("rod", joints.Revolute((0, 0, 1)), "base", inertia=tip),
        ],
    )
    plant = Plant(robot, uncertain=["rod.inertia.com"])
    com = np.array([[0.0, 0, 0], [-0.0999, 0, 0], [-0.1, 0, 0]])
    error = refused(lambda: plant.numbers({"rod.inertia.com": com}), InertiaError, "moves no mass")
    assert error.world == 2
    assert plant.numbers({"rod.inertia.com": com[:2]}).shape == (2, plant.n_numbers)


def test_a_wheel_that_trails_is_refused() -> None:
    plant, _, _ = cases("car")
    shift = {"front_right.placement.translation": [[0.0, 0.1, 0.1], [1e-6, 0.0, 0.0]]}
    error = refused(lambda: plant.numbers(shift), SimulationError, "steering `front_right`")
    assert error.world == 1
    plant.numbers({"front_right.placement.translation": [0.0, 0.1, 0.1]})


def test_declarations_that_cannot_be_are_refused() -> None:
    robot = ROBOTS["rover"]
    for uncertain, kind, text in (
        ({}, SimulationError, "`uncertain`"),
        (3, SimulationError, "names of numbers"),
        (["forearm"], UnknownNameError, "forearm"),
        (["forerm.inertia.mass"], UnknownNameError, "forearm"),
        (["forearm.weight"], UnknownNameError, "weight"),
        (["forearm.radius"], SimulationError, "left_wheel, right_wheel"),
        (["chassis.placement.translation"], SimulationError, "the base"),
    ):
        refused(lambda u=uncertain: Plant(robot, uncertain=u), kind, text)


def test_worlds_that_do_not_fit_are_refused() -> None:
    plant = Plant(ROBOTS["rover"], uncertain=["forearm.inertia.mass", "forearm.inertia.com"])
    for worlds, kind, text in (
        ([0.1], SimulationError, "by name"),
        ({"forearm": 0.1}, UnknownNameError, "forearm"),
        ({"turret.inertia.mass": 0.1}, UnknownNameError, "forearm.inertia.mass, "),
        ({"forearm.inertia.moments": np.zeros(6)}, UnknownNameError, "moments"),
        ({"forearm.inertia.com": 0.1}, ShapeError, "(3,)"),
        ({"forearm.inertia.mass": [[0.1]]}, ShapeError, "worlds"),
        ({"forearm.inertia.mass": [0.1, np.nan]}, NonFiniteError, "mass`"),
        (
            {"forearm.inertia.mass": [0, 0], "forearm.inertia.com": np.zeros((3, 3))},
            ShapeError,
            "2 of forearm",
        ),
    ):
        refused(lambda w=worlds: plant.numbers(w), kind, text)
    refused(lambda: plant.rebuilt({"forearm.inertia.mass": [0, 0]}), SimulationError, "one world")


def test_nominal_numbers_are_never_taken_silently() -> None:
    plant, _, _ = cases("rover")
    robot = ROBOTS["rover"]
    state = robot.neutral(), np.zeros(robot.nv), np.zeros(plant.nu)
    q = ca.SX.sym("q", robot.nq)
    for call in (
        lambda: plant.acceleration(*state),
        lambda: plant.acceleration(q, *state[1:]),
        lambda: plant.compile_functions(),
        lambda: plant.export("nowhere"),
    ):
        refused(call, SimulationError, "world_acceleration")
    refused(lambda: Plant(robot).numbers({}), SimulationError, "uncertain=")
    robot.mass_matrix(robot.neutral())  # its graph is kept
    p = ca.SX.sym("p", plant.n_numbers)
    inside = plant.symbolic(p)
    assert ca.depends_on(inside.mass_matrix(q), p)  # type: ignore[arg-type]
    assert plant.symbolic(p) is not robot
    car = Plant(ROBOTS["car"], uncertain=["left_steering.placement.translation"])
    place = ca.SX.sym("place", car.n_numbers)
    steered: Any = car.symbolic(place)
    for configuration in (np.ones(steered.nq), ca.SX.sym("q", steered.nq)):
        assert ca.depends_on(steered.normalize(configuration), place)
    refused(lambda: steered.forward(np.zeros(steered.nv), "chassis"), ConcurError, "numbers only")
    assert Plant(robot).symbolic(p) is robot


def test_only_trees_have_uncertain_numbers() -> None:
    refused(lambda: Plant(PARTICLE, uncertain=["bead.inertia.mass"]), ReductionError, "Mechanism")


LOOPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "rover": ("rover_arm.toml", (*ALL, "radius")),
    "floater": ("free_floater.toml", ALL),
    "car": ("drives/ackermann_car_task.toml", (*ALL, "radius")),
}


@functools.cache
def loop(name: str) -> tuple[Any, Plant, dict[str, Any]]:
    file, quantities = LOOPS[name]
    task = cc.load_task(EXAMPLES / file)
    plant = Plant(task.robot, uncertain=declared(task.robot, quantities))
    return task, plant, drawn(task.robot, plant.uncertain or (), 2, seed=5)


def run(name: str, plant: Any, q0: Any = None, duration: float = 0.05, **options: Any) -> cc.Run:
    task, _, _ = loop(name)
    servo, world = task.servo, options.pop("world", None)
    return cc.simulate(
        *(task.robot, servo, task.reference, duration),
        task.q0 if q0 is None else q0,
        task.shape_velocities(servo),
        dt=Integrator(dt=5e-3, **options),
        plant=RealPlant(plant, world=world),
    )


def assert_same_motion(came: cc.Run, due: cc.Run) -> None:
    for name in ("q", "v", "u", "energy", "momentum", "work", "error", "constraint_residual"):
        values, wanted = getattr(came, name), getattr(due, name)
        assert_allclose(values, wanted, rtol=0, atol=1e-10 * max(1.0, np.abs(wanted).max()))


@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rover", {"control_period": 0.01}),
        ("rover", {}),
        ("rover", {"method": "dop853"}),
        ("floater", {}),
        ("floater", {"method": "rkmk4"}),
        ("floater", {"control_period": 0.01}),
        ("car", {}),
        ("car", {"control_period": 0.01}),
        ("car", {"method": "dop853", "control_period": 0.01}),
    ],
)
def test_closed_loop_is_that_of_the_robot_built_with_the_numbers(
    name: str, options: dict[str, Any]
) -> None:
    task, plant, worlds = loop(name)
    world = one(worlds, 1)
    other = built(task.robot, world)
    came = run(name, plant, world=world, **options)
    due = run(name, other, other.normalize(task.q0), **options)
    assert_same_motion(came, due)
    assert came.robot.total_mass == pytest.approx(other.total_mass, rel=1e-15)
    assert came.robot.wheels == other.wheels
    nominal = run(name, plant, **options)
    assert_same_motion(nominal, run(name, None, **options))
    assert np.abs(nominal.v - came.v).max() > 1e-4


def test_quantities_without_effect_are_no_inputs() -> None:
    robot = ROBOTS["floater"]
    assert robot.bodies[robot.index("tool")].inertia.mass == 0.0
    plant = Plant(robot, uncertain=["tool.inertia.com"])
    assert plant.n_numbers == 0
    assert plant.numbers({"tool.inertia.com": np.ones((2, 3))}).shape == (2, 0)
    state = robot.neutral(), np.zeros(robot.nv), np.zeros(plant.nu)
    assert_array_equal(plant.acceleration(*state)[0], Plant(robot).acceleration(*state)[0])
    payload = Plant(robot, uncertain=["tool.inertia.mass"])
    payload.numbers({"tool.inertia.mass": [0.0, 2.0]})
    error = refused(
        lambda: payload.numbers({"tool.inertia.mass": [0.0, -1e-9]}), InertiaError, "tool"
    )
    assert error.world == 1


def test_a_world_needs_uncertain_numbers() -> None:
    task, plant, worlds = loop("rover")
    for given in (None, task.robot, Plant(task.robot)):
        refused(lambda p=given: run("rover", p, world={}), SimulationError, "uncertain=")
    refused(lambda: run("rover", plant, world=worlds), SimulationError, "one world")


def lengths(name: str, plant: Plant) -> np.ndarray:
    """Instructions of one step with the law inside, and with held torque."""
    servo = loop(name)[0].servo
    inside = ideal_program(servo, plant, "rk4", 1e-3, None).tick
    held = ideal_program(servo, plant, "rk4", 1e-3, 1).step
    return np.array(
        [instructions(expanded(dense(step, without=UNSOUND))) for step in (inside, held)]
    )


@pytest.mark.extended
@pytest.mark.parametrize(
    ("name", "constants", "most"),
    [
        ("rover", (6486, 3119), ((0.97, 0.9), (1.22, 1.43), (1.25, 1.5))),
        ("floater", (21954, 8212), ((1.02, 1.02), (1.02, 1.02), (1.05, 1.12))),
    ],
)
def test_inputs_cost_little(name: str, constants: tuple[int, int], most: Any) -> None:
    robot = loop(name)[0].robot
    plain = lengths(name, Plant(robot))
    assert tuple(plain) == constants  # a plant without inputs costs what it did before
    for quantities, bounds in zip((ALL[:1], ALL[:3], (*ALL, "radius")), most, strict=True):
        plant = Plant(robot, uncertain=declared(robot, quantities))
        ratios = lengths(name, plant) / plain
        assert (ratios < bounds).all(), (quantities, ratios)
        assert (ratios > np.array(bounds) - 0.05).all(), (quantities, ratios)


@pytest.mark.extended
@pytest.mark.parametrize("name", ["rover", "floater"])
def test_one_compilation_serves_all_worlds(compiler: None, monkeypatch: Any, name: str) -> None:
    """Worlds in lanes go where each goes interpreted, built as a robot of its own."""
    task, plant, _ = loop(name)
    servo, builds, build = task.servo, [], Compiler.build
    monkeypatch.setattr(
        Compiler, "build", lambda self, *given: builds.append(given) or build(self, *given)
    )
    program = loop_program(servo, plant, dt=5e-3, control_period=5e-3)
    lanes = Rollout(program.tick, program.step, program.steps_per_tick)
    assert lanes.compiled
    rows, speeds = program.reference(task.reference, 5), task.shape_velocities(servo)
    for seed in range(2):
        worlds = drawn(task.robot, plant.uncertain or (), 11, seed)
        p = program.numbers(plant.numbers(worlds))
        x0 = program.start(task.q0, speeds, p=p)
        found = lanes(Batch(x0, p, range(11)), rows, ticks=5, record=1).record.x
        for k in (0, 10):
            due = run(name, built(task.robot, one(worlds, k)), duration=0.02, control_period=5e-3)
            assert_close(program.state(found[k], "q"), due.q, 1e-10)
            assert_close(program.state(found[k], "v"), due.v, 1e-10)
        lost = p.copy()
        lost[4] = np.nan
        broken = lanes(Batch(x0, lost, range(11)), rows, ticks=5, record=1)
        np.testing.assert_array_equal(np.flatnonzero(broken.status), [4])
        np.testing.assert_array_equal(np.delete(broken.record.x, 4, 0), np.delete(found, 4, 0))
    assert len(builds) == 1
    for k in range(2):
        world = one(drawn(task.robot, plant.uncertain or (), 2, 7), k)
        came = run(name, plant, world=world, compiled=True)
        assert_same_motion(came, run(name, built(task.robot, world)))
        assert len(builds) == 2
