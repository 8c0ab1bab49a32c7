"""Lagrange's and Hamilton's equations on products of two-spheres, literally as printed.

After T. Lee, M. Leok and N. H. McClamroch, "Global Formulations of Lagrangian and Hamiltonian
Mechanics on Two-Spheres", source 002. Directions q (3n,), all other vectors alike.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from tests.oracles._hamel import along, put


def parts(x: ca.SX) -> list[ca.SX]:
    """Vectors of the spheres."""
    return list(ca.vertsplit(x, 3))


def skews(x: ca.SX) -> ca.SX:
    """S(x_i) on the diagonal."""
    return ca.diagcat(*(ca.skew(v) for v in parts(x)))


def across(q: ca.SX) -> ca.SX:
    """I - q_i q_i^T on the diagonal."""
    return ca.diagcat(*(ca.SX.eye(3) - v @ v.T for v in parts(q)))


def normal(q: ca.SX, x: ca.SX) -> ca.SX:
    """q_i (q_i . x_i)."""
    return ca.vertcat(*(a * ca.dot(a, b) for a, b in zip(parts(q), parts(x), strict=True)))


def squares(x: ca.SX, q: ca.SX) -> ca.SX:
    """|x_i|^2 q_i."""
    return ca.vertcat(*(ca.sumsqr(a) * b for a, b in zip(parts(x), parts(q), strict=True)))


@dataclass(frozen=True, eq=False)
class Spheres:
    """Kinetic energy with scalars m_ij(q), a potential and forces on the directions (12).

    Parameters
    ----------
    q : casadi.SX
        Directions, shape (3 n,).
    masses : casadi.SX
        m_ij, shape (n, n).
    potential : casadi.SX
        U.
    force : casadi.SX
        f_i, shape (3 n,).
    """

    q: ca.SX
    masses: ca.SX
    potential: ca.SX
    force: ca.SX

    @property
    def blocks(self) -> ca.SX:
        """m_ij I."""
        return ca.kron(self.masses, ca.SX.eye(3))

    @property
    def matrix(self) -> ca.SX:
        """m_ii I and S(q_i)^T m_ij S(q_j): (18), (33)."""
        own = ca.diag(ca.diag(self.masses))
        turn = skews(self.q)
        return turn.T @ (self.blocks - ca.kron(own, ca.SX.eye(3))) @ turn + ca.kron(
            own, ca.SX.eye(3)
        )

    def lagrangian(self, v: ca.SX, slack: float = 0.0) -> ca.SX:
        """(12), and another extension off the constraint set."""
        q = self.q
        other = slack * ca.dot(q, v) * (1 + ca.sum1(q) + ca.sum1(ca.sin(v)))
        other += slack * sum(ca.sumsqr(x) - 1 for x in parts(q)) * ca.sumsqr(v)
        return v.T @ self.blocks @ v / 2 - self.potential + other

    def modified(self, w: ca.SX, slack: float = 0.0) -> ca.SX:
        """(18), and another extension."""
        other = slack * sum(
            ca.dot(a, b) * (1 + ca.sum1(ca.cos(w)))
            for a, b in zip(parts(self.q), parts(w), strict=True)
        )
        return w.T @ self.matrix @ w / 2 - self.potential + other

    def by_rates(self, slack: float = 0.0) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Lagrange's equations with the normal acceleration; rates and residual. 002: (9)-(11)."""
        v, a = ca.SX.sym("v", self.q.numel()), ca.SX.sym("a", self.q.numel())
        value = self.lagrangian(v, slack)
        rate = along(ca.gradient(value, v), (self.q, v), (v, a))
        residual = across(self.q) @ (rate - ca.gradient(value, self.q) - self.force)
        return v, a, residual + normal(self.q, a) + squares(v, self.q)

    def by_rates_quadratic(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """The same with scalar masses. 002: (12), (13), (49)."""
        q = self.q
        v, a = ca.SX.sym("v", q.numel()), ca.SX.sym("a", q.numel())
        own = ca.kron(ca.diag(ca.diag(self.masses)), ca.SX.eye(3))
        rest = self._slope(v) + ca.gradient(self.potential, q) - self.force
        residual = own @ a + across(q) @ (self.blocks - own) @ a + own @ squares(v, q)
        return v, a, residual + across(q) @ rest

    def _slope(self, v: ca.SX) -> ca.SX:
        """F_i below (13)."""
        moved = ca.jtimes(self.blocks @ v, self.q, v)
        return moved - ca.gradient(v.T @ self.blocks @ v, self.q) / 2

    def by_spins(self, slack: float = 0.0, factor: float = 2.0) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Lagrange's equations with the normal rate. 002: (14), (15), (17), (50)."""
        q, w, a = self.q, ca.SX.sym("w", self.q.numel()), ca.SX.sym("a", self.q.numel())
        value = self.modified(w, slack)
        momenta = ca.gradient(value, w)
        rate = along(momenta, (q, skews(w) @ q), (w, a))
        residual = across(q) @ (rate - factor * skews(w) @ momenta)
        residual -= skews(q) @ (ca.gradient(value, q) + self.force)
        return w, a, residual + normal(q, a)

    def by_spins_quadratic(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """The same with scalar masses, regular in R^3n. 002: (18), (19)."""
        q, n = self.q, self.q.numel()
        v, w, a = ca.SX.sym("v", n), ca.SX.sym("w", n), ca.SX.sym("a", n)
        own = ca.kron(ca.diag(ca.diag(self.masses)), ca.SX.eye(3))
        rest = put(self._slope(v), v, skews(w) @ q)
        rest += ca.gradient(self.potential, q) - self.force
        residual = self.matrix @ a + skews(q) @ (rest - (self.blocks - own) @ squares(w, q))
        return w, a, residual

    def by_mu(self) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Hamilton's equations: mu, and rates of q and mu. 002: (20)-(27)."""
        q, mu = self.q, ca.SX.sym("mu", self.q.numel())
        own = ca.kron(ca.diag(ca.diag(self.masses)), ca.SX.eye(3))
        matrix = across(q) @ (self.blocks - own) @ across(q) + own
        slope = ca.solve(matrix, mu)
        eta = ca.SX.sym("eta", q.numel())
        # Slope of mu^T m^I mu / 2 at fixed mu, without the derivative of an inverse.
        bent = -put(ca.gradient(eta.T @ matrix @ eta, q) / 2, eta, slope)
        bent += ca.gradient(self.potential, q)
        rate = -across(q) @ (bent - self.force) + skews(slope) @ skews(mu) @ q
        return mu, across(q) @ slope, rate

    def by_pi(self, shift: ca.SX | float = 0.0) -> tuple[ca.SX, ca.SX, ca.SX]:
        """Hamilton's equations: pi, and rates of q and pi.

        002: (28)-(37), (41), (42), (51)-(53).
        """
        q, pi = self.q, ca.SX.sym("pi", self.q.numel())
        slope = ca.solve(self.matrix, pi)
        eta = ca.SX.sym("eta", q.numel())
        bent = -put(ca.gradient(eta.T @ self.matrix @ eta, q) / 2, eta, slope)
        bent += ca.gradient(self.potential, q) + shift
        turned = skews(slope) @ pi
        return pi, -skews(q) @ slope, turned - skews(q) @ (bent - self.force)

    def multipliers(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """qddot in R^3n with |q_i| = 1 as constraints: independent of the forms above."""
        x, a = ca.SX.sym("v", self.q.numel()), ca.SX.sym("a", self.q.numel())
        value = self.lagrangian(x)
        residual = along(ca.gradient(value, x), (self.q, x), (x, a))
        residual -= ca.gradient(value, self.q) + self.force
        rest = put(residual, a, ca.SX.zeros(a.numel()))
        m, h = map(np.array, ca.Function("f", [self.q, x], [ca.jacobian(residual, a), rest])(q, v))
        n = len(q) // 3
        rows = np.zeros((n, len(q)))
        for i in range(n):
            rows[i, 3 * i : 3 * i + 3] = q[3 * i : 3 * i + 3]
        speeds = (v.reshape(n, 3) ** 2).sum(axis=1)
        matrix = np.block([[m, rows.T], [rows, np.zeros((n, n))]])
        return np.linalg.solve(matrix, -np.concatenate([h[:, 0], speeds]))[: len(q)]


def acceleration(
    form: tuple[ca.SX, ca.SX, ca.SX], q: ca.SX, at: np.ndarray, rate: np.ndarray
) -> np.ndarray:
    """Solve a form that is linear in the accelerations."""
    v, a, residual = form
    rest = put(residual, a, ca.SX.zeros(a.numel()))
    m, h = map(np.array, ca.Function("f", [q, v], [ca.jacobian(residual, a), rest])(at, rate))
    return np.linalg.solve(m, -h[:, 0])
