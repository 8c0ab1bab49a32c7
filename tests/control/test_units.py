"""Every verdict is the same for a robot whose numbers are in other units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import concur as cc
from concur.certify import OperatingCertificate, operating_bounds
from concur.control import Servo
from concur.control._feasibility import LEAST, MOST, STEP, _instants
from concur.errors import OutputError
from concur.outputs import ReferenceSample
from concur.reduction import conservation, symmetry
from concur.robot import robot_size
from concur.simulation import Tolerances
from concur.simulation._findings import findings
from tests.oracles import Units

SMALL = Units(length=1e-4, mass=1e-14, time=8.0)
LARGE = Units(length=1e3, mass=1e3, time=0.1)
OTHERS = pytest.mark.parametrize("units", [SMALL, LARGE], ids=["small", "large"])

BOX = {"upper_arm": (0.5, 0.6), "forearm": (1.0, 1.1)}


def floater(group: str = "R2", **options: Any) -> Servo:
    model = cc.reduce(cc.robots.planar_floater(), momentum=[0.3, -0.2, 0, 0, 0, 0.8])
    return Servo(model, [cc.Output("hand", "forearm", group, point=(0.4, 0, 0))], 4, 4, **options)


def slide() -> cc.Mechanism:
    """A floating base whose arm shifts along a rail, then turns: metres and radians in one lift."""
    return cc.Mechanism(
        "slide",
        [
            cc.Body("base", cc.joints.Planar(), inertia=cc.Inertia(5.0, moments=(0.2, 0.2, 0.4))),
            cc.Body(
                "cart",
                cc.joints.Prismatic((1, 0, 0)),
                "base",
                inertia=cc.Inertia(1.0, moments=(0.01, 0.01, 0.02)),
            ),
            cc.Body(
                "arm",
                cc.joints.Revolute((0, 0, 1)),
                "cart",
                cc.Pose((0, 0.3, 0)),
                cc.Inertia(1.0, com=(0.3, 0, 0), moments=(0.01, 0.02, 0.02)),
            ),
        ],
    )


def tilted(robot: cc.Mechanism) -> cc.Mechanism:
    return replace(robot, gravity=(0.8, 0.3, -9.7))


ROBOTS: dict[str, Callable[[], cc.Mechanism]] = {
    "planar_floater": cc.robots.planar_floater,
    "chaplygin_sleigh": cc.robots.chaplygin_sleigh,
    "tilted sleigh": lambda: tilted(cc.robots.chaplygin_sleigh()),
    "wheel_satellite": cc.robots.wheel_satellite,
    "slide": slide,
    "snakeboard": cc.robots.snakeboard,
}


def kinematic_verdicts(robot: cc.Mechanism) -> dict[str, Any]:
    model = cc.reduce(robot)
    report = symmetry(robot)
    groups = ("conjugated", "left", "right", "potential", "constraints", "kept", "own")
    found = {
        "reduction": (model.kind, model.ns, model.shape_names),
        "audit": [(row.id, row.status) for row in model.audit()],
        "symmetry": [
            (row.joint, name, getattr(row, name) and getattr(row, name).group.name)
            for row in report.rows
            for name in groups
        ],
        "conservation": [
            (joint, conservation(model, joint).conserved)
            for joint in [body.name for body in robot.bodies[1:]][:2]
        ],
    }
    return found


@pytest.mark.by_default(2)
@OTHERS
@pytest.mark.parametrize("name", ROBOTS)
def test_reduction_audit_and_symmetry(name: str, units: Units) -> None:
    robot = ROBOTS[name]()
    assert kinematic_verdicts(units.robot(robot)) == kinematic_verdicts(robot)


@pytest.mark.by_default(2)
@pytest.mark.parametrize(
    "units",
    [Units(1e9, 1e-9, 1e-6), Units(1e-8, 1e-8, 1e4), Units(time=1e-9)],
    ids=["lengths", "tiny lengths", "gravity"],
)
@pytest.mark.parametrize("name", ["chaplygin_sleigh", "planar_floater", "crane_car"])
def test_violations_of_symmetries(name: str, units: Units) -> None:
    """The same numbers, so that a tolerance on either side of one finds the same groups."""
    robot = tilted(getattr(cc.robots, name)())
    plain, other = symmetry(robot), symmetry(units.robot(robot))
    violations = []
    for row in plain.rows:
        for group in ("left", "right", "potential", "constraints", "kept"):
            one, found = getattr(row, group), getattr(other[row.joint], group)
            if one is None or one.violation is None:
                assert found is None or found.violation is None
                continue
            violations.append(one.violation)
            assert found.violation == pytest.approx(one.violation, rel=1e-9)
            assert found.residual < 1e-13
    assert min(violations) < 0.1
    for share in (0.999, 1.001):
        tolerance = share * min(violations)
        verdicts = [
            [(row.left.name, row.kept.name) for row in symmetry(turned, tolerance=tolerance)]
            for turned in (robot, units.robot(robot))
        ]
        assert verdicts[0] == verdicts[1]


def bounded(units: Units, servo: Servo, **options: Any) -> OperatingCertificate:
    """An operating box with its statement in other units."""
    own = units.servo(servo)
    errors = units.errors(own)
    return operating_bounds(
        own,
        BOX,
        speeds=units.shape_velocities(own.model, np.full(own.ns, 0.4)),
        acceleration=0.3 * errors / units.time**2,
        pose_error=0.05 * errors,
        velocity_error=0.1 * errors / units.time,
        distance=2.0 * units.length,
        **options,
    )


@pytest.mark.by_default(1)
@OTHERS
@pytest.mark.parametrize("limit", [40.0, 0.5])
def test_operating_box(units: Units, limit: float) -> None:
    servo = floater()
    plain = bounded(Units(), servo, limits=limit)
    own = units.servo(servo)
    factors = units.efforts(own.model.control_units)
    found = bounded(units, servo, limits=limit * factors)
    assert found.status is plain.status
    assert found.margin_status is plain.margin_status
    assert found.control_statuses == plain.control_statuses
    if plain.margin is not None:
        np.testing.assert_allclose(found.lower / factors, plain.lower, rtol=1e-6)
        np.testing.assert_allclose(found.margin, plain.margin, rtol=1e-6)


def heavy_rover(slope: float = 0.08) -> Servo:
    """On a slope the heading decides what the motors need."""
    robot = replace(cc.robots.rover_arm(), gravity=(9.7 * slope, 0.0, -9.7))
    model = cc.reduce(robot)
    base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    return Servo(model, [base, hand], stiffness=4, damping=4)


@pytest.mark.by_default(2)
@pytest.mark.parametrize("slope", [0.08, 1e-8])
@pytest.mark.parametrize("units", [Units(), SMALL, LARGE], ids=["metres", "small", "large"])
def test_pose_of_the_base_matters_on_a_slope(units: Units, slope: float) -> None:
    servo = units.servo(heavy_rover(slope))
    joints = {"turret": (0.0, 0.01), "upper_arm": (1.0, 1.01), "forearm": (-1.5, -1.49)}
    with pytest.raises(OutputError, match="for chassis"):
        operating_bounds(servo, joints, speeds=0.0)


@pytest.mark.parametrize("units", [Units(), SMALL, LARGE], ids=["metres", "small", "large"])
def test_pose_of_the_base_matters_to_one_axis(units: Units) -> None:
    """An output along one inertial axis sees the base turn: its margin depends on the heading."""
    servo = floater()
    one = cc.Output("hand", "forearm", "R", point=(0.4, 0, 0), axes="x")
    servo = units.servo(Servo(servo.model, [one], 4, 4))
    with pytest.raises(OutputError, match="for "):
        operating_bounds(servo, BOX)


@pytest.mark.by_default(1)
@pytest.mark.parametrize(
    ("group", "units"),
    # In SE3 metres and radians act on each other.
    [("R3xSO3", SMALL), ("R3xSO3", LARGE), ("SE3", LARGE)],
    ids=["small", "large", "pose"],
)
def test_certificate_and_recheck(group: str, units: Units, tmp_path: Path) -> None:
    model = cc.reduce(cc.robots.free_flyer())
    servo = Servo(model, [cc.Output("hand", "tool", group)], 4, 4)
    found = cc.certify(units.servo(servo).error_dynamics, angle=1.0, rate_fraction=0.5)
    assert found.status is cc.Status.PROVED
    # The search is not exact: what it proves is half of the rate, or a little less.
    assert found.rate > 0.2 * found.true_rate
    assert found.true_rate * units.time == pytest.approx(2.0, rel=1e-5)
    found.save(tmp_path / "proof.json")
    assert cc.recheck(tmp_path / "proof.json") is cc.Status.PROVED


@OTHERS
def test_margins_and_singularities(units: Units) -> None:
    servo, rng = floater(), np.random.default_rng(1)
    other = units.servo(servo)
    for _ in range(5):
        q = servo.model.robot.random(rng)
        moved = units.configuration(servo.model.robot, q)
        assert other.margin(moved) == pytest.approx(servo.margin(q), rel=1e-9)


@OTHERS
def test_singularities_count_lengths_alike(units: Units) -> None:
    robot, hand = slide(), cc.Output("hand", "arm", "SE2", point=(0.4, 0, 0))
    q = robot.random(np.random.default_rng(3))
    plain = cc.singularities(robot, [hand], q)
    moved = replace(hand, point=tuple(np.array(hand.point) * units.length))
    found = cc.singularities(units.robot(robot), [moved], units.configuration(robot, q))
    assert found.rank == plain.rank
    assert found.length == pytest.approx(units.length * plain.length, rel=1e-12)
    np.testing.assert_allclose(found.singular_values, plain.singular_values, rtol=1e-9)


@OTHERS
@pytest.mark.parametrize("name", ["car_arm", "crane_car", "snakeboard", "tractor_trailers"])
def test_wheels(name: str, units: Units) -> None:
    """What wheels determine, how well, and how near a singular lift is."""
    robot = getattr(cc.robots, name)()
    plain, found = cc.reduce(robot), cc.reduce(units.robot(robot))
    assert (found.kind, found.shape_names) == (plain.kind, plain.shape_names)
    rng = np.random.default_rng(3)
    for _ in range(4):
        q = robot.random(rng)
        moved = units.configuration(robot, q)
        assert found.regularity(moved) == pytest.approx(plain.regularity(q), rel=1e-9)
        assert 0.1 < plain.regularity(q) <= 1.0


@OTHERS
def test_rounding_is_no_mismatch_of_momenta(units: Units) -> None:
    """A robot at rest but for rounding where its parts cancel, and one that is pushed."""
    servo = Servo(cc.reduce(cc.robots.planar_floater()), floater().outputs, 4, 4)
    robot, other = servo.model.robot, units.servo(servo)
    names = [unit for body in robot.bodies for unit in body.joint.freedom_units]
    rates = units.coordinates(names) / units.time
    q = robot.random(np.random.default_rng(4))
    v = servo.model.velocity(q, np.array([0.7, -0.4]))
    for push, least, largest in ((0.0, 0.0, 0.0), (1e-14, 0.0, 0.0), (1e-9, 0.5, 1.001)):
        pushed = v + push
        moved = units.configuration(robot, q), pushed * rates
        for found in (servo.mismatch(q, pushed), other.mismatch(*moved)):
            assert least <= found.relative <= largest


@OTHERS
@pytest.mark.parametrize("reach", [-0.2, 5.0])
def test_feasibility(units: Units, reach: float) -> None:
    """A point within reach, and one that the arm cannot come to."""
    servo = floater()
    robot = servo.model.robot
    q0 = robot.neutral()
    q0[-2:] = [0.6, 1.0]
    start = servo.output(q0)
    reference = cc.references.polynomial([start, [reach / 0.4, 0.0]])
    plain = servo.feasibility(reference, 0.4, q0)
    other = units.servo(servo)
    found = other.feasibility(
        units.reference(servo, reference), 0.4 * units.time, units.configuration(robot, q0)
    )
    assert found.feasible is plain.feasible is (reach < 1.0)
    # The same instants, up to the same one.
    assert len(found.times) == len(plain.times)
    assert found.reached == pytest.approx(plain.reached * units.time, rel=1e-9)
    assert found.margin == pytest.approx(plain.margin, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("turns", "count"), [(0.1, LEAST), (1.98, LEAST), (2.02, LEAST + 2), (1e6, MOST)]
)
def test_steps_of_the_exact_motion(turns: float, count: int) -> None:
    """The reference moves by a step at most between two instants, as far as the limits let it."""
    servo = floater()
    q0 = servo.model.robot.neutral()
    q0[-2:] = [0.6, 1.0]
    way = turns * (LEAST - 1) * STEP / 2 * robot_size(servo.model.robot)
    start = servo.output(q0)
    reference = cc.references.from_function(
        lambda t: ReferenceSample(start + np.array([way * t, 0.0]), [way, 0.0], [0.0, 0.0]), 2, 2
    )
    assert len(_instants(reference, 1.0, np.full(2, robot_size(servo.model.robot)))) == count


@OTHERS
@pytest.mark.by_default(1)
def test_findings(units: Units) -> None:
    servo = floater()
    robot = servo.model.robot
    q0 = robot.neutral()
    q0[-2:] = [0.6, 1.0]
    reference = cc.references.hold(servo.output(q0) + 0.05)
    kept: list[list[tuple[str, bool | None]]] = []
    for one in (Units(), units):
        own = one.servo(servo)
        run = cc.simulate(
            own.model.robot,
            own,
            one.reference(servo, reference),
            0.5 * one.time,
            one.configuration(robot, q0),
            np.zeros(own.ns),
            dt=2e-3 * one.time,
        )
        judged = Tolerances(
            0.1 * one.time,
            final_error=0.1 * one.length,
            deviation=1e-6 * one.length,
            constraint=1e-9 * one.length / one.time,
        )
        kept.append(
            [(one.quantity.split(" after ")[0], one.holds) for one in findings(run, judged)]
        )
    assert kept[0] == kept[1]
    assert any(holds for _, holds in kept[0])


@OTHERS
@pytest.mark.parametrize("compiled", [True, False])
def test_limits_in_the_law(units: Units, compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Torques, and which limits are active, where torques and weights are at their limits."""
    if compiled:
        monkeypatch.delenv("CONCUR_CC")
    robot = cc.robots.rover_arm()
    outputs = [
        cc.Output("base", "chassis", "R2", point=(0.25, 0, 0)),
        cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0)),
    ]
    q, s = np.array([-0.45, -0.1, 0.1, 0, 0, -0.1, 1.0, -1.6]), np.array([0.1, -0.2, 0.3, 0.2, 0.1])
    free = Servo(cc.reduce(robot), outputs, 4.0, 4.0)
    sample = ReferenceSample(free.output(q) + 0.5, np.zeros(5), np.zeros(5))
    limits = list(0.5 * np.abs(free.torque(q, s, sample)) + 0.3)
    servo = Servo(free.model, outputs, 4.0, 4.0, torque_limits=limits, constraints=cc.Constraints())
    other = units.servo(servo)
    ticks, moved = (servo.compile(), other.compile()), units.configuration(robot, q)
    expected = np.array(ticks[0](q, s, sample))
    speeds = units.shape_velocities(servo.model, s)
    found = np.array(ticks[1](moved, speeds, units.sample(servo, sample)))
    assert found == pytest.approx(expected * units.force * units.length, rel=1e-7)
    active = [tick.buffers.active > 0.0 for tick in ticks]
    assert active[0].sum() >= 4
    np.testing.assert_array_equal(*active)
