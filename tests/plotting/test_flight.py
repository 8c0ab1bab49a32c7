"""Figures of a floating robot: views in space, rotation, limits and damping."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from scipy.spatial.transform import Rotation

from concur import plotting
from concur.plotting._flight import leaves_plane
from concur.plotting.skeleton import Outline
from tests.plotting.fake import flyer_run, rover_run


@pytest.fixture(scope="module")
def flyer():
    return flyer_run()


@pytest.fixture(scope="module")
def figure(flyer):
    return plotting.path_figure(flyer)


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
    assert not views(plotting.path_figure(rover)) + views(plotting.plot_run(rover))


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


@pytest.mark.extended
def test_six_views_show_the_robot_at_their_times(flyer, figure):
    found = views(figure)
    moments = np.linspace(0, 8, 6)
    titles = [text.get_text() for text in figure.texts]
    assert [f"t = {moment:.3g} s" for moment in moments] == [t for t in titles if "t =" in t]
    outline = Outline(flyer.robot, flyer.q[0], flyer.servo.outputs)
    for view, moment in zip(found, moments, strict=True):
        index = round(moment / 0.01)
        at = outline.at(flyer.q[index])
        (faces,) = (this for this in view.collections if isinstance(this, Poly3DCollection))
        np.testing.assert_allclose(faces._faces[0], at.chassis[[0, 1, 3, 2]], atol=1e-12)
        trace = np.array(line(view, "hand").get_data_3d()).T
        np.testing.assert_allclose(trace[0], flyer.pose[0, :3], atol=1e-12)
        np.testing.assert_allclose(trace[-1], flyer.pose[index, :3], atol=1e-12)
        np.testing.assert_allclose(trace[-1], at.hands[0], atol=1e-9)


def test_views_have_one_scale_in_true_proportion(figure):
    spans = np.array(
        [[np.ptp(v.get_xlim()), np.ptp(v.get_ylim()), np.ptp(v.get_zlim())] for v in views(figure)]
    )
    np.testing.assert_allclose(spans, spans[:1].repeat(6, axis=0))
    for view, span in zip(views(figure), spans, strict=True):
        box = view._box_aspect
        np.testing.assert_allclose(box / box[0], span / span[0])
        np.testing.assert_allclose(box, views(figure)[0]._box_aspect)


def test_nothing_of_a_view_reaches_into_its_neighbours(figure):
    figure.canvas.draw()
    width = figure.bbox.width / 3
    for number, view in enumerate(views(figure)):
        left = number % 3 * width
        for axis in (view.xaxis, view.yaxis, view.zaxis):
            box = axis.get_tightbbox()
            assert left - 3 <= box.x0 <= box.x1 <= left + width + 3


def test_places_are_drawn_over_their_references(flyer, figure):
    place = panels(figure)[0]
    assert place.get_title() == "Position of hand"
    dashed = [this for this in place.get_lines() if this.get_linestyle() == "--"]
    for column, name in enumerate("xyz"):
        np.testing.assert_array_equal(line(place, name).get_ydata(), flyer.pose[:, column])
        np.testing.assert_array_equal(dashed[column].get_ydata(), flyer.reference[:, column])


@pytest.mark.extended
@pytest.mark.parametrize("angle", [1.0, 9.0])
def test_the_rotation_angle_is_accumulated(angle):
    turn = panels(plotting.path_figure(tumbling(angle)))[-1]
    added, apart = line(turn, "accumulated"), line(turn, "from the orientation")
    np.testing.assert_allclose(added.get_ydata()[-1], angle, rtol=1e-9)
    np.testing.assert_allclose(added.get_ydata(), angle * added.get_xdata() / 8, atol=1e-9)
    wrapped = np.abs((added.get_ydata() + np.pi) % (2 * np.pi) - np.pi)
    np.testing.assert_allclose(apart.get_ydata(), wrapped, atol=1e-6)
    assert f"total {angle:.3g} rad" in added.get_label()
    assert turn.get_ylabel() == "angle [rad]"


def test_an_attitude_alone_is_drawn_without_a_trace(flyer):
    attitude = replace(flyer.servo.outputs[0], name="look", group="SO3")
    run = flyer_run()
    run.servo.outputs = (attitude,)
    run.pose, run.reference = run.pose[:, 3:], run.reference[:, 3:]
    figure = plotting.path_figure(run)
    (turn,) = panels(figure)
    assert turn.get_title() == "Rotation of the base"
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert entries[0] == "output look"
    assert "reference" not in entries


@pytest.mark.extended
def test_views_follow_a_robot_that_drifts_far():
    run = flyer_run()
    for table, column in ((run.q, 0), (run.pose, 0), (run.reference, 0)):
        table[:, column] += 5.0 * run.t
    found = views(plotting.path_figure(run))
    spans = [np.ptp(view.get_xlim()) for view in found]
    assert max(spans) < 8.0
    for view, moment in zip(found, np.linspace(0, 8, 6), strict=True):
        low, high = view.get_xlim()
        assert low < run.q[round(moment / 0.01), 0] < high


@pytest.mark.extended
def test_overview_shows_the_robot_at_the_end(flyer):
    figure = plotting.plot_run(flyer)
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
    assert len(plotting.torque_figure(flyer).axes) == 2
    limits = np.array([[-9.0, 9.0], *[[-4.0, 3.0]] * 5])
    run = with_servo(flyer_run(), torque_limits=limits)
    run.scale = np.where(run.t < 2.0, 0.5 + 0.25 * run.t, 1.0)
    force, torque, scale = plotting.torque_figure(run).axes
    np.testing.assert_array_equal(line(scale, "least 0.5").get_ydata(), run.scale)
    assert "below 1 for 25 % of the time" in line(scale, "least").get_label()
    for axes, pair, unit in ((force, (-9, 9), "N"), (torque, (-4, 3), "N m")):
        assert f"{pair[0]} to {pair[1]} {unit}" in line(axes, "limits").get_label()
        drawn = {this.get_ydata()[0] for this in axes.get_lines() if len(this.get_xdata()) == 2}
        assert drawn == set(pair)
        assert axes.get_ylim()[0] < pair[0] < pair[1] < axes.get_ylim()[1]


def test_limits_far_away_do_not_flatten_the_controls(flyer):
    free = plotting.torque_figure(flyer).axes[1].get_ylim()
    run = with_servo(flyer_run(), torque_limits=np.array([[-1e3, 1e3]] * 6))
    assert plotting.torque_figure(run).axes[1].get_ylim() == free


def test_limits_that_differ_have_the_colours_of_their_controls():
    limits = np.array([[-9.0, 9.0], *([-k, np.inf] for k in (5, 4, 3, 2, 1))], dtype=float)
    axes = plotting.torque_figure(with_servo(flyer_run(), torque_limits=limits)).axes[1]
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
    figure = plotting.torque_figure(run)
    figure.canvas.draw()
    (axes,) = figure.axes
    assert axes.get_window_extent().height > 0.6 * figure.bbox.height
    assert axes.get_legend().get_window_extent().y0 >= 0.0
    overview = plotting.plot_run(run)
    overview.canvas.draw()
    (controls,) = (axes for axes in overview.axes if axes.get_title() == "Controls")
    assert controls.get_window_extent().height > 0.3 * overview.bbox.height
    assert controls.get_legend().get_window_extent().y0 >= 0.0


def test_what_damping_gives_up_is_drawn_by_unit(flyer):
    assert len(plotting.health_figure(flyer).axes) == 1
    run = with_servo(flyer_run(), damping_threshold=0.3)
    run.acceleration_residual[:, 0], run.acceleration_residual[:, 3] = 0.3, 0.04
    run.acceleration_residual[:, 1], run.acceleration_residual[:, 4] = 0.4, 0.03
    margin, missed = plotting.health_figure(run).axes
    assert line(margin, "damped below 0.3").get_ydata()[0] == 0.3
    np.testing.assert_allclose(line(missed, "hand: position").get_ydata(), 0.5)
    np.testing.assert_allclose(line(missed, "hand: rotation").get_ydata(), 0.05)
    assert missed.get_ylabel() == "residual [m/s², rad/s²]"
