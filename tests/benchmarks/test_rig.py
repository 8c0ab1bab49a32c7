"""The benchmark of the rig's cycle measures a run that was run to its end."""

from __future__ import annotations

import pytest

NAMES = ("rover, 5 axes, CiA 402", "rover, 5 axes, MIT", "free-flyer, 6 axes, CiA 402")


@pytest.mark.extended
@pytest.mark.parametrize("name", NAMES)
def test_the_measured_run_is_a_whole_one(name):
    # All other tests are collected without the packages of the rig.
    from hil.latch import Reason
    from tests.benchmarks._rig import RIGS, STAGES, run_rig

    assert set(RIGS) == set(NAMES)
    row = run_rig(RIGS[name], 0.5, emulated=False)
    quality = row.outcome.quality
    assert row.outcome.reason is Reason.END
    assert quality.cycles > 0.5 * row.rig.loop.rate
    assert set(row.stages) == set(STAGES)
    for stage in ("state", "tick", "record"):
        assert row.stages[stage].counts.sum() == quality.cycles
    assert 0.0 < row.stages["tick"].quantile(0.5) < quality.compute.quantile(0.5)


@pytest.mark.extended
@pytest.mark.usefixtures("compiler")
def test_a_rate_is_measured_in_a_run(tmp_path):
    from hil.latch import Reason
    from tests.benchmarks import _cycle

    found = _cycle.run_case("four arms", 250.0, 0.5)
    assert found.reason is Reason.OPERATOR
    assert (found.axes, found.links, found.rate) == (12, 4, 250.0)
    assert found.cycles + found.skipped > 0.5 * 250


@pytest.mark.extended
def test_every_case_has_a_row(monkeypatch):
    from hil.latch import Reason
    from hil.spine import BenchResult
    from tests.benchmarks import _cycle

    times = dict.fromkeys(("median", "rare", "longest", "late"), 1e-4)

    def run(name, rate):
        return BenchResult(name, rate, 5, 2, 10, 1, **times, scheduled=rate < 2e3, locked=True,
                           ran=True, reason=Reason.STALE)  # fmt: skip

    monkeypatch.setattr(_cycle, "run_case", run)
    text = _cycle.cycle_table()
    assert "not granted in all runs" in text
    rows = [line for line in text.splitlines() if "axes on" in line]
    assert len(rows) == len(_cycle.CASES)
    assert all(row.endswith("| 10 | 1 | STALE | 100 | 100 | 100 | 100 |") for row in rows)
    monkeypatch.setattr(_cycle, "CASES", _cycle.CASES[:1])
    assert "were granted" in _cycle.cycle_table()
