"""Wrong input raises errors with place, expected and received value, and remedy."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur import robots
from concur.control import Servo
from concur.errors import (
    ConcurError,
    DescriptionError,
    InfeasibleReferenceError,
    NonFiniteError,
    OutputError,
    ShapeError,
    SingularConfigurationError,
    UnknownNameError,
)
from concur.outputs import Output, Reference, ReferenceSample, references
from concur.reduction import reduce
from concur.robot import Mechanism
from tests.control._cases import (
    Q0,
    S0,
    arm_servo,
    case_study,
    case_study_reference,
    case_study_sample,
    gantry,
    refused,
)
from tests.control._floating_cases import CHECK_A_Q0, CHECK_A_S0
from tests.export._fmu_cases import flyer
from tests.oracles import CASE_STUDY, rover
from tests.reduction._staged import satellite

SERVO = case_study()
MODEL = SERVO.model
BASE, HAND = SERVO.outputs
SAMPLE = case_study_sample(0.0)


def servo(outputs: object = (BASE, HAND), **gains: object) -> Servo:
    return Servo(MODEL, outputs, **{"stiffness": 1.0, "damping": 1.0, **gains})  # type: ignore[arg-type]


# The state and the sample


def test_wrong_number_of_coordinates() -> None:
    for call in (SERVO.torque, SERVO.error, SERVO.lyapunov):
        refused(
            ShapeError,
            lambda call=call: call(Q0[:7], S0, SAMPLE),
            where="`rover`, argument `q`",
            expected="shape (8,)",
            came="shape (7,)",
        )


def test_wrong_number_of_shape_velocities() -> None:
    refused(
        ShapeError,
        lambda: SERVO.torque(Q0, [*S0, 0.0], SAMPLE),
        where="`rover`, argument `s`",
        expected="shape (5,)",
        came="shape (6,)",
    )


def test_sample_of_another_size() -> None:
    short = ReferenceSample(SAMPLE.pose[:4], SAMPLE.twist, SAMPLE.acceleration)
    refused(
        ShapeError,
        lambda: SERVO.torque(Q0, S0, short),
        where="servo of `rover`, reference, `pose`",
        expected="shape (5,)",
        came="shape (4,)",
    )
    short = ReferenceSample(SAMPLE.pose, SAMPLE.twist[:3], SAMPLE.acceleration[:3])
    refused(
        ShapeError,
        lambda: SERVO.torque(Q0, S0, short),
        where="servo of `rover`, reference, `twist`",
        expected="shape (5,)",
        came="shape (3,)",
    )


def test_pose_of_a_body_for_outputs_that_are_points() -> None:
    pose = ReferenceSample(np.eye(4), np.zeros(6), np.zeros(6))
    refused(ShapeError, lambda: SERVO.torque(Q0, S0, pose), expected="5 numbers")


@pytest.mark.parametrize("k", [0, 2, 7])
def test_nan_in_the_configuration(k: int) -> None:
    q = Q0.copy()
    q[k] = np.nan
    for call in (SERVO.torque, SERVO.error, SERVO.lyapunov):
        error = refused(
            NonFiniteError,
            lambda call=call: call(q, S0, SAMPLE),
            where="`rover`, argument `q`",
            expected="finite numbers",
            came=f"[{k}] = nan",
        )
        assert error.entries == (k,)
    refused(NonFiniteError, lambda: SERVO.margin(q), came=f"[{k}] = nan")


def test_infinity_in_the_shape_velocities() -> None:
    s = S0.copy()
    s[4] = -np.inf
    refused(NonFiniteError, lambda: SERVO.torque(Q0, s, SAMPLE), where="`s`", came="[4] = -inf")


@pytest.mark.parametrize("name", ["pose", "twist", "acceleration"])
def test_nan_in_the_reference(name: str) -> None:
    parts = {key: getattr(SAMPLE, key).copy() for key in ("pose", "twist", "acceleration")}
    parts[name][1] = np.nan
    refused(
        NonFiniteError,
        lambda: ReferenceSample(**parts),
        where=f"reference sample, {name}",
        expected="finite numbers",
        came="nan",
    )


def test_sample_of_a_function_is_checked_when_it_is_used() -> None:
    bad = references.from_function(lambda t: ReferenceSample([np.nan] * 5, [0] * 5, [0] * 5), 5, 5)
    refused(NonFiniteError, lambda: SERVO.torque(Q0, S0, bad(0.0)), where="pose", came="nan")
    refused(NonFiniteError, lambda: SERVO.feasibility(bad, 1.0, Q0), where="pose", came="nan")


def test_quaternion_that_is_no_rotation() -> None:
    pose = arm_servo(gantry(), "SE3")
    q = np.array([0.0, 0.0, 0.0, 0.1, 0.0, 0.0, 2.0])
    here = ReferenceSample(np.eye(4), np.zeros(6), np.zeros(6))
    for call in (
        lambda: pose.feasibility(references.hold(np.eye(4)), 1.0, q),
        lambda: pose.torque(q, np.zeros(6), here),
    ):
        refused(
            ShapeError,
            call,
            where="quaternion of `hand` at q[3:7]",
            expected="unit norm",
            came="norm 2.0025",
            cure="(x, y, z, w)",
        )


@pytest.mark.parametrize(
    ("q", "s", "expected"),
    [(Q0[:7], S0, "shape (8,)"), (0.3, S0, "shape (8,)"), (Q0, S0[:2], "shape (5,)")],
)
def test_tick_refuses_another_size(q: object, s: object, expected: str) -> None:
    tick = SERVO.compile()
    refused(ShapeError, lambda: tick(q, s, SAMPLE), expected=expected)


def test_tick_refuses_a_sample_of_another_size() -> None:
    tick = SERVO.compile()
    for size in (1, 4):
        short = ReferenceSample(SAMPLE.pose[:size], SAMPLE.twist, SAMPLE.acceleration)
        refused(ShapeError, lambda short=short: tick(Q0, S0, short), expected="shape (5,)")


# Outputs


def test_too_many_outputs() -> None:
    more = [BASE, HAND, Output("height", "turret", "R", axes="z")]
    error = refused(
        OutputError,
        lambda: servo(more),
        where="servo of `rover`, `outputs`",
        expected="5 output coordinates",
        came="6 (base R2 2, hand R3 3, height R 1)",
        cure="Remove outputs or drive more joints.",
    )
    assert (error.outputs, error.controls) == (6, 5)


def test_no_outputs() -> None:
    refused(OutputError, lambda: servo([]), came="0 (none)", cure="Add outputs")


def test_fewer_controls_than_shape_velocities() -> None:
    robot = rover(CASE_STUDY)
    weak = Mechanism(
        "weak", robot.bodies, robot.wheels, robot.gravity, ["left", "right", "turret", "upper"]
    )
    refused(
        OutputError,
        lambda: Servo(reduce(weak), [BASE, HAND], 1.0, 1.0),
        where="servo of `weak`, controls",
        expected="5 controls for the shape velocities left, right, turret, upper, fore",
        came="4: left, right, turret, upper",
        cure="`actuated`",
    )


def test_same_name_twice() -> None:
    refused(OutputError, lambda: servo([BASE, replace(HAND, name="base")]), came="`base` twice")


def test_unknown_body() -> None:
    refused(
        UnknownNameError,
        lambda: servo([BASE, replace(HAND, body="forr")]),
        where="`rover`",
        expected="chassis, left, right, turret, upper, fore",
        came="'forr'",
        cure="'fore'",
    )


def test_unknown_group() -> None:
    refused(
        UnknownNameError,
        lambda: Output("hand", "fore", "SE(3)"),
        where="output `hand`, `group`",
        expected="R3xSO3, SE3, SO3, R3, SE2, R2, SO2, R",
        came="'SE(3)'",
        cure="'SE3'",
    )


@pytest.mark.parametrize(
    ("group", "axes"), [("R2", "xx"), ("R2", "x"), ("R3", "xyq"), ("SO3", "x"), ("R", "")]
)
def test_axes_that_do_not_fit(group: str, axes: str) -> None:
    refused(
        OutputError,
        lambda: Output("hand", "fore", group, axes=axes),
        where="output `hand`, `axes`",
        came=repr(axes),
        cure='axes="z"',
    )


def test_point_that_is_none() -> None:
    refused(
        ShapeError, lambda: Output("hand", "fore", "R3", (0.1, 0.2)), where="output `hand`, `point`"
    )
    refused(
        NonFiniteError,
        lambda: Output("hand", "fore", "R3", (0.1, 0.2, np.nan)),
        where="output `hand`, `point`",
        came="[2] = nan",
    )


@pytest.mark.parametrize("group", ["SE2", "SO2"])
def test_planar_group_on_a_body_that_tilts(group: str) -> None:
    others = [BASE] if group == "SE2" else [BASE, Output("two", "upper", "R2")]
    refused(
        OutputError,
        lambda: servo([*others, Output("hand", "fore", group)]),
        where="servo of `rover`, output `hand`",
        expected=f"z axis only, with its x axis not along it, for group {group}",
        came="`fore`, which can tilt",
        cure='"SO3" or "R3xSO3"',
    )


def test_outputs_that_hang_together() -> None:
    # Two points of the chassis: their distance cannot change.
    twice = [
        Output("front", "chassis", "R2", (0.25, 0, 0)),
        Output("back", "chassis", "R3", (-0.25, 0, 0)),
    ]
    error = refused(OutputError, lambda: servo(twice), came="singular in every configuration")
    assert max(error.margins) < 1e-7
    assert "axle" not in error.cure  # neither point is on it


# Options and gains


def test_misspelt_options_are_named() -> None:
    with pytest.raises(TypeError, match="stifness"):
        Servo(MODEL, [BASE, HAND], stifness=1.0, damping=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="poit"):
        Output("hand", "fore", "R3", poit=(0, 0, 0))  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="q_0"):
        SERVO.feasibility(case_study_reference(), 1.0, q_0=Q0)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["stiffness", "damping", "inertia"])
@pytest.mark.parametrize(("value", "lowest"), [([-4, 9], "-4"), (0.0, "0"), ([[1, -2], 9], "-2")])
def test_gain_that_is_not_positive(name: str, value: object, lowest: str) -> None:
    refused(
        OutputError,
        lambda: servo(**{name: value}),
        where=f"servo of `rover`, `{name}`",
        expected="a symmetric positive definite gain",
        came=f"smallest eigenvalue {lowest}",
        cure="above zero",
    )


def test_gain_with_positive_entries_that_is_indefinite() -> None:
    matrix = np.eye(5)
    matrix[0, 1] = matrix[1, 0] = 2.0
    refused(OutputError, lambda: servo(stiffness=matrix), came="smallest eigenvalue -1")


def test_gain_that_is_not_symmetric() -> None:
    matrix = np.eye(5)
    matrix[0, 1] = 0.1
    refused(
        OutputError,
        lambda: servo(damping=matrix),
        where="servo of `rover`, `damping`",
        expected="symmetric",
        came="an unsymmetric matrix",
    )


@pytest.mark.parametrize("value", [np.nan, np.full((5, 5), np.nan), [1.0, np.nan], np.inf])
def test_gain_that_is_not_finite(value: object) -> None:
    with np.errstate(invalid="ignore"):
        error = refused(
            (OutputError, NonFiniteError),  # type: ignore[arg-type]
            lambda: servo(stiffness=value),
            where="servo of `rover`, `stiffness`",
        )
    assert "nan" in error.came or "inf" in error.came


@pytest.mark.parametrize(
    ("value", "expected", "came"),
    [
        (np.eye(4), "(5, 5)", "4 entries"),
        ([1.0, 2.0, 3.0], "(5, 5)", "3 entries"),
        ([[1.0, 2.0, 3.0], 1.0], "(2,)", "(3,)"),
        ([[1.0, 2.0], [1.0]], "(3,)", "(1,)"),
    ],
)
def test_gain_of_another_size(value: object, expected: str, came: str) -> None:
    refused(
        ShapeError,
        lambda: servo(stiffness=value),
        where="servo of `rover`, `stiffness`",
        expected=expected,
        came=came,
    )


@pytest.mark.parametrize("value", ["high", ["a", "b"], [None, 1.0], None, "45"])
def test_gain_that_is_no_number(value: object) -> None:
    refused(ShapeError, lambda: servo(stiffness=value), where="`stiffness`", expected="number")


@pytest.mark.parametrize("size", [1, 2])
@pytest.mark.parametrize("name", ["stiffness", "damping", "inertia", "integral"])
def test_gain_with_too_many_axes(name: str, size: int) -> None:
    """An entry for each row hides a third axis where the output has one coordinate."""
    output = Output("hand", "fore", "R2" if size == 2 else "R")
    model = MODEL
    right, deep = np.eye(size), np.eye(size)[:, :, None]
    gains = {"stiffness": 1.0, "damping": 4.0, "integral": 0.1}
    assert np.array_equal(getattr(Servo(model, [output], **gains | {name: right}), name), right)
    for value in (deep, deep.tolist(), [deep.tolist()]):
        with pytest.raises(ShapeError) as caught:
            Servo(model, [output], **gains | {name: value})
        assert f"`{name}`" in caught.value.where


# The robot


def test_actuated_base() -> None:
    robot = rover(CASE_STUDY)
    refused(
        DescriptionError,
        lambda: Mechanism(
            "rover", robot.bodies, robot.wheels, robot.gravity, ["chassis", "left", "right"]
        ),
        where="`actuated`",
        expected="joints other than the base",
        came="the base `chassis`",
        cure="Remove it",
    )


def test_output_point_on_the_axle() -> None:
    on_axle = replace(BASE, point=(0.0, 0.1, 0.0))
    error = refused(
        OutputError,
        lambda: servo([on_axle, HAND]),
        where="servo of `rover`, `outputs`",
        expected="commanded independently",
        came="nothing moves output `base` along (0, 1, 0) of body `chassis`",
        cure="(0.0, 0.1, 0.0) of `chassis` lies on the wheel axle",
    )
    assert max(error.margins) < 1e-7


# Singular configurations and references out of reach

OVER_TURRET = replace(CASE_STUDY, l2=0.0)
"""The first link has no length: the hand can stand straight above the turret's axis."""
FOLDED = np.arccos(-OVER_TURRET.l3 / OVER_TURRET.l4 * np.cos(1.2))


def test_hand_straight_above_the_turret() -> None:
    above = case_study(OVER_TURRET)
    q = np.array([0.2, 0.1, 0.4, 0.0, 0.0, 0.7, 1.2, FOLDED - 1.2])
    turret, hand = (above.model.robot.pose(q, body) for body in ("turret", "fore"))
    place = hand[:3, :3] @ [0, OVER_TURRET.l4, 0] + hand[:3, 3]
    assert_allclose(place[:2], turret[:2, 3], atol=1e-14)
    error = refused(
        SingularConfigurationError,
        lambda: above.torque(q, S0, SAMPLE),
        where="servo of `rover`",
        expected="margin above 0.001",
        came="`hand` along (1, ",
        cure="No torque is returned.",
    )
    assert error.margin < 1e-10
    assert_allclose(error.q, q)
    nearby = q.copy()
    nearby[7] += 0.3
    assert np.isfinite(above.torque(nearby, S0, SAMPLE)).all()


def test_stretched_arm() -> None:
    q = Q0.copy()
    q[7] = 0.0
    error = refused(SingularConfigurationError, lambda: SERVO.torque(q, S0, SAMPLE), came="`hand`")
    assert error.margin < 1e-10


def test_threshold_of_the_margin_can_be_set() -> None:
    margin = SERVO.margin(Q0)
    wary = Servo(MODEL, [BASE, HAND], 1.0, 1.0, singular_margin=1.01 * margin)
    error = refused(SingularConfigurationError, lambda: wary.torque(Q0, S0, SAMPLE))
    assert error.margin == pytest.approx(margin)
    bold = Servo(MODEL, [BASE, HAND], 1.0, 1.0, singular_margin=0.99 * margin)
    assert np.isfinite(bold.torque(Q0, S0, SAMPLE)).all()


@pytest.mark.parametrize(
    ("option", "kind"),
    [
        ({"singular_margin": 0.0}, OutputError),
        ({"singular_margin": float("nan")}, NonFiniteError),
        ({"singular_margin": "small"}, ShapeError),
        ({"damping_threshold": -0.1}, OutputError),
        ({"use_measured_velocity": "no"}, OutputError),
    ],
)
def test_options_out_of_range(option: dict[str, object], kind: type[ConcurError]) -> None:
    (name,) = option
    refused(kind, lambda: replace(SERVO, **option), where=name)  # type: ignore[arg-type]


def far_circle() -> Reference:
    """The base stands; the far side of the hand's circle is out of reach."""
    output = SERVO.output(Q0)
    reach = CASE_STUDY.l2 + CASE_STUDY.l3 + CASE_STUDY.l4
    center = output[2:] - [0.0, reach, 0.0]
    return references.stack(
        references.hold(output[:2]),
        references.circle(center, reach, 4.0, phase=np.pi / 2),
    )


def test_circle_out_of_reach() -> None:
    """Thesis: CON4."""
    path = SERVO.feasibility(far_circle(), 4.0, Q0)
    assert not path.feasible
    assert 0.0 < path.reached < 4.0
    assert f"lost at t = {path.reached:.3g} s" in path.why
    assert len(path.times) == len(path.configurations) == len(path.speeds)
    assert path.times[-1] < path.reached
    for t, q in zip(path.times, path.configurations, strict=True):
        assert_allclose(SERVO.output(q), far_circle()(t).pose, atol=1e-6)
    error = refused(
        InfeasibleReferenceError,
        lambda: path.require("rover"),
        where="reference of `rover`",
        expected="can follow",
        came=path.why,
        cure="into reach",
    )
    assert error.time == path.reached
    assert error.margin == path.margin
    row = SERVO.audit(far_circle(), 4.0, Q0)["CON4"]
    assert row.status.value == "fails"
    assert row.why == path.why


def test_path_that_is_feasible_says_so() -> None:
    path = SERVO.feasibility(case_study_reference(), 3.0, Q0)
    assert path.feasible
    assert path.reached == 3.0
    assert path.margin == pytest.approx(min(SERVO.margin(q) for q in path.configurations))
    for k in (0, 50, 150):
        sample = case_study_reference()(path.times[k])
        assert_allclose(SERVO.output(path.configurations[k]), sample.pose, atol=1e-9)
        velocity = SERVO.decoupling(path.configurations[k]) @ path.speeds[k]
        assert_allclose(velocity, sample.twist, atol=1e-9)
    path.require("rover")
    assert SERVO.audit(case_study_reference(), 3.0, Q0).holds


def test_path_below_the_margin_is_not_feasible() -> None:
    full = SERVO.feasibility(case_study_reference(), 5.0, Q0)
    margins = np.array([SERVO.margin(q) for q in full.configurations])
    threshold = (margins[0] + margins.min()) / 2
    wary = Servo(MODEL, [BASE, HAND], 1.0, 1.0, singular_margin=threshold)
    path = wary.feasibility(case_study_reference(), 5.0, Q0)
    assert not path.feasible
    first = int(np.argmax(margins < threshold))
    assert path.reached == pytest.approx(full.times[first])
    assert f"margin {margins[first]:.2g}, nothing moves" in path.why


@pytest.mark.parametrize("duration", [-1.0, 0.0, np.nan, np.inf])
def test_duration_that_is_none(duration: float) -> None:
    from concur.errors import ConcurError

    refused(
        ConcurError,
        lambda: SERVO.feasibility(case_study_reference(), duration, Q0),
        where="duration",
        came=str(duration),
    )


def test_reference_of_other_outputs() -> None:
    refused(
        ShapeError,
        lambda: SERVO.feasibility(references.hold([0.0, 1.0, 2.0]), 1.0, Q0),
        expected="5 pose and 5 twist coordinates",
        came="3 and 3",
    )


def test_duration_is_asked_for() -> None:
    refused(
        InfeasibleReferenceError,
        lambda: SERVO.audit(case_study_reference(), q0=Q0),
        where="`duration`",
        came="no value",
        cure="audit(reference, duration, q0)",
    )


def test_a_number_that_is_none_is_said_as_it_is() -> None:
    refused(
        NonFiniteError,
        lambda: Servo(MODEL, SERVO.outputs, float("nan"), 1.0),
        where="`stiffness`",
        came="nan",
    )
    with pytest.raises(NonFiniteError) as caught:
        Servo(MODEL, SERVO.outputs, float("nan"), 1.0)
    assert caught.value.came == "nan"


def test_configurations_of_another_size_are_refused_as_rows() -> None:
    refused(
        ShapeError,
        lambda: MODEL.audit(None, np.zeros((3, 4))),
        where="`configurations`",
        expected="(k, 8)",
        came="(3, 4)",
    )


def test_flat_pose_without_its_group_is_told_to_name_it() -> None:
    robot = robots.free_flyer()
    servo = Servo(reduce(robot), [Output("hand", "tool", "SE3")], 4.0, 4.0)
    still = references.hold(servo.output(robot.neutral()))
    refused(ShapeError, lambda: servo.audit(still, 1.0), cure='hold(pose, "SE3")')


def test_servo_without_the_stage_of_an_idle_joint_names_it() -> None:
    robot, turn = satellite(), Output("turn", "elbow", "R", axes="y", point=(0.3, 0.0, 0.1))
    error = refused(OutputError, lambda: Servo(reduce(robot), [turn], 1.0, 1.0))
    assert 'reduce(robot, stages="auto")' in error.cure
    assert Servo(reduce(robot, stages="auto"), [turn], 1.0, 1.0).ns == 2


def test_servo_for_measured_velocities_differs_in_nothing_else() -> None:
    servo = case_study()
    q = np.array(Q0)
    expected = servo.decoupling(q)
    measured = replace(servo, use_measured_velocity=True)
    assert measured.nw == servo.nv
    assert not servo.use_measured_velocity
    assert replace(measured, use_measured_velocity=False).nw == servo.ns
    assert_allclose(measured.decoupling(q), expected, rtol=0.0, atol=0.0)
    v = servo.model.velocity(q, np.array(S0))
    for mine, theirs in zip(servo.output_motion(q, S0), measured.output_motion(q, v), strict=True):
        assert_allclose(mine, theirs, rtol=1e-12, atol=1e-12)


def test_a_sample_of_a_reference_for_another_group_is_refused() -> None:
    """`screw` is made for R3xSO3 by default: on SE3 the sizes agree, the velocities do not."""
    servo = flyer()
    pose, motion = servo.model.robot.pose(CHECK_A_Q0, "tool"), [0.1, 0.0, 0.0, 0.0, 0.0, 0.2]
    right, wrong = (references.screw(pose, motion, group=name) for name in ("SE3", "R3xSO3"))
    tick = servo.compile(interpreted=True)
    for law in (tick, servo.torque, servo.error, servo.lyapunov):
        law(CHECK_A_Q0, CHECK_A_S0, right(1.0))
        with pytest.raises(OutputError, match=r"`hand`.*SE3.*R3xSO3"):
            law(CHECK_A_Q0, CHECK_A_S0, wrong(1.0))
        law(CHECK_A_Q0, CHECK_A_S0, right(1.0))
        law(CHECK_A_Q0, CHECK_A_S0, ReferenceSample(pose, motion, np.zeros(6)))  # of any group
    again = pickle.loads(pickle.dumps(wrong(1.0)))
    with pytest.raises(OutputError, match="R3xSO3"):
        servo.torque(CHECK_A_Q0, CHECK_A_S0, again)
