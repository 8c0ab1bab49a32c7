"""The loop of `c/rollout.c` in NumPy, where there is no compiler, with its random numbers."""

from __future__ import annotations

from threading import Lock

import casadi as ca
import numpy as np

from concur.codegen._evaluator import Evaluator
from concur.codegen._rollout_data import DIVERGED, KINDS, LARGEST_STATE, Job

_LOW, _ONE = np.uint64(0xFFFFFFFF), np.uint64(0x3FF0000000000000)


def philox(seed: int, worlds: np.ndarray, tick: int | np.ndarray, stream: int) -> np.ndarray:
    """Four random words of 32 bits in each world, shape (4, B), by Philox4x32-10.

    Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011. The counter
    is (world, tick, stream), the key is the seed.
    """
    word, half = np.uint64, np.uint64(32)
    keys = worlds.astype(np.uint64)
    a, b = keys & _LOW, keys >> half
    c, d = (np.full(len(keys), n, dtype=np.uint64) & _LOW for n in (tick, stream))
    k, m = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p, q = a * word(0xD2511F53), c * word(0xCD9E8D57)
        a, b, c, d = (q >> half) ^ b ^ word(k), q & _LOW, (p >> half) ^ d ^ word(m), p & _LOW
        k, m = (k + 0x9E3779B9) & 0xFFFFFFFF, (m + 0xBB67AE85) & 0xFFFFFFFF
    return np.array([a, b, c, d])


def uniform(seed: int, worlds: np.ndarray, tick: int | np.ndarray, stream: int) -> np.ndarray:
    """Two random numbers from 0 to 1, without 1, in each world: the same on any machine.

    Parameters
    ----------
    seed : int
        Seed, zero or more.
    worlds : numpy.ndarray of int
        Numbers of the worlds, shape (B,).
    tick : int or numpy.ndarray of int
        Tick, of all worlds or of each, shape (B,).
    stream : int
        0 for delays; more for noise.

    Returns
    -------
    numpy.ndarray
        Shape (2, B).
    """
    high, low = philox(seed, worlds, tick, stream).reshape(2, 2, -1).swapaxes(0, 1)
    bits = (high << np.uint64(20)) | (low >> np.uint64(12)) | _ONE
    return np.asarray(bits.view(np.float64) - 1.0)


def normal(seed: int, worlds: np.ndarray, tick: int, size: int) -> np.ndarray:
    """Standard normal numbers, shape (B, size), by the method of Box and Muller."""
    found = np.empty((len(worlds), 2 * (-(-size // 2))))
    for j in range(0, size, 2):
        one, two = uniform(seed, worlds, tick, j // 2 + 1)
        radius = np.sqrt(-2.0 * np.log(1.0 - one))
        found[:, j] = radius * np.cos(2.0 * np.pi * two)
        found[:, j + 1] = radius * np.sin(2.0 * np.pi * two)
    return found[:, :size]


class _Worlds:
    """A function of many worlds, interpreted one by one; NaN where its solver fails."""

    def __init__(self, function: ca.Function) -> None:
        shapes = [(function.numel_out(i),) for i in range(function.n_out())]
        self._run, self._lock = Evaluator(function, shapes, function.name()), Lock()

    def __call__(self, *rows: np.ndarray) -> list[np.ndarray]:
        """Results from arguments with a row for each world, or one vector for all."""
        run, count = self._run, len(rows[0])
        found = [np.empty((count, place.size)) for place in run.outputs]
        with self._lock:
            for world in range(count):
                for place, row in zip(run.inputs, rows, strict=True):
                    place[...] = (row if row.ndim == 1 else row[world]).reshape(place.shape)
                run.trigger()
                for result, place in zip(found, run.outputs, strict=True):
                    result[world] = place.ravel() if run.succeeded else np.nan
        return found


class Loop:
    """Worlds through time, interpreted: a tick of all live worlds after the other.

    Parameters
    ----------
    tick, step : casadi.Function
        Functions of a `Rollout`.
    steps : int
        Steps of a tick.
    """

    def __init__(self, tick: ca.Function, step: ca.Function, steps: int) -> None:
        self._tick, self._step, self._steps = _Worlds(tick), _Worlds(step), steps
        self._noises, self._nu, self._ny = tick.numel_in(3), tick.numel_out(1), tick.numel_out(2)

    def run(self, job: Job) -> None:
        """Compute all results of a job."""
        x, live = job.start.copy(), np.ones(len(job.start), dtype=bool)
        rolled, record, length = job.rolled, job.rolled.record, job.ring_length
        shared, late = job.reference.ndim == 2, np.zeros((length, len(x)))
        ring = np.zeros((length, len(x), self._nu))

        def stop(who: np.ndarray, tick: int, status: np.ndarray | int) -> None:
            live[who], rolled.stopped[who], rolled.status[who] = False, tick, status

        stop(np.flatnonzero(astray(x)), 0, DIVERGED)
        for k in range(job.ticks):
            who = np.flatnonzero(live)
            if not who.size:
                return
            r = job.reference[k] if shared else job.reference[who, k]
            noise = normal(job.seed, job.worlds[who], k, self._noises)
            then, u, y = self._tick(x[who], job.numbers[who], r, noise)
            row = k // job.stride if job.stride and k % job.stride == 0 else None
            if record is not None and row is not None:
                record.x[who, row], record.u[who, row] = x[who], u
                record.y[who, row, : self._ny] = y
            halted = y[:, 0] != 0.0
            bad = astray(then) | astray(u, np.inf) | astray(y[:, job.watched[: self._ny]], np.inf)
            stop(who[bad], k, DIVERGED)
            known = (np.abs(y[:, 0]) >= 1.0) & (np.abs(y[:, 0]) < LARGEST_STATE)
            status = np.where(known, y[:, 0], DIVERGED).astype(np.int64)
            stop(who[halted], k, status[halted])
            who, then, u, y = (part[~(halted | bad)] for part in (who, then, u, y))
            reduce(job, k, who, y, 0)
            x[who] = then
            if length:
                drawn = job.delay + job.jitter * uniform(job.seed, job.worlds, k, 0)[0]
                late[k % length] = np.maximum(drawn, late[(k - 1) % length] - 1.0)
                ring[k % length, who] = u
                u = arrived(ring, late, k, who)
            for i in range(self._steps):
                then, y = self._step(x[who], job.numbers[who], u)
                if record is not None and row is not None and i == 0:
                    record.y[who, row, self._ny :] = y
                bad = astray(then) | astray(y[:, job.watched[self._ny :]], np.inf)
                stop(who[bad], k, DIVERGED)
                who, then, u, y = (part[~bad] for part in (who, then, u, y))
                reduce(job, k, who, y, self._ny)
                x[who] = then


def arrived(ring: np.ndarray, late: np.ndarray, tick: int, who: np.ndarray) -> np.ndarray:
    """Averages over a period of the commands in force, from the newest one back, shape (B, nu).

    The first command is in force before it arrives.
    """
    end, found = np.ones(len(who)), np.full((len(who), ring.shape[2]), -0.0)
    for back in range(len(ring)):
        row = max(tick - back, 0) % len(ring)
        start = np.clip(late[row, who] - back, 0.0, 1.0)
        share = (end - start)[:, None]
        found = np.where(share > 0.0, found + share * ring[row, who], found)
        end = start
        if not end.any():
            break
    return found


def astray(values: np.ndarray, bound: float = LARGEST_STATE) -> np.ndarray:
    """Rows with an entry that is not below a bound; NaN fails every comparison."""
    return np.asarray(~(np.abs(values) < bound).all(axis=1))


def reduce(job: Job, tick: int, who: np.ndarray, y: np.ndarray, first: int) -> None:
    """Reduce the demands on signals from the index `first` on."""
    for i, (signal, kind, start, end, threshold) in enumerate(job.demands.tolist()):
        if not first <= signal < first + y.shape[1] or not start <= tick <= end:
            continue
        now, old, name = y[:, signal - first], job.rolled.values[who, i], KINDS[kind]
        above = now > threshold
        if name == "max":
            new = np.maximum(old, now)
        elif name == "min":
            new = np.minimum(old, now)
        elif name == "last":
            new = now
        elif name == "last_above":
            new = np.where(above, tick, old)
        elif name == "first_above":
            new = np.where(above & (old > tick), tick, old)
        elif name == "first_below":
            new = np.where((now < threshold) & (old > tick), tick, old)
        else:
            new = old + above
        job.rolled.values[who, i] = new
