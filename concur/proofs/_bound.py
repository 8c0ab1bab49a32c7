"""Bounds of a proof of a task, and the sentence that they make."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from concur._polynomials import Floats
from concur.proofs._quantity import Quantity
from concur.proofs._statement import Statement
from concur.results import Row
from concur.rounding import percent_down, rounded_down, rounded_up


@dataclass(frozen=True, eq=False)
class Bound:
    """A quantity with its proved bounds over the segments of a task.

    Parameters
    ----------
    quantity : Quantity
        The quantity.
    limit : float or None
        Limit of the statement; None if there is no limit.
    times : numpy.ndarray
        Beginnings of the segments (s), shape (n,).
    profile : numpy.ndarray
        Bound that all motions keep in each segment, shape (n,).
    """

    quantity: Quantity
    limit: float | None
    times: Floats
    profile: Floats

    @property
    def kind(self) -> str:
        """Kind of the quantity."""
        return self.quantity.kind

    @property
    def name(self) -> str:
        """Name of the control, joint or output."""
        return self.quantity.name

    @property
    def unit(self) -> str:
        """Unit of the values."""
        return self.quantity.unit

    @property
    def sign(self) -> float:
        """1 for upper bounds, -1 for lower ones."""
        return self.quantity.sign

    @property
    def value(self) -> float:
        """Bound over the whole task."""
        return float(self.profile[self._worst])

    @property
    def time(self) -> float:
        """Beginning of the segment whose bound is that of the whole task (s)."""
        return float(self.times[self._worst])

    @property
    def _worst(self) -> int:
        return int(np.argmax(self.sign * self.profile))

    @property
    def slack(self) -> float:
        """Distance of the bound from the limit; infinite without a limit."""
        return float(self.slacks.min())

    @property
    def slacks(self) -> Floats:
        """Distance of the bound from the limit in each segment, shape (n,)."""
        if self.limit is None:
            return np.full(len(self.profile), np.inf)
        return np.asarray(self.sign * (self.limit - self.profile), dtype=np.float64)

    @property
    def kept(self) -> bool:
        """Whether there is a bound, and the limit is kept."""
        return bool(np.isfinite(self.profile).all()) and self.slack >= 0.0

    @property
    def row(self) -> Row:
        """Bound beside its limit as a row of a result; the time of the worst is the place."""
        kept = None if self.limit is None else self.kept
        where, low = f"{self.time:.2f} s", self.sign < 0.0
        return Row(f"{self.kind} {self.name}", self.value, self.limit, self.unit, where, kept, low)

    def __str__(self) -> str:
        value = (rounded_up if self.sign > 0.0 else rounded_down)(self.value, 4)
        text = f"{self.kind} {self.name} {value} {self.unit}".rstrip()
        limit = "" if self.limit is None else f" (limit {self.limit:.4g})"
        return f"{text}{limit} at {self.time:.2f} s"


def bounds_of(
    quantities: Sequence[Quantity],
    largest: Floats,
    limits: Mapping[tuple[str, str], float],
    times: Floats,
) -> tuple[Bound, ...]:
    """Bounds of quantities by the largest value of each, times its sign, in segments, (k, n)."""
    return tuple(
        Bound(made, limits.get(made.key), times, made.sign * row)
        for made, row in zip(quantities, largest, strict=True)
    )


def claimed(given: Statement, bounds: Sequence[Bound], base: str) -> str:
    """Claim of a proof in one clause; values are rounded to the safe side."""
    return f"from {conditions(given, base)}: {', '.join(_kept(bounds))}"


def conditions(given: Statement, base: str) -> str:
    """Starts and imperfections of a statement, in words."""
    facts = [
        f"masses within {percent_down(given.masses)}",
        f"torques held for {1e3 * given.period:g} ms",
    ]
    if any(given.momentum_error):
        linear, angular = (rounded_down(part, 6) for part in given.momentum_error)
        facts.append(f"a momentum within {linear} kg m/s and {angular} kg m^2/s")
    if given.delay:
        facts.append(f"a delay of {1e3 * given.delay:g} ms")
    if any(given.torque_error):
        facts.append(f"torque errors up to {rounded_down(max(given.torque_error), 6)} N m")
    if any(given.push):
        facts.append(f"pushes up to {rounded_down(max(given.push), 6)} m/s^2")
    if given.reading is not None:
        facts.append(f"readings wrong by up to {given.reading.sentence}")
    units = ("m", "m/s", "rad")
    if base == "base pose":
        units = ("(m, rad)", "(m/s, rad/s)", "(m, rad)")
    radii = (max(given.place), max(given.speed), given.heading)
    place, speed, angle = (
        f"{rounded_down(r, 6)} {unit}" for r, unit in zip(radii, units, strict=True)
    )
    return (
        f"starts within {place}, {speed} and {angle} of {base} of the declared one, "
        f"with {', '.join(facts)}"
    )


def _kept(bounds: Sequence[Bound]) -> list[str]:
    """A phrase for each kind of bound."""

    def extreme(kind: str) -> list[str]:
        own = [b for b in bounds if b.kind == kind]
        return [_rounded(b.sign * max(b.sign * c.value for c in own), b.sign) for b in own[:1]]

    found = [f"torques at most {value} N m" for value in extreme("torque")]
    found += [f"joint speeds at most {value} rad/s" for value in extreme("speed")]
    found += [f"decoupling margin above {value}" for value in extreme("margin")]
    angles = [b.slack for b in bounds if b.kind.startswith("angle") and b.slack < math.inf]
    if angles:
        found.append(f"joints within their limits by {_rounded(min(angles), -1.0)} rad")
    found += [f"wheels and supports loaded by at least {value} N" for value in extreme("load")]
    found += [f"moments that hold the base at least {value} N m" for value in extreme("tipping")]
    found += [f"distances from obstacles of at least {value} m" for value in extreme("clearance")]
    found += [f"wheels in need of a grip of at most {value}" for value in extreme("grip")]
    return found + [
        f"{b.name} within {_rounded(b.value, 1.0)} {b.unit} of its path"
        for b in bounds
        if b.kind == "corridor"
    ]


def tightest(bounds: Sequence[Bound]) -> tuple[Bound, ...]:
    """Of each kind the bound with the least slack, or the largest one without limits."""
    found: dict[str, Bound] = {}
    for bound in bounds:
        held = found.get(bound.kind)
        if held is None or _order(bound) > _order(held):
            found[bound.kind] = bound
    return tuple(found.values())


def _order(bound: Bound) -> tuple[bool, float]:
    """Order of bounds of one kind, the tightest last."""
    limited = math.isfinite(bound.slack)
    return limited, -bound.slack if limited else bound.sign * bound.value


def _rounded(value: float, sign: float) -> str:
    """Value with three digits, not below it for an upper bound and not above it for a lower one."""
    return (rounded_up if sign > 0.0 else rounded_down)(value, 3)
