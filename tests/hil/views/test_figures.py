"""Figures and report of a record, for any content of the record."""

import base64
import dataclasses
import html
import re
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib.colors import to_rgba

from concur.errors import ConcurError
from hil.guard import Flag
from hil.latch import Reason, State
from hil.record import Record
from hil.record._drain import write_json
from hil.record.manifest import make_manifest
from hil.views.figures import (
    FIGURES,
    STATE_COLORS,
    error_figure,
    guard_figure,
    reason_name,
    save_figures,
    timing_figure,
    torque_figure,
)
from hil.views.report import quality_rows, write_report
from tests.hil._records import layout_of_rig, make_rig, task_and_servo, write_rows

pytestmark = pytest.mark.usefixtures("coarse")

COUNT = 200


def make_record(folder, change=None, count=COUNT, end=True):
    """A record of a run that is armed, runs, and stops because the task is done."""
    rig = make_rig(folder)
    layout = layout_of_rig(rig)
    manifest = make_manifest(rig, layout, task_and_servo()[1], mode="mock")
    if end:
        manifest["end"] = {"reason": "END", "rows": count, "lost": 0, "unwritten": 0}
    write_json(folder / "manifest.json", manifest)
    rows = np.zeros((COUNT, layout.width))
    views = layout.views(rows)
    t = 0.004 * np.arange(COUNT)
    views["deadline"][:, 0] = 100.0 + t
    views["time"][:, 0] = 100.0 + t + 1e-5 * (1.0 + np.sin(np.arange(COUNT)))
    views["compute"][:, 0] = 2e-4 + 1e-4 * np.cos(np.arange(COUNT)) ** 2
    views["state"][:, 0] = np.select([t < 0.1, t < 0.7], [State.ARMED, State.RUN], State.STOP)
    views["reason"][:, 0] = np.where(t < 0.7, Reason.NONE, Reason.END)
    views["flags"][50:60, 0] = Flag.CLIPPED_RATE | Flag.CLIPPED_TORQUE
    views["clipped"][:, 0] = np.clip(np.arange(COUNT) - 49, 0, 10)
    views["error"][:] = np.exp(-5.0 * t)[:, None] * np.arange(1, 6)
    views["torque"][:] = np.sin(10.0 * t)[:, None] * np.arange(1, 6)
    views["demand"][:] = views["torque"]
    views["measured"][:] = views["torque"] + 0.01
    if change is not None:
        change(views)
    write_rows(folder, layout, (0, rows[:count]))
    return Record.load(folder)


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    return make_record(tmp_path_factory.mktemp("record"))


def titled(axes):
    """Title and entries of the legend of a panel."""
    legend = axes.get_legend()
    return legend.get_title().get_text(), [text.get_text() for text in legend.get_texts()]


def lines(axes, start):
    return next(line for line in axes.get_lines() if str(line.get_label()).startswith(start))


def test_errors_are_drawn_by_output_and_only_in_a_run(record):
    figure = error_figure(record)
    titles = [titled(axes)[0] for axes in figure.axes]
    names = ("base: position", "base: coordinates", "hand: position", "hand: coordinates")
    assert titles == list(names)
    run = record["state"] == State.RUN
    norm = figure.axes[2]
    drawn = norm.get_lines()[0].get_ydata()
    np.testing.assert_allclose(drawn[run], np.linalg.norm(record["error"][run, 2:], axis=1))
    assert np.isnan(drawn[~run]).all()
    assert norm.get_ylabel() == "|error| [m]"
    assert "last 0.2" in titled(norm)[1][0]


def test_torques_are_drawn_with_their_limits(record):
    panels = torque_figure(record).axes
    assert len(panels) == 5
    for i, axes in enumerate(panels):
        sent = lines(axes, f"sent, at most {i + 1} N m, limit ±20")
        np.testing.assert_array_equal(sent.get_ydata(), record["torque"][:, i])
        np.testing.assert_array_equal(lines(axes, "measured").get_ydata(), record["measured"][:, i])
        assert axes.get_ylabel() == "[N m]"


def test_limits_that_are_near_are_in_the_picture(tmp_path):
    def change(views):
        views["torque"][:] *= 3.9
        views["demand"][:] = 1e3

    figure = torque_figure(make_record(tmp_path, change))
    low, high = figure.axes[4].get_ylim()
    assert -30.0 < low < -20.0 < 20.0 < high < 30.0
    assert figure.axes[0].get_ylim()[1] < 20.0


def test_cycle_times_are_drawn_with_their_quantiles(record):
    figure = timing_figure(record)
    late, compute = figure.axes
    assert "period 4000 µs" in figure.get_suptitle()
    values = 1e6 * (record["time"] - record["deadline"])
    np.testing.assert_allclose(late.get_lines()[0].get_ydata(), values.clip(0.1))
    assert lines(late, "half a period: late").get_ydata()[0] == 2000.0
    assert lines(compute, "a period").get_ydata()[0] == 4000.0
    ends = np.quantile(values, [0.5, 0.999, 1.0])
    words = zip(("median", "99.9 %", "largest"), ends, strict=True)
    assert titled(late)[1][0] == ", ".join(f"{word} {value:.3g} µs" for word, value in words)


@pytest.mark.extended
def test_time_that_is_simulated_is_never_late(tmp_path):
    def change(views):
        views["time"][:] = views["deadline"]

    figure = timing_figure(make_record(tmp_path, change))
    assert titled(figure.axes[0])[1][0] == "zero throughout"


def test_the_guard_is_drawn_with_reason_flags_and_counters(record):
    figure = guard_figure(record)
    top, middle, bottom = figure.axes
    assert figure.get_suptitle().endswith("the task is done")
    assert titled(top)[1] == [state.name for state in (State.DISARMED, State.ARMED, State.RUN,
                                                       State.STOP)]  # fmt: skip
    spans = [patch.get_facecolor() for patch in top.patches]
    assert [spans.count(to_rgba(STATE_COLORS[s])) for s in (State.ARMED, State.RUN)] == [1, 1]
    ticks = [text.get_text() for text in middle.get_yticklabels()]
    assert "clipped rate: 10 cycles" in ticks
    assert "clipped torque: 10 cycles" in ticks
    assert "held: 0 cycles" in ticks
    assert lines(bottom, "clipped: 10").get_ydata()[-1] == 10.0


def test_quality_is_judged(record):
    rows = {label: (value, limit, kept) for label, value, limit, kept in quality_rows(record)}
    assert rows["ended because"] == ("the task is done", "the task is done", True)
    assert rows["cycles in the record"] == ("200", "all 200", True)
    assert rows["cycles in RUN"][0] == "150"
    assert rows["cycles with a limited torque"][0] == "10"
    assert rows["compute"][2] is True
    assert rows["largest torque of forearm"] == ("5 N m", "20 N m", True)
    assert rows["last error of base"][0].endswith(" m")


def test_what_went_wrong_is_missed(tmp_path):
    def change(views):
        views["reason"][-1] = Reason.LOST
        views["compute"][:] = 5e-3
        views["torque"][100, 2] = 21.0

    record = make_record(tmp_path, change, count=150)
    missed = {label for label, _, _, kept in quality_rows(record) if kept is False}
    # The last row has another reason than the manifest.
    named = {"ended because", "compute", "largest torque of turret"}
    assert missed == named | {"cycles in the record"}
    short = dataclasses.replace(
        record, manifest={**record.manifest, "end": {"rows": 160, "unwritten": 40}}
    )
    rows = {label: (value, limit, kept) for label, value, limit, kept in quality_rows(short)}
    assert rows["cycles in the record"] == ("150", "all 190", False)


@pytest.mark.extended
@pytest.mark.parametrize("count", [0, 1])
def test_short_records_are_drawn(tmp_path, count):
    record = make_record(tmp_path, count=count)
    assert write_report(record, tmp_path).exists()


@pytest.mark.extended
def test_non_finite_numbers_are_drawn(tmp_path):
    def change(views):
        for name, view in views.items():
            if name not in ("time", "deadline"):
                view[:] = np.nan
        views["demand"][:, 0] = np.inf

    record = make_record(tmp_path, change, end=False)
    assert reason_name(record) == "the run was not ended"
    assert write_report(record, tmp_path).exists()


@pytest.mark.extended
def test_files_and_page_hold_all_figures(record, tmp_path):
    files = save_figures(record, tmp_path)
    assert list(files) == list(FIGURES)
    page = write_report(record, tmp_path, files).read_text()
    images = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    assert [base64.b64decode(image) for image in images] == [
        path.read_bytes() for path in files.values()
    ]
    assert "http" not in page.replace("http-equiv", "")
    assert "Run passed" in page
    assert record.manifest["fingerprints"]["law"] in page
    assert ".banner.good" in page  # the style of the package's other report


def test_the_page_tells_notes_and_replay(tmp_path, monkeypatch):
    monkeypatch.setattr("hil.views.report.FIGURES", {"errors": error_figure})  # its words only
    record = make_record(tmp_path, end=False)
    found = SimpleNamespace(
        passed=False,
        first="law: torque <1>",
        forced=("rig",),
        rows=lambda: [("verdict", "not as recorded")],
    )
    page = write_report(record, tmp_path / "page", replayed=found).read_text()
    assert "Run failed" in page
    assert html.escape("law: torque <1>") in page
    assert "<td>verdict</td><td>not as recorded</td>" in page
    assert html.escape(record.notes[0]) in page


@pytest.mark.extended
def test_the_page_reports_a_replay_of_another_rig(record, tmp_path, monkeypatch):
    monkeypatch.setattr("hil.views.report.FIGURES", {"errors": error_figure})
    found = SimpleNamespace(passed=False, first=None, forced=("rig", "law"), rows=list)
    page = write_report(record, tmp_path / "page", replayed=found).read_text()
    assert "The replay differs from the record: another rig, another law." in page


def test_a_page_that_cannot_be_written_is_refused(record, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConcurError, match="file: expected a folder"):
        write_report(record, tmp_path / "file")
