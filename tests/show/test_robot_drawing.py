"""Pictures and summaries of robots: every kind of joint, every body, every number."""

from __future__ import annotations

import re
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection
from PIL import Image

import concur as cc
from concur.errors import DescriptionError, ShapeError
from concur.show._joint_symbols import symbol
from concur.show.skeleton import Outline

J = cc.joints
TURNED = cc.Pose((0.4, 0.1, 0.3), (0.5, -0.5, 0.5, 0.5))

KINDS = {
    "Fixed": (J.Fixed(), "fixed"),
    "Revolute": (J.Revolute((1, 2, 2)), "revolute"),
    "Prismatic": (J.Prismatic((1, 2, 2)), "prismatic"),
    "Helical": (J.Helical((1, 2, 2), 0.02), "helical"),
    "Cylindrical": (J.Cylindrical((1, 2, 2)), "cylindrical"),
    "Sliding": (J.Sliding((1, 2, 2)), "sliding"),
    "Planar": (J.Planar((1, 2, 2)), "planar"),
    "PlanarPrismatic": (J.PlanarPrismatic((1, 2, 2)), "planar and prismatic"),
    "Spherical": (J.Spherical(), "spherical"),
    "Cartesian": (J.Cartesian(), "Cartesian"),
    "Free": (J.Free(), None),
}


def one_joint(joint, **more):
    inertia = cc.Inertia(2.0, com=(0.1, 0.0, 0.05), moments=(0.02, 0.03, 0.04))
    base = cc.Body("hull", J.Fixed(), inertia=cc.Inertia(20.0, moments=(1.0, 1.5, 2.0)))
    part = cc.Body("part", joint, parent="hull", placement=TURNED, inertia=inertia, **more)
    return cc.Mechanism("sample", [base, part])


def every_joint():
    """A chain and branches with a joint of every kind."""
    inertia = cc.Inertia(2.0, com=(0.1, 0.0, 0.05), moments=(0.02, 0.03, 0.04))

    def body(name, joint, parent, place, **more):
        return cc.Body(
            name, joint, parent=parent, placement=cc.Pose(place), inertia=inertia, **more
        )

    z = (0, 0, 1)
    return cc.Mechanism(
        "every_joint",
        [
            cc.Body("base", J.Free(), inertia=cc.Inertia(20.0, moments=(1.0, 1.5, 2.0))),
            body("turning", J.Revolute(z), "base", (0.5, 0, 0.2), limits=(-1.25, 1.5)),
            body("pushing", J.Prismatic((1, 0, 0)), "turning", (0.5, 0, 0), limits=(0, 0.5)),
            body("screwing", J.Helical(z, 0.02), "pushing", (0.5, 0, 0)),
            body(
                "both",
                J.Cylindrical((0, 1, 0)),
                "screwing",
                (0.4, 0, 0.3),
                limits=[(-0.125, 0.75), None],
            ),
            body("shifting", J.Sliding(z), "base", (-0.5, 0, 0.3)),
            body("driving", J.Planar(z), "shifting", (-0.5, 0, 0.3)),
            body("ball", J.Spherical(), "driving", (0, 0, 0.4)),
            body("gantry", J.Cartesian(), "base", (0, 0.6, 0.1)),
            body("picker", J.PlanarPrismatic((0, 1, 1)), "gantry", (0, 0.5, 0.2)),
            body("hook", J.Fixed(), "picker", (0, 0.4, 0.2)),
        ],
        gravity=(0.0, 0.0, -9.81),
    )


def drawn(axes, kind, body):
    return [this for this in axes.collections if this.get_gid() == f"{kind}:{body}"]


def vertices(collection):
    return [np.asarray(line) for line in collection._segments3d]


# --- symbols ------------------------------------------------------------------------------------


@pytest.mark.extended
@pytest.mark.parametrize("name", KINDS)
def test_every_kind_of_joint_has_its_artists_and_its_entry_in_the_legend(name):
    joint, kind = KINDS[name]
    figure = one_joint(joint).plot()
    (axes,) = figure.axes
    entries = {text.get_text() for text in figure.legends[0].get_texts()}
    if kind is None:
        assert not [this for this in axes.collections if ":part" in str(this.get_gid())]
        assert entries == {"fixed", "axes x red, y green, z blue", "centre of mass"}
        return
    artists = drawn(axes, kind, "part")
    assert artists
    assert kind in entries
    flat = name in ("Sliding", "Planar", "PlanarPrismatic")
    solid = name in ("Spherical", "Fixed")
    assert any(isinstance(this, Poly3DCollection) for this in artists) == (flat or solid)
    assert any(isinstance(this, Line3DCollection) for this in artists) == (not solid)


def test_kinds_are_told_apart_by_colour():
    symbols = [symbol(joint, np.eye(4), 1.0) for joint, kind in KINDS.values() if kind]
    assert len({this.color for this in symbols}) == len({this.kind for this in symbols}) == 10
    assert symbol(SimpleNamespace(), np.eye(4), 1.0) is None


@pytest.mark.parametrize("axis", [(1, 2, 2), (0, 0, -1), (0, 0, 3), (-1, 0, 0)])
@pytest.mark.parametrize("kind", [J.Revolute, lambda axis: J.Helical(axis, 0.1)])
def test_axis_line_lies_on_the_axis_of_the_joint(kind, axis):
    robot = one_joint(kind(axis))
    pose = robot.pose([0.7], "part")
    line = symbol(robot.bodies[1].joint, pose, 0.3).lines[0]
    direction = TURNED.matrix[:3, :3] @ np.array(axis) / np.linalg.norm(axis)
    np.testing.assert_allclose(line.mean(axis=0), pose[:3, 3], atol=1e-14)
    np.testing.assert_allclose(line[1] - line[0], 0.6 * direction, atol=1e-14)


@pytest.mark.parametrize("axis", [(1, 2, 2), (0, 0, -1), (1, 0, 0)])
@pytest.mark.parametrize("kind", [J.Planar, J.Sliding])
def test_patch_lies_in_the_plane_of_the_joint(kind, axis):
    robot = one_joint(kind(axis))
    pose = robot.pose(robot.random(np.random.default_rng(1)), "part")
    faces = symbol(robot.bodies[1].joint, pose, 0.3).faces
    normal = TURNED.matrix[:3, :3] @ np.array(axis) / np.linalg.norm(axis)
    offsets = faces.reshape(-1, 3) - TURNED.matrix[:3, 3]
    np.testing.assert_allclose(offsets @ normal, 0.0, atol=1e-14)


@pytest.mark.parametrize("pitch", [0.05, -0.05])
def test_thread_has_the_hand_of_the_screw(pitch):
    thread = symbol(J.Helical((0, 0, 1), pitch), np.eye(4), 1.0).lines[-1]
    angle = np.unwrap(np.arctan2(thread[:, 1], thread[:, 0]))
    turned = (angle[-1] - angle[0]) * (thread[-1, 2] - thread[0, 2])
    assert np.sign(turned) == np.sign(pitch)
    assert abs(angle[-1] - angle[0]) == pytest.approx(7 * np.pi)


def test_ball_is_round():
    corners = symbol(J.Spherical(), np.eye(4), 2.0).faces.reshape(-1, 3)
    np.testing.assert_allclose(np.linalg.norm(corners, axis=1), 0.9, atol=1e-14)


# --- the whole picture ----------------------------------------------------------------------------


@pytest.mark.extended
@pytest.mark.parametrize("make", [every_joint, cc.robots.rover_arm, cc.robots.orbital_crawler])
def test_picture_names_every_body_once_and_inside(make):
    robot = make()
    figure = robot.plot()
    (axes,) = figure.axes
    names = [this for this in axes.texts if isinstance(this, Annotation)]
    assert [this.get_text().split("\n")[0] for this in names] == [b.name for b in robot.bodies]
    figure.canvas.draw()
    boxes = [mpl.text.Text.get_window_extent(name) for name in names]
    for box in boxes:
        assert 0 <= box.x0 < box.x1 <= figure.bbox.width
        assert 0 <= box.y0 < box.y1 <= figure.bbox.height
    for i, box in enumerate(boxes):
        for other in boxes[:i]:
            assert not box.overlaps(other), (names[i].get_text(), boxes.index(other))


def test_a_name_stays_at_its_joint_when_the_view_turns():
    robot = one_joint(J.Revolute((0, 0, 1)))
    figure = robot.plot()
    (axes,) = figure.axes
    name = next(this for this in axes.texts if this.get_text() == "part")
    before = name.xy
    axes.view_init(elev=60, azim=20)
    figure.canvas.draw()
    knot = next(line for line in axes.get_lines() if line.get_label() == "joints")
    assert np.linalg.norm(np.subtract(name.xy, before)) > 1e-3
    np.testing.assert_allclose(name.xy, np.transpose(knot.get_data())[0], atol=1e-9)


def test_a_name_with_dollar_signs_is_written_as_it_is(tmp_path):
    inertia = cc.Inertia(1.0, moments=(0.1, 0.1, 0.1))
    robot = cc.Mechanism("$x^$", [cc.Body("$y_$", J.Free(), inertia=inertia)])
    figure = robot.plot([1e3, -1e3, 5.0, 0.0, 0.0, 0.0, 1.0])
    figure.savefig(tmp_path / "robot.png")
    assert [this.get_text() for this in figure.axes[0].texts] == ["$y_$"]


def test_pitch_stands_beside_the_name():
    axes = one_joint(J.Helical((0, 0, 1), -0.0375)).plot().axes[0]
    assert "part\npitch -0.0375 m/rad" in [this.get_text() for this in axes.texts]


def test_picture_has_true_proportions():
    axes = every_joint().plot().axes[0]
    spans = np.array([np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim()), np.ptp(axes.get_zlim())])
    np.testing.assert_allclose(axes._box_aspect / axes._box_aspect[0], spans / spans[0])


def test_frames_stand_at_the_bodies_in_the_configuration_given():
    robot = every_joint()
    q = robot.random(np.random.default_rng(3))
    axes = robot.plot(q).axes[0]
    (frames,) = [this for this in axes.collections if this.get_gid() == "frames"]
    starts = np.array([line[0] for line in vertices(frames)])[::3]
    expected = [robot.pose(q, body.name)[:3, 3] for body in robot.bodies]
    np.testing.assert_allclose(starts, expected, atol=1e-14)
    ends = np.array([line[1] - line[0] for line in vertices(frames)]).reshape(-1, 3, 3)
    length = np.linalg.norm(ends[0, 0])
    turns = [robot.pose(q, body.name)[:3, :3].T for body in robot.bodies]
    np.testing.assert_allclose(ends / length, turns, atol=1e-12)


def test_picture_shows_wheels_output_points_and_centre_of_mass():
    robot = cc.robots.rover_arm()
    hand = cc.Output("hand", "forearm", "R3", point=(0.0, 0.2, 0.0))
    q = robot.neutral()
    q[5:] = [0.3, 0.8, -1.2]
    figure = robot.plot(q, [hand])
    (axes,) = figure.axes
    entries = {text.get_text() for text in figure.legends[0].get_texts()}
    assert entries >= {"planar", "revolute", "output hand", "centre of mass", "wheel angle"}
    found = {line.get_label(): np.transpose(line.get_data_3d()) for line in axes.get_lines()}
    tip = robot.pose(q, "forearm") @ [0.0, 0.2, 0.0, 1.0]
    np.testing.assert_allclose(found["output hand"], [tip[:3]], atol=1e-14)
    masses = [body.inertia.mass for body in robot.bodies]
    centres = [(robot.pose(q, b.name) @ [*b.inertia.com, 1.0])[:3] for b in robot.bodies]
    np.testing.assert_allclose(
        found["centre of mass"], [np.average(centres, axis=0, weights=masses)], atol=1e-14
    )
    assert len(Outline(robot, q).at(q).wheels) == 2
    assert "output hand" not in {t.get_text() for t in robot.plot(q).legends[0].get_texts()}


def test_a_branch_without_an_output_ends_at_the_centre_of_mass_of_its_body():
    robot = cc.robots.orbital_crawler()
    q = robot.neutral()
    stubs = Outline(robot, q).at(q).stubs
    assert len(stubs) == 2
    for name, stub in zip(("left_tip", "right_tip"), stubs, strict=True):
        pose = robot.pose(q, name)
        np.testing.assert_allclose(stub, [pose[:3, 3], (pose @ [0.1, 0, 0, 1])[:3]], atol=1e-14)
    left = cc.Output("left", "left_tip", "R3", point=(0.2, 0.0, 0.0))
    assert len(Outline(robot, q, [left]).at(q).stubs) == 1


@pytest.mark.extended
def test_picture_is_a_file(tmp_path):
    path = tmp_path / "robot.png"
    every_joint().plot().savefig(path)
    with Image.open(path) as image:
        assert min(image.size) > 500
        assert len(image.convert("RGB").getcolors(maxcolors=10**7)) > 100


@pytest.mark.parametrize("part", [lambda figure: figure, lambda figure: figure.subfigures(1, 2)[1]])
def test_picture_goes_into_given_axes(part):
    figure = Figure(figsize=(6, 6))
    axes = part(figure).add_subplot(projection="3d")
    robot = one_joint(J.Prismatic((0, 1, 0)))
    assert robot.plot(ax=axes) is figure
    assert drawn(axes, "prismatic", "part")
    assert axes.get_legend() is not None
    assert not figure.legends


def test_flat_axes_and_wrong_configurations_are_refused():
    robot = one_joint(J.Revolute((0, 0, 1)))
    with pytest.raises(DescriptionError, match=r"`ax`: expected three-dimensional axes, got Axes"):
        robot.plot(ax=Figure().add_subplot())
    with pytest.raises(ShapeError, match=r"shape \(1,\)"):
        robot.plot([0.1, 0.2])


def test_pictures_leave_the_settings_of_matplotlib_alone():
    before = dict(mpl.rcParams)
    every_joint().plot()
    assert dict(mpl.rcParams) == before


# --- summary ------------------------------------------------------------------------------------


def rows(text):
    """First cell of each line to the whole line, with single spaces; one table after another."""
    found = {}
    for line in text.splitlines():
        if line.strip():
            found.setdefault(line.split()[0], []).append(" ".join(line.split()))
    return found


def test_summary_tells_of_every_body_and_number():
    text = every_joint().summary()
    table = rows(text)
    assert "every_joint: 11 bodies, nq = 28, nv = 26, 20 driven freedoms" in text
    assert "total mass 40 kg, gravity (0, 0, -9.81) m/s^2" in text
    assert table["base"][0] == "base Free 7 6"
    assert table["base"][1] == "base 20 (0, 0, 0) 1, 1.5, 2"
    assert table["turning"][0] == "turning base Revolute (0, 0, 1) 1 1 yes -1.25 to 1.5 rad"
    assert table["turning"][1] == "turning 2 (0.1, 0, 0.05) 0.02, 0.03, 0.04"
    assert table["pushing"][0] == "pushing turning Prismatic (1, 0, 0) 1 1 yes 0 to 0.5 m"
    assert table["screwing"][0] == "screwing pushing Helical (0, 0, 1), 0.02 m/rad 1 1 yes"
    assert table["both"][0].endswith("(0, 1, 0) 2 2 yes travel -0.125 to 0.75 m")
    assert table["picker"][0].startswith(
        "picker gantry PlanarPrismatic (0, 0.707107, 0.707107) 4 4"
    )
    assert table["hook"][0] == "hook picker Fixed 0 0"
    assert all(len(table[body.name]) == 2 for body in every_joint().bodies)
    assert max(map(len, text.splitlines())) <= 100
    assert not re.search(r"[ \t]$", text, re.MULTILINE)
    assert "\x1b" not in text


def test_summary_tells_of_wheels_and_constraints():
    robot = cc.robots.rover_arm()
    text = robot.summary()
    assert rows(text)["left_wheel"][2] == "left_wheel disk 0.1 (0, 1, 0) (0, 0, 0)"
    assert "rolling constraints (3):" in text
    for name in robot.constraint_names:
        assert name in text
    assert rows(text)["chassis"][0] == "chassis Planar (0, 0, 1) 3 3"
    assert max(map(len, text.splitlines())) <= 100


def test_summary_without_wheels_gravity_or_mass_says_so():
    text = one_joint(J.Revolute((0, 0, 1))).summary()
    assert "no gravity" in text
    assert "wheel" not in text
    assert "1 driven freedom\n" in text
    nothing = cc.Mechanism("nothing", [cc.Body("alone", J.Fixed())]).summary()
    assert rows(nothing)["alone"] == ["alone Fixed 0 0", "alone 0"]
    assert "1 body, nq = 0, nv = 0, 0 driven freedoms" in nothing


def test_long_names_are_not_cut():
    name = "a_body_with_a_name_" * 6
    inertia = cc.Inertia(1.0, moments=(0.1, 0.1, 0.1))
    robot = cc.Mechanism("long", [cc.Body(name, J.Free(), inertia=inertia)])
    assert [line.partition(" ")[0] for line in robot.summary().splitlines()].count(name) == 2


def test_half_open_limits_are_shown():
    text = one_joint(J.Revolute((0, 0, 1)), limits=(-np.inf, 0.25)).summary()
    assert rows(text)["part"][0].endswith("-inf to 0.25 rad")
