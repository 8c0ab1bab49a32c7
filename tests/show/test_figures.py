from __future__ import annotations

import copy
import re
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.patches import Polygon
from matplotlib.text import Text
from mpl_toolkits.mplot3d.art3d import Poly3DCollection
from PIL import Image

from concur import show
from concur.errors import ConcurError
from concur.show.overview import run_figures
from concur.show.skeleton import Outline
from tests.show.fake import (
    Body,
    Output,
    Planar,
    Prismatic,
    Revolute,
    Robot,
    flyer_run,
    rover_run,
)

FIGURES = {
    "errors": show.error_figure,
    "joints": show.joint_figure,
    "torques": show.torque_figure,
    "health": show.health_figure,
    "numerics": show.numerics_figure,
    "path": show.path_figure,
    "overview": show.plot_run,
}


@pytest.fixture(scope="module", params=[rover_run, flyer_run], ids=["rover", "flyer"])
def run(request):
    return request.param()


@pytest.fixture(scope="module")
def rover():
    return rover_run()


@pytest.fixture(scope="module")
def flyer():
    return flyer_run()


def line(axes, label):
    found = [this for this in axes.get_lines() if str(this.get_label()).startswith(label)]
    assert found, f"no line {label!r} among {[this.get_label() for this in axes.get_lines()]}"
    return found[0]


def views(figure):
    return [axes for axes in figure.axes if axes.name == "3d"]


def panels(figure):
    return [axes for axes in figure.axes if axes.name != "3d"]


@pytest.mark.extended
@pytest.mark.parametrize("name", FIGURES)
def test_axes_have_units_and_legends(run, name):
    figure = FIGURES[name](run)
    assert figure.axes
    assert figure.get_suptitle() or any(axes.get_title() for axes in figure.axes)
    for view in views(figure):
        labels = view.get_xlabel(), view.get_ylabel(), view.get_zlabel()
        assert labels == ("x [m]", "y [m]", "z [m]")
        assert figure.legends or view.get_legend() is not None
    shared = False
    for axes in panels(figure):
        assert re.search(r"\[.+\]$", axes.get_ylabel()), axes.get_ylabel()
        if figure.legends and axes.get_xlabel().endswith("[m]"):  # the figure's legend explains it
            continue
        assert axes.get_legend() is not None
        assert all(text.get_text() for text in axes.get_legend().get_texts())
        shared = shared or len(axes.get_shared_x_axes().get_siblings(axes)) > 1
        if not shared:
            assert re.search(r"\[(s|m)\]$", axes.get_xlabel())
    assert re.search(r"\[(s|m)\]$", figure.axes[-1].get_xlabel())


@pytest.mark.extended
@pytest.mark.parametrize("name", FIGURES)
def test_text_is_readable_and_inside_the_picture(run, name):
    figure = FIGURES[name](run)
    figure.canvas.draw()
    frame = figure.bbox
    for text in figure.findobj(Text):
        if text.get_text() and text.get_visible():
            assert text.get_fontsize() >= 9, text
    for axes in figure.axes:
        shown = [axes.xaxis.label, axes.yaxis.label, axes.title, axes.get_legend(), *figure.legends]
        shown += [axes.zaxis.label] if axes.name == "3d" else []
        for artist in filter(None, shown):
            box = artist.get_window_extent()
            assert frame.x0 - 1 <= box.x0 <= box.x1 <= frame.x1 + 1, artist
            assert frame.y0 - 1 <= box.y0 <= box.y1 <= frame.y1 + 1, artist


def test_errors_show_the_run(flyer):
    figure = show.error_figure(flyer)
    grid = np.array(figure.axes).reshape(2, 2)
    assert [axes.get_title() for axes in grid[0]] == ["hand: position", "hand: rotation"]
    for column, part in enumerate((slice(0, 3), slice(3, 6))):
        top, bottom = grid[:, column]
        np.testing.assert_allclose(
            line(top, "simulated").get_ydata(), np.sqrt((flyer.error[:, part] ** 2).sum(axis=1))
        )
        np.testing.assert_allclose(
            line(top, "ideal").get_ydata(), np.sqrt((flyer.ideal[:, part] ** 2).sum(axis=1))
        )
        for name, values in zip(
            flyer.servo.outputs[0].coordinate_names[part], flyer.error[:, part].T, strict=True
        ):
            np.testing.assert_array_equal(line(bottom, name).get_ydata(), values)
        assert (top.get_yscale(), bottom.get_yscale()) == ("log", "linear")


@pytest.mark.parametrize("size", [0.0, 3e-13])
def test_errors_of_rounding_are_said_in_words_and_not_magnified(size):
    run = rover_run(duration=2.0)
    run.error[:], run.ideal[:] = size * np.sin(run.t)[:, None], 0.0
    figure = show.error_figure(run)
    figure.canvas.draw()
    for axes in figure.axes[:2]:
        (text,) = [this.get_text() for this in axes.texts]
        assert text.startswith("zero within rounding: at most ")
    for axes in figure.axes[2:]:
        assert np.ptp(axes.get_ylim()) > 0.99e-9


def test_errors_above_rounding_are_drawn_over_nine_decades():
    run = rover_run(duration=2.0)
    run.error[:], run.ideal[:] = 3e-12, 0.0
    assert not show.error_figure(run).axes[0].texts
    run.error[0] = 1.0
    low, high = show.error_figure(run).axes[0].get_ylim()
    assert 1e-10 < low < 1e-9 < 1.0 < high


def test_only_residuals_above_rounding_are_drawn(run):
    figure = show.numerics_figure(run)
    zero = "Relative drift of the momentum" if run.floats else "Residual of the rolling constraints"
    titles = [axes.get_title() for axes in figure.axes]
    assert "Deviation from the exact error dynamics" in titles
    assert zero not in titles
    broken = copy.deepcopy(run)
    drawn = broken.momentum_drift if run.floats else broken.constraint_residual
    drawn[5] = 1e-3
    (panel,) = [axes for axes in show.numerics_figure(broken).axes if axes.get_title() == zero]
    np.testing.assert_array_equal(panel.get_lines()[0].get_ydata(), drawn)


def test_a_run_without_residuals_has_no_numerics():
    run = rover_run(duration=2.0)
    run.deviation[:], run.work[:] = 0.0, run.energy - run.energy[0]
    assert "numerics" not in run_figures(run)
    with pytest.raises(ConcurError, match="zero within rounding"):
        show.numerics_figure(run)
    run.work[3] += 1e-6
    (panel,) = show.numerics_figure(run).axes
    assert panel.get_title() == "Energy balance"
    assert list(run_figures(run))[-1] == "numerics"


def test_torques_are_grouped_and_their_peaks_marked(rover):
    figure = show.torque_figure(rover)
    assert [axes.get_title() for axes in figure.axes] == ["Wheels", "Joints"]
    for axes, columns in zip(figure.axes, ([0, 1], [2, 3, 4]), strict=True):
        marks = [this for this in axes.get_lines() if this.get_marker() == "o"]
        for column, mark in zip(columns, marks, strict=True):
            values = rover.u[:, column]
            name = rover.servo.model.control_names[column]
            np.testing.assert_array_equal(line(axes, name).get_ydata(), values)
            assert abs(mark.get_ydata()[0]) == np.abs(values).max()
            peak = f"|peak| {np.abs(values).max():.3g} N m at"
            assert peak in line(axes, name).get_label()
            assert mark.get_color() == line(axes, name).get_color()


def test_forces_and_torques_do_not_share_an_axis(flyer):
    labels = [axes.get_ylabel() for axes in show.torque_figure(flyer).axes]
    assert labels == ["force [N]", "torque [N m]"]


def test_health_shows_the_run(run):
    (axes,) = show.health_figure(run).axes
    np.testing.assert_array_equal(line(axes, "margin").get_ydata(), run.margin)
    assert f"{run.margin.min():.3g}" in line(axes, "least").get_label()
    assert axes.get_ylim()[0] == 0.0
    assert "0 = some output direction cannot be commanded" in axes.get_title()


def test_path_shows_the_run_in_true_proportion(rover):
    top, bottom = show.path_figure(rover).axes
    assert top.get_aspect() == 1.0
    np.testing.assert_array_equal(line(top, "base").get_xydata(), rover.pose[:, :2])
    np.testing.assert_array_equal(line(top, "hand").get_xydata(), rover.pose[:, 2:4])
    dashed = [this for this in top.get_lines() if len(this.get_xdata()) == len(rover.t)]
    np.testing.assert_array_equal(dashed[1].get_xydata(), rover.reference[:, :2])
    np.testing.assert_array_equal(dashed[3].get_xydata(), rover.reference[:, 2:4])
    np.testing.assert_array_equal(line(bottom, "hand").get_ydata(), rover.pose[:, 4])
    np.testing.assert_array_equal(line(bottom, "reference").get_ydata(), rover.reference[:, 4])


@pytest.mark.by_default(1)
@pytest.mark.parametrize(("make", "first"), [(rover_run, 1), (flyer_run, 1)])
def test_relative_positions_are_drawn_in_the_frame_of_their_body(make, first):
    run = make()
    *others, hand = run.servo.outputs
    hand = SimpleNamespace(**vars(hand), dim=hand.dim, relative_to="the_$hand", axes=None)
    hand.coordinate_names = hand.coordinate_units = ()
    run.servo.outputs = (*others, hand)
    figure = show.path_figure(run)
    panel = figure.axes[first]
    assert panel.get_title() == "Position of hand in the frame of the_$hand"
    assert panel.get_ylabel() == "relative position [m]"
    start = sum(output.dim for output in others)
    for column, name in enumerate("xyz"):
        np.testing.assert_array_equal(line(panel, name).get_ydata(), run.pose[:, start + column])
    drawn = [text.get_label() for axes in figure.axes[:first] for text in axes.lines]
    assert "hand" not in drawn


def test_path_draws_the_robot_at_six_instants(rover):
    top = show.path_figure(rover).axes[0]
    outlines = [patch.get_xy() for patch in top.patches if isinstance(patch, Polygon)]
    assert len(outlines) == 6 * 3
    times = ", ".join(text.get_text() for text in top.texts)
    assert sorted(times.split(", ")) == sorted(f"{t:.3g} s" for t in np.linspace(0, 12, 6))
    # An upright wheel of radius 0.1 m is seen as a rectangle 0.2 m long and 0.04 m wide.
    wheel = outlines[1]
    heading = rover.q[0, 2]
    along = wheel @ np.array([np.cos(heading), np.sin(heading)])
    across = wheel @ np.array([-np.sin(heading), np.cos(heading)])
    assert np.ptp(along) == pytest.approx(0.2, rel=1e-2)
    assert np.ptp(across) == pytest.approx(0.04, rel=1e-2)


def test_path_names_the_drawn_robots(rover):
    labels = [text.get_text() for text in show.path_figure(rover).axes[0].get_legend().get_texts()]
    assert "robot at 6 instants" in labels
    assert labels[-1] == "reference"
    assert set(labels) - {"robot at 6 instants", "reference"} == {
        out.name for out in rover.servo.outputs
    }


@pytest.mark.extended
@pytest.mark.parametrize("stretch", [1.0, 4.0])
def test_path_fills_its_panel(stretch):
    run = rover_run()
    for table, column in ((run.q, 0), (run.pose, 0), (run.pose, 2)):
        table[:, column] *= stretch
    run.reference[:, [0, 2]] *= stretch
    figure = show.path_figure(run)
    figure.canvas.draw()
    top = figure.axes[0]
    drawn = np.concatenate([patch.get_xy() for patch in top.patches] + [run.pose[:, :2]])
    for axis, limits in enumerate((top.get_xlim(), top.get_ylim())):
        assert np.ptp(drawn[:, axis]) > 0.7 * np.ptp(limits)


@pytest.mark.extended
def test_times_cover_no_wheel_and_no_path(rover):
    figure = show.path_figure(rover)
    figure.canvas.draw()
    top = figure.axes[0]
    marks = np.concatenate(
        [patch.get_xy() for patch in top.patches] + [rover.pose[:, :2], rover.pose[:, 2:4]]
    )
    marks = top.transData.transform(marks)
    boxes = [text.get_window_extent() for text in top.texts]
    for box in boxes:
        inside = (marks > [box.x0, box.y0]) & (marks < [box.x1, box.y1])
        assert not np.any(np.all(inside, axis=1))
        assert sum(box.overlaps(other) for other in boxes) == 1


def test_robot_figure_is_labelled_and_follows_its_update(rover):
    figure = show.robot_figure(rover.robot, rover.q[0], rover.servo.outputs)
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_zlabel()) == ("x [m]", "y [m]", "z [m]")
    assert figure.legends
    assert axes.get_zlim()[0] == 0.0
    spans = np.array([np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim()), np.ptp(axes.get_zlim())])
    box = axes._box_aspect
    np.testing.assert_allclose(box / box[0], spans / spans[0])

    artists = show.draw_robot(axes, rover.robot, rover.q[0], rover.servo.outputs)
    count = len(axes.get_children())
    artists.update(rover.q[500])
    assert len(axes.get_children()) == count
    hands = [this for this in axes.get_lines() if this.get_label() == "output hand"][-1]
    np.testing.assert_allclose(np.array(hands.get_data_3d())[:, 0], rover.pose[500, 2:], atol=1e-12)


@pytest.mark.by_default(1)
@pytest.mark.parametrize("stretch", [0.3, 1.5, 3.0])
def test_no_output_is_cut_off_where_the_picture_is_wide(stretch):
    bodies = (
        Body("hull", Planar()),
        Body("left", Revolute((0, 1, 0)), "hull", (0.0, 0.3, 0.0)),
        Body("right", Revolute((0, 1, 0)), "hull", (0.0, -0.3, 0.0)),
        Body("boom", Revolute((0, 1, 0)), "hull", (0.3, 0.0, 0.35)),
        Body("stick", Prismatic((1, 0, 0)), "boom", (0.5, 0.0, 0.0)),
    )
    wheels = tuple(SimpleNamespace(body=side, radius=0.15) for side in ("left", "right"))
    robot = Robot("digger", bodies, wheels)
    outputs = [Output("nose", "hull", "R2", (0.3, 0, 0)), Output("tip", "stick", "R3", (0.3, 0, 0))]
    q = np.array([-0.4, 0.0, 0.3, 0.0, 0.0, 0.0, stretch])
    figure = show.robot_figure(robot, q, outputs)
    figure.canvas.draw()
    picture = np.asarray(figure.canvas.buffer_rgba())[::-1, :, :3].astype(int)
    (axes,) = figure.axes
    for output in outputs:
        mark = line(axes, f"output {output.name}")
        column, row = axes.transData.transform(np.transpose(mark.get_data()))[0].astype(int)
        color = np.round(255 * np.array(to_rgb(mark.get_color())))
        assert np.abs(picture[row, column] - color).max() <= 3, output.name


@pytest.mark.extended
def test_an_output_has_one_colour_in_every_figure(rover):
    top, bottom = show.path_figure(rover).axes
    robot = show.robot_figure(rover.robot, rover.q[0], rover.servo.outputs).axes[0]
    errors = show.error_figure(rover).axes
    overview = show.plot_run(rover).axes
    base = {
        line(top, "base").get_color(),
        line(robot, "output base").get_color(),
        line(errors[0], "simulated").get_color(),
        line(overview[0], "base").get_color(),
        line(overview[1], "base").get_color(),
    }
    hand = {
        line(top, "hand").get_color(),
        line(bottom, "hand").get_color(),
        line(robot, "output hand").get_color(),
        line(errors[1], "simulated").get_color(),
        line(overview[0], "hand").get_color(),
        line(overview[1], "hand").get_color(),
    }
    assert (len(base), len(hand)) == (1, 1)
    assert base != hand


def test_robot_figure_explains_its_lines(run):
    figure = show.robot_figure(run.robot, run.q[0], run.servo.outputs)
    entries = [text.get_text() for text in figure.legends[0].get_texts()]
    assert "axes x red, y green, z blue" in entries
    assert ("wheel angle" in entries) == bool(run.robot.wheels)
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert 0 <= box.x0 <= box.x1 <= figure.bbox.width
    assert box.y1 < figure.axes[0].xaxis.get_tightbbox().y0 + 1


def test_times_stand_at_the_base_of_a_rover_with_a_long_arm():
    run = rover_run()
    # A hand that sweeps far, while the base drives as before.
    run.servo.outputs = (run.servo.outputs[0], replace(run.servo.outputs[1], point=(6.0, 0.0, 0.0)))
    top = show.path_figure(run).axes[0]
    for index, moment in zip(range(0, 1201, 240), np.linspace(0, 12, 6), strict=True):
        (text,) = [this for this in top.texts if f"{moment:.3g} s" in this.get_text().split(", ")]
        at = Outline(run.robot, run.q[0], run.servo.outputs).at(run.q[index])
        to_base, to_hand = np.linalg.norm(
            text.get_position() - np.array([at.chassis[:, :2].mean(axis=0), at.hands[1, :2]]),
            axis=1,
        )
        assert to_base < to_hand


def test_every_corner_of_box_and_wheels_is_set(run):
    axes = show.robot_figure(run.robot, run.q[0], run.servo.outputs).axes[0]
    (faces,) = [this for this in axes.collections if isinstance(this, Poly3DCollection)]
    at = Outline(run.robot, run.q[0], run.servo.outputs).at(run.q[0])
    known = np.concatenate([at.chassis, *(rims.reshape(-1, 3) for rims in at.wheels)])
    # Matplotlib keeps ragged polygons padded with uninitialized memory.
    corners = np.asarray(faces._faces).reshape(-1, 3)
    apart = np.linalg.norm(corners[:, None] - known[None], axis=2).min(axis=1)
    assert apart.max() == 0.0
    assert {tuple(corner) for corner in known} == {tuple(corner) for corner in corners}


@pytest.mark.extended
def test_saved_figures_are_pictures(rover, tmp_path):
    written = show.save_figures(rover, tmp_path / "deep" / "out")
    assert list(written) == [
        *("path", "errors", "joints", "torques", "health", "robot", "numerics")
    ]
    for name, path in written.items():
        assert path == tmp_path / "deep" / "out" / f"{name}.png"
        with Image.open(path) as image:
            assert image.format == "PNG"
            assert min(image.size) > 400
            assert image.info["dpi"][0] == pytest.approx(110, abs=0.1)
            assert len(image.convert("L").getcolors()) > 50


def test_directory_that_cannot_be_made_is_refused(rover, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConcurError, match=r"file.*directory that can be written"):
        show.save_figures(rover, tmp_path / "file")


@pytest.mark.extended
def test_file_that_cannot_be_written_is_refused(rover, tmp_path):
    (tmp_path / "robot.png").mkdir()
    with pytest.raises(ConcurError, match=r"robot\.png: expected a file that can be written"):
        show.save_figures(rover, tmp_path)


def test_settings_are_left_alone(rover):
    before = dict(mpl.rcParams)
    show.error_figure(rover)
    assert dict(mpl.rcParams) == before


@pytest.mark.extended
def test_matplotlib_is_imported_late_and_pyplot_never():
    code = """
import sys
import concur, concur.show
assert "matplotlib" not in sys.modules, "imported too early"
from concur.show.skeleton import Outline
from tests.show.fake import rover_run
concur.show.plot_run(rover_run(duration=1.0)).canvas.draw()
import concur.show.animation, concur.show.report
assert "matplotlib" in sys.modules
assert "matplotlib.pyplot" not in sys.modules, "pyplot has been imported"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_public_names_exist():
    assert set(show.__all__) <= set(dir(show))
    for name in show.__all__:
        assert callable(getattr(show, name)), name
    with pytest.raises(AttributeError, match="no_such_figure"):
        _ = show.no_such_figure
