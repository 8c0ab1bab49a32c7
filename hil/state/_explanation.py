"""Cause of a residual: which change, from which instant on, explains the positions best.

From each of some instants the motion is computed without corrections, with the state of the
observer at this instant. The differences of the positions from it are compared by least squares
with the motions that causes would have added since: a factor of the torque, a factor of the motion
(of the encoder), a constant force, and a delay of the torque. The cause and instant with the
smallest remaining difference explain the residual. Sums are added in order: C gives the same to
the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hil.reasons import Reason

INSTANTS = 128
"""Number of the newest instants, all of which are compared."""

NEWEST = 48
"""Number of the newest samples, all of which are compared."""

EARLIER = 48
"""Number of earlier instants and samples that are compared."""

SHORTEST = 3
"""Smallest number of samples after the instant."""

CLEARER = 1.5
"""Factor by which a clear cause leaves less than all causes with another reason."""

USUAL = -1.0, 0.0, 0.1, 0.25, 1.0 / 3.0, 0.5, 2.0, 3.0, 4.0, 10.0
"""Factors of wrong signs and units, which are preferred to others and to a force."""

NEAR = 0.12
"""Distance within which a factor is a usual one, relative above one."""

NOT = 0.3
"""Factors within this distance of zero mean none, and within it of one no change."""

DELAYS = 0.01, 0.015, 0.02, 0.03, 0.04, 0.06, 0.08
"""Delays of the torque that are compared, s."""

LARGEST = 12.0
"""Largest factor of a torque or a motion."""

STRONGEST = 1.5
"""Largest force, as a multiple of the torque limit: beyond it an encoder is wrong."""


class Tracked(NamedTuple):
    """State of an observer."""

    x: float
    w: float
    d: float


class Sample(NamedTuple):
    """One report of an axis with the model's numbers for it, and the slow observer after it.

    Its position is NaN if no report came in a cycle.
    """

    time: float
    position: float
    acceleration: float
    torque: float
    state: Tracked
    rest: float


@dataclass(frozen=True)
class Cause:
    """Cause of a residual: its factor of torque or motion, or its force, N m (N)."""

    reason: Reason
    factor: float
    left: float  # sum of squares that it does not explain
    clear: bool = False
    encoder: bool = False  # whether the factor is that of the motion

    def __str__(self) -> str:
        if self.reason is Reason.DELAYED:
            return f"its torque acts {1e3 * self.factor:.0f} ms late"
        if self.reason is Reason.CONTACT:
            return f"a force of {self.factor:.3g} N m (N) acts on it"
        if self.encoder:
            return f"its position changes {self.factor:.2g} times as fast as before"
        return f"it moves as by {self.factor:.2g} times this torque"


def explain(samples: Sequence[Sample], ease: float, limit: float, step: float) -> Cause | None:
    """Find the best cause; None if no cause is possible yet.

    `ease` is the acceleration of the motor by a unit of its torque, `limit` its torque limit, and
    `step` the uncertainty of a position.
    """
    last = len(samples) - 1
    if last < SHORTEST:
        return None
    t, y, a, u = (np.array([sample[k] for sample in samples]) for k in range(4))
    states, innovations = (np.array([sample[k] for sample in samples]) for k in (4, 5))
    steps = np.diff(t, prepend=t[:1])
    begins = _chosen(last - SHORTEST, INSTANTS)[:, None]
    kept = _chosen(last, NEWEST)  # each with the weight of those that it skips
    weights = np.where(np.isfinite(y), 1.0, 0.0)[kept] * np.diff(kept, prepend=-1)
    weights = weights * (kept > begins)
    tau = np.where(kept > begins, t[kept] - t[begins], 0.0)

    def total(parts: NDArray[np.float64]) -> NDArray[np.float64]:
        """Weighted sums over the samples."""
        return np.asarray(np.cumsum(weights * parts, axis=1)[:, -1])

    def since(acceleration: NDArray[np.float64]) -> NDArray[np.float64]:
        """Ways since the instants, from rest, of an acceleration constant before each sample."""
        w = np.cumsum(acceleration * steps)
        x = np.cumsum((w - 0.5 * acceleration * steps) * steps)
        return np.asarray(x[kept] - x[begins] - w[begins] * tau)

    x, w, d = (states[begins, k] for k in range(3))
    motion = w * tau + since(a) + 0.5 * d * tau**2
    rest = np.nan_to_num(y)[kept] - x - motion
    left = np.cumsum(innovations**2)[begins[:, 0]] + len(samples) * (step * step) / 12.0
    squares = total(rest * rest)

    def fitted(added: NDArray[np.float64]) -> list[tuple[float, float]]:
        """Factor of an added motion, and the sum of squares that remains, of each instant."""
        size, along = total(added * added), total(rest * added)
        factor = along / np.where(size > 0.0, size, np.inf)
        remains = left + squares - factor * along
        return list(zip(factor.tolist(), remains.tolist(), strict=True))

    found = [_of_encoder(*fit) for fit in fitted(motion)]
    found += [_of_torque(*fit) for fit in fitted(since(ease * u))]
    found += [_of_force(*fit, limit) for fit in fitted(since(np.full(len(t), ease)))]
    for delay in DELAYS:
        differs = rest - since(ease * (_earlier(u, t, delay) - u))
        remains = left + total(differs * differs)
        found += [Cause(Reason.DELAYED, delay, value) for value in remains.tolist()]
    causes = [cause for cause in found if cause is not None]
    best = min(causes, key=_doubt)
    others = [cause.left for cause in causes if cause.reason is not best.reason]
    clear = CLEARER * best.left < min(others, default=math.inf)
    return replace(best, clear=clear)


def _chosen(last: int, newest: int) -> NDArray[np.int64]:
    """The newest samples, and some of the earlier ones."""
    count = min(EARLIER, last + 1)
    spread = np.arange(count) * last // max(count - 1, 1)
    return np.unique(np.append(np.arange(max(last - newest, 0), last + 1), spread))


def _doubt(cause: Cause) -> float:
    """Sum of squares that a cause leaves, weighed by how unusual it is."""
    if cause.reason in (Reason.CONTACT, Reason.DELAYED):
        return cause.left
    near = min(abs(cause.factor - usual) / max(abs(usual), 1.0) for usual in USUAL)
    return cause.left * (1.0 / CLEARER if near <= NEAR else CLEARER)


def _of_encoder(factor: float, left: float) -> Cause | None:
    if abs(factor) < NOT or abs(1.0 + factor) > LARGEST:
        return None
    return Cause(
        _reason(1.0 + factor, Reason.STUCK, Reason.COUNT_SCALE), 1.0 + factor, left, encoder=True
    )


def _of_torque(factor: float, left: float) -> Cause | None:
    if abs(factor) < NOT or abs(1.0 + factor) > LARGEST:
        return None
    return Cause(_reason(1.0 + factor, Reason.IGNORED, Reason.TORQUE_SCALE), 1.0 + factor, left)


def _of_force(force: float, left: float, limit: float) -> Cause | None:
    return Cause(Reason.CONTACT, force, left) if abs(force) <= STRONGEST * limit else None


def _reason(factor: float, none: Reason, scale: Reason) -> Reason:
    if abs(factor) < NOT:
        return none
    return Reason.WRONG_SIGN if factor < 0.0 else scale


def _earlier(u: NDArray[np.float64], t: NDArray[np.float64], delay: float) -> NDArray[np.float64]:
    """The torques that acted a delay earlier."""
    half = 0.5 * (t[-1] - t[-2])  # instants are not exact
    return np.asarray(u[np.maximum(np.searchsorted(t, t - delay + half, side="right") - 1, 0)])
