"""Shares between zero and one by number: the same for a number in any block, on any machine."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concur.errors import SimulationError, shown

METHODS = ("independent", "sobol")
"""Ways to draw worlds."""

LARGEST_NUMBER = 2**30 - 1
"""Largest number of a world: Sobol points have 30 bits."""

GAP = 1000
"""Numbers that are drawn in vain rather than one more generator made."""

Numbers = NDArray[np.int64]


def shares(numbers: Any, seed: int, names: Sequence[str], method: str) -> NDArray[np.float64]:
    """Shares in (0, 1) of some worlds, shape (B, d), one column for each name.

    Independent shares come from Philox counters: key (seed, hash of the name), counter the number
    of the world, so that a further name leaves the others as they are. Sobol points are scrambled
    with the seed; the number of a world is the index of its point.
    """
    if method not in METHODS:
        raise SimulationError(
            "draw of worlds, `method`",
            expected=" or ".join(f'"{name}"' for name in METHODS),
            came=shown(method),
            cure='Take "independent" where an interval of the pass rate is to follow.',
        )
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**63:
        raise SimulationError(
            "draw of worlds, `seed`",
            expected="a whole number from 0 to 2^63 - 1",
            came=shown(seed),
            cure="Take 0, or another whole number for other worlds.",
        )
    wanted, place = np.unique(_whole(numbers), return_inverse=True)
    if not len(names) or not wanted.size:
        return np.zeros((place.size, len(names)))
    runs = np.split(wanted, np.flatnonzero(np.diff(wanted) > GAP) + 1)
    draw = _philox if method == "independent" else _sobol
    return np.asarray(draw(runs, int(seed), names)[place.reshape(-1)])


def _philox(runs: Sequence[Numbers], seed: int, names: Sequence[str]) -> NDArray[np.float64]:
    columns = []
    for name in names:
        digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
        key = np.array([seed, int.from_bytes(digest, "little")], dtype=np.uint64)
        raw = []
        for run in runs:
            first = int(run[0]) // 4  # a counter gives four numbers
            words = np.random.Philox(counter=first, key=key).random_raw(
                int(run[-1]) + 1 - 4 * first
            )
            raw.append(words[run - 4 * first])
        # 52 bits and half a step: neither zero nor one.
        columns.append(((np.concatenate(raw) >> np.uint64(12)) + 0.5) * 2.0**-52)
    return np.stack(columns, axis=1)


def _sobol(runs: Sequence[Numbers], seed: int, names: Sequence[str]) -> NDArray[np.float64]:
    from scipy.stats import qmc

    if len(names) > qmc.Sobol.MAXDIM:
        raise SimulationError(
            "draw of worlds, `method`",
            expected=f"at most {qmc.Sobol.MAXDIM} uncertain quantities for Sobol points",
            came=str(len(names)),
            cure='Draw with method="independent".',
        )
    engine, points = qmc.Sobol(len(names), seed=np.random.default_rng(seed)), []
    for run in runs:
        first, count = int(run[0]), int(run[-1] - run[0]) + 1
        if first:
            engine.fast_forward(first - engine.num_generated)
            found = engine.random(count)
        else:  # the first one alone: the engine warns of numbers that are no power of two
            found = np.concatenate([engine.random(1), engine.random(count - 1)])
        points.append(found[run - run[0]])
    return np.concatenate(points) + 2.0**-31


def _whole(numbers: Any) -> Numbers:
    found = np.asarray(numbers)
    whole = found.ndim == 1 and (found.dtype.kind in "iu" or not found.size)
    if not whole or (found.size and not (found.min() >= 0 and found.max() <= LARGEST_NUMBER)):
        raise SimulationError(
            "draw of worlds, `numbers`",
            expected=f"whole numbers from 0 to {LARGEST_NUMBER}",
            came=shown(numbers),
            cure="Pass range(1000) for the first thousand worlds.",
        )
    return found.astype(np.int64)
