"""Figures of a run: each shows its arrays, with the tightest limits, readable and without noise."""

from __future__ import annotations

import copy
import subprocess
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text
from scipy.spatial.transform import Rotation

import concur as cc
from concur import show
from concur.show.charts import Curve, Panel, chart, tiles
from concur.show.report import write_report
from concur.show.runs import comparison_figure, control_panels
from tests.show.fake import flyer_run, line, rover_run

TOLERANCES = SimpleNamespace(final_error=1e-6, margin=0.1)


@pytest.fixture(scope="module", params=[rover_run, flyer_run], ids=["rover", "flyer"])
def run(request):
    return request.param()


def title(axes):
    return axes.get_legend().get_title().get_text()


def entries(axes):
    return [text.get_text() for text in axes.get_legend().get_texts()]


def panel(run, figure, start, task=None):
    """Axes of the panel of a figure whose title starts so."""
    (found,) = (
        axes for axes in show.run_figures(run, task)[figure]().axes if title(axes).startswith(start)
    )
    return found


@pytest.mark.by_default(2)
@pytest.mark.parametrize("name", ["errors", "outputs", "torques", "joints", "health", "numerics"])
def test_charts_have_units_and_text_inside_the_picture(run, name):
    figure = show.run_figures(run)[name]()
    figure.canvas.draw()
    frame = figure.bbox
    assert figure.get_suptitle()
    assert figure.axes[-1].get_xlabel() == "time [s]"
    for axes in figure.axes:
        assert axes.get_ylabel().endswith("]")
        assert title(axes)
        assert all(entries(axes))
        assert axes.get_window_extent().height > 100  # legends take nothing from the axes
        for artist in (axes.yaxis.label, axes.get_legend()):
            box = artist.get_window_extent()
            assert frame.x0 - 1 <= box.x0 <= box.x1 <= frame.x1 + 1, artist
            assert frame.y0 - 1 <= box.y0 <= box.y1 <= frame.y1 + 1, artist
    for text in figure.findobj(Text):
        assert not text.get_text() or text.get_fontsize() >= 9


def test_errors_lie_on_the_exact_error_dynamics_with_the_limit_at_the_end(run):
    run = copy.deepcopy(run)
    run.tolerances = TOLERANCES
    figure = show.run_figures(run)["errors"]()
    drawn = [this for axes in figure.axes for this in axes.get_lines()]
    for name, unit, places in run.error_places:
        actual = np.linalg.norm(run.error[:, places], axis=1)
        ideal = np.linalg.norm(run.ideal[:, places], axis=1)
        (axes,) = {this.axes for this in drawn if str(this.get_label()) == name}
        np.testing.assert_array_equal(line(axes, name).get_ydata(), actual)
        assert any(np.array_equal(this.get_ydata(), ideal) for this in axes.get_lines())
        assert axes.get_yscale() == "log"
        assert axes.get_ylabel() == f"|error| [{unit}]"
        limit = line(axes, f"limit at the end: 1e-06 {unit}")
        assert (limit.get_xdata()[0], limit.get_ydata()[0]) == (run.t[-1], 1e-6)
        (coordinates,) = (a for a in figure.axes if title(a) == f"Coordinates of {name}")
        for values, place in zip(coordinates.get_lines(), places, strict=True):
            np.testing.assert_array_equal(values.get_ydata(), run.error[:, place])


@pytest.mark.parametrize(("size", "said"), [(0.0, True), (3e-13, True), (3e-12, False)])
def test_errors_of_rounding_are_said_in_words_and_not_magnified(size, said):
    run = rover_run(duration=2.0)
    run.error[:], run.ideal[:] = size * np.sin(run.t)[:, None], 0.0
    figure = show.run_figures(run)["errors"]()
    (axes,) = figure.axes
    assert [this.get_text()[:20] for this in axes.texts] == ["zero within rounding"] * said
    run.error[:] = 3e-12
    run.error[0] = 1.0
    low, high = show.run_figures(run)["errors"]().axes[0].get_ylim()
    assert 1e-10 < low < 1e-9 < 1.0 < high


def test_a_law_without_outputs_has_no_errors(run):
    run = copy.copy(run)
    run.servo = SimpleNamespace(**vars(run.servo) | {"outputs": ()})
    run.pose, run.reference = run.pose[:, :0], run.reference[:, :0]
    assert "errors" not in show.run_figures(run)


def test_outputs_are_drawn_with_their_references_in_the_frame_of_their_body(run):
    run = copy.deepcopy(run)
    *others, hand = run.servo.outputs
    start, frame = sum(output.dim for output in others), run.robot.bodies[0].name
    for output, text in (
        (hand, "Position of hand"),
        (replace(hand, relative_to=frame), f"Position of hand in the frame of {frame}"),
    ):
        run.servo.outputs = (*others, output)
        axes = panel(run, "outputs", "Position of hand")
        assert title(axes) == text
        lines = [this for this in axes.get_lines() if np.isfinite(this.get_ydata()).all()]
        for column, letter in enumerate("xyz"):
            actual, reference = lines[2 * column : 2 * column + 2]
            assert actual.get_label() == letter
            np.testing.assert_array_equal(actual.get_ydata(), run.pose[:, start + column])
            np.testing.assert_array_equal(reference.get_ydata(), run.reference[:, start + column])


@pytest.mark.parametrize("angle", [1.0, 9.0])
def test_the_attitude_is_in_degrees_about_inertial_axes(angle):
    run = flyer_run()
    turn, axis = angle * run.t / run.t[-1], np.array([2.0, -1.0, 2.0]) / 3.0
    run.q[:, 3:7] = Rotation.from_rotvec(np.outer(turn, axis)).as_quat()
    axes = panel(run, "outputs", "Attitude of the base")
    assert axes.get_ylabel() == "rotation [deg]"
    end = np.degrees(abs((angle + np.pi) % (2 * np.pi) - np.pi))
    size = line(axes, f"angle, {end:.3g}° at the end, {np.degrees(angle):.3g}° in sum")
    wrapped = np.abs((np.degrees(angle) * size.get_xdata() / 8 + 180.0) % 360.0 - 180.0)
    kept = np.isfinite(size.get_ydata())
    assert np.sum(~kept) == int((np.degrees(angle) + 180.0) // 360.0)
    np.testing.assert_allclose(size.get_ydata()[kept], wrapped[kept], atol=1e-5)
    first = [line(axes, f"about {name}").get_ydata()[9] for name in "xyz"]
    np.testing.assert_allclose(first, np.degrees(angle * size.get_xdata()[9] / 8) * axis, atol=1e-9)


@pytest.mark.parametrize(("group", "first"), [("R3xSO3", 3), ("SE3", 3), ("SO3", 0)])
@pytest.mark.parametrize("frame", [None, "bus"])
def test_the_attitude_of_a_hand_and_its_reference_are_turned_from_the_start(group, first, frame):
    run = flyer_run()
    (hand,) = run.servo.outputs
    run.servo.outputs = (replace(hand, group=group, relative_to=frame, point=(0.0, 0.0, 0.0)),)
    run.pose, run.reference = run.pose[:, 3 - first :], run.reference[:, 3 - first :]
    axis, start = np.array([2.0, -1.0, 2.0]) / 3.0, Rotation.from_euler("xyz", [0.4, 1.0, -2.0])
    share = run.t / run.t[-1]
    for poses, offset in ((run.pose, 0.0), (run.reference, 0.2)):
        turn = Rotation.from_rotvec(np.outer(offset + share, axis)) * start
        poses[:, first:] = turn.as_quat()
    axes = panel(run, "outputs", "Attitude of hand")
    where = f" in the frame of {frame}" if frame else ""
    assert title(axes).replace("\n", " ") == f"Attitude of hand{where}, from that at the start"
    assert axes.get_ylabel() == "rotation [deg]"
    assert entries(axes) == ["about x", "about y", "about z", "reference"]
    lines = [this for this in axes.get_lines() if np.isfinite(this.get_ydata()).all()]
    for column, part in enumerate(axis):
        actual, reference = lines[2 * column : 2 * column + 2]
        np.testing.assert_allclose(actual.get_ydata(), np.degrees(share * part), atol=1e-9)
        wanted = np.degrees((0.2 + share) * part)
        np.testing.assert_allclose(reference.get_ydata(), wanted, atol=1e-9)
    titles = [
        title(one).partition(" of hand")[0] for one in show.run_figures(run)["outputs"]().axes
    ]
    assert titles[:-1] == (["Position"] if first else []) + ["Attitude"]


@pytest.mark.parametrize(("group", "size"), [("SE2", 3), ("SO2", 1)])
def test_the_heading_of_an_output_is_continuous_beside_its_reference(group, size):
    run = rover_run()
    run.servo.outputs = (cc.Output("nose", "chassis", group),)
    heading = 0.5 + 9.0 * run.t / run.t[-1]
    run.pose, run.reference = np.zeros((2, len(run.t), size))
    run.pose[:, -1], run.reference[:, -1] = heading, heading + 0.1
    run.pose[:, -1] = (run.pose[:, -1] + np.pi) % (2.0 * np.pi) - np.pi  # wrapped
    run.reference[:, -1] += 4.0 * np.pi
    axes = panel(run, "outputs", "Heading of nose")
    actual, reference, _ = axes.get_lines()
    np.testing.assert_allclose(actual.get_ydata(), np.degrees(heading - 0.5), atol=1e-9)
    np.testing.assert_allclose(reference.get_ydata(), np.degrees(heading - 0.4), atol=1e-9)


def test_the_direction_of_an_output_is_drawn_beside_its_reference():
    run = flyer_run()
    run.servo.outputs = (cc.Output("lamp", "link6", "S2", axis=(0.0, 0.0, 1.0)),)
    run.pose, run.reference = run.pose[:, :3], run.reference[:, :3]
    axes = panel(run, "outputs", "Direction of lamp")
    for column in range(3):
        own, wanted = axes.get_lines()[2 * column : 2 * column + 2]
        np.testing.assert_array_equal(own.get_ydata(), run.pose[:, column])
        np.testing.assert_array_equal(wanted.get_ydata(), run.reference[:, column])


@pytest.mark.parametrize(("angle", "least"), [(4e-4, 1e-3), (4e-3, 0.0)])
def test_attitudes_without_a_motion_are_not_magnified(angle, least):
    run = flyer_run()
    turn = np.outer(np.radians(angle) * run.t / run.t[-1], [0.0, 0.0, 1.0])
    run.pose[:, 3:] = run.reference[:, 3:] = Rotation.from_rotvec(turn).as_quat()
    low, high = panel(run, "outputs", "Attitude of hand").get_ylim()
    assert high - low == pytest.approx(max(1.1 * angle, least), rel=1e-3)


def test_the_heading_of_a_rover_is_continuous():
    run = rover_run()
    run.q[:, 2] = 0.5 + 9.0 * run.t / run.t[-1]
    heading = line(panel(run, "outputs", "Heading of the base"), "about z")
    np.testing.assert_allclose(
        heading.get_ydata(), np.degrees(9.0 * heading.get_xdata() / run.t[-1]), atol=1e-9
    )


def test_controls_are_grouped_by_kind_and_unit_and_their_peaks_marked(run):
    kinds = ["Wheels: torque", "Joints: torque"]
    kinds = kinds if run.robot.wheels else ["Joints: force", "Joints: torque"]
    figure = show.run_figures(run)["torques"]()
    assert [title(axes) for axes in figure.axes] == kinds
    marks = [m for a in figure.axes for m in a.get_lines() if m.get_marker() == "o"]
    for column, mark in enumerate(marks):
        name, values = run.servo.model.control_names[column], run.u[:, column]
        unit = run.control_units[column]
        # With its sign, as in the table.
        own = line(mark.axes, f"{name}: peak {mark.get_ydata()[0]:.3g} {unit} at")
        np.testing.assert_array_equal(own.get_ydata(), values)
        assert abs(mark.get_ydata()[0]) == np.abs(values).max()
        assert mark.get_color() == own.get_color()
        assert mark.axes.get_ylabel().endswith(f"[{run.control_units[column]}]")


def test_torques_of_motors_are_named_so(run):
    run = copy.copy(run)
    names = run.servo.model.control_names
    run.robot = SimpleNamespace(motors=[SimpleNamespace(name=name) for name in names])
    assert {one.title.partition(":")[0] for one in control_panels(run)} == {"Motors"}


def test_comparisons_add_no_torques_of_motors_to_those_of_joints():
    """Two runs, one with a motor and a wheel beside its joint, the other with a joint alone."""
    t, u = np.linspace(0.0, 1.0, 5), np.array([[3.0, 4.0, 12.0, 100.0]] * 5)
    columns = {("joints", "N m"): [0], ("wheels", "N m"): [1, 2], ("motors", "N m"): [3]}

    def one(controls: dict) -> SimpleNamespace:
        return SimpleNamespace(u=u, t=t, errors={}, margin=np.ones(5), controls=controls)

    runs = [one(columns), one({("joints", "N m"): [0]})]
    figure = comparison_figure(SimpleNamespace(names=["all", "joint"], runs=runs))
    drawn = {
        title(axes).partition(":")[0]: [line.get_ydata()[0] for line in axes.get_lines()]
        for axes in figure.axes[:3]
    }
    assert drawn == {"Joints": [3.0, 3.0], "Wheels": [np.hypot(4.0, 12.0)], "Motors": [100.0]}


def compared(*errors):
    """The panel of errors of runs with these errors."""
    t = np.linspace(0.0, 1.0, len(errors[0]))

    def one(error):
        parts = {("hand", "m"): np.outer(error, [0.6, 0.8])}
        return SimpleNamespace(errors=parts, controls={}, t=t, margin=np.ones(len(t)))

    names = [str(k) for k in range(len(errors))]
    figure = comparison_figure(SimpleNamespace(names=names, runs=[one(e) for e in errors]))
    figure.canvas.draw()
    return figure.axes[0]


def test_errors_of_runs_that_start_on_the_reference_can_be_told_apart():
    """Errors of 2.83 and 3.13 mm: at least a twentieth of the height between them."""
    rise = 1.0 - np.exp(-8.0 * np.linspace(0.0, 1.0, 500))
    axes = compared(1e-13 + 2.83e-3 * rise, 1e-13 + 3.13e-3 * rise)
    ends = [axes.transAxes.inverted().transform(
        axes.transData.transform([1.0, this.get_ydata()[-1]]))[1] for this in axes.get_lines()[:2]
    ]  # fmt: skip
    assert ends[1] - ends[0] > 0.05, ends
    assert axes.get_ylim()[0] == 0.0


@pytest.mark.parametrize(("start", "scale"), [(0.99e-6, "linear"), (1.01e-6, "log")])
def test_errors_that_fall_from_a_start_have_a_logarithmic_axis(start, scale):
    fall = np.exp(-5.0 * np.linspace(0.0, 1.0, 500))
    assert compared(start * fall, 0.5 * start * fall).get_yscale() == scale


def test_single_samples_at_rounding_do_not_stretch_the_axis_of_a_comparison():
    fall = 0.1 * np.exp(-5.0 * np.linspace(0.0, 1.0, 500))
    touched = fall.copy()
    touched[250] = 1e-13
    low, high = compared(fall, touched).get_ylim()
    assert 1e-5 < low < fall.min() < fall.max() < high
    assert compared(1e-13 * fall, 1e-13 * fall).texts[0].get_text().startswith("zero within")


@pytest.mark.parametrize(("ideal", "drawn"), [(0.9e-4, False), (1.1e-4, True)])
def test_a_start_at_rounding_does_not_stretch_the_axis_of_errors(ideal, drawn):
    run = rover_run(duration=2.0)
    run.error[:], run.ideal[:] = 0.0, 0.0
    for _, _, part in run.error_places:
        run.error[:, part[0]], run.error[0, part[0]] = 1e-3, 1e-13
        run.ideal[:, part[0]] = ideal  # the axis ends a decade below the errors
    axes = panel(run, "errors", "Norm")
    assert 1e-5 < axes.get_ylim()[0] < 1e-4 < 1e-3 < axes.get_ylim()[1]
    assert ("exact error dynamics" in entries(axes)) == drawn


@pytest.mark.parametrize(
    ("differences", "linearizes", "told"),
    [((), True, True), (("friction",), True, False), ((), False, False)],
)
def test_a_report_promises_straight_lines_only_where_they_follow(
    tmp_path, differences, linearizes, told
):
    run = rover_run(duration=2.0)
    run.plant_differences, run.servo.linearizes = differences, linearizes
    run.servo.model.system = run.robot
    page = write_report(run, [], [], {"errors": Figure((1, 1))}, tmp_path).read_text()
    assert ("fall along straight lines" in page) == told
    assert ("the errors stay small" in page) != told


def task(**bounds):
    made = [SimpleNamespace(bounds=((k, *v),), after=0.0) for k, v in bounds.items()]
    return SimpleNamespace(requirements=made, states_requirements=True)


@pytest.mark.parametrize(
    ("law", "own", "robot", "drawn", "owner"),
    [
        (8.0, None, 150.0, 8.0, "law"),
        (None, 8.0, 150.0, 8.0, "task"),
        (None, 150.0, 8.0, 8.0, "robot"),
        (30.0, 8.0, 25.0, 8.0, "task"),
        (8.0, 8.0, 25.0, 8.0, "law and task"),
    ],
)
def test_the_tightest_limit_is_drawn_and_named(law, own, robot, drawn, owner):
    run = flyer_run()
    if law is not None:
        run.servo.torque_limits = np.array([[-law, law]] * 6)
    run.joint_limits.torques = np.full(6, robot)
    names = run.servo.model.control_names
    given = None if own is None else task(**{f"torque:{name}": (-own, own) for name in names})
    axes = panel(run, "torques", "Joints: force", given)
    low, high = (this for this in axes.get_lines() if len(this.get_xdata()) == 2)
    assert sorted([low.get_ydata()[0], high.get_ydata()[0]]) == [-drawn, drawn]
    assert entries(axes)[0].endswith(f", limit ±{drawn:g} ({owner})")
    assert axes.get_ylim()[0] < -drawn < drawn < axes.get_ylim()[1]


def test_equal_limits_are_one_entry_distant_ones_are_only_named_and_broken_ones_are_told():
    run = flyer_run()
    free = panel(run, "torques", "Joints: torque").get_ylim()
    for most, seen, text in ((1e3, False, "limit ±1e+03"), (3.5, True, "limit ±3.5")):
        run.servo.torque_limits = np.array([[-most, most]] * 6)
        axes = panel(run, "torques", "Joints: torque")
        assert (axes.get_ylim() == free) != seen
        assert entries(axes)[-1].startswith(text)
    run.servo.torque_limits = np.array([[-9.0, 9.0], *([-k, np.inf] for k in (5, 4, 3, 2, 1))])
    axes = panel(run, "torques", "Joints: torque")
    for number, lower in enumerate((5, 4, 3, 2, 1), start=2):
        (limit,) = (this for this in axes.get_lines() if list(this.get_ydata()) == [-lower, -lower])
        own = line(axes, f"link{number}")
        assert limit.get_color() == own.get_color()
        beyond = bool(run.u[:, number - 1].min() < -lower)
        assert own.get_label().endswith(f"limit ≥ -{lower} (law)" + ": exceeded" * beyond)


@pytest.mark.parametrize(("excess", "exceeded"), [(0.0, False), (1e-10, False), (1e-8, True)])
def test_a_limit_counts_as_exceeded_beyond_rounding_over_all_stages(excess, exceeded):
    curve = Curve([0.0, 1.0], limits=(-2.0, 3.0), extremes=(0.0, 3.0 * (1.0 + excess)))
    assert curve.exceeded is exceeded
    curve = Curve([0.0, 1.0], limits=(-2.0, 3.0), extremes=(-2.0 * (1.0 + excess), 1.0))
    assert curve.exceeded is exceeded


@pytest.mark.parametrize(
    ("low", "high", "seen"), [(-1.1, 2.1, (True, True)), (-1.2, 2.2, (False, False))]
)
def test_limits_within_the_height_of_the_curves_are_in_view(low, high, seen):
    curve = Curve([0.0, 1.0], "x", limits=(low, high))
    (axes,) = chart("title", [0.0, 1.0], [Panel("panel", "[m]", [curve])]).axes
    bottom, top = axes.get_ylim()
    assert (bottom < low, top > high) == seen
    assert entries(axes) == [f"x, limit {low} to {high}"]


def test_long_titles_and_entries_are_inside_the_picture():
    names = [f"shoulder_{k}_joint: peak 20 at 0.123 s" for k in range(3)]
    curves = [
        Curve([0.0, 1.0], name, limits=(-20.0 - k, 20.0 + k), owner="law and robot")
        for k, name in enumerate(names)
    ]
    panels = [Panel("Scale of the commanded acceleration (1: limits inactive)", "[1]", curves)]
    column = chart("Distance of a_robot_with_a_long_name from singularity", [0.0, 1.0], panels)
    words = "Rank correlation of quantities with robustness (grey: may be noise)"
    with tiles(2, words) as grid:
        for axes in grid:
            axes.set_title("Largest share of a torque limit")
    assert all("(law and robot)" in text.replace("\n", " ") for text in entries(column.axes[0]))
    for figure in (column, grid[0].figure):
        figure.canvas.draw()
        legends = [axes.get_legend() for axes in figure.axes]
        for part in (figure._suptitle, *(axes.title for axes in figure.axes), *legends):
            box = None if part is None else part.get_window_extent()
            assert box is None or -1 <= box.x0 <= box.x1 <= figure.bbox.x1 + 1, part
    boxes = [axes.title.get_window_extent() for axes in grid]
    assert not boxes[0].overlaps(boxes[1])


@pytest.mark.parametrize(("count", "rows", "columns"), [(1, 1, 1), (2, 1, 2), (4, 2, 3), (9, 3, 3)])
def test_small_panels_stand_in_rows_of_three(count, rows, columns):
    with tiles(count, "title") as grid:
        pass
    assert len(grid) == count
    places = {axes.get_subplotspec().get_gridspec().get_geometry() for axes in grid}
    assert places == {(rows, columns)}


def test_the_scale_of_the_demand_is_drawn_where_limits_act():
    run = flyer_run()
    run.servo.torque_limits = np.array([[-50.0, 50.0]] * 6)
    assert len(show.run_figures(run)["torques"]().axes) == 2
    run.scale = np.where(run.t < 2.0, 0.5 + 0.25 * run.t, 1.0)
    scale = line(panel(run, "torques", "Scale"), "least 0.5, below 1 for 25 % of the time")
    np.testing.assert_array_equal(scale.get_ydata(), run.scale)


def test_joints_have_the_narrower_limits_of_robot_and_task(run):
    run = copy.deepcopy(run)
    joint, place = run.robot.bodies[-1].name, run.q.shape[1] - 1
    top = float(run.q[:, place].max())
    run.joint_limits.positions[place] = (-9.0, top + 0.02)
    for bound, owner in ((np.inf, "robot"), (top + 0.01, "task"), (top - 0.01, "task")):
        given = task(**{f"position:{joint}": (-np.inf, bound)})
        axes = show.run_figures(run, given)["joints"]().axes
        (angles,) = (one for one in axes if title(one) == "Joints: angle")
        label = line(angles, joint).get_label()
        assert f"limit -9 to {min(bound, top + 0.02):.3g} (" in label
        assert label.endswith(": exceeded") == (bound < top)
        assert owner in label
    titles = [title(axes) for axes in show.run_figures(run)["joints"]().axes]
    assert ("Wheels: angular velocity" in titles) == bool(run.robot.wheels)
    assert "Wheels: angle" not in titles


def test_the_margin_starts_at_zero_and_shows_its_limit(run):
    run = copy.deepcopy(run)
    run.tolerances = TOLERANCES
    (axes,) = show.run_figures(run)["health"]().axes
    margin = line(axes, f"least {run.margin.min():.3g} at")
    np.testing.assert_array_equal(margin.get_ydata(), run.margin)
    assert axes.get_ylim()[0] == 0.0
    assert "limit ≥ 0.1 (task)" in margin.get_label()
    run.servo.damping_threshold = 0.3
    run.acceleration_residual[:, :2] = 0.3, 0.4
    margin, *missed = show.run_figures(run)["health"]().axes
    assert "≥ 0.3 (damped below)" in entries(margin)[0]
    np.testing.assert_allclose(missed[0].get_lines()[0].get_ydata(), 0.5)


def test_only_residuals_above_rounding_are_drawn(run):
    zero = "Relative drift of the momentum" if run.floats else "Residual of the rolling constraints"
    drawn = [title(axes) for axes in show.run_figures(run)["numerics"]().axes]
    assert "Deviation from the exact error dynamics" in drawn
    assert zero not in drawn
    run = copy.deepcopy(run)
    values = run.momentum_drift if run.floats else run.constraint_residual
    values[5] = 1e-3
    np.testing.assert_array_equal(panel(run, "numerics", zero).get_lines()[0].get_ydata(), values)
    values[5], run.deviation[:], run.work[:] = 0.0, 0.0, run.energy - run.energy[0]
    assert "numerics" not in show.run_figures(run)
    run.work[3] += 1e-6
    assert title(show.run_figures(run)["numerics"]().axes[0]) == "Energy balance"
    run.plant_differences = ("friction",)
    told = title(show.run_figures(run)["numerics"]().axes[0]).replace("\n", " ")
    assert told == "Energy balance, with the heat of friction"


@pytest.mark.extended
def test_overview_shows_path_errors_and_controls(run):
    figure = show.plot_run(run)
    figure.canvas.draw()
    titles = {title(axes) for axes in figure.axes if axes.get_legend() and axes.name != "3d"}
    assert {"Norm of the error", "Lyapunov function"} <= titles
    (lyapunov,) = (a for a in figure.axes if a.get_legend() and title(a) == "Lyapunov function")
    np.testing.assert_array_equal(lyapunov.get_lines()[0].get_ydata(), run.lyapunov)


def test_steps_hold_up_to_the_next_time_and_nothing_is_drawn_without_a_value():
    steps = Curve([1.0, np.inf, 3.0], "steps", t=[0.0, 1.0, 2.0, 4.0])
    (axes,) = chart("title", [], [Panel("panel", "[m]", [steps], zero=True)]).axes
    (drawn,) = axes.get_lines()
    np.testing.assert_array_equal(drawn.get_ydata(), [1.0, np.nan, 3.0, 3.0])
    assert drawn.get_drawstyle() == "steps-post"


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
