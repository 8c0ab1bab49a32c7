"""The audit: each assumption fails on a robot made to break it, and holds on the case study."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from concur.io import load_shipped
from concur.reduction import AuditStatus, reduce
from concur.robot import Inertia, Mechanism
from tests.control._cases import (
    Q0,
    arm_servo,
    case_study,
    case_study_reference,
    caster,
    caster_rows,
    gantry,
)
from tests.oracles import (
    CASE_STUDY,
    Constrained,
    Pinocchio,
    assert_close,
    crane,
    rover,
)

IDS = [*(f"CON{i}" for i in range(1, 10)), "NHR1", "NHR2", "NHR3", "DYN"]


def failing(audit: object) -> set[str]:
    return {row.id for row in audit.failures}  # type: ignore[attr-defined]


def test_case_study_holds() -> None:
    """Thesis: (4.2.10), (4.3.24), NHR1-NHR3."""
    audit = case_study().audit(case_study_reference(), 2.0, Q0)
    assert sorted(row.id for row in audit) == sorted(IDS)
    assert all(row.status is AuditStatus.HOLDS for row in audit), str(audit)
    assert audit.holds
    assert all(row.why and row.statement for row in audit)


def test_what_was_not_given_is_not_claimed() -> None:
    audit = reduce(rover(CASE_STUDY)).audit()
    for number in ("CON4", "CON5", "CON6", "CON7", "CON9"):
        assert audit[number].status is AuditStatus.NOT_CHECKED
    assert case_study().audit()["CON4"].status is AuditStatus.NOT_CHECKED


def tilted(gravity: tuple[float, float, float]) -> Mechanism:
    robot = rover(CASE_STUDY)
    return Mechanism("tilted", robot.bodies, robot.wheels, gravity)


def test_tilted_plane_breaks_the_invariance() -> None:
    """Thesis: CON1."""
    # P16: gravity along the plane pushes the base along the group.
    audit = reduce(tilted((0.5, 0.0, -9.8))).audit()
    assert failing(audit) == {"CON1"}
    row = audit["CON1"]
    # The largest push is that of the slope, or the moment that it makes about the base frame.
    assert row.values["gravity"] > 0.04
    assert row.values["mass_matrix"] < 1e-12
    assert row.values["constraints"] < 1e-12
    assert failing(reduce(tilted((0.0, 0.0, -9.8))).audit()) == set()


def test_wheel_that_is_not_round_about_its_axle_is_named() -> None:
    # Only wheels of the group count; the spin of the other ones is a shape coordinate.
    robot = load_shipped("mecanum_arm")
    for name, text in (("rear_right", "axles: `rear_right`; correct"), ("front_left", None)):
        bodies = [
            replace(body, inertia=Inertia(3.0, moments=(0.012, 0.012, 0.018)))
            if body.name == name
            else body
            for body in robot.bodies
        ]
        row = reduce(replace(robot, bodies=bodies)).audit()["CON1"]
        assert (row.status is AuditStatus.FAILS) == (text is not None)
        assert (text or "") in row.why
    assert "axles" not in reduce(robot).audit()["CON1"].why


def test_drive_along_the_group_is_found() -> None:
    """Thesis: CON2, (5.1.1)."""
    # P16: four constraints make one wheel's spin dependent; it must not be driven, unless there are
    # more controls than shape velocities, which share the forces on the shape.

    def driven(*names: str) -> Mechanism:
        robot = crane()
        return Mechanism("crane", robot.bodies, robot.wheels, robot.gravity, names)

    assert "CON2" not in failing(reduce(driven("axle", "column", "left", "boom")).audit())
    model = reduce(driven("axle", "column", "left", "right", "boom"))
    audit = model.audit()
    assert "CON2" not in failing(audit)
    spin = model.robot.freedom_names[model.dependent[-1]]
    assert f"driven along the group: {spin}" in audit["CON2"].why
    assert "through the lift they share the forces on the shape" in audit["CON2"].why
    audit = reduce(driven("axle", "left", "right", "boom")).audit()
    assert "CON2" in failing(audit)


def test_missing_drive_is_found() -> None:
    """Thesis: CON3, (5.1.2), (5.1.3)."""
    robot = rover(CASE_STUDY)
    weak = Mechanism(
        "weak", robot.bodies, robot.wheels, robot.gravity, ["left", "right", "turret", "upper"]
    )
    audit = reduce(weak).audit(case_study().outputs)
    assert {"CON2", "CON3", "CON5", "CON9"} <= failing(audit)
    assert "fore" in audit["CON3"].why


def test_numbers_of_outputs_are_counted() -> None:
    """Thesis: CON5, CON9."""
    servo = case_study()
    base, hand = servo.outputs
    fewer = servo.model.audit([hand])
    assert failing(fewer) == {"CON9"}
    more = servo.model.audit([base, hand, base])
    assert failing(more) == {"CON5", "CON9"}
    assert more["CON5"].why == "5 controls, 7 output coordinates"


def test_singular_arm_fails_dyn_there() -> None:
    q = Q0.copy()
    q[7] = 0.0
    audit = case_study().audit(q0=q)
    assert failing(audit) == {"DYN"}
    assert audit["DYN"].values["margin"] < 1e-10


def test_fixed_arm_has_no_wheels_to_check() -> None:
    audit = arm_servo(gantry(), "SE3").audit()
    assert failing(audit) == set()
    for number in ("NHR1", "NHR2", "NHR3"):
        assert audit[number].status is AuditStatus.NOT_CHECKED


@pytest.fixture(scope="module")
def castor():  # type: ignore[no-untyped-def]
    return reduce(caster())


def test_castor_depends_on_what_it_determines(castor) -> None:  # type: ignore[no-untyped-def]
    """Thesis: (4.2.10), (4.3.24), NHR1-NHR3."""
    assert castor.kind == "constrained"
    assert castor.shape_names == ("left", "right")
    assert sorted(castor.dependent) == [0, 1, 2, 5, 6]
    audit = castor.audit()
    assert not failing(audit)
    for row in ("NHR2", "CON1"):
        assert audit[row].status is AuditStatus.NOT_NEEDED
        assert audit[row].why.startswith("it fails, but")
    assert audit["NHR2"].values["change"] > 0.1
    assert audit["NHR3"].status is AuditStatus.HOLDS
    assert "no symmetry group" in castor.reason


def test_castor_accelerates_as_the_multipliers_say(castor) -> None:  # type: ignore[no-untyped-def]
    robot, rng = castor.robot, np.random.default_rng(2)
    full = Constrained(Pinocchio(robot), caster_rows())
    largest = 0.0
    for _ in range(30):
        q, s, u = robot.random(rng), rng.uniform(-3, 3, 2), rng.uniform(-2, 2, 2)
        lift, _ = castor.lift(q)
        tau = np.zeros(7)
        tau[[3, 4]] = u
        drift = castor.drift_acceleration(q, s)
        vdot = lift @ castor.acceleration(q, s, u) + drift
        expected, _ = full.acceleration(q, castor.velocity(q, s), tau)
        assert_close(vdot, expected, 1e-9)
        largest = max(largest, np.abs(drift).max())
    assert largest > 1.0  # the part that a constant lift would not have


def test_stretched_start_fails_dyn_although_the_reference_is_feasible() -> None:
    q = Q0.copy()
    q[7] = 0.0
    audit = case_study().audit(case_study_reference(), 1.0, q)
    assert audit["CON4"].status is AuditStatus.HOLDS
    assert audit["DYN"].status is AuditStatus.FAILS
    assert "at the start" in audit["DYN"].why
    assert "`hand`" in audit["DYN"].why
