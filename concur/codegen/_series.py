"""Ticks and steps of a sampled loop one behind the other in one graph, a world after another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.codegen._evaluator import UNSOUND, Evaluator, dense
from concur.codegen._random import normal, uniform
from concur.codegen._rollout_data import DIVERGED, KINDS, LARGEST_STATE, Job

CHUNK = 200
"""Steps in one call."""


def series_function(
    tick: ca.Function, step: ca.Function | None, steps: int, ring: int, ticks: int
) -> ca.Function:
    """Several ticks, each with its steps, as one function.

    Parameters
    ----------
    tick, step : casadi.Function
        As of a `Rollout`, but a step may contain a solver; without a step a tick moves the state.
    steps : int
        Steps of a tick.
    ring : int
        Number of commands of which a period gets the mean; 0: it gets its own.
    ticks : int
        Number of ticks.

    Returns
    -------
    casadi.Function
        From (x, p, r, n), with a ring also (share, sent), to (x_next, after, inner, u, y), with a
        step also of_steps, with a ring also sent_next: `after` is the state after a tick, `inner`
        after each of its steps. All but x and sent have a column for each tick, inner and of_steps
        for each step.
    """
    tick = dense(tick, without=UNSOUND)
    given = {name: ca.MX.sym(name, tick.numel_in(i)) for i, name in enumerate("xprn")}
    after, u, y = tick(*given.values())
    inner, kept, command, of_steps = after, {}, u, {}
    if ring:
        given["share"] = ca.MX.sym("share", ring)
        given["sent"] = ca.MX.sym("sent", u.numel(), ring - 1)
        known = ca.horzcat(u, given["sent"])
        command, kept["sent_next"] = known @ given["share"], known[:, :-1]
    if step is not None:
        many = dense(step, without=UNSOUND).mapaccum("steps", steps, [0], [0], {})
        columns = (ca.repmat(part, 1, steps) for part in (given["p"], command))
        inner, of_steps["of_steps"] = many(inner, *columns)
    found = {"x_next": inner[:, -1], "after": after, "inner": inner, "u": u, "y": y}
    found |= of_steps | kept
    period = ca.Function("period", [*given.values()], [*found.values()], [*given], [*found])
    carried = ["x", *(["sent"] if ring else [])]
    return period.mapaccum("series", ticks, carried, [f"{name}_next" for name in carried], {})


@dataclass(eq=False)
class Trace:
    """One world in time; NaN where nothing was computed.

    Parameters
    ----------
    x : numpy.ndarray
        State at the start and after each step, or after each tick without steps, shape (n + 1, nx).
    u, y : numpy.ndarray
        Command and signals of each tick, shapes (ticks, nu) and (ticks, ny).
    of_steps : numpy.ndarray
        Signals of each step, shape (n, ny_step).
    done, ticked : int
        Number of valid steps, and of valid ticks.
    stopped, status : int
        As of `Rolled`.
    """

    x: np.ndarray
    u: np.ndarray
    y: np.ndarray
    of_steps: np.ndarray
    done: int = 0
    ticked: int = 0
    stopped: int = 0
    status: int = 0


class Series:
    """A sampled loop through time, interpreted or as CasADi's machine code.

    Parameters
    ----------
    make : callable
        Makes the `series_function` of a number of ticks.
    width : int
        Number of ticks in one call.
    function : casadi.Function, optional
        Machine code of ``make(width)``.
    """

    def __init__(
        self, make: Callable[[int], ca.Function], width: int, function: ca.Function | None = None
    ) -> None:
        self._make = make
        self._many = _Ticks(make(width) if function is None else function)

    def trace(
        self, job: Job, world: int = 0, watch: Callable[[Trace, int], bool] | None = None
    ) -> Trace:
        """Let one world of a job move.

        Parameters
        ----------
        job : Job
            The worlds.
        world : int
            Its row.
        watch : callable, optional
            Is told the trace, and the number of valid steps, after some ticks and before they count
            as done; returns whether to stop there.

        Returns
        -------
        Trace
            What it did. An interrupt gets what was done before as the attribute `trace`.
        """
        ticks, called, sent = job.ticks, self._many, None
        per, (nx, nu, ny, ny_step) = called.per, called.sizes
        sizes = (ticks * per + 1, nx), (ticks, nu), (ticks, ny), (ticks * per, ny_step)
        x, u, y, of_steps = (np.full(size, np.nan) for size in sizes)
        trace = Trace(x, u, y, of_steps)
        trace.x[0] = job.start[world]
        if astray(trace.x[:1])[0]:
            trace.status = DIVERGED
            return trace
        columns = _columns(job, world)
        try:
            while trace.stopped < ticks:
                first = trace.stopped
                found = called(trace.x[trace.done], sent, columns, first)
                if found is None and called.width > 1:
                    # A solver failed: find out in which tick.
                    called = _Ticks(self._make(1))
                    continue
                sound = _keep(trace, job, first, found, called)
                good = sound.size if sound.all() else int(np.argmin(sound))
                whole, inside = divmod(good, sound.shape[1])
                valid = trace.done + whole * per + max(inside - 1, 0)
                stops = watch is not None and watch(trace, valid)
                trace.done, trace.stopped = valid, first + whole
                trace.ticked = trace.stopped + (inside > 0)
                if good < sound.size:
                    code = trace.y[trace.stopped, 0] if inside == 0 else np.nan
                    known = 1.0 <= abs(code) < LARGEST_STATE
                    trace.status = int(code) if known else DIVERGED
                    trace.x[valid + 1 :], trace.of_steps[valid + (inside > 0) :] = np.nan, np.nan
                if stops or trace.status:
                    break
                sent = None if found is None else found.get("sent_next")
        except KeyboardInterrupt as stop:
            stop.trace = trace  # type: ignore[attr-defined]
            raise
        return trace

    def run(self, job: Job) -> None:
        """Compute all results of a job, one world after the other.

        Parameters
        ----------
        job : Job
            The worlds, with arrays for the results.
        """
        rolled, record, stride = job.rolled, job.rolled.record, job.stride
        for world in range(len(job.start)):
            trace = self.trace(job, world)
            rolled.stopped[world], rolled.status[world] = trace.stopped, trace.status
            _reduce(job, world, trace)
            if record is not None:
                rows = np.arange(0, min(trace.stopped + 1, job.ticks), stride)
                per, kept = len(trace.of_steps) // job.ticks, slice(0, len(rows))
                record.x[world, kept], record.u[world, kept] = trace.x[rows * per], trace.u[rows]
                record.y[world, kept] = np.hstack([trace.y[rows], trace.of_steps[rows * per]])


class _Ticks:
    """A `series_function` on its buffers."""

    def __init__(self, function: ca.Function) -> None:
        shapes = [function.size_out(i) for i in range(function.n_out())]
        self._evaluator = Evaluator(function, shapes, "loop", can_fail=True)
        self._given = dict(zip(function.name_in(), self._evaluator.inputs, strict=True))
        found = dict(zip(function.name_out(), self._evaluator.outputs, strict=True))
        self._found, self.width = found, found["u"].shape[1]
        self.per = found["inner"].shape[1] // self.width
        self.acts = "of_steps" in found
        found.setdefault("of_steps", np.zeros((0, self.per * self.width)))
        self.sizes = [len(found[name]) for name in ("inner", "u", "y", "of_steps")]

    def __call__(
        self, x: np.ndarray, sent: np.ndarray | None, columns: dict[str, np.ndarray], first: int
    ) -> dict[str, np.ndarray] | None:
        """Results of the ticks from the first one on; behind the last one the columns repeat."""
        given = self._given
        given["x"][:, 0] = x
        if "sent" in given:
            given["sent"][:] = 0.0 if sent is None else sent[:, -given["sent"].shape[1] :]
        for name, table in columns.items():
            count = min(self.width, table.shape[1] - first)
            given[name][:, :count] = table[:, first : first + count]
            given[name][:, count:] = table[:, -1:]
        self._evaluator.trigger()
        return self._found if self._evaluator.succeeded else None


def _columns(job: Job, world: int) -> dict[str, np.ndarray]:
    """Numbers, reference, noise and shares of commands of a world, a column for each tick."""
    ticks, own = np.arange(job.ticks), np.full(job.ticks, job.worlds[world])
    columns = {
        "p": np.broadcast_to(job.numbers[world], (job.ticks, job.numbers.shape[-1])).T,
        "r": (job.reference if job.reference.ndim == 2 else job.reference[world]).T,
        "n": normal(job.seed, own, ticks, job.noises).T,
    }
    if not job.ring_length:
        return columns
    late = job.delay[world] + job.jitter[world] * uniform(job.seed, own, ticks, 0)[0]
    for k in range(1, job.ticks):
        late[k] = max(late[k], late[k - 1] - 1.0)
    share, end = np.zeros((job.ring_length, job.ticks)), np.ones(job.ticks)
    for back in range(job.ring_length):
        # The first command is in force before it arrives.
        due = np.maximum(ticks - back, 0)
        start = np.clip(late[due] - back, 0.0, 1.0)
        np.add.at(share, (ticks - due, ticks), end - start)
        end = start
    return columns | {"share": share}


def _keep(
    trace: Trace, job: Job, first: int, found: dict[str, np.ndarray] | None, called: _Ticks
) -> np.ndarray:
    """Write ticks into a trace; whether each tick, and each of its steps, is valid."""
    per, ny = called.per, called.sizes[2]
    count = min(called.width, job.ticks - first)
    ticks, steps = slice(first, first + count), slice(first * per, (first + count) * per)
    after = np.full((count, 1), np.nan)
    if found is not None:
        after = found["after"].T[:count]
        trace.u[ticks], trace.y[ticks] = found["u"].T[:count], found["y"].T[:count]
        trace.x[1:][steps] = found["inner"].T[: count * per]
        trace.of_steps[steps] = found["of_steps"].T[: count * per]
    watched = job.watched[:ny], job.watched[ny:]
    ticked = (trace.y[ticks, 0] == 0.0) & ~astray(after) & ~astray(trace.u[ticks], np.inf)
    ticked &= ~astray(trace.y[ticks][:, watched[0]], np.inf)
    moved = ~astray(trace.x[1:][steps]) & ~astray(trace.of_steps[steps][:, watched[1]], np.inf)
    return np.hstack([ticked[:, None], moved.reshape(count, per)][: 1 + called.acts])


def astray(values: np.ndarray, bound: float = LARGEST_STATE) -> np.ndarray:
    """Rows with an entry that is not below a bound; NaN fails every comparison."""
    if np.abs(values).max(initial=0.0) < bound:
        return np.zeros(len(values), dtype=bool)
    return np.asarray(~(np.abs(values) < bound).all(axis=1))


def _reduce(job: Job, world: int, trace: Trace) -> None:
    """Values of the demands of a world: of its valid ticks, and of their valid steps."""
    per, ny = len(trace.of_steps) // job.ticks, trace.y.shape[1]
    for i, (signal, kind, start, end, threshold) in enumerate(job.demands.tolist()):
        if signal < ny:
            now, tick = trace.y[: trace.ticked, signal], np.arange(0.0, trace.ticked)
        else:
            now, tick = trace.of_steps[: trace.done, signal - ny], np.arange(0.0, trace.done) // per
        inside = (tick >= start) & (tick <= end)
        now, tick, old = now[inside], tick[inside], job.initial[i]
        above, below = tick[now > threshold], tick[now < threshold]
        found = {
            "max": now.max(initial=old),
            "min": now.min(initial=old),
            "last": np.append(old, now)[-1],
            "last_above": np.append(old, above)[-1],
            "first_above": above.min(initial=old),
            "first_below": below.min(initial=old),
            "count_above": above.size,
        }
        job.rolled.values[world, i] = found[KINDS[kind]]
