"""Inverse kinematics: every answer is checked with the robot's poses, not with the solver's."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.linalg import logm
from scipy.spatial.transform import Rotation

import concur as cc
from concur.robots import __all__ as shipped
from tests.control._cases import arm
from tests.control._inverse_kinematics_cases import HAND, SMALL, TIP, two_links
from tests.oracles import difference_quotient

REACH, HOLE = 1.7, 0.3


def single(joint: cc.joints.Joint, limits: object = None) -> cc.Mechanism:
    return cc.Mechanism("single", [cc.Body("body", joint, inertia=SMALL, limits=limits)])


def flat(robot: cc.Mechanism, outputs: list[cc.Output], q: np.ndarray) -> np.ndarray:
    """Coordinates of outputs from the robot's poses."""
    parts: list[np.ndarray] = []
    for output in outputs:
        pose = robot.pose(q, output.body)
        place = (pose @ [*output.point, 1.0])[:3]
        heading = np.arctan2(pose[1, 0], pose[0, 0])
        quaternion = Rotation.from_matrix(pose[:3, :3]).as_quat()
        if output.axes is not None:
            parts.append(place[["xyz".index(axis) for axis in output.axes]])
        elif output.group == "SO2":
            parts.append(np.array([heading]))
        elif output.group == "SE2":
            parts.append(np.array([*place[:2], heading]))
        else:
            parts.append(quaternion if output.group == "SO3" else np.append(place, quaternion))
    return np.concatenate(parts)


def away(robot: cc.Mechanism, outputs: list[cc.Output], q: np.ndarray, target: np.ndarray) -> float:
    """Largest distance (m) or angle (rad) between outputs and target."""
    reached, start, worst = flat(robot, outputs, q), 0, 0.0
    for output in outputs:
        span = slice(start, start + output.pose_size)
        start = span.stop
        is_, wanted = reached[span], target[span]
        if output.group in ("SO3", "SE3", "R3xSO3"):
            turn = Rotation.from_quat(is_[-4:]).inv() * Rotation.from_quat(wanted[-4:])
            worst = max(worst, turn.magnitude())
            is_, wanted = is_[:-4], wanted[:-4]
        elif output.group in ("SO2", "SE2"):
            turn = is_[-1] - wanted[-1]
            worst = max(worst, abs(np.arctan2(np.sin(turn), np.cos(turn))))
            is_, wanted = is_[:-1], wanted[:-1]
        worst = max(worst, float(np.linalg.norm(is_ - wanted)))
    return worst


@dataclass(frozen=True)
class Case:
    """A robot, its outputs, and the bodies that stand still."""

    build: Callable[[], cc.Mechanism]
    outputs: tuple[cc.Output, ...]
    fixed: tuple[str, ...] = ()

    def random(self, robot: cc.Mechanism, rng: np.random.Generator) -> np.ndarray:
        q = robot.random(rng)
        for name in self.fixed:
            q[robot.q_slice(name)] = robot.neutral()[robot.q_slice(name)]
        return q


def limited_arm() -> cc.Mechanism:
    robot = arm()
    bodies = [robot.bodies[0]]
    for k, body in enumerate(robot.bodies[1:]):
        bound = (2.8, 1.9, 2.5, 3.1, 1.8, 3.1)[k]
        bodies.append(
            cc.Body(
                body.name, body.joint, body.parent, body.placement, body.inertia, (-bound, bound)
            )
        )
    return cc.Mechanism("limited arm", bodies)


FRONT = cc.Output("front", "chassis", "R2", point=(0.25, 0, 0))

LEFT, RIGHT = (
    cc.Output(side, f"{side}_tip", "R3xSO3", point=(0.3, 0, 0)) for side in ("left", "right")
)

CASES = {
    "rover: front and hand": Case(cc.robots.rover_arm, (FRONT, HAND)),
    "rover: hand, chassis fixed": Case(cc.robots.rover_arm, (HAND,), ("chassis",)),
    "crawler: poses of both tips": Case(cc.robots.orbital_crawler, (LEFT, RIGHT)),
    "crawler: one tip, spacecraft fixed": Case(cc.robots.orbital_crawler, (LEFT,), ("spacecraft",)),
    "two hands: left one, spacecraft fixed": Case(
        cc.robots.two_handed_spacecraft, (cc.Output("hand", "left_hand", "R3"),), ("spacecraft",)
    ),
    "planar floater: tip, base fixed": Case(
        cc.robots.planar_floater, (cc.Output("tip", "forearm", "R2", point=(0.4, 0, 0)),), ("base",)
    ),
    "free flyer: tool": Case(cc.robots.free_flyer, (cc.Output("tool", "tool", "R3xSO3"),)),
    "station arm: tip, station fixed": Case(
        cc.robots.station_arm, (cc.Output("tip", "tip", "R3xSO3"),), ("station",)
    ),
    "servicer: both hands, satellite fixed": Case(
        cc.robots.servicer,
        tuple(cc.Output(side, f"{side}_hand", "R3xSO3") for side in ("left", "right")),
        ("satellite",),
    ),
    "wheel satellite: attitude": Case(
        cc.robots.wheel_satellite, (cc.Output("attitude", "satellite", "SO3"),)
    ),
    "car with an arm: hand": Case(
        cc.robots.car_arm, (cc.Output("hand", "hand", "R3", point=(0.1, 0, 0)),), ("chassis",)
    ),
    "sleigh": Case(cc.robots.chaplygin_sleigh, (cc.Output("sleigh", "sleigh", "SE2"),)),
    "mecanum base with an arm: hand, base fixed": Case(
        cc.robots.mecanum_arm, (cc.Output("hand", "hand", "R3xSO3"),), ("base",)
    ),
    "crane car: steered axle": Case(
        cc.robots.crane_car, (cc.Output("front", "steering", "SE2", point=(0.5, 0, 0)),)
    ),
    "trailers: the last one": Case(
        cc.robots.tractor_trailers, (cc.Output("last", "second_trailer", "SE2"),)
    ),
    "snakeboard: both skates": Case(
        cc.robots.snakeboard,
        (cc.Output("front", "front_skate", "SE2"), cc.Output("rear", "rear_skate", "SO2")),
    ),
    "arm: R3xSO3": Case(arm, (cc.Output("hand", "hand", "R3xSO3", point=(0.1, 0, 0)),)),
    "arm: SE3": Case(arm, (cc.Output("hand", "hand", "SE3", point=(0.1, 0, 0)),)),
    "arm: other axes": Case(lambda: arm("zyyxyz"), (cc.Output("hand", "hand", "SE3"),)),
}


def check_reachable(case: Case, count: int, seed: int) -> None:
    """Solve for poses that the robot takes in random configurations, from other random ones."""
    robot, outputs = case.build(), list(case.outputs)
    solver = cc.control.InverseKinematicsSolver(robot, outputs, fixed=case.fixed)
    rng = np.random.default_rng(seed)
    missed, worst = 0, 0.0
    for _ in range(count):
        target = flat(robot, outputs, case.random(robot, rng))
        q0 = case.random(robot, rng)
        found = solver.solve(target, q0)
        missed += not found.solved
        if found.solved:
            worst = max(worst, away(robot, outputs, found.q, target))
        for name in case.fixed:
            span = robot.q_slice(name)
            np.testing.assert_array_equal(found.q[span], q0[span])
    assert missed <= count // 100, f"{missed} of {count} not solved"
    assert worst < 1e-9


@pytest.mark.by_default(7)
@pytest.mark.parametrize("name", CASES)
def test_reachable_targets_are_reached(name):
    check_reachable(CASES[name], 100, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_thousand_reachable_targets_are_reached(name):
    check_reachable(CASES[name], 1000, seed=2)


def test_every_shipped_robot_is_among_the_cases():
    assert {case.build.__name__ for case in CASES.values()} >= set(shipped)


@pytest.mark.parametrize("group", ["R", "R2", "R3", "SO2", "SE2", "SO3", "SE3", "R3xSO3"])
def test_every_group(group):
    planar = group in ("SO2", "SE2")
    robot = single(cc.joints.Planar() if planar else cc.joints.Free())
    output = cc.Output("o", "body", group, point=(0.2, -0.1, 0.3))
    rng = np.random.default_rng(3)
    for _ in range(10):
        target = flat(robot, [output], robot.random(rng))
        found = cc.inverse_kinematics(robot, [output], target)
        assert found.solved, found.why
        assert away(robot, [output], found.q, target) < 1e-9


def test_near_a_solution_few_steps_do():
    robot, outputs = arm(), [cc.Output("hand", "hand", "SE3")]
    q = np.array([0.3, -0.5, 1.1, 0.4, 0.8, -0.2])
    found = cc.inverse_kinematics(robot, outputs, flat(robot, outputs, q), q + 0.01)
    assert found.solved
    assert found.starts == 1
    assert found.iterations <= 4
    np.testing.assert_allclose(found.q, q, atol=1e-9)


def test_a_start_at_the_target_stays_there():
    robot, q = arm(), np.array([0.3, -0.5, 1.1, 0.4, 0.8, -0.2])
    outputs = [cc.Output("hand", "hand", "R3xSO3")]
    found = cc.inverse_kinematics(robot, outputs, robot.pose(q, "hand"), q)
    assert (found.solved, found.iterations, found.starts) == (True, 0, 1)
    np.testing.assert_array_equal(found.q, q)


def test_targets_may_be_matrices_samples_or_numbers():
    robot, q = arm(), np.array([0.3, -0.5, 1.1, 0.4, 0.8, -0.2])
    outputs = [cc.Output("hand", "hand", "SE3")]
    solver = cc.control.InverseKinematicsSolver(robot, outputs)
    pose = robot.pose(q, "hand")
    by_matrix = solver.solve(pose)
    by_sample = solver.solve(cc.ReferenceSample(pose, np.zeros(6), np.zeros(6)))
    by_numbers = solver.solve(flat(robot, outputs, q))
    assert by_matrix.solved
    np.testing.assert_array_equal(by_matrix.q, by_sample.q)
    np.testing.assert_allclose(by_matrix.q, by_numbers.q, atol=1e-9)


# --- half turns -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0, -0.8), (-0.48, 0.6, 0.64)]
)
def test_a_rotation_by_half_a_turn(axis):
    robot = single(cc.joints.Spherical())
    output = cc.Output("o", "body", "SO3")
    target = np.array([*axis, 0.0])
    found = cc.inverse_kinematics(robot, [output], target)
    assert found.solved, found.why
    assert found.starts == 1
    assert away(robot, [output], found.q, target) < 1e-9


@pytest.mark.parametrize("group", ["SE3", "R3xSO3"])
def test_the_hand_turned_round_by_half_a_turn(group):
    robot, q = arm(), np.array([0.3, -0.5, 1.1, 0.4, 0.8, -0.2])
    target = robot.pose(q, "hand")
    target[:3, :3] = target[:3, :3] @ np.diag([1.0, -1.0, -1.0])
    output = cc.Output("hand", "hand", group)
    found = cc.inverse_kinematics(robot, [output], target, q)
    assert found.solved, found.why
    np.testing.assert_allclose(robot.pose(found.q, "hand"), target, atol=1e-9)


# --- out of reach -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target", [(3.0, 0.0), (2.0, 2.0), (-5.0, 1.0), (0.0, 0.2), (0.1, 0.1), (1e4, 0.0)]
)
def test_out_of_reach_the_residual_is_the_distance(target):
    found = cc.inverse_kinematics(two_links(), [TIP], target)
    distance = np.hypot(*target)
    assert not found.solved
    assert found.residual == pytest.approx(max(distance - REACH, HOLE - distance), abs=1e-6)
    np.testing.assert_allclose(np.linalg.norm(found.error), found.residual)
    assert found.starts == 50
    assert "output `tip` stays" in found.why
    assert "no small motion" in found.why


@pytest.mark.parametrize("direction", [(1, 0, 0.2), (-0.4, 1, 1), (0.3, -0.5, 1.5)])
def test_out_of_reach_no_motion_lessens_the_logarithm(direction):
    robot, output = arm(), cc.Output("hand", "hand", "SE3")
    target = np.eye(4)
    target[:3, :3] = Rotation.from_rotvec([0.9, -0.4, 1.1]).as_matrix()
    target[:3, 3] = 3.0 * np.array(direction) / np.linalg.norm(direction)

    def residual(q: np.ndarray) -> float:
        log = np.real(logm(np.linalg.solve(robot.pose(q, "hand"), target)))
        return float(np.linalg.norm([*log[:3, 3], log[2, 1], log[0, 2], log[1, 0]]))

    found = cc.inverse_kinematics(robot, [output], target)
    assert not found.solved
    assert residual(found.q) == pytest.approx(found.residual)
    slope = [
        difference_quotient(lambda h, dv=dv: residual(robot.integrate(found.q, h * dv)))
        for dv in np.eye(robot.nv)
    ]
    np.testing.assert_allclose(slope, 0.0, atol=1e-6)


def test_at_the_border_of_reach():
    found = cc.inverse_kinematics(two_links(), [TIP], (0.0, REACH), [0.3, 0.4])
    assert found.residual < 1e-9
    assert abs(found.q[1]) < 1e-4


def test_a_search_without_time_says_so():
    found = cc.inverse_kinematics(
        two_links(), [TIP], (-1.0, 0.9), [0.2, 0.3], starts=1, iterations=1
    )
    assert not found.solved
    assert "iterations" in found.why


# --- several starts ---------------------------------------------------------------------------


def test_a_stretched_arm_needs_another_start():
    # Pulling along the stretched arm turns no joint: the first start stays where it is.
    robot, start = two_links(), np.zeros(2)
    once = cc.inverse_kinematics(robot, [TIP], (1.2, 0.0), start, starts=1)
    assert not once.solved
    np.testing.assert_array_equal(once.q, start)
    assert once.residual == pytest.approx(0.5)
    often = cc.inverse_kinematics(robot, [TIP], (1.2, 0.0), start)
    assert often.solved
    assert often.starts > 1
    assert away(robot, [TIP], often.q, np.array([1.2, 0.0])) < 1e-9


def test_the_same_seed_gives_the_same_answer():
    answers = [
        cc.inverse_kinematics(two_links(), [TIP], (1.2, 0.0), np.zeros(2), seed=seed).q
        for seed in (4, 4, 5, 6, 7)
    ]
    np.testing.assert_array_equal(answers[0], answers[1])
    assert any(np.abs(answer - answers[0]).max() > 1e-3 for answer in answers[2:])


def test_a_solver_gives_what_the_function_gives():
    robot, outputs = arm(), [cc.Output("hand", "hand", "SE3")]
    rng = np.random.default_rng(8)
    solver = cc.control.InverseKinematicsSolver(robot, outputs, seed=3)
    copy = pickle.loads(pickle.dumps(solver))
    targets = [flat(robot, outputs, robot.random(rng)) for _ in range(20)]
    expected = [cc.inverse_kinematics(robot, outputs, target, seed=3).q for target in targets]
    for answers in (
        [solver.solve(target).q for target in targets],
        [copy.solve(target).q for target in targets],
    ):
        np.testing.assert_array_equal(answers, expected)
    with ThreadPoolExecutor(4) as pool:
        together = [found.q for found in pool.map(solver.solve, targets)]
    np.testing.assert_array_equal(together, expected)


# --- limits -----------------------------------------------------------------------------------


def test_limits_are_kept_and_targets_within_them_reached():
    robot = limited_arm()
    outputs = [cc.Output("hand", "hand", "R3xSO3", point=(0.1, 0, 0))]
    lower, upper = robot.limits.T
    rng = np.random.default_rng(9)
    solver = cc.control.InverseKinematicsSolver(robot, outputs)
    solved = 0
    for _ in range(100):
        target = flat(robot, outputs, rng.uniform(lower, upper))
        found = solver.solve(target, rng.uniform(lower, upper))
        assert (lower <= found.q).all()
        assert (found.q <= upper).all()
        solved += found.solved
        assert not found.solved or away(robot, outputs, found.q, target) < 1e-9
    assert solved >= 99


@pytest.mark.parametrize("target", [(1.6, 0.3), (0.0, 1.5), (3.0, 0.0), (-1.0, -1.0), (0.4, 0.2)])
def test_with_limits_the_nearest_configuration_is_found(target):
    shoulder, elbow = (-0.5, 0.5), (0.2, 1.5)
    found = cc.inverse_kinematics(two_links(shoulder, elbow), [TIP], target)
    a, b = np.meshgrid(np.linspace(*shoulder, 1001), np.linspace(*elbow, 1001))
    x, y = np.cos(a) + 0.7 * np.cos(a + b), np.sin(a) + 0.7 * np.sin(a + b)
    best = float(np.hypot(x - target[0], y - target[1]).min())
    # The grid's best is at most half a diagonal of a cell worse than the true one.
    assert best - 3e-3 < found.residual < best + 1e-9
    assert shoulder[0] <= found.q[0] <= shoulder[1]
    assert elbow[0] <= found.q[1] <= elbow[1]


def test_limits_in_the_way_are_named():
    found = cc.inverse_kinematics(two_links((-0.5, 0.5), (0.2, 1.5)), [TIP], (3.0, 0.0))
    assert "fore at its lower limit 0.2" in found.why
    assert "upper" not in found.why


def test_limits_of_a_base_hold_in_its_plane_however_it_is_turned():
    robot = single(cc.joints.Planar(), limits=((-0.1, 0.1), None, None))
    output = cc.Output("o", "body", "R2")
    found = cc.inverse_kinematics(robot, [output], (1.0, 2.0), (0.0, 0.0, 0.8))
    assert found.residual == pytest.approx(0.9, abs=1e-9)
    np.testing.assert_allclose(found.q[:2], [0.1, 2.0], atol=1e-9)


@pytest.mark.parametrize(("limits", "wanted"), [((0.5, np.inf), 0.5), ((-np.inf, -0.2), -0.2)])
def test_a_limit_on_one_side(limits, wanted):
    robot = single(cc.joints.Prismatic((1, 0, 0)), limits=limits)
    found = cc.inverse_kinematics(robot, [cc.Output("o", "body", "R")], [0.1])
    assert found.q[0] == wanted
    assert found.residual == pytest.approx(abs(wanted - 0.1))


def test_limits_can_be_left_aside():
    robot = two_links((-0.5, 0.5), (0.2, 1.5))
    found = cc.inverse_kinematics(robot, [TIP], (-1.0, -1.0), (2.0, 0.0), limits=False)
    assert found.solved
    assert away(robot, [TIP], found.q, np.array([-1.0, -1.0])) < 1e-9


# --- which joints move ------------------------------------------------------------------------


def test_joints_that_move_no_output_stay():
    robot = cc.robots.rover_arm()
    q0 = robot.neutral()
    q0[robot.q_slice("left_wheel")] = 5.0
    found = cc.inverse_kinematics(robot, [HAND], (3.0, -2.0, 0.4), q0)
    assert found.solved
    assert found.q[robot.q_slice("left_wheel")] == 5.0
    assert found.q[robot.q_slice("right_wheel")] == 0.0


def test_the_base_comes_along_unless_it_is_fixed():
    robot = cc.robots.rover_arm()
    far = (30.0, -20.0, 0.4)
    assert cc.inverse_kinematics(robot, [HAND], far).solved
    fixed = cc.inverse_kinematics(robot, [HAND], far, fixed=("chassis",))
    assert not fixed.solved
    np.testing.assert_array_equal(fixed.q[:3], 0.0)


@pytest.mark.parametrize("far", [1e2, 1e4, 1e6])
def test_a_base_goes_far(far):
    crawler, rover = cc.robots.orbital_crawler(), cc.robots.rover_arm()
    place = np.array([far, -far, 0.3])
    found = cc.inverse_kinematics(rover, [HAND], place, tolerance=1e-15 * far + 1e-10)
    assert (found.solved, found.starts) == (True, 1)
    assert away(rover, [HAND], found.q, place) < 1e-9 + 2e-15 * far
    target = np.append(place, [0, 1, 0, 0])
    found = cc.inverse_kinematics(crawler, [LEFT], target, tolerance=1e-15 * far + 1e-10)
    assert (found.solved, found.starts) == (True, 1)
    assert away(crawler, [LEFT], found.q, target) < 1e-9 + 2e-15 * far


def test_angles_come_back_without_whole_turns():
    rng = np.random.default_rng(10)
    solver = cc.control.InverseKinematicsSolver(two_links(), [TIP])
    q0 = np.array([12.0, -31.0])
    for _ in range(50):
        radius, angle = rng.uniform(0.4, 1.6), rng.uniform(-np.pi, np.pi)
        target = radius * np.array([np.cos(angle), np.sin(angle)])
        found = solver.solve(target, q0)
        assert found.solved
        assert np.abs(found.q - q0).max() <= np.pi + 1e-12
        assert away(solver.robot, [TIP], found.q, target) < 1e-9


def test_turns_of_a_screw_are_kept():
    robot = single(cc.joints.Helical((0, 0, 1), 0.1))
    found = cc.inverse_kinematics(robot, [cc.Output("o", "body", "R", axes="z")], [5.0])
    assert found.q[0] == pytest.approx(50.0)
