"""Rollouts as C: two graphs and the loop over time in one library, and its call."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen._compiler import CompilationError, Compiler, warn_once
from concur.codegen._lanes_c import SIGNATURE, lane_files, lane_graph, lane_head
from concur.codegen._rollout_data import Job, Sizes
from concur.codegen._sources import Sources, sources

OPENMP = "-fopenmp"
"""Flag of threads."""

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


def rollout_sources(tick: ca.Function, step: ca.Function, sizes: Sizes, scalar: bool) -> Sources:
    """Write a tick and a step in C: over lanes, or a tick with a solver world by world."""
    facts = dict(zip(("NX", "NP", "NR", "NOISES", "NU", "NY", "NY_STEP"), sizes, strict=True))
    head, parts, texts, lengths, further = lane_head(scalar), [], [], [], list[str]()
    for function, name in ((tick, "graph_tick"), (step, "graph_step")):
        if not function.is_a("SXFunction"):
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
    return Sources(files, ("concur_rollout",), max(lengths))


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


def threaded(compiler: Compiler, needed: bool = True) -> Compiler:
    """The compiler with the flag of threads if it has them, else itself, with a warning."""
    if _has_openmp(compiler):
        return replace(compiler, command=(*compiler.command, OPENMP))
    if needed:
        warn_once(
            f"`{' '.join(compiler.command)}` has no OpenMP: one thread computes all "
            "worlds. Set CONCUR_CC to a gcc, or distribute the worlds over processes."
        )
    return compiler


@functools.lru_cache(maxsize=16)
def _has_openmp(compiler: Compiler) -> bool:
    """Whether a compiler can compile and link code with threads of OpenMP."""
    text = "#include <omp.h>\nint most(void) { return omp_get_max_threads(); }\n"
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "openmp.c").write_text(text, encoding="ascii")
        with contextlib.suppress(CompilationError):
            command = [OPENMP, "-shared", "-fPIC", "openmp.c", "-o", "openmp"]
            compiler.run(command, Path(scratch))
            return True
    return False


def opened(path: Path) -> Any:
    """A library whose OpenMP threads sleep while they wait, unless the environment sets a policy.

    GNU's library reads the setting once, when it is loaded. By default its threads spin instead: if
    other processes need the processors, a call then takes tens of milliseconds.
    """
    name, policy = "OMP_WAIT_POLICY", os.environ.get("OMP_WAIT_POLICY")
    os.environ.setdefault(name, "PASSIVE")
    try:
        return ctypes.CDLL(str(path))
    finally:
        if policy is None:
            os.environ.pop(name, None)


def has_solver(function: ca.Function) -> bool:
    """Whether a function contains more than graphs: then all calls share one work memory."""
    inner = function.find_functions() if function.is_a("MXFunction") else []
    graphs = ("SXFunction", "MXFunction", "Switch")
    return not all(any(f.is_a(kind) for kind in graphs) for f in [function, *inner])


def expanded(function: ca.Function) -> ca.Function | None:
    """A function as one graph over SX; None with a solver, foreign code or a table in it."""
    if function.is_a("SXFunction"):
        return function
    if has_solver(function):
        return None
    try:
        whole = function.expand()
    except RuntimeError:  # CasADi has no list of the instructions that SX lacks
        return None
    names_in, names_out = function.name_in(), function.name_out()
    symbols = [ca.SX.sym(name, *function.size_in(i)) for i, name in enumerate(names_in)]
    results = [ca.densify(result) for result in whole.call(symbols)]
    return ca.Function(function.name(), symbols, results, names_in, names_out, {"cse": True})


def work_memory(code: Sources) -> dict[str, int]:
    """Lengths of the work memory of the entry in C."""
    body = code.files[0].partition(f"int {code.names[0]}_work(")[2].partition("}")[0]
    found = dict(re.findall(r"\*(sz_\w+) = (\d+);", body))
    names = {"POINTERS_IN": "arg", "POINTERS_OUT": "res", "INTEGERS": "iw", "NUMBERS": "w"}
    return {name: int(found[f"sz_{own}"]) for name, own in names.items()}
