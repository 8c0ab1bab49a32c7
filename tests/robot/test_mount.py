"""Robots on bodies of others, in Python and in files, against Pinocchio and one by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import concur as cc
from concur.errors import ConcurError, DescriptionError, UnknownNameError
from tests.oracles import Pinocchio, assert_close

AT = cc.Pose((0.5, 0.1, -0.2), (0.1, -0.3, 0.2, 0.927361849549570))
HULL = cc.Inertia(500.0, (0.1, 0.0, 0.0), (40.0, 50.0, 60.0))
LINK = cc.Inertia(3.0, (0.2, 0.0, 0.1), (0.1, 0.2, 0.15))


def arm(base: cc.joints.Joint, placement: cc.Pose = cc.Pose()) -> cc.Mechanism:  # noqa: B008
    """Two joints with a gear and a finger that follows another."""
    return cc.Mechanism(
        "arm",
        [
            cc.Body("foot", base, None, placement, LINK),
            cc.Body("turn", cc.joints.Revolute((0, 0, 1)), "foot", AT, LINK),
            cc.Body("lift", cc.joints.Revolute((0, 1, 0)), "turn", AT, LINK),
            cc.Body("finger", cc.joints.Prismatic((0, 1, 0)), "lift", AT, LINK),
            cc.Body("thumb", cc.joints.Prismatic((0, 1, 0)), "lift", AT, LINK),
        ],
        motors=[
            cc.Motor("drive", "turn", gear=50.0, rotor=1e-4, stator="foot", shaft=(0, 1, 0)),
            cc.Motor("jet", body="lift", wrench=(1, 0, 0, 0, 0, 0)),
        ],
        mimics=[cc.robot.Mimic("thumb", "finger", -1.0)],
    )


def by_hand(prefix: str, at: cc.Pose) -> cc.Mechanism:
    n = {name: prefix + name for name in ("foot", "turn", "lift", "finger", "thumb")}
    return cc.Mechanism(
        "sat",
        [
            cc.Body("hull", cc.joints.Free(), inertia=HULL),
            cc.Body(n["foot"], cc.joints.Fixed(), "hull", at, LINK),
            cc.Body(n["turn"], cc.joints.Revolute((0, 0, 1)), n["foot"], AT, LINK),
            cc.Body(n["lift"], cc.joints.Revolute((0, 1, 0)), n["turn"], AT, LINK),
            cc.Body(n["finger"], cc.joints.Prismatic((0, 1, 0)), n["lift"], AT, LINK),
            cc.Body(n["thumb"], cc.joints.Prismatic((0, 1, 0)), n["lift"], AT, LINK),
        ],
        actuated=[n["lift"], n["finger"]],
        motors=[
            cc.Motor(f"{prefix}drive", n["turn"], 50.0, 1e-4, stator=n["foot"], shaft=(0, 1, 0)),
            cc.Motor(f"{prefix}jet", body=n["lift"], wrench=(1, 0, 0, 0, 0, 0)),
        ],
        mimics=[cc.robot.Mimic(n["thumb"], n["finger"], -1.0)],
    )


SAT = cc.Mechanism("sat", [cc.Body("hull", cc.joints.Free(), inertia=HULL)])


@pytest.mark.parametrize("base", [cc.joints.Fixed(), cc.joints.Free(), cc.joints.Planar()])
def test_mounted_robot_is_the_one_by_hand(base: cc.joints.Joint) -> None:
    assert cc.mount(SAT, arm(base), "hull", AT, "left_") == by_hand("left_", AT)
    assert cc.mount(SAT, arm(base)) == by_hand("", cc.Pose())


def test_placement_of_a_fixed_base_counts_and_two_arms_move_apart() -> None:
    placed = arm(cc.joints.Fixed(), cc.Pose((0.0, 0.3, 0.0)))
    placed = replace(placed, motors=(), mimics=(), actuated=None)
    both = cc.mount(cc.mount(SAT, placed, at=AT, prefix="left_"), placed, "left_lift", AT, "right_")
    q = both.random(np.random.default_rng(1))
    inner = np.eye(4)
    inner[:3, 3] = 0.0, 0.3, 0.0
    hull = both.pose(q, "hull")
    assert_close(both.pose(q, "left_foot"), hull @ AT.matrix @ inner, 1e-12)
    carried = both.pose(q, "left_lift") @ AT.matrix @ inner
    assert_close(both.pose(q, "right_foot"), carried, 1e-12)
    assert_close(both.mass_matrix(q), Pinocchio(both).mass_matrix(q), 1e-11)


@pytest.mark.parametrize(
    ("arguments", "kind", "place"),
    [
        ((SAT, SAT), DescriptionError, "`sat`"),
        ((SAT, "arm"), DescriptionError, "`arm`"),
        ((None, arm(cc.joints.Fixed())), DescriptionError, "`base`"),
        ((SAT, arm(cc.joints.Fixed()), "nobody"), UnknownNameError, "`on`"),
        ((SAT, cc.robots.rover_arm(), None, None, "x_"), DescriptionError, "`rover_arm`"),
    ],
)
def test_wrong_mounts_are_refused(arguments: tuple, kind: type, place: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(kind, match=place):
        cc.mount(*arguments)


SATELLITE = """
name = "sat"
[[bodies]]
name = "bus"
joint = { type = "Free" }
inertia = { mass = 12.0, box = [1.0, 2.0, 3.0] }
"""
URDF = """<robot name="arm"><link name="foot"/>
<link name="l1"><inertial><mass value="1"/>
<inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j1" type="revolute"><parent link="foot"/><child link="l1"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="5" velocity="2"/></joint></robot>
"""


def test_file_mounts_arms_of_other_files(tmp_path: Path) -> None:
    (tmp_path / "arms").mkdir()
    (tmp_path / "arms" / "arm.urdf").write_text(URDF)
    file = tmp_path / "sat.toml"
    file.write_text(
        SATELLITE
        + '[[mount]]\nfile = "arms/arm.urdf"\nprefix = "left_"\n'
        + "at = { translation = [0.5, 0.0, 0.0] }\n"
        + '[[mount]]\nfile = "arms/arm.urdf"\non = "left_l1"\n'
    )
    robot = cc.load(file)
    assert [body.name for body in robot.bodies] == ["bus", "left_foot", "left_l1", "foot", "l1"]
    assert robot.bodies[0].inertia.moments == (13.0, 10.0, 5.0)
    assert robot.bodies[3].parent == "left_l1"
    assert robot.bodies[1].placement.translation == (0.5, 0.0, 0.0)
    assert robot.control_limits.tolist() == [5.0, 5.0]
    assert cc.load(robot.save(tmp_path / "whole.toml")[0]) == robot
    file.write_text('mount = { file = "arms/arm.urdf" }\n' + SATELLITE)
    assert cc.load(file).control_names == ("j1",)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('[[mount]]\nfile = "no.urdf"\n', "no.urdf"),
        ('[[mount]]\nfile = "arm.urdf"\non = "nobody"\n', "nobody"),
        ('[[mount]]\nfile = "arm.urdf"\n[[mount]]\nfile = "arm.urdf"\n', "prefix"),
        ('[[mount]]\nfile = "sat.toml"\nprefix = "x"\n', "sat.toml"),
        ('[[mount]]\nfiel = "arm.urdf"\n', "`fiel`"),
        ('[[mount]]\nfile = "arm.urdf"\nat = [0.0, 0.0, 1.0]\n', "`at`"),
    ],
)
def test_broken_mounts_are_refused_with_the_file(text: str, place: str, tmp_path: Path) -> None:
    (tmp_path / "arm.urdf").write_text(URDF)
    (tmp_path / "sat.toml").write_text(SATELLITE + text)
    with pytest.raises(ConcurError) as caught:
        cc.load(tmp_path / "sat.toml")
    assert place in str(caught.value)


def test_boxes_have_edges() -> None:
    assert cc.Inertia.box(0.0, (1, 1, 1)).moments == (0.0, 0.0, 0.0)
    for size in ((1, 1), (-1e-9, 1, 1), (1, float("nan"), 1)):
        with pytest.raises(ConcurError, match="box"):
            cc.Inertia.box(1.0, size)
