"""Robots that are nearly symmetric, and random ones: symmetries by brute force."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.linalg import null_space

import concur as cc
from concur import Body, Inertia, Mechanism, Pose, joints
from tests.oracles import (
    Pinocchio,
    random_tree,
    rover,
)
from tests.oracles._random import _direction, _inertia, _placement
from tests.reduction._symmetric_robots import (
    CAR,
    GENERIC,
    OUT,
    X,
    Y,
    Z,
    assert_same_span,
    centred,
    chain,
    left_by_condition,
    left_translated,
    slide_then_planar,
    turntable,
)
from tests.reduction.test_conservation import some_of

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
    "light hand on a heavy base": Near(near_hand, "b3", "left"),
    "wheel not round": Near(near_wheel, "left", "left"),
    "right, light hand": Near(near_hand, "b3", "right"),
    "slide not upright": Near(near_slide, "b2", "left"),
    "plane not level": Near(near_level, "b1", "potential"),
    "centres apart": Near(near_centre, "b2", "conjugated"),
}


@pytest.mark.by_default(1)
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
    # Such a fault is accepted by an explicit tolerance.
    loose = cc.symmetry(near.build(1e-6), tolerance=1e-3)[near.joint]
    assert getattr(loose, near.group).dim == exact.dim


def test_groups_stay_closed_whatever_the_tolerance():
    # The table is small beside its radius of gyration: it slides along the hinge, and for a loose
    # tolerance turns too. But that slide and the turn generate the other slide, which fails.
    robot = chain(
        (joints.Revolute(X), Pose(), Inertia(1.0, moments=(1, 1, 1))),
        (joints.Planar(), Pose((0, 1.0, 0)), Inertia(2.0, moments=(1e4, 1e4, 1e4))),
    )
    strict, closed, loose = (
        cc.symmetry(robot, tolerance=tolerance)["b2"].left for tolerance in (1e-4, 1e-3, 0.03)
    )
    assert (strict.name, closed.name, loose.name) == ("R", "R", "SE(2)")
    assert closed.group.closed
    assert 1e-4 < strict.violation == closed.violation < 1e-3 < loose.residual < 0.03


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


@pytest.mark.extended
@pytest.mark.parametrize("seed", some_of(10, 3))
def test_random_trees(seed):
    assert_confirmed_by_brute_force(random_tree(seed))


@pytest.mark.by_default(2)
@pytest.mark.parametrize("seed", some_of(20, 6))
def test_random_robots_with_hidden_symmetries(seed):
    assert_confirmed_by_brute_force(hidden(seed))


@pytest.mark.extended
def test_hidden_symmetries_are_there():
    found = [row for seed in range(6) for row in cc.symmetry(hidden(seed)) if row.role != "base"]
    assert sum(row.left.dim > 0 for row in found) >= 5
    assert sum(row.left.dim == 0 for row in found) >= 5
