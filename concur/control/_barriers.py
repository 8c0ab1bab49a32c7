"""Limits as bounds of accelerations, and barriers: how fast a limit may be approached.

A function h of the configuration that has to stay below an end is an exponential barrier with two
rates,

    h'' <= first second (end - h) - (first + second) h',

so that h comes to its end no faster than ``h' = first (end - h)``, once it does so: the same from
below. Its second rate ``h'' = row sdot + drift`` is affine in the shape acceleration.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import casadi as ca

from concur.codegen import Array, Vector
from concur.control._core import LawCore


@dataclass
class Limit:
    """Bounds of a quantity that is affine in the shape acceleration, such as an acceleration.

    Parameters
    ----------
    value : casadi.SX
        The quantity.
    names : list of str
        Names of the pairs of bounds.
    low, high : list of casadi.SX
        The bounds, one for each name.
    weak : float, optional
        Length of the row of the shape acceleration below which less is asked, see `LimitRow.of`.
    of_joint, of_force : bool
        Whether it is a limit of a joint; of forces, for which the motion slows down as for torques.
    kept : list of casadi.SX
        Conditions that together are enough for the value to be within the bounds.
    fast : casadi.SX
        Speed of an approach for which less is asked, over the largest one that is allowed.
    """

    value: Array
    names: list[str] = field(default_factory=list)
    low: list[Array] = field(default_factory=list)
    high: list[Array] = field(default_factory=list)
    weak: float | None = None
    of_joint: bool = False
    of_force: bool = False
    kept: list[Array] = field(default_factory=list)
    fast: Array = field(default_factory=lambda: ca.SX(0))

    def add(self, name: str, low: Any, high: Any, *moved: Array) -> None:
        """Add bounds by their name: of the value, or of the sum of it and what has `moved` them."""
        self.names.append(name)
        away = sum(moved, start=ca.SX(0))
        self.low.append(low - away)
        self.high.append(high - away)
        value, symmetric = sum(moved, start=self.value), isinstance(high, float) and low == -high
        if symmetric:
            self.kept.append(ca.fabs(value) <= high)
        else:
            ends = (low, value >= low), (high, value <= high)
            self.kept += [holds for end, holds in ends if not _unbounded(end)]


def _unbounded(end: Any) -> bool:
    return isinstance(end, float) and abs(end) == float("inf")


@dataclass
class LimitRow:
    """Bounds of ``row sdot + drift``, such as those of a coordinate and of its freedom."""

    row: Array
    drift: Array
    names: list[str]
    low: list[Array]
    high: list[Array]
    unfelt: Array | None = None
    """Row of controls that make no force on the shape; None without such controls."""
    of_joint: bool = False
    of_force: bool = False
    fast: Any = 0.0

    @classmethod
    def of(cls, limits: Sequence[Limit], sdot: ca.SX, others: ca.SX) -> list[LimitRow]:
        """Take rows of limits of expressions in sdot (ns,) and in unfelt controls.

        Where the row of one is below `weak`, no acceleration changes it much, and any that keeps it
        would be large: less is asked there, and nothing where the row is zero.
        """
        values, x = (
            ca.vertcat(ca.SX(0, 1), *(limit.value for limit in limits)),
            ca.vertcat(sdot, others),
        )
        slopes, drifts = ca.jacobian(values, x), ca.substitute(values, x, ca.SX.zeros(x.numel()))
        found = []
        for k, limit in enumerate(limits):
            row, drift, low = slopes[k, : sdot.numel()], drifts[k], limit.low
            if limit.weak is not None:
                share = ca.fmin(1.0, ca.sumsqr(row) / limit.weak**2)
                asked = [end - drift for end in low]
                low = [drift + ca.fmin(end, share * end) for end in asked]
            free = slopes[k, sdot.numel() :] if others.numel() else None
            kinds = limit.of_joint, limit.of_force, limit.fast
            found.append(cls(row, drift, limit.names, low, limit.high, free, *kinds))
        return found

    @property
    def bounds(self) -> tuple[Array, Array]:
        """The narrowest bounds, which do not cross: braking counts more than a speed."""
        low, high = ca.mmax(ca.vertcat(*self.low)), ca.mmin(ca.vertcat(*self.high))
        return ca.fmin(low, high), high


@dataclass
class Moved:
    """Functions of the configuration along a motion: values, rates and second rates, (k,).

    Parameters
    ----------
    value, rate, second : casadi.SX
        The functions and their derivatives by time.
    """

    value: Array
    rate: Array
    second: Array

    @classmethod
    def along(
        cls, servo: LawCore, at: ca.SX, functions: Array, q: Vector, v: Vector, sdot: Vector
    ) -> Moved:
        """Derive functions of the configuration `at` along the motion in the state (q, v)."""
        model, system = servo.model, servo.model.system
        w, wdot = ca.SX.sym("v", system.nv), ca.SX.sym("vdot", system.nv)
        moving = system.rate(at, w)
        rate = ca.jtimes(functions, at, moving)
        second = ca.jtimes(rate, ca.vertcat(at, w), ca.vertcat(moving, wdot))
        vdot = model.lift(q)[0] @ sdot + model.velocity_drift(q, v)
        moved = ca.Function("moved", [at, w, wdot], [functions, rate, second])
        return cls(*moved.call([q, v, vdot], True, False))

    def add_ends(
        self, limit: Limit, k: int, name: str, ends: tuple[Any, Any], first: float, second: float
    ) -> None:
        """Add the bounds of one function that comes to its ends with two rates, 1/s."""
        low, high = (first * second * end for end in ends)
        moved = (first + second) * self.rate[k], first * second * self.value[k]
        limit.add(name, low, high, *moved)
