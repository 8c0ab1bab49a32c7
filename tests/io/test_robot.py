"""Robots from TOML: their values, and errors with file, table, field and remedy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from concur.errors import (
    ConcurError,
    DescriptionError,
    InertiaError,
)
from concur.io import load, load_shipped, load_task, shipped_names
from concur.robot import joints

CART = """
name = "cart"
gravity = [0.0, 0.0, -9.81]
actuated = ["left", "right", "arm"]

[[bodies]]
name = "chassis"
joint = { type = "Planar" }
inertia = { mass = 10.0, com = [0.1, 0.0, 0.0], moments = [0.3, 0.4, 0.5] }

[[bodies]]
name = "left"
parent = "chassis"
joint = { type = "Revolute", axis = [0, 1, 0] }
placement = { translation = [0.0, 0.2, 0.0] }
inertia = { mass = 1.0, moments = [0.003, 0.005, 0.003] }

[[bodies]]
name = "right"
parent = "chassis"
joint = { type = "Revolute", axis = [0, 1, 0] }
placement = { translation = [0.0, -0.2, 0.0] }
inertia = { mass = 1.0, moments = [0.003, 0.005, 0.003] }

[[bodies]]
name = "arm"
parent = "chassis"
joint = { type = "Revolute", axis = [0, 0, 2] }
placement = { translation = [0.1, 0.0, 0.3], rotation = [0.0, 0.0, 0.6, 0.8] }
inertia = { mass = 1.0, tensor = [[0.02, 0.001, 0.0], [0.001, 0.02, 0.0], [0.0, 0.0, 0.01]] }

[[wheels]]
body = "left"
radius = 0.1

[[wheels]]
body = "right"
radius = 0.1
kind = "disk"
axis = [0.0, 1.0, 0.0]
center = [0.0, 0.0, 0.0]
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "cart.toml"
    path.write_text(text, encoding="utf-8")
    return path


def altered(old: str, new: str, text: str = CART) -> str:
    assert text.count(old) >= 1, f"`{old}` is not in the text"
    return text.replace(old, new, 1)


def test_a_robot_is_read_as_written(tmp_path: Path) -> None:
    robot = load(write(tmp_path, CART))
    assert robot.name == "cart"
    assert tuple(robot.gravity) == (0.0, 0.0, -9.81)
    assert robot.actuated == ("left", "right", "arm")
    assert [body.parent for body in robot.bodies] == [None, "chassis", "chassis", "chassis"]
    arm = robot.bodies[3]
    assert isinstance(arm.joint, joints.Revolute)
    assert tuple(arm.joint.axis) == (0.0, 0.0, 1.0)
    assert arm.placement.translation == (0.1, 0.0, 0.3)
    assert arm.placement.rotation == pytest.approx((0.0, 0.0, 0.6, 0.8))
    np.testing.assert_array_equal(arm.inertia.tensor[0], [0.02, 0.001, 0.0])
    assert robot.bodies[0].inertia.com == (0.1, 0.0, 0.0)
    assert [(wheel.body, wheel.radius) for wheel in robot.wheels] == [("left", 0.1), ("right", 0.1)]


def test_what_is_not_given_has_the_defaults_of_the_constructors(tmp_path: Path) -> None:
    text = """
    name = "mast"
    [[bodies]]
    name = "ground"
    joint = { type = "Fixed" }
    [[bodies]]
    name = "mast"
    parent = "ground"
    joint = { type = "Prismatic", axis = [0, 0, 1] }
    inertia = { mass = 2 }
    """
    robot = load(write(tmp_path, text))
    assert tuple(robot.gravity) == (0.0, 0.0, 0.0)
    assert robot.actuated == ("mast",)
    assert not robot.wheels
    assert robot.bodies[0].inertia.mass == 0.0
    assert robot.bodies[1].placement.translation == (0.0, 0.0, 0.0)


def test_the_path_may_be_a_string(tmp_path: Path) -> None:
    assert load(str(write(tmp_path, CART))).name == "cart"


def test_every_shipped_robot_loads() -> None:
    for name in shipped_names():
        assert load_shipped(name).name == name
    with pytest.raises(FileNotFoundError, match="hovercraft"):
        load_shipped("hovercraft")


LEFT, CHASSIS, ARM = '[[bodies]] "left"', '[[bodies]] "chassis"', '[[bodies]] "arm"'

# fault: (text to replace, its replacement, table, field, further words of the message)
FAULTS: dict[str, tuple[str, str, str, str, list[str]]] = {
    "joint is text": ('{ type = "Planar" }', '"Planar"', CHASSIS, "joint", ['the text "Planar"']),
    "joint field text": ("axis = [0, 1, 0]", 'axis = "y"', LEFT, "joint.axis", ['text "y"']),
    "mass nan": ("mass = 10.0", "mass = nan", CHASSIS, "inertia.mass", ["a number", "got nan"]),
    "moments and tensor": (
        "tensor = [[",
        "moments = [1, 1, 1], tensor = [[",
        ARM,
        "inertia.tensor",
        ["either", "both"],
    ),
    "parent unknown": (
        'parent = "chassis"',
        'parent = "chasis"',
        LEFT,
        "parent",
        ["'chassis'?"],
    ),
    "parent cycle": (
        'joint = { type = "Planar" }',
        'joint = { type = "Planar" }\nparent = "arm"',
        CHASSIS,
        "parent",
        ["chassis", "arm", "cycle"],
    ),
    "two bases": ('parent = "chassis"', "", "[[bodies]]", "parent", ["one body", "chassis, left"]),
    "name twice": ('name = "right"', 'name = "left"', LEFT, "name", ["2 bodies of this name"]),
    "wheel body unknown": (
        'body = "left"',
        'body = "lft"',
        '[[wheels]] "lft"',
        "body",
        ["Did you mean 'left'?"],
    ),
    "actuated unknown": ('["left",', '["lefty",', "", "actuated", ["Did you mean 'left'?"]),
    "actuated twice": ('["left",', '["right",', "", "actuated", ["each joint once"]),
    "actuated base": ('["left",', '["chassis",', "", "actuated", ["other than the base"]),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_names_file_table_field_and_cure(tmp_path: Path, name: str) -> None:
    old, new, table, field, words = FAULTS[name]
    path = write(tmp_path, altered(old, new))
    with pytest.raises(DescriptionError) as caught:
        load(path)
    error = caught.value
    assert (error.file, error.table, error.field) == (str(path), table, field)
    message = str(error)
    assert message.startswith(str(path))
    for word in (table, field, *words):
        assert word in message, message
    assert_plain(message)


# Faults that the constructors find: their error, with the place put before it.
REFUSALS: dict[str, tuple[str, str, type, str, str, list[str]]] = {
    "triangle inequality": (
        "moments = [0.3, 0.4, 0.5]",
        "moments = [0.1, 0.1, 0.5]",
        InertiaError,
        CHASSIS,
        "inertia",
        ["none exceeds the sum"],
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_a_constructor_refuses_is_located(tmp_path: Path, name: str) -> None:
    old, new, kind, table, field, words = REFUSALS[name]
    path = write(tmp_path, altered(old, new))
    with pytest.raises(ConcurError) as caught:
        load(path)
    error = caught.value
    assert type(error) is kind
    assert (error.file, error.table, error.field) == (str(path), table, field)
    message = str(error)
    assert message.startswith(f"{path}, {table}")
    for word in words:
        assert word in message, message
    assert_plain(message)


def test_a_missing_file_is_named_with_the_nearest(tmp_path: Path) -> None:
    write(tmp_path, CART)
    with pytest.raises(DescriptionError, match=r"Did you mean `cart\.toml`") as caught:
        load(tmp_path / "cartt.toml")
    assert caught.value.file == str(tmp_path / "cartt.toml")
    with pytest.raises(DescriptionError, match="no file of this name"):
        load(tmp_path / "nowhere" / "cart.toml")


def test_a_directory_is_no_robot(tmp_path: Path) -> None:
    with pytest.raises(DescriptionError, match="a directory"):
        load(tmp_path)


def test_a_task_is_no_robot(tmp_path: Path) -> None:
    path = write(tmp_path, 'name = "it"\nrobot = "cart.toml"\n[[outputs]]\nname = "hand"\n')
    with pytest.raises(DescriptionError, match="expected a robot file, got a task file") as caught:
        load(path)
    assert f"concur track {path}" in str(caught.value)


def test_binary_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cart.toml"
    path.write_bytes(b'name = "\xff"')
    with pytest.raises(DescriptionError, match="UTF-8"):
        load(path)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('name = "cart"\ngravity = [0, 0\n[[bodies]]\n', 3),
        ('name = "cart"\nname = "car"\n', 2),
        ("name =", 1),
        ('name = "cart"\n\n  joint { }\n', 3),
    ],
)
def test_a_syntax_error_names_its_line(tmp_path: Path, text: str, line: int) -> None:
    path = write(tmp_path, text)
    with pytest.raises(DescriptionError) as caught:
        load(path)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{path}, line {line}: expected TOML")


def assert_plain(message: str) -> None:
    for jargon in ("pydantic", "Input should", "validation", "extra_forbidden", "Traceback"):
        assert jargon not in message


# --- joints and limits ----------------------------------------------------------------------------

AXIS, NORMAL = {"axis": [1.0, 2.0, 2.0]}, {"normal": [0.0, 0.6, 0.8]}
THIRDS = (1 / 3, 2 / 3, 2 / 3)

# joint: (fields in the file, attributes of the joint read)
JOINTS: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "Fixed": ({}, {}),
    "Revolute": (AXIS, {"axis": THIRDS}),
    "Prismatic": (AXIS, {"axis": THIRDS}),
    "Helical": (AXIS | {"pitch": -0.02}, {"axis": THIRDS, "pitch": -0.02}),
    "Cylindrical": (AXIS, {"axis": THIRDS}),
    "Sliding": (NORMAL, {"normal": (0.0, 0.6, 0.8)}),
    "Planar": (NORMAL, {"normal": (0.0, 0.6, 0.8)}),
    "PlanarPrismatic": (NORMAL, {"normal": (0.0, 0.6, 0.8)}),
    "Spherical": ({}, {}),
    "Cartesian": ({}, {}),
    "Free": ({}, {}),
}


def crane(joint: str, more: str = "") -> str:
    return f"""
    name = "crane"
    [[bodies]]
    name = "ground"
    joint = {{ type = "Fixed" }}
    [[bodies]]
    name = "part"
    parent = "ground"
    joint = {joint}
    inertia = {{ mass = 2.0, moments = [0.1, 0.1, 0.1] }}
    {more}
    """


def test_every_joint_is_in_the_table_above() -> None:
    assert sorted([*JOINTS, "Joint"]) == sorted(joints.__all__)


@pytest.mark.parametrize("kind", JOINTS)
def test_every_joint_can_be_written(tmp_path: Path, kind: str) -> None:
    fields, attributes = JOINTS[kind]
    entries = [f'type = "{kind}"', *(f"{name} = {value}" for name, value in fields.items())]
    joint = load(write(tmp_path, crane("{ " + ", ".join(entries) + " }"))).bodies[1].joint
    assert type(joint) is getattr(joints, kind)
    assert type(joint)(**fields) == joint
    for name, value in attributes.items():
        assert getattr(joint, name) == pytest.approx(value, abs=1e-15)


def test_normal_of_a_planar_joint_may_be_left_out(tmp_path: Path) -> None:
    for kind in ("Planar", "PlanarPrismatic"):
        robot = load(write(tmp_path, crane(f'{{ type = "{kind}" }}')))
        assert robot.bodies[1].joint.normal == (0.0, 0.0, 1.0)


INF = float("inf")


@pytest.mark.parametrize(
    ("kind", "written", "pairs"),
    [
        ("Revolute", "[-1, 1.5]", [[-1.0, 1.5]]),
        ("Revolute", "[[-1.0, 1.5]]", [[-1.0, 1.5]]),
        ("Revolute", "[-inf, 1.5]", [[-INF, 1.5]]),
        ("Cylindrical", "[[0.0, 0.4], [-inf, inf]]", [[0.0, 0.4], [-INF, INF]]),
        ("Cartesian", "[[0, 1], [2, 3], [4, 5]]", [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]),
        ("Planar", "[[0, 1], [2, 3], [-inf, 5]]", [[0.0, 1.0], [2.0, 3.0], [-INF, 5.0]]),
        ("Spherical", None, [[-INF, INF]] * 4),
    ],
)
def test_limits_are_read(tmp_path: Path, kind: str, written: str | None, pairs: list) -> None:
    axis = ", axis = [0, 0, 1]" if kind in ("Revolute", "Cylindrical") else ""
    more = "" if written is None else f"limits = {written}"
    robot = load(write(tmp_path, crane(f'{{ type = "{kind}"{axis} }}', more)))
    np.testing.assert_array_equal(robot.limits, pairs)


PART = '[[bodies]] "part"'
TURN, BOTH = '{ type = "Revolute", axis = [0, 0, 1] }', '{ type = "Cylindrical", axis = [0, 0, 1] }'
PAIRS = ["a pair [lower, upper]", "per coordinate"]

# fault: (joint, limits, field, words of the message)
JOINT_FAULTS: dict[str, tuple[str, str, str, list[str]]] = {
    "limits text": (TURN, 'limits = ["a", 2]', "limits", [*PAIRS, "['a', 2]"]),
    "limits of text": (TURN, 'limits = [["a", 2]]', "limits", [*PAIRS, "[['a', 2]]"]),
    "limits true": (TURN, "limits = [false, true]", "limits", [*PAIRS, "[False, True]"]),
    "limits of one": (TURN, "limits = [1.0]", "limits", [*PAIRS, "a list of 1"]),
    "limits of three": (TURN, "limits = [1.0, 2.0, 3.0]", "limits", [*PAIRS, "a list of 3"]),
    "limits reversed": (TURN, "limits = [2.0, 1.0]", "limits", ["lower < upper", "[2.0, 1.0]"]),
    "limits nan": (TURN, "limits = [nan, 1.0]", "limits", ["lower < upper", "nan"]),
    "limits none": (TURN, "limits = []", "limits", ["lower < upper"]),
    "limits too many": (TURN, "limits = [[0, 1], [0, 1]]", "limits", ["one per coordinate"]),
    "limits too few": (BOTH, "limits = [0, 1]", "limits", ["2 pairs", "one per coordinate"]),
    "limits of a ball": (
        '{ type = "Spherical" }',
        "limits = [[0, 1], [0, 1], [0, 1], [0, 1]]",
        "limits",
        ["no limits", "Spherical joint has a quaternion"],
    ),
    "gantry with axis": (
        '{ type = "Cartesian", axis = [0, 0, 1] }',
        "",
        "joint.axis",
        ["one of `type`"],
    ),
}


@pytest.mark.parametrize("name", JOINT_FAULTS)
def test_a_fault_of_a_joint_or_its_limits_is_located(tmp_path: Path, name: str) -> None:
    joint, more, field, words = JOINT_FAULTS[name]
    path = write(tmp_path, crane(joint, more))
    with pytest.raises(DescriptionError) as caught:
        load(path)
    error = caught.value
    assert (error.file, error.table, error.field) == (str(path), PART, field)
    message = str(error)
    assert message.startswith(f"{path}, {PART}, field `{field}`")
    for word in words:
        assert word in message, message
    assert_plain(message)


def test_sliding_and_helical_bodies_stand_in_for_the_screw_in_a_plane(tmp_path: Path) -> None:
    text = """
    name = "press"
    [[bodies]]
    name = "ground"
    joint = { type = "Fixed" }
    [[bodies]]
    name = "carriage"
    parent = "ground"
    joint = { type = "Sliding", normal = [0, 0, 1] }
    [[bodies]]
    name = "screw"
    parent = "carriage"
    joint = { type = "Helical", axis = [0, 0, 1], pitch = 0.1 }
    inertia = { mass = 2.0, moments = [0.1, 0.1, 0.1] }
    """
    robot = load(write(tmp_path, text))
    assert (robot.nq, robot.nv) == (3, 3)
    # A full turn and a shift: the pose that a single exponential does not reach.
    pose = robot.pose([0.3, -0.2, 2 * np.pi], "screw")
    np.testing.assert_allclose(pose[:3, 3], [0.3, -0.2, 0.2 * np.pi], atol=1e-15)
    np.testing.assert_allclose(pose[:3, :3], np.eye(3), atol=1e-15)


@pytest.mark.parametrize("path", [None, 3, ["rover.toml"]], ids=repr)
def test_what_is_no_path(path: object) -> None:
    for read in (load, load_task):
        with pytest.raises(DescriptionError, match="expected the path of a TOML file") as caught:
            read(path)  # type: ignore[arg-type]
        assert repr(path) in caught.value.came
