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
