"""Numbers of a rig as C: sizes of vectors, bounds of axes, policies, names of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING

import casadi as ca
import numpy as np

from hil._c_numbers import array, number
from hil._concur import Evaluator, TickStatus, tick_function
from hil._limits import SPEED_MARGIN, Limits
from hil._punctuality import SEQUENCE, punctuality_numbers
from hil.bus import BUS_OFF, RESTARTED
from hil.clock import ASLEEP
from hil.guard import CLIPPED, Flag
from hil.latch import BLIND, NO_HOLDING, REST, REST_CYCLES, WORSE, Action, Latch, Phase
from hil.quality import BINS, LATE, PROMPT
from hil.reasons import Reason, State
from hil.settings import Policy
from hil.state.estimator import observer_numbers
from hil.state.in_c import residual_sizes, residual_tables

if TYPE_CHECKING:
    from hil._concur import TrackingLaw
    from hil.settings import Rig
    from hil.state.estimator import Estimator

LAW = {
    "q": "m->q",
    "s": "m->s",
    "pose": "in->pose",
    "twist": "in->twist",
    "acceleration": "in->acceleration",
    "t": "&in->t",
    "momentum": "rig_momentum",
    "period": "&m->period",
    "before": "m->before",
}
"""Memory of each input of the law's graph."""

RESULTS = {"u": "m->demand", "active": "m->active", "status": "&m->status", "after": "m->kept"}
"""Memory of the results of the law's graph that are used."""

GRAPHS = "RIG_LAW_GRAPH", "RIG_ERRORS", "RIG_ESTIMATOR", "RIG_ACCELERATION"
"""Names of the graphs in C, in the order of `graphs`."""


def graphs(rig: Rig, law: TrackingLaw, estimator: Estimator) -> tuple[ca.Function, ...]:
    """Graphs of law, errors, state and acceleration, as they are compiled for Python."""
    function = tick_function(law, watched=True, shown=True)
    shapes = [function.size_out(i) for i in range(function.n_out())]
    tick = Evaluator(function, shapes, f"cycle of `{rig.name}`", kept=True)
    return tick.function, law.buffered("errors").function, *estimator.functions


def sizes(rig: Rig, law: TrackingLaw, functions: Sequence[ca.Function]) -> str:
    """The file `sizes.h`."""
    tick, _, step, acceleration = functions
    found, limits = rig.transmission, Limits.from_rig(rig)
    entries = {
        "AXES": len(rig.axes),
        "JOINTS": len(found.joints),
        "TERMS": len(found.terms[0]),
        "RANGES": len(limits.joints),
        "NQ": law.nq,
        "NV": int(step.numel_out("v")),
        "NE": law.size,
        "RATES": int(acceleration.numel_in("s")),
    }
    lengths = {
        "Q": law.nq,
        "S": law.nw,
        "V": int(step.numel_out("v")),
        "OUTPUT": law.size,
        "POSE": law.pose_size,
        "TWIST": law.twist_size,
        "KEPT": int(tick.numel_out("after")),
        "LIMITS": len(law.limit_names),
        "ARGUMENTS": max(int(f.sz_arg()) for f in functions),
        "RESULTS": max(int(f.sz_res()) for f in functions),
        "INTEGERS": max(int(f.sz_iw()) for f in functions),
        "NUMBERS": max(int(f.sz_w()) for f in functions),
    }
    entries |= {name: max(1, size) for name, size in lengths.items()} | residual_sizes(rig)
    enums: tuple[tuple[str, type[IntEnum], str], ...] = (
        ("Reasons of a stop.", Reason, ""),
        ("States.", State, ""),
        ("Phases of a stop.", Phase, "PHASE_"),
        ("Commands to the drives.", Action, ""),
    )
    lines = ["/* Sizes and codes of a rig. Arrays have at least one entry. */", ""]
    lines += ["#ifndef RIG_SIZES_H", "#define RIG_SIZES_H", ""]
    lines += [f"#define RIG_{name} {value}" for name, value in entries.items()]
    for title, enum, prefix in enums:
        lines += ["", f"/* {title} */", "enum {"]
        lines += [
            f"  RIG_{prefix}{member.name} = {int(member)}, /* {member.sentence} */"  # type: ignore[attr-defined]
            for member in enum
        ]
        lines += ["};"]
    lines += ["", "/* Changes of torques by the guard. */", "enum {"]
    lines += [f"  RIG_{flag.name} = {int(flag)}," for flag in Flag if int(flag)]
    return "\n".join([*lines, "};", "", "#endif", ""])


def tables(
    rig: Rig, law: TrackingLaw, functions: Sequence[ca.Function], names: Sequence[str]
) -> str:
    """The file `tables.h`; `names`: of the graphs in C."""
    found, limits, latch = rig.transmission, Limits.from_rig(rig), Latch.from_rig(rig)
    policies, (known, slack) = rig.policies, observer_numbers(rig)
    tick = functions[0]
    heats = bool(np.isfinite(limits.continuous).any())
    numbers = {
        "PERIOD": rig.loop.period,
        **known,
        "LARGEST_AGE": limits.largest_age,
        "HALF_MARGIN": 0.5 * SPEED_MARGIN,
        "HEATS": int(heats),
        "LATE_SHARE": LATE,
        "PROMPT_SHARE": PROMPT,
        "PATIENCE": policies.max_consecutive_faults,
        "LARGEST_ERROR": policies.largest_error,
        "START_ERROR": policies.start_error,
        "SHORTEST_WATCHDOG": min(axis.watchdog for axis in rig.axes),
        "PRELUDE": max(1, policies.startup_cycles),
        "STOP_TIME": policies.stop_time,
        "STOP_CATEGORY": policies.stop_category,
        "HOLDS_AT_END": int(policies.end == "hold"),
        "BRAKING_CYCLES": latch.braking_cycles,
        "REST": REST,
        "REST_CYCLES": REST_CYCLES,
        "WORSE": WORSE,
        "LAW_FAILED": int(TickStatus.FAILED),
        "CLIPPED": CLIPPED,
    }
    policy = {kind: f"RIG_POLICY_{kind.name}" for kind in Policy}
    lines = ["/* Numbers of a rig; included by rig.c alone. */", ""]
    lines += [f"#define RIG_{name} {number(value)}" for name, value in numbers.items()]
    lines += [f"#define {name} {k}" for k, name in enumerate(policy.values())]
    lines += [f"#define RIG_ON_LATE {policy[policies.on_late]}"]
    lines += [f"#define RIG_ON_MISSING {policy[policies.on_missing]}"]
    for title, reasons in (("BLIND", BLIND), ("NO_HOLDING", NO_HOLDING)):
        lines += [f"#define RIG_{title} 0x{sum(1 << int(r) for r in reasons):x}ULL"]
    lines += ["", "typedef int rig_graph(const double **, double **, long long *, double *, int);"]
    lines += [f"extern rig_graph {name};" for name in names]
    lines += [f"#define {c} {name}" for c, name in zip(GRAPHS, names, strict=True)]
    results = [RESULTS.get(name, "0") for name in tick.name_out()]
    lines += ["#define RIG_LAW_ARGUMENTS " + ", ".join(LAW[name] for name in tick.name_in())]
    lines += ["#define RIG_LAW_RESULTS " + ", ".join(results), ""]
    momentum = law.model.momentum if "momentum" in tick.name_in() else ()
    if len(momentum):
        lines += [array("static const double rig_momentum", momentum)]
    lines += [array("static const double rig_start", rig.task.q0)]
    lines += ["static const double rig_still[RIG_AXES];"]
    lines += [array("static const double rig_origin", (0, 0, 0, 0, 0, 0, 1))]
    places = [*found.q]
    lines += [array("static const int rig_places", places, whole=True)]
    index, factors = found.terms
    lines += [array("static const int rig_term_joint", index.ravel(), whole=True)]
    lines += [array("static const double rig_term_ratio", factors.ravel())]
    model = law.model
    shape = model.shape if law.use_measured_velocity else range(model.ns)
    lines += [array("static const int rig_shape", shape, whole=True), ""]
    lines += _axes(rig, limits, slack) + _joints(limits) + residual_tables(rig, law)
    return "\n".join(["#include <math.h>", "", *lines, ""])


def timing(rig: Rig) -> str:
    """The file `timing.h`: numbers of the loop, and what it shares with its supervisor."""
    numbers = {
        "CYCLE": rig.loop.period,
        "WINDOW": rig.loop.receive_window,
        "DELAY": rig.estimator.latency,
        "BINS": BINS,
        "POSTLUDE": rig.policies.shutdown_cycles,
        "LATE_CYCLE": LATE * rig.loop.period,
        "ASLEEP": ASLEEP,
        "BUS_IS_OFF": BUS_OFF,
        "BUS_RESTARTED": RESTARTED,
        **punctuality_numbers(rig.policies.max_consecutive_faults),
    }
    lines = [f"#define RIG_{name} {number(value)}" for name, value in numbers.items()]
    lines += [f"#define RIG_PAUSES {len(SEQUENCE)}"]
    lines += [array("static const int rig_pauses", SEQUENCE, whole=True)]
    return "\n".join(["#ifndef RIG_TIMING_H", "#define RIG_TIMING_H", *lines, "#endif", ""])


def _axes(rig: Rig, limits: Limits, slack: Sequence[float]) -> list[str]:
    n = limits.size
    columns = {
        "torque": [axis.torque for axis in limits.axes],
        "speed": [axis.speed for axis in limits.axes],
        "overspeed": [axis.overspeed for axis in limits.axes],
        "power": [axis.power for axis in limits.axes],
        "damping": [axis.damping for axis in limits.axes],
        "stiffness": [axis.stiffness for axis in limits.axes],
        "step": [max(a.rate * rig.loop.period - a.slack, 0.0) for a in limits.axes],
        "slack": slack,
        "continuous": np.broadcast_to(limits.continuous, n).tolist(),
        "thermal": np.broadcast_to(limits.thermal_time, n).tolist(),
    }
    rows = [", ".join(map(number, row)) for row in zip(*columns.values(), strict=True)]
    return [
        f"typedef struct {{ double {', '.join(columns)}; }} rig_axis;",
        "static const rig_axis rig_axes[RIG_AXES] = {",
        *(f"    {{{row}}}," for row in rows),
        "};",
    ]


def _joints(limits: Limits) -> list[str]:
    rows, motors = [], list[str]()
    for joint in limits.joints:
        bounds = joint.low, joint.high, joint.zone, joint.torque, joint.damping
        ends = len(motors), len(joint.motors)
        rows.append(", ".join(map(number, (*bounds, *ends))))
        motors += [", ".join(map(number, motor)) for motor in joint.motors]
    return [
        "typedef struct { double low, high, zone, torque, damping; int first, motors; } rig_joint;",
        f"static const rig_joint rig_joints[{max(1, len(rows))}] = {{",
        *(f"    {{{row}}}," for row in rows or ["0"]),
        "};",
        "typedef struct { int axis; double ratio, back; } rig_motor;",
        f"static const rig_motor rig_motors[{max(1, len(motors))}] = {{",
        *(f"    {{{row}}}," for row in motors or ["0"]),
        "};",
    ]
