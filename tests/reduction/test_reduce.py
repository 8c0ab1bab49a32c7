"""Choice of the reduction, rejected robots, and rows of the audit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from concur.errors import NonFiniteError, ReductionError, ShapeError
from concur.reduction import AuditStatus, reduce
from concur.robot import Body, Inertia, Mechanism, Pose, Wheel, joints
from tests.oracles import Pinocchio, assert_close, crane, random_tree, random_velocity, rover

Z = (0, 0, 1)
LINK = Inertia(1.0, (0, 0.2, 0), (0.01, 0.02, 0.03))


def _arm(base: joints.Joint) -> Mechanism:
    bodies = [
        Body("base", base, inertia=Inertia(5.0, moments=(1, 1, 1))),
        Body("upper", joints.Revolute(Z), "base", inertia=LINK),
        Body("fore", joints.Revolute((1, 0, 0)), "upper", Pose((0, 0.4, 0)), LINK),
    ]
    return Mechanism("arm", bodies, gravity=(0, 0, -9.81))


def _platform(
    wheels: list[tuple[str, float, float]], base: joints.Joint | None = None
) -> Mechanism:
    """Build a base with disk wheels that roll forwards, at (name, x, y)."""
    wheel = Inertia(0.5, moments=(0.001, 0.002, 0.001))
    bodies = [
        Body("base", joints.Planar(), inertia=Inertia(5.0, (0.05, 0, 0), (1, 1, 1))),
        *(
            Body(name, joints.Revolute((0, 1, 0)), "base", Pose((x, y, 0)), wheel)
            for name, x, y in wheels
        ),
    ]
    return Mechanism("platform", bodies, [Wheel(name, 0.1) for name, _, _ in wheels])


def test_hamilton_equations_of_a_tree_with_every_joint() -> None:
    """Thesis: (3.1.5)-(3.1.8), (3.1.10), (3.1.11)."""
    # Unreduced and far from abelian: here the structure constants of the joints do the work.
    trees = map(random_tree, range(20))
    robot = next(tree for tree in trees if isinstance(tree.base.joint, joints.Planar))
    robot = replace(robot, actuated=[body.name for body in robot.bodies if body.joint.nv])
    model, oracle = reduce(robot), Pinocchio(robot)
    assert model.kind == "unreduced"
    rng = np.random.default_rng(1)
    for _ in range(5):
        q, v, u = robot.random(rng), random_velocity(robot, rng), rng.uniform(-3, 3, robot.nv)
        qdot = oracle.rate(q, v)
        vdot = np.linalg.solve(oracle.mass_matrix(q), u - oracle.bias(q, v))
        h = 1e-3
        ahead = [oracle.mass_matrix(q + k * h * qdot) for k in (-1, -0.5, 0.5, 1)]
        turning = (8 * (ahead[2] - ahead[1]) - (ahead[3] - ahead[0])) / (6 * h)
        expected = turning @ v + oracle.mass_matrix(q) @ vdot
        velocity, pdot = model.vector_field(q, oracle.mass_matrix(q) @ v, u)
        assert_close(velocity, v, 1e-9)
        assert_close(pdot, expected, 1e-8)


def test_gravity_along_a_floating_base_is_refused() -> None:
    for joint, drivable in ((joints.Free(), False), (joints.Spherical(), True)):
        with pytest.raises(ReductionError, match=r"pushes along base\[") as caught:
            reduce(_arm(joint))
        assert ("`actuated`" in caught.value.cure) == drivable


def test_one_wheel_leaves_the_turning_of_the_base() -> None:
    model = reduce(_platform([("wheel", 0.0, 0.0)]))
    assert model.kind == "constrained"
    assert model.shape_names == ("base[omega]", "wheel")
    assert model.reason.endswith("determine base[vx], base[vy]; the wheels leave base[omega] free")


def test_wheels_in_line_leave_one_freedom() -> None:
    # A bicycle that cannot steer goes straight on.
    model = reduce(_platform([("front", 0.3, 0.0), ("rear", -0.3, 0.0)]))
    rng = np.random.default_rng(0)
    q = model.robot.random(rng)
    v = model.velocity(q, rng.uniform(-1, 1, model.ns))
    assert (model.ns, v[1], v[2]) == pytest.approx((1, 0.0, 0.0), abs=1e-12)


def test_wheels_that_only_roll_leave_the_base_free_sideways() -> None:
    # Three omni wheels with parallel axles give three rows, and none for sideways motion.
    bodies = _platform([("a", 0.2, 0.2), ("b", 0.2, -0.2), ("c", -0.2, 0.1)]).bodies
    wheels = [Wheel(name, 0.1, kind="omni") for name in "abc"]
    model = reduce(Mechanism("sliding", bodies, wheels))
    assert model.kind == "constrained"
    assert "base[vy]" in model.shape_names
    assert "leave base[vy] free" in model.reason


def test_wheels_that_lock_everything_are_refused() -> None:
    # Sliders that lock the base, and a fourth behind a fork that they lock with it.
    bodies = [
        Body("base", joints.Planar(), inertia=Inertia(5.0, moments=(1, 1, 1))),
        Body("fork", joints.Revolute(Z), "base", Pose((0.3, 0, 0)), LINK),
    ]
    wheels = [
        Wheel("base", 0.0, kind="slider", axis=axis, center=center)
        for axis, center in (((0, 1, 0), (0, 0, 0)), ((1, 0, 0), (0, 0, 0)), ((0, 1, 0), (1, 0, 0)))
    ]
    wheels.append(Wheel("fork", 0.0, kind="slider", axis=(0, 1, 0), center=(-0.1, 0, 0)))
    with pytest.raises(ReductionError, match="fewer constraints than the 4 velocities"):
        reduce(Mechanism("locked", bodies, wheels))


def test_undriven_caster_follows_the_driven_wheels() -> None:
    bodies = [
        *_platform([("left", 0.0, 0.25), ("right", 0.0, -0.25)]).bodies,
        Body("fork", joints.Revolute(Z), "base", Pose((0.3, 0, 0)), LINK),
        Body("caster", joints.Revolute((0, 1, 0)), "fork", Pose((-0.05, 0, -0.04)), LINK),
    ]
    wheels = [Wheel("left", 0.1), Wheel("right", 0.1), Wheel("caster", 0.06)]
    dragged = reduce(Mechanism("dragged", bodies, wheels, actuated=["left", "right"]))
    assert dragged.shape_names == ("left", "right")
    assert dragged.kind == "constrained"
    q = dragged.robot.neutral()
    q[5] = 0.7477  # across the axle: a driven fork would be singular here
    assert np.isfinite(dragged.acceleration(q, [1.0, -1.0], [0.1, 0.2])).all()
    assert dragged.audit()["NHR2"].status is AuditStatus.NOT_NEEDED
    assert dragged.audit()["NHR3"].status is AuditStatus.HOLDS

    driven = reduce(Mechanism("driven", bodies, wheels, actuated=["left", "fork"]))
    assert driven.shape_names == ("left", "fork")
    row = driven.audit()["NHR3"]
    assert row.status is AuditStatus.FAILS
    assert "changes its sign" in row.why


def test_base_that_cannot_turn_is_said_to() -> None:
    stuck = reduce(_platform([("front", 0.3, 0.2), ("rear", -0.3, 0.2), ("other", -0.3, -0.2)]))
    assert "the wheels forbid base[omega] altogether" in stuck.reason
    assert "forbid" not in reduce(rover()).reason


def test_audit_of_the_rover_holds() -> None:
    audit = reduce(rover()).audit()
    assert audit.holds
    for row in ("CON1", "CON2", "CON3", "NHR1", "NHR2", "NHR3"):
        assert audit[row].status is AuditStatus.HOLDS


def test_audit_sees_a_slope() -> None:
    # On a slope gravity pushes along the group: the base is heavier downhill.
    tilted = replace(rover(), gravity=(1.0, 0.0, -9.7))
    row = reduce(tilted).audit()["CON1"]
    assert row.status is AuditStatus.FAILS
    # The share of gravity that is along the plane.
    assert row.values["gravity"] == pytest.approx(1.0 / np.hypot(1.0, 9.7), rel=1e-6)


def test_audit_sees_a_missing_and_a_needless_drive() -> None:
    missing = reduce(crane(undriven="boom")).audit()
    assert missing["CON3"].status is AuditStatus.FAILS
    assert "boom" in missing["CON3"].why
    # A drive beyond the shape velocities shares the forces on them.
    needless = reduce(crane()).audit()
    assert needless["CON2"].status is AuditStatus.HOLDS
    assert "share the forces on the shape" in needless["CON2"].why


def test_margin_of_the_crane_shrinks_towards_its_singularity() -> None:
    # With c > l the turning centre can come to lie on the left wheel: D = l - c sin(psi1) = 0.
    from concur.reduction._audit import spread
    from tests.oracles import CraneNumbers

    model = reduce(crane(CraneNumbers(l=0.6), undriven="right"))
    q = model.robot.neutral()
    angle = np.arcsin(0.6 / 0.7)
    values = []
    for distance in (0.3, 0.03, 0.003, 0.0):
        q[3] = angle - distance
        values.append(spread(model.robot, model.dependent, q))
    assert values == sorted(values, reverse=True)
    assert values[0] > 1e-2
    assert values[-1] < 1e-12


def test_wrong_arguments_are_refused() -> None:
    model = reduce(rover())
    with pytest.raises(ShapeError, match=r"argument `s`.*\(5,\)"):
        model.velocity(np.zeros(8), np.zeros(8))
    with pytest.raises(NonFiniteError, match=r"argument `u`: .*\[1\] = nan"):
        model.acceleration(np.zeros(8), np.zeros(5), [0, np.nan, 0, 0, 0])
