"""URDF files: rules of the format against Pinocchio's reader, the sidecar, and invalid files."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin
import pytest
from typer.testing import CliRunner

import concur as cc
from concur import tables
from concur.cli import main
from concur.errors import ConcurError, DescriptionError, InertiaError
from concur.files import confined
from tests.oracles import Pinocchio, assert_close, random_velocity

SOLID = (
    '<inertial><origin xyz="0.1 -0.2 0.3" rpy="0.4 -0.5 0.6"/><mass value="2.5"/>'
    '<inertia ixx="0.02" ixy="0.001" ixz="-0.002" iyy="0.03" iyz="0.003" izz="0.025"/></inertial>'
)
GRAVITY = "gravity = [0.5, -1.0, -9.81]\n"


def link(name: str, content: str = SOLID) -> str:
    return f'<link name="{name}">{content}</link>\n'


def joint(name: str, kind: str, parent: str, child: str, content: str = "") -> str:
    ends = f'<parent link="{parent}"/><child link="{child}"/>'
    return f'<joint name="{name}" type="{kind}">{ends}{content}</joint>\n'


def robot(*parts: str) -> str:
    return '<robot name="arm">\n' + "".join(parts) + "</robot>\n"


def chain(kind: str, content: str = "", more: str = "") -> str:
    """Write two links and a joint of a type."""
    return robot(link("base"), link("tip"), joint("j", kind, "base", "tip", content), more)


def load(folder: Path, text: str, side: str = GRAVITY, keep_fixed: bool = False) -> cc.Mechanism:
    (folder / "arm.urdf").write_text(text)
    (folder / "arm.toml").write_text(side)
    return cc.load(folder / "arm.urdf", keep_fixed=keep_fixed)


class UrdfOracle(Pinocchio):
    """The file as Pinocchio reads it, with our coordinates; bodies and joints go by their names."""

    def __init__(self, text: str, ours: cc.Mechanism, base: str | None = None) -> None:
        tree = ElementTree.fromstring(text)
        for own in tree.iterfind("joint"):  # the library requires limits of these joints
            if own.get("type") in ("revolute", "prismatic") and own.find("limit") is None:
                ElementTree.SubElement(own, "limit", effort="1", velocity="1")
        text = ElementTree.tostring(tree, encoding="unicode")
        if base is None:
            free = isinstance(ours.base.joint, cc.joints.Free) and "world" not in text
            base = "free" if free else "fixed"
        root = {"free": pin.JointModelFreeFlyer, "planar": pin.JointModelPlanar}.get(base)
        self.model = pin.buildModelFromXML(text, root()) if root else pin.buildModelFromXML(text)
        self.model.gravity = pin.Motion(np.array(ours.gravity), np.zeros(3))
        self.data = self.model.createData()
        self.nq, self.nv = ours.nq, ours.nv
        kinds = {
            j.find("child").get("link"): j.get("type")  # type: ignore[union-attr]
            for j in ElementTree.fromstring(text).iterfind("joint")
        }
        kinds.setdefault(ours.base.name, base)
        to_library = {
            "continuous": lambda q: np.array([np.cos(q[0]), np.sin(q[0])]),
            "planar": lambda q: np.array([q[0], q[1], np.cos(q[2]), np.sin(q[2])]),
        }
        self._joint, self._offset, self._kinds, self._starts = {}, {}, {}, {}
        for body in ours.bodies:
            frame = self.model.frames[self.model.getFrameId(body.name, pin.FrameType.BODY)]
            self._joint[body.name] = frame.parentJoint
            self._offset[body.name] = frame.placement
            change = to_library.get(kinds.get(body.name, ""), lambda q: q)
            self._kinds[body.name] = SimpleNamespace(to_library=change)
            self._starts[body.name] = ours.q_slice(body.name).start, ours.v_slice(body.name).start
        moving = [body for body in ours.bodies if body.joint.nv]
        self._moving = sorted(moving, key=lambda body: self._joint[body.name])
        spans = [ours.v_slice(body.name) for body in self._moving]
        self._columns = np.concatenate([np.arange(s.start, s.stop) for s in spans])

    def configuration(self, q: np.ndarray) -> np.ndarray:
        parts = [
            self._kinds[body.name].to_library(q[self._starts[body.name][0] :][: body.joint.nq])
            for body in self._moving
        ]
        return np.concatenate(parts)


def compare(
    text: str,
    ours: cc.Mechanism,
    states: int = 2,
    base: str | None = None,
    poses: bool = True,
) -> None:
    """Dynamics, and with `poses` the motion of all bodies, as Pinocchio has them."""
    oracle, rng = UrdfOracle(text, ours, base), np.random.default_rng(3)
    assert oracle.model.nv == ours.nv
    for _ in range(states):
        q, v = ours.random(rng), random_velocity(ours, rng)
        for name, actual, expected in (
            ("mass matrix", ours.mass_matrix(q), oracle.mass_matrix(q)),
            ("bias", ours.bias(q, v), oracle.bias(q, v)),
            ("momentum", ours.momentum(q, v), oracle.momentum(q, v)),
        ):
            assert_close(actual, expected, 1e-9, name=name)
        for body in ours.bodies if poses else ():
            for name, actual, expected in (
                ("pose", ours.pose(q, body.name), oracle.pose(q, body.name)),
                ("Jacobian", ours.jacobian(q, body.name), oracle.jacobian(q, body.name)),
            ):
                assert_close(actual, expected, 1e-9, name=f"{name} of {body.name}")


# --- the rules of the format --------------------------------------------------------------------

ORIGIN = '<origin xyz="0.3 -0.1 0.2" rpy="0.7 -1.1 2.3"/>'
RULES = {
    "order of roll, pitch and yaw": chain("revolute", ORIGIN + '<axis xyz="0 0 1"/>'),
    "default axis": chain("revolute", ORIGIN),
    "axis of any length": chain("revolute", '<axis xyz="0 3 4"/>'),
    "no origin": chain("continuous", '<axis xyz="0 1 0"/>'),
    "continuous": chain("continuous", ORIGIN + '<axis xyz="1 2 3"/>'),
    "prismatic": chain("prismatic", ORIGIN + '<axis xyz="1 -2 3"/>'),
    "planar": chain("planar", ORIGIN + '<axis xyz="0 0 1"/>'),
    "floating": chain("floating", ORIGIN),
    "fixed links are merged": robot(
        link("base"),
        link("plate"),
        link("tip"),
        link("cap"),
        joint("p", "fixed", "base", "plate", ORIGIN),
        joint("j", "revolute", "plate", "tip", ORIGIN),
        joint("c", "fixed", "tip", "cap", ORIGIN),
    ),
    "links without mass": robot(
        link("footprint", ""),
        link("base"),
        link("frame", ""),
        link("tip"),
        joint("p", "fixed", "footprint", "base", ORIGIN),
        joint("j", "revolute", "base", "frame", ORIGIN),
        joint("c", "fixed", "frame", "tip", ORIGIN),
    ),
}


@pytest.mark.parametrize("keep_fixed", [False, True])
@pytest.mark.parametrize("rule", RULES)
def test_rules_of_the_format(rule: str, keep_fixed: bool, tmp_path: Path) -> None:
    text = RULES[rule]
    ours = load(tmp_path, text, keep_fixed=keep_fixed)
    links = len(re.findall("<link ", text))
    assert len(ours.bodies) == links
    heavy = sum(body.inertia.mass > 0.0 for body in ours.bodies)
    assert heavy <= (links if keep_fixed else links - text.count('"fixed"'))
    compare(text, ours)


def numbers(values: object) -> str:
    return " ".join(repr(float(x)) for x in np.atleast_1d(values))


def random_urdf(seed: int) -> str:
    """Write a tree of 6 to 10 links with joints of every type, in any order."""
    rng = np.random.default_rng(seed)
    kinds = ["revolute", "continuous", "prismatic", "fixed", "planar", "floating"]
    kinds += list(rng.choice(["revolute", "continuous", "prismatic", "fixed"], rng.integers(5)))
    parts = []
    for i, kind in enumerate(["", *rng.permutation(kinds[: rng.integers(5, len(kinds) + 1)])]):
        root = rng.normal(size=(3, 3)) * 0.2
        second = root @ root.T + 1e-3 * np.eye(3)
        I = 2.0 * (np.trace(second) * np.eye(3) - second)
        elements = zip(("xx", "xy", "xz", "yy", "yz", "zz"), I[np.triu_indices(3)], strict=True)
        inertia = " ".join(
            f'i{name}="{value!r}"' for name, value in ((n, float(x)) for n, x in elements)
        )
        pose, at = (
            f'<origin xyz="{numbers(rng.uniform(-0.5, 0.5, 3))}" '
            f'rpy="{numbers(rng.uniform(-np.pi, np.pi, 3))}"/>'
            for _ in range(2)
        )
        massless = kind == "fixed" and rng.random() < 0.4
        body = f'<inertial>{at}<mass value="2"/><inertia {inertia}/></inertial>'
        parts.append(link(f"l{i}", "" if massless else body))
        if i:
            axis = (0, 0, 1) if kind == "planar" else rng.normal(size=3)
            content = pose + f'<axis xyz="{numbers(axis)}"/>'
            parts.append(joint(f"j{i}", str(kind), f"l{rng.integers(i)}", f"l{i}", content))
    return robot(*rng.permutation(parts))


@pytest.mark.by_default(4)
@pytest.mark.parametrize("seed", range(20))
def test_random_trees(seed: int, tmp_path: Path) -> None:
    text = random_urdf(seed)
    compare(text, load(tmp_path, text, keep_fixed=bool(seed % 2)))


def test_the_normal_of_a_plane_is_the_axis(tmp_path: Path) -> None:
    ours = load(tmp_path, chain("planar"))
    assert ours.bodies[1].joint == cc.joints.Planar((1.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("kind", "limit", "expected"),
    [
        ("revolute", "", ((-np.inf, np.inf), np.inf, np.inf)),
        (
            "revolute",
            '<limit lower="-1" upper="2" effort="30" velocity="4"/>',
            ((-1, 2), 4, 30),
        ),
        ("prismatic", '<limit upper="0.5" effort="0" velocity="0"/>', ((0, 0.5), np.inf, np.inf)),
        ("prismatic", '<limit lower="0" upper="0"/>', ((-np.inf, np.inf), np.inf, np.inf)),
        ("revolute", '<limit lower="-inf" upper="1e30"/>', ((-np.inf, np.inf), np.inf, np.inf)),
        ("continuous", '<limit lower="-1" upper="2" effort="3"/>', ((-np.inf, np.inf), np.inf, 3)),
    ],
)
def test_limits(tmp_path: Path, kind: str, limit: str, expected: tuple) -> None:
    body = load(tmp_path, chain(kind, limit)).bodies[1]
    assert (body.limits[0], body.speed_limit[0], body.torque_limit[0]) == expected


# --- the root link ------------------------------------------------------------------------------

STAND = '<link name="world"/>'


def test_the_base_is_free_unless_the_sidecar_has_another(tmp_path: Path) -> None:
    text = chain("revolute")
    for name, kind in (("free", "Free"), ("planar", "Planar"), ("fixed", "Fixed")):
        ours = load(tmp_path, text, f'base = "{name}"')
        assert type(ours.base.joint).__name__ == kind
    (tmp_path / "arm.toml").unlink()
    ours = cc.load(tmp_path / "arm.urdf")
    assert isinstance(ours.base.joint, cc.joints.Free)
    assert (ours.name, ours.gravity, ours.actuated) == ("arm", (0.0, 0.0, 0.0), ("j",))


@pytest.mark.parametrize(
    ("kind", "base"),
    [("fixed", "Fixed"), ("floating", "Free"), ("planar", "Planar"), ("revolute", "Revolute")],
)
def test_a_root_named_world_is_the_inertial_frame(tmp_path: Path, kind: str, base: str) -> None:
    text = chain("revolute", ORIGIN).replace("</robot>", "") + STAND
    text += joint("w", kind, "world", "base", ORIGIN + '<axis xyz="0 0 1"/>') + "</robot>"
    ours = load(tmp_path, text)
    assert [body.name for body in ours.bodies] == ["base", "tip"]
    assert type(ours.base.joint).__name__ == base
    assert ours.actuated == (("w", "j") if kind == "revolute" else ("j",))
    compare(text, ours)


def test_a_world_with_several_links_is_a_fixed_base(tmp_path: Path) -> None:
    ends = joint("a", "revolute", "world", "left") + joint("b", "revolute", "world", "right")
    text = robot(STAND, link("left"), link("right"), ends)
    ours = load(tmp_path, text)
    assert [body.name for body in ours.bodies] == ["world", "left", "right"]
    assert ours.actuated == ("a", "b")
    compare(text, ours)


def test_a_root_without_mass_under_a_floating_joint_is_the_inertial_frame(tmp_path: Path) -> None:
    text = robot(link("odom", ""), link("base"), joint("f", "floating", "odom", "base", ORIGIN))
    ours = load(tmp_path, text)
    assert [body.name for body in ours.bodies] == ["base"]
    assert ours.base.placement.translation == (0.3, -0.1, 0.2)


def test_a_base_of_the_sidecar_replaces_the_fixed_joint_to_the_world(tmp_path: Path) -> None:
    parts = [STAND, link("base"), link("tip"), joint("j", "revolute", "base", "tip")]
    fixed = robot(*parts, joint("w", "fixed", "world", "base"))
    assert isinstance(load(tmp_path, fixed, 'base = "free"').base.joint, cc.joints.Free)
    turning = robot(*parts, joint("w", "revolute", "world", "base"))
    with pytest.raises(DescriptionError, match="no base: the joint at line 5"):
        load(tmp_path, turning, 'base = "free"')


# --- the sidecar --------------------------------------------------------------------------------

CART = robot(
    link("base"),
    *(link(side) for side in ("left", "right")),
    joint("l", "continuous", "base", "left", '<origin xyz="0 0.2 0"/><axis xyz="0 1 0"/>'),
    joint("r", "continuous", "base", "right", '<origin xyz="0 -0.2 0"/><axis xyz="0 1 0"/>'),
    link("tip"),
    joint("t", "revolute", "base", "tip", ORIGIN),
    '<transmission name="t"><joint name="l"/></transmission><gazebo/><material name="m"/>',
)
WHEELS = """
name = "cart"
base = "planar"
actuated = ["l", "r"]
[[wheels]]
body = "left"
radius = 0.1
[[wheels]]
body = "right"
radius = 0.1
"""


def test_wheels_and_actuated_joints(tmp_path: Path) -> None:
    ours = load(tmp_path, CART, WHEELS)
    assert (ours.name, ours.actuated, ours.nf) == ("cart", ("l", "r"), 3)
    other = tmp_path / "other.toml"
    other.write_text(WHEELS.replace("0.1", "0.2"))
    assert cc.load(tmp_path / "arm.urdf", sidecar=other).wheels[0].radius == 0.2


@pytest.mark.parametrize(("kind", "value"), [("revolute", 0.7), ("prismatic", -0.2)])
def test_a_locked_joint_is_the_joint_held(tmp_path: Path, kind: str, value: float) -> None:
    more = link("hand") + joint("h", "revolute", "tip", "hand", ORIGIN)
    text = chain(kind, ORIGIN + '<axis xyz="1 2 2"/>', more)
    moving = load(tmp_path, text)
    held = load(tmp_path, text, f"{GRAVITY}locked = {{ j = {value} }}")
    assert [body.name for body in held.bodies] == ["base", "hand", "tip"]
    assert held.bodies[2].inertia.mass == 0.0
    rng = np.random.default_rng(0)
    q, v = held.random(rng), random_velocity(held, rng)
    whole, rate = np.insert(q, 7, value), np.insert(v, 6, 0.0)
    assert_close(held.pose(q, "hand"), moving.pose(whole, "hand"), 1e-12)
    assert_close(held.momentum(q, v), moving.momentum(whole, rate), 1e-12)
    assert_close(held.bias(q, v), np.delete(moving.bias(whole, rate), 6), 1e-12)


@pytest.mark.parametrize(
    ("value", "inside"), [(-0.5, True), (0.75, True), (-0.5000001, False), (0.7500001, False)]
)
def test_a_joint_is_locked_within_its_range(tmp_path: Path, value: float, inside: bool) -> None:
    text = chain("revolute", ORIGIN + '<limit lower="-0.5" upper="0.75"/>')
    side = f"locked = {{ j = {value} }}"
    if inside:
        held = load(tmp_path, text, side)
        assert [body.inertia.mass > 0.0 for body in held.bodies] == [True, False]
    else:
        with pytest.raises(DescriptionError, match=r"range of the joint, -0.5 to 0.75"):
            load(tmp_path, text, side)


def hand(mimic: str, kind: str = "prismatic", more: str = "") -> str:
    """Write a hand whose second finger has <mimic>."""
    fingers = joint("first", kind, "palm", "a", ORIGIN) + joint("second", kind, "palm", "b", mimic)
    return robot(link("palm"), link("a"), link("b"), fingers, more)


def test_mimic_joints_follow_the_joint_that_they_name(tmp_path: Path) -> None:
    text = hand('<mimic joint="first" multiplier="-2" offset="0.03"/>')
    loaded = load(tmp_path, text)
    assert loaded.mimics == (cc.robot.Mimic("b", "a", -2.0, 0.03),)
    assert loaded.control_names == ("first",)
    assert loaded.neutral()[-1] == 0.03
    assert_close(loaded.constraints(loaded.neutral()) @ [*np.zeros(6), 1.0, -2.0], 0.0, 1e-15)
    assert load(tmp_path, hand('<mimic joint="first"/>')).mimics[0].multiplier == 1.0
    # Locked joints do not follow; a joint that follows a locked one is locked where it belongs.
    assert not load(tmp_path, text, "locked = { second = 0.5 }").mimics
    both = load(tmp_path, text, "locked = { first = 0.1 }")
    each = load(tmp_path, text, "locked = { first = 0.1, second = -0.17 }")
    assert both.nv == 6
    assert not both.mimics
    assert_close(both.base.inertia.com, each.base.inertia.com, 1e-15)
    assert load(tmp_path, chain("fixed", '<mimic joint="other"/>')).nv == 6


def test_couplings_name_joints_or_bodies(tmp_path: Path) -> None:
    free = load(tmp_path, hand(""))  # joints `first` and `second` move `a` and `b`
    expected = (cc.robot.Mimic("b", "a", -2.0),)
    for pair in (("second", "first"), ("b", "first"), ("second", "a"), ("b", "a")):
        assert replace(free, mimics=[cc.robot.Mimic(*pair, -2.0)]).mimics == expected
    # The two names of one joint are no pair, nor are two couplings of one joint.
    for wrong in ([("second", "b")], [("second", "a"), ("b", "a")], [("third", "a")]):
        with pytest.raises(DescriptionError, match=f"mimic `{wrong[0][0]}`"):
            replace(free, mimics=[cc.robot.Mimic(*pair) for pair in wrong])


def test_drives_of_the_sidecar_name_joints(tmp_path: Path) -> None:
    text = hand("")
    side = (
        '[[motors]]\nname = "spindle"\njoints = { first = 2.0, second = -3.0 }\n'
        '[[motors]]\nname = "jet"\nbody = "palm"\nwrench = [1, 0, 0, 0, 0, 0]\npoint = [0, 1, 0]'
    )
    loaded = load(tmp_path, text, side)
    assert loaded.control_names == ("spindle", "jet")
    assert loaded.control_units == ("N", "N")
    forces = np.zeros((8, 2))
    forces[6:, 0], forces[[0, 5], 1] = (2.0, -3.0), (1.0, -1.0)
    assert_close(loaded.actuation(loaded.neutral()), forces, 1e-15)
    for name, message in (("frist", "a joint"), ("a", "a joint")):
        with pytest.raises(DescriptionError, match=message):
            load(tmp_path, text, f'[[motors]]\nname = "x"\njoints = {{ {name} = 1.0 }}')


def test_a_sidecar_must_exist_and_needs_a_urdf_file(tmp_path: Path) -> None:
    load(tmp_path, chain("revolute"))
    with pytest.raises(DescriptionError, match="no file of this name"):
        cc.load(tmp_path / "arm.urdf", sidecar=tmp_path / "no.toml")
    for options in ({"sidecar": "x.toml"}, {"keep_fixed": True}):
        with pytest.raises(DescriptionError, match=r"expected a URDF file \(.urdf\)"):
            cc.load(tmp_path / "arm.toml", **options)


# --- invalid files ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<robot", "<model", "line 5: expected a URDF file"),
        ('name="arm"', "", 'line 1, <robot>: expected the name of the robot, got the text ""'),
        ('name="tip"', 'name="base"', "line 3, link `base`: expected each link name once"),
        ('name="tip"', 'name=" "', "expected a name of at most 255"),
        ('name="tip"', "", "line 3, <link>: expected the attribute `name`, got no value"),
        ('link="tip"', 'link="top"', "line 4, joint `j`: expected names of links, got `top`"),
        ('<child link="tip"/>', "", "line 4, joint `j`: expected the element <child>"),
        ('link="tip"', "", "joint `j`, <child>: expected the attribute `link`"),
        ('link="tip"', 'link="base"', "expected one root link, got base, tip|tree"),
        ('"revolute"', '"Revolute"', "got `Revolute`. Did you mean `revolute`"),
        ('type="revolute"', "", "expected the attribute `type`"),
        ('"0 0 1"', '"0 0 0"', r"joint `j`, <axis>.*direction"),
        ('"0 0 1"', '"0 0"', 'expected `xyz`: 3 numbers within 1e9, got the text "0 0"'),
        ('"0 0 1"', '"0 0 nan"', "expected `xyz`: 3 numbers"),
        ('"0 0 1"', '"0 0 1e10"', "expected `xyz`: 3 numbers"),
        ('"0 0 1"', '"0 0 1_0"', "expected `xyz`: 3 numbers"),
        ('xyz="0 0 1"', 'xzy="0 0 1"', "unknown attribute `xzy`. Did you mean `xyz`"),
        ("<axis", "<axes", "unknown element `axes`. Did you mean `axis`"),
        ('xyz="0 0 1"', 'XYZ="0 0 1"', "unknown attribute `XYZ`"),
        ('<axis xyz="0 0 1"', "<axis", "<axis>: expected the attribute `xyz`, got no value"),
        ("<axis", "<AXIS", "unknown element `AXIS`"),
        ("<axis", '<axis xyz="1 0 0"/><axis', "joint `j`: expected one element <axis>"),
        ('lower="-1"', 'lower="3"', "<limit>: expected `lower` below `upper`, got 3 and 2"),
        ('lower="-1"', 'lower="2"', "<limit>: expected `lower` below `upper`, got 2 and 2"),
        ('effort="3"', 'effort="-3"', "expected `effort` of zero or more, got -3"),
        ('effort="3"', 'effort="nan"', "expected `effort`: a number"),
        ('<mass value="2.5"/>', "", "link `base`, <inertial>: expected the element <mass>"),
        (
            'value="2.5"',
            'value="-2.5"',
            r"line 2, link `base`, <inertial>, <inertia>: .*mass of zero",
        ),
        ('value="2.5"', 'value="0"', r"<inertia>: .*no moments of inertia on a body without"),
        ('ixx="0.02"', 'ixx="0.2"', r"<inertia>: .*none exceeds the sum"),
        ('ixx="0.02"', 'ixx="-0.02"', r"<inertia>: .*no negative eigenvalue"),
        ('ixx="0.02"', "", "<inertia>: expected the attribute `ixx`"),
        ("<inertial>", "", "line 2: expected a URDF file: plain XML"),
        ("</robot>", "", "expected a URDF file: plain XML"),
        ("</robot>", "&a;</robot>", "expected a URDF file: plain XML"),
        ("<link", '<x:macro xmlns:x="http://ros.org/wiki/xacro"/><link', "got macros of xacro"),
        ('"0 0 1"', '"0 0 ${z}"', 'got the text "0 0 \\${z}". Expand the macros'),
        ("<robot", '<!DOCTYPE r SYSTEM "/etc/passwd">\n<robot', "line 1: .*got a document type"),
        ("<link", "<link" * 300, "expected a URDF file: plain XML"),
        ("</robot>", "<a>" * 300 + "</a>" * 300 + "</robot>", "plain XML"),
    ],
)
def test_invalid_files(tmp_path: Path, old: str, new: str, message: str) -> None:
    limit = '<axis xyz="0 0 1"/><limit lower="-1" upper="2" effort="3"/>'
    text = chain("revolute", limit)
    load(tmp_path, text)
    with pytest.raises((DescriptionError, InertiaError, ConcurError), match=message) as caught:
        load(tmp_path, text.replace(old, new, 1))
    assert str(caught.value).startswith(f"{tmp_path / 'arm.urdf'}, line ")
    assert caught.value.data["file"] == str(tmp_path / "arm.urdf")


def test_unknown_attributes_beside_those_they_resemble_are_ignored(tmp_path: Path) -> None:
    limit = '<limit effort="3" command_effort="2"/>'
    assert load(tmp_path, chain("revolute", limit)).bodies[1].torque_limit == (3.0,)
    with pytest.raises(
        DescriptionError, match=r"attribute `command_effort`\. Did you mean `effort`"
    ):
        load(tmp_path, chain("revolute", limit.replace(' effort="3"', "")))


def test_a_tree_has_one_root_and_no_cycle(tmp_path: Path) -> None:
    links = [link(name) for name in "abc"]
    with pytest.raises(DescriptionError, match="expected one root link, got a, b, c"):
        load(tmp_path, robot(*links))
    ring = [joint("x", "fixed", "b", "c"), joint("y", "fixed", "c", "b")]
    with pytest.raises(DescriptionError, match=r"line 5, joint `x`: .*got a cycle of joints"):
        load(tmp_path, robot(*links, *ring))
    ring[0] = joint("x", "fixed", "b", "b")
    with pytest.raises(DescriptionError, match="cycle of joints"):
        load(tmp_path, robot(link("b"), ring[0]))
    two = [joint("x", "fixed", "a", "c"), joint("y", "fixed", "b", "c")]
    with pytest.raises(DescriptionError, match="`c` also carried by the joint `x`"):
        load(tmp_path, robot(*links, *two))
    with pytest.raises(DescriptionError, match="expected each joint name once"):
        load(tmp_path, robot(*links, two[0], two[0]))
    with pytest.raises(DescriptionError, match="expected at least one <link>"):
        load(tmp_path, robot())


def test_joints_that_carry_no_mass_are_held(tmp_path: Path) -> None:
    parts = [link("base"), link("arm"), joint("a", "revolute", "base", "arm", ORIGIN)]
    for kind in ("revolute", "prismatic", "planar", "floating"):
        limit = ORIGIN + '<axis xyz="0 0 1"/><limit lower="0.4" upper="1"/>'
        text = robot(
            *parts,
            joint("m", kind, "arm", "mount", limit),
            joint("n", "revolute", "mount", "lens"),
            *(link(name, "") for name in ("mount", "lens")),
        )
        ours = load(tmp_path, text)
        assert [body.name for body in ours.bodies] == ["base", "arm", "mount", "lens"]
        held = load(tmp_path, text, keep_fixed=True).bodies[2]
        moving = load(tmp_path, text.replace(link("mount", ""), link("mount")), keep_fixed=True)
        at = np.linalg.inv(moving.bodies[2].placement.matrix) @ held.placement.matrix
        expected = np.eye(4)
        if kind == "prismatic":
            expected[2, 3] = 0.4
        elif kind == "revolute":
            expected[:2, :2] = [[np.cos(0.4), -np.sin(0.4)], [np.sin(0.4), np.cos(0.4)]]
        assert_close(at, expected, 1e-12)
    with pytest.raises(InertiaError, match=r"link `lens`: .*moves no mass; links without mass"):
        load(tmp_path, text, 'actuated = ["n"]')


def test_a_singular_mass_matrix_has_the_links_without_mass(tmp_path: Path) -> None:
    turn = '<axis xyz="0 0 1"/>'
    ends = joint("a", "revolute", "base", "hub", turn) + joint("b", "revolute", "hub", "tip", turn)
    text = robot(link("base"), link("hub", ""), link("tip"), ends)
    with pytest.raises(
        InertiaError, match=r"line \d, link .*moves no mass; links without mass: hub"
    ):
        load(tmp_path, text)
    load(tmp_path, text.replace(turn, '<axis xyz="0 1 0"/>', 1))  # a universal joint
    with pytest.raises(InertiaError, match="links without mass: base, tip"):
        load(
            tmp_path,
            robot(link("base", ""), link("tip", ""), joint("j", "revolute", "base", "tip")),
        )


def test_entities_are_not_expanded(tmp_path: Path) -> None:
    levels = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 12))
    bomb = f'<?xml version="1.0"?>\n<!DOCTYPE r [<!ENTITY a0 "x">{levels}]>\n<robot>&a11;</robot>'
    with pytest.raises(DescriptionError, match=r"line 2: .*got a document type"):
        load(tmp_path, bomb)


@pytest.mark.parametrize(("fixed", "kept"), [(499, True), (500, False)])
def test_names_of_too_many_links_are_lost_and_that_is_listed(
    fixed: int, kept: bool, tmp_path: Path
) -> None:
    links = [link(f"l{i}", "") for i in range(fixed)]
    ends = [joint(f"j{i}", "fixed", "b", f"l{i}") for i in range(fixed)]
    ours = load(tmp_path, robot(link("b"), *links, *ends), "")
    assert len(ours.bodies) == (500 if kept else 1)
    assert any(f"{fixed} links on fixed joints" in text for text in ours.unread) is not kept


@pytest.mark.extended
def test_large_files_and_robots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links = [link(f"l{i}", "") for i in range(20_000)]
    ends = [joint(f"j{i}", "fixed", f"l{i}", f"l{i + 1}") for i in range(19_999)]
    ours = load(tmp_path, robot(link("b"), *links, *ends, joint("j", "fixed", "b", "l0")), "")
    assert len(ours.bodies) == 1
    with pytest.raises(DescriptionError, match="expected at most 500 bodies, got 501"):
        load(tmp_path, robot(*links[:501], *ends[:500]), "", keep_fixed=True)
    monkeypatch.setattr("concur.io._urdf_tree.MOST_LINKS", 3)
    load(tmp_path, chain("fixed"))
    with pytest.raises(DescriptionError, match="at most 3 links and joints, got 4"):
        load(tmp_path, chain("fixed", more=link("c")))
    with pytest.raises(DescriptionError, match="got a file above 4 MiB"):
        load(tmp_path, " " * (tables.LARGEST_TOML + 1))


def test_encodings_and_namespaces(tmp_path: Path) -> None:
    text = '<?xml version="1.0" encoding="latin-1"?>\n<!-- arm -->\n' + chain("revolute")
    assert load(tmp_path, text.replace("tip", "Stütze")).bodies[1].name == "Stütze"
    text = chain("revolute").replace("<robot", '<robot xmlns="http://drake.mit.edu"')
    assert len(load(tmp_path, text).bodies) == 2
    (tmp_path / "arm.urdf").write_bytes(text.encode("utf-16"))
    with pytest.raises(DescriptionError, match="got text in UTF-16"):
        cc.load(tmp_path / "arm.urdf")


def test_xml_declarations_are_ignored_as_other_readers_do(tmp_path: Path) -> None:
    for head in ('<?xml version="0.0" ?>\n', '\n<!-- arm\n -->\n<?xml version="1.0"?>'):
        assert len(load(tmp_path, head + chain("revolute")).bodies) == 2
        with pytest.raises(DescriptionError, match=f"line {3 + head.count(chr(10))}, link `base`"):
            load(tmp_path, head + chain("revolute").replace('"tip"', '"base"', 1))


def test_files_outside_of_a_folder_are_not_read(tmp_path: Path) -> None:
    load(tmp_path, chain("revolute"))
    (tmp_path / "in").mkdir()
    with confined(tmp_path / "in"), pytest.raises(DescriptionError, match="outside"):
        cc.load(tmp_path / "arm.urdf")


def test_xacro_files_need_xacro(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xacro", None)
    (tmp_path / "arm.urdf.xacro").write_text(chain("revolute"))
    with pytest.raises(DescriptionError, match=r"expected the package xacro.*pip install xacro"):
        cc.load(tmp_path / "arm.urdf.xacro")


ARM_PACKAGE = """<robot name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:arg name="mass" default="1"/>
<xacro:include filename="$(find links)/urdf/link.xacro"/>
<xacro:solid n="base" m="$(arg mass)"/><xacro:solid n="$(arg tool)" m="2"/>
<joint name="j" type="revolute"><parent link="base"/><child link="$(arg tool)"/></joint></robot>"""
SOLID_MACRO = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:macro name="solid" params="n m"><link name="${n}"><inertial><mass value="${m}"/>
<inertia ixx="1" iyy="1" izz="1"/></inertial></link></xacro:macro></robot>"""


def test_arguments_and_packages_of_xacro(tmp_path: Path) -> None:
    """Packages are found in the checkout by name; both come from Python, sidecar or command."""
    home, other = tmp_path / "arm" / "urdf", tmp_path / "src" / "folder" / "urdf"
    home.mkdir(parents=True)
    other.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (other.parent / "package.xml").write_text("<package><name>links</name></package>")
    (other / "link.xacro").write_text(SOLID_MACRO)
    path = home / "arm.urdf.xacro"
    path.write_text(ARM_PACKAGE)

    def mass(**more: Any) -> float:
        ours = cc.load(path, **more)
        assert ours.bodies[1].name == "hand"
        return ours.bodies[0].inertia.mass

    with pytest.raises(DescriptionError, match="--xacro NAME:=VALUE"):
        cc.load(path)
    assert mass(xacro={"tool": "hand"}) == 1.0
    (home / "arm.toml").write_text('xacro = { tool = "hand", mass = "3" }')
    assert mass() == 3.0
    assert mass(xacro={"mass": "4"}) == 4.0
    (tmp_path / ".git").rmdir()  # without a checkout the package is not found
    with pytest.raises(DescriptionError, match=r"the package `links`.*--xacro links=FOLDER"):
        mass()
    assert mass(packages={"links": other.parent}) == 3.0
    (home / "arm.toml").write_text(
        'xacro = { tool = "hand" }\npackages = { links = "../../src/folder" }'
    )
    assert mass() == 1.0
    (home / "arm.toml").unlink()
    run = CliRunner()
    words = ["--xacro", "tool:=hand", "--xacro", f"links={other.parent}"]
    done = run.invoke(main, ["check", str(path), *words, "--json"])
    assert done.exit_code == 0, done.output
    assert [body["name"] for body in json.loads(done.stdout)["bodies"]] == ["base", "hand"]
    assert run.invoke(main, ["check", str(path), *words, "--suggest"]).exit_code == 0
    assert mass() == 1.0  # the suggestion has them
    assert run.invoke(main, ["check", str(path), "--xacro", "tool"]).exit_code == 2


def test_files_that_macros_include(tmp_path: Path) -> None:
    """In a package under another name, by a URI; arguments of meshes may lack; nothing else."""
    home = tmp_path / "kr10" / "urdf"
    home.mkdir(parents=True)
    (home / "link.xacro").write_text(SOLID_MACRO)
    shape = '<visual><geometry><mesh filename="$(arg meshes)/a.stl"/></geometry></visual>'
    arm = ARM_PACKAGE.replace("$(arg tool)", "tip")
    arm = arm.replace(
        "</robot>", f"{link('end', SOLID + shape)}{joint('e', 'fixed', 'tip', 'end')}</robot>"
    )
    path = home / "arm.xacro"
    for found in ("$(find kr10_support)/urdf", "package://kr10/urdf", str(home)):
        path.write_text(arm.replace("$(find links)/urdf", found))
        with confined(tmp_path):
            assert [body.name for body in cc.load(path).bodies] == ["base", "tip", "end"]
    (home / "link.xacro").rename(tmp_path / "link.xacro")
    path.write_text(arm.replace("$(find links)/urdf", str(tmp_path)))
    with confined(home), pytest.raises(DescriptionError, match="outside"):
        cc.load(path)
    path.write_text(arm.replace("$(find links)/urdf", "$(find none)/urdf"))
    with pytest.raises(DescriptionError, match=r"the package `none`.*--xacro none=FOLDER"):
        cc.load(path)
    used = arm.replace('n="base"', 'n="base$(arg meshes)"').replace(
        "$(find links)/urdf", str(tmp_path)
    )
    path.write_text(used)
    with pytest.raises(DescriptionError, match="Undefined substitution argument meshes"):
        cc.load(path)


@pytest.mark.extended
def test_robots_in_toml_do_not_import_lxml() -> None:
    program = "import sys, concur as cc; cc.robots.rover_arm(); print('lxml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False", done.stderr
