"""Simulations that cannot start or have to stop give a reason and keep their data."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from concur import robots
from concur.control import Servo
from concur.errors import (
    ConcurError,
    SimulationError,
    SingularConfigurationError,
)
from concur.outputs import Output, Reference, references
from concur.reduction import reduce
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from concur.simulation import Integrator, RealPlant, simulate
from tests.control._cases import (
    Q0,
    S0,
    arm,
    case_study,
    case_study_reference,
    refused,
)

SERVO = case_study()
MODEL = SERVO.model
ROBOT = MODEL.robot


def run(q0: object = Q0, s0: object = S0, duration: float = 0.1, **options: object) -> object:
    given = {name: options.pop(name) for name in ("plant",) if name in options}
    loop = Integrator(**options)  # type: ignore[arg-type]
    return simulate(ROBOT, SERVO, case_study_reference(), duration, q0, s0, loop, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "name", "came"),
    [
        ({"duration": 0.0105}, "duration", "0.0105 s"),
        ({"duration": 0.0}, "duration", "0.0"),
        ({"duration": np.inf}, "duration", "inf"),
        ({"duration": 0.1, "dt": 0.2}, "duration", "0.1 s"),
        ({"duration": 1.001e6}, "duration", "1001000.0"),
        ({"dt": 0.0}, "dt", "0.0"),
        ({"dt": 9.99e-9}, "dt", "9.99e-09"),
        ({"control_period": 0.0015}, "control_period", "0.0015 s"),
        ({"control_period": 0.0}, "control_period", "0.0"),
        ({"control_period": 0.0004}, "control_period", "0.0004 s"),
    ],
)
def test_times_that_do_not_fit(options: dict[str, float], name: str, came: str) -> None:
    error = refused(
        SimulationError,
        lambda: run(**options),  # type: ignore[arg-type]
        where=f"`{name}`",
        came=came,
    )
    assert "whole number of steps" in error.expected or "above zero" in error.expected


@pytest.mark.parametrize("compiled", ["no", 2, 0], ids=repr)
def test_compiled_is_a_truth_value(compiled: object) -> None:
    where = "`compiled`"
    refused(SimulationError, lambda: run(compiled=compiled), where=where, came=repr(compiled))


@pytest.mark.parametrize(("share", "runs"), [(0.9, True), (1.1, False)])
def test_velocities_at_the_start_that_no_robot_has(share: float, runs: bool) -> None:
    """A momentum of the plant's own moves the base faster than anything that is integrated.

    Thesis: CON7.
    """
    inertia = Inertia(2.0, moments=(1.0, 1.0, 1.0))
    hub = Body("hub", joints.Planar(), inertia=inertia)
    hand = Body("hand", joints.Revolute((0, 0, 1)), "hub", Pose((1.0, 0.0, 0.0)), inertia)
    robot = Mechanism("pair", [hub, hand])
    servo = Servo(reduce(robot), [Output("hand", "hand", "SO2")], np.eye(1), 2 * np.eye(1))
    momentum = [share * 4e6, 0.0, 0.0, 0.0, 0.0, 0.0]

    def start() -> None:
        still = references.hold(0.0, "SO2")
        simulate(robot, servo, still, 1e-3, np.zeros(4), [0.0], plant=RealPlant(momentum=momentum))

    if runs:
        start()
    else:
        refused(SimulationError, start, where="start", expected="velocities below 1e+06")


def test_plant_of_another_structure() -> None:
    for plant in (arm(), _renamed(), _rewired()):
        refused(
            SimulationError,
            lambda plant=plant: run(plant=plant),
            where="`plant`",
            expected="the bodies, joints and drives of `rover`",
            came="another structure",
            cure="parameters only",
        )


def _renamed() -> Mechanism:
    bodies = [
        Body("claw" if b.name == "fore" else b.name, b.joint, b.parent, b.placement, b.inertia)
        for b in ROBOT.bodies
    ]
    return Mechanism("renamed", bodies, ROBOT.wheels, ROBOT.gravity)


def _rewired() -> Mechanism:
    drives = ["left", "right", "turret", "upper"]
    return Mechanism("rewired", ROBOT.bodies, ROBOT.wheels, ROBOT.gravity, drives)


def check_finished_part(error: ConcurError, reference: Reference, q0: np.ndarray) -> None:
    part = error.run
    assert part.t[-1] == pytest.approx(error.time)
    assert 0.0 < error.time < 4.0
    for name, values in part.arrays.items():
        rows = 2 if name.endswith("_range") else len(part.t)
        assert len(values) == rows, name
        assert np.isfinite(values).all(), name
    assert_allclose(part.q[0], q0)
    assert np.abs(part.deviation[: len(part.t) // 2]).max() < 1e-6
    assert_allclose(part.reference[-1], reference(part.t[-1]).pose, atol=1e-12)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("method", ["rk4", "rkmk4", "dop853"])
def test_hand_led_out_of_reach(method: str) -> None:
    output = SERVO.output(Q0)
    away = references.stack(
        references.hold(output[:2]), references.polynomial([output[2:], [0.0, 0.4, 0.0]])
    )
    assert not SERVO.feasibility(away, 3.0, Q0).feasible
    error = refused(
        SimulationError,
        lambda: simulate(
            ROBOT,
            SERVO,
            away,
            3.0,
            Q0,
            np.zeros(5),
            dt=Integrator(method, 2e-3 if method != "dop853" else 1e-2),
        ),
        where="simulation of `rover`, t = ",
        cure="The run up to here is in the attribute `run`.",
    )
    assert "margin" in str(error)
    assert "singular" in str(error)
    check_finished_part(error, away, Q0)


def test_start_that_is_singular() -> None:
    q = Q0.copy()
    q[7] = 0.0
    error = refused(SingularConfigurationError, lambda: run(q), where="`rover`", came="`hand`")
    assert error.margin < 1e-10
    assert_allclose(error.q, q)


class _Broken(Reference):
    pose_size = size = 5

    def _evaluate(self, times: np.ndarray) -> tuple[np.ndarray, ...]:
        parts = [part.copy() for part in case_study_reference().sample(times)]
        parts[0][times > 0.0501] = np.nan
        return tuple(parts)


@pytest.mark.parametrize("hold", [None, 0.01])
def test_reference_that_breaks_off_gives_no_torque(hold: float | None) -> None:
    error = refused(
        SimulationError,
        lambda: simulate(
            ROBOT,
            SERVO,
            _Broken(),  # type: ignore[arg-type]
            0.1,
            Q0,
            S0,
            dt=Integrator(control_period=hold),
        ),
        where="simulation of `rover`, t = 0.0",
    )
    part = error.run
    assert 0.04 < part.t[-1] < 0.07
    for name in ("t", "q", "v", "s"):
        assert np.isfinite(getattr(part, name)).all(), name


@pytest.mark.by_default(1)
@pytest.mark.parametrize("hold", [0.01, None])
def test_law_too_stiff_for_the_step_is_named(hold: float | None) -> None:
    robot = robots.free_flyer()
    stiff = Servo(reduce(robot), [Output("hand", "tool", "SE3")], 1e12, 1e6)
    q0 = robot.neutral()
    q0[7:] = [0.5, -1.5, 2.1, 0.2, -0.4, 0.8]
    aim = references.hold(stiff.output(q0) + 0.05 * np.eye(7)[0], "SE3")
    error = refused(
        SimulationError,
        lambda: simulate(robot, stiff, aim, 1.0, q0, np.zeros(6), dt=Integrator("rk4", 0.01, hold)),
        came="fastest rate 1e+06 /s is too stiff for steps of 0.01 s",
        cure="take a step below 1e-06 s" if hold is None else "hold the torque for less than 1e-06",
    )
    assert "lost" not in str(error)
    assert error.run.t.shape == (1,)
