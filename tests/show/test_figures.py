from __future__ import annotations

import copy
import re
import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image

from concur import show
from concur.errors import ConcurError
from concur.show.overview import run_figures
from tests.show.fake import (
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
from concur.show._drawing import Drawing as Outline
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
