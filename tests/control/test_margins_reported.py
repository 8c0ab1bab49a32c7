"""Numbers of the law near its thresholds: damping, reported margins, undetermined wheels."""

from __future__ import annotations

import numpy as np
import pytest

from concur.control import Output, Redundancy, ReferenceSample, Servo, decoupling_margins
from concur.control._singularity import refusal
from concur.errors import NonFiniteError, SingularConfigurationError
from concur.mechanism import Body, Inertia, Pose, joints
from concur.multibody import Mechanism
from concur.reduction import reduce

STRETCHED = np.array([0.3, 0.02, -0.03])


def arm(damped_below: float | None = 1.0, weight: object = "torque", mass: float = 1.0) -> Servo:
    """Three links on the floor, whose tip is moved in the plane."""
    link = Inertia(mass, (0.2, 0, 0), tuple(mass * x for x in (0.01, 0.02, 0.02)))
    bodies = [Body("floor", joints.Fixed())]
    for k, parent in enumerate(["floor", "link0", "link1"]):
        place = Pose((0.4 * (k > 0), 0, 0))
        bodies.append(Body(f"link{k}", joints.Revolute((0, 0, 1)), parent, place, link))
    outputs = [Output("tip", "link2", "R2", (0.4, 0, 0))]
    rule = Redundancy(weight=weight)
    model = reduce(Mechanism("3R", bodies))
    return Servo(model, outputs, 4.0, 4.0, redundancy=rule, damped_below=damped_below)


def asked(servo: Servo, q: np.ndarray, acceleration: object) -> ReferenceSample:
    return ReferenceSample(servo.output(q), np.zeros(servo.size), np.array(acceleration))


@pytest.mark.parametrize("weight", ["energy", "torque", [1.0, 2.0, 5.0]])
def test_damping_is_least_squares_with_the_documented_weight(weight: object) -> None:
    # From rest and without error: the residual is the demanded acceleration itself.
    servo, demand = arm(weight=weight), np.array([1.0, 0.7])
    mass = servo.model.mass_matrix(STRETCHED)
    metric = {"energy": mass, "torque": mass @ mass}.get(str(weight), np.diag([1.0, 2.0, 5.0]))
    rows = servo.scales[0][:, None] * servo.decoupling(STRETCHED)
    own = rows @ np.linalg.solve(mass, rows.T)
    square = rows @ np.linalg.solve(metric, rows.T)
    measure = np.linalg.norm(np.linalg.inv(own)) ** -0.5
    assert measure < 0.5  # well within the zone
    damping = np.trace(square) / np.trace(own) * (1.0 - measure**2)
    kept = np.linalg.solve(square + damping * np.eye(2), servo.scales[0] * demand)
    _, _, missed, _ = servo.law(
        STRETCHED, np.zeros(3), *servo.flat(asked(servo, STRETCHED, demand))
    )
    np.testing.assert_allclose(missed, damping * kept / servo.scales[0], rtol=1e-9)


@pytest.mark.parametrize("weight", ["energy", "torque"])
def test_damping_does_not_depend_on_the_unit_of_mass(weight: str) -> None:
    # The margin has no unit, so a robot in grams gives up what it gives up in kilogrammes.
    missed = []
    for mass in (1.0, 1e-3, 1e3):
        servo = arm(weight=weight, mass=mass)
        sample = asked(servo, STRETCHED, [1.0, 0.7])
        missed.append(servo.law(STRETCHED, np.zeros(3), *servo.flat(sample))[2])
    np.testing.assert_allclose(missed[1:], [missed[0]] * 2, rtol=1e-9)


@pytest.mark.parametrize(("part", "damped"), [(0.99, False), (1.01, True)])
def test_damping_begins_at_the_threshold(part: float, damped: bool) -> None:
    q = np.array([0.3, 0.5, 0.4])
    bare = arm(damped_below=None)
    rows = bare.scales[0][:, None] * bare.decoupling(q)
    own = rows @ np.linalg.solve(bare.model.mass_matrix(q), rows.T)
    measure = np.linalg.norm(np.linalg.inv(own)) ** -0.5
    servo = arm(damped_below=part * measure)
    missed = servo.law(q, np.zeros(3), *servo.flat(asked(servo, q, [1.0, 0.7])))[2]
    assert missed.any() == damped


def test_refused_torque_reports_the_smaller_of_margin_and_what_the_law_met() -> None:
    servo = arm(damped_below=None)
    q = np.array([0.3, 0.5, 0.4])
    margin = servo.margin(q)
    for pivot, reported in ((1e-5, 1e-5), (10 * margin, margin)):
        error = refusal(servo, q, np.zeros(3), pivot)
        assert isinstance(error, SingularConfigurationError)
        assert error.margin == pytest.approx(reported, rel=1e-12)
        assert f"{reported:.3g}" in str(error)
    assert isinstance(refusal(servo, q, np.full(3, np.inf), 1e-5), NonFiniteError)


@pytest.mark.parametrize(("regularity", "usable"), [(2e-8, True), (1e-8, True), (0.9e-8, False)])
def test_wheels_below_the_threshold_no_longer_determine_the_base(
    regularity: float, usable: bool
) -> None:
    # Above it a singular decoupling matrix, or one that is no number, counts too.
    servo = arm(damped_below=None)
    for rows in (np.zeros((1, 2, 3)), np.full((1, 2, 3), np.nan)):
        found = decoupling_margins(servo, rows, np.eye(3)[None], np.array([regularity]))
        assert found[0] == (0.0 if usable else regularity)
