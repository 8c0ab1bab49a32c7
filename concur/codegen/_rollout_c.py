"""Rollouts as C: two graphs and the loop over time in one library, and its call."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen._batch import has_solver
from concur.codegen._lanes_c import SIGNATURE, lane_files, lane_graph, lane_head
from concur.codegen._map import work_memory
from concur.codegen._rollout_data import Job, Sizes
from concur.codegen._sources import Sources, sources

_DRIVER = Path(__file__).with_name("c") / "rollout.c"
_WHOLE = ("count", "threads", "ticks", "steps", "seed", "ring_length", "demand_count", "stride")
_POINTERS = ("start", "numbers", "reference", "delay", "jitter", "worlds", "demands", "watched")
_RESULTS = ("ring", "values", "stopped", "status", "states", "commands", "signals")


class _Job(ctypes.Structure):
    """`job_t` of the loop in C."""

    _fields_ = [
        *((name, ctypes.c_longlong) for name in (*_WHOLE, "rows", "reference_step")),
        *((name, ctypes.c_void_p) for name in (*_POINTERS, *_RESULTS)),
    ]


def rollout_sources(
    tick: ca.Function, step: ca.Function, sizes: Sizes, width: int | None, scalar: bool
) -> Sources:
    """Write a tick and a step in C: over lanes, or a tick with a solver world by world."""
    facts = dict(zip(("NX", "NP", "NR", "NOISES", "NU", "NY", "NY_STEP"), sizes, strict=True))
    head, parts, texts, lengths, further = lane_head(width, scalar), [], [], [], list[str]()
    solver = has_solver(tick)
    for function, name in ((tick, "graph_tick"), (step, "graph_step")):
        if function is tick and solver:
            code = sources([tick])
            facts |= work_memory(code)
            texts.append(f"#define ENTRY {code.names[0]}")
            further += code.files
            lengths.append(code.assignments)
        else:
            whole, own, length = lane_graph(function, name)
            # Inlined into the loop, long graphs take compilers much longer.
            texts += [f"{SIGNATURE.format(name=name)} __attribute__((noinline));", whole]
            parts += own
            lengths.append(length)
    defined = [f"#define {name} {value}" for name, value in facts.items()]
    main = "\n".join([head, *defined, *texts, _DRIVER.read_text(encoding="utf-8")])
    files = (main, *lane_files(head, parts), *further)
    return Sources(files, ("concur_rollout",), max(lengths), solver)


def call(library: Any, job: Job, threads: int, steps: int, nu: int) -> None:
    """Compute all results of a job in C."""
    rolled, count = job.rolled, len(job.start)
    record, width = rolled.record, int(library.concur_width())
    groups = -(-count // width)
    values = np.ascontiguousarray(
        np.broadcast_to(job.initial[:, None], (groups, len(job.initial), width))
    )
    arrays = {name: getattr(job, name) for name in _POINTERS}
    arrays |= {"values": values, "stopped": rolled.stopped, "status": rolled.status}
    arrays["ring"] = np.zeros((threads, job.ring_length, nu + 1, width))
    if record is not None:
        arrays |= {"states": record.x, "commands": record.u, "signals": record.y}
    whole = {name: getattr(job, name) for name in ("ticks", "seed", "ring_length", "stride")}
    whole |= {"count": count, "threads": threads, "steps": steps}
    whole |= {"demand_count": len(job.initial)}
    whole["rows"] = 0 if record is None else record.x.shape[1]
    whole["reference_step"] = 0 if job.reference.ndim == 2 else job.reference[:1].size
    asked = _Job(**whole, **{name: array.ctypes.data for name, array in arrays.items()})
    library.concur_rollout(ctypes.byref(asked))
    by_world = values.swapaxes(1, 2).reshape(groups * width, len(job.initial))
    rolled.values[:] = by_world[:count]
