"""Search space of Lyapunov functions: as few parameters as the symmetry of the gains allows."""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.certify._channels import Channel
from concur.certify._inequality import (
    Claim,
    inequality,
    isotropic_multipliers,
    turned_components,
)


@dataclass(frozen=True, eq=False)
class Mirrors:
    """Reflections that take the inequality of a rotation or a pose to a congruent one.

    A reflection Q takes rho to Q rho and phi to det(Q) Q phi. When it leaves the gains unchanged,
    the mean of a Lyapunov function and its image decays as fast as both, so that the search may
    require the two to be equal: entries of P, L and M that would change sign are zero.

    Parameters
    ----------
    pattern : numpy.ndarray
        1 where gains, and blocks of P, L and M, may be nonzero, shape (n, n).
    inversion : bool
        Whether (-rho, phi) is equivalent to (rho, phi).
    axes : bool
        Whether the signs of two components of phi at a time do not matter.
    """

    pattern: np.ndarray
    inversion: bool
    axes: bool

    @classmethod
    def of(cls, channel: Channel) -> Mirrors:
        """Find reflections along the coordinates; only the kinds SO3 and SE3 have them."""
        n = channel.size
        gains = (channel.stiffness, channel.damping, channel.inertia)
        alone = np.kron(np.eye(n // 3), np.ones((3, 3))) if n % 3 == 0 else np.ones((n, n))
        for pattern, axes in ((np.eye(n), True), (alone, False)):
            fits = all(np.array_equal(gain, gain * pattern) for gain in gains)
            if channel.kind in ("SO3", "SE3") and fits:
                return cls(pattern, channel.kind == "SE3", axes)
        return cls(np.ones((n, n)), False, False)

    def stands(self, x: np.ndarray) -> bool:
        """Whether a pose error represents its mirror images; on common faces several do."""
        phi = x[-3:]
        if self.axes and (phi[:2] < 0.0).any():
            return False
        return not self.inversion or bool(x[0] >= 0.0)


class Family:
    """Search space: P, L and M as linear combinations of the members."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        n = channel.size
        self.n = n
        self.gains = (
            channel.stiffness,
            np.linalg.inv(channel.inertia),
            np.linalg.solve(channel.inertia, channel.damping),
        )
        self.turned = turned_components(channel)
        self.mirrors = Mirrors.of(channel)
        self.members = self._members()
        parts = ([getattr(member, name) for member in self.members] for name in ("P", "L", "M"))
        P, L, M = map(np.array, parts)
        self._stacked = Claim(P, 0.0, L, M)
        x = ca.SX.sym("x", n)
        self.error_map = ca.Function("B", [x], [ca.densify(channel.group.error_map(x))])

    @property
    def typical(self) -> Claim:
        """Claim that has no more symmetry than the family."""
        return self.combine(1.0 + np.sqrt(np.arange(len(self.members))))

    def combine(self, weights: np.ndarray) -> Claim:
        """Sum of the members by weight; isotropic channels compute their multipliers."""
        P = sum(w * member.P for w, member in zip(weights, self.members, strict=True))
        P = (P + P.T) / 2
        if self._isotropic:
            return Claim(P, 0.0, *isotropic_multipliers(self.channel, P))
        L = sum(w * member.L for w, member in zip(weights, self.members, strict=True))
        M = sum(w * member.M for w, member in zip(weights, self.members, strict=True))
        return Claim(P, 0.0, L, M)

    def matrices(self, x: np.ndarray) -> np.ndarray:
        """A of every member at a pose error for rate zero, shape (members, 2 n, 2 n)."""
        B = np.asarray(self.error_map(x))
        return inequality(self.gains, self.turned, B, self._stacked, 0.0)

    @property
    def _isotropic(self) -> bool:
        return self.channel.kind == "SE3 isotropic"

    def _members(self) -> list[Claim]:
        n = self.n
        none = np.zeros((2 * n, n))
        if self._isotropic:
            kinds, block = n // 3, np.eye(3)
            pairs = [(i, j) for i, j in _pairs(2 * kinds) if (i - j) % kinds == 0]
            forms = [np.kron(_symmetric(i, j, 2 * kinds), block) for i, j in pairs]
            return [Claim(P, 0.0, *isotropic_multipliers(self.channel, P)) for P in forms]
        pattern = self.mirrors.pattern
        allowed = np.kron(np.ones((2, 2)), pattern)
        members = [
            Claim(_symmetric(i, j, 2 * n), 0.0, none, none)
            for i, j in _pairs(2 * n)
            if allowed[i, j]
        ]
        for i in range(2 * n):
            for j in range(n):
                if not allowed[i, j]:
                    continue
                unit = none.copy()
                unit[i, j] = 1.0
                members.append(Claim(np.zeros((2 * n, 2 * n)), 0.0, unit, none))
                if self.turned[j]:
                    members.append(Claim(np.zeros((2 * n, 2 * n)), 0.0, none, unit))
        return members


def _pairs(size: int) -> list[tuple[int, int]]:
    return [(i, j) for i in range(size) for j in range(i, size)]


def _symmetric(i: int, j: int, size: int) -> np.ndarray:
    matrix = np.zeros((size, size))
    matrix[i, j] = matrix[j, i] = 1.0
    return matrix
