"""Pictures and summaries of robots: every kind of joint, every body, every number."""

from __future__ import annotations

from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from mpl_toolkits.mplot3d import proj3d

import concur as cc
from concur.errors import DescriptionError, ShapeError
from concur.show._drawing import Drawing

J = cc.joints
TURNED = cc.Pose((0.4, 0.1, 0.3), (0.5, -0.5, 0.5, 0.5))


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


@pytest.mark.extended
def test_a_name_with_dollar_signs_is_written_as_it_is(tmp_path):
    inertia = cc.Inertia(1.0, moments=(0.1, 0.1, 0.1))
    robot = cc.Mechanism("$x^$", [cc.Body("$y_$", J.Free(), inertia=inertia)])
    figure = robot.plot([1e3, -1e3, 5.0, 0.0, 0.0, 0.0, 1.0])
    figure.savefig(tmp_path / "robot.png")
    assert [this.get_text() for this in figure.axes[0].texts] == ["$y_$"]


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


def test_the_point_of_an_output_is_seen_before_frames_and_symbols():
    """The hand is the origin of the last body, with its frame and its joint."""
    robot = cc.robots.rover_arm()
    hand = cc.Output("hand", "forearm", "R3")
    figure = robot.plot([0, 0, 0, 0, 0, 0.3, 0.8, -1.2], [hand])
    (axes,) = figure.axes
    figure.canvas.draw()
    (mark,) = (line for line in axes.get_lines() if line.get_label() == "output hand")
    x, y, _ = proj3d.proj_transform(*np.ravel(mark.get_data_3d()), axes.get_proj())
    column, row = axes.transData.transform((x, y)).round().astype(int)
    picture = np.asarray(figure.canvas.buffer_rgba())[::-1]
    around = picture[row - 1 : row + 2, column - 1 : column + 2, :3].reshape(-1, 3)
    wanted = np.round(255 * np.array(mpl.colors.to_rgb(mark.get_markerfacecolor())))
    assert np.abs(around - wanted).max() <= 2, around


@pytest.mark.parametrize("height", [0.0, 0.7])
def test_supports_stand_on_the_ground_with_their_names(height):
    """The height of the point in the file has no meaning: the wheels touch the ground at -0.1 m."""
    rover = cc.robots.rover_arm()
    points = {"left caster": (0.5, 0.1, height), "right caster": (0.5, -0.1, height)}
    robot = replace(rover, supports=points)
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    q = robot.neutral()
    q[:3] = 2.0, 1.0, np.pi / 2
    figure = robot.plot(q)
    (axes,) = figure.axes
    names = {this.get_text(): this.point for this in axes.texts if isinstance(this, Annotation)}
    drawing = Drawing(robot, q)
    balls = [at for part, at in zip(drawing.surfaces, drawing.at(q).surfaces, strict=True)
             if part.role == "support"]  # fmt: skip
    for (name, point), ball in zip(points.items(), balls, strict=True):
        place = np.array([2.0, 1.0, -0.1]) + turn @ [*point[:2], 0.0]
        np.testing.assert_allclose(names[name], place, atol=1e-12)
        np.testing.assert_allclose(ball[np.argmin(ball[:, 2])], place, atol=1e-12)
        np.testing.assert_allclose(ball.mean(axis=0)[:2], place[:2], atol=1e-3)
    assert "support" in {text.get_text() for text in figure.legends[0].get_texts()}


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
