"""Elements of URDF files beside those of the model: each is listed, or refused with its line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import concur as cc
from concur.cli import main
from concur.errors import DescriptionError
from concur.io._unread import is_mechanical
from tests.io.test_urdf import joint, link, robot

LIMIT = '<limit lower="-1" upper="1" effort="5" velocity="2"/>'
MIMIC = '<mimic joint="j" multiplier="2" type="polynomial"/>'


def arm(inner: str = "", outer: str = "", limit: str = LIMIT, tip: str = "", base: str = "") -> str:
    """Two arms on a base, with elements inside of the first joint, and beside joints and links."""
    parts = [
        link("base").replace("</link>", f"{base}</link>", 1),
        link("upper"),
        link("fore"),
        joint("j", "revolute", "base", "upper", limit + inner),
        joint("k", "revolute", "upper", "fore", LIMIT + tip),
        outer,
    ]
    text = robot(*parts)
    return text.replace("<robot ", '<robot xmlns:drake="http://drake.mit.edu" ', 1)


def loaded(folder: Path, text: str, side: str = "") -> cc.Mechanism:
    path = folder / "arm.urdf"
    path.write_text(text)
    path.with_suffix(".toml").write_text(side)
    return cc.load(path)


LOOP = '<loop_joint name="l" type="revolute"><link1 link="fore"/><link2 link="base"/></loop_joint>'
GAZEBO = "<gazebo{}>{}</gazebo>"

REFUSED = [
    ("loop_joint", {"outer": LOOP}),
    ("closure", {"outer": '<closure a="fore" b="base"/>'}),
    ("strange", {"outer": '<strange><parent link="base"/></strange>'}),
    ("drake:joint", {"outer": '<drake:joint name="b" type="ball"/>'}),
    ("drake:ball_constraint", {"outer": "<drake:ball_constraint/>"}),
    ("drake:linear_bushing_rpy", {"outer": "<drake:linear_bushing_rpy/>"}),
    ("force_element", {"outer": "<force_element/>"}),
    ("cable_length_constraint", {"outer": "<cable_length_constraint/>"}),
    ("drake:rotor_inertia", {"inner": '<drake:rotor_inertia value="0.1"/>'}),
    ("drake:screw_thread_pitch", {"inner": '<drake:screw_thread_pitch value="1"/>'}),
    ("dynamics", {"inner": '<dynamics stiffness="3"/>'}),
    ("dynamics", {"inner": '<dynamics armature="3"/>'}),
    ("dynamics", {"inner": '<dynamics spring_constant="3"/>'}),
    ("mimic@type", {"tip": MIMIC}),
    ("origin@quat_xyzw", {"inner": '<origin quat_xyzw="0 0 1 0"/>'}),
    ("gravity", {"base": "<gravity>0</gravity>"}),
    ("joint", {"outer": GAZEBO.format("", '<joint name="l" type="revolute"/>')}),
    (
        "turnGravityOff",
        {"outer": GAZEBO.format(' reference="fore"', "<turnGravityOff>true</turnGravityOff>")},
    ),
    ("gravity", {"outer": GAZEBO.format(' reference="fore"', "<gravity>0</gravity>")}),
    (
        "springStiffness",
        {"outer": GAZEBO.format(' reference="j"', "<springStiffness>9</springStiffness>")},
    ),
    ("static", {"outer": GAZEBO.format("", "<static>1</static>")}),
]


@pytest.mark.parametrize(
    ("element", "parts"), REFUSED, ids=lambda x: x if isinstance(x, str) else ""
)
def test_what_changes_the_motion_is_refused(element, parts, tmp_path):
    plain = loaded(tmp_path, arm())
    with pytest.raises(DescriptionError, match="changes its motion") as caught:
        loaded(tmp_path, arm(**parts))
    assert caught.value.element == element
    assert caught.value.line > 1
    allowed = loaded(tmp_path, arm(**parts), f'ignore = ["{element}"]')
    assert any(text.startswith(f"`{element}`: ") for text in allowed.unread)
    if element != "mimic@type":
        assert allowed == plain


ATTRIBUTES = [
    ("<mass ", "mass@unit", "unit", "g", "kg"),
    ("<mass ", "mass@units", "units", "lb", "SI"),
    ("<inertia ", "inertia@unit", "unit", "kg cm^2", "kg m^2"),
    ("<limit ", "limit@unit", "unit", "degree", "rad"),
    ('<joint name="j" ', "joint@drake_ignore", "drake_ignore", "true", "false"),
    ('<link name="fore"', "link@drake_ignore", "drake_ignore", "true", "False"),
]


@pytest.mark.parametrize(("place", "element", "name", "other", "same"), ATTRIBUTES)
def test_attributes_that_change_the_motion_are_refused(place, element, name, other, same, tmp_path):
    """Units, and links that another reader leaves out."""
    plain = loaded(tmp_path, arm())
    given = place if place.endswith(" ") else f"{place} "
    assert place in arm()
    assert loaded(tmp_path, arm().replace(place, f'{given}{name}="{same}" ', 1)) == plain
    text = arm().replace(place, f'{given}{name}="{other}" ', 1)
    with pytest.raises(DescriptionError, match="changes its motion") as caught:
        loaded(tmp_path, text)
    assert caught.value.element == element
    assert loaded(tmp_path, text, f'ignore = ["{element}"]').unread


LISTED = [
    ("dynamics", "joint `j`", {"inner": '<dynamics damping="0.5"/>'}),
    ("dynamics", "joint `j`", {"inner": '<dynamics friction="0.5" damping="0"/>'}),
    ("calibration", "joint `j`", {"inner": '<calibration rising="0"/>'}),
    ("safety_controller", "joint `j`", {"inner": '<safety_controller k_velocity="1"/>'}),
    (
        "transmission",
        "torques of the model",
        {"outer": "<transmission><joint name='j'/></transmission>"},
    ),
    (
        "ros2_control",
        "torques of the model",
        {"outer": "<ros2_control name='x'><joint name='j'/></ros2_control>"},
    ),
    ("gazebo", "settings", {"outer": GAZEBO.format(' reference="j"', "<mu1>1</mu1><kp>1</kp>")}),
    ("plugin", "plugins", {"outer": GAZEBO.format("", "<plugin filename='a.so'/>")}),
    ("sensor", "sensors", {"outer": '<sensor name="s"><parent link="fore"/></sensor>'}),
    ("contact", "link `base`", {"base": "<contact><lateral_friction value='1'/></contact>"}),
    ("limit@acceleration", "joint `j`", {"limit": LIMIT.replace("/>", ' acceleration="3"/>')}),
    (
        "mesh",
        "not drawn",
        {"base": "<visual><geometry><mesh filename='a.stl'/></geometry></visual>"},
    ),
    ("mujoco", "simulator", {"outer": "<mujoco><compiler/></mujoco>"}),
    ("whatever", "unknown", {"outer": "<whatever/>"}),
]


@pytest.mark.parametrize(("element", "words", "parts"), LISTED)
def test_what_the_robot_lacks_is_listed(element, words, parts, tmp_path):
    plain = loaded(tmp_path, arm())
    assert plain.unread == ()
    found = loaded(tmp_path, arm(**parts))
    (text,) = found.unread
    assert text.startswith(f"`{element}`: ")
    assert words in text
    assert found == plain
    with pytest.raises(DescriptionError, match="a refused element"):
        loaded(tmp_path, arm(**parts), f'ignore = ["{element}"]')


@pytest.mark.parametrize(
    "parts",
    [
        {"inner": '<dynamics damping="0.0" friction="0" stiffness="0"/>'},
        {"inner": '<drake:rotor_inertia value="0.0"/>'},
        {"inner": '<origin xyz="0 0 0" quat="0 0 0"/>'},
        {"outer": GAZEBO.format(' reference="j"', "<springStiffness>0.0</springStiffness>")},
        {"outer": GAZEBO.format(' reference="j"', "<turnGravityOff>false</turnGravityOff>")},
        {"outer": GAZEBO.format("", "<static>false</static>")},
        {"base": "<gravity>true</gravity>"},
        {"outer": '<material name="blue"><color rgba="0 0 1 1"/></material>'},
    ],
)
def test_what_has_no_effect_is_accepted(parts, tmp_path):
    assert loaded(tmp_path, arm(**parts)).unread == ()


def test_limits_and_couplings_without_meaning_are_listed(tmp_path):
    text = arm().replace('name="k" type="revolute"', 'name="k" type="planar"')
    assert loaded(tmp_path, text).unread == ("`limit`: of planar joints (joint `k`)",)
    text = arm(tip='<mimic joint="j"/>').replace(
        'name="k" type="revolute"', 'name="k" type="fixed"'
    )
    assert loaded(tmp_path, text).unread == ("`mimic`: of fixed joints (joint `k`)",)


def test_the_command_lists_them(tmp_path):
    loaded(tmp_path, arm(inner='<dynamics damping="0.5"/>'))
    path = str(tmp_path / "arm.urdf")
    result = CliRunner().invoke(main, ["check", path, "--json"])
    listed = json.loads(result.stdout)["unread"]
    assert listed == ["`dynamics`: damping and friction of joints (joint `j`)"]
    assert f"not part of the model: {listed[0]}" in CliRunner().invoke(main, ["check", path]).stdout


@pytest.mark.parametrize(
    ("name", "mechanical"),
    [
        *((n, True) for n in ("loop_joint", "closedLoop", "drake:joint", "four_bar_constraint")),
        *((n, True) for n in ("SpringStiffness", "torsion-spring", "added_mass", "armatures")),
        *((n, False) for n in ("force_torque_sensor", "color", "mu1", "robotNamespace", "camera")),
    ],
)
def test_names_of_what_acts_on_the_motion(name, mechanical):
    assert is_mechanical(name) == mechanical
