"""Motors in plants against closed forms, MuJoCo and robots with these numbers at the joint."""

from __future__ import annotations

import math
from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import concur as cc
from concur.errors import SimulationError
from concur.robot import Body, Inertia, Mechanism, Motor, joints
from concur.simulation import (
    Friction,
    Imperfections,
    Integrator,
    Plant,
    RealPlant,
    loop_program,
)
from concur.simulation._motors import heat_of
from tests.oracles import Pinocchio, assert_close
from tests.simulation.loops import INERTIA, WHEEL, Stay, rolled

REAL = Imperfections()


def driven(gravity=(0.0, 0.0, 0.0), com=(0.0, 0.0, 0.0), **given) -> Mechanism:
    """One wheel with a motor, whose gear is 1 if it is not given."""
    wheel = Body(
        "wheel", joints.Revolute((0, 0, 1)), inertia=Inertia(1.0, com, moments=(INERTIA,) * 3)
    )
    return Mechanism("w", [wheel], gravity=gravity, motors=[Motor("m", "wheel", **given)])


def moved(robot, u, ticks, s0=0.0, real=REAL, dt=1e-3, q0=0.0):
    """States under constant commands, and signals by name."""
    program = loop_program(Stay(robot, np.atleast_1d(u)), Plant(robot), real, dt=dt)
    x, _ = rolled(program, program.start(np.atleast_1d(q0), np.atleast_1d(s0)), ticks)
    return {name: program.state(x, name) for name in program.states}


def test_torques_end_at_the_limit_of_the_motor_and_else_of_the_joint():
    own = replace(WHEEL, bodies=[replace(WHEEL.bodies[0], torque_limit=3.0)])
    geared = driven(gear=-10.0, torque=0.3)
    less = replace(geared, bodies=own.bodies, motors=[Motor("m", "wheel", -10.0)])
    for robot, gear in ((own, 1.0), (geared, -10.0), (less, -10.0)):
        for torque, held in ((2.9, 2.9), (3.1, 3.0), (-50.0, -3.0)):
            v = moved(robot, torque / gear, 100)["v"][-1, 0]
            assert v == pytest.approx(0.1 * held / INERTIA, rel=1e-12)
    ideal = moved(geared, 50.0, 100, real=Imperfections(motors=False))["v"][-1, 0]
    assert ideal == pytest.approx(-0.1 * 500.0 / INERTIA, rel=1e-12)


def test_speed_torque_line_ends_at_the_no_load_speed():
    # J dw/dt = stall (1 - w / w0): an exponential, once it is below `torque`.
    stall, fastest, most = 2.0, 10.0, 1.5
    line = driven(torque=most, no_load_speed=fastest, stall_torque=stall)
    found = moved(line, 9.0, 2000, dt=1e-2)["v"][:, 0]
    knee = fastest * (1.0 - most / stall)
    first = knee * INERTIA / most
    t = 1e-2 * np.arange(2001)
    exact = fastest - (fastest - knee) * np.exp(-stall / fastest / INERTIA * (t - first))
    exact[t < first] = most / INERTIA * t[t < first]
    # One step lies across the knee.
    np.testing.assert_allclose(found, exact, atol=1e-5)
    assert found[-1] == pytest.approx(fastest, rel=5e-5)
    # Beyond the no-load speed nothing drives; braking has the whole torque, at all speeds.
    assert moved(line, 9.0, 100, s0=12.0)["v"][-1, 0] == 12.0
    assert moved(line, -9.0, 100, s0=12.0)["v"][-1, 0] == pytest.approx(12.0 - 0.1 * most / INERTIA)
    # The line is that of the motor: a gear of 5 turns it five times as fast.
    geared = driven(gear=5.0, torque=most, no_load_speed=fastest, stall_torque=stall)
    assert moved(geared, 9.0, 400, dt=1e-2)["v"][-1, 0] == pytest.approx(2.0, rel=1e-9)


def test_efficiency_is_dry_friction_that_grows_with_the_load():
    lossy = driven(efficiency=0.75)
    for u, s0, factor in (
        (1.0, 0.0, 0.75),
        (-1.0, 0.0, 0.75),
        (-1.0, 3.0, 1.25),
        (1.0, -3.0, 1.25),
    ):
        v = moved(lossy, u, 100, s0)["v"][-1, 0]
        assert v == pytest.approx(s0 + factor * 0.1 * u / INERTIA, rel=1e-10)
    # Without torque it coasts; the loss does not turn it back.
    assert moved(lossy, 0.0, 100, 3.0)["v"][-1, 0] == 3.0
    # It holds a weight that the torque carries within the loss: m g l = 0.981 N m.
    held = driven((0.0, -9.81, 0.0), (0.1, 0.0, 0.0), efficiency=0.75)
    for load, sticks in ((0.981 / 1.25 + 0.002, True), (0.981 / 1.25 - 0.002, False),
                         (0.981 / 0.75 - 0.002, True), (0.981 / 0.75 + 0.002, False)):  # fmt: skip
        v = moved(held, load, 300)["v"][:, 0]
        assert (np.abs(v).max() < 1e-12) == sticks, load


FRICTION = {"viscous": 0.03, "coulomb": 0.2, "stribeck": 0.1}


@pytest.mark.by_default(2)
@pytest.mark.parametrize("gear", [1.0, -20.0, 0.05])
def test_friction_of_a_motor_is_that_of_its_side_of_the_gear(gear):
    """A wheel whose friction is written as an imperfection at the joint moves the same."""
    joint = moved(WHEEL, 0.5, 700, 2.0, Imperfections.of(WHEEL, **FRICTION))["v"]
    at_joint = driven(gear=gear, friction_at="joint", **FRICTION)
    side = (gear**2, abs(gear), abs(gear))
    own = {name: value / by for (name, value), by in zip(FRICTION.items(), side, strict=True)}
    at_motor = driven(gear=gear, **own)
    found = moved(at_joint, 0.5 / gear, 700, 2.0)["v"]
    np.testing.assert_allclose(found, joint, atol=1e-12)
    # The excess at breakaway falls over the same speed of the side where it is given.
    speed = Imperfections.of(at_motor, stribeck_speed=0.1 * abs(gear))
    np.testing.assert_allclose(moved(at_motor, 0.5 / gear, 700, 2.0, speed)["v"], joint, atol=1e-12)


def wrist(**given) -> Mechanism:
    """Two joints that two motors share, as a differential does."""
    link = Inertia(0.8, (0.02, 0.01, 0.05), (0.02, 0.03, 0.01))
    bodies = [
        Body("base", joints.Fixed()),
        Body("pitch", joints.Revolute((0, 1, 0)), "base", inertia=link),
        Body("roll", joints.Revolute((0, 0, 1)), "pitch", inertia=link),
    ]
    motors = [
        Motor(name, {"pitch": 1.0, "roll": side}, 30.0, 2e-5, shaft=(0, 0, 0), **given)
        for name, side in (("left", 1.0), ("right", -1.0))
    ]
    return Mechanism("wrist", bodies, motors=motors)


@pytest.mark.parametrize("where", ["joint", "tendon"])
def test_friction_and_rotors_are_those_of_mujoco(where):
    """`damping`, `armature`, `gear` of joints and tendons, and `frictionloss` in fast motion."""
    mujoco = pytest.importorskip("mujoco")
    numbers = {"viscous": 3e-4, "coulomb": 2e-3}
    if where == "tendon":
        robot = wrist(**numbers)
        tendons = "".join(
            f'<fixed name="{n}" armature="2e-5" damping="3e-4" frictionloss="2e-3">'
            f'<joint joint="pitch" coef="30"/><joint joint="roll" coef="{c}"/></fixed>'
            for n, c in (("left", 30), ("right", -30))
        )
        drives = "".join(f'<motor name="{n}" tendon="{n}"/>' for n in ("left", "right"))
        extra, per_joint = f"<tendon>{tendons}</tendon><actuator>{drives}</actuator>", ""
    else:
        each = {"pitch": 30.0, "roll": -50.0}
        motors = [
            Motor(f"{n} drive", n, g, 2e-5, shaft=(0, 0, 0), **numbers) for n, g in each.items()
        ]
        robot = replace(wrist(), motors=motors, actuated=None)
        drives = "".join(f'<motor joint="{n}" gear="{g}"/>' for n, g in each.items())
        extra = f"<actuator>{drives}</actuator>"
        per_joint = "armature='{a}' damping='{d}' frictionloss='{f}'"
    text = '<mujoco><compiler angle="radian"/><option gravity="0 0 0" timestep="1e-4"/><worldbody>'
    for name, axis, gear in (("pitch", "0 1 0", 30.0), ("roll", "0 0 1", 50.0)):
        own = per_joint.format(a=2e-5 * gear**2, d=3e-4 * gear**2, f=2e-3 * gear)
        text += (
            f'<body><joint name="{name}" axis="{axis}" {own}/><inertial mass="0.8" '
            'pos="0.02 0.01 0.05" diaginertia="0.02 0.03 0.01"/>'
        )
    model = mujoco.MjModel.from_xml_string(f"{text}</body></body></worldbody>{extra}</mujoco>")
    data, rng = mujoco.MjData(model), np.random.default_rng(3)
    real = Imperfections()
    for _ in range(4):
        q, u = rng.normal(size=2), 0.02 * rng.normal(size=2)
        v = rng.choice([-1.0, 1.0], 2) * [2.0, 1.0]  # both motors of the wrist turn fast
        program = loop_program(Stay(robot, u), Plant(robot), real, dt=1e-7)
        x, _ = rolled(program, program.start(q, v), 1)
        moved_v = program.state(x, "v")[1]
        data.qpos[:], data.qvel[:], data.ctrl[:] = q, v, u
        mujoco.mj_forward(model, data)
        # MuJoCo regularises dry friction: what it applies is compared, and all else exactly.
        dry = robot.actuation(q) @ (2e-3 * np.sign(robot.actuation(q).T @ v))
        assert_close(
            data.qfrc_passive, -robot.actuation(q) @ (3e-4 * robot.actuation(q).T @ v), 1e-9
        )
        assert_close(data.qfrc_constraint, -dry, 1e-3 * np.abs(dry).max())
        mass = np.zeros((2, 2))
        mujoco.mj_fullM(model, data, mass)
        assert_close(mass, robot.mass_matrix(q), 1e-9)
        forces = data.qfrc_actuator + data.qfrc_passive - data.qfrc_bias - dry
        vdot = np.linalg.solve(mass, forces)
        assert_close((moved_v - v) / 1e-7, vdot, 1e-5 * max(1.0, np.abs(vdot).max()))
        # The plant that has the same friction has these accelerations to rounding.
        level = [(*motor.friction,) for motor in robot.motors]
        viscous, coulomb, stribeck = map(tuple, zip(*level, strict=True))
        plant = Plant(robot, friction=Friction(viscous, coulomb, stribeck))
        assert_close(plant.acceleration(q, v, u)[0], vdot, 1e-9 * max(1.0, np.abs(vdot).max()))


def test_rotors_and_friction_are_those_of_pinocchio():
    """`rotorInertia`, `rotorGearRatio`, `friction` and `damping` of joints with a motor each."""
    gears, inertia = {"pitch": 30.0, "roll": -50.0}, {"pitch": 2e-5, "roll": 3e-5}
    motors = [
        Motor(f"{n} drive", n, g, inertia[n], shaft=(0, 0, 0), viscous=3e-4, coulomb=2e-3)
        for n, g in gears.items()
    ]
    robot = replace(wrist(), motors=motors, actuated=None, gravity=(0.0, 2.0, -9.0))
    oracle = Pinocchio(replace(robot, motors=()))
    model = oracle.model
    model.rotorInertia = np.array([inertia[n] for n in gears])
    model.rotorGearRatio = np.array(list(gears.values()))
    model.armature = model.rotorInertia * model.rotorGearRatio**2
    ratios = np.abs(list(gears.values()))
    model.damping, model.friction = 3e-4 * ratios**2, 2e-3 * ratios
    oracle.data = model.createData()
    friction = Friction(*zip(*(motor.friction for motor in motors), strict=True))
    rng = np.random.default_rng(7)
    for _ in range(4):
        q, v, u = rng.normal(size=2), rng.normal(size=2), rng.normal(size=2)
        assert_close(oracle.mass_matrix(q), robot.mass_matrix(q), 1e-12)
        tau = np.array(list(gears.values())) * u
        tau -= model.damping * v + model.friction * np.sign(v)
        vdot = np.linalg.solve(oracle.mass_matrix(q), tau - oracle.bias(q, v))
        assert_close(Plant(robot, friction=friction).acceleration(q, v, u)[0], vdot, 1e-9)


def mecanum():
    """Four wheels with a motor each, of other gears and friction."""
    robot = cc.robots.mecanum_arm()
    wheels = [wheel.body for wheel in robot.wheels]
    motors = [
        Motor(f"{name} motor", name, 20.0 + k, torque=0.2, viscous=1e-4 * k, coulomb=1e-3)
        for k, name in enumerate(wheels)
    ]
    kept = [name for name in robot.actuated if name not in wheels]
    return replace(robot, actuated=kept, motors=motors), [motor.name for motor in motors]


def thruster():
    """A body on a slide with a thruster that pushes it."""
    body = Body("car", joints.Prismatic((1, 0, 0)), inertia=Inertia(2.0))
    jet = Motor("jet", body="car", wrench=(1, 0, 0, 0, 0, 0), torque=3.0)
    return Mechanism("car", [body], actuated=[], motors=[jet]), ["jet"]


@pytest.mark.parametrize("made", [mecanum, thruster])
def test_plants_of_several_motors_cut_each_off_at_its_own_limit(made):
    robot, names = made()
    model = cc.reduce(robot)
    u = np.zeros(robot.nu)
    places = [robot.control_names.index(name) for name in names]
    u[places] = 9.0 * (-1.0) ** np.arange(len(names))
    most = robot.control_limits
    q, s = robot.neutral(), np.full(model.ns, 0.3)
    program = loop_program(Stay(robot, u), Plant(robot), REAL, dt=1e-7)
    x, _ = rolled(program, program.start(q, s), 1)
    v = program.state(x, "v")
    values = [REAL.values(kind, robot) for kind in ("viscous", "coulomb")]
    friction = Friction(*map(tuple, values))
    wanted = Plant(robot, friction=friction).acceleration(q, v[0], np.clip(u, -most, most))[0]
    assert_close((v[1] - v[0]) / 1e-7, wanted, 1e-5 * max(1.0, np.abs(wanted).max()))
    free = Plant(robot, friction=friction).acceleration(q, v[0], u)[0]
    assert np.abs(free - wanted).max() > 0.5 * np.abs(wanted).max()


class Reads(Stay):
    """A law whose torques are what it sees of the joints."""

    def graph(self):
        q, s = ca.SX.sym("q", self.model.nq), ca.SX.sym("s", self.model.ns)
        return ca.Function("reads", [q, s], [q], ["q", "s"], ["u"])


def test_encoders_read_joints_in_counts_of_their_side_of_the_gear():
    for given, step in (
        ({"gear": 50.0, "encoder": 1024}, 2.0 * math.pi / 1024 / 50.0),
        ({"gear": -50.0, "encoder": 1024, "encoder_at": "joint"}, 2.0 * math.pi / 1024),
    ):
        robot = driven(**given)
        program = loop_program(Reads(robot, None), Plant(robot), REAL)
        for q in (0.4 * step, 0.6 * step, 0.37, -11.1):
            seen = program.tick(program.start([q], [0.0])[0], [], [0.0], [])[1]
            assert float(seen) == pytest.approx(step * np.round(q / step), abs=1e-13)
    # Of a slide: counts per turn of its motor, or per metre.
    slide = Body("slide", joints.Prismatic((1, 0, 0)), inertia=Inertia(1.0))
    for given, step in (
        ({"gear": 400.0, "encoder": 500}, 2.0 * math.pi / 500 / 400.0),
        ({"gear": 400.0, "encoder": 500, "encoder_at": "joint"}, 1 / 500),
    ):
        robot = Mechanism("s", [slide], motors=[Motor("m", "slide", **given)])
        assert REAL.values("resolution", robot) == pytest.approx([step], rel=1e-14)
    # Encoders on two motors of a wrist: the joints follow from both counts.
    robot, q = wrist(encoder=64), np.array([0.3, -0.2])
    program = loop_program(Reads(robot, None), Plant(robot), REAL)
    seen = np.array(program.tick(program.start(q, [0.0, 0.0])[0], [], [0.0], [])[1]).ravel()
    step = 2.0 * math.pi / 64
    counts = np.round(30.0 * np.array([q[0] + q[1], q[0] - q[1]]) / step)
    turned = step * counts / 30.0
    assert_close(seen, [(turned[0] + turned[1]) / 2, (turned[0] - turned[1]) / 2], 1e-14)
    assert np.abs(seen - q).max() > 1e-4
    # At the joints each has its own.
    joint = replace(robot, motors=[replace(m, encoder_at="joint") for m in robot.motors])
    assert REAL.values("resolution", joint) == pytest.approx([step, step], rel=1e-14)


THERMAL = {"continuous": 0.5, "thermal_time": 0.3}


def run_of(robot, u, duration, imperfect=False, **options):
    plant = RealPlant(imperfections=REAL) if imperfect else None
    law, start = Stay(robot, [u] * robot.nu), (robot.neutral(), [0.0] * robot.nv)
    given = Integrator(**{"dt": 1e-2} | options)
    return cc.simulate(robot, law, None, duration, *start, given, plant)


@pytest.mark.parametrize(
    "options",
    [{}, {"method": "rkmk4"}, {"method": "dop853"}, {"control_period": 2e-2}, {"imperfect": True}],
    ids=str,
)
def test_heat_is_that_of_the_closed_form_in_every_loop(options):
    robot = driven(**THERMAL)
    for u in (0.4, -0.7):
        run = run_of(robot, u, 0.6, **options)
        exact = (u / 0.5) ** 2 * (1.0 - np.exp(-run.t / 0.3))
        np.testing.assert_allclose(run.heat[:, 0], exact, atol=1e-7)
        np.testing.assert_allclose(heat_of(robot, run.t, run.u)[:, 0], exact, atol=1e-12)
        (row,) = (row for row in run.findings(None) if row.quantity.startswith("heat"))
        assert (row.quantity, row.limit) == ("heat of motor m, largest", 1.0)
        assert row.holds == (abs(u) < 0.5)


def test_heat_has_its_limit_at_one_and_is_that_of_the_saturated_torque(tmp_path):
    for torque, holds in ((0.5 * (1.0 - 1e-9), True), (0.5 * (1.0 + 1e-6), False)):
        hot = driven(torque=torque, **THERMAL)
        run = run_of(hot, 5.0, 9.0, imperfect=True, dt=5e-2)
        (row,) = (row for row in run.findings(None) if row.quantity.startswith("heat"))
        assert row.holds == holds
        assert row.value == pytest.approx(1.0, abs=1e-5)
        (peak,) = (row for row in run.findings(None) if row.quantity.startswith("peak"))
        assert (peak.value, peak.holds) == (torque, True)
        assert peak.place == "the law asks for more in 100 % of the time"
        assert run.status == ("passed" if holds else "failed")
    again = cc.Run.load(run.save(tmp_path / "run.h5"), run.servo, hot)
    np.testing.assert_array_equal(again.heat, run.heat)
    assert [row.quantity for row in again.rows] == [row.quantity for row in run.rows]


def test_ideal_drives_name_the_numbers_that_have_no_effect():
    robot = driven(viscous=0.1, efficiency=0.9, torque=1.0, no_load_speed=9.0, encoder=64)
    run = run_of(robot, 0.5, 0.1)
    (row,) = (row for row in run.findings(None) if "without effect" in row.quantity)
    assert row.value == "friction, efficiency, line of speed and torque, encoder"
    assert run.v[-1, 0] == pytest.approx(0.1 * 0.5 / INERTIA)
    real = run_of(robot, 0.5, 0.1, imperfect=True)
    assert not [row for row in real.findings(None) if "without effect" in row.quantity]
    assert real.plant_differences == (
        "friction", "resolution", "torque limit", "no load speed", "efficiency",
    )  # fmt: skip
    assert run_of(driven(torque=1.0), 0.5, 0.1).findings(None)[-1].value is not None


def test_speeds_of_motors_are_rows_of_joints_and_of_motors_with_several():
    for speed, holds in ((90.0, True), (29.0, False)):
        geared = replace(driven(gear=50.0, speed=speed), actuated=None)
        run = run_of(geared, 0.4 * INERTIA / 50.0 * 5.0, 0.5)
        assert run.v_range[1, 0] == pytest.approx(1.0)
        run = run_of(geared, 0.6 * INERTIA / 50.0 * 2.0, 0.5)
        (row,) = (row for row in run.findings(None) if row.quantity == "largest speed of wheel")
        assert (row.limit, row.holds) == (speed / 50.0, holds)
    most = 4.0
    for u, holds in ((2.0, True), (2.1, False)):
        robot = wrist(speed=most)
        # Equal torques pitch the wrist: both motors turn at 30 times its speed.
        scale = most / 30.0 / 0.1
        base = robot.mass_matrix([0.0, 0.0])[0, 0] * scale / 60.0
        run = run_of(robot, base * u / 2.05, 0.1, dt=1e-3)
        rows = [row for row in run.findings(None) if row.quantity.startswith("largest speed of")]
        assert [row.quantity for row in rows] == [
            "largest speed of motor left", "largest speed of motor right",
        ]  # fmt: skip
        assert [row.holds for row in rows] == [holds, holds]
        assert rows[0].limit == most


@pytest.mark.parametrize(
    ("given", "table", "words"),
    [
        ({"viscous": 0.1}, {"viscous": 0.2}, "`viscous` of `m`"),
        ({"coulomb": 0.1}, {"coulomb": {"m": 0.2}}, "`coulomb` of `m`"),
        ({"encoder": 64}, {"resolution": 1e-3}, "`resolution` of `wheel`"),
        ({"rotor": 1e-3}, {"stiffness": 5.0, "motor_inertia": 0.1}, "`motor_inertia` of `m`"),
        ({}, {"stiffness": 5.0}, "`motor_inertia`: expected an inertia above zero"),
        ({}, {"torque_limit": 5.0}, "`torque_limit`: expected a table out of"),
    ],
)
def test_numbers_of_motors_stand_in_one_place(given, table, words):
    robot = driven(**given)
    with pytest.raises(cc.errors.ConcurError, match=words):
        Imperfections.of(robot, **table)
    # Other kinds of friction beside those of the motor are no repetition.
    real = Imperfections.of(driven(viscous=0.1), coulomb=0.2)
    assert [float(*real.values(kind, driven(viscous=0.1))) for kind in ("viscous", "coulomb")] == [
        0.1, 0.2,
    ]  # fmt: skip
    with pytest.raises(SimulationError, match="true or false"):
        Imperfections(motors=1)


def test_rotors_in_front_of_springs_are_the_inertia_there():
    spring = {"stiffness": 50.0, "damping": 0.2}
    own = driven(rotor=0.1, shaft=(0, 0, 0))
    bare = driven()
    found = moved(own, 1.0, 300, 0.3, Imperfections.of(own, **spring))
    wanted = moved(bare, 1.0, 300, 0.3, Imperfections.of(bare, motor_inertia=0.1, **spring))
    for name in ("q", "v", "motor", "spring"):
        np.testing.assert_allclose(found[name], wanted[name], atol=1e-12)
    turning = replace(
        cc.robots.free_flyer(), actuated=None,
        motors=[Motor("m", cc.robots.free_flyer().control_names[0], 50.0, 1e-5)],
    )  # fmt: skip
    real = Imperfections.of(turning, stiffness={"m": 50.0})
    with pytest.raises(SimulationError, match="reflected inertia only"):
        loop_program(Stay(turning, [0.0] * turning.nu), Plant(turning), real)


def test_uncertain_numbers_of_motors_equal_fixed_ones():
    fixed = {"torque": 0.5, "no_load_speed": 9.0, "viscous": 0.02, "efficiency": 0.8, **THERMAL}
    half = {"torque": 0.4, "no_load_speed": 8.0, "viscous": 0.01, "efficiency": 0.7}
    robot, other = driven(**fixed, stall_torque=0.6), driven(**half, **THERMAL, stall_torque=0.5)
    kinds = {"torque_limit": 0.1, "no_load_speed": 1.0, "viscous": 0.01, "efficiency": 0.1,
             "stall_torque": 0.1, "continuous": 0.0, "thermal_time": 0.0}  # fmt: skip
    names = {(kind, "m"): added for kind, added in kinds.items()}
    family = loop_program(Stay(other, [0.7]), Plant(other), REAL, set(names))
    p = family.numbers(deviations=names)[0]
    found, _ = rolled(family, family.start([0.0], [0.0]), 400, p=p)
    program = loop_program(Stay(robot, [0.7]), Plant(robot), REAL)
    wanted, _ = rolled(program, program.start([0.0], [0.0]), 400)
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    for kind, bad in (("efficiency", 0.31), ("efficiency", -0.7), ("thermal_time", -0.3)):
        with pytest.raises(SimulationError, match=f"`{kind}` of `m`"):
            family.numbers(deviations={(kind, "m"): bad})
    assert family.numbers(deviations={("efficiency", "m"): 0.3 - 1e-12}).size
