"""The record of a run from its states."""

from __future__ import annotations

import time
from typing import cast

import numpy as np

from concur.robot import Mechanism
from concur.simulation._imperfections import Imperfections
from concur.simulation._loop import Loop
from concur.simulation._record import Recorder
from concur.simulation._run import Run
from concur.simulation._slip import Slip
from concur.simulation._states import States


def finish(
    loop: Loop,
    recorder: Recorder,
    states: States,
    count: int,
    done: int,
    hold: float | None,
    started: float,
    imperfections: Imperfections | None = None,
) -> Run:
    """Make the record of the first states of a loop, of which `done` steps were tried."""
    setting = loop.setting
    servo, times = setting.servo, np.arange(count) * setting.dt
    seconds = time.perf_counter() - started
    q, v, demanded = states.q[:count], states.v[:count], loop.demanded(count)
    rows = recorder(q, v, demanded) | loop.law(states, count, done, recorder, demanded)
    ideal = servo.error_dynamics.solve(rows["error"][0], rows["velocity_error"][0], times)
    if servo.size and not servo.linearizes:
        ideal = np.full_like(ideal, np.nan)
    met = np.concatenate([q, v, rows["u"]], axis=1)
    # No step leads to the first state, and where the law failed its torque is not finite.
    low = np.nanmin(np.vstack([met, states.low[1:count]]), axis=0)
    high = np.nanmax(np.vstack([met, states.high[1:count]]), axis=0)
    ends = np.cumsum([q.shape[1], v.shape[1]])
    q_range, v_range, u_range = np.split(np.stack([low, high]), ends, axis=1)
    return Run(
        robot=cast(Mechanism, setting.robot),
        servo=servo,
        t=times,
        q=q,
        v=v,
        s=v[:, list(servo.model.shape)],
        work=states.work[:count, 0],
        margin=states.margin[:count],
        ideal=ideal,
        q_range=q_range,
        v_range=v_range,
        u_range=u_range,
        reference=demanded[0],
        method=setting.method,
        control_period=hold,
        seconds=seconds,
        friction=imperfections.friction if imperfections else setting.plant.friction,
        imperfections=imperfections,
        slip=(slip := recorder.plant.slip),
        wheel_load=None if slip is None else _loads(slip, states.work[:count, 1 + servo.nz :]),
        **rows,
    )


def _loads(slip: Slip, states: np.ndarray) -> np.ndarray:
    """Rows of the loads, also where they are constant."""
    return states if slip.loads is None else np.tile(slip.loads, (len(states), 1))
