"""Position, speed and torque limits of the joints in the verdict of a run."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from concur.control import Servo
from concur.outputs import Output
from concur.outputs.references import hold, rest_to_rest
from concur.reduction import AuditStatus, reduce
from concur.results import Row
from concur.robot import Mechanism
from concur.robots import planar_floater
from concur.simulation import Integrator, Run, Tolerances, simulate

HAND = Output("hand", "forearm", "R2", point=(0.4, 0, 0))


def limited(**limits: Any) -> Mechanism:
    """A planar floater whose forearm has limits."""
    robot = planar_floater()
    bodies = [replace(b, **limits) if b.name == "forearm" else b for b in robot.bodies]
    return replace(robot, bodies=bodies)


def swing(robot: Mechanism, dt: float, method: str = "rk4", hold_for: float | None = None) -> Run:
    """One and a half seconds in which the forearm is brought to rest and comes back."""
    servo = Servo(reduce(robot, momentum=np.zeros(6)), [HAND], 4.0, 4.0)
    q = robot.neutral()
    q[3:] = (0.6, 1.2)
    reference = hold(servo.output(q), group="R2")
    integrator = Integrator(method, dt, hold_for)
    return simulate(robot, servo, reference, 1.5, q, [0.5, -0.5], dt=integrator)


@pytest.fixture(scope="module")
def fine() -> Run:
    """The same motion in steps so short that no extreme hides between them."""
    return swing(planar_floater(), 1e-3)


@pytest.fixture(scope="module")
def coarse() -> Run:
    return swing(planar_floater(), 1e-2)


def found(run: Run) -> dict[str, Row]:
    return {finding.quantity: finding for finding in run.findings(Tolerances(0.5))}


def test_robot_without_limits_is_not_judged_by_any(fine: Run) -> None:
    rows = found(fine)
    assert not any("angle of" in label or "speed of" in label for label in rows)
    assert rows["peak torque of forearm"].limit is None
    assert "LIM" not in {row.id for row in fine.servo.audit()}


@pytest.mark.by_default(2)
@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("name", ["lower", "upper", "speed", "torque"])
def test_limits_are_judged_on_both_sides(fine: Run, coarse: Run, name: str, side: int) -> None:
    """A limit a thousandth outside the motion is kept, and one inside it is missed."""
    low, high = fine.q[:, 4].min(), fine.q[:, 4].max()
    speed, torque = np.abs(fine.v[:, 4]).max(), np.abs(fine.u[:, 1]).max()
    room = 1.0 + side * 1e-3
    limits, label = {
        "lower": ({"limits": (low - side * 1e-3, 3.0)}, "smallest angle of forearm"),
        "upper": ({"limits": (-3.0, high + side * 1e-3)}, "largest angle of forearm"),
        "speed": ({"speed_limit": speed * room}, "largest speed of forearm"),
        "torque": ({"torque_limit": torque * room}, "peak torque of forearm"),
    }[name]
    row = found(replace(coarse, robot=limited(**limits)))[label]
    assert row.holds is (side == 1)
    assert row.at_least is (name == "lower" or (name == "torque" and row.value < 0.0))


@pytest.mark.parametrize(
    ("motor", "law", "limit"),
    [
        (150.0, 20.0, 20.0),
        (2.0, 20.0, 2.0),
        (None, 20.0, 20.0),
        (150.0, (-20.0, 90.0), 20.0),
        (150.0, None, 150.0),
    ],
)
@pytest.mark.parametrize(("sign", "excess"), [(-1, -1e-3), (-1, 1e-3), (1, -1e-3), (1, 1e-3)])
def test_torques_are_judged_by_the_narrower_limit_of_law_and_robot(
    coarse: Run, motor: float | None, law: Any, limit: float, sign: int, excess: float
) -> None:
    """A peak on either side of the limit, in the robot or the law, whichever is narrower."""
    robot = limited(torque_limit=motor)
    names = robot.control_names
    own = None if law is None else {n: law if n == "forearm" else 500.0 for n in names}
    servo = Servo(reduce(robot, momentum=np.zeros(6)), [HAND], 4.0, 4.0, torque_limits=own)
    bound = law[1] if sign > 0 and isinstance(law, tuple) else limit
    ends = np.zeros((2, 2))
    ends[int(sign > 0), 1] = sign * bound * (1.0 + excess)
    active = np.zeros((len(coarse.t), len(servo.limit_names)))
    arrays = {**coarse.arrays, "u_range": ends, "active": active}
    run = replace(coarse, robot=robot, servo=servo, arrays=arrays)
    row = found(run)["peak torque of forearm"]
    assert row.limit == pytest.approx(sign * bound)
    assert row.holds is (excess < 0.0)
    assert row.share == pytest.approx(1.0 + excess)


@pytest.mark.parametrize(("method", "dt"), [("rk4", 0.1), ("rkmk4", 0.1), ("dop853", 1.5)])
def test_extremes_between_recorded_states_count(fine: Run, method: str, dt: float) -> None:
    """The forearm is fastest on its way back between two rows of the record."""
    run = swing(planar_floater(), dt, method)
    fastest = fine.v[:, 4].max()
    assert run.v[:, 4].max() < fastest - 1e-5
    assert run.v_range[1, 4] > run.v[:, 4].max() + 1e-4
    assert run.v_range[1, 4] == pytest.approx(fastest, abs=1e-3)


@pytest.mark.parametrize(("beyond", "kept"), [(1e-10, True), (1e-8, False)])
def test_rounding_of_a_joint_held_at_its_limit_is_tolerated(beyond: float, kept: bool) -> None:
    robot = limited(limits=(-2.0, 1.2 / (1.0 + beyond)))
    servo = Servo(reduce(robot, momentum=np.zeros(6)), [HAND], 4.0, 4.0)
    q = robot.neutral()
    q[3:] = (0.6, 1.2)
    reference = hold(servo.output(q), group="R2")
    run = simulate(robot, servo, reference, 0.02, q, [0.0, 0.0], dt=0.01)
    assert found(run)["largest angle of forearm"].holds is kept
    row = servo.audit(reference, 0.02, q)["LIM"]
    assert (row.status is AuditStatus.HOLDS) is kept


def test_narrower_limits_of_robot_and_plant_count() -> None:
    wide, narrow = limited(limits=(-3.0, 3.0)), limited(limits=(-3.0, 1.1))
    for robot, plant in ((wide, narrow), (narrow, wide)):
        servo = Servo(reduce(robot, momentum=np.zeros(6)), [HAND], 4.0, 4.0)
        q = robot.neutral()
        q[3:] = (0.6, 1.2)
        reference = hold(servo.output(q), group="R2")
        run = simulate(robot, servo, reference, 0.02, q, [0.0, 0.0], dt=0.01, plant=plant)
        assert found(run)["largest angle of forearm"].limit == 1.1


@cache
def exact() -> tuple[Run, Any, np.ndarray]:
    """A run that starts on its reference."""
    robot = planar_floater()
    servo = Servo(reduce(robot, momentum=np.zeros(6)), [HAND], 4.0, 4.0)
    q = robot.neutral()
    q[3:] = (0.6, 1.2)
    start = servo.output(q)
    reference = rest_to_rest(start, start - 0.1, duration=1.0)
    run = simulate(robot, servo, reference, 1.0, q, [0.0, 0.0], dt=0.01)
    assert run.error_norms["hand"].max() < 1e-6
    return run, reference, q


@pytest.mark.by_default(3)
@pytest.mark.parametrize("side", [-1, 1])
@pytest.mark.parametrize("name", ["upper", "speed", "torque"])
def test_audit_judges_the_exact_motion(name: str, side: int) -> None:
    """The peaks are those of a run that starts on the reference."""
    run, reference, q = exact()
    room = 1.0 + side * 2e-3
    limits: dict[str, Any] = {
        "upper": {"limits": (-3.0, run.q_range[1, 4] + side * 1e-3)},
        "speed": {"speed_limit": np.abs(run.v_range[:, 4]).max() * room},
        "torque": {"torque_limit": np.abs(run.u_range[:, 1]).max() * room},
    }[name]
    tight = limited(**limits)
    judged = Servo(reduce(tight, momentum=np.zeros(6)), [HAND], 4.0, 4.0, torque_limits=1e-6)
    row = judged.audit(reference, 1.0, q)["LIM"]
    assert row.status is (AuditStatus.HOLDS if side == 1 else AuditStatus.FAILS)
    assert ("at t = " in row.why) is (side == -1)
    assert judged.audit()["LIM"].status is AuditStatus.NOT_CHECKED
