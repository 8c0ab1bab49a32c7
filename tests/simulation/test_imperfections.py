"""Models of imperfections against closed forms, Pinocchio and finite differences."""

from __future__ import annotations

import math

import casadi as ca
import numpy as np
import pytest
from scipy.linalg import expm

import concur as cc
from concur.codegen import constant
from concur.errors import SimulationError
from concur.simulation import (
    Friction,
    GravityGradient,
    Imperfections,
    Plant,
    Wrench,
    encoder_count,
    encoder_reading,
    loop_program,
)
from concur.simulation._disturbances import gradient_force, wrench_force
from tests.oracles import Pinocchio, assert_close, difference_quotient
from tests.simulation.loops import INERTIA, WHEEL, Stay, limited, part, rolled


def moved(robot, real, u, ticks, s0=0.0, dt=1e-3, seed=0):
    """States of one joint under a constant command."""
    program = loop_program(Stay(robot, [u]), Plant(robot), real, dt=dt)
    x, _ = rolled(program, program.start([0.0], [s0]), ticks, seed=seed)
    return {name: program.state(x, name) for name in program.states}


def test_stribeck_friction_falls_from_breakaway_to_coulomb():
    friction = Friction.of(WHEEL, 0.1, 0.3, 0.2, stribeck_speed=0.05)
    for speed in (-1.0, -0.05, 2e-5, 0.02):
        excess = 0.2 * math.exp(-((speed / 0.05) ** 2))
        rest = 1.0 - 0.1 * speed - math.copysign(0.3 + excess, speed)
        assert friction.left(np.array([1.0]), np.array([speed]))[0] == pytest.approx(rest)
        vdot, _ = Plant(WHEEL, friction=friction).acceleration([0.0], [speed], [1.0])
        assert vdot[0] == pytest.approx(rest / INERTIA, rel=1e-14)
    for bad in ({"stribeck_speed": 0.0}, {"stribeck_speed": -1.0}, {"stribeck": -0.1}):
        with pytest.raises(SimulationError, match=r"above zero|zero or more"):
            Friction.of(WHEEL, **bad)


def test_speed_of_stribeck_friction_holds_for_friction_that_is_only_uncertain():
    assert Imperfections.of(WHEEL).friction is None
    assert Imperfections.of(WHEEL, stribeck_speed=0.5).friction.stribeck_speed == 0.5
    start, ends = ("stribeck", WHEEL.control_names[0]), []
    for real in (Imperfections.of(WHEEL, stribeck_speed=0.5), Imperfections()):
        program = loop_program(Stay(WHEEL, [0.0]), Plant(WHEEL), real, [start], 1e-2)
        p = program.numbers(None, {start: 0.2})
        x, _ = rolled(program, program.start([0.0], [1.0], p=p), 20, p=p)
        ends.append(program.state(x, "v")[-1, 0])
    assert ends[0] < ends[1] - 1e-3


def test_friction_that_is_too_stiff_is_refused_where_steps_chatter():
    law, h = Stay(WHEEL, [0.0]), 1e-3

    def friction(rate):
        return Imperfections.of(WHEEL, viscous=rate * INERTIA)

    loop_program(law, Plant(WHEEL), friction(1.999 / h))
    with pytest.raises(SimulationError, match=r"`friction` of `wheel`.*2001 1/s, 2 per") as caught:
        loop_program(law, Plant(WHEEL), friction(2.001 / h))
    assert "Take a step of 0.00094 s or less" in str(caught.value)
    loop_program(law, Plant(WHEEL), friction(2.001 / h), dt=0.00094)


def test_stiff_worlds_are_refused_by_number():
    plant = Plant(WHEEL, uncertain=["wheel.inertia.moments"])
    real = Imperfections.of(WHEEL, viscous=500.0 * INERTIA)
    program = loop_program(Stay(WHEEL, [0.0]), plant, real, {("viscous", "wheel")})
    lighter = np.zeros((3, 6))
    lighter[1, :3] = -0.8 * INERTIA
    numbers = plant.numbers({"wheel.inertia.moments": lighter})
    with pytest.raises(SimulationError, match="world 1, `friction` of `wheel`") as caught:
        program.numbers(numbers)
    assert caught.value.data["world"] == 1
    assert caught.value.data["rate"] == pytest.approx(2500.0, rel=1e-9)
    much = {("viscous", "wheel"): [0.0, 0.0, 2000.0 * INERTIA]}
    with pytest.raises(SimulationError, match="world 2, `friction` of `wheel`"):
        program.numbers(numbers[:1].repeat(3, axis=0), much)
    assert program.numbers(numbers[[0, 2]]).shape == (2, program.n_numbers)


def test_torque_limits_and_ripple_shape_the_torque():
    t = np.arange(301) * 1e-3
    for u, held in ((3.0, 2.0), (-3.0, -2.0), (1.9, 1.9)):
        speed = moved(limited(WHEEL, {"wheel": 2.0}), Imperfections(), u, 300)["v"][:, 0]
        np.testing.assert_allclose(speed, held / INERTIA * t, rtol=1e-12, atol=1e-15)
    # Energy is an integral of motion: J v^2 / 2 = u (q + a (1 - cos n q) / n).
    real = Imperfections.of(WHEEL, ripple=0.3, ripple_periods=4)
    found = moved(WHEEL, real, 1.5, 1500)
    q, v, work = (found[name][:, 0] for name in ("q", "v", "work"))
    potential = 1.5 * (q + 0.3 * (1.0 - np.cos(4 * q)) / 4)
    assert q[-1] > math.pi
    np.testing.assert_allclose(INERTIA * v**2 / 2, potential, atol=1e-8)
    np.testing.assert_allclose(work, potential, atol=1e-8)


@pytest.mark.extended
def test_flexible_joints_are_springs_between_two_inertias():
    k, d, own, u = 50.0, 0.2, 0.1, 1.0
    real = Imperfections.of(WHEEL, stiffness=k, damping=d, motor_inertia=own)
    found = moved(WHEEL, real, u, 400, s0=0.3)
    # x = (motor minus joint, motor speed, joint speed), linear: the exponential of a matrix.
    matrix = np.zeros((4, 4))
    matrix[0, 1:3] = 1.0, -1.0
    matrix[1] = [-k / own, -d / own, d / own, u / own]
    matrix[2] = [k / INERTIA, d / INERTIA, -d / INERTIA, 0.0]
    x = np.array([u / k, 0.3, 0.3, 1.0])
    for row in range(1, 401):  # the first tick loads the spring
        exact = expm(matrix * row * 1e-3) @ x
        for name, value in zip(("spring", "motor", "v"), exact, strict=False):
            assert found[name][row, 0] == pytest.approx(value, abs=1e-8)
    # Friction acts at the motor, and both inertias come to rest together.
    real = Imperfections.of(WHEEL, stiffness=k, damping=1.0, motor_inertia=own, viscous=2.0)
    found = moved(WHEEL, real, 1.0, 6000)
    assert found["motor"][-1, 0] == pytest.approx(0.5, abs=1e-6)
    assert found["spring"][-1, 0] == pytest.approx(0.0, abs=1e-7)


def test_springs_that_are_too_stiff_are_refused():
    law, own = Stay(WHEEL, [0.0]), 0.1
    per = 1.0 / INERTIA + 1.0 / own
    for tables, what in (
        ({"stiffness": 1e6 / per}, "stiffness"),
        ({"stiffness": 1.0, "damping": 2e3 / per}, "damping"),
        ({"stiffness": 1.0, "viscous": 2e3 * own}, "friction of the motor"),
    ):
        (name, largest) = list(tables.items())[-1]
        for factor in (0.999, 1.001):
            real = Imperfections.of(WHEEL, motor_inertia=own, **(tables | {name: largest * factor}))
            if factor < 1.0:
                loop_program(law, Plant(WHEEL), real)
                continue
            with pytest.raises(SimulationError, match=f"`{what}` of `wheel`"):
                loop_program(law, Plant(WHEEL), real)


def test_wrenches_act_by_the_transposed_jacobian():
    rng = np.random.default_rng(3)
    robot = cc.robots.free_flyer()
    oracle, body = Pinocchio(robot), robot.bodies[-1].name
    force, torque, point = rng.normal(size=(3, 3))
    for frame in ("world", "body"):
        wrench = Wrench("pull", body, force, torque, point, frame)
        for _ in range(3):
            q = robot.random(rng)
            turn = oracle.pose(q, body)[:3, :3] if frame == "world" else np.eye(3)
            f, m = turn.T @ force, turn.T @ torque
            expected = oracle.jacobian(q, body).T @ np.concatenate([f, m + np.cross(point, f)])
            parts = [ca.SX(ca.DM(part)) for part in (force, torque)]
            found = np.array(ca.DM(wrench_force(wrench, robot, constant(q), *parts)))[:, 0]
            assert_close(found, expected, 1e-13)


def test_pushes_change_the_momentum_by_their_impulse():
    robot = cc.robots.free_flyer()
    law, rng = Stay(robot, np.zeros(robot.nu)), np.random.default_rng(4)
    body, base = robot.bodies[-1].name, robot.base.name
    force, torque = np.array([3.0, -1.0, 0.5]), np.array([0.1, 0.2, -0.3])
    # Both ends lie within steps; a pure torque on another body acts from the start.
    push = Wrench("push", body, force, start=0.0123, end=0.0247)
    spin = Wrench("spin", base, torque=torque)
    real = Imperfections.of(robot, disturbances=[push, spin])
    uncertain = {("force", "push.x"), ("torque", "spin.z")}
    program = loop_program(law, Plant(robot), real, uncertain)
    q, s = robot.random(rng), np.zeros(robot.nu)
    for share in (0.0, 1.0):
        deviations = {("force", "push.x"): share, ("torque", "spin.z"): -share}
        p = program.numbers(deviations=deviations)[0]
        states, _ = rolled(program, program.start(q, s), 40, p=p)
        q_end, v_end = (part(program, states, name)[-1] for name in "qv")
        change = robot.momentum(q_end, v_end)
        wanted = (force + share * np.array([1.0, 0, 0])) * (0.0247 - 0.0123)
        np.testing.assert_allclose(change[:3], wanted, atol=1e-9)
        spinning = (torque - share * np.array([0, 0, 1.0])) * 0.04
        at = robot.pose(q_end, body)[:3, 3]
        assert np.linalg.norm(change[3:] - spinning - np.cross(at, wanted)) < 1e-3


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (0.0123, 0.0247), (0.0123, 0.03), (0.01, 0.0247), (0.01, 0.03), (0.0123, 0.0151),
        (0.0, 0.0049), (0.0367, np.inf), (1.0, np.inf),
    ],
)  # fmt: skip
def test_pushes_that_begin_or_end_within_a_step_move_as_in_closed_form(start, end):
    """A constant force moves a slider by a parabola, whatever the step."""
    rail = cc.Body("rail", cc.joints.Fixed())
    slider = cc.Body("slider", cc.joints.Prismatic((1, 0, 0)), "rail", inertia=cc.Inertia(2.0))
    robot, dt = cc.Mechanism("slider", [rail, slider]), 0.01
    real = Imperfections.of(
        robot, disturbances=[Wrench("push", "slider", (3, 0, 0), start=start, end=end)]
    )
    program = loop_program(Stay(robot, [0.0]), Plant(robot), real, dt=dt)
    x, _ = rolled(program, program.start([0.1], [0.2]), 12)
    t = np.arange(len(x)) * dt
    since, past = np.maximum(t - start, 0.0), np.maximum(t - end, 0.0)
    wanted = 0.1 + 0.2 * t + 1.5 * (since**2 - past**2) / 2.0
    np.testing.assert_allclose(program.state(x, "q")[:, 0], wanted, atol=1e-15)
    np.testing.assert_allclose(program.state(x, "v")[:, 0], 0.2 + 1.5 * (since - past), atol=1e-15)


def test_gravity_gradient_is_the_classical_torque():
    robot, rng = cc.robots.free_flyer(), np.random.default_rng(5)
    gradient = GravityGradient(0.5, (1.0, 2.0, -0.5))
    e = np.array([1.0, 2.0, -0.5]) / np.linalg.norm([1.0, 2.0, -0.5])
    oracle = Pinocchio(robot)
    for _ in range(3):
        q = robot.random(rng)
        found = np.array(ca.DM(gradient_force(gradient, robot, constant(q))))[:, 0]
        places, masses, tensor = [], [], np.zeros((3, 3))
        for body in robot.bodies:
            pose, own = oracle.pose(q, body.name), body.inertia
            places.append(pose[:3, 3] + pose[:3, :3] @ own.com)
            masses.append(own.mass)
            tensor += pose[:3, :3] @ own.tensor @ pose[:3, :3].T
        ways = np.array(places) - np.average(places, axis=0, weights=masses)
        for mass, way in zip(masses, ways, strict=True):
            tensor += mass * (way @ way * np.eye(3) - np.outer(way, way))
        # Along the base's velocities: no force on the whole, and the torque about its centre.
        base = oracle.pose(q, robot.base.name)
        torque = base[:3, :3].T @ (3 * 0.5**2 * np.cross(e, tensor @ e))
        np.testing.assert_allclose(found[:6], [0, 0, 0, *torque], atol=1e-12)

        def energy(h, k, q=q):
            v = np.zeros(robot.nv)
            v[k] = h
            at = robot.integrate(q, v)
            total, mean = 0.0, np.zeros(3)
            inertias = [(oracle.pose(at, b.name), b.inertia) for b in robot.bodies]
            weight = sum(own.mass for _, own in inertias)
            mean = sum(own.mass * (p[:3, 3] + p[:3, :3] @ own.com) for p, own in inertias) / weight
            for p, own in inertias:
                way = p[:3, 3] + p[:3, :3] @ own.com - mean
                turned = p[:3, :3] @ own.tensor @ p[:3, :3].T
                total += own.mass * (3 * (e @ way) ** 2 - way @ way) - 3 * e @ turned @ e
            return 0.5 * 0.5**2 * total

        for k in range(6, robot.nv):
            slope = difference_quotient(lambda h, k=k: energy(h, k))
            assert found[k] == pytest.approx(float(slope), abs=1e-8)
    for bad in (lambda: GravityGradient(-1.0), lambda: GravityGradient(1.0, (0, 0, 0))):
        with pytest.raises(SimulationError, match="a rate of zero or more"):
            bad()
    for bad, words in (({"frame": "tool"}, "world or body"), ({"start": -1.0}, "a time, s"),
                       ({"start": 1.0, "end": 1.0}, "a time after 1 s")):  # fmt: skip
        with pytest.raises(SimulationError, match=words):
            Wrench("push", "hand", **bad)
    with pytest.raises(SimulationError, match="a name for each wrench"):
        Imperfections(disturbances=(Wrench("a", "hand"), Wrench("a", "hand")))


def test_encoders_round_to_the_nearest_step_of_numbers_and_expressions():
    x, step = ca.SX.sym("x"), ca.SX.sym("step")
    graph = ca.Function("reading", [x, step], [encoder_reading(x, step)])
    for position in (-0.1301, -0.0501, 0.0499, 0.0501, 7.0):
        assert encoder_count(position, 0.1) == round(position / 0.1)
        assert encoder_reading(position, 0.1) == pytest.approx(0.1 * round(position / 0.1))
        assert float(graph(position, 0.1)) == encoder_reading(position, 0.1)
        assert float(graph(position, 0.0)) == encoder_reading(position, 0.0) == position


class Seen(Stay):
    """A law that gives what it sees."""

    def graph(self):
        q, s = ca.SX.sym("q", self.model.nq), ca.SX.sym("s", self.model.ns)
        return ca.Function("seen", [q, s], [self.u[0] * q + self.u[1] * s], ["q", "s"], ["u"])


def test_the_law_sees_joints_through_encoders():
    real = Imperfections.of(WHEEL, resolution=0.05, velocity_noise=0.2)
    program = loop_program(Seen(WHEEL, [1.0, 0.0]), Plant(WHEEL), real)
    assert program.noises == 1
    _, _, y = program.tick(program.start([0.37], [0.0])[0], [], [0.0], [1.7])
    seen = dict(zip(program.signals, np.array(y)[:, 0], strict=False))
    assert seen["torque:wheel"] == pytest.approx(0.35, rel=1e-15)
    assert seen["position:wheel"] == 0.37  # signals are true
    program = loop_program(Seen(WHEEL, [0.0, 1.0]), Plant(WHEEL), real, {("noise", "wheel")})
    assert program.noises == 2
    p = program.numbers(deviations={("noise", "wheel"): 1e-3})[0]
    _, u, _ = program.tick(program.start([0.37], [0.5])[0], p, [0.0], [3.0, -1.5])
    assert float(u) == pytest.approx(0.5 - 0.2 * 1.5, rel=1e-14)
    program = loop_program(
        Seen(WHEEL, [1.0, 0.0]), Plant(WHEEL), Imperfections.of(WHEEL, noise=0.01)
    )
    _, u, _ = program.tick(program.start([0.37], [0.5])[0], [], [0.0], [2.0])
    assert float(u) == pytest.approx(0.39, rel=1e-14)
