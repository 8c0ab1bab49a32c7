"""Formulas of SE(3) for the checker of proofs of floaters, over arrays, models and rates.

A twist is [linear; angular], a pose a pair (rotation, position). se(3) is so(3) over dual numbers:
with b(w) = 1 - w^ / 2 + c(|w|^2) w^2 and its derivative Q along rho, B(x) = ad_x / (exp(ad_x) - 1)
has the blocks [[b, Q], [0, b]] for x = [rho; w].
"""

from __future__ import annotations

from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
from scipy.special import zeta

from concur.proofs._recheck_balls import Balls, Dual, Floats, joined, root, times
from concur.proofs._recheck_numbers import LEVI

LARGEST = 9.0
"""Largest |w|^2 of the series (rad^2)."""

_TERMS = 45


@dataclass(frozen=True, eq=False)
class Series:
    """A power series of |w|^2; its tail beyond the terms is far below rounding up to `LARGEST`."""

    terms: Floats

    def _at(self, y: Floats, order: int, sign: bool = True) -> Floats:
        """Derivative of an order; without signs a bound of all those below y."""
        terms, total = self.terms if sign else np.abs(self.terms), 0.0 * y
        for k in range(len(terms) - 1, order - 1, -1):
            total = total * y + terms[k] * float(factorial(k) // factorial(k - order))
        return total

    @property
    def slope(self) -> Series:
        """Derivative."""
        return Series(self.terms[1:] * np.arange(1, len(self.terms)))

    def __call__(self, y: Any) -> Any:
        if isinstance(y, Dual):
            return Dual(self(y.value), times(",->", self.slope(y.value), y.rate))
        if not isinstance(y, Balls):
            return self._at(np.asarray(y), 0)
        far = y.bound
        top = np.minimum(far, LARGEST)
        third = np.where(far <= LARGEST, self._at(top, 3, False), np.inf)
        values = (self._at(y.c, 0), self._at(y.c, 1), self._at(y.c, 2) / 2)
        found = y.composed(values, third)
        return Balls(found.blocks, *_parts(found), found.size + self._at(top, 0, False))


def _parts(m: Balls) -> tuple[Floats, Floats, Floats, Floats]:
    return m.c, m.g, m.h, m.r


_SINE, _ARC, _CUBE = (
    Series(np.array([(-1.0) ** k / factorial(2 * k + n) for k in range(_TERMS)])) for n in (1, 2, 3)
)
_ONE = Series(np.array([2.0 * zeta(2 * k) / (2 * np.pi) ** (2 * k) for k in range(1, _TERMS + 1)]))
"""c: |B_2k| / (2k)! = 2 zeta(2k) / (2 pi)^2k."""


def skew(a: Any) -> Any:
    """Matrix of the cross product with a."""
    return times("ijk,j->ik", LEVI, a)


def cross(a: Any, b: Any) -> Any:
    """Cross product."""
    return times("ij,j->i", skew(a), b)


def dot(a: Any, b: Any) -> Any:
    """Inner product."""
    return times("i,i->", a, b)


def scaled(s: Any, a: Any) -> Any:
    """A vector or matrix times a number."""
    inner = a.value if isinstance(a, Dual) else a
    letters = "ij"[: (inner.c if isinstance(inner, Balls) else inner).ndim - 1]
    return times(f",{letters}->{letters}", s, a)


def exponential(x: Any) -> tuple[Any, Any]:
    """Rotation and position of exp(x)."""
    rho, w = x[:3], x[3:]
    y, turn = dot(w, w), skew(w)
    square, across = times("ij,jk->ik", turn, turn), cross(w, rho)
    own = scaled(_SINE(y), turn) + scaled(_ARC(y), square) + np.eye(3)[:, :, None]
    return own, rho + scaled(_ARC(y), across) + scaled(_CUBE(y), cross(w, across))


def _own(w: Any, y: Any, u: Any, sign: float) -> Any:
    """b(w) u, with sign 1, or b(w)^T u."""
    across = cross(w, u)
    return u - across * (0.5 * sign) + scaled(_ONE(y), cross(w, across))


def _slope(rho: Any, w: Any, y: Any, u: Any, sign: float) -> Any:
    """Q u, with sign 1, or Q^T u."""
    twice = cross(w, cross(w, u))
    found = scaled(times(",->", _ONE.slope(y), dot(w, rho)) * 2.0, twice)
    both = cross(w, cross(rho, u)) + cross(rho, cross(w, u))
    return found + scaled(_ONE(y), both) - cross(rho, u) * (0.5 * sign)


def pulled(x: Any, u: Any) -> Any:
    """B(x) u."""
    rho, w = x[:3], x[3:]
    y = dot(w, w)
    linear = _own(w, y, u[:3], 1.0) + _slope(rho, w, y, u[3:], 1.0)
    return joined([linear, _own(w, y, u[3:], 1.0)])


def pushed(x: Any, u: Any) -> Any:
    """B(x)^T u."""
    rho, w = x[:3], x[3:]
    y = dot(w, w)
    angular = _own(w, y, u[3:], -1.0) + _slope(rho, w, y, u[:3], -1.0)
    return joined([_own(w, y, u[:3], -1.0), angular])


def bracket(a: Any, b: Any) -> Any:
    """ad_a b of twists."""
    linear = cross(a[3:], b[:3]) + cross(a[:3], b[3:])
    return joined([linear, cross(a[3:], b[3:])])


def wrench_rate(v: Any, f: Any) -> Any:
    """Rate of a constant wrench or momentum in axes that move with a twist, less its sign.

    -ad_v^T f: the rate in inertial axes is that in the moving ones plus this.
    """
    return joined([cross(v[3:], f[:3]), cross(v[:3], f[:3]) + cross(v[3:], f[3:])])


def carried(pose: tuple[Any, Any], u: Any) -> Any:
    """Ad of a pose on a twist."""
    turn, place = pose
    linear, angular = times("ij,j->i", turn, u[:3]), times("ij,j->i", turn, u[3:])
    return joined([linear + cross(place, angular), angular])


def fetched(pose: tuple[Any, Any], u: Any) -> Any:
    """Ad of the inverse of a pose on a twist."""
    turn, place = pose
    linear = u[:3] - cross(place, u[3:])
    return joined([times("ji,j->i", turn, linear), times("ji,j->i", turn, u[3:])])


def turned(pose: tuple[Any, Any], f: Any) -> Any:
    """Ad* of a pose on a wrench or momentum: its components in the pose's axes."""
    turn, place = pose
    moment = f[3:] - cross(place, f[:3])
    return joined([times("ji,j->i", turn, f[:3]), times("ji,j->i", turn, moment)])


def after(a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """Product of poses."""
    return times("ij,jk->ik", a[0], b[0]), times("ij,j->i", a[0], b[1]) + a[1]


def inverse(a: tuple[Any, Any]) -> tuple[Any, Any]:
    """Inverse of a pose."""
    back = times("ij,jk->ki", a[0], np.eye(3))
    return back, -times("ij,j->i", back, a[1])


def small(eta: Any) -> tuple[tuple[Any, Any], Any]:
    """Pose of a deviation [p; w] with the quaternion (w / 2, s), and s."""
    w = eta[3:]
    side = root(1.0 - dot(w, w) * 0.25)
    turn = skew(w)
    square = times("ij,jk->ik", turn, turn)
    return (scaled(side, turn) + square * 0.5 + np.eye(3)[:, :, None], eta[:3]), side
