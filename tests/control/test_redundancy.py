"""Joints left over: outputs stay exact, and the internal motion follows the rule."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import null_space
from scipy.spatial.transform import Rotation

from concur import robots
from concur.control import Redundancy, Servo
from concur.errors import ConcurError, NonFiniteError, OutputError, ShapeError, UnknownNameError
from concur.outputs import Output, references
from concur.reduction import AuditStatus, reduce
from concur.robot import Body, Inertia, Mechanism, Mimic, Pose, joints
from concur.simulation import Run, simulate
from tests.control._cases import refused
from tests.control._floating_cases import (
    CHECK_A_MOMENTUM,
    CHECK_A_Q0,
    SERVOS,
    Chain,
    OutputOracle,
    build,
    states,
    steady,
    swing,
)
from tests.oracles import Pinocchio, assert_close, difference_quotient

STATION = "tip on the station"
BENT = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.3, 0.5, -0.6, 1.4, -0.7, 0.4, 0.2])
"""The station arm away from singular configurations."""


def spread(q: ca.SX) -> ca.SX:
    """A custom objective: joints near zero."""
    return 3.0 * ca.sumsqr(ca.sin(q[7:] / 2)) + ca.cos(q[8] - q[9])


UNEQUAL = np.diag(np.arange(1.0, 8.0)) + 0.4
RULES: dict[str, Redundancy] = {
    "energy": Redundancy(),
    "torque": Redundancy(weight="torque", damping=0.7),
    "own weights": Redundancy(weight=np.arange(1.0, 8.0)),
    "own metric": Redundancy(weight=UNEQUAL),
    "posture": Redundancy(objective="posture", posture=BENT, stiffness=1.5),
    "base": Redundancy(objective="base_rotation", base_weight=300.0, damping=1.3),
    "base by torque": Redundancy(weight="torque", objective="base_rotation", base_weight=1e3),
    "own objective": Redundancy(objective=spread, stiffness=50.0),
    "own objective in own weights": Redundancy(weight=UNEQUAL, objective=spread, stiffness=2.0),
}


@pytest.mark.by_default(2)
@pytest.mark.parametrize("rule", RULES)
def test_outputs_are_exact_whatever_the_rule(rule: str) -> None:
    servo, oracle = build(STATION, redundancy=RULES[rule])
    assert (servo.nu, servo.size) == (7, 6)
    rng = np.random.default_rng(1)
    for q, s, v in states(servo, 4):
        sample = oracle.sample(q, rng, angle=2.5, size=2.0)
        made = oracle.acceleration(q, v, servo.torque(q, s, sample))
        assert_close(made, oracle.command(servo, q, v, sample), 1e-11)


class Chooser:
    """Shape accelerations by constrained least squares, from Pinocchio's inertias."""

    def __init__(self, servo: Servo, oracle: OutputOracle) -> None:
        self.servo, self.oracle = servo, oracle
        robot = servo.model.robot
        locked = oracle.plant.mass_matrix(robot.neutral())[3:6, 3:6]
        self.rotational = np.trace(locked) / 3

    def rows(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Matrix and right side whose least residual the rule wants."""
        rule, s = self.servo.redundancy, v[6:]
        horizontal, still = self.lift(q, v)
        mass = horizontal.T @ self.oracle.plant.mass_matrix(q) @ horizontal
        metric = {"energy": mass, "torque": mass @ mass}.get(str(rule.weight), rule.weight)
        metric = np.asarray(metric, dtype=float)
        pull = -rule.damping * s
        if rule.objective == "posture":
            pull = pull + rule.stiffness * (rule.posture - q)[7:]
        elif callable(rule.objective):
            value = ca.Function("value", [x := ca.SX.sym("x", len(q))], [rule.objective(x)])
            robot = self.servo.model.robot

            def risen(h: float) -> np.ndarray:
                moved = [robot.integrate(q, h * column) for column in horizontal.T]
                return np.array([float(value(x)) for x in moved])

            pull = pull - rule.stiffness * np.linalg.solve(metric, difference_quotient(risen))
        root = np.linalg.cholesky(metric).T
        matrix, right = root, root @ pull
        if rule.objective == "base_rotation":
            weight = np.sqrt(rule.base_weight * self.rotational)
            slowed = -still[3:6] - rule.damping * v[3:6]
            matrix = np.vstack([matrix, weight * horizontal[3:6]])
            right = np.concatenate([right, weight * slowed])
        return matrix, right

    def lift(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """H and b in vdot = H sdot + b."""
        plant = self.oracle.plant
        mass, bias = plant.mass_matrix(q), plant.bias(q, v)
        solved = np.linalg.solve(mass[:6, :6], np.column_stack([mass[:6, 6:], bias[:6]]))
        n = self.servo.ns
        return np.vstack([-solved[:, :n], np.eye(n)]), np.array([*-solved[:, n], *np.zeros(n)])

    def best(self, q: np.ndarray, v: np.ndarray, wanted: np.ndarray) -> np.ndarray:
        """Least residual among the accelerations that give the wanted output acceleration."""
        horizontal, still = self.lift(q, v)
        jacobian = self.oracle.jacobian(q)
        rest = wanted - self.oracle.drift(q, v) - jacobian @ still
        one = np.linalg.lstsq(jacobian @ horizontal, rest, rcond=None)[0]
        free = null_space(jacobian @ horizontal)
        matrix, right = self.rows(q, v)
        return one + free @ np.linalg.lstsq(matrix @ free, right - matrix @ one, rcond=None)[0]


def made(servo: Servo, oracle: OutputOracle, q: np.ndarray, v: np.ndarray, u: np.ndarray):  # type: ignore[no-untyped-def]
    """Shape acceleration that Pinocchio finds."""
    return oracle.plant.forward_dynamics(q, v, np.array([*np.zeros(6), *u]))[6:]


@pytest.mark.by_default(5)
@pytest.mark.parametrize("rule", RULES)
def test_chosen_acceleration_is_the_one_the_rule_wants_most(rule: str) -> None:
    servo, oracle = build(STATION, redundancy=RULES[rule])
    chooser, rng = Chooser(servo, oracle), np.random.default_rng(2)
    for q, s, v in states(servo, 3):
        sample = oracle.sample(q, rng, size=2.0)
        expected = chooser.best(q, v, oracle.command(servo, q, v, sample))
        found = made(servo, oracle, q, v, servo.torque(q, s, sample))
        assert_close(found, expected, 1e-8)
        matrix, right = chooser.rows(q, v)
        free = null_space(oracle.jacobian(q) @ chooser.lift(q, v)[0])[:, 0]
        costs = [np.linalg.norm(matrix @ (found + h * free) - right) for h in (-1e-2, 0.0, 1e-2)]
        assert min(costs) == costs[1]


def hold(rule: Redundancy, s0: Callable[[Servo], np.ndarray], duration: float) -> Run:
    """Hold the tip of the station arm where it is, without momentum."""
    robot = robots.station_arm()
    servo = Servo(reduce(robot), SERVOS[STATION][1], 1.0, 1.6, redundancy=rule)
    still = Chain([Pinocchio(robot).pose(BENT, "tip")], "SE3")
    return simulate(robot, servo, still, duration, BENT, s0(servo), dt=2e-2)


def test_internal_motion_dies_away_at_its_rate() -> None:
    run = hold(Redundancy(damping=1.5), lambda servo: 0.1 * free_motion(servo, BENT), 4.0)
    assert np.abs(run.error).max() < 1e-8  # no effect on the tip
    energy = np.array(
        [s @ run.servo.model.mass_matrix(q) @ s for q, s in zip(run.q, run.s, strict=True)]
    )
    rates = np.diff(np.log(energy)) / (2 * np.diff(run.t))
    assert_allclose(rates, -1.5, rtol=0.05)
    assert_allclose(rates[-20:], -1.5, rtol=1e-3)  # at speeds so low that the arm stays as it is


def free_motion(servo: Servo, q: np.ndarray) -> np.ndarray:
    return null_space(servo.decoupling(q))[:, 0]


def test_posture_is_sought_within_what_the_outputs_leave() -> None:
    wanted = BENT.copy()
    wanted[7:] += [0.3, -0.2, 0.1, 0.0, 0.1, 0.2, -0.3]
    rule = Redundancy(objective="posture", posture=wanted, stiffness=1.0, damping=2.0)
    run = hold(rule, lambda servo: np.zeros(7), 12.0)
    assert np.abs(run.error).max() < 1e-8
    assert np.abs(run.q[-1] - run.q[0]).max() > 0.05
    # At the end what is left is across the internal motion, in the metric of the rule.
    mass = run.servo.model.mass_matrix(run.q[-1])
    last = free_motion(run.servo, run.q[-1])
    pull = last @ mass @ (wanted - run.q[-1])[7:] / np.sqrt(last @ mass @ last)
    first = free_motion(run.servo, BENT)
    mass = run.servo.model.mass_matrix(BENT)
    begun = first @ mass @ (wanted - BENT)[7:] / np.sqrt(first @ mass @ first)
    assert abs(pull) < 2e-3 * abs(begun)
    assert np.abs(run.s[-1]).max() < 1e-3


def test_posture_of_some_bodies_draws_these_alone() -> None:
    name = "lower_boom"
    rule = Redundancy(objective="posture", posture={name: 0.4}, stiffness=3.0)
    servo, _ = build(STATION, redundancy=rule)
    robot = servo.model.robot
    still = ca.DM.zeros(robot.nv)
    symbols = ca.SX.sym("q", robot.nq), ca.SX.sym("v", robot.nv)
    aim = ca.Function("aim", [*symbols], [servo.redundancy.aim(servo.model, *symbols)[1]])
    expected = np.zeros(robot.nv)
    expected[robot.v_slice(name)] = 3.0 * (0.4 - BENT[robot.q_slice(name)])
    assert_close(np.array(aim(BENT, still))[:, 0], expected[6:], 1e-12)
    with pytest.raises(ShapeError, match=f"joint `{name}`"):
        build(STATION, redundancy=Redundancy(objective="posture", posture={name: [0.1, 0.2]}))
    with pytest.raises(UnknownNameError, match="boomerang"):
        build(STATION, redundancy=Redundancy(objective="posture", posture={"boomerang": 0.1}))


def test_objective_of_ones_own_goes_down() -> None:
    rule = Redundancy(objective=spread, stiffness=2000.0, damping=1.0)
    run = hold(rule, lambda servo: np.zeros(7), 8.0)
    value = ca.Function("value", [x := ca.SX.sym("x", 14)], [spread(x)])
    values = [float(value(q)) for q in run.q[::50]]
    assert np.abs(run.error).max() < 1e-8
    assert values[-1] < values[0] - 1e-2
    assert values[-1] == pytest.approx(min(values), abs=1e-4)


def sway(rule: Redundancy, momentum: np.ndarray) -> tuple[float, Run]:
    """Angle by which the free-flyer's base is turned at the end of six seconds of swaying."""
    robot = robots.free_flyer()
    outputs = [Output("hand", "tool", "R3")]
    servo = Servo(reduce(robot, momentum=momentum), outputs, 4.0, 2.8, redundancy=rule)
    drift = np.array([*momentum[:3] / robot.total_mass, 0.0, 0.0, 0.0])
    start = Pinocchio(robot).pose(CHECK_A_Q0, "tool")
    side = np.array([0.1, -0.1, 0.1, 0.0, 0.0, 0.0])
    demand = Chain([(drift, steady), start, (side, swing(0.8))], "R3")
    run = simulate(robot, servo, demand, 6.0, CHECK_A_Q0, np.zeros(6), dt=1e-2)
    turned = Rotation.from_quat(run.q[0, 3:7]).inv() * Rotation.from_quat(run.q[-1, 3:7])
    return float(turned.magnitude()), run


@pytest.mark.extended
def test_base_turns_less_when_that_is_asked_for() -> None:
    keep = Redundancy(objective="base_rotation")
    angle, run = sway(Redundancy(), np.zeros(6))
    less, kept = sway(keep, np.zeros(6))
    assert angle > 0.05  # rad; 0.0563 and 0.0038 when written
    assert less < 0.1 * angle
    for other in (run, kept):
        assert np.abs(other.deviation).max() < 1e-7
    # The momentum has to go somewhere: with it the base can be slowed, and the joints pay.
    angle, run = sway(Redundancy(), CHECK_A_MOMENTUM)
    less, kept = sway(keep, CHECK_A_MOMENTUM)
    assert less < 0.6 * angle
    assert np.abs(kept.s).max() > 5 * np.abs(run.s).max()


def test_audit_names_the_rule() -> None:
    servo, _ = build(STATION, redundancy=RULES["base"])
    row = servo.audit()["CON9"]
    assert row.status is AuditStatus.HOLDS
    assert row.values["left"] == 1.0
    assert "7 controls, 6 output coordinates: 1 left" in row.why
    assert str(servo.redundancy) in row.why
    assert "base_rotation" in row.why
    # The reduced model alone has no rule.
    assert servo.model.audit(servo.outputs)["CON9"].status is AuditStatus.FAILS
    square, _ = build("hand of the free-flyer", redundancy=Redundancy(weight="torque"))
    assert square.redundancy is None
    assert "there are exactly as many" in square.audit()["CON9"].statement


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan])
@pytest.mark.parametrize("name", ["stiffness", "damping", "base_weight"])
def test_numbers_of_a_rule_are_above_zero(name: str, value: float) -> None:
    refused(ConcurError, lambda: Redundancy(**{name: value}), where=f"`{name}`")


@pytest.mark.parametrize(
    ("rule", "kind", "where"),
    [
        (Redundancy(weight=[1.0, 2.0]), ShapeError, "`weight`"),
        (Redundancy(weight=np.eye(6)), ShapeError, "`weight`"),
        (Redundancy(weight=[1.0] * 6 + [0.0]), OutputError, "`weight`"),
        (Redundancy(weight=np.eye(7) - np.eye(7, k=1)), OutputError, "`weight`"),
        (Redundancy(weight=[1.0] * 6 + [np.nan]), NonFiniteError, "`weight`"),
        (Redundancy(objective="posture", posture=np.zeros(7)), ShapeError, "`posture`"),
        (Redundancy(objective=lambda q: q), OutputError, "`objective`"),
        (Redundancy(objective=lambda q: q.no_such), OutputError, "`objective`"),
        ("rest", OutputError, "`redundancy`"),
    ],
)
def test_rule_that_does_not_fit_the_robot_is_refused(
    rule: Redundancy, kind: type[ConcurError], where: str
) -> None:
    model = reduce(robots.station_arm())
    refused(kind, lambda: Servo(model, SERVOS[STATION][1], 1.0, 1.0, redundancy=rule), where=where)


def test_base_that_cannot_turn_is_not_kept_from_turning() -> None:
    link = Inertia(1.0, (0.2, 0.0, 0.0), (0.01, 0.02, 0.02))
    robot = Mechanism(
        "puck",
        [
            Body("puck", joints.Cartesian(), inertia=Inertia(5.0, moments=(1.0, 1.0, 1.0))),
            Body("upper", joints.Revolute((0, 0, 1)), "puck", inertia=link),
            Body("fore", joints.Revolute((0, 0, 1)), "upper", inertia=link),
        ],
    )
    rule = Redundancy(objective="base_rotation")
    outputs = [Output("turn", "fore", "SO2")]
    refused(
        OutputError,
        lambda: Servo(reduce(robot), outputs, 1.0, 1.0, redundancy=rule),
        expected="a base that turns",
    )


def planar_arm() -> Mechanism:
    """Three links of 0.4, 0.3 and 0.2 m in a plane, without gravity."""
    bodies: list[Body] = []
    for k, (length, mass) in enumerate(((0.4, 2.0), (0.3, 1.0), (0.2, 0.5))):
        turning = mass * length**2 / 12
        bodies.append(
            Body(
                f"link{k}",
                joints.Revolute((0, 0, 1)),
                bodies[-1].name if k else None,
                Pose(((0.0, 0.4, 0.3)[k], 0, 0)),
                Inertia(mass, (length / 2, 0, 0), (1e-3, turning, turning)),
            )
        )
    return Mechanism("planar arm", bodies, actuated=[body.name for body in bodies])


BENT_ARM = np.array([0.3, 0.9, 0.7])
POSTURE = {"objective": "posture", "posture": BENT_ARM, "stiffness": 2.0, "damping": 3.0}


@pytest.mark.by_default(2)
@pytest.mark.parametrize(
    ("rule", "least", "most"),
    [
        ({}, 0.10, 0.11),
        ({"weight": "torque"}, 0.5, 5.0),  # chaotic: sensitive to the step
        (POSTURE, 0.10, 0.11),
        ({"weight": "torque", **POSTURE}, 3.4, 3.6),
        ({"weight": "torque", **POSTURE, "stiffness": 9.0, "damping": 6.0}, 2.1, 2.2),
    ],
    ids=["energy", "torque", "energy, posture", "torque, posture", "torque, stiffer posture"],
)
def test_least_torque_of_each_instant_needs_more_torque_in_the_end(
    rule: dict[str, object], least: float, most: float
) -> None:
    """The numbers of the manual, beside least acceleration energy."""
    model = reduce(planar_arm())
    tip = [Output("tip", "link2", "R2", point=(0.2, 0, 0))]
    servo = Servo(model, tip, 4.0, 4.0, redundancy=Redundancy(**rule))  # type: ignore[arg-type]
    circle = references.circle(servo.output(BENT_ARM) - [0.05, 0.0], 0.05, period=4.0)
    start = servo.start(circle, BENT_ARM)
    run = simulate(planar_arm(), servo, circle, 12.0, start.q, start.s, dt=0.01)
    assert np.abs(run.error).max() < 1e-4  # the tip follows under every rule
    assert least < np.abs(run.u).max() < most
    # Power balance: the torques are those of the motion, whatever its rule.
    gained = run.energy - run.energy[0]
    assert_allclose(run.work, gained, rtol=0, atol=1e-3 * np.ptp(gained))


@pytest.mark.parametrize(
    ("weight", "named"), [("torque", True), ("energy", False), ([1.0, 2.0, 3.0], False)]
)
def test_audit_names_internal_motion_that_may_grow(weight: object, named: bool) -> None:
    model = reduce(planar_arm())
    tip = [Output("tip", "link2", "R2", point=(0.2, 0, 0))]
    servo = Servo(model, tip, 4.0, 4.0, redundancy=Redundancy(weight=weight))
    audit = servo.audit(q0=BENT_ARM)
    rows = {row.id: row for row in audit}
    assert ("INT" in rows) == named
    assert audit.holds
    if named:
        assert rows["INT"].status is AuditStatus.NOT_CHECKED
        assert "energy" in rows["INT"].why


@pytest.mark.parametrize("posture", [{"yaw": 0.2}, {"yaw": 0.2, "mirror": -0.3}, {"tip": 0.1}])
def test_followers_of_a_posture_follow(posture: dict[str, float]) -> None:
    """A joint that follows one of the posture need not be named."""
    link = Inertia(1.0, (0.2, 0.0, 0.0), (0.01, 0.02, 0.02))
    bodies = [Body("base", joints.Fixed())]
    for name in ("yaw", "mirror", "tip"):
        place = Pose((0.4, 0.0, 0.0))
        bodies.append(Body(name, joints.Revolute((0, 0, 1)), bodies[-1].name, place, link))
    robot = Mechanism("arm", bodies, mimics=[Mimic("mirror", "yaw", -2.0, 0.1)])
    outputs = [Output("turn", "tip", "SO2")]
    rule = Redundancy(objective="posture", posture=posture)
    servo = Servo(reduce(robot), outputs, 1.0, 1.0, redundancy=rule)
    yaw, tip = posture.get("yaw", 0.0), posture.get("tip", 0.0)
    assert servo.redundancy is not None
    assert servo.redundancy.posture == pytest.approx([yaw, 0.1 - 2.0 * yaw, tip])


def test_a_follower_elsewhere_is_refused() -> None:
    link = Inertia(1.0, (0.2, 0.0, 0.0), (0.01, 0.02, 0.02))
    turn = joints.Revolute((0, 0, 1))
    bodies = [Body("base", joints.Fixed()), Body("yaw", turn, "base", inertia=link)]
    bodies.append(Body("mirror", turn, "yaw", inertia=link))
    robot = Mechanism("arm", bodies, mimics=[Mimic("mirror", "yaw", -2.0)])
    rule = Redundancy(objective="posture", posture={"yaw": 0.2, "mirror": 0.2})
    with pytest.raises(ConcurError) as caught:
        rule.checked("servo", reduce(robot))
    assert caught.value.came == "0.2"
    assert caught.value.expected.startswith("-0.4")
