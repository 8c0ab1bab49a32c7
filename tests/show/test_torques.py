"""Figures of torques over their limits, and of the margin."""

from __future__ import annotations

import numpy as np
import pytest

from concur import show
from tests.show.fake import flyer_run


@pytest.fixture(scope="module")
def flyer():
    return flyer_run()


def line(axes, label):
    found = [this for this in axes.get_lines() if str(this.get_label()).startswith(label)]
    assert found, f"no line {label!r} among {[this.get_label() for this in axes.get_lines()]}"
    return found[0]


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
