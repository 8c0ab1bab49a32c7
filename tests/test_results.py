"""Results: one protocol of runs, comparisons, audits, certificates, proofs and campaigns."""

from __future__ import annotations

import functools
import json
import math
from dataclasses import replace

import numpy as np
import pytest

import concur as cc
from concur.campaign import CampaignResult
from concur.errors import ConcurError, DescriptionError
from concur.proofs import prove_task
from concur.results import COMMON, Row, StoredResult
from concur.simulation import RunRecord, Tolerances


@pytest.fixture(scope="module")
def task():
    return cc.load_task("examples/rover_arm.toml")


@pytest.fixture(scope="module")
def results(task):
    """A result of each kind, made when it is first asked for."""

    @functools.cache
    def made(kind):
        if kind == "run":
            return replace(task, duration=0.02).simulate()
        if kind == "record":
            return RunRecord.of(made("run"))
        if kind == "compare":
            return cc.compare([made("run"), made("run")], ["a", "b"])
        if kind == "audit":
            return task.servo.model.audit(task.outputs)
        if kind == "certificate":
            return cc.certify(task.servo, method="thesis")
        if kind == "proof":
            return prove_task(replace(task, duration=0.004), edge=0.05)
        assert kind == "campaign"
        return CampaignResult(
            quantities=[("mass of arm", "kg")], columns=[("error of hand", "m")],
            numbers=range(3), worlds=[[-0.1], [0.0], [0.1]], values=[[0.2], [0.1], [-0.3]],
            stopped=[5.0] * 3, duration=5.0, method="independent", seed=0, key="",
        )  # fmt: skip

    return made


KINDS = ("run", "record", "compare", "audit", "certificate", "proof", "campaign")


SLOW = pytest.mark.extended


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=SLOW) if k == "proof" else k for k in KINDS]
)
def test_saved_result_opens_with_the_same_rows(kind, results, tmp_path):
    found = results(kind)
    assert found.rows
    assert all(isinstance(row, Row) and row.quantity and row.shown for row in found.rows)
    path = tmp_path / ("result.h5" if kind in ("run", "campaign") else "result.json")
    found.save(path)
    opened = cc.load_result(path)
    if kind in ("certificate", "proof"):  # a file proves nothing by itself
        assert opened.status is cc.Status.UNVERIFIED
        assert "UNVERIFIED" in str(found.status) or found.status is cc.Status.PROVED
    else:
        assert opened.status == found.status
        kept = [(r.quantity, r.limit, r.unit, r.place, r.holds, r.at_least) for r in found.rows]
        assert kept == [
            (r.quantity, r.limit, r.unit, r.place, r.holds, r.at_least) for r in opened.rows
        ]
        values = [[r.value for r in rows] for rows in (found.rows, opened.rows)]
        for ours, theirs in zip(*values, strict=True):
            finite = not isinstance(ours, float) or np.isfinite(ours)
            assert theirs == (ours if finite else None)
    opened.save(tmp_path / "again")
    assert opened.figures is not None


@pytest.mark.extended
def test_figures_are_drawn_by_name(results):
    assert {"path", "errors", "torques"} <= set(results("run").figures)
    for kind, name in (("run", "torques"), ("compare", "comparison"), ("proof", "tube")):
        assert results(kind).figures[name]().axes
    assert set(results("campaign").figures) == {"robustness"}
    assert results("audit").figures == {}


def test_verdicts_follow_from_the_rows(results):
    campaign = results("campaign")
    (row,) = campaign.rows
    assert (row.value, row.limit, row.place, row.holds) == (-0.3, 0.0, "world 2", False)
    assert campaign.status == "failed"
    assert replace(campaign, values=[[0.2], [0.1], [0.3]]).status == "passed"
    assert replace(campaign, invalid={1: "lifts off"}).status == "failed"
    assert (
        results("record").status == "failed"
    )  # 0.02 s of the task: the error is that of its start
    record = RunRecord.of(replace(results("run"), tolerances=None))
    assert record.status == "passed"
    assert replace(record, stopped="singular").status == "failed"
    strong = replace(record, u_range=1e3 * np.ones_like(record.u_range))
    limited = any(row.limit is not None for row in record.rows)
    assert limited is (strong.status == "failed")
    assert results("audit").status == "passed"


@pytest.mark.parametrize(("limit", "status"), [(0.99, "failed"), (1.01, "passed")])
def test_a_stored_run_has_the_verdict_of_its_tolerances(results, tmp_path, limit, status):
    run = results("run")
    final = max(row.value for row in run.rows if row.quantity.endswith(", final"))
    loose = Tolerances(0.0, limit * final, *[math.inf] * 2, -math.inf, math.inf)
    need = Row.judged("requirement", 0.5, 0.0, at_least=True)
    judged = replace(run, tolerances=loose, required=(need,))
    judged.save(tmp_path / "run.h5")
    again = cc.Run.load(tmp_path / "run.h5", run.servo)
    for one in (judged, again, cc.load_result(tmp_path / "run.h5"), RunRecord.of(judged)):
        assert one.status == status
        assert one.rows == judged.rows
        assert one.rows[0] == need


def test_rows_show_number_unit_and_side_of_the_limit():
    row = Row("margin", 0.25, 0.1, "", "1.2 s", True, at_least=True)
    assert (row.shown, row.shown_limit) == ("0.25", ">= 0.1")
    assert Row("status", "holds").shown == "holds"
    assert Row("time", None, unit="s").shown == "- s"


@pytest.mark.parametrize(
    "change",
    [
        lambda data: [],
        lambda data: data | {"rows": [{"quantity": 1, "value": 2}]},
        lambda data: data | {"rows": [{"ghost": 1}]},
        lambda data: data | {"rows": 3},
        lambda data: data | {"status": None},
        lambda data: {name: data[name] for name in data if name != "command"},
    ],
)
def test_other_files_are_refused_with_their_name(change, tmp_path):
    path = StoredResult("compare", "a", "passed", (Row("x", 1.0),)).save(tmp_path / "x.json")
    data = json.loads(path.read_text())
    assert tuple(data) == COMMON
    assert cc.load_result(path).rows == (Row("x", 1.0),)
    path.write_text(json.dumps(change(data)))
    with pytest.raises(ConcurError, match=r"x\.json"):
        cc.load_result(path)


def test_changed_certificate_and_missing_files_are_refused(results, tmp_path):
    results("certificate").save(tmp_path / "c.json")
    text = (tmp_path / "c.json").read_text()
    (tmp_path / "c.json").write_text(text.replace('"method": "thesis"', '"method": "tight"'))
    (tmp_path / "no.h5").write_bytes(b"\x89HDF")
    for name in ("c.json", "no.h5", "none.h5", "none.json", ""):
        with pytest.raises(ConcurError):
            cc.load_result(tmp_path / name)


@pytest.mark.parametrize(
    ("status", "holds", "opened"),
    [
        ("PROVED", True, "UNVERIFIED"),
        ("PROVED", False, "UNVERIFIED"),
        ("failed", False, "failed"),
        ("passed", True, "passed"),
        ("passed", None, "passed"),
    ],
)
def test_answers_without_evidence_are_not_proved(tmp_path, status, holds, opened):
    path = cc.results.StoredResult(
        "prove", "a", status, (cc.results.Row("b", holds=holds, value=1.0),)
    ).save(tmp_path / "found.json")
    assert cc.load_result(path).status == opened


def test_a_result_that_passed_has_no_limit_that_is_missed(tmp_path):
    row = cc.results.Row("b", 2.0, 1.0, "m", holds=False)
    path = cc.results.StoredResult("track", "a", "passed", (row,)).save(tmp_path / "found.json")
    with pytest.raises(DescriptionError, match="`b`, which is not kept"):
        cc.load_result(path)
