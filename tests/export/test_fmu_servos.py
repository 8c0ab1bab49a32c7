"""Servos as units for co-simulation: torques of the package, and never a wrong one."""

from dataclasses import replace

import numpy as np
import pytest
from fmpy.validation import validate_fmu
from numpy.testing import assert_allclose, assert_array_equal

from concur import Constraints, robots
from concur.control import Servo, TickStatus
from concur.outputs import Output
from concur.outputs.references import rest_to_rest
from concur.reduction import reduce
from concur.robot import Capsule, Obstacle
from tests.control._cases import Q0
from tests.control._floating_cases import CHECK_A_MOMENTUM, CHECK_A_Q0
from tests.export._fmu_cases import CASES, EACH, FLYER, HOLD, drawn, fill, flyer, parts
from tests.export._units import OK, VERSIONS, WARNING, Unit, with_compiler
from tests.oracles import assert_close


@pytest.mark.parametrize(("case", "version"), EACH)
def test_unit_is_valid(workshop, case, version):
    assert validate_fmu(str(workshop.path("servo", case, version))) == []


@pytest.mark.parametrize(("case", "version"), EACH)
def test_servo_gives_the_torques_of_the_package(units, case, version):
    make, q0, *_ = CASES[case]
    servo, unit = make(), units("servo", case, version)
    tick = servo.compile(interpreted=True)
    unit.start()
    for q, s, sample in drawn(servo, q0, 20):
        fill(unit, q, s, sample)
        assert_close(unit.get("u"), servo.torque(q, s, sample), 1e-12)
        tick(q, s, sample)
        buffers = tick.buffers
        for name, expected in (
            ("pivot", buffers.margin_bound),
            ("missed", buffers.acceleration_residual),
            ("scale", buffers.scale),
            ("status", buffers.status),
        ):
            assert_allclose(unit.get(name), expected, rtol=1e-12, atol=1e-12)
        before = unit.get("u")
        assert unit.step(HOLD) == OK
        assert_array_equal(unit.get("u"), before)


@pytest.mark.extended
@pytest.mark.parametrize("version", FLYER)
def test_momentum_is_an_input_that_may_change(units, version):
    servo, unit = flyer(), units("servo", "flyer", version)
    unit.start()
    assert_array_equal(unit.get("momentum"), CHECK_A_MOMENTUM)
    rng = np.random.default_rng(6)
    for q, s, sample in drawn(servo, CHECK_A_Q0, 4):
        momentum = CHECK_A_MOMENTUM + rng.normal(size=6)
        other = replace(servo, model=servo.model.at_momentum(momentum))
        fill(unit, q, s, sample, momentum=momentum)
        assert_close(unit.get("u"), other.torque(q, s, sample), 1e-11)
        assert np.abs(unit.get("u") - servo.torque(q, s, sample)).max() > 1e-3


@pytest.mark.parametrize("version", FLYER)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_no_torque_leaves_on_a_number_that_is_none(units, version, bad):
    servo, unit = flyer(), units("servo", "flyer", version)
    unit.start()
    ((q, s, sample),) = drawn(servo, CHECK_A_Q0, 1)
    good = parts(q, s, sample) | {"momentum": CHECK_A_MOMENTUM}
    for name, values in good.items():
        for k in range(len(values)):
            unit.set(**good)
            assert unit.step(HOLD) == OK
            wrong = np.array(values)
            wrong[k] = bad
            unit.set(**{name: wrong})
            assert_array_equal(unit.get("u"), np.zeros(6))
            assert unit.get("status") == [TickStatus.BAD_INPUT]
            assert unit.step(HOLD) == WARNING
            assert unit.messages[-1] == (
                WARNING,
                "A number that came in is not finite, or above 1e18.",
            )
            for output in ("u", "pivot", "missed", "scale"):
                assert np.isfinite(unit.get(output)).all()


@pytest.mark.parametrize("version", VERSIONS)
def test_status_says_that_the_law_is_singular(units, version):
    rover = units("servo", "rover", version)
    rover.start()
    stretched = np.array([*Q0[:5], 0.1, 0.0, 0.0])
    rover.set(q=stretched)
    assert rover.get("status") == [TickStatus.SINGULAR]
    assert_array_equal(rover.get("u"), np.zeros(5))


CENTRE, RADIUS, LEAST = np.array([0.23, 0.85, 0.2]), 0.08, 0.01


def clearance(robot, q):
    """Distance of the ball from the segment of the forearm, beyond the least, by its formula."""
    capsule, pose = Capsule.of(robot, "forearm"), np.asarray(robot.pose(q, "forearm"))
    a, b = (pose[:3, :3] @ np.array(end) + pose[:3, 3] for end in (capsule.start, capsule.end))
    share = np.clip((CENTRE - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0)
    return np.linalg.norm(a + share * (b - a) - CENTRE) - capsule.radius - RADIUS - LEAST


@pytest.mark.extended
@pytest.mark.parametrize("version", FLYER)
def test_unit_with_capsules_keeps_its_distance_in_a_run(tmp_path, version):
    """The unit drives the model; without the ball the forearm goes through it."""
    robot = robots.rover_arm()
    outputs = [
        Output("base", "chassis", "R2", point=(0.25, 0, 0)),
        Output("hand", "forearm", "R3", point=(0, 0.2, 0)),
    ]
    nearest = []
    for held in (False, True):
        ball = Obstacle("ball", tuple(CENTRE), tuple(CENTRE), RADIUS, distance=LEAST)
        rules = Constraints(capsule=(Capsule.of(robot, "forearm"),), obstacle=(ball,))
        servo = Servo(
            *(reduce(robot), outputs, [4, 9], [4, 6]),
            torque_limits=60.0,
            constraints=rules if held else Constraints(),
        )
        with with_compiler():
            unit = Unit(servo.export(tmp_path / str(held), "fmu", fmi=version))
        unit.start()
        q, s = np.array([0, 0, 0, 0, 0, -0.1, 1.0, -1.6]), np.zeros(5)
        start, least, met = servo.output(q), np.inf, 0
        goal = rest_to_rest(start, start + np.array([0.0, 0.0, -0.5, 0.0, 0.05]), 2.0)
        name = "distance of forearm from ball"
        for k in range(2500):
            sample = goal(k * HOLD)
            fill(unit, q, s, sample)
            u, active = unit.get("u"), unit.get("active")
            if k % 100 == 0:
                assert_close(u, servo.torque(q, s, sample), 1e-6)
            met += held and active[servo.limit_names.index(name)] > 0
            assert unit.step(HOLD) == OK
            s = s + HOLD * np.asarray(servo.model.acceleration(q, s, u))
            q = np.asarray(robot.integrate(q, HOLD * np.asarray(servo.model.velocity(q, s))))
            least = min(least, clearance(robot, q))
        unit.close()
        nearest.append(least)
    assert met > 100
    assert nearest[0] < -0.01
    assert -1e-5 < nearest[1] < 5e-3
