"""A run made of known states equals the run whose states they are."""

from __future__ import annotations

import numpy as np

import concur as cc
from concur.control import tracking_law
from concur.simulation import Integrator, Plant, recorded_run


def test_recorded_states_give_the_run_they_come_from() -> None:
    task = cc.load_task("examples/rover_arm.toml")
    options = {"stiffness": [4.0, 9.0], "damping": [4.0, 6.0], "integral": 0.5}
    law = tracking_law(cc.Servo(cc.reduce(task.robot), task.outputs, **options), "servo")
    held = Integrator(dt=5e-3, control_period=5e-3)
    run = cc.simulate(task.robot, law, task.reference, 0.1, task.q0, task.s0, dt=held)
    state = np.zeros((21, law.nz))  # by hand: the integral of the errors, held in each period
    state[1:] = 5e-3 * np.cumsum(run.error[:-1], axis=0)
    rows = {name: getattr(run, name) for name in ("t", "q", "v", "u", "work")} | {"z": state}
    given = law, Plant(task.robot), task.reference
    again = recorded_run(*given, 5e-3, rows, method="known", seconds=0.0)
    assert again.method == "known"
    assert again.control_period == 5e-3
    for name, values in run.arrays.items():
        if not name.endswith("_range"):
            np.testing.assert_allclose(again.arrays[name], values, 1e-9, 1e-12, name)
    np.testing.assert_array_equal(again.q_range, [run.q.min(axis=0), run.q.max(axis=0)])
