"""Figures of paths show the run: from above or in space."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.patches import Polygon

import concur as cc
from concur import show
from concur.show._course import Course, clipped, dashed, leaves_plane, windows
from concur.show._outputs import nearest, places
from tests.show.fake import flyer_run, rover_run


@pytest.fixture(scope="module")
def rover():
    return rover_run()


@pytest.fixture(scope="module")
def flyer():
    return flyer_run()


@pytest.fixture(scope="module")
def above(rover):
    figure = show.path_figure(rover)
    figure.canvas.draw()
    return figure


@pytest.fixture(scope="module")
def flight(flyer):
    return show.path_figure(flyer)


def views(figure):
    return [axes for axes in figure.axes if axes.name == "3d"]


def panels(figure):
    return [axes for axes in figure.axes if axes.name != "3d"]


def line(axes, label):
    found = [this for this in axes.get_lines() if str(this.get_label()).startswith(label)]
    assert found, f"no line {label!r} among {[this.get_label() for this in axes.get_lines()]}"
    return found[0]


# --- from above ----------------------------------------------------------------------------------


def test_supports_are_seen_from_above_and_named(rover):
    run = replace(rover, robot=replace(rover.robot, supports={"caster": (0.5, 0.1, 0.0)}))
    (top,) = show.path_figure(run).axes
    names = [text.get_text() for text in top.get_legend().get_texts()]
    assert names == ["robot at 6 instants", "support", "base", "hand", "reference"]
    (last,) = (patch.get_xy() for patch in top.patches if patch.get_label() == "support")
    x, y, heading = run.q[-1, :3]
    turn = np.array([[np.cos(heading), -np.sin(heading)], [np.sin(heading), np.cos(heading)]])
    middle = (last.min(axis=0) + last.max(axis=0)) / 2
    np.testing.assert_allclose(middle, turn @ [0.5, 0.1] + [x, y], atol=2e-3)


def test_path_shows_the_run_in_true_proportion_and_fills_its_panel(rover, above):
    (top,) = above.axes
    assert top.get_aspect() == 1.0
    for name, columns in (("base", slice(0, 2)), ("hand", slice(2, 4))):
        np.testing.assert_array_equal(line(top, name).get_xydata(), rover.pose[:, columns])
    dashed = [this for this in top.get_lines() if len(this.get_xdata()) == len(rover.t)][1::2]
    for drawn, columns in zip(dashed, (slice(0, 2), slice(2, 4)), strict=True):
        np.testing.assert_array_equal(drawn.get_xydata(), rover.reference[:, columns])
    names = [text.get_text() for text in top.get_legend().get_texts()]
    assert names == ["robot at 6 instants", "base", "hand", "reference"]
    drawn = np.concatenate([patch.get_xy() for patch in top.patches])
    assert np.max(np.ptp(drawn, axis=0) / np.ptp([top.get_xlim(), top.get_ylim()], axis=1)) > 0.8


def test_the_robot_is_drawn_at_six_instants(rover, above):
    top = above.axes[0]
    outlines = [patch.get_xy() for patch in top.patches if isinstance(patch, Polygon)]
    assert len(outlines) == 6 * 3
    times = ", ".join(text.get_text() for text in top.texts)
    assert sorted(times.split(", ")) == sorted(f"{t:.3g} s" for t in np.linspace(0, 12, 6))
    # An upright wheel of radius 0.1 m is seen as a rectangle 0.2 m long and 0.04 m wide.
    heading = rover.q[0, 2]
    along = outlines[1] @ [np.cos(heading), np.sin(heading)]
    across = outlines[1] @ [-np.sin(heading), np.cos(heading)]
    assert np.ptp(along) == pytest.approx(0.2, rel=1e-2)
    assert np.ptp(across) == pytest.approx(0.04, rel=1e-2)


def test_relative_positions_are_drawn_in_the_frame_of_their_body():
    run = flyer_run()
    run.servo.outputs = (replace(run.servo.outputs[0], relative_to="bus"),)
    figure = show.path_figure(run)
    (view,) = views(figure)
    assert not panels(figure)
    # The point moves in space, but has no reference there.
    assert len(line(view, "hand").get_data_3d()[0]) > 100
    assert "reference" not in [text.get_text() for text in figure.legends[0].get_texts()]


# --- in space ------------------------------------------------------------------------------------


def test_a_rover_is_seen_from_above_and_a_flyer_in_space(above, flight):
    assert not views(above)
    assert len(views(flight)) == 1


@pytest.mark.parametrize("column", [2, 3, 4])
def test_rising_and_tilting_leave_the_plane(column):
    run = flyer_run()
    run.q[:, :7] = [0.3, -0.2, 0.5, 0.0, 0.0, 0.0, 1.0]
    run.q[:, :2] += 0.1 * run.t[:, None]
    heading = 0.3 * run.t
    run.q[:, 5], run.q[:, 6] = np.sin(heading / 2), np.cos(heading / 2)
    assert not leaves_plane(run)
    run.q[:, column] += 1e-3 * run.t
    run.q[:, 3:7] /= np.linalg.norm(run.q[:, 3:7], axis=1)[:, None]
    assert leaves_plane(run)


def test_the_picture_shows_the_robot_at_the_end_with_its_paths(flyer, flight):
    (view,) = views(flight)
    trace = np.array(line(view, "hand").get_data_3d()).T
    np.testing.assert_allclose(trace[0], flyer.pose[0, :3], atol=1e-9)
    np.testing.assert_allclose(trace[-1], flyer.pose[-1, :3], atol=1e-9)
    (mark,) = np.transpose(line(view, "output hand").get_data_3d())
    np.testing.assert_allclose(mark, flyer.pose[-1, :3], atol=1e-9)
    spans = [np.ptp(view.get_xlim()), np.ptp(view.get_ylim()), np.ptp(view.get_zlim())]
    np.testing.assert_allclose(view._box_aspect / view._box_aspect[0], np.divide(spans, spans[0]))


def test_a_course_shows_the_paths_up_to_each_frame(flyer):
    course = Course(show.new_figure(4.0, 4.0), flyer, np.array([300, 100, 800]))
    for frame, row in enumerate((300, 100, 800)):
        course.show(frame)
        trace = np.array(line(course.axes, "hand").get_data_3d()).T
        np.testing.assert_allclose(trace[-1], flyer.pose[row, :3], atol=1e-9)
        apart = np.abs(trace[:, None] - flyer.pose[None, : row + 1, :3]).max(axis=2).min(axis=1)
        assert apart.max() < 1e-9


@pytest.mark.parametrize("across", [0, 1])
def test_paths_are_shown_from_above_and_from_the_side_that_shows_more(across):
    run = flyer_run()
    run.pose[:, 1 - across] = run.reference[:, 1 - across] = 0.2
    for axes, columns in zip(panels(show.path_figure(run)), ([0, 1], [across, 2]), strict=True):
        assert axes.get_aspect() == 1.0
        assert axes.get_xlabel() == f"{'xyz'[columns[0]]} [m]"
        assert axes.get_ylabel() == f"{'xyz'[columns[1]]} [m]"
        path, reference, start, end = axes.get_lines()
        np.testing.assert_array_equal(path.get_xydata(), run.pose[:, columns])
        np.testing.assert_array_equal(reference.get_xydata(), run.reference[:, columns])
        np.testing.assert_array_equal(start.get_xydata(), run.pose[:1, columns])
        np.testing.assert_array_equal(end.get_xydata(), run.pose[-1:, columns])


def test_an_attitude_alone_has_no_reference_in_space(flyer):
    run = flyer_run()
    run.servo.outputs = (cc.Output("look", "link6", "SO3"),)
    run.pose, run.reference = run.pose[:, 3:], run.reference[:, 3:]
    figure = show.path_figure(run)
    assert not panels(figure)
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert entries[0] == "look"
    assert "reference" not in entries


def test_the_picture_is_of_the_end_of_a_long_course():
    run = flyer_run()
    for table, column in ((run.q, 0), (run.pose, 0), (run.reference, 0)):
        table[:, column] += 5.0 * run.t
    (view,) = views(show.path_figure(run))
    low, high = view.get_xlim()
    assert high - low < 8.0
    assert low < run.q[-1, 0] < high


# --- positions of outputs, windows and dashes ----------------------------------------------------


def test_positions_have_the_axes_of_their_outputs(flyer):
    run = flyer_run()
    run.servo.outputs = (
        cc.Output("height", "bus", "R", axes="z"),
        cc.Output("side", "bus", "R2", axes="xz"),
        cc.Output("floor", "bus", "R2", axes="yx"),
        cc.Output("plane", "bus", "SE2"),
        cc.Output("tilted", "bus", "SE2", normal=(1, 0, 0)),
        cc.Output("whole", "bus", "SE3"),
        cc.Output("look", "bus", "SO3"),
    )
    run.pose = np.arange(22.0)[None, :]
    run.reference = -run.pose
    found = {p.output.name: (p.axes, p.actual[0].tolist(), p.is_path) for p in places(run)}
    assert found == {
        "height": ("z", [0.0], False),
        "side": ("xz", [1.0, 2.0], False),
        "floor": ("xy", [4.0, 3.0], True),
        "plane": ("xy", [5.0, 6.0], True),
        "whole": ("xyz", [11.0, 12.0, 13.0], True),
    }


def test_nearest_sample():
    t = np.array([0.0, 0.1, 0.2, 0.3])
    moments = np.array([-1.0, 0.04, 0.06, 0.26, 9.0])
    np.testing.assert_array_equal(nearest(t, moments), [0, 0, 1, 3, 3])


def straight(length, frames=50):
    """Return points of a robot 1 m long and 0.5 m high on a straight course, and its bases."""
    bases = np.linspace([0.0, 0.0, 0.1], [length, 0.0, 0.1], frames)
    corners = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.2, 0.2) for z in (-0.1, 0.4)])
    return bases[:, None] + corners, bases


@pytest.mark.parametrize("length", [3.0, 30.0])
def test_robot_is_always_in_view_and_the_window_follows_a_long_course(length):
    robot, bases = straight(length)
    target = np.array([[3.9, 0.0, 0.2]])
    low, high = windows(robot, target, bases, 0.0, smoothing=4.0)
    assert np.all((robot >= low[:, None]) & (robot <= high[:, None]))
    size = high[0] - low[0]
    np.testing.assert_allclose(high - low, np.tile(size, (50, 1)))
    # On the ground, up to the top of the motion.
    assert np.all(low[:, 2] == 0.0)
    centre = (low + high)[:, 0] / 2
    if length == 3.0:
        assert np.ptp(low, axis=0).max() == 0.0
        assert np.all((target[0] > low) & (target[0] < high))
    else:
        assert 2.0 < size[0] < 3.5
        assert 0.5 < high[0, 2] < 0.6
        assert np.abs(centre - bases[:, 0]).max() < 0.1 * size[0]
        # Across the course there is nothing to follow.
        assert np.ptp((low + high)[:, 1:], axis=0).max() == 0.0


def test_window_moves_smoothly_and_follows_heights_without_a_ground():
    robot, bases = straight(30.0, frames=200)
    shaken = bases.copy()
    shaken[::2, 0] += 0.1
    low, high = windows(robot[..., ::-1], np.empty((0, 3)), shaken[:, ::-1], None, smoothing=4.0)
    jerk, shake = (np.abs(np.diff(x[20:-20], 2)).max() for x in (low[:, 2], shaken[:, 0]))
    assert jerk < 0.01 * shake
    assert np.all(np.abs((low + high)[:, 2] / 2 - bases[:, 0]) < 0.35)


def test_clipped_curve_has_gaps_outside_and_dashes_have_equal_lengths():
    curve = np.linspace([-1.0, 0.0, 0.0], [2.0, 0.0, 0.0], 31)
    cut = clipped(curve, np.zeros(3), np.ones(3))
    inside = ~np.isnan(cut[:, 0])
    np.testing.assert_array_equal(cut[inside], curve[inside])
    assert 0.0 <= cut[inside, 0].min() <= cut[inside, 0].max() <= 1.0
    assert inside.sum() in (10, 11)
    angle = np.linspace(0.0, np.pi, 2000) ** 2 / np.pi
    dashes = dashed(np.stack([np.cos(angle), np.sin(angle), 0.0 * angle], axis=1), np.pi / 10)
    drawn = ~np.isnan(dashes[:, 0])
    np.testing.assert_allclose(np.linalg.norm(dashes[drawn], axis=1), 1.0, atol=1e-5)
    assert np.sum(np.diff(drawn.astype(int)) == -1) == 10
    assert 0.6 < drawn.mean() < 0.8
    assert dashed(np.ones((5, 3)), 0.1).shape == (1, 3)
