"""Many worlds through time in one call of C: `Rollout`."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Sequence
from functools import partial
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen._cache import loaded
from concur.codegen._compiler import compiler_for
from concur.codegen._evaluator import UNSOUND, dense
from concur.codegen._rollout_c import (
    OPENMP,
    call,
    expanded,
    opened,
    rollout_sources,
    threaded,
)
from concur.codegen._rollout_data import Batch, Demand, Job, Rolled, Sizes, refused
from concur.codegen._series import CHUNK, Series, series_function
from concur.errors import ShapeError, shown

_SLOW = "many worlds are interpreted one by one"


class Rollout:
    """Worlds of a sampled closed loop through time: one call computes all ticks of all worlds.

    The loop over time is in C. An instruction computes four or eight worlds, and threads share
    groups of them. Results of a world depend neither on the other worlds, nor on their order, nor
    on the number of threads: they are equal bit by bit for one compiler and processor.

    Parameters
    ----------
    tick : casadi.Function
        (x, p, r, n) to (x_next, u, y): state (nx,), numbers of the world (np,), row of the
        reference (nr,) and standard normal numbers (noises,) to the state after the tick, the
        command (nu,) and signals (ny,). The first signal is a status: a value other than 0 stops
        the world before its command is applied. With a quadratic program or a table of times inside
        it runs world by world.
    step : casadi.Function
        (x, p, u) to (x_next, y): one step of integration under the command that has arrived, with
        signals (ny_step,) that are counted behind those of the tick.
    steps_per_tick : int
        Steps of a tick.
    noises : int
        Number of standard normal numbers that a tick takes.
    threads : int
        Number of threads that share the worlds, if the compiler has OpenMP.
    interpreted : bool
        Whether to use no compiler: ready at once, and slower.

    Attributes
    ----------
    compiled : bool
        Whether it is machine code; else a `Series` runs the same loop, with equal results up to
        rounding.
    width : int
        Number of worlds per instruction, by the processor's registers; 1 when interpreted.
    threads : int
        Number of threads.
    key : str
        Hash of all that the bits of results depend on: C sources, flags, compiler, processor,
        width, C library and CasADi. Unequal keys stand for results that may differ by rounding.

    Raises
    ------
    ShapeError
        If a function has other inputs or outputs, or a number is invalid.
    ConcurError
        If the step contains a solver.

    Examples
    --------
    >>> import casadi as ca, numpy as np
    >>> from concur.codegen import Batch, Demand, Rollout
    >>> x, p, r, n, u = (ca.SX.sym(name, size) for name, size in zip("xprnu", (1, 1, 1, 0, 1)))
    >>> tick = ca.Function("tick", [x, p, r, n], [x, r - p * x, ca.vertcat(0, r - x)])
    >>> step = ca.Function("step", [x, p, u], [x + 0.1 * u, x])
    >>> loop = Rollout(tick, step, steps_per_tick=1)
    >>> batch = Batch(np.zeros((2, 1)), np.array([[1.0], [2.0]]), worlds=[0, 1])
    >>> last = Demand(signal=1, kind="last", first=0, last=49)
    >>> found = loop(batch, np.ones((50, 1)), ticks=50, demands=[last])
    >>> found.values.round(3)
    array([[0.006],
           [0.5  ]])
    """

    def __init__(
        self,
        tick: ca.Function,
        step: ca.Function,
        steps_per_tick: int,
        noises: int = 0,
        threads: int = 1,
        interpreted: bool = False,
    ) -> None:
        for name, number in (("steps_per_tick", steps_per_tick), ("threads", threads)):
            if not isinstance(number, int) or isinstance(number, bool) or number < 1:
                raise refused(f"`{name}`", "a positive integer", shown(number), ShapeError)
        self._made_of = (tick, step, steps_per_tick, noises)
        self._interpreted = bool(interpreted)
        self.sizes = _sizes(tick, step, noises)
        self.steps_per_tick, self.threads, self.width = steps_per_tick, threads, 1
        graph = expanded(dense(step, without=UNSOUND))
        if graph is None:
            raise refused(
                "`step`",
                "a function that can be expanded to SX; a solver belongs into the tick",
                "a function with a solver, foreign code or a table",
            )
        tick, step = dense(tick, without=UNSOUND), graph
        tick = expanded(tick) or tick
        self._graphs = tick, step
        self._library = self._load(tick, step)
        self.compiled = self._library is not None

    def _load(self, tick: ca.Function, step: ca.Function) -> Any:
        compiler = None if self._interpreted else compiler_for(_SLOW)
        if compiler is not None:
            # With one thread too: one library and one key, whatever the number of threads.
            compiler = threaded(compiler, needed=self.threads > 1)
            code = rollout_sources(tick, step, self.sizes, compiler.is_zig)
            found = loaded(code, compiler, opened, _SLOW)
            if found is not None:
                self.threads = self.threads if OPENMP in compiler.command else 1
                self.width = int(found[0].concur_width())
                self.key = _digest(compiler.key(code), str(self.width))
                return found[0]
        self.threads = 1
        self.key = _digest("interpreted", tick.serialize(), step.serialize())
        return None

    def __call__(
        self,
        batch: Batch,
        reference: Any,
        *,
        ticks: int,
        demands: Sequence[Demand] = (),
        record: int | None = None,
    ) -> Rolled:
        """Compute all worlds.

        Parameters
        ----------
        batch : Batch
            The worlds: states at the start, numbers, keys of random numbers, delays.
        reference : array_like
            Rows of the reference for all worlds, shape (ticks, nr), or for each of them, shape
            (B, ticks, nr).
        ticks : int
            Number of ticks.
        demands : sequence of Demand
            Numbers to be computed from the signals. A world stops with status -1 at the tick at
            which its command or a signal of a demand is not finite, or its state is not below 1e6;
            the demands then keep the values that they have.
        record : int, optional
            Ticks between rows of a record of states, commands and signals; default: none.

        Returns
        -------
        Rolled
            Value of each demand, tick and status at which each world stopped, and the record.

        Raises
        ------
        ShapeError
            If the lengths do not fit each other.
        ConcurError
            If a delay is too long, or a demand invalid.
        """
        job = Job(self.sizes, batch, reference, ticks, demands, record)
        if self.compiled and job.numbers.ndim == 3:
            expected = f"one row for each world, shape {job.numbers.shape[::2]}"
            raise refused("`p`", expected, f"shape {job.numbers.shape}", ShapeError)
        if self.compiled:
            call(self._library, job, self.threads, self.steps_per_tick, self.sizes.nu)
        else:
            steps = self.steps_per_tick
            made = partial(series_function, *self._graphs, steps, job.ring_length)
            Series(made, min(job.ticks, max(1, CHUNK // steps))).run(job)
        return job.rolled

    def __reduce__(self) -> Any:
        return type(self), (*self._made_of, self.threads, self._interpreted)


def _sizes(tick: ca.Function, step: ca.Function, noises: int) -> Sizes:
    """Lengths of all parts, after a check that the functions fit each other."""
    for function, n_in, n_out in ((tick, 4, 3), (step, 3, 2)):
        sizes = [function.size_in(i) for i in range(function.n_in())]
        sizes += [function.size_out(i) for i in range(function.n_out())]
        if (function.n_in(), function.n_out()) != (n_in, n_out) or any(
            columns != 1 for _, columns in sizes
        ):
            needed = f"{n_in} inputs and {n_out} outputs, all columns"
            raise refused(f"function `{function.name()}`", needed, str(function), ShapeError)
    outputs = (tick.numel_out(1), tick.numel_out(2), step.numel_out(1))
    found = Sizes._make([*(tick.numel_in(i) for i in range(4)), *outputs])
    parts = {
        "`x_next` of the tick": (tick.numel_out(0), found.nx),
        "`x` of the step": (step.numel_in(0), found.nx),
        "`x_next` of the step": (step.numel_out(0), found.nx),
        "`p` of the step": (step.numel_in(1), found.np),
        "`u` of the step": (step.numel_in(2), found.nu),
        "`n` of the tick": (found.noises, noises),
        "status, the first signal of the tick,": (min(found.ny, 1), 1),
    }
    for name, (came, expected) in parts.items():
        if came != expected:
            raise refused(name, f"length {expected}", str(came), ShapeError)
    return found


def _digest(*parts: str) -> str:
    text = "\0".join((*parts, *platform.libc_ver(), ca.__version__, np.__version__))
    return hashlib.sha256(text.encode()).hexdigest()
