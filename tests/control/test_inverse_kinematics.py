"""Inverse kinematics: every answer is checked with the robot's poses, not with the solver's."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import concur as cc
from concur.control import InverseKinematicsSolver
from concur.control._inverse_kinematics import wound
from concur.errors import ConcurError, NonFiniteError, OutputError, ShapeError, UnknownNameError
from concur.robots import __all__ as shipped
from tests.control._cases import arm

REACH, HOLE = 1.7, 0.3
SMALL = cc.Inertia(1.0, moments=(0.1, 0.1, 0.1))
ABOUT_Z = cc.joints.Revolute((0, 0, 1))
TIP = cc.Output("tip", "fore", "R2", point=(0.7, 0, 0))
HAND = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
TOOL = cc.Output("hand", "hand", "SE3")


def links(shoulder: object = None, elbow: object = None) -> list[cc.Body]:
    return [
        cc.Body("ground", cc.joints.Fixed()),
        cc.Body("upper", ABOUT_Z, "ground", inertia=SMALL, limits=shoulder),
        cc.Body("fore", ABOUT_Z, "upper", cc.Pose((1, 0, 0)), SMALL, limits=elbow),
    ]


def two_links(shoulder: object = None, elbow: object = None) -> cc.Mechanism:
    """Planar arm with links of 1 m and 0.7 m."""
    return cc.Mechanism("two links", links(shoulder, elbow))


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


def limited_arm() -> cc.Mechanism:
    first, *others = arm().bodies
    bounds = (2.8, 1.9, 2.5, 3.1, 1.8, 3.1)
    limited = [replace(body, limits=(-x, x)) for body, x in zip(others, bounds, strict=True)]
    return cc.Mechanism("limited arm", [first, *limited])


def pose(body: str, group: str = "R3xSO3", *point: float) -> cc.Output:
    return cc.Output(body, body, group, point=point or (0, 0, 0))


FRONT, LEFT = pose("chassis", "R2", 0.25, 0, 0), pose("left_tip", "R3xSO3", 0.3, 0, 0)
Case = tuple[Callable[[], cc.Mechanism], list[cc.Output], tuple[str, ...]]
CASES: dict[str, Case] = {
    "rover": (cc.robots.rover_arm, [FRONT, HAND], ()),
    "rover, fixed": (cc.robots.rover_arm, [HAND], ("chassis",)),
    "crawler": (cc.robots.orbital_crawler, [LEFT, pose("right_tip", "R3xSO3", 0.3, 0, 0)], ()),
    "crawler, fixed": (cc.robots.orbital_crawler, [LEFT], ("spacecraft",)),
    "two hands": (cc.robots.two_handed_spacecraft, [pose("left_hand", "R3")], ("spacecraft",)),
    "planar floater": (cc.robots.planar_floater, [pose("forearm", "R2", 0.4, 0, 0)], ("base",)),
    "free flyer": (cc.robots.free_flyer, [pose("tool")], ()),
    "station arm": (cc.robots.station_arm, [pose("tip")], ("station",)),
    "servicer": (cc.robots.servicer, [pose("left_hand"), pose("right_hand")], ("satellite",)),
    "wheel satellite": (cc.robots.wheel_satellite, [pose("satellite", "SO3")], ()),
    "car": (cc.robots.car_arm, [pose("hand", "R3", 0.1, 0, 0)], ("chassis",)),
    "sleigh": (cc.robots.chaplygin_sleigh, [pose("sleigh", "SE2")], ()),
    "mecanum": (cc.robots.mecanum_arm, [pose("hand")], ("base",)),
    "crane car": (cc.robots.crane_car, [pose("steering", "SE2", 0.5, 0, 0)], ()),
    "trailers": (cc.robots.tractor_trailers, [pose("second_trailer", "SE2")], ()),
    "snakeboard": (
        cc.robots.snakeboard,
        [pose("front_skate", "SE2"), pose("rear_skate", "SO2")],
        (),
    ),
    "arm, R3xSO3": (arm, [pose("hand", "R3xSO3", 0.1, 0, 0)], ()),
    "arm, SE3": (lambda: arm("zyyxyz"), [pose("hand", "SE3", 0.1, 0, 0)], ()),
}


def check_reachable(case: Case, count: int, seed: int) -> None:
    """Solve for poses that the robot takes in random configurations, from other random ones."""
    build, outputs, fixed = case
    robot, rng = build(), np.random.default_rng(seed)
    solver = InverseKinematicsSolver(robot, outputs, fixed=fixed)
    still = [i for name in fixed for i in range(robot.nq)[robot.q_slice(name)]]

    def drawn() -> np.ndarray:
        q = robot.random(rng)
        q[still] = robot.neutral()[still]
        return q

    missed, worst = 0, 0.0
    for _ in range(count):
        target, q0 = flat(robot, outputs, drawn()), drawn()
        found = solver.solve(target, q0)
        missed += not found.solved
        if found.solved:
            worst = max(worst, away(robot, outputs, found.q, target))
        np.testing.assert_array_equal(found.q[still], q0[still])
    assert missed <= count // 100, f"{missed} of {count} not solved"
    assert worst < 1e-9


@pytest.mark.by_default(5)
@pytest.mark.parametrize("name", CASES)
def test_reachable_targets_are_reached(name):
    check_reachable(CASES[name], 100, seed=1)


def test_every_shipped_robot_is_among_the_cases():
    assert {build.__name__ for build, *_ in CASES.values()} >= set(shipped)


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


def test_near_a_solution_few_steps_do_and_targets_may_be_matrices_or_samples():
    robot, q = arm(), np.array([0.3, -0.5, 1.1, 0.4, 0.8, -0.2])
    solver, goal = InverseKinematicsSolver(robot, [TOOL]), robot.pose(q, "hand")
    found = solver.solve(flat(robot, [TOOL], q), q + 0.01)
    assert (found.solved, found.starts) == (True, 1)
    assert found.iterations <= 4
    np.testing.assert_allclose(found.q, q, atol=1e-9)
    by_matrix, by_numbers = solver.solve(goal), solver.solve(flat(robot, [TOOL], q))
    by_sample = solver.solve(cc.ReferenceSample(goal, np.zeros(6), np.zeros(6)))
    assert by_matrix.solved
    np.testing.assert_array_equal(by_matrix.q, by_sample.q)
    np.testing.assert_allclose(by_matrix.q, by_numbers.q, atol=1e-9)
    # Quaternions near unit norm are normalized.
    loose = InverseKinematicsSolver(robot, [TOOL]).solve(
        flat(robot, [TOOL], q) * np.repeat([1.0, 1.0009], [3, 4])
    )
    np.testing.assert_allclose(loose.q, by_numbers.q, atol=1e-9)
    stays = solver.solve(goal, q)
    assert (stays.solved, stays.iterations, stays.starts) == (True, 0, 1)
    np.testing.assert_array_equal(stays.q, q)


# --- half turns -------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (-0.48, 0.6, 0.64)])
def test_a_rotation_by_half_a_turn(axis):
    robot = single(cc.joints.Spherical())
    output = cc.Output("o", "body", "SO3")
    target = np.array([*axis, 0.0])
    found = cc.inverse_kinematics(robot, [output], target)
    assert found.solved, found.why
    assert found.starts == 1
    assert away(robot, [output], found.q, target) < 1e-9


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


def test_a_search_without_time_says_so():
    solver = InverseKinematicsSolver(two_links(), [TIP], starts=1, iterations=1)
    found = solver.solve((-1.0, 0.9), [0.2, 0.3])
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
        InverseKinematicsSolver(two_links(), [TIP], seed=seed).solve((1.2, 0.0), np.zeros(2)).q
        for seed in (4, 4, 5, 6, 7)
    ]
    np.testing.assert_array_equal(answers[0], answers[1])
    assert any(np.abs(answer - answers[0]).max() > 1e-3 for answer in answers[2:])


def test_a_solver_gives_what_the_function_gives_in_any_thread():
    robot, rng = arm(), np.random.default_rng(8)
    solver = InverseKinematicsSolver(robot, [TOOL])
    copy = pickle.loads(pickle.dumps(solver))
    targets = [flat(robot, [TOOL], robot.random(rng)) for _ in range(10)]
    expected = [cc.inverse_kinematics(robot, [TOOL], target).q for target in targets]
    np.testing.assert_array_equal([solver.solve(target).q for target in targets], expected)
    np.testing.assert_array_equal([copy.solve(target).q for target in targets], expected)
    with ThreadPoolExecutor(4) as pool:
        together = [found.q for found in pool.map(solver.solve, targets)]
    np.testing.assert_array_equal(together, expected)


# --- limits -----------------------------------------------------------------------------------


def test_limits_are_kept_and_targets_within_them_reached():
    robot = limited_arm()
    outputs = [cc.Output("hand", "hand", "R3xSO3", point=(0.1, 0, 0))]
    lower, upper = robot.limits.T
    rng = np.random.default_rng(9)
    solver = InverseKinematicsSolver(robot, outputs)
    solved = 0
    for _ in range(50):
        target = flat(robot, outputs, rng.uniform(lower, upper))
        found = solver.solve(target, rng.uniform(lower, upper))
        assert (lower <= found.q).all()
        assert (found.q <= upper).all()
        solved += found.solved
        assert not found.solved or away(robot, outputs, found.q, target) < 1e-9
    assert solved >= 49


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


def test_limits_in_the_way_are_named_and_can_be_left_aside():
    robot = two_links((-0.5, 0.5), (0.2, 1.5))
    found = cc.inverse_kinematics(robot, [TIP], (3.0, 0.0))
    assert "fore at its lower limit 0.2" in found.why
    assert "upper" not in found.why
    found = cc.inverse_kinematics(robot, [TIP], (-1.0, -1.0), (2.0, 0.0), limits=False)
    assert found.solved
    assert away(robot, [TIP], found.q, np.array([-1.0, -1.0])) < 1e-9


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


# --- which joints move ------------------------------------------------------------------------


def test_joints_that_move_no_output_stay():
    robot = cc.robots.rover_arm()
    q0 = robot.neutral()
    q0[robot.q_slice("left_wheel")] = 5.0
    found = cc.inverse_kinematics(robot, [HAND], (3.0, -2.0, 0.4), q0)
    assert found.solved
    assert found.q[robot.q_slice("left_wheel")] == 5.0
    assert found.q[robot.q_slice("right_wheel")] == 0.0


def test_angles_come_back_without_whole_turns():
    rng = np.random.default_rng(10)
    solver = InverseKinematicsSolver(two_links(), [TIP])
    q0 = np.array([12.0, -31.0])
    for _ in range(50):
        radius, angle = rng.uniform(0.4, 1.6), rng.uniform(-np.pi, np.pi)
        target = radius * np.array([np.cos(angle), np.sin(angle)])
        found = solver.solve(target, q0)
        assert found.solved
        assert np.abs(found.q - q0).max() <= np.pi + 1e-12
        assert away(solver.robot, [TIP], found.q, target) < 1e-9


@pytest.mark.parametrize("limit", [4.0, 2.0 * np.pi, 9.0])
def test_angles_with_more_than_a_turn_between_their_limits_come_back_as_near_as_these_allow(limit):
    rng = np.random.default_rng(11)
    robot = two_links((-limit, limit), (-limit, limit))
    solver, folded = InverseKinematicsSolver(robot, [TIP]), 0
    for _ in range(50):
        radius, angle = rng.uniform(0.4, 1.6), rng.uniform(-np.pi, np.pi)
        target, q0 = radius * np.exp(1j * angle), rng.uniform(-limit, limit, 2)
        found = solver.solve([target.real, target.imag], q0)
        assert found.solved
        assert np.abs(found.q).max() <= limit
        for own, first in zip(found.q, q0, strict=True):
            turned = own + 2.0 * np.pi * np.arange(-3, 4)
            turned = turned[np.abs(turned) <= limit]
            assert abs(own - first) <= np.abs(turned - first).min() + 1e-12
            folded += abs(own - first) > np.pi
        assert away(robot, [TIP], found.q, np.array([target.real, target.imag])) < 1e-9
    assert folded > 0  # limits kept some of them more than half a turn away


@pytest.mark.parametrize(("half", "wanted"), [(3.1, 2.0), (3.2, 2.0), (5.0, 2.0 - 2.0 * np.pi)])
def test_whole_turns_are_taken_off_within_limits_alone(half, wanted):
    bounds = np.array([[-half, half]])
    assert wound(np.array([2.0]), np.array([-3.0]), [0], bounds) == pytest.approx([wanted])


def test_turns_of_a_screw_are_kept():
    robot = single(cc.joints.Helical((0, 0, 1), 0.1))
    found = cc.inverse_kinematics(robot, [cc.Output("o", "body", "R", axes="z")], [5.0])
    assert found.q[0] == pytest.approx(50.0)


# --- joints that follow others ----------------------------------------------------------------


def gripper(multiplier: float = -0.5, limits: object = None) -> cc.Mechanism:
    """Planar arm whose last joint follows the one before it, with an offset of 0.2 rad."""
    finger = cc.Body("finger", ABOUT_Z, "fore", cc.Pose((0.7, 0, 0)), SMALL, limits)
    follows = cc.robot.Mimic("finger", of="fore", multiplier=multiplier, offset=0.2)
    return cc.Mechanism("gripper", [*links(), finger], mimics=[follows])


FINGER = cc.Output("tip", "finger", "R2", point=(0.3, 0, 0))


def tip(upper: float, fore: float, finger: float) -> np.ndarray:
    """Tip of the gripper, from complex numbers."""
    turns = np.exp(1j * np.cumsum([upper, fore, finger]))
    place = turns @ [1.0, 0.7, 0.3]
    return np.array([place.real, place.imag])


def test_joints_that_follow_others_move_with_them():
    robot = gripper()
    for upper, fore in ((0.3, 0.9), (-1.1, 0.4), (2.0, -1.2)):
        target = tip(upper, fore, 0.2 - 0.5 * fore)
        found = cc.inverse_kinematics(robot, [FINGER], target)
        assert found.solved, found.why
        q = dict(zip(robot.freedom_names, found.q, strict=True))
        assert q["finger"] == pytest.approx(0.2 - 0.5 * q["fore"], abs=1e-12)
        assert tip(q["upper"], q["fore"], q["finger"]) == pytest.approx(target, abs=1e-9)


def test_limits_of_a_joint_that_follows_limit_the_one_it_follows():
    # The finger between 0 and 0.1 rad lets the forearm turn between 0.2 and 0.4 rad.
    robot = gripper(limits=(0.0, 0.1))
    inside, outside = (tip(0.5, fore, 0.2 - 0.5 * fore) for fore in (0.399, 0.401))
    assert cc.inverse_kinematics(
        robot, [FINGER], inside, robot.coupled(np.array([0.4, 0.3, 0]))
    ).solved
    found = cc.inverse_kinematics(robot, [FINGER], outside, starts=5)
    assert not found.solved
    assert "fore at its upper limit 0.4" in found.why


def test_bodies_that_stand_still_hold_the_joints_coupled_to_them():
    robot = gripper()
    upper = cc.inverse_kinematics(robot, [TIP], [1.0, 1.0], fixed=("upper",), starts=1)
    assert upper.q[0] == 0.0
    jaws = [
        cc.Body("hand", cc.joints.Fixed()),
        *(cc.Body(side, ABOUT_Z, "hand", inertia=SMALL) for side in ("left", "right")),
    ]
    pair = cc.Mechanism("jaws", jaws, mimics=[cc.robot.Mimic("right", of="left")])
    for moved, fixed in (("left", "right"), ("right", "left")):
        output = cc.Output("tip", moved, "R2", point=(0.1, 0, 0))
        assert cc.inverse_kinematics(pair, [output], [0.0, 0.1]).solved
        with pytest.raises(OutputError, match="joints coupled to bodies in `fixed`"):
            cc.inverse_kinematics(pair, [output], [0.0, 0.1], fixed=(fixed,))


# --- bad input: class and place ----------------------------------------------------------------

ARM, NAN = arm(), float("nan")
LIMITED = two_links(None, (0.2, 1.5))
BAD: list[tuple[type[ConcurError], str, object, object, object, dict[str, object]]] = [
    (ShapeError, "`target`", two_links(), [TIP], [1.0], {}),
    (NonFiniteError, "`target`", two_links(), [TIP], [1.0, NAN], {}),
    (ShapeError, "`target`", two_links(), [TIP], "there", {}),
    (ShapeError, "`target`", two_links(), [TIP], [1.1e12, 0.0], {}),
    (ShapeError, "`target`", two_links(), [TIP], np.eye(4), {}),
    (ShapeError, "`target`", ARM, [TOOL], np.diag([1.1, 1, 1, 1]), {}),
    (ShapeError, "`target`", ARM, [TOOL], np.diag([-1.0, 1, 1, 1]), {}),
    (ShapeError, "`hand` at target[3:7]", ARM, [TOOL], [0, 0, 0, 0, 0, 0, 1.0011], {}),
    (ShapeError, "`q0`", two_links(), [TIP], [1, 0], {"q0": [0, 0, 0]}),
    (NonFiniteError, "`q0`", two_links(), [TIP], [1, 0], {"q0": [0, np.inf]}),
    (ShapeError, "`q0`, joint of `fore`", LIMITED, [TIP], [1, 0], {"q0": [0, 0.2 - 1e-8]}),
    (UnknownNameError, "", two_links(), [cc.Output("o", "fort", "R2")], [1, 0], {}),
    (UnknownNameError, "", two_links(), [TIP], [1, 0], {"fixed": ("uper",)}),
    (OutputError, "`fixed`", two_links(), [TIP], [1, 0], {"fixed": "upper"}),
    (OutputError, "`outputs`", two_links(), [TIP], [1, 0], {"fixed": ("fore",)}),
    (OutputError, "`outputs`", two_links(), [], [], {}),
    (OutputError, "`outputs`", two_links(), [TIP, TIP], [1, 0, 1, 0], {}),
    (OutputError, "`outputs`", two_links(), TIP, [1, 0], {}),
    (OutputError, "`robot`", cc.reduce(cc.robots.rover_arm()), [HAND], [1, 0, 0], {}),
    (OutputError, "output `o`", ARM, [cc.Output("o", "hand", "SO2")], [1.0], {}),
    (ShapeError, "`starts`", two_links(), [TIP], [1, 0], {"starts": 0}),
    (ShapeError, "`iterations`", two_links(), [TIP], [1, 0], {"iterations": 0.5}),
    (ShapeError, "`seed`", two_links(), [TIP], [1, 0], {"seed": -1}),
    (ShapeError, "`tolerance`", two_links(), [TIP], [1, 0], {"tolerance": 0.0}),
]


@pytest.mark.parametrize(("kind", "place", "robot", "outputs", "target", "options"), BAD)
def test_bad_input_is_named(kind, place, robot, outputs, target, options):
    settings = {name: value for name, value in options.items() if name != "q0"}
    with pytest.raises(ConcurError) as caught:
        InverseKinematicsSolver(robot, outputs, **settings).solve(target, options.get("q0"))
    assert type(caught.value) is kind
    assert place in caught.value.where


def test_a_start_on_its_limits_and_a_target_far_away_are_taken():
    far = InverseKinematicsSolver(two_links(), [TIP], starts=1).solve([0.9e12, 0.0])
    assert far.residual == pytest.approx(0.9e12)
    assert cc.inverse_kinematics(LIMITED, [TIP], [1, 0], [0, 0.2 - 1e-10]).q[1] >= 0.2
