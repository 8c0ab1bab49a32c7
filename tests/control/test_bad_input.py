"""Wrong input raises errors with place, expected and received value, and remedy."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur.control import Servo
from concur.errors import (
    ConcurError,
    InfeasibleReferenceError,
    NonFiniteError,
    OutputError,
    ShapeError,
    SingularConfigurationError,
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
from tests.oracles import CASE_STUDY
from tests.reduction._staged import satellite

SERVO = case_study()
MODEL = SERVO.model
BASE, HAND = SERVO.outputs
SAMPLE = case_study_sample(0.0)


def servo(outputs: object = (BASE, HAND), **gains: object) -> Servo:
    return Servo(MODEL, outputs, **{"stiffness": 1.0, "damping": 1.0, **gains})  # type: ignore[arg-type]


WEAK = Mechanism(
    "weak",
    MODEL.robot.bodies,
    MODEL.robot.wheels,
    MODEL.robot.gravity,
    ["left", "right", "turret", "upper"],
)
POSE_ARM, TURNED = arm_servo(gantry(), "SE3"), np.array([0.0, 0.0, 0.0, 0.1, 0.0, 0.0, 2.0])
HERE = ReferenceSample(np.eye(4), np.zeros(6), np.zeros(6))
INDEFINITE, OBLIQUE = np.eye(5), np.eye(5)
INDEFINITE[0, 1] = INDEFINITE[1, 0] = 2.0
OBLIQUE[0, 1] = 0.1

CALLS = {
    "short q of V": (ShapeError, "argument `q`", lambda: SERVO.lyapunov(Q0[:7], S0, SAMPLE)),
    "short twist": (
        ShapeError,
        "servo of `rover`, reference, `twist`",
        lambda: SERVO.torque(
            Q0, S0, ReferenceSample(SAMPLE.pose, SAMPLE.twist[:3], SAMPLE.acceleration[:3])
        ),
    ),
    "matrix": (ShapeError, "reference, `pose`", lambda: SERVO.torque(Q0, S0, HERE)),
    "nan in q of a margin": (NonFiniteError, "`q`", lambda: SERVO.margin([*Q0[:7], np.nan])),
    "quaternion": (ShapeError, "`hand` at q[3:7]", lambda: POSE_ARM.torque(TURNED, [0] * 6, HERE)),
    "tick, number q": (ShapeError, "`q`", lambda: SERVO.compile()(0.3, S0, SAMPLE)),
    "tick, short pose": (
        ShapeError,
        "`pose`",
        lambda: SERVO.compile()(
            Q0, S0, ReferenceSample(SAMPLE.pose[:1], SAMPLE.twist, SAMPLE.acceleration)
        ),
    ),
    "few controls": (
        OutputError,
        "servo of `weak`, controls",
        lambda: Servo(reduce(WEAK), [BASE, HAND], 1.0, 1.0),
    ),
    "SO2 that tilts": (
        OutputError,
        "servo of `rover`, output `hand`",
        lambda: servo([BASE, Output("two", "upper", "R2"), Output("hand", "fore", "SO2")]),
    ),
    **{
        f"axes {axes} of {group}": (
            OutputError,
            "output `hand`, `axes`",
            lambda group=group, axes=axes: Output("hand", "fore", group, axes=axes),
        )
        for group, axes in (("R2", "x"), ("R3", "xyq"), ("SO3", "x"), ("R", "xy"))
    },
    **{
        f"{name} = {value!r:.30}": (
            kind,
            f"servo of `rover`, `{name}`",
            lambda name=name, value=value: servo(**{name: value}),
        )
        for name in ("stiffness", "damping", "inertia")
        for kind, values in (
            (OutputError, ([-4, 9], INDEFINITE, OBLIQUE)),
            (NonFiniteError, (np.inf, np.full((5, 5), np.nan))),
            (ShapeError, (np.eye(4), [[1.0, 2.0], [1.0]], ["a", "b"])),
        )
        for value in values
    },
    **{
        f"{name} = {value!r}": (
            kind,
            f"`{name}`",
            lambda name=name, value=value: replace(SERVO, **{name: value}),
        )
        for name, value, kind in (
            ("singular_margin", 0.0, OutputError),
            ("singular_margin", np.nan, NonFiniteError),
            ("damping_threshold", 0.0, OutputError),
        )
    },
    "duration": (
        InfeasibleReferenceError,
        "`duration`",
        lambda: SERVO.audit(case_study_reference(), q0=Q0),
    ),
    "reference of others": (
        ShapeError,
        "",
        lambda: SERVO.feasibility(references.hold([0.0, 1.0, 2.0]), 1.0, Q0),
    ),
    "configurations": (ShapeError, "`configurations`", lambda: MODEL.audit(None, np.zeros((3, 4)))),
}
"""Calls beside those of the contract."""


@pytest.mark.parametrize("name", CALLS)
def test_wrong_calls_are_refused_with_their_place(name: str) -> None:
    kind, where, call = CALLS[name]
    with np.errstate(invalid="ignore"):
        refused(kind, call, where=where)


def test_too_many_outputs_are_counted() -> None:
    more = [BASE, HAND, Output("height", "turret", "R", axes="z")]
    error = refused(OutputError, lambda: servo(more), where="servo of `rover`, `outputs`")
    assert (error.outputs, error.controls) == (6, 5)


def test_outputs_that_hang_together() -> None:
    """Two points of the chassis: their distance cannot change. One point on the axle."""
    twice = [
        Output("front", "chassis", "R2", (0.25, 0, 0)),
        Output("back", "chassis", "R3", (-0.25, 0, 0)),
    ]
    on_axle = [replace(BASE, point=(0.0, 0.1, 0.0)), HAND]
    for outputs in (twice, on_axle):
        error = refused(OutputError, lambda outputs=outputs: servo(outputs), where="`outputs`")
        assert max(error.margins) < 1e-7


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


def test_threshold_of_the_margin_can_be_set() -> None:
    margin = SERVO.margin(Q0)
    wary = Servo(MODEL, [BASE, HAND], 1.0, 1.0, singular_margin=1.01 * margin)
    error = refused(SingularConfigurationError, lambda: wary.torque(Q0, S0, SAMPLE))
    assert error.margin == pytest.approx(margin)
    bold = Servo(MODEL, [BASE, HAND], 1.0, 1.0, singular_margin=0.99 * margin)
    assert np.isfinite(bold.torque(Q0, S0, SAMPLE)).all()


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
    pairs = zip(servo.motion(q, servo.velocity(q, S0)), measured.motion(q, v), strict=True)
    for mine, theirs in pairs:
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
    refused(
        ConcurError,
        lambda: SERVO.feasibility(case_study_reference(), duration, Q0),
        where="duration",
        came=str(duration),
    )
