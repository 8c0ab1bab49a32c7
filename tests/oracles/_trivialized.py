"""Euler-Poincare and Lagrange-Poincare equations of l(r, xi, rdot), literally as printed.

After A. Mueller, Proc. R. Soc. A 479 (2023), source 000, sections 4 and 5. The group enters by
its structure constants alone: `sign` is +1 for left trivialization (body), -1 for right (spatial).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np

from tests.oracles._hamel import along, put


@dataclass(frozen=True)
class Trivialized:
    """An invariant Lagrangian with the brackets of its group.

    Parameters
    ----------
    r : casadi.SX
        Shape.
    lagrangian : callable
        l from (r, xi, rdot).
    constants : numpy.ndarray
        c[k, i, j], shape (m, m, m).
    sign : float
        +1 left, -1 right.
    """

    r: ca.SX
    lagrangian: Callable[[ca.SX, ca.SX, ca.SX], ca.SX]
    constants: np.ndarray
    sign: float = 1.0

    def ad(self, x: ca.SX) -> ca.SX:
        """Bracket with x, with the sign of the trivialization."""
        return self.sign * sum(ca.SX(self.constants[:, i, :]) * x[i] for i in range(x.numel()))

    def curvature(self, connection: ca.SX) -> list[list[ca.SX]]:
        """B_IJ = d_J A_I - d_I A_J +- [A_I, A_J]. 000: (4.1)-(4.7)."""
        n = self.r.numel()
        slopes = [ca.jacobian(connection[:, i], self.r) for i in range(n)]
        return [
            [
                slopes[i][:, j] - slopes[j][:, i] + self.ad(connection[:, i]) @ connection[:, j]
                for j in range(n)
            ]
            for i in range(n)
        ]

    def _symbols(self) -> tuple[ca.SX, ca.SX, ca.SX, ca.SX]:
        m, n = len(self.constants), self.r.numel()
        sizes = {"u": m, "udot": m, "y": n, "z": n}
        u, udot, y, z = (ca.SX.sym(name, size) for name, size in sizes.items())
        return u, udot, y, z

    def euler_poincare(self) -> ca.Function:
        """Left sides from (r, xi, rdot, xidot, rddot).

        000: (2.7), (5.1), (5.2); 003: (39)-(41).
        """
        xi, xidot, y, z = self._symbols()
        value = self.lagrangian(self.r, xi, y)
        pairs = (self.r, y), (xi, xidot), (y, z)
        momenta, shape = ca.gradient(value, xi), ca.gradient(value, y)
        group = along(momenta, *pairs) - self.ad(xi).T @ momenta
        rest = along(shape, *pairs) - ca.gradient(value, self.r)
        return ca.Function("f", [self.r, xi, y, xidot, z], [group, rest])

    def lagrange_poincare(self, connection: ca.SX, printed: bool = False) -> ca.Function:
        """Left sides from (r, Omega, rdot, Omegadot, rddot).

        Printed (1.1) has E and c with the other sign.

        000: (1.1)-(1.3), (5.12), (5.13).
        """
        omega, turning, y, z = self._symbols()
        value = self.lagrangian(self.r, omega - connection @ y, y)
        pairs = (self.r, y), (omega, turning), (y, z)
        p, shape = ca.gradient(value, omega), ca.gradient(value, y)
        ad = self.ad(connection @ y)
        sign = -1.0 if printed else 1.0
        group = along(p, *pairs) + sign * (ad.T @ p - self.ad(omega).T @ p)
        bent = self.curvature(connection)
        turned = [
            sum(ca.dot(p, bent[i][j]) * y[j] for j in range(y.numel()))
            + ca.dot(p, self.ad(omega) @ connection[:, i])
            for i in range(y.numel())
        ]
        rest = along(shape, *pairs) - ca.gradient(value, self.r) + ca.vertcat(*turned)
        return ca.Function("f", [self.r, omega, y, turning, z], [group, rest])

    def principal(self, connection: ca.SX, sign: float = 1.0) -> ca.Function:
        """Left side from (r, rdot, rddot), u = 0; printed with the other sign of B.

        000: (4.9).
        """
        u, _, y, z = self._symbols()
        value = self.lagrangian(self.r, u - connection @ y, y)
        momenta, shape = ca.gradient(value, u), ca.gradient(value, y)
        bent = self.curvature(connection)
        turned = [
            sum(ca.dot(momenta, bent[i][j]) * y[j] for j in range(y.numel()))
            for i in range(y.numel())
        ]
        residual = along(shape, (self.r, y), (y, z)) - ca.gradient(value, self.r)
        residual = put(residual + sign * ca.vertcat(*turned), u, ca.SX.zeros(u.numel()))
        return ca.Function("f", [self.r, y, z], [residual])


def solve(left: Callable[[np.ndarray], np.ndarray], n: int, right: np.ndarray) -> np.ndarray:
    """Solve left(x) = right, linear in x."""
    rest = left(np.zeros(n))
    matrix = np.column_stack([left(unit) - rest for unit in np.eye(n)])
    return np.linalg.solve(matrix, right - rest)
