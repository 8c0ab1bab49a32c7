"""The passive servo: its Lyapunov function along motions, its bounds, and all that takes a law."""

from __future__ import annotations

from dataclasses import replace

import casadi as ca
import numpy as np
import pytest

import concur as cc
from concur.certify import certify
from concur.control import Tick, linear_loop, taken_velocities
from concur.control._tracking import Tracked
from concur.errors import (
    ConcurError,
    OutputError,
    SingularConfigurationError,
    UnknownNameError,
)
from concur.outputs import FunctionOutput
from concur.robot import robot_size
from tests.control._cases import Q0, case_study, case_study_sample, two_links
from tests.formulations.textbook import rebuilt
from tests.oracles import assert_close, crane, difference_quotient

FLYER_Q = np.array([0.0] * 6 + [1.0, 0.5, -1.5, 2.1, 0.2, -0.4, 0.8])
MOMENTUM = [0.0, 0.0, 0.0, 0.6, 0.3, 0.3]


def rover_law(**options) -> cc.PassiveServo:
    servo = case_study()
    given = {"stiffness": [60.0, 90.0], "damping": [60.0, 60.0], "rate": [2.0, 3.0], **options}
    return cc.PassiveServo(servo.model, servo.outputs, **given)


def flyer_law(group: str = "SE3", **options) -> cc.PassiveServo:
    model = cc.reduce(cc.robots.free_flyer(), MOMENTUM)
    hand = cc.Output("hand", "tool", group, relative_to=options.pop("relative_to", None))
    stiffness, damping = np.linspace(20, 30, hand.dim), np.linspace(8, 12, hand.dim)
    given = {"stiffness": [stiffness], "damping": [damping], "rate": 2.0, **options}
    return cc.PassiveServo(model, [hand], **given)


def rate_of_energy(law: cc.PassiveServo, q: np.ndarray, seed: int) -> tuple[float, float]:
    """Rate of V along the model's motion from a random state, by differences and as derived."""
    rng, model, robot = np.random.default_rng(seed), law.model, law.model.robot
    q = robot.integrate(q, model.velocity(q, rng.normal(size=model.ns)) * 0.1)
    s = 0.3 * rng.normal(size=model.ns)
    group = law.error_dynamics.group

    def shifted(pose: np.ndarray, x: np.ndarray) -> np.ndarray:
        return np.array(ca.DM(group.shifted(ca.SX(pose), ca.SX(x)))).ravel()

    pose = shifted(law.output(q), 0.3 * rng.normal(size=law.size))
    twist, acceleration = 0.3 * rng.normal(size=(2, law.size))
    u = law.law(q, taken_velocities(law, model.velocity(q, s)), pose, twist, acceleration)[0]
    v, sdot = model.velocity(q, s), model.acceleration(q, s, u)

    def energy(h: float) -> float:
        moved = shifted(pose, -h * twist)
        ahead, speeds = robot.integrate(q, h * v), s + h * sdot
        taken = taken_velocities(law, model.velocity(ahead, speeds))
        return float(law._lyapunov(ahead, taken, moved, twist + h * acceleration))

    x, ve = law.errors(q, taken_velocities(law, v), pose, twist)
    rates = np.repeat(law.rate, [output.dim for output in law.outputs])
    wrong = ve - rates * x
    lost = wrong @ law.damping @ wrong + x @ law.stiffness @ (rates * x)
    rate = difference_quotient(energy, step=1e-4)
    assert rate < -2 * law.decay_rate(q) * energy(0.0) < 0.0
    return rate, -float(lost)


@pytest.mark.by_default(3)
@pytest.mark.parametrize(
    "law",
    [
        rover_law(),
        rover_law(use_measured_velocity=True),
        flyer_law(),
        flyer_law("R3xSO3", use_measured_velocity=True),
        flyer_law(relative_to="spacecraft"),
    ],
    ids=["wheels", "measured", "momentum", "product", "relative"],
)
def test_energy_falls_as_the_dampers_and_the_rates_say(law):
    q = Q0 if law.model.kind == "chaplygin" else FLYER_Q
    for seed in range(2):
        rate, derived = rate_of_energy(law, q, seed)
        assert rate == pytest.approx(derived, rel=1e-7)


def test_decay_rate_is_that_of_the_slowest_errors():
    law = rover_law(rate=[2.0, 3.0])
    assert replace(law, damping=1e6).decay_rate(Q0) == pytest.approx(2.0)
    soft, softer = (replace(law, damping=d).decay_rate(Q0) for d in (0.2, 0.1))
    assert soft < 2.0
    assert soft == pytest.approx(2 * softer)


def test_internal_motion_is_damped_too():
    law = flyer_law("SO3")
    rate, derived = rate_of_energy(law, FLYER_Q, 0)
    stiffer = rate_of_energy(replace(law, internal_damping=3 * law.internal_damping), FLYER_Q, 0)[0]
    # The power of the internal motion is proportional to its damping.
    assert rate < 1.0001 * derived
    assert stiffer - derived == pytest.approx(3 * (rate - derived), rel=1e-5)


def random_runs(count: int) -> None:
    rng, rover, flyer = np.random.default_rng(11), rover_law(), flyer_law()
    for k in range(count):
        law, near = (flyer, FLYER_Q) if k % 4 == 3 else (rover, Q0)
        here = np.asarray(law.output(near))
        goal = here + 0.02 * rng.normal(size=here.size)  # within reach
        options = {"group": "SE3"} if law is flyer else {}
        if law is flyer:
            goal[3:] /= np.linalg.norm(goal[3:])
        path = cc.references.rest_to_rest(here, goal, 1.0, **options)
        start = law.start(path, near, offset=0.03 * rng.normal(size=law.size))
        s0 = start.s + 0.1 * rng.normal(size=law.ns)
        run = cc.simulate(law.model.robot, law, path, 1.0, start.q, s0, dt=2e-3)
        rises = np.diff(run.lyapunov)
        assert run.lyapunov[-1] < 0.7 * run.lyapunov[0], k
        assert rises.max() < 1e-9 * run.lyapunov[0], (k, rises.max())
        bounds = law.error_bounds(run.q[0], run.s[0], path(0.0))
        parts = np.split(run.error, np.cumsum([o.dim for o in law.outputs])[:-1], axis=1)
        for bound, error in zip(bounds.values(), parts, strict=True):
            assert np.linalg.norm(error, axis=1).max() <= bound


def test_energy_falls_along_random_runs():
    random_runs(2)


@pytest.mark.parametrize("group", ["SO3", "SE3", "SE2", "R3"])
def test_rate_of_the_pose_error_is_that_of_the_group(group):
    hand = cc.Output("hand", "tool", group)
    rng, lie = np.random.default_rng(2), hand.lie
    turn = rng.normal(size=4)
    values = ca.DM(rng.normal(size=lie.dim))
    pose = (ca.SX.eye(3), ca.SX([0.1, 0.2, 0.3]))
    desired = {"SO3": turn, "SE3": np.r_[0.3, -0.2, 0.5, turn], "SE2": [0.3, 0.1, 0.7]}
    tracked = Tracked(lie, pose, ca.SX(ca.DM(desired.get(group, [0.3, 0.1, 0.7]))))
    off = tracked.push(ca.SX(values)) - lie.error_map(tracked.error) @ values
    assert np.abs(np.array(ca.DM(off))).max() < 1e-12
    if group in ("SO3", "SE3"):
        mirrored = lie.error_map(tracked.error).T @ values - tracked.pull(ca.SX(values), False)
        assert np.abs(np.array(ca.DM(mirrored))).max() < 1e-12


def test_ticks_limits_and_audit():
    law, sample = rover_law(), case_study_sample(0.0)
    s = np.array([1.0, 1.5, 0.0, 0.0, 0.0])
    u = law.torque(Q0, s, sample)
    assert np.array_equal(law.compile(interpreted=True)(Q0, s, sample), u)
    assert np.array_equal(Tick(law, interpreted=True)(Q0, s, sample), u)
    peak = np.abs(u).max()
    for limit, kept in ((0.9 * peak, 0.9 * peak), (1.1 * peak, peak)):
        limited = replace(law, torque_limits=float(limit)).torque(Q0, s, sample)
        assert np.abs(limited).max() == pytest.approx(kept, rel=1e-12)
    assert law.audit(q0=Q0)["DYN"].status.name == "HOLDS"
    assert law.margin(Q0) == pytest.approx(case_study().margin(Q0), rel=1e-12)


def test_runs_are_read_back_with_their_energy(tmp_path):
    law = rover_law(payload="fore")
    goal = cc.references.hold(law.output(Q0))
    run = cc.simulate(law.model.robot, law, goal, 0.02, Q0, np.full(5, 0.1), dt=0.01)
    again = cc.Run.load(run.save(tmp_path / "run.h5"), law)
    assert str(again) == str(run)
    for k, (q, s) in enumerate(zip(again.q, again.s, strict=True)):
        assert again.lyapunov[k] == pytest.approx(law.lyapunov(q, s, goal(0.0)), rel=1e-12)


def test_tick_advances_the_estimate_of_the_load():
    law, sample, s = rover_law(payload="fore"), case_study_sample(0.4), np.full(5, 0.1)
    tick, z = law.compile(interpreted=True), np.zeros(10)
    tick.buffers.period[:] = 0.01
    for _ in range(2):
        assert_close(tick(Q0, s, sample), law.torque(Q0, s, sample, z), 1e-12)
        z = z + 0.01 * law.law(Q0, s, *law.flat(sample), z)[-1]
        assert np.abs(z).max() > 0.1
        assert_close(np.array(tick.buffers.state).ravel(), z, 1e-12)


def test_certificates_and_linear_loops_reject_it():
    law = rover_law()
    with pytest.raises(OutputError, match="a PassiveServo, whose errors depend on the motion"):
        certify(law)
    with pytest.raises(OutputError, match="a Servo or its error dynamics"):
        linear_loop(law)


def test_singular_configurations_are_refused():
    law, straight = rover_law(), Q0.copy()
    straight[-1] = 0.0
    with pytest.raises(SingularConfigurationError):
        law.torque(straight, np.zeros(5), case_study_sample(0.0))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rate": None}, "rate"),
        ({"rate": [2.0, 0.0]}, "`rate`, output `hand`"),
        ({"rate": [2.0, 3.0, 1.0]}, "rate"),
        ({"damping": -1.0}, "`damping`"),
        ({"internal_damping": 0.0}, "`internal_damping`"),
        ({"adaptation": -1.0}, "`adaptation`"),
        ({"singular_margin": 0.0}, "`singular_margin`"),
        ({"constraints": cc.Constraints()}, "`constraints`.*Take a Servo"),
    ],
)
def test_invalid_options_are_rejected(options, said):
    with pytest.raises(ConcurError, match=said):
        rover_law(**options)


def test_rates_have_to_fit_a_coupled_stiffness():
    coupled = 60.0 * np.eye(5)
    coupled[0, 2] = coupled[2, 0] = 50.0
    assert rover_law(stiffness=coupled, rate=2.0).decay_rate(Q0) > 0.0
    with pytest.raises(OutputError, match="stiffness times rate is positive"):
        rover_law(stiffness=coupled, rate=[0.1, 9.0])


def test_a_system_without_bodies_gets_the_torques_of_the_same_robot():
    servo = two_links()
    robot = servo.model.robot
    q = ca.SX.sym("q", robot.nq)
    tip = ca.Function("tip", [q], [servo.output(q)])
    gains = {"stiffness": 20.0, "damping": 5.0, "rate": 2.0}
    laws = [
        cc.PassiveServo(cc.reduce(system), outputs, **gains)
        for system, outputs in (
            (robot, servo.outputs),
            (robot, [FunctionOutput("tip", tip, "R2")]),
            (rebuilt(robot), [FunctionOutput("tip", tip, "R2")]),
        )
    ]
    sample = cc.ReferenceSample([0.5, 0.3], [0.1, -0.2], [0.3, 0.1])
    first, *others = (law.torque([0.2, 0.9], [0.5, -1.1], sample) for law in laws)
    for torque in others:
        assert_close(torque, first, 1e-12)


LOAD = cc.Inertia(
    0.7, (0.05, 0.2, -0.1), ((0.02, 0.001, 0.0), (0.001, 0.01, 0.002), (0, 0.002, 0.025))
)


def loaded(robot: cc.Mechanism, load: cc.Inertia) -> cc.Mechanism:
    """The robot with a load fixed to its last body."""
    return replace(
        robot, bodies=(*robot.bodies, cc.Body("load", cc.joints.Fixed(), "fore", inertia=load))
    )


def parameters(load: cc.Inertia) -> np.ndarray:
    """Mass, first moment and inertia about the body's origin."""
    com = np.array(load.com)
    tensor = load.tensor + load.mass * (com @ com * np.eye(3) - np.outer(com, com))
    return np.r_[load.mass, load.mass * com, tensor.diagonal(), tensor[[0, 0, 1], [1, 2, 2]]]


def test_estimated_load_makes_the_forces_of_the_load():
    law = rover_law(payload="fore")
    right = cc.PassiveServo(
        cc.reduce(loaded(law.model.robot, LOAD)), law.outputs, [60, 90], [60, 60], rate=[2, 3]
    )
    s, sample = np.array([1.0, 1.5, 0.3, -0.5, 0.8]), case_study_sample(0.4)
    wanted = right.torque(Q0, s, sample)
    assert_close(law.torque(Q0, s, sample, parameters(LOAD)), wanted, 1e-12)
    assert np.abs(law.torque(Q0, s, sample) - wanted).max() > 1.0


def test_energy_with_the_error_of_the_estimate_falls_beside_a_wrong_load():
    law, sample = rover_law(payload="fore", adaptation=3.0), case_study_sample(0.0)
    plant = cc.reduce(loaded(law.model.robot, LOAD))
    gains = 3.0 * robot_size(law.model.robot) ** np.repeat([0, 2, 4], [1, 3, 6])
    rng = np.random.default_rng(5)
    s, z = np.array([1.0, 1.5, 0.3, -0.5, 0.8]), 0.1 * rng.normal(size=10)
    *_, rate = law.law(Q0, s, *law.flat(sample), z)
    off, u = z - parameters(LOAD), law.torque(Q0, s, sample, z)
    v, sdot = plant.velocity(Q0, s), plant.acceleration(Q0, s, u)
    right = cc.PassiveServo(plant, law.outputs, [60, 90], [60, 60], rate=[2, 3])

    def energy(h: float) -> float:
        # The energy of the true robot; the reference moves with its velocity.
        ahead = plant.robot.integrate(Q0, h * v), s + h * sdot
        pose, twist, acceleration = right.flat(sample)
        moved = pose + h * twist, twist + h * acceleration
        learnt = off + h * rate
        return float(right._lyapunov(*ahead, *moved)) + learnt @ (learnt / gains) / 2

    x, ve = right.errors(Q0, s, *right.flat(sample)[:2])
    rates = np.repeat(law.rate, [2, 3])
    wrong = ve - rates * x
    lost = wrong @ law.damping @ wrong + x @ law.stiffness @ (rates * x)
    assert difference_quotient(energy, step=1e-4) == pytest.approx(-lost, rel=1e-6)


def test_adaptation_stops_at_torque_limits():
    law, sample, s = rover_law(payload="fore"), case_study_sample(0.0), np.zeros(5)
    z = np.zeros(10)
    u = law.torque(Q0, s, sample)
    for limit, moves in ((1.01 * np.abs(u).max(), True), (0.99 * np.abs(u).max(), False)):
        limited = replace(law, torque_limits=float(limit))
        rate = limited.law(Q0, s, *law.flat(sample), z)[-1]
        assert rate.any() == moves


def test_load_ends_without_error_where_the_servo_integrates():
    law = rover_law(payload="fore")
    servo = replace(case_study(), integral=[2.0, 6.0])
    *others, fore = law.model.robot.bodies
    heavy = replace(fore, inertia=replace(fore.inertia, mass=2.0 * fore.inertia.mass))
    plant = cc.Plant(replace(law.model.robot, bodies=(*others, heavy)))
    goal = cc.references.hold(law.output(Q0))
    options = {"plant": plant, "dt": 0.01}
    adapted, integrated = (
        cc.simulate(law.model.robot, each, goal, 3.0, Q0, np.zeros(5), **options)
        for each in (law, servo)
    )
    final = [np.linalg.norm(run.error[-1]) for run in (adapted, integrated)]
    assert final[0] < 1e-3 < 0.02 < final[1]


def test_loads_need_a_lift_without_masses():
    with pytest.raises(OutputError, match="a momentum, by which the load moves the robot"):
        flyer_law(payload="tool")
    staged = cc.reduce(crane(undriven="column"), stages={"column": -11.5})
    tip = cc.Output("tip", staged.robot.bodies[-1].name, "R2")
    with pytest.raises(OutputError, match="without stages"):
        cc.PassiveServo(staged, [tip], 1.0, 1.0, rate=1.0, payload=tip.body)
    with pytest.raises(UnknownNameError):
        rover_law(payload="hook")
