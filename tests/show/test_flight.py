"""Figures of a floating robot: views in space, rotation, limits and damping."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from scipy.spatial.transform import Rotation

from concur import show
from concur.show._flight import draw_view, leaves_plane
from concur.show.skeleton import Outline
from tests.show.fake import flyer_run, rover_run


@pytest.fixture(scope="module")
def flyer():
    return flyer_run()


@pytest.fixture(scope="module")
def figure(flyer):
    return show.path_figure(flyer)


def views(figure):
    return [axes for axes in figure.axes if axes.name == "3d"]


def panels(figure):
    return [axes for axes in figure.axes if axes.name != "3d"]


def line(axes, label):
    found = [this for this in axes.get_lines() if str(this.get_label()).startswith(label)]
    assert found, f"no line {label!r} among {[this.get_label() for this in axes.get_lines()]}"
    return found[0]


def tumbling(angle):
    """The free-flyer, its base turning at a constant rate about a tilted axis."""
    run = flyer_run()
    turn = angle * run.t / run.t[-1]
    axis = np.array([2.0, -1.0, 2.0]) / 3.0
    run.q[:, 3:7] = Rotation.from_rotvec(np.outer(turn, axis)).as_quat()
    return run


@pytest.mark.extended
def test_a_rover_is_seen_from_above_and_a_flyer_in_space(flyer):
    rover = rover_run(duration=2.0)
    assert not leaves_plane(rover)
    assert leaves_plane(flyer)
    assert not views(show.path_figure(rover)) + views(show.plot_run(rover))


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


def test_the_picture_shows_the_robot_at_the_end_with_its_paths(flyer, figure):
    (view,) = views(figure)
    at = Outline(flyer.robot, flyer.q[0], flyer.servo.outputs).at(flyer.q[-1])
    (faces,) = (this for this in view.collections if isinstance(this, Poly3DCollection))
    np.testing.assert_allclose(faces._faces[0], at.chassis[[0, 1, 3, 2]], atol=1e-12)
    trace = np.array(line(view, "hand").get_data_3d()).T
    np.testing.assert_allclose(trace[0], flyer.pose[0, :3], atol=1e-12)
    np.testing.assert_allclose(trace[-1], at.hands[0], atol=1e-9)
    spans = [np.ptp(view.get_xlim()), np.ptp(view.get_ylim()), np.ptp(view.get_zlim())]
    np.testing.assert_allclose(view._box_aspect / view._box_aspect[0], np.divide(spans, spans[0]))


def test_a_view_of_a_sample_shows_the_paths_up_to_it(flyer):
    drawn = show.new_figure(4.0, 4.0)
    draw_view(drawn, flyer, (0.0, 0.0, 1.0, 1.0), 300)
    trace = np.array(line(views(drawn)[0], "hand").get_data_3d()).T
    np.testing.assert_allclose(trace[-1], flyer.pose[300, :3], atol=1e-12)
    assert np.all(np.isin(trace[:, 0], flyer.pose[:301, 0]))


@pytest.mark.parametrize("across", [0, 1])
def test_paths_are_shown_from_above_and_from_the_side_that_shows_more(across):
    run = flyer_run()
    run.pose[:, 1 - across] = run.reference[:, 1 - across] = 0.2
    above, side = panels(show.path_figure(run))[:2]
    for axes, columns in ((above, [0, 1]), (side, [across, 2])):
        assert axes.get_aspect() == 1.0
        assert axes.get_xlabel() == f"{'xyz'[columns[0]]} [m]"
        assert axes.get_ylabel() == f"{'xyz'[columns[1]]} [m]"
        path, reference, start, end = axes.get_lines()
        np.testing.assert_array_equal(path.get_xydata(), run.pose[:, columns])
        np.testing.assert_array_equal(reference.get_xydata(), run.reference[:, columns])
        np.testing.assert_array_equal(start.get_xydata(), run.pose[:1, columns])
        np.testing.assert_array_equal(end.get_xydata(), run.pose[-1:, columns])
        assert (start.get_marker(), end.get_marker()) == ("o", "s")


def test_places_are_drawn_over_their_references(flyer, figure):
    place = panels(figure)[2]
    assert place.get_title() == "Position of hand"
    dashed = [this for this in place.get_lines() if this.get_linestyle() == "--"]
    for column, name in enumerate("xyz"):
        np.testing.assert_array_equal(line(place, name).get_ydata(), flyer.pose[:, column])
        np.testing.assert_array_equal(dashed[column].get_ydata(), flyer.reference[:, column])


@pytest.mark.parametrize("angle", [1.0, 9.0])
def test_the_attitude_is_in_degrees_about_inertial_axes(angle):
    turn = panels(show.path_figure(tumbling(angle)))[-1]
    assert turn.get_ylabel() == "rotation [deg]"
    size = line(turn, "angle")
    turned = np.degrees(angle * size.get_xdata() / 8)
    wrapped = np.abs((turned + 180.0) % 360.0 - 180.0)
    kept = np.isfinite(size.get_ydata())
    assert np.sum(~kept) == int((np.degrees(angle) + 180.0) // 360.0)
    np.testing.assert_allclose(size.get_ydata()[kept], wrapped[kept], atol=1e-5)
    assert f"turned in all: {np.degrees(angle):.3g}°" in size.get_label()
    first = np.array([line(turn, f"about {axis}").get_ydata() for axis in "xyz"])[:, 9]
    np.testing.assert_allclose(first, turned[9] * np.array([2.0, -1.0, 2.0]) / 3.0, atol=1e-9)


def test_an_attitude_alone_is_drawn_without_a_trace(flyer):
    attitude = replace(flyer.servo.outputs[0], name="look", group="SO3")
    run = flyer_run()
    run.servo.outputs = (attitude,)
    run.pose, run.reference = run.pose[:, 3:], run.reference[:, 3:]
    figure = show.path_figure(run)
    (turn,) = panels(figure)
    assert turn.get_title() == "Attitude of the base, from that at the start"
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert entries[0] == "output look"
    assert "reference" not in entries


def test_the_picture_is_of_the_end_of_a_long_course():
    run = flyer_run()
    for table, column in ((run.q, 0), (run.pose, 0), (run.reference, 0)):
        table[:, column] += 5.0 * run.t
    (view,) = views(show.path_figure(run))
    low, high = view.get_xlim()
    assert high - low < 8.0
    assert low < run.q[-1, 0] < high


@pytest.mark.extended
def test_overview_shows_the_robot_at_the_end(flyer):
    figure = show.plot_run(flyer)
    (view,) = views(figure)
    trace = np.array(line(view, "hand").get_data_3d()).T
    np.testing.assert_allclose(trace[-1], flyer.pose[-1, :3], atol=1e-12)
    figure.canvas.draw()
    box = view.get_legend().get_window_extent()
    for axes in panels(figure):
        assert not box.overlaps(axes.get_tightbbox())
        for axis in (view.xaxis, view.yaxis, view.zaxis):
            assert not axis.get_tightbbox().overlaps(axes.get_tightbbox())


def with_servo(run, **options):
    for name, value in options.items():
        setattr(run.servo, name, value)
    return run


def test_limits_and_scale_are_drawn_where_there_are_limits(flyer):
    assert len(show.torque_figure(flyer).axes) == 2
    limits = np.array([[-9.0, 9.0], *[[-4.0, 3.0]] * 5])
    run = with_servo(flyer_run(), torque_limits=limits)
    run.scale = np.where(run.t < 2.0, 0.5 + 0.25 * run.t, 1.0)
    force, torque, scale = show.torque_figure(run).axes
    np.testing.assert_array_equal(line(scale, "least 0.5").get_ydata(), run.scale)
    assert "below 1 for 25 % of the time" in line(scale, "least").get_label()
    for axes, pair, unit in ((force, (-9, 9), "N"), (torque, (-4, 3), "N m")):
        assert f"{pair[0]} to {pair[1]} {unit}, law" in line(axes, "limits").get_label()
        drawn = {this.get_ydata()[0] for this in axes.get_lines() if len(this.get_xdata()) == 2}
        assert drawn == set(pair)
        assert axes.get_ylim()[0] < pair[0] < pair[1] < axes.get_ylim()[1]


@pytest.mark.parametrize(
    ("law", "task", "robot", "drawn", "owner"),
    [
        (20.0, None, 150.0, 20.0, "law"),
        (None, 20.0, 150.0, 20.0, "task"),
        (None, 150.0, 20.0, 20.0, "robot"),
        (30.0, 20.0, 25.0, 20.0, "task"),
        (20.0, 20.0, 25.0, 20.0, "law and task"),
    ],
)
def test_the_tightest_limit_is_drawn_and_named(law, task, robot, drawn, owner):
    run = flyer_run()
    if law is not None:
        run.servo.torque_limits = np.array([[-law, law]] * 6)
    run.joint_limits.torques = np.full(6, robot)
    required = {} if task is None else dict.fromkeys(run.servo.model.control_names, task)
    for axes in show.torque_figure(run, required).axes:
        low, high = (this for this in axes.get_lines() if len(this.get_xdata()) == 2)
        assert sorted([low.get_ydata()[0], high.get_ydata()[0]]) == [-drawn, drawn]
        assert line(axes, "limits").get_label().endswith(f", {owner}")


def test_limits_that_are_never_active_have_no_scale():
    run = with_servo(flyer_run(), torque_limits=np.array([[-50.0, 50.0]] * 6))
    assert len(show.torque_figure(run).axes) == 2


def test_limits_far_away_do_not_flatten_the_controls(flyer):
    free = show.torque_figure(flyer).axes[1].get_ylim()
    run = with_servo(flyer_run(), torque_limits=np.array([[-1e3, 1e3]] * 6))
    assert show.torque_figure(run).axes[1].get_ylim() == free


def test_limits_that_differ_have_the_colours_of_their_controls():
    limits = np.array([[-9.0, 9.0], *([-k, np.inf] for k in (5, 4, 3, 2, 1))], dtype=float)
    axes = show.torque_figure(with_servo(flyer_run(), torque_limits=limits)).axes[1]
    for number, lower in enumerate((5, 4, 3, 2, 1), start=2):
        (limit,) = (this for this in axes.get_lines() if list(this.get_ydata()) == [-lower, -lower])
        assert limit.get_color() == line(axes, f"link{number}").get_color()


@pytest.mark.extended
def test_many_controls_keep_their_panel_and_their_legends():
    run = flyer_run()
    run.u = np.tile(run.u[:, 1:], (1, 3))
    run.control_units = ("N m",) * 15
    run.joint_limits.torques = np.full(15, np.inf)
    run.servo.model.control_names = tuple(f"motor_{k}" for k in range(15))
    figure = show.torque_figure(run)
    figure.canvas.draw()
    (axes,) = figure.axes
    assert axes.get_window_extent().height > 0.6 * figure.bbox.height
    assert axes.get_legend().get_window_extent().y0 >= 0.0
    overview = show.plot_run(run)
    overview.canvas.draw()
    (controls,) = (axes for axes in overview.axes if axes.get_title() == "Controls")
    assert controls.get_window_extent().height > 0.3 * overview.bbox.height
    assert controls.get_legend().get_window_extent().y0 >= 0.0


def test_what_damping_gives_up_is_drawn_by_unit(flyer):
    assert len(show.health_figure(flyer).axes) == 1
    run = with_servo(flyer_run(), damping_threshold=0.3)
    run.acceleration_residual[:, 0], run.acceleration_residual[:, 3] = 0.3, 0.04
    run.acceleration_residual[:, 1], run.acceleration_residual[:, 4] = 0.4, 0.03
    margin, missed = show.health_figure(run).axes
    assert line(margin, "damped below 0.3").get_ydata()[0] == 0.3
    np.testing.assert_allclose(line(missed, "hand: position").get_ydata(), 0.5)
    np.testing.assert_allclose(line(missed, "hand: rotation").get_ydata(), 0.05)
    assert missed.get_ylabel() == "residual [m/s², rad/s²]"
