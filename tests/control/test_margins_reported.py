"""Numbers of the law near its thresholds: damping, reported margins, undetermined wheels."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import casadi as ca
import numpy as np
import pytest

from concur.control import (
    Redundancy,
    Servo,
    _law,
    _singularity,
    decoupling_margins,
    singularities,
)
from concur.control._singularity import check_decoupling, lacks_leverage, refusal
from concur.errors import NonFiniteError, OutputError, SingularConfigurationError
from concur.outputs import Output, ReferenceSample
from concur.reduction import reduce
from concur.reduction._lift import Lift
from concur.robot import Body, Inertia, Mechanism, Pose, joints
from concur.robot._size import POINT
from tests.oracles import Units

STRETCHED = np.array([0.3, 0.02, -0.03])


def arm(
    damping_threshold: float | None = 1.0, weight: object = "torque", mass: float = 1.0
) -> Servo:
    """Three links on the floor, whose tip is moved in the plane."""
    link = Inertia(mass, (0.2, 0, 0), tuple(mass * x for x in (0.01, 0.02, 0.02)))
    bodies = [Body("floor", joints.Fixed())]
    for k, parent in enumerate(["floor", "link0", "link1"]):
        place = Pose((0.4 * (k > 0), 0, 0))
        bodies.append(Body(f"link{k}", joints.Revolute((0, 0, 1)), parent, place, link))
    outputs = [Output("tip", "link2", "R2", (0.4, 0, 0))]
    rule = Redundancy(weight=weight)
    model = reduce(Mechanism("3R", bodies))
    return Servo(model, outputs, 4.0, 4.0, redundancy=rule, damping_threshold=damping_threshold)


def asked(servo: Servo, q: np.ndarray, acceleration: object) -> ReferenceSample:
    return ReferenceSample(servo.output(q), np.zeros(servo.size), np.array(acceleration))


@pytest.mark.parametrize("weight", ["energy", "torque", [1.0, 2.0, 5.0]])
def test_damping_is_least_squares_with_the_documented_weight(weight: object) -> None:
    # From rest and without error: the residual is the demanded acceleration itself.
    servo, demand = arm(weight=weight), np.array([1.0, 0.7])
    mass = servo.model.mass_matrix(STRETCHED)
    metric = {"energy": mass, "torque": mass @ mass}.get(str(weight), np.diag([1.0, 2.0, 5.0]))
    rows = servo.margins.usual[:, None] * servo.decoupling(STRETCHED)
    own = rows @ np.linalg.solve(mass, rows.T)
    square = rows @ np.linalg.solve(metric, rows.T)
    measure = np.linalg.norm(np.linalg.inv(own)) ** -0.5
    assert measure < 0.5  # well within the zone, which begins at 1
    share = np.linalg.matrix_power(np.eye(2) + own @ own, -2)
    damping = 4.0 * np.trace(square) / np.trace(own) * (1.0 - measure**2) ** 2 * share
    kept = np.linalg.solve(square + damping, servo.margins.usual * demand)
    _, _, missed, _, *_ = servo.law(
        STRETCHED, np.zeros(3), *servo.flat(asked(servo, STRETCHED, demand))
    )
    np.testing.assert_allclose(missed, damping @ kept / servo.margins.usual, rtol=1e-9)


@pytest.mark.parametrize(("part", "damped"), [(0.99, False), (1.01, True)])
def test_damping_begins_at_the_threshold(part: float, damped: bool) -> None:
    q = np.array([0.3, 0.5, 0.4])
    bare = arm()
    rows = bare.margins.usual[:, None] * bare.decoupling(q)
    own = rows @ np.linalg.solve(bare.model.mass_matrix(q), rows.T)
    measure = np.linalg.norm(np.linalg.inv(own)) ** -0.5
    servo = arm(damping_threshold=part * measure)
    missed = servo.law(q, np.zeros(3), *servo.flat(asked(servo, q, [1.0, 0.7])))[2]
    assert missed.any() == damped


def test_refused_torque_reports_the_smaller_of_margin_and_what_the_law_met() -> None:
    servo = arm(damping_threshold=None)
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
    # Above it a singular decoupling matrix, or a non-finite one, counts too.
    servo = arm(damping_threshold=None)
    for rows in (np.zeros((1, 2, 3)), np.full((1, 2, 3), np.nan)):
        found = decoupling_margins(
            servo.margins.scales[0], rows, np.eye(3)[None], np.array([regularity])
        )
        assert found[0] == (0.0 if usable else regularity)


def pushed(inputs: Callable[[Any], Any]) -> Any:
    """A model of two shape velocities with a given H^T B, in units that need no scales."""
    model = SimpleNamespace(
        input_matrix=inputs,
        effect=inputs,
        nd=2,
        actuation_scales=(np.ones(2), np.ones(2)),
        ns=2,
        nu=2,
        shape_names=("wheel", "elbow"),
        control_names=("left", "right"),
    )
    model.leverage = lambda q: Lift.leverage(model, q)
    return model


@pytest.mark.parametrize(("part", "lacks"), [(0.99, True), (1.01, False)])
def test_controls_lack_leverage_below_a_share_of_their_largest(part: float, lacks: bool) -> None:
    inputs = np.diag([50.0, 50.0 * part * 1e-3])
    servo: Any = SimpleNamespace(singular_margin=1e-3, model=pushed(lambda q: inputs))
    assert lacks_leverage(servo, np.zeros(2)) == lacks
    inputs[0, 0] = np.nan  # no number: the configuration is not known to be to blame
    assert not lacks_leverage(servo, np.zeros(2))


@pytest.mark.parametrize(("margin", "refused"), [(0.9e-7, True), (1.1e-7, False)])
@pytest.mark.parametrize("at", [0, 7])
def test_outputs_are_refused_if_singular_everywhere(
    margin: float, refused: bool, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    servo, margins = arm(damping_threshold=None), []

    def measured(self: Servo, q: np.ndarray) -> float:
        margins.append(margin if len(margins) == at else 0.0)
        return margins[-1]

    monkeypatch.setattr(Servo, "margin", measured)
    if not refused:
        check_decoupling(servo)
        assert len(margins) == at + 1
        return
    with pytest.raises(OutputError, match="singular in every configuration") as caught:
        check_decoupling(servo)
    assert caught.value.margins == tuple(margins)
    assert len(margins) == 1 + _singularity.SAMPLES


def test_rows_are_scaled_by_the_mass_that_moves_and_the_size_of_the_robot() -> None:
    # Three links of 2 kg; their joints are 0.8 m apart. The floor's 100 kg cannot move.
    link = Inertia(2.0, (0.2, 0, 0), (0.01, 0.02, 0.02))
    bodies = [Body("floor", joints.Fixed(), inertia=Inertia(100.0))]
    for k, parent in enumerate(["floor", "link0", "link1"]):
        bodies.append(
            Body(f"link{k}", joints.Revolute((0, 0, 1)), parent, Pose((0.4 * (k > 0), 0, 0)), link)
        )
    model = reduce(Mechanism("3R", bodies))
    servo = Servo(model, [Output("tip", "link2", "SE2", (0.4, 0, 0))], 1.0, 1.0)
    root = np.sqrt(6.0)
    np.testing.assert_allclose(servo.margins.scales[0], [root, root, 0.8 * root], rtol=1e-14)
    alone = reduce(Mechanism("1R", [bodies[0], bodies[1]]))
    turning = Servo(alone, [Output("turn", "link0", "SO2")], 1.0, 1.0)
    # One joint has no size: the radius of gyration about it, sqrt(0.02 / 2 + 0.2^2) m, stands in.
    radius = np.sqrt((0.02 + 2.0 * 0.2**2) / 102.0)
    np.testing.assert_allclose(turning.margins.scales[0], [np.sqrt(2.0) * radius], rtol=1e-14)


def two_links(far: float = 0.7, near: float = 1.0) -> Mechanism:
    solid = Inertia(1.0, moments=(0.1, 0.1, 0.1))
    bodies = [Body("ground", joints.Fixed())]
    for name, parent, place in (("link1", "ground", 0.0), ("link2", "link1", near)):
        bodies.append(Body(name, joints.Revolute((0, 0, 1)), parent, Pose((place, 0, 0)), solid))
    return Mechanism("two links", bodies)


@pytest.mark.parametrize(("part", "rank"), [(0.99, 2), (1.01, 1)])
def test_rank_counts_singular_values_above_a_share_of_the_largest(part: float, rank: int) -> None:
    robot, tip = two_links(), Output("tip", "link2", "R2", (0.7, 0, 0))
    share = 1.0 / singularities(robot, [tip], [0.3, 0.02]).condition
    report = singularities(robot, [tip], [0.3, 0.02], threshold=part * share)
    assert (report.rank, report.singular) == (rank, rank < 2)
    # By default a thousandth; near zero the ratio is 0.7 elbow / (1.7^2 + 0.7^2).
    ranks = [singularities(robot, [tip], [0.3, elbow]).rank for elbow in (0.0055, 0.0045)]
    assert ranks == [2, 1]


@pytest.mark.parametrize(("part", "counts"), [(1.01, True), (0.99, False), (0.0, False)])
@pytest.mark.parametrize("unit", [1.0, 1e-6])
def test_a_robot_without_size_is_counted_in_radii_of_gyration(
    part: float, counts: bool, unit: float
) -> None:
    # Two links with 0.1 kg m^2 and 1 kg each.
    radius = np.sqrt(0.1)
    near = part * POINT * radius
    robot = Units(length=unit).robot(two_links(near=near))
    report = singularities(robot, [Output("turn", "link2", "SO2")], [0.0, 0.0])
    assert report.length == pytest.approx(unit * (near if counts else radius), rel=1e-9)


@pytest.mark.parametrize(("part", "named"), [(0.09, False), (0.11, True), (-0.11, True)])
def test_velocities_that_controls_do_not_push_are_named_from_a_tenth_on(
    part: float, named: bool
) -> None:
    along = np.array([part, np.sqrt(1.0 - part**2)])
    across = np.array([along[1], -along[0]])
    inputs = np.outer(across, (2.0, 0.0)) + np.outer(along, (0.0, 1e-9))
    model = pushed(lambda q: inputs)
    servo: Any = SimpleNamespace(name="bench", model=model, singular_margin=1e-6)
    error: Any = _singularity._unactuated(servo, np.zeros(2))
    assert error.margin == pytest.approx(0.5e-9)
    shown = str(error).split("do not push along ")[1].splitlines()[0]
    assert shown.startswith((f"{part:+.2g} wheel " if named else "") + f"{along[1]:+.2g} elbow")


def test_constant_actuation_that_is_no_identity_is_inverted() -> None:
    actuation = np.array([[0.0, 2.0], [1.0, 0.5]])
    model = pushed(lambda q: ca.SX(ca.DM(actuation)))
    forces = np.array([3.0, -1.0])
    torques, _, side = _law.controls(model, ca.SX(0, 1), ca.SX(ca.DM(forces)))
    np.testing.assert_allclose(ca.DM(torques).full()[:, 0], np.linalg.solve(actuation, forces))
    assert float(side) == np.sign(np.linalg.det(actuation))
