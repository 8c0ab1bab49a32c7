"""Momenta that symmetries keep: at full order, and on the reduced robot."""

import numpy as np
import pytest

import concur as cc
from concur import Body, Inertia, Mechanism, Pose, joints
from tests.oracles import (
    CraneNumbers,
    crane,
    crane_rows,
)
from tests.reduction._symmetric_robots import (
    BOX,
    FLOATING,
    GENERIC,
    OUT,
    X,
    Y,
    Z,
    ball_on,
    centred,
    chain,
    disc_then_planar,
    in_gravity,
    momentum_rates,
    slide_then_planar,
)

# --- momenta that are said to stay constant, at full order -------------------------------------


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
    assert row.reason.startswith("conserved: ")
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
    assert driven.reason.startswith("driven: its momentum changes with the torque")
    assert (driven.conserved, driven.reducible, driven.own.dim) == ((), False, 3)


@pytest.mark.parametrize("kind", ["ball", "rubber_ball"])
def test_a_ball_that_rolls_keeps_its_spin_about_the_vertical(kind):
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
    assert row.reducible == (kind == "ball")
    if kind == "ball":
        # With the fork that rolls along it keeps all its momentum, which reduces the robot.
        assert cc.reduction.conservation(cc.reduce(robot), "ball").conserved
        assert len(row.along[0].generators) == cc.reduce(robot, stages=["ball"]).nn == 3
        np.testing.assert_allclose(row.conserving.twists[:, 0], [0, 0, 0, 0, 0, 1], atol=1e-12)
        assert row.conserved[0] == "angular momentum about z"
        assert row.conserved[1].endswith(", with what rolls along")
        assert row.reason.startswith("conserved: ")
    else:
        assert row.conserving.dim == 0
        assert row.conserved == ()
        assert row.reason.startswith("the rolling constraints depend on it")


def test_a_sleigh_with_its_mass_over_the_skate_keeps_turning():
    # Rolling changes when the sleigh is turned in its own axes, yet that momentum is constant.
    sleigh = Mechanism(
        "sleigh",
        [Body("sleigh", joints.Planar(), None, Pose(), Inertia(2.0, (0.3, 0, 0), BOX))],
        [cc.Wheel("sleigh", 0.0, kind="slider", axis=Y, center=(0.3, 0, 0))],
    )
    row = cc.symmetry(sleigh)["sleigh"]
    assert (row.left.dim, row.kept.dim, row.conserving.dim) == (3, 3, 0)
    assert (row.right.name, row.own.name) == ("SO(2)", "SO(2)")
    assert not row.reducible
    assert row.conserved == ("angular momentum about z through (0.3, 0, 0) of the body",)
    off = [cc.Wheel("sleigh", 0.0, kind="slider", axis=Y, center=(0.1, 0, 0))]
    assert cc.symmetry(Mechanism("off", sleigh.bodies, off))["sleigh"].conserved == ()
