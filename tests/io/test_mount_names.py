"""Tables of a robot file name parts of the robots that it mounts; against one file by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

import concur as cc
from concur.errors import ConcurError
from tests.oracles import assert_close

BASE = """
name = "cart"
gravity = [0.0, 0.0, -9.81]
[[bodies]]
name = "chassis"
joint = { type = "Planar" }
inertia = { mass = 20.0, moments = [1.0, 1.0, 1.0] }
[[bodies]]
name = "mast"
parent = "chassis"
joint = { type = "Revolute", axis = [0, 0, 1] }
inertia = { mass = 2.0, moments = [0.1, 0.1, 0.1] }
"""
MOUNTS = """
[[mount]]
file = "module.toml"
prefix = "left_"
at = { translation = [0.0, 0.2, 0.0] }
[[mount]]
file = "module.toml"
prefix = "right_"
at = { translation = [0.0, -0.2, 0.0] }
"""
MODULE = """
name = "module"
actuated = ["roll"]
[[bodies]]
name = "fork"
joint = { type = "Fixed" }
inertia = { mass = 0.5, moments = [0.01, 0.01, 0.01] }
[[bodies]]
name = "disk"
parent = "fork"
joint_name = "roll"
joint = { type = "Revolute", axis = [0, 1, 0] }
inertia = { mass = 1.0, moments = [0.003, 0.005, 0.003] }
[[bodies]]
name = "flap"
parent = "fork"
joint = { type = "Revolute", axis = [1, 0, 0] }
placement = { translation = [0.1, 0.0, 0.1] }
inertia = { mass = 0.2, moments = [0.001, 0.001, 0.001] }
[keyframes.home]
q = { roll = 0.5, flap = 0.1 }
v = { flap = 0.3 }
"""
OUTER = """
[[wheels]]
body = "left_disk"
radius = 0.1
[[wheels]]
body = "right_disk"
radius = 0.1
[[bodies]]
name = "camera"
parent = "left_flap"
joint = { type = "Revolute", axis = [0, 0, 1] }
inertia = { mass = 0.1, moments = [0.001, 0.001, 0.001] }
[keyframes.away]
q = { left_roll = 0.7, camera = 0.2 }
[keyframes.left_home]
q = { left_flap = 0.4, mast = -0.2 }
"""


def part(side: str, y: float) -> str:
    """The bodies of a mounted module, as one file has them."""
    text = MODULE[MODULE.index("[[bodies]]") : MODULE.index("[keyframes")]
    for name in ("fork", "disk", "roll", "flap"):
        text = text.replace(f'"{name}"', f'"{side}_{name}"')
    foot = f'parent = "chassis"\nplacement = {{ translation = [0.0, {y}, 0.0] }}\n'
    return text.replace("joint = { type = ", f"{foot}joint = {{ type = ", 1)


HAND = OUTER[: OUTER.index("[keyframes.left")] + (
    "[keyframes.left_home]\nq = { left_roll = 0.5, left_flap = 0.4, mast = -0.2 }\n"
    "v = { left_flap = 0.3 }\n"
    "[keyframes.right_home]\nq = { right_roll = 0.5, right_flap = 0.1 }\n"
    "v = { right_flap = 0.3 }\n"
)


def read(folder: Path, text: str) -> cc.Mechanism:
    (folder / "module.toml").write_text(MODULE, encoding="utf-8")
    (folder / "cart.toml").write_text(text, encoding="utf-8")
    return cc.load(folder / "cart.toml")


@pytest.mark.parametrize(
    ("stated", "actuated"),
    [
        (None, ["mast", "camera", "left_roll", "right_roll"]),
        ([], ["left_roll", "right_roll"]),
        (["mast"], ["mast", "left_roll", "right_roll"]),
        # Who names one joint of a mounted robot lists those of this robot, and of no other.
        (["mast", "left_flap", "left_roll"], ["mast", "left_flap", "left_roll", "right_roll"]),
        (["right_flap"], ["left_roll", "right_flap"]),
        (["left_disk"], ["left_roll", "right_roll"]),  # the name of its body serves too
    ],
)  # fmt: skip
def test_mounted_parts_have_wheels_motors_and_states_of_the_file_that_mounts_them(
    stated: list[str] | None, actuated: list[str], tmp_path: Path
) -> None:
    head = "" if stated is None else f"actuated = {stated}\n"
    found = read(tmp_path, head + BASE + MOUNTS + OUTER)
    one = f"actuated = {actuated}\n{BASE}{part('left', 0.2)}{part('right', -0.2)}{HAND}"
    whole = read(tmp_path, one)
    assert sorted(found.actuated or ()) == sorted(actuated)
    assert set(found.bodies) == set(whole.bodies)
    assert (found.wheels, found.keyframes) == (whole.wheels, whole.keyframes)
    assert found.constraint_names == whole.constraint_names
    assert cc.load(found.save(tmp_path / "again.toml")[0]) == found
    q, v = found.keyframe("left_home")
    at = dict(zip(found.freedom_names, found.rate(q, v), strict=True))
    assert (at["left_flap"], at["right_flap"]) == (0.3, 0.0)
    # The names of a joint and of its body are the same number: that of this file holds.
    both = BASE + MOUNTS + OUTER.replace("left_flap = 0.4", "left_disk = 0.9")
    assert read(tmp_path, both).keyframe("left_home")[0][found.q_slice("left_disk")] == 0.9
    states = whole.keyframe("left_home")
    assert_close(found.pose(q, "camera"), whole.pose(states[0], "camera"), 1e-15)


def test_actuators_and_states_of_frames_of_urdf_files(tmp_path: Path) -> None:
    """The wheel of a mounted URDF file stands on a frame, which a fixed joint carries."""
    solid = (
        '<inertial><mass value="1"/>'
        '<inertia ixx=".1" iyy=".1" izz=".1" ixy="0" ixz="0" iyz="0"/></inertial>'
    )
    (tmp_path / "side.urdf").write_text(
        f'<robot name="side"><link name="foot"/><link name="hub">{solid}</link><link name="rim"/>'
        '<joint name="turn" type="continuous"><parent link="foot"/><child link="hub"/>'
        '<axis xyz="0 1 0"/></joint><joint name="glue" type="fixed"><parent link="hub"/>'
        '<child link="rim"/></joint></robot>'
    )
    mounts = MOUNTS.replace("module.toml", "side.urdf")
    wheels = OUTER[: OUTER.index("[[bodies]]")].replace("_disk", "_rim")
    (tmp_path / "cart.toml").write_text(
        f'actuated = ["left_turn"]\n{BASE}{mounts}{wheels}[keyframes.home.q]\nright_turn = 2.0\n'
    )
    robot = cc.load(tmp_path / "cart.toml")
    assert robot.actuated == ("left_turn", "right_turn")
    assert [wheel.body for wheel in robot.wheels] == ["left_hub", "right_hub"]
    assert robot.keyframe("home")[0][-1] == 2.0


@pytest.mark.parametrize(
    ("old", "new", "place", "words"),
    [
        ("", 'actuated = ["left_rol"]\n', ("", "actuated"), "Did you mean 'left_roll'"),
        ("", 'actuated = ["roll"]\n', ("", "actuated"), "Did you mean 'left_roll'"),
        ('"left_disk"', '"left_disc"', ('[[wheels]] "left_disc"', "body"), "'left_disk'"),
        ('"left_disk"', '"disk"', ('[[wheels]] "disk"', "body"), "'left_disk'"),
        ("left_roll = 0.7", "left_rol = 0.7", ("[keyframes.away]", "q"), "'left_roll'"),
        ("left_roll = 0.7", "roll = 0.7", ("[keyframes.away]", "q"), "'left_roll'"),
        ("left_roll = 0.7", "left_roll = [0.7, 0.1]", ("[keyframes.away]", "q"), "shape"),
        ("left_roll = 0.7", "left_roll = 0.7, left_disk = 0.1", ("[keyframes.away]", "q"), "once"),
        ("left_flap = 0.4, mast", "left_flop = 0.4, mast", ("[keyframes.left_home]", "q"), "flap"),
        ('"left_flap"', '"left_flip"', ('[[bodies]] "camera"', "parent"), "'left_flap'"),
        ('prefix = "left_"', 'prefix = "right_"', ('[[mount]] "module.toml"', ""), "twice"),
        ('file = "module.toml"', 'file = "module.toml"\non = "mats"',
         ('[[mount]] "module.toml"', "on"), "'mast'"),
    ],
)  # fmt: skip
def test_wrong_names_of_mounted_parts_are_refused_with_their_place(
    old: str, new: str, place: tuple[str, str], words: str, tmp_path: Path
) -> None:
    text = BASE + MOUNTS + OUTER
    text = text.replace(old, new, 1) if old else new + text
    with pytest.raises(ConcurError, match=words) as caught:
        read(tmp_path, text)
    assert (caught.value.table, caught.value.field) == place
    assert caught.value.file.endswith("cart.toml")
