"""Random numbers of worlds that are the same on any machine, as `c/rollout.c` draws them."""

from __future__ import annotations

import numpy as np

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


def normal(seed: int, worlds: np.ndarray, tick: int | np.ndarray, size: int) -> np.ndarray:
    """Standard normal numbers, shape (B, size), by the method of Box and Muller."""
    found = np.empty((len(worlds), 2 * (-(-size // 2))))
    for j in range(0, size, 2):
        one, two = uniform(seed, worlds, tick, j // 2 + 1)
        radius = np.sqrt(-2.0 * np.log(1.0 - one))
        found[:, j] = radius * np.cos(2.0 * np.pi * two)
        found[:, j + 1] = radius * np.sin(2.0 * np.pi * two)
    return found[:, :size]
