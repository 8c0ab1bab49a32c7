"""Symmetry groups of joints: the worked results, two independent forms of AP2, brute force."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
from scipy.linalg import expm, null_space
from scipy.spatial.transform import Rotation

import concur as cc
from concur import Body, Inertia, Mechanism, Pose, joints
from concur.errors import DescriptionError, UnknownNameError
from tests.oracles import (
    Constrained,
    CraneNumbers,
    Pinocchio,
    RoverNumbers,
    crane,
    crane_rows,
    difference_quotient,
    random_rover,
    random_tree,
    rover,
    rover_rows,
    rover_without_arm,
)
from tests.oracles._random import _direction, _inertia, _placement

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
BOX = (0.3, 0.4, 0.5)

# --- twists and inertias, written by hand ------------------------------------------------------


def skew(w):
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def hat(twist):
    matrix = np.zeros((4, 4))
    matrix[:3, :3], matrix[:3, 3] = skew(twist[3:]), twist[:3]
    return matrix


def ad(twist):
    v, w = skew(twist[:3]), skew(twist[3:])
    return np.block([[w, v], [np.zeros((3, 3)), w]])


def adjoint(pose):
    turn = pose[:3, :3]
    return np.block([[turn, skew(pose[:3, 3]) @ turn], [np.zeros((3, 3)), turn]])


def spatial_inertia(inertia):
    """Inertia about the body frame on twists [linear; angular]."""
    m, c = inertia.mass, skew(inertia.com)
    moments = np.array(inertia.moments)
    tensor = np.diag(moments) if moments.ndim == 1 else moments
    return np.block([[m * np.eye(3), -m * c], [m * c, tensor - m * c @ c]])


def placement(body):
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_quat(body.placement.rotation).as_matrix()
    pose[:3, 3] = body.placement.translation
    return pose


def joint_frame(robot, oracle, q, body):
    above = np.eye(4) if body.parent is None else oracle.pose(q, body.parent)
    return above @ placement(body)


def named(robot, name):
    return next(body for body in robot.bodies if body.name == name)


def carried_by(robot, name):
    found = {name}
    for _ in robot.bodies:
        found |= {body.name for body in robot.bodies if body.parent in found}
    return [body for body in robot.bodies if body.name in found]


def left_translated(robot, q, name, x):
    """Configuration with one joint moved to exp(basis x) q_k, joint kind by joint kind."""
    body, moved = named(robot, name), np.array(q)
    span = robot.q_slice(name)
    own = moved[span]
    match body.joint:
        case joints.Planar():
            turn = np.array([[0, -x[2], x[0]], [x[2], 0, x[1]], [0, 0, 0]])
            own[:2] = (expm(turn) @ [own[0], own[1], 1.0])[:2]
            own[2] += x[2]
        case joints.Spherical():
            own[:] = (Rotation.from_rotvec(x) * Rotation.from_quat(own)).as_quat()
        case joints.Free():
            step = expm(hat(x))
            own[:3] = step[:3, :3] @ own[:3] + step[:3, 3]
            own[3:] = (Rotation.from_matrix(step[:3, :3]) * Rotation.from_quat(own[3:])).as_quat()
        case _:
            own += x
    return moved


# --- AP2 a second time: the condition (4.4.30), for all twists the bodies can have -------------


def left_by_condition(robot, name, restricted=None, count=16):
    """Generators, in the joint's basis, of left translations that keep the kinetic energy.

    ``sum_i h_i(Ad_(q_k..q_i)^-1 ad_varpi eta, twist_i) = 0`` with eta the twist of the joint
    frame, over what joint k carries. `restricted` columns keep velocities of joint k to a
    subspace, as the thesis prints it.
    """
    rng, oracle, body = np.random.default_rng(99), Pinocchio(robot), named(robot, name)
    span = robot.v_slice(name)
    rows = []
    for _ in range(count):
        q, v = robot.random(rng), rng.uniform(-1.0, 1.0, robot.nv)
        if restricted is not None:
            v[span] = restricted @ v[: restricted.shape[1]]
        frame = joint_frame(robot, oracle, q, body)
        above = np.zeros(6)
        if body.parent is not None:
            above = oracle.jacobian(q, body.parent) @ v
        eta = np.linalg.solve(adjoint(placement(body)), above)
        wrench = sum(
            adjoint(np.linalg.solve(oracle.pose(q, part.name), frame)).T
            @ spatial_inertia(part.inertia)
            @ (oracle.jacobian(q, part.name) @ v)
            for part in carried_by(robot, name)
        )
        rows.append([wrench @ ad(varpi) @ eta for varpi in body.joint.basis.T])
    return (
        null_space(np.array(rows), rcond=1e-9)
        if np.abs(rows).max() > 1e-12
        else np.eye(body.joint.nv)
    )


def assert_same_span(one, other, tolerance=1e-8):
    assert one.shape == other.shape
    if one.size:
        first, second = np.linalg.qr(one)[0], np.linalg.qr(other)[0]
        assert np.abs(second - first @ (first.T @ second)).max() < tolerance


# --- worked results ----------------------------------------------------------------------------


def chain(*bodies, gravity=(0, 0, 0), actuated=None):
    """Robot of (joint, placement, inertia), each on the one before; bodies b1, b2, ..."""
    made = [
        Body(f"b{i}", joint, None if i == 1 else f"b{i - 1}", place, inertia)
        for i, (joint, place, inertia) in enumerate(bodies, 1)
    ]
    return Mechanism("chain", made, gravity=gravity, actuated=actuated)


CAR = (joints.Planar(), Pose(), Inertia(5.0, (0.1, 0.2, 0.0), BOX))
OUT = Pose((0.3, -0.2, 0.4))
SLANTED = Pose((0.3, -0.2, 0.4), Rotation.from_rotvec([0.3, 0.5, -0.2]).as_quat())
GENERIC = Inertia(2.0, (0.1, 0.05, -0.2), BOX)


def centred(moments):
    return Inertia(2.0, (0, 0, 0), moments)


def turntable(com):
    return chain(CAR, (joints.Revolute(Z), OUT, Inertia(2.0, com, BOX)))


def disc_then_planar():
    return chain(
        (joints.Revolute(Z), Pose(), Inertia(3.0, moments=BOX)), (joints.Planar(), OUT, GENERIC)
    )


def ball_on(base, moments):
    return chain((base, Pose(), GENERIC), (joints.Spherical(), SLANTED, centred(moments)))


def lift_on_car():
    return chain(CAR, (joints.Prismatic(Z), OUT, GENERIC))


def slide_then_planar(axis):
    return chain((joints.Prismatic(axis), Pose(), GENERIC), (joints.Planar(), OUT, GENERIC))


def two_balls():
    return chain((joints.Spherical(), OUT, GENERIC), (joints.Spherical(), Pose(), GENERIC))


def round_boom():
    numbers = CraneNumbers()
    return crane(replace(numbers, j=(*numbers.j[:5], (45.0, 45.0, 45.0))))


def crooked_column():
    robot = crane()
    bodies = [
        replace(b, inertia=Inertia(150.0, (0.1, 0, 0.75), (40, 40, 15)))
        if b.name == "column"
        else b
        for b in robot.bodies
    ]
    return Mechanism("crooked", bodies, wheels=robot.wheels)


# Robot, joint, dimension of the joint's group, AP1, AP2, right translations (None: no extremity).
WORKED = {
    "rover base": (rover, "chassis", 3, 3, 3, None),
    "rover left wheel": (rover, "left", 1, 0, 1, 1),
    "rover right wheel": (rover, "right", 1, 0, 1, 1),
    "rover turret": (rover, "turret", 1, 0, 0, None),
    "rover upper arm": (rover, "upper", 1, 0, 0, None),
    "rover forearm": (rover, "fore", 1, 0, 0, 0),
    "crane base": (crane, "chassis", 3, 3, 3, None),
    "crane steering": (crane, "axle", 1, 0, 1, None),
    "crane column": (crane, "column", 1, 0, 1, None),
    "crane column off its axis": (crooked_column, "column", 1, 0, 0, None),
    "crane left wheel": (crane, "left", 1, 0, 1, 1),
    "crane right wheel": (crane, "right", 1, 0, 1, 1),
    "crane boom": (crane, "boom", 1, 0, 0, 0),
    "crane round boom": (round_boom, "boom", 1, 0, 1, 1),
    "turntable off its axis": (lambda: turntable((0.1, 0, 0.3)), "b2", 1, 0, 0, 0),
    "turntable": (lambda: turntable((0, 0, 0.3)), "b2", 1, 0, 1, 1),
    "disc, planar": (disc_then_planar, "b2", 3, 3, 1, 1),
    "free base, isotropic": (lambda: ball_on(joints.Free(), (1, 1, 1)), "b2", 3, 0, 0, 3),
    "free base, axisymmetric": (lambda: ball_on(joints.Free(), (1, 1, 1.5)), "b2", 3, 0, 0, 1),
    "planar base, isotropic": (lambda: ball_on(joints.Planar(), (1, 1, 1)), "b2", 3, 0, 1, 3),
    "planar base, z slide": (lift_on_car, "b2", 1, 1, 1, 1),
    "z slide, planar": (lambda: slide_then_planar(Z), "b2", 3, 3, 3, 1),
    "two balls at one centre": (two_balls, "b2", 3, 3, 0, 0),
    "x slide, planar": (lambda: slide_then_planar(X), "b2", 3, 3, 2, 1),
}


@cache
def examined(build):
    robot = build()
    return robot, cc.symmetry(robot)


@pytest.mark.parametrize("case", WORKED)
def test_worked_results(case):
    build, joint, whole, conjugated, left, right = WORKED[case]
    robot, report = examined(build)
    row = report[joint]
    assert row.whole.dim == whole
    assert row.conjugated.dim == conjugated
    assert row.left.dim == left
    assert (None if row.right is None else row.right.dim) == right
    assert_same_span(row.left.coordinates, left_by_condition(robot, joint))
    for group in (row.conjugated, row.left, row.kept, *filter(None, [row.right])):
        assert group.residual < 1e-12
        assert group.twists.shape == (6, group.dim)
        assert group.group.closed
        assert group.violation is None or group.violation > 1e-2
        if group is not row.kept:
            assert (group.violation is None) == (group.dim == whole)


def test_groups_have_their_place():
    # The plane turns about the axis of the disc, which is not that of its own frame.
    row = cc.symmetry(disc_then_planar())["b2"]
    assert row.left.name == "SO(2)"
    x, y = -0.3, 0.2  # the disc's axis seen from the frame of the plane
    expected = np.array([y, -x, 0, 0, 0, 1])
    np.testing.assert_allclose(row.left.twists[:, 0], expected, rtol=0, atol=1e-12)
    np.testing.assert_allclose(row.left.coordinates[:, 0], expected[[0, 1, 5]], atol=1e-12)
    # The ball keeps its turns about the vertical, in a frame that is slanted.
    row = cc.symmetry(ball_on(joints.Planar(), (1, 1, 1)))["b2"]
    vertical = Rotation.from_quat(SLANTED.rotation).as_matrix().T @ Z
    np.testing.assert_allclose(np.cross(row.left.twists[3:, 0], vertical), 0.0, atol=1e-12)
    # The axisymmetric body turns about its own axis.
    row = cc.symmetry(ball_on(joints.Free(), (1, 1, 1.5)))["b2"]
    np.testing.assert_allclose(np.abs(row.right.twists[:, 0]), [0, 0, 0, 0, 0, 1], atol=1e-12)
    # Two slides of the plane commute with the one below, the turn does not.
    row = cc.symmetry(slide_then_planar(X))["b2"]
    assert row.left.name == "R^2"
    assert row.conjugated.name == "SE(2)"


def test_both_algebras_must_be_quantified_over_the_whole_joint():
    # With the velocities of the plane kept to the candidate group, the condition passes although
    # the mass matrix changes.
    robot = chain(
        (joints.Prismatic(X), Pose(), Inertia(3.0, moments=BOX)),
        (joints.Planar(), OUT, centred(BOX)),
    )
    turn = np.array([[0.0], [0.0], [1.0]])
    misled = left_by_condition(robot, "b2", restricted=turn)
    assert_same_span(misled, np.eye(3))
    row = cc.symmetry(robot)["b2"]
    assert row.left.name == "R^2"
    assert row.left.violation > 0.1
    q, oracle = np.array([0.2, 0.5, -0.3, 0.4]), Pinocchio(robot)
    moved = left_translated(robot, q, "b2", np.array([0.0, 0.0, 0.5]))
    assert np.abs(oracle.mass_matrix(moved) - oracle.mass_matrix(q)).max() > 0.1


@pytest.mark.parametrize("build", [disc_then_planar, two_balls, lift_on_car])
def test_conjugated_motions_move_all_that_is_carried_by_one_motion_of_space(build):
    robot, rng = build(), np.random.default_rng(3)
    row, oracle, body = cc.symmetry(robot)["b2"], Pinocchio(robot), robot.bodies[1]
    q, v = robot.random(rng), rng.uniform(-1, 1, robot.nv)
    motion = row.conjugated.twists @ rng.uniform(-0.7, 0.7, row.conjugated.dim)

    def induced(q):
        """The joint's displacement, from one that is fixed in space."""
        frame = joint_frame(robot, oracle, q, body)
        seen = np.linalg.solve(adjoint(frame), motion)
        own = np.linalg.lstsq(body.joint.basis, seen, rcond=None)[0]
        assert np.abs(body.joint.basis @ own - seen).max() < 1e-12, "not a motion of the joint"
        return left_translated(robot, q, "b2", own)

    moved = induced(q)
    expected = expm(hat(motion)) @ oracle.pose(q, "b2")
    np.testing.assert_allclose(oracle.pose(moved, "b2"), expected, atol=1e-12)

    def along(t, change):
        return change(robot.integrate(q, t * v))

    # The same motion seen through the induced action has the same kinetic energy.
    rate = difference_quotient(lambda t: robot.difference(moved, along(t, induced)), step=1e-2)
    assert oracle.kinetic_energy(moved, rate) == pytest.approx(
        oracle.kinetic_energy(q, v), rel=1e-6
    )


# --- what follows: potential, constraints, drives ----------------------------------------------


def test_verdicts_of_the_crane():
    report = cc.symmetry(crane(undriven="column"))
    column = report["column"]
    assert column.reducible
    assert column.reason.startswith("conserved: nobody drives it")
    assert column.conserved == ("angular momentum about z",)
    assert [row.joint for row in report.reducible] == ["chassis", "column"]
    assert report["chassis"].role == "base"
    assert report["chassis"].conserving.dim == 0
    assert report["chassis"].conserved == ()
    assert report["chassis"].reason.startswith("rolling: ")

    axle = report["axle"]
    assert (axle.left.dim, axle.constraints.dim, axle.kept.dim) == (1, 0, 0)
    assert axle.reason.startswith("metric only: the rolling constraints depend on it")
    assert axle.constraints.violation > 0.1

    wheel = report["left"]
    assert (wheel.role, wheel.driven, wheel.kept.dim, wheel.conserving.dim) == ("wheel", True, 1, 0)
    assert wheel.reason == "driven: its momentum changes with the torque"
    assert report["boom"].reason.startswith("kinetic energy depends on it")

    driven = cc.symmetry(crane())["column"]
    assert not driven.reducible
    assert driven.reason == "driven: its momentum changes with the torque"
    assert driven.conserving.dim == 1
    assert driven.conserved == ()


def test_a_wheel_that_nobody_drives_is_reduced_by_rolling_or_not_at_all():
    # Four rows: with the base, the wheel that is not driven follows from the others.
    idle = cc.symmetry(crane(undriven="right"))["right"]
    assert idle.kept.dim == 1
    assert idle.reducible
    assert idle.reason.startswith("rolling: ")
    assert "the wheels give its velocity" in idle.reason
    assert idle.conserved == ()
    # Three rows give the base; a wheel that idles then has a velocity of its own.
    robot = rover()
    driven = [body.name for body in robot.bodies[1:] if body.name != "left"]
    robot = Mechanism("idle", robot.bodies, robot.wheels, robot.gravity, driven)
    idle = cc.symmetry(robot)["left"]
    assert (idle.kept.dim, idle.conserving.dim, idle.reducible) == (1, 0, False)
    assert idle.reason.endswith("but the reactions of the wheels change its momentum")
    # So it is: the momentum of the wheel changes by the reaction alone.
    rates = momentum_rates(robot, "left", np.eye(1), rover_rows(0.1, 0.25))
    assert np.abs(rates).max() > 1e-3


def test_the_report_tells_of_the_momentum_that_conservation_judges():
    # With its mass over the axle the platform's two-form vanishes: the momentum of the wheel
    # with all that rolls along is constant, that of the wheel alone is not.
    robot = replace(rover_without_arm(RoverNumbers(l0=0.0)), actuated=("right",))
    report = cc.symmetry(robot)
    assert (report["left"].tied, report["right"].tied) == (True, False)
    assert report["left"].conserved == ()
    assert cc.conservation(cc.reduce(robot), "left").conserved
    assert "for `left` `conservation` and `reduce` judge that of the reduced" in report.note
    assert str(report).endswith("\n" + report.note)
    # Driven, or where it follows from others itself, there is nothing to tell.
    for quiet in (rover_without_arm(), crane(undriven="right"), crane(undriven="column")):
        assert cc.symmetry(quiet).note == ""


FLOATING = Mechanism(
    "floating",
    [
        Body("hull", joints.Free(), None, OUT, GENERIC),
        Body("wheel", joints.Revolute(Y), "hull", SLANTED, centred((1, 1.5, 1))),
        Body("arm", joints.Spherical(), "hull", SLANTED, GENERIC),
    ],
)


def in_gravity(robot, gravity, undriven=()):
    driven = [name for name in robot.actuated if name not in undriven]
    return Mechanism(robot.name, robot.bodies, robot.wheels, gravity, driven)


def test_floating_base_is_its_whole_group_when_gravity_allows():
    hull = cc.symmetry(FLOATING)["hull"]
    for group in (hull.conjugated, hull.left, hull.kept, hull.reducing):
        assert (group.name, group.dim, group.violation) == ("SE(3)", 6, None)
    assert hull.reducible
    assert hull.conserved == (
        "linear momentum along x",
        "linear momentum along y",
        "linear momentum along z",
        "angular momentum about x",
        "angular momentum about y",
        "angular momentum about z",
    )
    falling = cc.symmetry(in_gravity(FLOATING, (0, 0, -9.81)))["hull"]
    assert falling.left.name == "SE(3)"
    assert falling.kept.name == falling.potential.name == "SE(2)"
    assert falling.constraints.name == "SE(3)"
    assert "gravity breaks the rest of SE(3)" in falling.reason
    assert falling.conserved == (
        "linear momentum along x",
        "linear momentum along y",
        "angular momentum about z",
    )


def test_gravity_breaks_a_symmetry():
    lift = chain(CAR, (joints.Prismatic(Z), OUT, GENERIC), gravity=(0, 0, -9.81), actuated=[])
    row = cc.symmetry(lift)["b2"]
    assert (row.left.dim, row.potential.dim, row.kept.dim) == (1, 0, 0)
    assert not row.reducible
    assert row.reason.startswith("gravity breaks it")
    # One metre per second against gravity lifts all of what is carried.
    assert row.potential.violation == pytest.approx(1.0, rel=1e-9)
    still = cc.symmetry(in_gravity(lift, (0, 0, 0)))["b2"]
    assert still.reducible
    assert still.conserved == ("linear momentum along z",)


def test_nothing_is_found_in_a_robot_without_symmetry():
    rng = np.random.default_rng(21)
    kinds = [
        joints.Revolute(_direction(rng)),
        joints.Spherical(),
        joints.Prismatic(_direction(rng)),
        joints.Planar(_direction(rng)),
        joints.Revolute(_direction(rng)),
    ]
    bodies = [Body("wall", joints.Fixed())] + [
        Body(f"b{i}", joint, "wall" if i == 0 else f"b{i - 1}", _placement(rng), _inertia(rng))
        for i, joint in enumerate(kinds)
    ]
    report = cc.symmetry(Mechanism("generic", bodies, gravity=(1.0, 2.0, -9.0), actuated=[]))
    assert [row.joint for row in report] == ["b0", "b1", "b2", "b3", "b4"]
    # On a wall that does not move, the first joint is free to shift: gravity sees it.
    assert [row.left.dim for row in report] == [1, 0, 0, 0, 0]
    assert [row.kept.dim for row in report] == [0, 0, 0, 0, 0]
    assert [row.conjugated.dim for row in report] == [1, 0, 0, 0, 0]
    assert not report.reducible
    assert all(row.left.violation > 1e-2 for row in list(report)[1:])
    assert all(row.reason and not row.conserved for row in report)
    assert report["b4"].right.dim == 0


# --- momenta that are said to stay constant, at full order -------------------------------------


def momentum_rates(robot, joint, coordinates, rows=None, count=4, left=True):
    """Rates of <M v, motion> under random forces on the drives, at random states: by Pinocchio.

    Motions are left or right translations of the joint; relative to the forces at work.
    """
    oracle, body, rng = Pinocchio(robot), named(robot, joint), np.random.default_rng(8)
    span, rates = robot.v_slice(joint), []

    def momentum(q, v):
        if not left:
            return (oracle.mass_matrix(q) @ v)[span] @ coordinates
        frame = joint_frame(robot, oracle, q, body)
        turned = adjoint(np.linalg.solve(oracle.pose(q, joint), frame)) @ body.joint.basis
        own = np.linalg.lstsq(body.joint.basis, turned @ coordinates, rcond=None)[0]
        return (oracle.mass_matrix(q) @ v)[span] @ own

    for _ in range(count):
        q, v = robot.random(rng), rng.uniform(-1, 1, robot.nv)
        tau = np.zeros(robot.nv)
        tau[list(robot.actuated_freedoms)] = rng.uniform(-1, 1, len(robot.actuated_freedoms))
        if rows is None:
            vdot = oracle.forward_dynamics(q, v, tau)
        else:
            v = null_space(rows(q)) @ rng.uniform(-1, 1, robot.nv - len(rows(q)))
            vdot, _ = Constrained(oracle, rows).acceleration(q, v, tau)
        qdot = oracle.rate(q, v)
        size = np.abs(oracle.mass_matrix(q) @ vdot).max() + np.abs(oracle.bias(q, v)).max()

        def at(t, q=q, v=v, qdot=qdot, vdot=vdot):
            return momentum(robot.normalize(q + t * qdot), v + t * vdot)

        rates.append(difference_quotient(at) / size)
    return np.array(rates)


def crane_conserving():
    n = CraneNumbers()
    return crane(undriven="column"), crane_rows(n.l, n.b, n.c)


CONSERVING = {
    "crane": crane_conserving,
    "floating in gravity": lambda: (in_gravity(FLOATING, (0, 0, -9.81)), None),
    "floating with an idle wheel": lambda: (in_gravity(FLOATING, (0, 0, 0), ["wheel"]), None),
    "idle ball on a car": lambda: (
        in_gravity(ball_on(joints.Planar(), (1, 1, 1)), (0, 0, -9.81), ["b2"]),
        None,
    ),
    "idle plane on a disc": lambda: (in_gravity(disc_then_planar(), (0, 0, -9.81), ["b2"]), None),
    "idle ball on a hull": lambda: (
        in_gravity(ball_on(joints.Free(), (1, 1, 1)), (0, 0, 0), ["b2"]),
        None,
    ),
    "idle top on a hull": lambda: (
        in_gravity(ball_on(joints.Free(), (1, 1, 1.5)), (0, 0, 0), ["b2"]),
        None,
    ),
    "idle plane on a slide": lambda: (in_gravity(slide_then_planar(X), (0, 0, -9), ["b2"]), None),
}


@pytest.mark.parametrize("case", CONSERVING)
def test_conserved_momenta_are_constant(case):
    robot, rows = CONSERVING[case]()
    found = 0
    for row in cc.symmetry(robot):
        if row.conserved:
            assert row.reducible
            own = [name for name in row.conserved if name.endswith(" of the body")]
            assert len(row.conserved) == row.conserving.dim + len(own)
            rates = momentum_rates(robot, row.joint, row.conserving.coordinates, rows)
            assert np.abs(rates).max(initial=0.0) < 1e-7, f"{row.joint}: {rates}"
            if own:
                assert len(own) == row.own.dim
                rates = momentum_rates(robot, row.joint, row.own.coordinates, rows, left=False)
                assert np.abs(rates).max() < 1e-7, f"{row.joint}: {rates}"
            found += 1
        elif not row.driven and row.role != "base":
            every = np.eye(row.whole.dim)
            assert np.abs(momentum_rates(robot, row.joint, every, rows)).max() > 1e-4
    assert found, "the case shows nothing"


def test_motions_in_the_axes_of_the_body():
    # A round body on a hull that tumbles: left translations shake its joint, its own spin does not.
    robot = in_gravity(ball_on(joints.Free(), (1, 1, 1.5)), (0, 0, 0), ["b2"])
    row = cc.symmetry(robot)["b2"]
    assert (row.left.dim, row.kept.dim, row.right.name, row.own.name) == (0, 0, "SO(2)", "SO(2)")
    assert row.reducible
    assert row.reason.endswith("moved in the axes of its body")
    assert row.conserved == ("angular momentum about z of the body",)
    assert row.partly
    assert "  in part  " in str(cc.symmetry(robot)).splitlines()[2]
    assert cc.reduce(robot, stages=["b2"]).generators == ((0.0, 0.0, 1.0),)
    ball = cc.symmetry(in_gravity(ball_on(joints.Free(), (1, 1, 1)), (0, 0, 0), ["b2"]))
    assert ball["b2"].own.name == "SO(3)"
    assert ball["b2"].reducible
    assert not ball["b2"].partly
    assert str(ball).endswith("angular momentum about x, y, z of the body")
    # Gravity does not see a turn about the centre of mass, and sees any other.
    tilted = chain(
        (joints.Free(), Pose(), GENERIC),
        (joints.Spherical(), OUT, Inertia(1.0, (0, 0, 0.2), (1, 1, 1.5))),
        gravity=(0, 0, -9.81),
        actuated=[],
    )
    assert cc.symmetry(tilted)["b2"].own.name == "SO(2)"
    driven = cc.symmetry(ball_on(joints.Free(), (1, 1, 1)))["b2"]
    assert driven.reason == "driven: its momentum changes with the torque"
    assert (driven.conserved, driven.reducible, driven.own.dim) == ((), False, 3)


@pytest.mark.parametrize("kind", ["ball", "rubber_ball"])
def test_a_ball_that_rolls_keeps_its_spin_but_is_not_reduced_by_it(kind):
    robot = Mechanism(
        "ball",
        [
            Body("fork", joints.Sliding(Z), None, Pose(), Inertia(1.0)),
            Body("ball", joints.Spherical(), "fork", Pose(), centred((0.1, 0.1, 0.1))),
        ],
        [cc.Wheel("ball", 0.3, kind=kind)],
        actuated=[],
    )
    row = cc.symmetry(robot)["ball"]
    # The kinetic energy sees no left translation, rolling sees them all: the fork does not turn
    # along. Right translations keep what rolling admits, but it admits none of them alone.
    assert (row.left.dim, row.constraints.dim, row.kept.dim) == (3, 0, 0)
    assert (row.right.dim, row.own.dim) == (3, 0)
    assert not row.reducible
    if kind == "ball":
        np.testing.assert_allclose(row.conserving.twists[:, 0], [0, 0, 0, 0, 0, 1], atol=1e-12)
        assert row.conserved == ("angular momentum about z",)
        assert row.reason.startswith("conserved: nobody drives it, kinetic energy and potential")
    else:
        assert row.conserving.dim == 0
        assert row.conserved == ()
        assert row.reason.startswith("metric only: the rolling constraints depend on it")


def test_a_sleigh_with_its_mass_over_the_skate_keeps_turning():
    # Rolling changes when the sleigh is turned in its own axes, yet that momentum is constant.
    sleigh = Mechanism(
        "sleigh",
        [Body("sleigh", joints.Planar(), None, Pose(), Inertia(2.0, (0.3, 0, 0), BOX))],
        [cc.Wheel("sleigh", 0.0, kind="slider", axis=Y, center=(0.3, 0, 0))],
    )
    row = cc.symmetry(sleigh)["sleigh"]
    assert (row.left.dim, row.kept.dim, row.conserving.dim) == (3, 3, 0)
    assert (row.right.name, row.own.name, row.own_reducing.dim) == ("SO(2)", "SO(2)", 0)
    assert not row.reducible
    assert row.conserved == ("angular momentum about z through (0.3, 0, 0) of the body",)
    off = [cc.Wheel("sleigh", 0.0, kind="slider", axis=Y, center=(0.1, 0, 0))]
    assert cc.symmetry(Mechanism("off", sleigh.bodies, off))["sleigh"].conserved == ()


@pytest.mark.parametrize(
    ("case", "joint"), [("crane", "column"), ("floating with an idle wheel", "wheel")]
)
def test_agrees_with_the_rate_of_the_reduced_momentum(case, joint):
    robot, _ = CONSERVING[case]()
    assert cc.symmetry(robot)[joint].reducible
    assert cc.conservation(cc.reduce(robot), joint).conserved
    driven = Mechanism(robot.name, robot.bodies, robot.wheels, robot.gravity)
    assert not cc.symmetry(driven)[joint].reducible
    assert not cc.conservation(cc.reduce(driven), joint).conserved


def test_reduced_level_agrees_for_the_crane():
    # Section 1.6 (i)-(iii): the reduced metric and the two-form do not see the column turn, and
    # the two-form has no leg along it.
    model = cc.reduce(crane(undriven="column"))
    row = cc.symmetry(model)["column"]
    assert row.reducible
    rng, at = np.random.default_rng(5), model.shape_names.index("column")
    q, p, u = model.robot.random(rng), rng.normal(size=model.ns), rng.normal(size=model.nu)
    moved = left_translated(model.robot, q, "column", np.array([0.9]))
    np.testing.assert_allclose(model.mass_matrix(moved), model.mass_matrix(q), atol=1e-9)
    np.testing.assert_allclose(model.two_form(moved, p), model.two_form(q, p), atol=1e-12)
    np.testing.assert_allclose(model.two_form(q, p)[:, at], 0.0, atol=1e-12)
    assert abs(model.vector_field(q, p, u)[1][at]) < 1e-9


# --- nearly symmetric --------------------------------------------------------------------------


@dataclass(frozen=True)
class Near:
    """A robot with a symmetry for zero, and which group of which joint it is."""

    build: object
    joint: str
    group: str


def near_turntable(e):
    return turntable((e, 0, 0.3))


def near_wheel(e):
    robot = rover()
    bodies = [
        replace(b, inertia=Inertia(1.0, moments=(0.0028 * (1 + e), 0.005, 0.0028)))
        if b.name == "left"
        else b
        for b in robot.bodies
    ]
    return Mechanism("near", bodies, robot.wheels)


def near_hand(e):
    """A small hand far out on a heavy spacecraft."""
    hand = Inertia(0.5, (0, 0, 0.1), (1e-3 * (1 + e), 1e-3, 5e-4))
    return chain(
        (joints.Free(), Pose(), Inertia(2000.0, moments=(900, 800, 700))),
        (joints.Revolute(Y), Pose((2.0, 0, 0)), Inertia(30.0, (1, 0, 0), (1, 5, 5))),
        (joints.Revolute(Z), Pose((3.0, 0, 0)), hand),
    )


def near_level(e):
    tilted = (9.81 * np.sin(e), 0.0, -9.81 * np.cos(e))
    return chain(CAR, gravity=tilted, actuated=[])


def near_slide(e):
    return slide_then_planar((np.sin(e), 0, np.cos(e)))


def near_centre(e):
    return chain((joints.Spherical(), OUT, GENERIC), (joints.Spherical(), Pose((e, 0, 0)), GENERIC))


NEAR = {
    "centre of mass off the axis": Near(near_turntable, "b2", "left"),
    "wheel not round": Near(near_wheel, "left", "left"),
    "light hand on a heavy base": Near(near_hand, "b3", "left"),
    "right, light hand": Near(near_hand, "b3", "right"),
    "slide not upright": Near(near_slide, "b2", "left"),
    "plane not level": Near(near_level, "b1", "potential"),
    "centres apart": Near(near_centre, "b2", "conjugated"),
}


@pytest.mark.parametrize("case", NEAR)
def test_nearly_symmetric_robots_are_not_symmetric(case):
    near = NEAR[case]
    exact, *off = (
        getattr(cc.symmetry(near.build(e))[near.joint], near.group) for e in (0.0, 1e-3, 1e-6)
    )
    # The plane that is not level keeps one slide; all others lose everything they lose here.
    assert all(group.dim < exact.dim for group in off)
    ratio = off[0].violation / off[1].violation
    assert ratio == pytest.approx(1000.0, rel=0.02), "the violation is of the size of the fault"
    assert 1e-2 < off[0].violation / 1e-3 < 1e2
    # Whoever accepts such a fault says so.
    loose = cc.symmetry(near.build(1e-6), tolerance=1e-3)[near.joint]
    assert getattr(loose, near.group).dim == exact.dim


def test_reason_tells_the_size_of_the_violation():
    row = cc.symmetry(near_turntable(1e-6))["b2"]
    assert row.reason == f"kinetic energy depends on it (change {row.left.violation:.1e})"
    row = cc.symmetry(near_level(1e-6))["b1"]
    assert row.kept.name == "R"
    assert f"(change {row.potential.violation:.1e})" in row.reason


def test_groups_stay_closed_whatever_the_tolerance():
    # On a far hinge the table slides along it, and for a loose tolerance turns too: but that
    # slide and the turn together generate the other slide, which fails.
    robot = chain(
        (joints.Revolute(X), Pose(), Inertia(1.0, moments=(1, 1, 1))),
        (joints.Planar(), Pose((0, 100.0, 0)), Inertia(2.0, moments=(0.1, 0.2, 0.3))),
    )
    found = cc.symmetry(robot, tolerance=0.016)["b2"].left
    assert found.violation < 0.016
    assert found.group.closed
    assert found.name == "R"
    assert cc.symmetry(robot, tolerance=0.03)["b2"].left.name == "SE(2)"


# --- random robots, by brute force -------------------------------------------------------------


def hidden(seed):
    """Random robot some of whose joints carry something round, in frames that hide it."""
    rng = np.random.default_rng(30_000 + seed)
    base = [joints.Free(), joints.Planar(), joints.Prismatic(_direction(rng)), joints.Fixed()]
    bodies = [Body("b0", base[seed % 4], None, _placement(rng), _inertia(rng, 5.0))]
    for i in range(1, 5):
        parent = bodies[rng.integers(i)].name
        if rng.random() < 0.5:
            joint = [joints.Revolute(_direction(rng)), joints.Prismatic(_direction(rng))][i % 2]
            bodies.append(Body(f"b{i}", joint, parent, _placement(rng), _inertia(rng)))
        elif rng.random() < 0.6:
            axis = _direction(rng)
            moments = 0.2 * np.eye(3) + rng.uniform(-0.05, 0.15) * np.outer(axis, axis)
            round_ = Inertia(1.5, rng.uniform(-0.3, 0.3) * axis, (moments + moments.T) / 2)
            bodies.append(Body(f"b{i}", joints.Revolute(axis), parent, _placement(rng), round_))
        else:
            ball = centred((0.1, 0.1, 0.1))
            bodies.append(Body(f"b{i}", joints.Spherical(), parent, _placement(rng), ball))
    gravity = [(0, 0, 0), rng.uniform(-9, 9, 3)][rng.integers(2)]
    return Mechanism(f"hidden{seed}", bodies, gravity=gravity)


def assert_confirmed_by_brute_force(robot, rows=None):
    """Finite motions of the groups found leave M, V and C alone, and finite others do not."""
    oracle, rng, found = Pinocchio(robot), np.random.default_rng(robot.nv), 0
    states = [robot.random(rng) for _ in range(3)]
    for row in cc.symmetry(robot):

        def changes(x, joint=row.joint):
            worst = np.zeros(3)
            for q in states:
                moved = left_translated(robot, q, joint, x)
                mass = oracle.mass_matrix(q)
                scale = np.sqrt(np.outer(np.diag(mass), np.diag(mass)))
                weight = robot.total_mass * (np.linalg.norm(robot.gravity) or 1.0)
                rise = oracle.potential_energy(moved) - oracle.potential_energy(q)
                turned = 0.0
                if rows is not None:
                    turned = np.abs(rows(moved) @ null_space(rows(q))).max()
                change = np.abs(oracle.mass_matrix(moved) - mass) / scale
                worst = np.maximum(worst, [change.max(), abs(rise) / weight, turned])
            return worst

        for group, kinds in (
            (row.left, [0]),
            (row.potential, [0, 1]),
            (row.constraints, [0, 2]),
            (row.kept, [0, 1, 2]),
        ):
            if group.dim:
                x = group.coordinates @ rng.uniform(-1.0, 1.0, group.dim)
                assert changes(x)[kinds].max() < 1e-9, f"{robot.name}, {row.joint}"
                found += row.role != "base"
            if group.dim < row.whole.dim:
                x = rng.uniform(0.3, 1.0, row.whole.dim)
                assert changes(x)[kinds].max() > 1e-7, f"{robot.name}, {row.joint}"
        assert_same_span(row.left.coordinates, left_by_condition(robot, row.joint))
    return found


def some_of(count, quick):
    """Seeds of which only the first few are tried when time is short."""
    slow = pytest.mark.slow
    return [pytest.param(i, marks=() if i < quick else slow) for i in range(count)]


@pytest.mark.parametrize("seed", some_of(10, 3))
def test_random_trees(seed):
    assert_confirmed_by_brute_force(random_tree(seed))


@pytest.mark.parametrize("seed", some_of(20, 4))
def test_random_rovers(seed):
    random = random_rover(seed)
    assert assert_confirmed_by_brute_force(random.robot, random.rows), "both wheels are round"


@pytest.mark.parametrize("seed", some_of(20, 6))
def test_random_robots_with_hidden_symmetries(seed):
    assert_confirmed_by_brute_force(hidden(seed))


def test_hidden_symmetries_are_there():
    found = [row for seed in range(6) for row in cc.symmetry(hidden(seed)) if row.role != "base"]
    assert sum(row.left.dim > 0 for row in found) >= 5
    assert sum(row.left.dim == 0 for row in found) >= 5


# --- the report --------------------------------------------------------------------------------


def test_report_prints_as_a_table():
    report = cc.symmetry(crane(undriven="column"))
    lines = str(report).splitlines()
    assert len(lines) == 1 + len(report) == 7
    assert lines[0].split() == ["joint", "group", "AP1", "AP2", "right", "kept", "reducible", "why"]
    cells = [cell.strip() for cell in lines[3].split("  ") if cell.strip()]
    assert cells[:7] == ["column", "1 SO(2)", "0", "1 SO(2)", "-", "1 SO(2)", "yes"]
    assert cells[7].endswith("keep it; angular momentum about z")
    assert str(report["boom"]).startswith("`boom`: kinetic energy depends on it")
    hull = str(cc.symmetry(FLOATING)).splitlines()[1]
    assert hull.endswith("linear momentum along x, y, z; angular momentum about x, y, z")


def test_momenta_about_other_axes_are_named():
    rows = cc.symmetry(in_gravity(disc_then_planar(), (0, 0, 0), ["b2"]))
    assert rows["b2"].conserved == (
        "angular momentum about z through (-0.3, 0.2, 0)",
        "angular momentum about z through (0.1, 0.05, 0) of the body",
    )
    screw = chain((joints.Helical((0, 0.6, 0.8), 0.02), Pose(), GENERIC), actuated=[])
    assert cc.symmetry(screw)["b1"].conserved == (
        "screw momentum about (0, 0.6, 0.8) with pitch 0.02 m/rad",
    )


def test_a_reduced_model_stands_for_its_robot():
    robot = crane(undriven="column")
    assert str(cc.symmetry(cc.reduce(robot))) == str(cc.symmetry(robot))


def test_what_is_welded_moves_along():
    # A joint whose body carries something welded is still an extremity.
    hand = chain(CAR, (joints.Revolute(Z), OUT, centred(BOX)), (joints.Fixed(), OUT, GENERIC))
    report = cc.symmetry(hand)
    assert [row.joint for row in report] == ["b1", "b2"]
    assert report["b2"].right.dim == 0
    assert report["b1"].right is None


def test_point_masses_do_not_divide_by_zero():
    robot = chain(CAR, (joints.Prismatic(X), Pose(), Inertia(1.0)))
    assert cc.symmetry(robot)["b2"].left.dim == 0
    assert cc.symmetry(chain((joints.Cartesian(), Pose(), Inertia(1.0))))["b1"].left.dim == 3


def test_bad_input():
    with pytest.raises(DescriptionError, match="a Mechanism or a reduced model, got str"):
        cc.symmetry("rover")
    with pytest.raises(DescriptionError, match="`samples`"):
        cc.symmetry(rover(), samples=0)
    with pytest.raises(DescriptionError, match="`samples`"):
        cc.symmetry(rover(), samples=True)
    assert len(cc.symmetry(rover(), samples=np.int64(2))) == 6
    for wrong in (0.0, 0.5, "tight", float("nan")):
        with pytest.raises(DescriptionError, match="`tolerance`"):
            cc.symmetry(rover(), tolerance=wrong)
    with pytest.raises(UnknownNameError, match="Did you mean 'column'"):
        cc.symmetry(crane())["colum"]
