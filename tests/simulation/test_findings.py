"""Findings of a run."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from concur.control import Servo
from concur.outputs import Output
from concur.outputs.references import hold
from concur.reduction import reduce
from concur.robots import free_flyer, planar_floater
from concur.simulation import RealPlant, Tolerances, simulate
from tests.simulation.loops import changed


@pytest.mark.extended
def test_difference_of_momentum_says_whose_inertias_measured_it() -> None:
    robot = free_flyer()
    momentum = [1.0, -0.5, 0.2, 0.3, 0.4, -0.1]
    servo = Servo(reduce(robot, momentum=momentum), [Output("tool", "tool", "SO3")], 4.0, 4.0)
    q = robot.neutral()
    q[7:] = (0.1, 1.0, -1.35, 0.1, 1.0, -1.5)
    bodies = [
        replace(body, inertia=replace(body.inertia, mass=1.2 * body.inertia.mass))
        for body in robot.bodies
    ]
    reference = hold(servo.output(q), group="SO3")
    run = simulate(
        robot, servo, reference, 0.1, q, np.zeros(6), dt=0.01, plant=replace(robot, bodies=bodies)
    )
    # The momentum is the servo's, only not to a servo with wrong inertias.
    np.testing.assert_allclose(run.momentum[0], momentum, rtol=0, atol=1e-12)
    found = {finding.quantity: finding for finding in run.findings(Tolerances(0.05))}
    deviation = found["deviation from the ideal error dynamics, largest coordinate"]
    assert "momentum" not in deviation.place
    (note,) = [f.place for label, f in found.items() if label.startswith("momentum at the start")]
    assert "inertias of the servo's model" in note


@cache
def limited_run(limits: object, duration: float = 0.5):
    """Motion of a planar floater whose hand starts 0.14 m away from where it should be."""
    robot = planar_floater()
    model = reduce(robot, momentum=[0, 0, 0, 0, 0, 0.5])
    servo = Servo(
        model, [Output("hand", "forearm", "R2", point=(0.4, 0, 0))], 4.0, 4.0, torque_limits=limits
    )
    q = robot.neutral()
    q[3:] = (0.6, 1.2)
    reference = hold(servo.output(q) - 0.1, group="R2")
    return simulate(robot, servo, reference, duration, q, np.zeros(2), dt=0.01)


def test_settling_time_is_that_of_the_error_dynamics() -> None:
    # Critically damped from rest: (1 + 2 t) exp(-2 t) = 0.02 at t = 2.917 s. The floater rotates at
    # the start, but its hand has the shape velocities that the reference asks for: none.
    for duration in (2.9, 4.0):
        run = limited_run(None, duration)
        (found,) = [f for f in run.findings(Tolerances(0.05)) if f.quantity.startswith("settling")]
        (norm,) = run.error_norms.values()
        after = run.t > found.value - 1e-9
        assert found.quantity == "settling time of hand, to 2 %"
        assert (norm[after][1 if duration < 3 else 0 :] <= 0.02 * norm[0]).all()
        assert norm[~after][-1] > 0.02 * norm[0]
        assert found.place == ("not settled at the end" if duration < 3 else "")
        assert found.limit is None


@pytest.mark.parametrize(("momentum", "limits", "expected"), [
    (1e-30, 0.2, True),
    (1.0, 0.2, False),
    (1e-30, 1e3, False),
    (1e-30, None, False),
])  # fmt: skip
def test_drift_beyond_its_limit_is_explained_where_torque_limits_acted(
    momentum: float, limits: float | None, expected: bool
) -> None:
    found = limited_run(limits).findings(Tolerances(0.2, momentum=momentum))
    (drift,) = [f for f in found if f.quantity == "relative drift of the momentum"]
    assert (drift.place == "limits were active: take a shorter dt") is expected
    assert drift.place.endswith("take a shorter dt") is expected
    assert drift.shown_limit.startswith("<= ")
    assert drift.holds is (momentum == 1.0)


def test_drift_at_its_limit_holds_and_is_not_explained() -> None:
    run = limited_run(0.2)
    limit = float(run.momentum_drift.max())
    found = run.findings(Tolerances(0.2, momentum=limit))
    (drift,) = [f for f in found if f.quantity == "relative drift of the momentum"]
    assert (drift.holds, drift.place) == (True, "")


@pytest.mark.parametrize(("limits", "active"), [
    (0.2, True), ({"upper_arm": [-1e3, np.inf]}, False), (None, False)
])  # fmt: skip
def test_findings_say_from_when_to_when_a_limit_was_active(limits: object, active: bool) -> None:
    run = limited_run.__wrapped__(limits)
    found = {f.quantity: f for f in run.findings(Tolerances(0.2))}
    assert ("limits were active" in found[DEVIATION].place) is active
    assert (found[DEVIATION].limit is None) is active
    acting = [label for label in found if label.startswith("limit active: ")]
    assert bool(acting) is active
    if limits is not None:
        share = found["share of the time in which limits were active"].value
        assert share == pytest.approx(100.0 * run.active.any(axis=1).mean())
        assert (share > 1.0) is active
        least = found["smallest share of the commanded acceleration within limits"].value
        assert least == run.scale.min()
    if active:
        marks = np.zeros_like(run.active)
        marks[[3, 4, 9, 11, 12, 20, 30], 1] = 1.0
        found = {f.quantity: f for f in changed(run, active=marks).findings(Tolerances(0.2))}
        assert found["limit active: torque of forearm"].place == (
            "from 0.03 s to 0.04 s, 0.09 s to 0.09 s, 0.11 s to 0.12 s and 2 more; certificates do "
            "not cover this time"
        )


@pytest.mark.parametrize(("relative", "expected"), [(5e-10, False), (5e-9, True)])
def test_momentum_beyond_rounding_is_another_one(relative: float, expected: bool) -> None:
    robot = planar_floater()
    servo = Servo(
        reduce(robot, momentum=[0.3, 0.2, 0, 0, 0, 0.5]),
        [Output("hand", "forearm", "R2", point=(0.4, 0, 0))],
        4.0,
        4.0,
    )
    q = robot.neutral()
    q[3:] = (0.6, 1.2)
    true = np.array([0.3, 0.2, 0, 0, 0, 0.5]) * (1.0 + relative)
    reference = hold(servo.output(q), group="R2")
    run = simulate(
        robot, servo, reference, 0.1, q, np.zeros(2), dt=0.01, plant=RealPlant(momentum=true)
    )
    found = {f.quantity: f for f in run.findings(Tolerances(0.05))}
    label = "momentum at the start, relative difference to the servo's"
    assert (label in found) is expected
    deviation = found["deviation from the ideal error dynamics, largest coordinate"]
    assert ("momentum" in deviation.place) is expected
    assert (deviation.limit is None) is expected


@cache
def free_run():
    """The same without limits, once."""
    return limited_run(None)


DEVIATION = "deviation from the ideal error dynamics, largest coordinate"


@pytest.mark.parametrize("missed", [0.0, 1e-300, -0.5])
def test_one_instant_of_damping_is_damping(missed: float) -> None:
    run = free_run()
    damped = Servo(run.servo.model, run.servo.outputs, 4.0, 4.0, damping_threshold=0.1)
    given_up = np.zeros_like(run.acceleration_residual)
    given_up[2, 1] = missed
    found = {
        f.quantity: f
        for f in changed(replace(run, servo=damped), acceleration_residual=given_up).findings(
            Tolerances(0.2)
        )
    }
    assert ("the solution was damped" in found[DEVIATION].place) is (missed != 0.0)
    assert found["acceleration residual, largest coordinate"].value == abs(missed)


@pytest.mark.parametrize(("field", "label", "limit", "at_least"), [
    ("error", "error of hand, final", 1e-6, False),
    ("ideal", DEVIATION, 1e-6, False),
    ("momentum_drift", "relative drift of the momentum", 1e-8, False),
    ("stage_drifts", "relative drift of the momentum of base", 1e-8, False),
    ("margin", "smallest margin of the decoupling matrix", 1e-3, True),
])  # fmt: skip
@pytest.mark.parametrize(("share", "beyond"), [(0.99, False), (1.01, True)])
def test_tolerances_of_a_run(
    field: str, label: str, limit: float, at_least: bool, share: float, beyond: bool
) -> None:
    run = free_run()
    value = share * limit
    rows = np.full_like(run.margin, 1.0 if at_least else 0.0)
    rows[-1 if field == "error" else 4] = value
    run = changed(run, error=np.zeros_like(run.error), ideal=np.zeros_like(run.ideal))
    if field in ("error", "ideal"):
        run = changed(run, error=np.c_[-rows, 0 * rows], ideal=np.c_[-rows, 0 * rows])
        if field == "ideal":
            run = changed(run, error=0.0 * run.error)
    elif field == "margin":
        run = changed(run, margin=rows)
    else:  # computed when first asked for
        run.__dict__[field] = rows if field == "momentum_drift" else {"base": rows}
    found = {f.quantity: f for f in run.findings(Tolerances(0.2))}
    assert found[label].value == value
    assert found[label].holds is (beyond is at_least)


@pytest.mark.parametrize("row", [0, 4, -1])
def test_the_largest_error_of_the_whole_run_has_its_time(row: int) -> None:
    run = free_run()
    error = np.full_like(run.error, 1e-3)
    error[row] = 0.3, -0.4
    found = {f.quantity: f for f in changed(run, error=error).findings(Tolerances(0.2))}
    largest = found["error of hand, largest"]
    assert (largest.value, largest.unit) == (pytest.approx(0.5), "m")
    assert largest.place == f"at {run.t[row]:.4g} s"
    assert (largest.limit, largest.holds) == (None, None)
    after = found["error of hand, largest after 0.2 s"].value
    assert after == pytest.approx(0.5 if row == -1 else np.hypot(1e-3, 1e-3))


@pytest.mark.parametrize(
    ("low", "high", "peak"),
    [(-2.0, 1.0, -2.0), (-1.0, 2.0, 2.0), (-2.0, 2.0, 2.0), (1.0, 2.0, 2.0)],
)
def test_peak_of_a_control_is_the_larger_one_with_its_sign(
    low: float, high: float, peak: float
) -> None:
    run = free_run()
    ranges = np.array([[low] * run.u.shape[1], [high] * run.u.shape[1]])
    found = {f.quantity: f.value for f in changed(run, u_range=ranges).findings(Tolerances(0.2))}
    assert found["peak torque of upper_arm"] == peak


def test_metres_and_radians_of_the_deviation_are_apart() -> None:
    run = limited_run(None)
    (one,) = [f for f in run.findings(Tolerances(0.2)) if f.quantity.startswith("deviation")]
    assert one.quantity.endswith("largest coordinate")
    assert one.unit == "m"
    robot = free_flyer()
    servo = Servo(reduce(robot), [Output("hand", "tool", "SE3")], 4.0, 4.0, damping_threshold=1e-6)
    q = robot.neutral()
    q[7:] = (0.1, 1.0, -1.35, 0.1, 1.0, -1.5)
    run = simulate(robot, servo, hold(servo.output(q), "SE3"), 0.02, q, np.zeros(6), dt=0.01)
    deviation = np.tile([1e-7, 2e-7, -3e-7, 4e-3, -5e-3, 0.0], (len(run.t), 1))
    run = changed(run, error=run.ideal + deviation)
    found = {f.quantity: f for f in run.findings(Tolerances(0.01))}
    moved = found["deviation from the ideal error dynamics, largest position coordinate"]
    turned = found["deviation from the ideal error dynamics, largest rotation coordinate"]
    assert (moved.value, moved.unit, moved.holds) == (pytest.approx(3e-7), "m", True)
    assert (turned.value, turned.unit, turned.holds) == (pytest.approx(5e-3), "rad", False)
    residual = [f.unit for f in found.values() if f.quantity.startswith("acceleration residual")]
    assert residual == ["m/s^2", "rad/s^2"]
