"""Suggested sidecars: what is taken for a wheel, from both sides of each threshold."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import trimesh
from typer.testing import CliRunner

import concur as cc
from concur.cli import main
from concur.errors import DescriptionError, ReductionError
from concur.io import suggest_sidecar
from tests.io._wheeled import LAYOUTS, ROBOTS, STRANGERS, control, strange
from tests.io.test_urdf import SOLID, joint, link, robot


def wheel(name: str, x: float, y: float, z: float = 0.0, **more: object) -> str:
    """A wheel of radius 0.1 m on a continuous joint about y, with changes."""
    axis, kind = more.get("axis", "0 1 0"), str(more.get("kind", "continuous"))
    shape = f'<{more.get("shape", "cylinder")} radius="{more.get("radius", 0.1)}" length="0.05"/>'
    tag, at = more.get("tag", "collision"), more.get("at", "0 0 0")
    pose = f'<origin xyz="{at}" rpy="{more.get("turn", np.pi / 2)} 0 0"/>'
    solid = f"<{tag}>{pose}<geometry>{shape}</geometry></{tag}>"
    content = f'<origin xyz="{x} {y} {z}"/><axis xyz="{axis}"/>{more.get("mimic", "")}'
    parent = str(more.get("parent", "base"))
    return link(name, SOLID + solid) + joint(f"{name}_joint", kind, parent, name, content)


def suggested(folder: Path, *parts: str, base: str = SOLID) -> tuple[str, cc.Mechanism]:
    path = folder / "cart.urdf"
    path.write_text(robot(link("base", base), *parts))
    out, text = suggest_sidecar(path)
    assert out == folder / "cart.toml"
    out.write_text(text)
    return text, cc.load(path)


def suggested_text(folder: Path, file: str, load: bool = True) -> tuple[str, Any]:
    """Suggestion for a file, and the robot with it."""
    path = folder / "robot.urdf"
    path.write_text(file)
    out, text = suggest_sidecar(path)
    out.write_text(text)
    return text, cc.load(path) if load else None


def rolling(folder: Path, **more: object) -> list[str]:
    """Wheels of a cart whose right wheel has changes."""
    return [
        w.body for w in suggested(folder, wheel("a", 0, 0.3), wheel("b", 0, -0.3, **more))[1].wheels
    ]


def test_cylinders_on_continuous_joints_are_wheels(tmp_path: Path) -> None:
    arm = link("arm") + joint("lift", "revolute", "base", "arm", '<origin xyz="0 0 1"/>')
    text, ours = suggested(tmp_path, wheel("a", 0, 0.3), wheel("b", 0, -0.3), arm)
    assert isinstance(ours.base.joint, cc.joints.Planar)
    assert ours.gravity == (0.0, 0.0, -9.81)
    assert [(w.body, w.radius, w.kind) for w in ours.wheels] == [
        ("a", 0.1, "disk"),
        ("b", 0.1, "disk"),
    ]
    assert ours.actuated == ("a_joint", "b_joint", "lift")
    assert ours.nf == 3
    assert "# `a_joint` turns without end, its axis (0, 1, 0) is parallel to the ground,\n" in text
    assert rolling(tmp_path, tag="visual") == ["a", "b"]
    assert rolling(tmp_path, kind="revolute") == ["a"]
    assert rolling(tmp_path, shape="sphere") == ["a"]
    assert rolling(tmp_path, radius=0.0) == rolling(tmp_path, radius=0.0, at="0.1 0 0") == ["a"]
    assert rolling(tmp_path, axis="0 0 1") == ["a"]
    assert rolling(tmp_path, at="0 0.05 0") == ["a", "b"]
    for away, count in ((0.9e-4, 2), (1.1e-4, 1)):
        assert len(rolling(tmp_path, at=f"{away} 0 0")) == count
    for lift, count in ((0.0019, 2), (0.0021, 1)):
        assert len(rolling(tmp_path, z=lift)) == count


def test_axes_parallel_to_the_ground_are_so_up_to_a_thousandth(tmp_path: Path) -> None:
    for sine, count in ((0.9e-3, 1), (1.1e-3, 0)):
        path = tmp_path / "cart.urdf"
        axis = f"0 {float(np.sqrt(1 - sine**2))} {sine}"
        path.write_text(robot(link("base"), wheel("a", 0, 0.3, axis=axis)))
        assert suggest_sidecar(path)[1].count("[[wheels]]") == count


def test_further_wheels_on_one_side_skid_and_have_no_actuator(tmp_path: Path) -> None:
    pairs = [wheel("fl", 0.5, 0.3), wheel("fr", 0.5, -0.3), wheel("r", -0.5, 0.1)]
    ours = suggested(tmp_path, *pairs)[1]
    assert [w.kind for w in ours.wheels] == ["disk", "disk", "omni"]
    assert ours.actuated == ("fl_joint", "fr_joint")
    assert cc.reduce(ours).ns == 2


def test_a_joint_that_leans_with_a_wheel_is_held(tmp_path: Path) -> None:
    lean = '<origin xyz="0.5 0 0" rpy="0.1 0.1 0"/><axis xyz="0 0 1"/>'
    fork = link("fork") + joint("steer", "revolute", "base", "fork", lean)
    turned = {"axis": "0 0.995004 -0.0998334", "turn": np.pi / 2 - 0.1}
    text, ours = suggested(tmp_path, fork, wheel("a", 0, 0, parent="fork", **turned))
    assert '"steer" = 0.0  # moves the axle of `a`' in text
    assert [w.body for w in ours.wheels] == ["a"]
    assert ours.actuated == ("a_joint",)


KINDS = {  # family, kinds of wheels, freedoms of base and arm, motors, unknown radii, supports
    "turtle_mesh": ("differential", "disk disk", 2, 2, 0, 1),
    "turtle_drawn": ("differential", "disk disk", 2, 2, 0, 1),
    "husky": ("skid", "omni omni omni omni slider", 2, 2, 4, 0),
    "jackal": ("skid", "omni omni omni omni slider", 2, 2, 0, 0),
    "ridgeback": ("mecanum", "mecanum mecanum mecanum mecanum", 4, 5, 0, 0),
    "swerve": ("swerve", "disk disk disk disk", 3, 8, 0, 0),
    "car": ("car", "disk disk disk disk", 2, 2, 0, 0),
    "omni": ("omni", "omni omni omni", 3, 3, 3, 0),
    "casters_and_arm": ("differential", "disk disk", 3, 3, 0, 2),
    "rover": ("car", "disk disk disk disk disk disk", 2, 10, 0, 0),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_family_of_a_wheeled_robot(name: str, tmp_path: Path) -> None:
    """The suggestion is reduced to the freedoms that the family has in textbooks."""
    family, kinds, freedoms, motors, unknown, supports = KINDS[name]
    path = tmp_path / "robot.urdf"
    path.write_text(ROBOTS[name])
    out, text = suggest_sidecar(path)
    assert f"wheels roll on the ground: {family} drive\n" in text
    assert text.count("FILL IN") == unknown
    assert "Wheels would be refused" not in text
    out.write_text(
        "\n".join("radius = 0.1" if "FILL IN" in line else line for line in text.splitlines())
    )
    ours = cc.load(path)
    assert isinstance(ours.base.joint, cc.joints.Planar)
    assert ours.gravity == (0.0, 0.0, -9.81)
    assert " ".join(w.kind for w in ours.wheels) == kinds
    assert cc.reduce(ours).ns == freedoms
    assert (len(ours.control_names), len(ours.supports)) == (motors, supports)
    radius = 0.033 if name == "turtle_mesh" else 0.1
    assert {w.radius for w in ours.wheels if w.kind != "slider"} == {radius}
    if name == "omni":
        return
    # Straight ahead all wheels turn at the same speed.
    v = np.zeros(ours.nv)
    v[0] = radius
    v[ours.freedoms(*(w.body for w in ours.wheels if w.kind != "slider"))] = 1.0
    assert np.abs(ours.constraints(ours.neutral()) @ v).max() < 1e-12


FREEDOMS = {"differential": 2, "casters": 2, "skid": 2, "mecanum": 3, "swerve": 3, "car": 2}
COUNTS = {"differential": 2, "casters": 2}


@pytest.mark.by_default(6)
@pytest.mark.parametrize("kind", STRANGERS, ids="-".join)
def test_robots_of_strangers(kind: tuple[str, ...], tmp_path: Path) -> None:
    """Other names, languages, suspensions and evidence: the family is found, and never an orbit."""
    text, _ = suggested_text(tmp_path, strange(*kind), load=False)
    family = "differential" if kind[0] == "casters" else kind[0]
    assert f"wheels roll on the ground: {family} drive\n" in text
    filled = "\n".join("radius = 0.1" if "FILL IN" in line else line for line in text.splitlines())
    (tmp_path / "robot.toml").write_text(filled)
    ours = cc.load(tmp_path / "robot.urdf")
    rolling = [wheel for wheel in ours.wheels if wheel.kind != "slider"]
    assert (len(rolling), {wheel.radius for wheel in rolling}) == (COUNTS.get(kind[0], 4), {0.1})
    assert isinstance(ours.base.joint, cc.joints.Planar)
    assert cc.reduce(ours).ns == FREEDOMS[kind[0]]
    assert len(ours.supports) == (kind[0] == "casters")


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts_of_strangers(name: str, tmp_path: Path) -> None:
    """Rollers as joints, steering that the file couples, wheels without inertia, tracks."""
    family, wheels, freedoms, file = LAYOUTS[name]
    text, _ = suggested_text(tmp_path, file, load=False)
    assert f"wheels roll on the ground: {family} drive\n" in text
    filled = "\n".join("radius = 0.1" if "FILL IN" in line else line for line in text.splitlines())
    (tmp_path / "robot.toml").write_text(filled)
    ours = cc.load(tmp_path / "robot.urdf")
    assert len([wheel for wheel in ours.wheels if wheel.kind != "slider"]) == wheels
    assert cc.reduce(ours).ns == freedoms
    assert ('repair = ["wheel"]' in text) == (name == "without inertia")
    for k, wheel in enumerate(wheel for wheel in ours.wheels if wheel.kind == "mecanum"):
        assert wheel.roller_angle == pytest.approx(np.pi / 4 * (-1) ** (k in (1, 2)))


def test_mecanum_wheels_move_sideways(tmp_path: Path) -> None:
    """Wheels of one diagonal turn forwards and those of the other backwards, and it moves left."""
    ours = suggested_text(tmp_path, ROBOTS["ridgeback"])[1]
    v = np.zeros(ours.nv)
    v[1] = 0.1
    signs = {"front_left_wheel": -1, "front_right_wheel": 1}
    signs |= {"rear_left_wheel": 1, "rear_right_wheel": -1}
    v[ours.freedoms(*signs)] = list(signs.values())
    assert np.abs(ours.constraints(ours.neutral()) @ v).max() < 1e-12


def test_casters_are_held_supports(tmp_path: Path) -> None:
    text, ours = suggested_text(tmp_path, ROBOTS["casters_and_arm"])
    assert ours.supports["fl_caster_wheel"] == pytest.approx((0.26, 0.2, 0.0))
    assert text.count("# a caster, now a support") == 4
    # A limit of the steering, or a motor on it, makes a steered wheel of it.
    limited = ROBOTS["casters_and_arm"].replace("caster", "module")
    assert "differential" in suggested_text(tmp_path, limited)[0]  # by its trail
    text = suggested_text(tmp_path, limited.replace("-0.04 0 -0.1", "0 0 -0.1"))[0]
    assert "car drive" in text
    driven = control("fl_module_rotation_joint", "fr_module_rotation_joint")
    text = suggested_text(tmp_path, limited.replace("</robot>", f"{driven}</robot>"))[0]
    assert "[supports]" not in text
    ball = suggested_text(tmp_path, ROBOTS["turtle_drawn"])[1]
    assert ball.supports["caster_back"] == pytest.approx((-0.15, 0.0, 0.0))


def test_radii_of_meshes(tmp_path: Path) -> None:
    """A mesh in a package of the same checkout gives the radius about the axle."""
    folder = tmp_path / "shop" / "meshes"
    folder.mkdir(parents=True)
    (tmp_path / "shop" / "package.xml").write_text("<package><name>shop</name></package>")
    disk = trimesh.creation.cylinder(radius=0.1778, height=0.1, sections=256)
    disk.apply_transform(trimesh.transformations.rotation_matrix(np.pi / 2, (1, 0, 0)))
    disk.export(folder / "wheel.stl")
    (tmp_path / "shop" / "urdf").mkdir()
    text, ours = suggested_text(tmp_path / "shop" / "urdf", ROBOTS["husky"])
    assert "FILL IN" not in text
    assert "The radius is that of its mesh." in text
    assert {w.radius for w in ours.wheels} == {0.1778, 0.0}
    other = ROBOTS["husky"].replace("package://shop", "package://stock")
    assert "No mesh of it was found." in suggested_text(tmp_path / "shop" / "urdf", other, False)[0]


def test_wheels_of_several_links(tmp_path: Path) -> None:
    """A tyre on a rotor belongs to the wheel; a motor whose arm turns further parts is none."""
    pairs = (("left", 0.3), ("right", -0.3))
    shape = '<collision><origin rpy="1.5707963267948966 0 0"/><geometry>'
    shape += '<cylinder radius="0.1" length="0.05"/></geometry></collision>'
    turn = '<origin xyz="0 {} 0"/><axis xyz="0 1 0"/>'
    rotors = [
        link(f"{side}_rotor")
        + joint(f"{side}_wheel", "continuous", "base", f"{side}_rotor", turn.format(y))
        + link(f"{side}_tyre", shape)
        + joint(f"{side}_fix", "fixed", f"{side}_rotor", f"{side}_tyre")
        for side, y in pairs
    ]
    ours = suggested(tmp_path, *rotors)[1]
    assert [(w.body, w.radius) for w in ours.wheels] == [("left_rotor", 0.1), ("right_rotor", 0.1)]
    legs = [
        wheel(side, 0, y)
        + link(f"{side}_thigh")
        + joint(f"{side}_fix", "fixed", side, f"{side}_thigh")
        + link(f"{side}_shin")
        + joint(f"{side}_knee", "revolute", f"{side}_thigh", f"{side}_shin")
        for side, y in pairs
    ]
    assert not suggested(tmp_path, *legs)[1].wheels


def undrawn(name: str, y: float, z: float = 0.1, **more: object) -> str:
    """A wheel that is drawn as a mesh."""
    solid = '<visual><geometry><mesh filename="w.stl"/></geometry></visual>'
    content = (
        f'<origin xyz="{more.get("x", 0.0)} {y} {z}"/><axis xyz="{more.get("axis", "0 1 0")}"/>'
    )
    content += str(more.get("limit", ""))
    kind, parent = str(more.get("kind", "continuous")), str(more.get("parent", "base"))
    return link(name, DISK + solid) + joint(f"{name}_joint", kind, parent, name, content)


DISK = '<inertial><mass value="2"/><inertia ixx="0.2" iyy="0.3" izz="0.2"/></inertial>'


@pytest.mark.parametrize("names", [("left_wheel", "right_wheel"), ("LTire", "RTire"), ("a", "b")])
def test_wheels_that_are_meshes_need_their_radius(names: tuple[str, str], tmp_path: Path) -> None:
    """A planar base with two wheels; the file is complete when the radius is filled in."""
    path = tmp_path / "cart.urdf"
    path.write_text(robot(link("base", SOLID), undrawn(names[0], 0.2), undrawn(names[1], -0.2)))
    out, text = suggest_sidecar(path)
    assert (text.count("[[wheels]]"), text.count("FILL IN")) == (2, 2)
    assert "the axle is 0.1 m above the origin of the root link" in text
    assert "orbit" not in text
    out.write_text(text)
    with pytest.raises(DescriptionError) as caught:
        cc.load(path)
    assert caught.value.field == "radius"
    filled = "\n".join("radius = 0.1" if "FILL IN" in line else line for line in text.splitlines())
    out.write_text(filled)
    ours = cc.load(path)
    assert isinstance(ours.base.joint, cc.joints.Planar)
    assert ours.gravity == (0.0, 0.0, -9.81)
    assert [(w.body, w.radius) for w in ours.wheels] == [(names[0], 0.1), (names[1], 0.1)]
    assert cc.reduce(ours).kind == "chaplygin"


@pytest.mark.parametrize(
    ("part", "count"),
    [
        (undrawn("b", -0.2), 2),
        (undrawn("b", -0.2, 0.1009), 2),
        (undrawn("b", -0.2, 0.1011), 0),  # another height
        (undrawn("b", -0.2, axis="1 0 0"), 0),  # another direction
        (undrawn("b", 0.2, x=0.5), 0),  # behind each other
        (undrawn("b", -0.2, axis="0 0 1"), 0),
        (undrawn("b", -0.2, kind="revolute", limit='<limit lower="-1" upper="1"/>'), 0),
        (undrawn("b", -0.2) + link("c") + joint("arm", "revolute", "b", "c"), 0),  # it carries
        (undrawn("b_wheel", -0.2, 0.3), 1),  # by its name alone
        (undrawn("b_wheel", -0.2, kind="revolute", limit='<limit lower="-6.3" upper="6.3"/>'), 1),
        (undrawn("b_wheel", -0.2, kind="revolute", limit='<limit lower="-6.2" upper="6.2"/>'), 0),
    ],
)
def test_places_of_wheels(part: str, count: int, tmp_path: Path) -> None:
    path = tmp_path / "cart.urdf"
    path.write_text(robot(link("base", SOLID), undrawn("a", 0.2), part))
    assert suggest_sidecar(path)[1].count("\n[[wheels]]") == count


@pytest.mark.parametrize(("height", "reason"), [(0.0, "solid disk of its mass"), (0.2, "above")])
def test_the_reason_of_a_radius(height: float, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "cart.urdf"
    pair = undrawn("left_wheel", 0.2, height), undrawn("right_wheel", -0.2, height)
    path.write_text(robot(link("base", SOLID), *pair))
    assert suggest_sidecar(path)[1].count(reason) == 2


PLATE = '<inertial><mass value="2"/><inertia ixx="{}" iyy="0.5" izz="1"/></inertial>'


@pytest.mark.parametrize(
    ("names", "ixx", "base"),
    [
        (("a", "b"), 1.0, "Planar"),
        (("a", "b"), 0.995, "Planar"),
        (("a", "b"), 0.985, "Free"),  # a plate
        (("solar_left", "solar_right"), 1.0, "Free"),
        (("reaction_wheel_1", "reaction_wheel_2"), 1.0, "Free"),
    ],
)
def test_satellites_keep_a_free_base(
    names: tuple[str, str], ixx: float, base: str, tmp_path: Path
) -> None:
    """Panels and reaction wheels turn without end on both sides, and roll on nothing."""
    path = tmp_path / "satellite.urdf"
    solid = PLATE.format(ixx)
    parts = [undrawn(name, y).replace(DISK, solid) for name, y in zip(names, (1, -1), strict=True)]
    path.write_text(robot(link("base", SOLID), *parts))
    text = suggest_sidecar(path)[1]
    assert f'base = "{base.lower()}"' in text
    assert text.count("[[wheels]]") == 2 * (base == "Planar")


@pytest.mark.parametrize(
    ("names", "count"), [(("reaction_wheel_1", "momentum_wheel_2"), 0), (("wheel_1", "wheel_2"), 2)]
)
def test_cylinders_of_satellites_do_not_roll(names: Any, count: int, tmp_path: Path) -> None:
    pair = [wheel(name, 0, y) for name, y in zip(names, (0.3, -0.3), strict=True)]
    ours = suggested(tmp_path, *pair)[1]
    assert len(ours.wheels) == count
    assert isinstance(ours.base.joint, cc.joints.Planar if count else cc.joints.Free)


@pytest.mark.parametrize(
    ("name", "kind", "rolls"),
    [("hub", "fixed", True), ("hub", "revolute", False), ("wheel", "revolute", True)],
)
def test_links_of_arms_do_not_roll(name: str, kind: str, rolls: bool, tmp_path: Path) -> None:
    """A cylinder that carries a joint is a shoulder, unless its name is that of a wheel."""
    ours = suggested(tmp_path, wheel(name, 0, 0), link("arm") + joint("lift", kind, name, "arm"))[1]
    assert bool(ours.wheels) is rolls


@pytest.mark.parametrize("kind", ["continuous", "fixed"])
def test_wheels_that_cannot_roll_leave_no_free_base(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "cart.urdf"
    path.write_text(robot(link("base", SOLID), undrawn("wheel", 0.2, axis="0 0 1", kind=kind)))
    text = suggest_sidecar(path)[1]
    assert 'base = "planar"' in text
    assert "[[wheels]]" not in text


def test_a_suggestion_that_cannot_be_reduced_says_so(tmp_path: Path, monkeypatch: Any) -> None:
    """Every suggestion is reduced; with an error, the text has it."""
    path = tmp_path / "arm.urdf"
    path.write_text(robot(link("base"), link("arm"), joint("lift", "revolute", "base", "arm")))
    assert "rejects" not in suggest_sidecar(path)[1]

    def refuse(robot: cc.Mechanism) -> None:
        raise ReductionError("robot", expected="a", came="b", cure="Do c.")

    monkeypatch.setattr("concur.io._urdf_suggest.reduce", refuse)
    text = suggest_sidecar(path)[1]
    assert "\n# `concur check` rejects the robot with this file: expected a, got b. Do c.\n" in text
    path.write_text(robot(link("base"), wheel("a", 0, 0.3), wheel("b", 0, -0.3)))
    text = suggest_sidecar(path)[1]
    assert 'base = "fixed"  # it has wheels' in text
    assert (text.count("\n[[wheels]]"), text.count("\n# [[wheels]]")) == (0, 2)


def test_bases_without_wheels(tmp_path: Path) -> None:
    arm = link("arm") + joint("lift", "revolute", "base", "arm")
    assert isinstance(suggested(tmp_path, arm)[1].base.joint, cc.joints.Free)
    text, ours = suggested(tmp_path, arm, base="")
    assert isinstance(ours.base.joint, cc.joints.Fixed)
    assert 'base = "fixed"  # the root link `base` has no mass' in text
    path = tmp_path / "stand.urdf"
    path.write_text(robot(link("world", ""), link("arm"), joint("j", "revolute", "world", "arm")))
    out, text = suggest_sidecar(path)
    out.write_text(text)
    assert cc.load(path).actuated == ("j",)
    assert "No base: the root link `world`" in text


def test_joints_that_follow_others_have_no_actuator(tmp_path: Path) -> None:
    arms = link("arm") + joint("lift", "revolute", "base", "arm")
    arms += link("tip") + joint("bend", "revolute", "arm", "tip", '<mimic joint="lift"/>')
    assert suggested(tmp_path, arms)[1].actuated == ("lift",)


def test_the_command_writes_the_sidecar(tmp_path: Path) -> None:
    path = tmp_path / "cart.urdf"
    text = robot(link("base"), wheel("left", 0, 0.3))
    path.write_text(text.replace('"left"', "'the \"left\" 🛞'"))
    run = CliRunner()
    result = run.invoke(main, ["check", str(path), "--suggest", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["out"] == str(tmp_path / "cart.toml")
    assert [w.body for w in cc.load(path).wheels] == ['the "left" 🛞']
    assert "a file that exists" in run.invoke(main, ["check", str(path), "--suggest"]).stderr
    again = run.invoke(main, ["check", str(path), "--suggest", "--overwrite"])
    assert (tmp_path / "cart.toml").read_text() in again.stdout
    both = run.invoke(main, ["check", str(path), "--suggest", "--fix", "a.urdf"])
    assert both.exit_code == 2
    assert "expected one of the options --fix and --suggest" in both.stderr


def test_robots_that_no_sidecar_saves_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cart.urdf"
    path.write_text(robot())
    with pytest.raises(DescriptionError, match="at least one <link>"):
        suggest_sidecar(path)
