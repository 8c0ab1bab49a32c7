"""Limits in the law: kept, nearest to the servo, and the servo itself while none is active."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import casadi as ca
import coal
import numpy as np
import pytest
from scipy.optimize import lsq_linear
from scipy.spatial.transform import Rotation

import concur as cc
from concur.codegen import _qp, quadratic_program
from concur.control import Servo, _limited
from concur.control._constraint_rows import limit_rows
from concur.control._core import approach
from concur.control._law import _below_usual, all_velocities, shape_command
from concur.control._limited import _free
from concur.errors import ConcurError, NonFiniteError, OutputError, UnknownNameError
from concur.outputs import Output, Reference, ReferenceSample, references
from concur.robot import Capsule, Clearance, Mechanism, Motor, Obstacle
from concur.simulation import Integrator, Run
from tests.control._floating_cases import CHECK_A_MOMENTUM, CHECK_A_Q0
from tests.control.test_limits_attack import fastest
from tests.export._export import COMPILERS, NAME, compile_replay
from tests.export._export import run as call
from tests.oracles import Pinocchio, assert_close
from tests.proofs.test_clearance import hull

ROVER = cc.robots.rover_arm()
Q0 = np.array([-0.45, -0.1, 0.1, 0, 0, -0.1, 1.0, -1.6])
BASE = Output("base", "chassis", "R2", point=(0.25, 0, 0))
HAND = Output("hand", "forearm", "R3", point=(0, 0.2, 0))
GAINS: dict[str, Any] = {"stiffness": [4, 9], "damping": [4, 6]}
FLYER = cc.robots.free_flyer()
AHEAD = np.array([0, 0, 0, 0, 0, -0.1, 1.0, -1.6])
BEYOND = np.array([0, 0, 0.16, 0, 0.05])  # a way to where the shoulder holds 6.23 N m
FLOATING = np.array([0.0] * 6 + [1.0, 0.5, -1.5, 2.1, 0.2, -0.6, 0.6])


def rover(robot: Mechanism = ROVER, limits: Any = 15.0, **options: Any) -> Servo:
    rules = options.pop("constraints", cc.Constraints())
    return Servo(
        cc.reduce(robot), [BASE, HAND], **GAINS, torque_limits=limits, constraints=rules, **options
    )


def changed(name: str, **fields: Any) -> Mechanism:
    """The rover with other fields of a body."""
    bodies = [replace(body, **fields) if body.name == name else body for body in ROVER.bodies]
    return replace(ROVER, bodies=tuple(bodies))


def follow(servo: Servo, reference: Reference, duration: float, q0: np.ndarray = Q0) -> Run:
    """Run with held torques, 1 ms."""
    still = np.zeros(servo.ns)
    steps = Integrator(dt=1e-3, control_period=1e-3)
    return cc.simulate(servo.model.robot, servo, reference, duration, q0, still, dt=steps)


def away(servo: Servo, *way: float, duration: float = 0.0) -> Reference:
    """A place away from the start: at once, or reached in a time."""
    start = np.asarray(servo.output(Q0))
    if not duration:
        return references.hold(start + way)
    return references.rest_to_rest(start, start + way, duration)


def errors(run: Run) -> np.ndarray:
    """Error of base and hand at the end, m."""
    return np.array([np.linalg.norm(run.error[-1, :2]), np.linalg.norm(run.error[-1, 2:])])


def unrest(run: Run) -> float:
    """Largest change of a torque from tick to tick in the last half second."""
    return float(np.abs(np.diff(run.u[-500:], axis=0)).max())


def active(run: Run) -> dict[str, float]:
    """Share of the time in which each limit was active."""
    shares = zip(run.servo.limit_names, run.active.mean(axis=0), strict=True)
    return {name: share for name, share in shares if share}


LAWS = {
    "rover": lambda **more: Servo(cc.reduce(ROVER), [BASE, HAND], **GAINS, **more),
    "rover, base alone": lambda **more: Servo(cc.reduce(ROVER), [BASE], 4.0, 4.0, **more),
    "floater": lambda **more: Servo(
        cc.reduce(FLYER, CHECK_A_MOMENTUM), [Output("hand", "tool", "SE3")], 4.0, 4.0, **more
    ),
    "floater, place alone": lambda **more: Servo(
        cc.reduce(FLYER, CHECK_A_MOMENTUM), [Output("hand", "tool", "R3")], 4.0, 4.0, **more
    ),
}


# Redundant robots follow both programs by default in `test_limited_oracle.py`.
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.extended if "alone" in name else ()) for name in LAWS],
)
def test_torques_are_those_of_the_nearest_acceleration_within_limits(name: str) -> None:
    free, rng, met = LAWS[name](), np.random.default_rng(3), 0
    weights = {output.name: 2.0 for output in free.outputs}
    start = Q0 if "rover" in name else CHECK_A_Q0
    for _ in range(4):
        q = free.model.robot.integrate(start, 0.05 * rng.normal(size=free.nv))
        s, near = 0.3 * rng.normal(size=free.ns), 0.1 * rng.normal(size=free.nv)
        goal = np.asarray(free.output(free.model.robot.integrate(q, near)))
        sample = ReferenceSample(goal, *0.3 * rng.normal(size=(2, free.size)))
        wanted = free.torque(q, s, sample)
        limits = 0.7 * np.abs(wanted).max()
        rules = cc.Constraints(joints=False, speeds=False, holding=False, weights=weights)
        law = LAWS[name](torque_limits=limits, constraints=rules, damping_threshold=1e-3)
        u, _, missed, scale, _ = law.law(q, s, *law.flat(sample))
        mass, rows = np.asarray(free.model.mass_matrix(q)), np.asarray(free.decoupling(q))
        scaled = 2.0 * free.margins.scales[0][:, None] * rows
        root = np.linalg.cholesky(mass + scaled.T @ scaled).T
        rest = np.asarray(free.model.acceleration(q, s, wanted)) + approach(law) * s
        length = np.linalg.norm(root @ rest)
        towards = -mass @ rest / length
        ends = np.append(np.full(free.nu, limits), length)
        root = root @ np.linalg.inv(mass)
        square = np.zeros((free.nu + 1, free.nu + 1))
        square[:-1], square[-1, -1] = np.column_stack([root, -root @ towards]), 0.03**0.5
        aim = np.append(root @ wanted, 0.0)
        best = lsq_linear(square, aim, (np.append(-ends[:-1], 0.0), ends), tol=1e-14)
        assert_close(u, best.x[:-1], 1e-6)
        assert np.abs(u).max() <= limits
        lost = rows @ np.linalg.solve(mass, wanted - u)
        assert_close(missed, lost, 1e-7)
        met += scale < 1.0
    assert met >= 2


def test_while_no_limit_is_active_the_law_is_the_servo_to_the_last_bit() -> None:
    robot = changed("forearm", limits=(-2.6, 2.6), speed_limit=3.0)
    robot = replace(robot, supports={"caster": (0.75, 0.0, -0.1)})
    every = cc.Constraints(
        margin=1e-3,
        least_load=0.0,
        grip=10.0,
        tipping=0.0,
        capsule=[Capsule.of(robot, name) for name in ("turret", "forearm")],
        self_collision=[("turret", "forearm")],
    )
    free = Servo(cc.reduce(robot), [BASE, HAND], **GAINS)
    kept = rover(robot, 40.0, constraints=every)
    rng = np.random.default_rng(0)
    ticks = free.compile(), kept.compile()
    for _ in range(20):
        q = robot.integrate(Q0, 0.03 * rng.normal(size=robot.nv))
        s = 0.1 * rng.normal(size=5)
        goal = np.asarray(free.output(q)) + 0.03 * rng.normal(size=5)
        sample = ReferenceSample(goal, *0.1 * rng.normal(size=(2, 5)))
        np.testing.assert_array_equal(kept.torque(q, s, sample), free.torque(q, s, sample))
        np.testing.assert_array_equal(*(tick(q, s, sample) for tick in ticks))
        assert not ticks[1].buffers.active.any()
    at_once = ReferenceSample(
        np.asarray(free.output(Q0)) + np.array([0, 0, 9, 0, 9]), np.zeros(5), np.zeros(5)
    )
    u = ticks[1](Q0, np.zeros(5), at_once)
    assert_close(u, kept.torque(Q0, np.zeros(5), at_once), 1e-9)
    named = [f"torque of {name}" for name in kept.model.control_names]
    shown = np.array(kept.limit_names)[ticks[1].buffers.active > 0.0]
    at_limit = np.abs(u) >= 40.0 * (1.0 - 1e-9)
    assert at_limit.any()
    assert set(shown) & set(named) == set(np.array(named)[at_limit])


def doubts(servo: Servo, q: np.ndarray, s: np.ndarray, sample: ReferenceSample) -> tuple[Any, ...]:
    """Whether conditions that are enough leave a doubt: about limits, and about damping."""
    symbols = {name: ca.SX.sym(name, size) for name, size in servo.inputs.items()}
    return tuple(bool(part) for part in _free(servo, symbols)(q, s, *servo.flat(sample))[-3:-1])


SQUARE = {
    "rover": (lambda **more: rover(limits=99.0, **more), 0.85),
    "crane": (
        lambda **more: Servo(
            cc.reduce(cc.robots.crane_car()),
            [
                Output("nose", "steering", "R2", (0.5, 0, 0)),
                Output("load", "boom", "R2", (2, 0, 0)),
            ],
            *(4.0, 4.0),
            torque_limits=1e6,
            constraints=cc.Constraints(),
            **more,
        ),
        0.85,
    ),
    "floater": (
        lambda **more: LAWS["floater"](torque_limits=1e6, constraints=cc.Constraints(), **more),
        0.6,
    ),
}
"""Laws, and the least median of the bound over the margin."""


@pytest.mark.parametrize("name", SQUARE)
def test_usual_margin_has_a_lower_bound_that_is_not_far_below(name: str) -> None:
    """The margin by NumPy; also where columns of the matrix are dependent to some bits."""
    (make, median), rng, shares = SQUARE[name], np.random.default_rng(4), []
    law = make()
    inputs = {key: ca.SX.sym(key, size) for key, size in law.inputs.items()}
    found = shape_command(law, inputs["q"], all_velocities(law, inputs), inputs, None)
    seen = ca.Function("usual", [*inputs.values()], [found.least_usual, found.usual])
    for _ in range(60):
        q = law.model.system.random(rng)
        given = {key: np.zeros(size) for key, size in law.inputs.items()}
        least, usual = map(float, seen(*(given | {"q": q, "pose": law.output(q)}).values()))
        matrix = law.margins.usual[:, None] * law.decoupling(q) / law.margins.scales[1]
        assert_close(usual, 1.0 / np.linalg.norm(np.linalg.inv(matrix)), 1e-9)
        assert 0.0 < least <= usual * (1.0 + 1e-9)
        shares.append(least / usual)
    assert np.median(shares) > median
    size = law.size
    square, volume = ca.SX.sym("a", size, size), ca.SX.sym("d")
    groups = [list(range(k, min(k + 3, size))) for k in range(0, size, 3)]
    below = ca.Function("below", [square, volume], [_below_usual(square, volume, groups)])
    for away in 10.0 ** np.arange(-16.0, 0.0):
        matrix = rng.normal(size=(size, size))
        matrix[:, 1:] = matrix[:, :1] + away * matrix[:, 1:]
        least = float(below(matrix, np.linalg.det(matrix)))
        values = np.maximum(np.linalg.svd(matrix, compute_uv=False), 1e-16)
        assert least <= (1.0 + 1e-6) / np.linalg.norm(1.0 / values) + 1e-12


def grip_needed(robot: Mechanism, sdot: np.ndarray) -> float:
    """Friction that the wheels need at rest in Q0, in the polygon of the rows."""
    symbols, found = (ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)), []
    for grip in (1.0, 2.0):
        rows = limit_rows(rover(robot, 99.0, constraints=cc.Constraints(grip=grip)), *symbols)
        values = ca.vertcat(*[r.row @ sdot + r.drift for r in rows if r.of_force])
        found.append(np.array(ca.Function("grip", symbols, [values])(Q0, np.zeros(robot.nv))))
    return float((1.0 - found[0] / (found[1] - found[0])).max())


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", ["margin", "grip"])
def test_where_conditions_that_are_enough_fail_the_law_is_the_servo_until_a_limit_is_met(
    name: str,
) -> None:
    """A threshold on both sides of a margin above its bound; forces in a corner of the polygon."""
    robot, still = replace(ROVER, supports={"caster": (0.75, 0.0, -0.1)}), np.zeros(5)
    free = Servo(cc.reduce(robot), [BASE, HAND], **GAINS)
    push = np.array([2.0, 0.0, 0.0, 0.0, 0.0]) if name == "grip" else still
    sample = ReferenceSample(free.output(Q0), still, push)
    matrix = rover().margins.usual[:, None] * free.decoupling(Q0) / free.margins.scales[1]
    usual = 1.0 / np.linalg.norm(np.linalg.inv(matrix))
    needed = grip_needed(robot, free.model.acceleration(Q0, still, free.torque(Q0, still, sample)))
    met, doubtful, plain = [], [], free.compile()
    for share in (0.5, 0.999999, 1.000001):
        if name == "margin":
            law = rover(robot, 99.0, damping_threshold=share * usual)
        else:
            law = rover(robot, 99.0, constraints=cc.Constraints(grip=needed / share))
        doubtful.append(doubts(law, Q0, still, sample))
        tick = law.compile()
        u = tick(Q0, still, sample)
        met.append([law.limit_names[k] for k in np.flatnonzero(tick.buffers.active)])
        if not met[-1]:
            np.testing.assert_array_equal(u, plain(Q0, still, sample))
    assert met[:2] == [[], []]
    assert met[2] == (["margin"] if name == "margin" else ["grip of right_wheel"])
    assert doubtful == [(False, False), *[(name == "grip", name == "margin")] * 2]


def test_torques_are_within_a_limit_that_those_of_the_servo_exceed_by_their_last_bit() -> None:
    """Where the program sees no limit by its own rounding."""
    free, rng = Servo(cc.reduce(ROVER), [BASE, HAND], **GAINS), np.random.default_rng(0)
    ticks, rules = free.compile(), cc.Constraints(joints=False, speeds=False, holding=False)
    for k in range(5):
        q = ROVER.normalize(ROVER.integrate(Q0, 0.2 * rng.normal(size=8)))
        s, place = 0.1 * rng.normal(size=5), k
        pose = free.output(q) + 0.01 * rng.normal(size=5)
        sample = ReferenceSample(pose, np.zeros(5), np.zeros(5))
        ticks.reset()
        wanted = np.array(ticks(q, s, sample))
        limits = np.full(5, 99.0)
        limits[place] = np.nextafter(abs(wanted[place]), 0.0)
        tick = rover(limits=list(limits), constraints=rules).compile()
        u = np.array(tick(q, s, sample))
        assert (np.abs(u) <= limits).all()
        assert_close(u, wanted, 1e-12)


@pytest.mark.parametrize(("speed", "refused"), [(2.69, False), (2.71, True), (50.0, True)])
def test_a_least_torque_that_the_line_of_the_motor_does_not_reach_is_refused(
    speed: float, refused: bool
) -> None:
    """The line has 2 N m left at 2.7 rad/s."""
    motor = Motor("elbow", "forearm", torque=20.0, no_load_speed=3.0)
    others = tuple(name for name in ROVER.actuated if name != "forearm")
    rules = cc.Constraints(joints=False, speeds=False, holding=False)
    robot = replace(ROVER, actuated=others, motors=(motor,))
    servo = rover(robot, [[-15.0, 15.0]] * 4 + [[2.0, 15.0]], constraints=rules)
    state = Q0, np.array([0, 0, 0, 0, speed]), away(servo, 0, 0, 0, 0, 0)(0.0)
    tick = servo.compile()
    if refused:
        with pytest.raises(NonFiniteError, match="none within the limits"):
            tick(*state)
        return
    u = np.array(tick(*state))
    assert (np.abs(u) <= 15.0).all()
    assert 2.0 <= u[-1] <= 20.0 * (1.0 - speed / 3.0)


@pytest.mark.parametrize("share", [0.9, 1.1, 1.5])
def test_a_position_is_active_also_where_its_bound_is_beyond_that_of_the_speed(
    share: float,
) -> None:
    """A joint outside its range, away by so many times the way at which both bounds meet."""
    servo = rover(changed("forearm", limits=(-2.5, -0.9), speed_limit=0.8), 500.0)
    rate, q = approach(servo), Q0.copy()
    q[-1] = -2.5 - share * 2.0 * 0.8 / rate
    sample = ReferenceSample(servo.output(q), np.zeros(5), np.zeros(5))
    tick = servo.compile()
    u = np.array(tick(q, np.zeros(5), sample))
    back = servo.model.acceleration(q, np.zeros(5), u)[-1]
    assert back == pytest.approx(min(share, 1.0) * 2.0 * rate * 0.8, rel=1e-2)
    shown = {servo.limit_names[k] for k in np.flatnonzero(tick.buffers.active)}
    assert shown == {"position of forearm"}


@pytest.fixture
def bounded(request: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Bound the steps of all programs of laws made in this test, interpreted and compiled."""
    steps, interpreted = request.param
    solver = _qp.OPTIONS["daqp"] | {"iter_limit": steps}  # type: ignore[operator]
    source = _qp.SOURCE.read_text("utf-8").replace("(4 * (n + m))", str(steps))
    (tmp_path / "qp.c").write_text(source, encoding="utf-8")
    monkeypatch.setattr(_qp, "OPTIONS", _qp.OPTIONS | {"daqp": solver})
    monkeypatch.setattr(_qp, "SOURCE", tmp_path / "qp.c")
    monkeypatch.setenv("CONCUR_CACHE", str(tmp_path))
    if not interpreted:
        monkeypatch.delenv("CONCUR_CC")
    quadratic_program.cache_clear()
    yield steps, interpreted
    quadratic_program.cache_clear()


def wild(servo: Servo, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, ReferenceSample]:
    """A state in motion, and a demand far from it."""
    q = servo.model.robot.integrate(Q0, 0.1 * rng.normal(size=servo.nv))
    goal = np.asarray(servo.output(q)) + rng.normal(size=5)
    return q, 0.5 * rng.normal(size=5), ReferenceSample(goal, np.zeros(5), np.zeros(5))


@pytest.mark.by_default(3)
@pytest.mark.parametrize("bounded", [(0, True), (1, True), (2, True), (1, False)], indirect=True)
def test_programs_that_meet_their_bound_of_steps_say_so_and_keep_torques(bounded: Any) -> None:
    """The torque is of this program: it is another in each state, and scaled to a limit."""
    steps, interpreted = bounded
    robot = changed("forearm", limits=(-2.2, -1.0), speed_limit=1.0)
    servo, rng, early, found = rover(robot, 8.0), np.random.default_rng(5), [], []
    tick, states = servo.compile(), []
    assert tick.compiled != interpreted
    assert servo.limit_names[-1] == "steps of the solver"
    for _ in range(20):
        states.append(wild(servo, rng))
        u = tick(*states[-1]).copy()  # the status is OK
        tick.reset()
        early.append(tick.buffers.active[-1] > 0.0)
        found.append(u)
        assert np.abs(u).max() <= 8.0
        assert (tick.buffers.scale[0] == 0.0) >= early[-1]
    assert np.ptp(found, axis=0).min() > 1.0
    for state, u in zip(states[::-1], found[::-1], strict=True):  # whatever came before
        np.testing.assert_array_equal(tick(*state), u)
        tick.reset()
    assert all(early) if steps == 0 else any(early)


def test_limits_of_joints_have_the_names_of_joints() -> None:
    robot = changed("forearm", limits=(-2.2, -1.0), speed_limit=1.0, joint_name="elbow")
    servo = rover(robot, 100.0, constraints=cc.Constraints(accelerations={"elbow": 2.0}))
    names = servo.limit_names[4:-4]
    assert names == tuple(
        f"{kind} of elbow" for kind in ("torque", "position", "speed", "acceleration")
    )
    assert servo.limit_names[-4:-2] == ("weight on upper_arm", "weight on elbow")


def test_barriers_hold_the_acceleration_of_joints() -> None:
    """The bounds by their formulas, the acceleration by Pinocchio."""
    robot = changed("forearm", limits=(-2.2, -1.0), speed_limit=1.0)
    rules = cc.Constraints(holding=False, approach=10.0, accelerations={"turret": 2.0})
    servo, plant = rover(robot, 100.0, constraints=rules), Pinocchio(robot)
    assert servo.limit_names[5:] == (
        *("position of forearm", "speed of forearm", "acceleration of turret", "margin"),
        "steps of the solver",
    )
    rng, met = np.random.default_rng(2), np.zeros(4)
    tick = servo.compile()
    for _ in range(60):
        q, s = Q0.copy(), 0.5 * rng.normal(size=5)
        q[-1] = rng.uniform(-2.2, -1.0)
        goal = np.asarray(servo.output(Q0)) + 0.3 * rng.normal(size=5)
        u = tick(q, s, ReferenceSample(goal, np.zeros(5), np.zeros(5)))
        v = servo.model.velocity(q, s)
        forces = np.asarray(servo.model.input_matrix(q)) @ u
        made = servo.model.lift(q)[0] @ np.linalg.solve(*reduced(servo, plant, q, v, s, forces))
        angle, speed, acceleration = q[-1], s[-1], made[-1]
        low, high = (100.0 * (end - angle) - 20.0 * speed for end in (-2.2, -1.0))
        slow, fast = (20.0 * (end - speed) for end in (-1.0, 1.0))
        assert max(low, slow) - 1e-3 <= acceleration or acceleration >= min(high, fast) - 1e-3
        assert acceleration <= min(high, fast) + 1e-3
        assert abs(made[servo.model.robot.v_slice("turret").start]) <= 2.0 + 1e-3
        met += tick.buffers.active[5:-1]
        tick.reset()
    assert (met[:3] > 0).all()


def reduced(
    servo: Servo, plant: Pinocchio, q: np.ndarray, v: np.ndarray, s: np.ndarray, forces: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Reduced mass matrix and what accelerates the shape, from Pinocchio's dynamics."""
    lift = np.asarray(servo.model.lift(q)[0])
    mass, drift = plant.mass_matrix(q), np.asarray(servo.model.velocity_drift(q, v))
    return lift.T @ mass @ lift, forces - lift.T @ (mass @ drift + plant.bias(q, v))


def test_easy_reach_with_torque_near_the_weight() -> None:
    servo = rover(limits=6.2)  # gravity needs 5.86
    run = follow(servo, away(servo, 0, 0, 0.1, -0.1, 0.1, duration=2.0), 6.0)
    assert errors(run).max() < 1e-6
    fast = follow(rover(limits=8.0), away(servo, 0, 0, 0.1, -0.1, 0.1, duration=0.4), 6.0)
    assert errors(fast).max() < 1e-6
    assert set(active(fast)) <= {"torque of upper_arm", "weight on upper_arm"}
    assert np.abs(fast.u_range).max() <= 8.0


@pytest.mark.extended
def test_arm_rests_before_its_weight_is_more_than_its_torque_holds() -> None:
    """The weight by Pinocchio; one that takes 98 % of the limit is held, at the goal."""
    plant, limit, fastest = Pinocchio(ROVER), 6.2, []
    for share, holding in ((1.0, True), (0.8, True), (1.0, False)):
        servo = rover(limits=limit, constraints=cc.Constraints(holding=holding))
        start, goal = (np.asarray(servo.output(AHEAD)) + k * BEYOND for k in (0.0, share))
        run = follow(servo, references.rest_to_rest(start, goal, 1.0), 7.0, AHEAD)
        weight = np.abs([plant.bias(q, np.zeros(servo.nv))[-2] for q in run.q[::20]])
        fastest.append(np.abs(run.s).max())
        if holding:
            held = share < 1.0
            assert weight.max() < 0.99 * limit + 1e-6
            assert (weight[-1] > 0.99 * limit - 1e-4) != held
            assert (errors(run).max() < 1e-5) == held
            assert run.active[-1, servo.limit_names.index("weight on upper_arm")] != held
            assert unrest(run) < 1e-6 * limit
    assert max(fastest[:2]) < 1.0
    assert fastest[2] > 4.0
    floater = LAWS["floater"](torque_limits=6.0, constraints=cc.Constraints())
    assert not any("weight" in name for name in floater.limit_names)


@pytest.mark.extended
def test_base_that_is_asked_for_more_than_its_wheels_have() -> None:
    limits = {"left_wheel": 3.0, "right_wheel": 3.0}
    servo = rover(limits=limits)
    run = follow(servo, away(servo, 3, 0, 3, 0, 0, duration=1.0), 10.0)
    assert errors(run).max() < 1e-5
    assert np.abs(run.u_range[:, :2]).max() <= 3.0
    assert np.abs(run.u[:, 2:]).max() < 50.0
    assert active(run)["torque of left_wheel"] > 0.1


@pytest.mark.extended
@pytest.mark.parametrize("duration", [0.0, 4.0])
def test_out_of_reach_the_arm_rests_stretched(duration: float) -> None:
    servo = rover()
    run = follow(servo, away(servo, 0, 0, 0.5, 0, 0.3, duration=duration), 8.0)
    assert 0.1 < errors(run)[1] < 0.15
    assert run.margin[-1] < 1e-3  # the edge of reach
    assert unrest(run) < 1e-6 * 15.0
    assert np.abs(run.s).max() < 15.0
    back = follow(servo, away(servo, 0, 0, 0, 0, 0.1), 6.0, run.q[-1])
    assert errors(back).max() < 1e-3


def test_joint_limits_and_speeds_are_kept_in_a_run() -> None:
    blocked = rover(changed("forearm", limits=(-2.5, -0.9)))
    run = follow(blocked, away(blocked, 0, 0, 0.25, 0, 0.15, duration=2.0), 6.0)
    assert run.q_range[1, -1] == pytest.approx(-0.9, abs=1e-6)
    assert errors(run)[1] < 0.02
    assert unrest(run) < 1e-6 * 15.0
    slow = rover(changed("forearm", speed_limit=0.5))
    run = follow(slow, away(slow, 0, 0, 0.2, 0, 0.1, duration=0.6), 6.0)
    assert 0.49 < np.abs(run.v_range[:, -1]).max() < 0.5 * (1 + 1e-3)
    assert errors(run).max() < 1e-4


BALLS = {
    "rover": ("rover", "forearm", (0.23, 0.85, 0.2), (0.0, 0.0, -0.5, 0.0, 0.05), AHEAD),
    "floater": ("floater, place alone", "hand", (1.6, 0.3, 0.32), (0.0, -0.6, 0.0), FLOATING),
    "mast": ("floater, place alone", "hand", (1.6, 0.3, 0.32), (0.0, -0.6, 0.0), FLOATING),
    "box": ("floater, place alone", "hand", (1.6, 0.3, 0.32), (0.0, -0.6, 0.0), FLOATING),
}


RADIUS, LEAST = 0.08, 0.01
SIDES, TURN = (0.2, 0.14, 0.1), (20.0, 30.0, 40.0)


def blocked(kind: str) -> Obstacle:
    """The ball, or a box with the same centre."""
    centre = BALLS[kind][2]
    if kind == "box":
        return Obstacle.from_table("ball", centre, distance=LEAST, box=SIDES, rpy_deg=TURN)
    return Obstacle("ball", centre, centre, RADIUS, distance=LEAST)


def solid(kind: str, at: np.ndarray) -> tuple[object, object]:
    """The same by another library, about a place in the world."""
    if kind != "box":
        return hull(at, at, RADIUS)
    turn = Rotation.from_euler("xyz", TURN, degrees=True).as_matrix()
    return coal.Box(*SIDES), coal.Transform3s(turn, at)


def near_ball(kind: str, made: Any, way: Any, count: int) -> tuple[Servo, Run, np.ndarray]:
    """A run along a way, with or without the ball as a limit, and distances beyond the least one.

    These are by coal, with poses of the robot. A mast is a ball that moves with the base.
    """
    _, body, centre, _, start = BALLS[kind]
    robot = (bare := made()).model.robot
    own, base, rules = Capsule.of(robot, body), robot.base.name, cc.Constraints()
    if count and kind == "mast":
        ball = Capsule.of(robot, base, name="ball", start=centre, radius=RADIUS)
        pair = ((body, "ball"),)
        rules = cc.Constraints(capsule=(own, ball), self_collision=pair, self_distance=LEAST)
    elif count:
        rules = cc.Constraints(capsule=(own,), obstacle=(blocked(kind),))
    servo, begin = made(torque_limits=60.0, constraints=rules), np.asarray(bare.output(start))
    run = follow(servo, references.rest_to_rest(begin, begin + way, 3.0), 8.0, start)
    found = []
    for q in run.q[::10]:
        turn, place = (pose := np.asarray(robot.pose(q, body)))[:3, :3], pose[:3, 3]
        ends = [turn @ np.array(end) + place for end in (own.start, own.end)]
        there = np.append(centre, 1.0)
        if kind == "mast":
            there = np.asarray(robot.pose(q, base)) @ there
        shapes = *hull(*ends, own.radius), *solid(kind, there[:3])
        found.append(coal.distance(*shapes, coal.DistanceRequest(), coal.DistanceResult()) - LEAST)
    assert (f"distance of {body} from ball" in active(run)) == bool(count)
    return servo, run, np.array(found)


@pytest.mark.extended
@pytest.mark.parametrize("kind", BALLS)
def test_a_capsule_keeps_its_distance_from_a_ball_or_box(kind: str, tmp_path: Path) -> None:
    """Without the ball the hand goes through it."""
    name, _, _, way, _ = BALLS[kind]
    nearest = []
    for count in (0, 1):
        servo, run, found = near_ball(kind, LAWS[name], np.array(way), count)
        nearest.append(found.min())
        assert np.abs(run.error[-1]).max() < 1e-4
    servo.export(tmp_path / "law", name=NAME)
    compile_replay(tmp_path / "law", COMPILERS[0])
    done = call("./replay", cwd=tmp_path / "law")
    assert done.returncode == 0, done.stdout
    assert nearest[0] < -0.01 < -1e-6 < nearest[1]
    if kind != "mast":  # a base that is free gives way with its mast
        assert nearest[1] < 5e-3


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["floater", "mast", "box"])
def test_a_capsule_rests_at_the_least_distance_with_the_goal_inside(kind: str) -> None:
    """The goal is the centre, for a mast in the frame of the base: the base cannot give way."""
    _, _, centre, _, start = BALLS[kind]
    frame = FLYER.base.name if kind == "mast" else None
    hand = Output("hand", "tool", "R3", relative_to=frame)

    def made(**more: Any) -> Servo:
        return Servo(cc.reduce(FLYER, CHECK_A_MOMENTUM), [hand], 4.0, 4.0, **more)

    way = np.array(centre) - np.asarray(made().output(start))
    assert near_ball(kind, made, way, 0)[2][-1] < -0.04
    _, run, found = near_ball(kind, made, way, 1)
    assert unrest(run) < 1e-6 * 60.0
    assert found.min() > -1e-6
    assert np.abs(found[-300:]).max() < 1e-6
    assert np.abs(run.error[-1]).max() > 0.05


@pytest.mark.parametrize("both", [True, False])
def test_a_capsule_along_a_face_of_a_box_does_not_tilt_from_end_to_end(
    both: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torques on both sides of parallel; they jump if the nearest end alone keeps its distance."""
    own, pose = Capsule.of(FLYER, "hand"), np.asarray(FLYER.pose(FLOATING, "hand"))
    down, middle = pose[:3, 2], pose[:3, :3] @ np.mean([own.start, own.end], axis=0) + pose[:3, 3]
    centre = middle + (0.05 + own.radius + LEAST + 1e-3) * down
    turn = tuple(Rotation.from_matrix(pose[:3, :3]).as_quat())
    slab = Obstacle("slab", tuple(centre), tuple(centre), 0.0, box=(1.0, 1.0, 0.1), rotation=turn)
    if not both:
        parts = Clearance.parts
        monkeypatch.setattr(Clearance, "parts", lambda *a: [x[:1] for x in parts(*a)])
    rules = cc.Constraints(capsule=(own,), obstacle=(replace(slab, distance=LEAST),))
    law = LAWS["floater, place alone"](torque_limits=60.0, constraints=rules)
    torques, still = [], np.zeros(6)
    for tilt in (-1e-7, 1e-7):
        q = FLOATING.copy()
        q[FLYER.q_slice("wrist_pitch")] += tilt
        goal = np.asarray(law.output(q)) + 0.3 * down
        torques.append(law.torque(q, still, ReferenceSample(goal, np.zeros(3), np.zeros(3))))
    jump = np.abs(torques[1] - torques[0]).max() / np.abs(torques).max()
    assert jump < 1e-4 if both else jump > 1e-2


def speeds_of(kind: str, *limits: float | None, **rules: Any) -> np.ndarray:
    """Largest speeds of the joints for limits of the wheels or of all motors, N m."""
    found, name, q0, way = [], "rover, base alone", Q0, [0.3, 0.0]
    if kind == "floater":
        name, q0, way = "floater, place alone", CHECK_A_Q0, [0.2, 0.1, 0.1]
    for limit in limits:
        most: Any = limit
        if kind == "rover":
            most = limit and {"left_wheel": limit, "right_wheel": limit}
        servo = LAWS[name](torque_limits=most, constraints=limit and cc.Constraints(**rules))
        goal = references.hold(np.asarray(servo.output(q0)) + way)
        found.append(np.abs(follow(servo, goal, 4.0, q0).s).max(axis=0))
    return np.array(found)


@pytest.mark.extended
@pytest.mark.parametrize("kind", ["rover", "floater"])
def test_smaller_limits_make_no_joint_faster(kind: str) -> None:
    limits = (3.0, 2.0, 1.0, 0.5) if kind == "rover" else (6.0, 3.0, 1.5, 0.75)
    free, *found = speeds_of(kind, None, *limits)
    assert (np.array(found) < 1.002 * free.max()).all()


def test_smaller_limits_make_joints_faster_if_the_outputs_alone_count() -> None:
    """As before the law had limits: what a comparison of speeds has to see."""
    free, weak, alone = (
        speeds_of("rover", *limit, **rules).max()
        for limit, rules in (([None], {}), ([1.0], {}), ([1.0], {"weights": {"base": 1e3}}))
    )
    assert weak < 1.002 * free
    assert alone > 1.3 * free


def test_joints_of_a_robot_without_weight_do_not_take_over_from_one_that_lacks_torque(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sample of all shipped robots; were slowing down no cheaper, a joint would be faster."""
    for price, low, high in ((_limited.WAIT, 0.9, 1.0), (1.0, 1.05, 1.2)):
        monkeypatch.setattr(_limited, "WAIT", price)
        [gain] = fastest("servicer", (1,), True, (0.25,))[1]
        assert low < gain < high


@pytest.mark.extended
def test_motor_line_of_speed_and_torque() -> None:
    motor = Motor("elbow", "forearm", gear=50.0, torque=0.06, no_load_speed=40.0)
    names = ("left_wheel", "right_wheel", "turret", "upper_arm")
    robot = Mechanism("rover", ROVER.bodies, ROVER.wheels, ROVER.gravity, names, motors=[motor])
    servo = rover(robot, None)
    run = follow(servo, away(servo, 0, 0, 0.2, 0, 0.1, duration=0.4), 6.0)
    share = 50.0 * run.v[:, -1] * np.sign(run.u[:, -1]) / 40.0
    assert (np.abs(run.u[:, -1]) <= np.minimum(0.06, 0.06 * (1.0 - share)) + 1e-9).all()
    assert active(run)["torque of elbow"] > 0.01
    assert errors(run).max() < 1e-4


def test_refusals() -> None:
    for options, error in (
        ({"joints": 1}, OutputError),
        ({"approach": 0.0}, OutputError),
        ({"weights": 3.0}, OutputError),
        ({"self_collision": ["ab"]}, OutputError),
    ):
        with pytest.raises(error):
            cc.Constraints(**options)  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="output"):
        rover(constraints=cc.Constraints(weights={"hnad": 1.0}))
    with pytest.raises(UnknownNameError, match="freedom"):
        rover(constraints=cc.Constraints(accelerations={"elbow": 1.0}))
    own, ball = Capsule.of(ROVER, "forearm"), Obstacle("ball", (1, 1, 1), (1, 1, 1), 0.1)
    for bad, text in (
        ({"capsule": (own,)}, "capsules and obstacles"),
        ({"capsule": (own, own), "obstacle": (ball,)}, "another name"),
        ({"capsule": (replace(own, body="hnad"),), "obstacle": (ball,)}, "hnad"),
    ):
        with pytest.raises(ConcurError, match=text):
            rover(constraints=cc.Constraints(**bad))  # type: ignore[arg-type]
    with pytest.raises(ConcurError, match="`constraints`"):
        rover(constraints={"joints": True})
