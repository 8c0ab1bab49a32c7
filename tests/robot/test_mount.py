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


@pytest.mark.parametrize(
    "rpy", [(0.0, 90.0, 0.0), (30.0, -40.0, 110.0), (180.0, -90.0, 25.0), (-400.0, 12.5, 360.0)]
)
def test_poses_in_degrees_are_those_of_urdf(rpy: tuple[float, ...], tmp_path: Path) -> None:
    """Against the origin of a joint as Pinocchio reads it; of mount, body and shape."""
    pinocchio = pytest.importorskip("pinocchio")
    origin = f'<origin xyz="0.1 0.2 0.3" rpy="{" ".join(map(repr, np.radians(rpy).tolist()))}"/>'
    text = URDF.replace('<axis xyz="0 1 0"/>', origin + '<axis xyz="0 1 0"/>')
    turn = pinocchio.buildModelFromXML(text).jointPlacements[1].rotation
    (tmp_path / "arm.urdf").write_text(URDF)
    pose = f"translation = [0.1, 0.2, 0.3], rpy_deg = {list(rpy)}"
    (tmp_path / "sat.toml").write_text(
        f'{SATELLITE}shape = {{ type = "box", size = [1, 1, 1], {pose} }}\n[[bodies]]\n'
        f'name = "camera"\nparent = "bus"\njoint = {{ type = "Fixed" }}\nplacement = {{ {pose} }}\n'
        f'[[mount]]\nfile = "arm.urdf"\nat = {{ {pose} }}\n'
    )
    bus, *others = cc.load(tmp_path / "sat.toml").bodies
    placed = {body.name: body.placement for body in others} | {"shape": bus.shape[0].placement}
    for name in ("camera", "foot", "shape"):
        assert placed[name].translation == (0.1, 0.2, 0.3)
        assert_close(placed[name].rotation_matrix, turn, 1e-12)


@pytest.mark.parametrize(
    ("pose", "words"),
    [
        (
            "rotation = [0, 0, 0, 1], rpy_deg = [0, 0, 0]",
            "either `rotation` or `rpy_deg`, got both",
        ),
        ("rpy_deg = [0, 0]", "expected 3 numbers"),
        ("rpy_deg = [0, 0, nan]", "within 1e9, got nan"),
        ("rpy = [0, 0, 0]", r"Write rpy_deg = \[roll, pitch, yaw\] in degrees"),
        ("rotation = [0, 0, 0.6, 0.9]", "expected a unit quaternion"),
    ],
)
@pytest.mark.parametrize("place", ["placement", "shape", "at"])
def test_wrong_poses_are_refused(pose: str, words: str, place: str, tmp_path: Path) -> None:
    (tmp_path / "arm.urdf").write_text(URDF)
    text = {
        "placement": f"placement = {{ {pose} }}",
        "shape": f'shape = {{ type = "box", size = [1, 1, 1], {pose} }}',
        "at": f'[[mount]]\nfile = "arm.urdf"\nat = {{ {pose} }}',
    }[place]
    (tmp_path / "sat.toml").write_text(f"{SATELLITE}{text}\n")
    with pytest.raises(ConcurError, match=words) as caught:
        cc.load(tmp_path / "sat.toml")
    assert place in f"{caught.value.table} {caught.value.field}"
