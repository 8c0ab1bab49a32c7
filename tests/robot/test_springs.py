"""Springs and dampers of joints and between points: against MuJoCo and Pinocchio, and everywhere.

MuJoCo has the springs of the written model: of joints as stiffness, damping and springref, between
points as spatial tendons. Beside Pinocchio their forces are written by hand.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import casadi as ca
import mujoco
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import concur as cc
from concur.codegen import Batch, Rollout
from concur.control._holding import spring_frequencies
from concur.errors import (
    DescriptionError,
    OutputError,
    ReductionError,
    SimulationError,
    UnknownNameError,
)
from concur.outputs import FunctionOutput
from concur.reduction import conservation
from concur.robot import Spring
from concur.simulation import Integrator, Plant, forced_motion, loop_program
from tests.export._export import Library
from tests.oracles import Mujoco, Pinocchio, random_tree, random_velocity

X, Y, Z = np.eye(3).tolist()


def sprung(robot: cc.Mechanism, rng: np.random.Generator, between: int = 2) -> cc.Mechanism:
    """Springs of all scalar joints, and some between points of bodies."""
    springs = [
        Spring(body.joint_label, *rng.uniform(1.0, 30.0, 2), rest=rng.normal())
        for body in robot.bodies[1:]
        if body.joint.nv == 1 and type(body.joint).__name__ in ("Revolute", "Prismatic")
    ]
    for k in range(between):
        one, other = rng.choice(len(robot.bodies), 2, replace=False)
        while other in robot.welded(one):
            one, other = rng.choice(len(robot.bodies), 2, replace=False)
        names, points = [robot.bodies[i].name for i in (one, other)], rng.normal(size=(2, 3))
        rest = (0.0, 0.7)[k % 2]
        numbers = rng.uniform(1.0, 30.0, 2)
        springs.append(Spring(None, *numbers, rest, names[0], points[0], names[1], points[1]))
    return replace(robot, springs=springs)


@pytest.mark.by_default(3)
@pytest.mark.parametrize("seed", range(12))
def test_accelerations_are_those_of_mujoco(seed: int) -> None:
    robot = random_tree(seed)
    if any(type(body.joint).__name__ == "Helical" for body in robot.bodies):
        robot = replace(
            robot,
            bodies=[
                replace(b, joint=cc.joints.Revolute(b.joint.axis))
                if type(b.joint).__name__ == "Helical"
                else b
                for b in robot.bodies
            ],
        )
    rng = np.random.default_rng(seed)
    robot = sprung(robot, rng)
    oracle, plain = Mujoco(robot), Plant(replace(robot, springs=()))
    plant = Plant(robot)
    for _ in range(3):
        q, v, u = robot.random(rng), random_velocity(robot, rng), rng.normal(size=robot.nu)
        force = np.asarray(robot.actuation(q)) @ u
        expected = oracle.acceleration(q, v, force)
        size = 1.0 + abs(expected).max()
        np.testing.assert_allclose(plant.acceleration(q, v, u)[0], expected, atol=1e-9 * size)
        assert abs(plain.acceleration(q, v, u)[0] - expected).max() > 1e-3 * size
        again = robot.inverse_dynamics(q, v, expected)
        np.testing.assert_allclose(again, force, atol=1e-8 * size)


@pytest.mark.by_default(2)
@pytest.mark.parametrize("seed", range(6))
def test_energy_factor_and_power(seed: int) -> None:
    """Forces at rest are slopes of the energy; C has no dampers; dampers take energy alone."""
    rng = np.random.default_rng(seed)
    robot, h = sprung(random_tree(seed), rng), 1e-6
    q, v = robot.random(rng), random_velocity(robot, rng)
    slopes = [
        (robot.potential_energy(robot.integrate(q, h * e)) - robot.potential_energy(q_)) / (2 * h)
        for e in np.eye(robot.nv)
        for q_ in [robot.integrate(q, -h * e)]
    ]
    np.testing.assert_allclose(robot.bias(q, 0 * v), slopes, atol=2e-6 * max(map(abs, slopes)))
    C = robot.coriolis(q, v)
    ahead, behind = (robot.mass_matrix(robot.integrate(q, t * v)) for t in (h, -h))
    np.testing.assert_allclose(C + C.T, (ahead - behind) / (2 * h), atol=1e-6 * abs(C).max())
    quiet = replace(robot, springs=[replace(s, damping=0.0) for s in robot.springs if s.stiffness])
    taken = np.asarray(robot.bias(q, v) - quiet.bias(q, v))
    assert v @ taken > 0.0
    np.testing.assert_allclose(C @ v + robot.bias(q, 0 * v) + taken, robot.bias(q, v), atol=1e-9)


# --- a satellite that bends ----------------------------------------------------------------------

K, D, REST = (40.0, 90.0), (0.3, 0.2), (0.05, -0.02)
"""Stiffness, N m/rad, damping, N m s/rad, and rest positions of two hinges of a panel."""


def satellite() -> cc.Mechanism:
    """A hull with an arm that has a motor, and a panel on two elastic hinges."""
    hull = cc.Body("hull", cc.joints.Free(), inertia=cc.Inertia(12.0, moments=(1.5, 1.1, 1.9)))
    turn, bend = cc.joints.Revolute(Z), cc.joints.Revolute(Y)
    load = cc.Inertia(2.0, (0.8, 0, 0.1), moments=(0.01, 0.02, 0.02))
    plate = cc.Inertia(0.8, (-0.4, 0, 0), moments=(0.02, 0.05, 0.06))
    return cc.Mechanism(
        "satellite",
        [
            hull,
            cc.Body("arm", turn, "hull", cc.Pose((0.5, 0, 0)), load),
            cc.Body("inner", bend, "hull", cc.Pose((-0.5, 0, 0)), plate),
            cc.Body("outer", bend, "inner", cc.Pose((-0.8, 0, 0)), plate),
        ],
        actuated=["arm"],
        springs=[
            Spring(name, *numbers)
            for name, *numbers in zip(("inner", "outer"), K, D, REST, strict=True)
        ],
    )


MU = np.array([0.6, -0.4, 0.2, 0.25, 0.35, -0.3])


def torque(t: float) -> float:
    return 0.9 * np.sin(1.3 * t) - 0.2


@pytest.mark.extended
def test_a_flexible_satellite_is_that_of_pinocchio() -> None:
    """Two modes with damping, turning by the arm at a momentum, to 1e-9 over three seconds."""
    robot = satellite()
    model = cc.reduce(robot, momentum=MU)
    assert model.shape_names == ("arm", "inner", "outer")
    q0 = robot.neutral()
    q0[:3], q0[7:] = [0.3, -0.2, 0.1], [0.5, 0.2, -0.1]
    s0 = np.array([0.4, 0.3, -0.2])
    motion = forced_motion(model, lambda t: [torque(t)], 3.0, q0, s0, dt=0.5)
    oracle = Pinocchio(replace(robot, springs=()))

    def slope(t: float, x: np.ndarray) -> np.ndarray:
        q, v = x[:10], x[10:]
        bent, speeds = q[8:], v[7:]
        push = np.concatenate(
            [np.zeros(6), [torque(t)], -np.array(K) * (bent - REST) - np.array(D) * speeds]
        )
        return np.concatenate([oracle.rate(q, v), oracle.forward_dynamics(q, v, push)])

    start = np.concatenate([q0, model.velocity(q0, s0)])
    found = solve_ivp(slope, (0, 3), start, "DOP853", motion.t, rtol=1e-13, atol=1e-13).y.T
    turned = found[:, :10].copy()
    turned[:, 3:7] /= np.linalg.norm(turned[:, 3:7], axis=1, keepdims=True)
    np.testing.assert_allclose(motion.q, turned, atol=1e-9)
    np.testing.assert_allclose(motion.v, found[:, 10:], atol=1e-8)
    assert motion.momentum_drift.max() < 1e-11
    assert abs(motion.energy_balance).max() < 1e-8  # less what the dampers took
    assert np.ptp(motion.q[:, 7]) > 0.3
    lossless = replace(robot, springs=[replace(s, damping=0.0) for s in robot.springs])
    other = forced_motion(cc.reduce(lossless, MU), lambda t: [torque(t)], 3.0, q0, s0, dt=0.5)
    assert abs(other.energy[-1] - motion.energy[-1]) > 1e-3


def test_reduced_equations_have_springs_and_dampers() -> None:
    """Hamilton's equations, with and without the momentum as a state, and Coriolis' factor."""
    model = cc.reduce(satellite(), momentum=MU)
    rng = np.random.default_rng(3)
    for _ in range(3):
        q, p, u = model.robot.random(rng), rng.normal(size=3), rng.normal(size=1)
        v, pdot = model.vector_field(q, p, u)
        w, _, again = model.hamilton_poincare(q, model.body_momentum(q), p, u, np.zeros(6))
        np.testing.assert_allclose(v, w, atol=1e-12)
        np.testing.assert_allclose(pdot, again, atol=1e-8)
        s, still = v[6:], np.zeros(3)
        left = model.bias(q, s) - model.bias(q, still) - model.coriolis(q, s) @ s
        loss = np.concatenate([[0.0], np.array(D) * s[1:]])
        np.testing.assert_allclose(left, loss, atol=1e-9)


@pytest.mark.extended
def test_stages_and_momenta_see_them() -> None:
    """A passive joint on a spring keeps no momentum; with a damper alone it loses it."""
    robot = satellite()
    rotor = replace(robot.bodies[3], inertia=cc.Inertia(0.8, moments=(0.03, 0.05, 0.03)))
    robot = replace(robot, bodies=[*robot.bodies[:3], rotor])
    for springs, kept in (
        ((), True),
        ((Spring("outer", 1e-3),), False),
        ((Spring("outer", damping=1e-3),), False),
        ((Spring(body="outer", other="inner", point=(0.1, 0, 0), stiffness=1.0),), False),
        ((Spring(body="arm", other="hull", point=(0.1, 0, 0), stiffness=1.0),), True),
    ):
        model = cc.reduce(replace(robot, springs=springs), momentum=MU)
        assert conservation(model, "outer").conserved is kept
        if not kept:
            with pytest.raises(ReductionError, match="keeps its momentum"):
                cc.reduce(replace(robot, springs=springs), momentum=MU, stages=["outer"])
    assert cc.symmetry(replace(robot, springs=()))["outer"].reducible
    for spring in (Spring("outer", 1.0), Spring("outer", damping=1.0)):
        assert not cc.symmetry(replace(robot, springs=[spring]))["outer"].reducible


def test_links_with_springs_keep_no_momentum_in_their_axes() -> None:
    """A chain about one axis: the first joint carries two others, the last one is driven."""
    rod = cc.Inertia(1.0, moments=(0.1, 0.1, 0.1))
    bodies = [cc.Body("base", cc.joints.Fixed())]
    for name, axis in (("a", (0, 0, 1)), ("b", (0, 0, 1)), ("c", (0, 1, 0))):
        bodies.append(cc.Body(name, cc.joints.Revolute(axis), bodies[-1].name, inertia=rod))
    robot = cc.Mechanism("chain", bodies, actuated=["c"])
    assert cc.reduce(robot, stages=["a"]).chain
    for spring in (Spring("a", 5.0), Spring("a", damping=5.0)):
        with pytest.raises(ReductionError):
            cc.reduce(replace(robot, springs=[spring]), stages=["a"])


@pytest.mark.parametrize("given", [{"damping": 1.0}, {"stiffness": 3.0, "rest": 0.1}])
def test_a_spring_whose_points_coincide_does_not_pull(given: dict[str, float]) -> None:
    rod = cc.Inertia(1.0, moments=(0.1, 0.1, 0.1))
    bodies = [
        cc.Body("base", cc.joints.Fixed()),
        cc.Body("a", cc.joints.Revolute((0, 0, 1)), "base", inertia=rod),
    ]
    robot = cc.Mechanism("one", bodies, springs=[Spring(body="a", other="base", **given)])
    assert robot.bias([0.3], [0.2]).tolist() == [0.0]


# --- laws ----------------------------------------------------------------------------------------


def elbow(**options: Any) -> cc.Mechanism:
    """A manipulator whose joints have springs, and a spring between its ends, under gravity."""
    arm = cc.Inertia(2.0, (0.25, 0, 0), moments=(0.01, 0.03, 0.03))
    bodies = [
        cc.Body("base", cc.joints.Fixed()),
        cc.Body("upper", cc.joints.Revolute(Y), "base", inertia=arm),
        cc.Body("lower", cc.joints.Revolute(Y), "upper", cc.Pose((0.5, 0, 0)), arm),
    ]
    springs = [
        Spring("upper", 20.0, 0.4, 0.3),
        Spring(None, 60.0, 2.0, 0.4, "lower", (0.3, 0, 0), "base", (0, 0, 0.5)),
    ]
    given = {"gravity": (0, 0, -9.81), "springs": springs} | options
    return cc.Mechanism("elbow", bodies, **given)


HAND = cc.Output("hand", "lower", "R2", axes="xz", point=(0.5, 0, 0))


def test_the_torque_of_a_servo_cancels_them(tmp_path: Path) -> None:
    """In MuJoCo the hand accelerates as commanded; the error decays by its equation; C too."""
    robot = elbow()
    law = cc.Servo(cc.reduce(robot), [HAND], 25.0, 10.0)
    plain = cc.Servo(cc.reduce(elbow(springs=())), [HAND], 25.0, 10.0)
    oracle, rng, rows, torques = Mujoco(robot), np.random.default_rng(5), [], []
    for _ in range(6):
        q, s = np.array([0.4, -1.1]) + 0.3 * rng.normal(size=2), rng.normal(size=2)
        pose = law.output(q) + np.array([0.05, -0.1])
        sample = cc.ReferenceSample(pose, *rng.normal(size=(2, 2)))
        u = law.torque(q, s, sample)
        vdot = oracle.acceleration(q, s, u)
        h = 1e-5
        places = [law.output(q + t * s + t**2 / 2 * vdot) for t in (h, 0.0, -h)]
        found = (places[0] - 2 * places[1] + places[2]) / h**2
        rate = (places[0] - places[2]) / (2 * h) - sample.twist
        wanted = sample.acceleration - 25.0 * (places[1] - pose) - 10.0 * rate
        np.testing.assert_allclose(found, wanted, atol=2e-5 * (1 + abs(wanted).max()))
        assert abs(u - plain.torque(q, s, sample)).max() > 0.1
        rows.append(np.concatenate([q, s, sample.pose, sample.twist, sample.acceleration]))
        torques.append(u)
    found, codes = Library.of(law, tmp_path)(np.array(rows))
    assert (codes == 0).all()
    np.testing.assert_allclose(found[:, :2], torques, atol=1e-9)
    goal = cc.references.hold(law.output([0.5, -1.2]))
    run = cc.simulate(robot, law, goal, 1.5, [0.4, -1.0], [0.0, 0.0], dt=2e-3)
    size = np.linalg.norm(run.error, axis=1)
    np.testing.assert_allclose(size, size[0] * (1 + 5 * run.t) * np.exp(-5 * run.t), atol=1e-6)
    assert abs(run.energy_balance).max() < 1e-6
    assert cc.certify(law, angle=1.0).status is cc.Status.PROVED


def test_a_passive_servo_holds_against_them() -> None:
    law = cc.PassiveServo(cc.reduce(elbow()), [HAND], 40.0, 20.0, rate=2.0)
    goal = cc.references.hold(law.output([0.5, -1.2]))
    run = cc.simulate(elbow(), law, goal, 6.0, [0.4, -1.0], [0.0, 0.0], dt=2e-3)
    assert np.linalg.norm(run.error[-1]) < 1e-4
    without = cc.PassiveServo(cc.reduce(elbow(springs=())), [HAND], 40.0, 20.0, rate=2.0)
    run = cc.simulate(elbow(), without, goal, 6.0, [0.4, -1.0], [0.0, 0.0], dt=2e-3)
    assert np.linalg.norm(run.error[-1]) > 1e-2  # what the springs do to a law that lacks them


def test_worlds_and_units_have_them(tmp_path: Path) -> None:
    """Many worlds at once, each that of the rebuilt robot."""
    robot = elbow()
    law = cc.Servo(cc.reduce(robot), [HAND], 25.0, 10.0)
    plant = Plant(robot, uncertain=["lower.inertia.mass"])
    program = loop_program(law, plant, dt=2e-3, control_period=4e-3)
    goal = cc.references.hold(law.output([0.5, -1.2]))
    masses = {"lower.inertia.mass": np.array([-0.4, 0.0, 0.5])}
    p = program.numbers(plant.numbers(masses))
    q0, s0 = np.array([0.4, -1.0]), np.zeros(2)
    batch = Batch(program.start(q0, s0, p=p), p, worlds=range(3))
    rollout = Rollout(program.tick, program.step, program.steps_per_tick, interpreted=True)
    rolled = rollout(batch, program.reference(goal, 100), ticks=100, record=1)
    for k, mass in enumerate(masses["lower.inertia.mass"]):
        world = plant.rebuilt({"lower.inertia.mass": mass})
        assert world.springs == robot.springs
        run = cc.simulate(
            world, law, goal, 0.4, q0, s0, Integrator(dt=2e-3, control_period=4e-3), Plant(world)
        )
        np.testing.assert_allclose(program.state(rolled.record.x[k], "q"), run.q[:200:2], atol=1e-9)
    with pytest.raises(SimulationError, match="springs between points"):
        Plant(robot, uncertain=["lower.placement.translation"])
    one = elbow(springs=[Spring("upper", 20.0, 0.4, 0.3)])
    world = Plant(one, uncertain=["lower.placement.translation"])
    numbers = world.numbers({"lower.placement.translation": np.array([[0.02, 0.0, 0.01]])})[0]
    again = Plant(world.rebuilt({"lower.placement.translation": np.array([0.02, 0.0, 0.01])}))
    v, u = np.array([0.3, -0.2]), np.array([1.0, 2.0])
    np.testing.assert_allclose(
        world.world_acceleration(q0, v, u, numbers)[0], again.acceleration(q0, v, u)[0], atol=1e-9
    )


def test_numbers_of_springs_are_uncertain() -> None:
    """Inputs of the plant, against the rebuilt robot and the forces written by hand."""
    robot = elbow()
    assert robot.numbers["lower to base.rest"] == 0.4
    names = ["upper.stiffness", "upper.damping", "upper.rest", "lower to base.stiffness"]
    names += ["lower to base.damping", "lower to base.rest"]
    plant, rng = Plant(robot, uncertain=names), np.random.default_rng(4)
    assert plant.n_numbers == 6
    worlds = {name: rng.uniform(0.0, 0.3, 3) for name in names}
    numbers = plant.numbers(worlds)
    q, v, u = np.array([0.4, -1.0]), np.array([0.3, -0.2]), np.array([1.0, 2.0])
    quiet = elbow(springs=())
    pose, jacobian = quiet.pose(q, "lower"), quiet.jacobian(q, "lower")
    end = pose[:3, :3] @ [0.3, 0, 0] + pose[:3, 3]
    arm = pose[:3, :3] @ (jacobian[:3] + np.cross(jacobian[3:].T, [0.3, 0.0, 0.0]).T)
    way = end - [0, 0, 0.5]
    length = np.linalg.norm(way)
    row = arm.T @ way / length
    for k, p in enumerate(numbers):
        world = {name: values[k] for name, values in worlds.items()}
        found = plant.world_acceleration(q, v, u, p)[0]
        rebuilt = plant.rebuilt(world)
        np.testing.assert_allclose(found, Plant(rebuilt).acceleration(q, v, u)[0], atol=1e-9)
        stiff, damp, rest, k2, d2, r2 = (rebuilt.numbers[name] for name in names)
        hip = stiff * (q[0] - rest) + damp * v[0]
        pull = hip * np.array([1.0, 0.0]) + row * (k2 * (length - r2) + d2 * (row @ v))
        expected = np.linalg.solve(quiet.mass_matrix(q), u - quiet.bias(q, v) - pull)
        np.testing.assert_allclose(found, expected, atol=1e-9)
        assert rebuilt.springs[0].stiffness == 20.0 + world["upper.stiffness"]
    for name, least in (("upper.stiffness", -20.0), ("lower to base.rest", -0.4)):
        own = Plant(robot, uncertain=[name])
        own.numbers({name: np.array([least])})
        with pytest.raises(SimulationError, match="of zero or more"):
            own.numbers({name: np.array([least - 1e-9])})
    own = Plant(robot, uncertain=["upper.rest"])
    assert own.numbers({"upper.rest": np.array([-5.0])}).shape == (1, 1)
    twice = elbow(springs=[Spring("upper", 1.0), Spring("upper", 2.0), Spring("lower", 3.0)])
    assert "upper.stiffness" not in twice.numbers
    with pytest.raises(UnknownNameError, match="spring"):
        Plant(twice, uncertain=["upper.stiffness"])
    assert Plant(twice, uncertain=["lower.stiffness"]).n_numbers == 1


TASK = """
name = "hold"
robot = "elbow.toml"
[[outputs]]
name = "hand"
body = "lower"
group = "R2"
axes = "xz"
point = [0.5, 0.0, 0.0]
stiffness = 25.0
damping = 10.0
[reference.hand]
kind = "hold"
[initial.q]
upper = 0.4
lower = -1.0
[simulation]
duration = 0.2
dt = 2e-3
[[requirements]]
kind = "error"
output = "hand"
below = 0.05
[uncertainty.spring_stiffness]
upper = [-5.0, 5.0]
"lower to base" = [-10.0, 10.0]
"""


def test_campaigns_vary_stiffness(tmp_path: Path) -> None:
    """The error of a hand that a law holds with nominal springs, as of runs one by one."""
    elbow().save(tmp_path / "elbow.toml")
    (tmp_path / "task.toml").write_text(TASK)
    task = cc.load_task(tmp_path / "task.toml")
    found = cc.verify(task, 2)
    worlds = task.uncertainty.draw(range(2), seed=0)
    for k, (upper, other) in enumerate(worlds):
        stiffness = 20.0 + upper, 60.0 + other
        springs = [
            replace(spring, stiffness=value)
            for spring, value in zip(elbow().springs, stiffness, strict=True)
        ]
        goal, start = task.reference, (task.q0, task.s0)
        held, world = Integrator(dt=2e-3, control_period=2e-3), elbow(springs=springs)
        run = cc.simulate(task.robot, task.servo, goal, 0.2, *start, held, world)
        assert run.model_differences == ("springs",)
        largest = np.linalg.norm(run.error[:-1], axis=1).max()  # at the ticks
        assert largest > 1e-4
        assert found.values[k, 0] == pytest.approx(0.05 - largest, abs=1e-9)


def test_proofs_of_tasks_refuse_them() -> None:
    task = cc.load_task("examples/rover_arm.toml")
    robot = replace(task.robot, springs=[Spring("turret", 1.0)])
    with pytest.raises(OutputError, match="a robot without springs"):
        cc.proofs.prove_task(replace(task, robot=robot, duration=0.004))


# --- files ---------------------------------------------------------------------------------------


def test_files_have_them(tmp_path: Path) -> None:
    robot = elbow()
    for ending in ("toml", "urdf"):
        robot.save(tmp_path / f"{ending}_elbow.{ending}")
        again = cc.load(tmp_path / f"{ending}_elbow.{ending}")
        assert again.springs == robot.springs
        q, v = [0.3, -0.7], [0.2, 0.5]
        np.testing.assert_allclose(again.bias(q, v), robot.bias(q, v), atol=1e-12)
    text = (tmp_path / "toml_elbow.toml").read_text()
    assert text.count("[[springs]]") >= 2
    both = cc.mount(elbow(), elbow(), on="lower", prefix="tip_")
    assert [s.name for s in both.springs[2:]] == ["tip_upper", "tip_lower to tip_base"]
    assert "upper: 20 N m/rad, damping 0.4 N m s/rad, at rest at 0.3 rad" in robot.summary()
    broken = text.replace('joint = "upper"', 'joint = "uper"')
    (tmp_path / "broken.toml").write_text(broken)
    with pytest.raises(UnknownNameError, match="uper") as caught:
        cc.load(tmp_path / "broken.toml")
    assert "[[springs]]" in str(caught.value)


MODEL = """
<mujoco>
<compiler angle="radian"/><option gravity="0 0 -9.81"/>
<worldbody><body name="foot"><geom type="sphere" size="0.1" contype="0" conaffinity="0"/>
<body name="upper"><joint name="hip" axis="0 1 0" ref="0.2" stiffness="30" springref="0.7"/>
<geom type="sphere" size="0.1" pos="0.3 0 0" contype="0" conaffinity="0"/>
<body name="lower" pos="0.5 0 0">
<joint name="rail" type="slide" axis="1 0 0" stiffness="200" springref="-0.1" damping="3"/>
<geom type="sphere" size="0.1" pos="0.2 0 0" contype="0" conaffinity="0"/></body>
</body></body></worldbody>
<actuator><motor joint="hip"/></actuator>
</mujoco>
"""


def test_springs_of_joints_are_read_from_mujoco_files(tmp_path: Path) -> None:
    """With `ref` and `springref`; damping of a passive joint is that of its spring."""
    path = tmp_path / "legs.xml"
    path.write_text(MODEL)
    robot = cc.load(path)
    assert robot.springs == (Spring("hip", 30.0, rest=0.7), Spring("rail", 200.0, 3.0, -0.1))
    assert not [text for text in robot.unread if "damping" in text or "stiffness" in text]
    model = mujoco.MjModel.from_xml_path(str(path))
    data, order = mujoco.MjData(model), cc.interop.mujoco(robot)
    rng = np.random.default_rng(3)
    for _ in range(3):
        q, v, u = robot.random(rng), rng.normal(size=2), rng.normal(size=1)
        data.qpos[:], data.qvel[:], data.ctrl[:] = order.to_q(q), order.to_v(q, v), u
        mujoco.mj_forward(model, data)
        expected = order.from_acceleration(q, v, data.qacc)
        np.testing.assert_allclose(Plant(robot).acceleration(q, v, u)[0], expected, atol=1e-9)
    (tmp_path / "legs.toml").write_text('ignore = ["stiffness"]')
    stiff = cc.load(path)
    assert stiff.springs == ()
    assert [text for text in stiff.unread if "stiffness" in text]
    (tmp_path / "legs.toml").write_text("[[springs]]\njoint = 'rail'\ndamping = 2.0\n")
    assert cc.load(path).springs[2:] == (Spring("rail", damping=2.0),)
    path.write_text(MODEL.replace('name="hip" axis', 'name="hip" type="ball" axis'))
    with pytest.raises(DescriptionError, match="stiffness"):
        cc.load(path)


@pytest.mark.parametrize(
    ("make", "kind", "text"),
    [
        (lambda: Spring(), DescriptionError, "either `joint`, or `body` and `other`"),
        (lambda: Spring("a", 1.0, body="b", other="c"), DescriptionError, "either `joint`"),
        (lambda: Spring(body="b", stiffness=1.0), DescriptionError, "either `joint`"),
        (lambda: Spring("a"), DescriptionError, "a stiffness or a damping above zero"),
        (lambda: Spring("a", -1.0), DescriptionError, "`stiffness`: expected zero or more"),
        (lambda: Spring("a", 1.0, -1e-9), DescriptionError, "`damping`: expected zero or more"),
        (lambda: Spring("a", 1.0, point=(1, 0, 0)), DescriptionError, "no point beside `joint`"),
        (
            lambda: Spring(body="b", other="c", stiffness=1.0, rest=-0.1),
            DescriptionError,
            "`rest`: expected zero or more",
        ),
        (lambda: Spring(body="b", other="b", stiffness=1.0), DescriptionError, "another body"),
        (lambda: elbow(springs=[Spring("elbow", 1.0)]), UnknownNameError, "elbow"),
        (
            lambda: elbow(springs=[Spring(body="upper", other="hand", stiffness=1.0)]),
            UnknownNameError,
            "hand",
        ),
        (
            lambda: replace(satellite(), springs=[Spring("hull[wx]", 1.0)]),
            DescriptionError,
            "a joint whose velocity is the rate of its coordinate",
        ),
        (
            lambda: cc.Mechanism(
                "one",
                [cc.Body("rod", cc.joints.Revolute(Y), inertia=cc.Inertia(1.0, X))],
                springs=[Spring("rod", 1.0)],
            ),
            DescriptionError,
            "a joint between two bodies",
        ),
        (
            lambda: elbow(
                springs=[Spring(body="base", other="frame", stiffness=1.0)],
            ),
            UnknownNameError,
            "frame",
        ),
    ],
)
def test_what_no_spring_is(make: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        make()


def test_zero_is_the_bound_of_numbers() -> None:
    assert Spring("a", 0.0, 1e-12).damping == 1e-12
    assert Spring("a", 1.0, rest=-0.1).rest == -0.1
    assert Spring(body="b", other="c", stiffness=1.0, rest=0.0).rest == 0.0


def lever(stiffness: float, gravity: float = 0.0, limit: float = 4.0) -> cc.Servo:
    """A law for the angle of one arm on a spring, which keeps its torque limit."""
    arm = cc.Inertia(2.0, (0.25, 0, 0), moments=(0.01, 0.03, 0.03))
    bodies = [
        cc.Body("base", cc.joints.Fixed()),
        cc.Body("arm", cc.joints.Revolute(Y), "base", inertia=arm, torque_limit=limit),
    ]
    springs = [Spring("arm", stiffness)] if stiffness else []
    robot = cc.Mechanism("lever", bodies, gravity=(0, 0, -gravity), springs=springs)
    q = ca.SX.sym("q", 1)
    angle = FunctionOutput("angle", ca.Function("angle", [q], [q]), "SO2")
    rules = cc.Constraints()
    return cc.Servo(cc.reduce(robot), [angle], 40.0, 12.0, torque_limits=True, constraints=rules)


@pytest.mark.parametrize("gravity", [0.0, 9.81])
@pytest.mark.parametrize(("goal", "reached"), [(0.15, True), (0.9, False)])
def test_the_torque_that_holds_a_spring_stays_within_its_limit(
    gravity: float, goal: float, reached: bool
) -> None:
    """Where 0.99 of the limit holds spring and weight, the arm stops; before that it arrives."""
    limit = 4.0 + 2.0 * gravity * 0.25
    law = lever(20.0, gravity, limit)
    run = cc.simulate(law.model.robot, law, cc.references.hold([goal]), 3.0, [0.0], [0.0], dt=2e-3)
    held = 20.0 * run.q[:, 0] - 2.0 * gravity * 0.25 * np.cos(run.q[:, 0])
    assert np.abs(held).max() < 0.99 * limit * (1 + 1e-6)
    if reached:
        assert run.q[-1, 0] == pytest.approx(goal, abs=1e-3)
    else:
        assert abs(held[-1]) == pytest.approx(0.99 * limit, rel=1e-6)
        assert abs(run.q[-1, 0] - goal) > 0.1


def test_the_rate_of_the_approach_is_that_of_the_arm_on_its_spring() -> None:
    """k / (I + m l^2), whatever the gear of the motor and the length of the arm."""
    inertia = 0.03 + 2.0 * 0.25**2
    for stiffness in (2.0, 20.0):
        found = spring_frequencies(lever(stiffness))
        assert found == pytest.approx([stiffness / inertia], rel=1e-12)


def test_conservation_tells_gravity_from_springs() -> None:
    arm = cc.Inertia(2.0, (0.25, 0, 0), moments=(0.01, 0.03, 0.03))
    bodies = [
        cc.Body("base", cc.joints.Fixed()),
        cc.Body("a", cc.joints.Revolute(Y), "base", inertia=arm),
        cc.Body("b", cc.joints.Revolute(Y), "a", cc.Pose((0.5, 0, 0)), arm),
    ]
    for gravity, springs, text in (
        (9.81, [], "gravity acts along it"),
        (0.0, [Spring("a", 3.0)], "springs act along it"),
        (9.81, [Spring("a", 3.0)], "gravity and springs act along it"),
        (9.81, [Spring("b", 3.0)], "gravity acts along it"),
    ):
        given = {"gravity": (0.0, 0.0, -gravity), "springs": springs, "actuated": ["b"]}
        found = conservation(cc.reduce(cc.Mechanism("arm", bodies, **given)), "a")
        assert not found.conserved
        parts = [part for part in found.why.split("; ") if "gravity" in part or "spring" in part]
        assert [part.split(" (")[0] for part in parts] == [text]


UNNAMED = """
<mujoco model="unnamed">
  <worldbody>
    <body name="base">
      <geom type="sphere" size="0.1" mass="5" contype="0" conaffinity="0"/>
      <body name="one"><joint type="hinge" axis="0 1 0" stiffness="{0}" springref="0.2"/>
        <inertial pos="0.2 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>
        <body name="two" pos="0.4 0 0"><joint type="{kind}" {axis} stiffness="{1}"/>
          <inertial pos="0.1 0 0" mass="1" diaginertia="0.1 0.1 0.1"/>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""


def test_springs_of_joints_without_names_are_all_read(tmp_path: Path) -> None:
    """In MuJoCo both pull; none is counted for the other that has no name either."""
    file = tmp_path / "unnamed.xml"
    text = UNNAMED.format(3.0, 7.0, kind="slide", axis='axis="1 0 0"')
    file.write_text(text, encoding="utf-8")
    robot = cc.load(file)
    assert sorted(s.stiffness for s in robot.springs) == [3.0, 7.0]
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    model.opt.gravity[:] = 0.0
    data.qpos[:] = q = np.array([0.5, 0.03])
    mujoco.mj_forward(model, data)
    plain = replace(robot, gravity=(0.0, 0.0, 0.0))
    found = np.linalg.solve(plain.mass_matrix(q), -plain.bias(q, np.zeros(2)))
    np.testing.assert_allclose(found, data.qacc, atol=1e-9)


def test_a_spring_that_is_not_read_is_refused_beside_one_without_a_name_that_is(
    tmp_path: Path,
) -> None:
    file = tmp_path / "unnamed.xml"
    file.write_text(UNNAMED.format(3.0, 7.0, kind="ball", axis=""), encoding="utf-8")
    with pytest.raises(DescriptionError, match="stiffness"):
        cc.load(file)
    file.write_text(UNNAMED.format(3.0, 0.0, kind="ball", axis=""), encoding="utf-8")
    assert [s.stiffness for s in cc.load(file).springs] == [3.0]
