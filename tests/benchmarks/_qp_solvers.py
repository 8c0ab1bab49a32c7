"""Our solver of quadratic programs beside DAQP, both called from C."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import casadi as ca
import numpy as np

from concur.codegen._compiler import FLAGS, find_compiler
from concur.codegen._qp import SOURCE
from tests.benchmarks._inner import MissingError, compiled
from tests.benchmarks._report import duration

SIZES = (10, 15), (24, 36), (40, 60)
"""Unknowns and rows."""

KINDS = {
    "about half of the rows active": "plain",
    "each row twice, to 1e-9": "twins",
    "no solution": "none",
    "rows beyond the unknowns soft, not to be kept": "soft",
    "no row active": "quiet",
}

PROGRAMS, ROUNDS = 40, 20


@dataclass(frozen=True)
class Program:
    """Minimise x h x / 2 + |t|^2 / 2 with low <= a x + sqrt(slack) t <= high.

    Parameters
    ----------
    h, a, low, high, slack : numpy.ndarray
        Numbers of the program, as `quadratic_program` takes them.
    """

    h: np.ndarray
    a: np.ndarray
    low: np.ndarray
    high: np.ndarray
    slack: np.ndarray

    @property
    def with_slacks(self) -> Program:
        """The same with t among the unknowns, as DAQP has it."""
        if not self.slack.any():
            return self
        m, n = self.a.shape
        h = np.eye(n + m)
        h[:n, :n] = self.h
        a = np.hstack([self.a, np.diag(np.sqrt(self.slack))])
        return Program(h, a, self.low, self.high, np.zeros(m))


def program(rng: np.random.Generator, n: int, m: int, kind: str) -> Program:
    """Draw a program around a point that keeps all rows, and change it by its kind."""
    root, a = rng.normal(size=(n, n)), rng.normal(size=(m, n))
    half = m // 2
    if kind == "twins":
        a[-half:] = a[:half] + 1e-9 * rng.normal(size=(half, n))
    middle, room = a @ rng.normal(size=n), rng.uniform(0, 0.5, (2, m)) * np.linalg.norm(a, axis=1)
    low, high, slack = middle - room[0], middle + room[1], np.zeros(m)
    if kind == "twins":
        low[-half:], high[-half:] = low[:half], high[:half]
    elif kind == "none":
        a[1] = a[0]
        low[1], high[1] = high[0] + 1.0, high[0] + 2.0
    elif kind == "soft":
        low[n:] += 3.0 * rng.normal(size=m - n)
        high, slack[n:] = np.maximum(low, high), 1e-6
    elif kind == "quiet":
        low, high = np.minimum(low, -1.0), np.maximum(high, 1.0)
    return Program(root @ root.T / n + 0.1 * np.eye(n), a, low, high, slack)


@cache
def solvers() -> ctypes.CDLL:
    """Compile both with the flags of our laws; DAQP is the library of CasADi's wheel.

    Raises
    ------
    MissingError
        If there is no compiler.
    """
    compiler, wheel = find_compiler(), Path(ca.__file__).parent
    if compiler is None:
        raise MissingError("no C compiler: install gcc or clang")
    found = compiled(
        [
            *(*compiler.command, "-O2", *FLAGS, "-shared", f"-DQP_ROWS={SIZES[-1][1]}"),
            *(f"-I{wheel / 'include'}", f"-I{SOURCE.parent}"),
        ],
        Path(__file__).with_suffix(".c"),
        SOURCE,
        linked=(str(wheel / "libdaqp.so"), f"-Wl,-rpath,{wheel}", "-lm"),
    )
    for name in ("time_ours", "time_daqp"):
        getattr(found, name).restype = ctypes.c_double
    return found


def solve(given: Program, ours: bool) -> tuple[float, np.ndarray | None]:
    """Shortest time of a call, s, and the solution; None without one."""
    posed = given if ours else given.with_slacks
    m, n = posed.a.shape
    order = "F" if ours else "C"
    h, a = (np.array(part, float, order=order) for part in (posed.h, posed.a))
    x, lam, solved = np.zeros(n), np.zeros(m), ctypes.c_int()
    length = n * n + 2 * n * m + m * m + n + 5 * m
    more = [posed.slack] if ours else [np.zeros(m, np.int32)]
    arrays = [h, a] if ours else [h, np.zeros(n), a]
    arrays += [posed.low, posed.high, *more, x, lam, *[np.zeros(length)] * ours]
    call = solvers().time_ours if ours else solvers().time_daqp
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
    seconds = call(ROUNDS, n, m, *pointers, ctypes.byref(solved))
    return seconds, x[: given.a.shape[1]] if solved.value else None


def qp_table() -> str:
    """Times of both, mean and largest over programs, as a Markdown table."""
    lines = [
        "| unknowns x rows | programs | ours, mean | ours, largest | DAQP, mean | DAQP, largest "
        "| solved by both, of all | largest difference |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for n, m in SIZES:
        for shown, kind in KINDS.items():
            rng = np.random.default_rng(n)
            drawn = [program(rng, n, m, kind) for _ in range(PROGRAMS)]
            own, other = ([solve(one, ours) for one in drawn] for ours in (True, False))
            pairs = [(a[1], b[1]) for a, b in zip(own, other, strict=True)]
            both = [(a, b) for a, b in pairs if a is not None and b is not None]
            apart = max((float(np.abs(a - b).max()) for a, b in both), default=np.nan)
            times = [[seconds for seconds, _ in found] for found in (own, other)]
            cells = [f"{n} x {m}", shown]
            cells += [duration(float(f(t))) for t in times for f in (np.mean, np.max)]
            cells += [f"{len(both)} of {PROGRAMS}", f"{apart:.0e}" if both else ""]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
