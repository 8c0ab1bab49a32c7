"""Symbols of a floater's models: time, deviations, imperfections and promoted remainders.

A remainder that becomes a symbol is the same number at each use, and solves of linear
equations count it once (`task-proof`, section 3).
"""

from __future__ import annotations

from functools import cached_property

from concur._polynomials import Floats, Model, Space

CLOCK, DEVIATIONS = 0, slice(1, 19)
"""Symbols of the time, and of dx, eta and dv."""

X, ETA, VE = 1, 2, 3
"""Blocks of the deviations."""


class Symbols:
    """Symbols in order; those of imperfections that a statement lacks do not exist.

    Time; dx, eta and dv; errors of momentum, linear and angular; remainders of angles and of s;
    disturbance; wrenches on the base that its model lacks; remainders of accelerations.

    Parameters
    ----------
    wrong : bool
        Whether momentum or masses differ from those of the model.
    """

    def __init__(self, wrong: bool) -> None:
        self.wrong = wrong
        self._errors = (3, 3) if wrong else ()
        own = (1, 6, 6, 6, *self._errors, *(1,) * 12, 6, *self._errors, *(1,) * 6)
        self.space = Space(own, curved=DEVIATIONS.stop)

    @cached_property
    def first_angle(self) -> int:
        """First symbol of the angles' remainders: those before are arguments."""
        return DEVIATIONS.stop + sum(self._errors)

    def deviations(self, radii: Floats) -> list[list[Model]]:
        """dx, eta and dv in balls with radii (3, b)."""
        return [self.space.block(b, radii[k]) for k, b in enumerate((X, ETA, VE))]

    def momentum(self, radii: Floats) -> list[Model]:
        """Error of the momentum (6), linear and angular with radii (2, b)."""
        return self._pair(VE + 1, radii)

    def disturbance(self, radius: Floats) -> list[Model]:
        """The disturbance (6) in a ball with a radius (b,)."""
        return self.space.block(VE + len(self._errors) + 13, radius)

    def wrench(self, radii: Floats) -> list[Model]:
        """Wrench on the base (6), linear and angular with radii (2, b)."""
        return self._pair(VE + len(self._errors) + 14, radii)

    def _pair(self, block: int, radii: Floats) -> list[Model]:
        if not self.wrong:
            return [self.space.constant(0.0)] * 6
        return [m for k in (0, 1) for m in self.space.block(block + k, radii[k])]

    def promoted_angles(self, models: list[Model]) -> list[Model]:
        """Angles with their remainders as symbols."""
        return promoted(models, self.first_angle)

    def promoted_speeds(self, models: list[Model]) -> list[Model]:
        """Shape velocities with their remainders as symbols."""
        return promoted(models, self.first_angle + 6)

    def promoted_accelerations(self, models: list[Model]) -> list[Model]:
        """Shape accelerations with their remainders as symbols."""
        return promoted(models, self.space.size - 6)


def promoted(models: list[Model], first: int) -> list[Model]:
    """The same functions, each remainder as an extra symbol, from `first` on."""
    return [m.with_remainder(0.0) + m.space.symbol(first + k, m.r) for k, m in enumerate(models)]
