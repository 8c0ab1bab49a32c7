"""Rigs on which nothing is wrong: none is stopped, whatever its robot, motors, drives and rate are.

CONCUR_SEED in the environment draws others, and CONCUR_RIGS sets their number:

    CONCUR_SEED=7 CONCUR_RIGS=200 pytest -n auto -m "" tests/hil/test_honest_rigs.py
"""

import os

import numpy as np
import pytest

import hil.rig._load
from hil.reasons import Reason
from hil.rig import load_rig
from tests.hil.bench import Bench, law_of, plan_of, rig_of
from tests.hil.honest import ROBOTS, SEED, honest_rig, known_rig

NUMBER = int(os.environ.get("CONCUR_RIGS", "24"))

KNOWN = {
    "gears of 20, 100 and 50": ((20.0, 20.0, 100.0, 100.0, 100.0, 50.0), 16384, 0.32, 2.5e-4),
    "gears of 10": ((10.0,) * 6, 4096, 3.2, 2.5e-3),
}
"""Rigs of six axes that come to rest at reversals."""


@pytest.fixture(autouse=True)
def several_buses(monkeypatch):
    """One bus of a megabit carries few of these rates; emulated buses have no bit rate."""
    monkeypatch.setattr(hil.rig._load, "refuse_overload", lambda rig: None)


def trial(file, duration):
    """Run a rig; its outcome."""
    own = load_rig(file).loop
    rig = rig_of(file, policies={"stop_time": 0.1}, loop={"receive_window": own.receive_window})
    try:
        with Bench(rig=rig, file=file, duration=duration) as bench:
            outcome = bench.run()
            assert bench.run_rows.sum() > 0.9 * duration * own.rate or outcome.detail
            assert np.abs(bench["torque"][bench.run_rows]).any()
    finally:
        law_of.cache_clear()
        plan_of.cache_clear()
    return outcome


@pytest.mark.by_default(1)
@pytest.mark.parametrize("k", range(NUMBER))
def test_a_rig_without_a_fault_is_not_stopped(k, tmp_path):
    outcome = trial(*honest_rig(tmp_path / "rig", k))
    where = f"seed {SEED}, rig {k}, {ROBOTS[k % len(ROBOTS)]}"
    assert outcome.reason is Reason.END, f"{where}: {outcome.reason.name}, {outcome.detail}"


@pytest.mark.by_default(1)
@pytest.mark.parametrize("name", KNOWN)
def test_rigs_that_were_stopped_are_not_any_more(name, tmp_path):
    outcome = trial(known_rig(tmp_path / "rig", *KNOWN[name]), 8.0)
    assert outcome.reason is Reason.END, outcome.detail
