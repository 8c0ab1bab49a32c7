"""Dependent columns of a record: values that a correct loop counts, and impossible ones."""

import dataclasses

import numpy as np
import pytest

from hil._bookkeeping import contradictions, expected
from hil.guard import Flag
from hil.quality import LATE
from hil.reasons import Reason, State
from hil.record import Record
from hil.record.rows import Layout

LAYOUT = Layout(("wheel", "arm"), nq=3, ns=2, pose_size=2, size=2)
PERIOD = 0.004
STATES = 3 * [State.ARMED] + 5 * [State.RUN] + 3 * [State.STOP]
FIRST, LAST, STOP = 3, 7, 8


@pytest.fixture
def record(tmp_path):
    """Rows of a run without faults, written by hand."""
    n = len(STATES)
    rows = np.zeros((n, LAYOUT.width))
    views = LAYOUT.views(rows)
    count = np.arange(n)
    views["cycle"][:, 0] = count + 1
    chain = np.add.accumulate(np.append(100.0, np.full(n - 1, PERIOD)))
    views["deadline"][:, 0] = views["time"][:, 0] = chain
    views["state"][:, 0] = STATES
    views["reason"][STOP:] = Reason.END
    views["elapsed"][:] = np.nan
    views["elapsed"][FIRST:STOP, 0] = PERIOD * np.arange(STOP - FIRST)
    views["reports"][:] = count[:, None] + 1.0
    views["enabled"][:] = 1.0
    return Record(tmp_path, LAYOUT, {"mode": "mock"}, rows, count, ())


def wrong(record):
    """Columns that contradict others, with the rows where they do."""
    assert all(v.shape == record[n].shape for n, v in expected(record, PERIOD).items())
    found = {}
    for name, k, *_ in contradictions(record, PERIOD):
        found.setdefault(name, []).append(k)
    return found


def without(record, *rows):
    """The record without some of its rows."""
    kept = np.setdiff1d(np.arange(len(record)), rows)
    return dataclasses.replace(record, rows=record.rows[kept], index=record.index[kept])


def test_a_run_without_faults_contradicts_nothing(record):
    assert wrong(record) == {}
    for k in range(len(record)):
        assert wrong(without(record, k)) == {}
    assert wrong(without(record, *range(len(record)))) == {}


@pytest.mark.parametrize("name", ["cycle", "elapsed", "state", "late", "lost", "stale", "clipped"])
def test_one_altered_number_is_found_in_every_row(record, name):
    for k in range(len(record)):
        before = record[name][k]
        for change in (1.0, -1.0, 0.5, np.nan, np.inf):
            record[name][k] = change if np.isnan(before) else before + change
            if not np.array_equal(record[name][k], before, equal_nan=True):
                assert wrong(record), (k, change)
        record[name][k] = before


def test_the_reference_of_a_run_begins_at_its_first_instant(record):
    record["elapsed"][FIRST:STOP] = PERIOD * np.arange(1, STOP - FIRST + 1)
    assert wrong(record) == {"elapsed": [FIRST]}
    assert wrong(without(record, FIRST - 1)) == {}  # the run may have begun there


@pytest.mark.parametrize("name", ["late", "lost", "stale", "clipped"])
def test_counters_begin_at_zero(record, name):
    record[name][:] += 1.0
    assert wrong(record) == {name: [0]}
    assert wrong(without(record, 0)) == {}  # the counts of the missing row are unknown


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_rows_of_nonsense_are_contradictions_and_no_warnings(record, value):
    record.rows[4:] = value
    assert {"cycle", "state", "reason", "late", "lost"} <= wrong(record).keys()


@pytest.mark.parametrize("name", ["invalid", "reports"])
@pytest.mark.parametrize("change", [-20.0, 20.0, 0.5, np.nan, np.inf])
def test_counts_of_an_axis_do_not_decrease(record, name, change):
    record[name][5, 1] += change
    assert wrong(record).keys() & {name, "lost"}


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_the_last_count_of_an_axis_is_finite(record, value):
    record["invalid"][-1, 1] = value
    assert wrong(record) == {"invalid": [len(record) - 1]}


def test_counts_of_an_axis_may_increase(record):
    record["invalid"][5:, 1] += 3.0
    record["reports"][5:, 1] += 3.0
    assert wrong(record) == {}


@pytest.mark.parametrize("reason", [r for r in Reason if r] + [np.nan, 99, -1])
def test_a_cycle_of_a_run_has_no_reason_to_stop(record, reason):
    record["reason"][5] = reason
    assert wrong(record) == {"reason": [5]}


def test_the_first_reason_of_a_stop_stays(record):
    record["reason"][STOP + 1] = Reason.LATE
    assert wrong(record) == {"reason": [STOP + 1, STOP + 2]}


@pytest.mark.parametrize("reason", [Reason.NONE, np.nan, 99])
def test_a_stop_has_a_reason(record, reason):
    record["reason"][STOP:] = reason
    assert wrong(record)["reason"][0] == STOP


@pytest.mark.parametrize(("name", "value"), [("enabled", 0.0), ("enabled", np.nan), ("fault", 7.0)])
def test_drives_without_power_or_with_a_fault_end_a_run(record, name, value):
    record[name][FIRST + 1, 1] = value
    assert wrong(record) == {name: [FIRST + 1]}
    record[name][FIRST + 1, 1] = float(name == "enabled")
    record[name][[FIRST - 1, FIRST, STOP], 1] = value  # a run begins while faults are reset
    assert wrong(record) == {}


@pytest.mark.parametrize("mode", ["listen", "shadow"])
def test_drives_that_others_command_may_be_off(record, mode):
    record["enabled"][:] = 0.0
    assert wrong(record)
    record.manifest["mode"] = mode
    assert wrong(record) == {}


@pytest.mark.parametrize(("lateness", "late"), [(0.99 * LATE, 0.0), (1.01 * LATE, 1.0)])
def test_late_cycles_are_those_that_began_late(record, lateness, late):
    record["time"][5] += lateness * PERIOD
    record["late"][5:] += late
    assert wrong(record) == {}
    assert wrong(without(record, 5)) == {}  # the counts of the missing row are unknown
    record["late"][5:] += 1.0 - 2.0 * late
    assert wrong(record) == {"late": [5]}


def test_deadlines_without_a_cycle_are_instants_of_the_reference(record):
    record["deadline"][5:] += 2.0 * PERIOD
    record["time"][5:] += 2.0 * PERIOD
    assert wrong(record) == {"elapsed": [5]}
    record["elapsed"][5:STOP] = PERIOD * np.arange(4, 7)
    assert wrong(record) == {}


def test_lost_reports_are_those_that_did_not_come(record):
    record["reports"][5:] -= 1.0  # of both axes
    record["lost"][5:] += 2.0
    assert wrong(record) == {}
    for step in (1.0, 3.0):
        other = dataclasses.replace(record, rows=record.rows.copy())
        other["lost"][5:] += step - 2.0
        assert wrong(other) == {"lost": [5]}
    record["lost"][5:] -= 2.0  # a cycle that asked for no report
    assert wrong(record) == {}


@pytest.mark.parametrize("k", [FIRST, STOP + 1])
def test_reports_are_lost_in_a_run_only(record, k):
    record["reports"][k:, 0] -= 1.0
    assert wrong(record) == {}
    record["lost"][k:] += 1.0
    assert wrong(record) == {"lost": [k]}


def test_stale_reports_end_a_run(record):
    record["stale"][LAST:] += 1.0
    assert wrong(record) == {"stale": [LAST]}
    record["stale"][LAST] -= 1.0
    assert wrong(record) == {}  # the run may have ended by another reason too
    record["stale"][STOP:] = 0.5
    assert wrong(record) == {"stale": [STOP]}
    record["stale"][STOP:] = 3.0
    assert wrong(record) == {"stale": [STOP]}  # of two axes
    record["stale"][STOP:] = 2.0
    record["reason"][STOP:] = Reason.STUCK
    assert wrong(record) == {}
    record["stale"][STOP:] = 0.0
    assert wrong(record) == {"stale": [STOP]}


@pytest.mark.parametrize("flag", [f for f in Flag if f])
def test_clipped_cycles_are_those_with_flags_of_bounds(record, flag):
    record["flags"][5] = flag
    bounded = flag not in (Flag.HELD, Flag.DAMPED)
    record["clipped"][5:] += bounded
    assert wrong(record) == {}
    record["clipped"][5:] += 1.0 - 2.0 * bounded
    assert wrong(record) == {"clipped": [5]}


def test_a_cycle_that_stops_may_have_been_clipped(record):
    record["flags"][STOP:] = Flag.CLIPPED_RATE
    assert wrong(record) == {}
    record["clipped"][STOP:] = 1.0
    assert wrong(record) == {}
    record["clipped"][STOP + 1 :] = 2.0
    assert wrong(record) == {"clipped": [STOP + 1]}
    record["flags"][STOP], record["clipped"][STOP:] = 0.0, 1.0
    assert wrong(record) == {"clipped": [STOP]}
