"""Many steps of the closed loop as one function, so that compiled code runs through them alone.

A function that takes the state on by a step is called again and again, what it returns laid side
by side. CasADi writes such calls out one by one; so there are two levels of them, each short.
"""

from __future__ import annotations

import math

import casadi as ca

from concur.control import TrackingLaw, tick_function
from concur.simulation._plant import Plant
from concur.simulation._step import step_graph

_STATE = 3  # q, v and work are handed from call to call
ROWS = ("q_next", "v_next", "work_next", "verdict", "u", "missed", "scale", "low", "high")
"""Results of many steps, a column for each step or for each period of a sampled law."""


def continuous_chunk(servo: TrackingLaw, plant: Plant, method: str, steps: int) -> ca.Function:
    """Steps of a loop whose law acts continuously.

    Inputs (q, v, work, h, pose, twist, acceleration...), from the pose on with columns for each
    half step, and before it uncertain numbers p of the plant; outputs as in `ROWS`, where the
    verdict is the smallest pivot in a step.
    """
    step = _with_rows(step_graph(servo, plant, method, held=False))
    return _rows(plant, _repeated(step, steps, shared=_shared(plant), stride=2))


def held_chunk(
    servo: TrackingLaw, plant: Plant, method: str, per_hold: int, periods: int
) -> ca.Function:
    """Periods of a loop whose torque is held.

    Inputs (q, v, work, h, pose, twist, acceleration...), from the pose on with a column for each
    period, and before it uncertain numbers p of the plant; outputs as in `ROWS`, where the verdict
    is a `TickStatus`.
    """
    tick = tick_function(servo)
    step, shared = _with_rows(step_graph(servo, plant, method, held=True)), _shared(plant)
    inner = _repeated(step, per_hold, shared=shared + 1)
    q, v, work, *same, _ = inner.mx_in()
    demand = [ca.MX.sym(name, size) for name, size in servo.sampled.items()]
    others = [ca.MX(ca.DM(servo.model.momentum))] if servo.takes_momentum else []
    if servo.nz:
        others += [per_hold * same[0], work[1 : 1 + servo.nz, :]]
    told = tick.call([q, servo.law_velocities(v), *demand, *others])
    u, _, missed, scale, status, *state = told
    moved = inner.call([q, v, ca.vertcat(work[0], *state, work[1 + servo.nz :, :]), *same, u])
    period = ca.Function(
        "period",
        [q, v, work, *same, *demand],
        [*moved[: 2 * _STATE], status, u, missed, scale, *moved[-2:]],
    )
    return _rows(plant, _repeated(period, periods, shared=shared, stride=1))


def _shared(plant: Plant) -> int:
    """Inputs that are the same in all steps: h, and uncertain numbers."""
    return 2 if plant.n_numbers else 1


def _with_rows(step: ca.Function) -> ca.Function:
    """A step that gives the state twice: to be handed on, and to be kept."""
    symbols = step.mx_in()
    results = step.call(symbols)
    return ca.Function("kept_step", symbols, [*results[:_STATE], *results])


def _rows(plant: Plant, chunk: ca.Function) -> ca.Function:
    """A chunk without the state that it hands on, its results dense."""
    symbols = chunk.mx_in()
    results = [ca.densify(part) for part in chunk.call(symbols)[_STATE:]]
    names = ["q", "v", "work", "h", *(["p"] if plant.n_numbers else [])]
    names += ["pose", "twist", "acceleration", "t"][: len(symbols) - len(names)]
    return ca.Function("chunk", symbols, results, names, list(ROWS))


def _repeated(function: ca.Function, count: int, shared: int, stride: int = 0) -> ca.Function:
    """Call a function `count` times, by calls of a function that does so some times."""
    inner = max(k for k in range(1, math.isqrt(count) + 1) if count % k == 0)
    block = _in_turn(function, count // inner, shared, stride)
    return _in_turn(block, inner, shared, stride * (count // inner)) if inner > 1 else block


def _in_turn(function: ca.Function, count: int, shared: int, stride: int) -> ca.Function:
    """Call a function `count` times.

    Its inputs are the state, what is the same in all calls, and tables of which each call sees
    columns that are `stride` further on; its outputs the state, and rows to be laid side by side.
    """
    symbols = function.mx_in()
    state, common, first = symbols[:_STATE], symbols[_STATE : _STATE + shared], _STATE + shared
    names = function.name_in()
    tables = [
        ca.MX.sym(names[i], rows, columns + stride * (count - 1))
        for i, (rows, columns) in enumerate(map(function.size_in, range(len(names))))
        if i >= first
    ]
    now, kept = state, list[list[ca.MX]]()
    for k in range(count):
        parts = [
            table[:, stride * k : stride * k + symbol.shape[1]]
            for table, symbol in zip(tables, symbols[first:], strict=True)
        ]
        results = function.call([*now, *common, *parts])
        now = results[:_STATE]
        kept.append(results[_STATE:])
    rows = [ca.horzcat(*parts) for parts in zip(*kept, strict=True)]
    outputs = [*now, *rows]
    return ca.Function(
        f"{function.name()}_{count}",
        [*state, *common, *tables],
        outputs,
        names,
        [f"o{i}" for i in range(len(outputs))],
    )
