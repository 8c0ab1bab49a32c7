"""Boltzmann-Hamel, Hamel and Voronets equations of one Lagrangian, literally as printed.

After A. Mueller, Proc. R. Soc. A 479 (2023), source 000, and J. Nonlinear Sci. (2021), source 003.
Derivatives are CasADi's. Coordinates q = (s, r), velocities u = A(q) qdot, the first ones zero
where they are constrained.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import casadi as ca
import numpy as np

Lagrangian = Callable[[ca.SX, ca.SX], ca.SX]
"""L from q and qdot."""


def coefficients(forms: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Hamel coefficients gamma[c, a, b] of A (n, n) and slopes[c, r, s] = dA_cr/dq_s.

    000: (2.5), (2.6), (2.11), (5.6)-(5.11); 003: (11), (12), (16)-(18), (42)-(55), (68)-(83),
    (125)-(135).
    """
    back = np.linalg.inv(forms)
    return np.einsum("crs,ra,sb->cab", slopes - slopes.transpose(0, 2, 1), back, back)


def slopes(expression: ca.SX, q: ca.SX, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Matrix (n, m) at a point, and its slopes (n, m, nq)."""
    n, m = expression.shape
    both = ca.Function("f", [q], [expression, ca.jacobian(ca.vec(expression.T), q)])(at)
    return np.array(both[0]), np.array(both[1]).reshape(n, m, q.numel())


def structure(ad: Callable[[np.ndarray], np.ndarray], n: int) -> np.ndarray:
    """Constants c[k, i, j] = [E_i, E_j]_k. 000: (2.7); 003: (8), (9), (15), (163)-(166)."""
    return np.stack([ad(unit) for unit in np.eye(n)], axis=1)


def put(f: ca.SX, x: ca.SX, value: ca.SX) -> ca.SX:
    """f with a value for a variable."""
    return ca.substitute(f, x, ca.densify(value))


def along(f: ca.SX, *pairs: tuple[ca.SX, ca.SX]) -> ca.SX:
    """Rate of f when each variable moves with its rate."""
    return sum(ca.jtimes(f, x, rate) for x, rate in pairs)


@dataclass(frozen=True, eq=False)
class Split:
    """A Lagrangian in q = (s, r) with u = A1(q) sdot + A2(q) rdot.

    Parameters
    ----------
    s, r : casadi.SX
        Coordinates of the fibre and of the shape.
    lagrangian : callable
        L from q and qdot.
    first, second : casadi.SX
        A1 (m, m) and A2 (m, nr), (3.1)/(26).
    force : casadi.SX
        Generalized force on qdot, shape (m + nr,).
    """

    s: ca.SX
    r: ca.SX
    lagrangian: Lagrangian
    first: ca.SX
    second: ca.SX
    force: ca.SX

    @property
    def q(self) -> ca.SX:
        return ca.vertcat(self.s, self.r)

    @property
    def forms(self) -> ca.SX:
        """A. 000: (2.1), (2.2); 003: (1)-(6)."""
        nr = self.r.numel()
        lower = ca.horzcat(ca.SX(nr, self.s.numel()), ca.SX.eye(nr))
        return ca.vertcat(ca.horzcat(self.first, self.second), lower)

    @property
    def back(self) -> ca.SX:
        """B = A^-1. 000: (2.1), (2.2); 003: (1)-(6)."""
        nr, inverse = self.r.numel(), ca.solve(self.first, ca.SX.eye(self.s.numel()))
        lower = ca.horzcat(ca.SX(nr, self.s.numel()), ca.SX.eye(nr))
        return ca.vertcat(ca.horzcat(inverse, -inverse @ self.second), lower)

    @property
    def connection(self) -> ca.SX:
        """A1^-1 A2."""
        return -self.back[: self.s.numel(), self.s.numel() :]

    @property
    def lift(self) -> ca.SX:
        """F: qdot = F rdot."""
        return ca.vertcat(-self.connection, ca.SX.eye(self.r.numel()))

    @property
    def pulled(self) -> ca.SX:
        """Force on rdot: B^a_I Q_a."""
        return self.lift.T @ self.force

    def normalized(self) -> Split:
        """The same constraints with A1 = I. 000: (3.8)-(3.11)."""
        unit = ca.SX.eye(self.s.numel())
        return Split(self.s, self.r, self.lagrangian, unit, self.connection, self.force)

    def curvature(self, mixed: bool = True) -> list[ca.SX]:
        """gamma^alpha_IJ as one (nr, nr) matrix for each alpha.

        Without mixed terms: the last line, which is missing in print in source 003.

        000: (3.1)-(3.5); 003: (7), (25)-(33), (37), (38).
        """
        s, r = self.s, self.r
        ns, nr = s.numel(), r.numel()
        lift = self.lift[:ns, :]
        found = []
        for a in range(ns):
            own, shape = self.first[a, :].T, self.second[a, :].T
            dshape = ca.jacobian(shape, r)
            turned = ca.jacobian(own, s)
            total = dshape - dshape.T + lift.T @ (turned - turned.T) @ lift
            if mixed:
                cross = ca.jacobian(shape, s) - ca.jacobian(own, r).T
                total += cross @ lift - (cross @ lift).T
            found.append(total)
        assert found[0].shape == (nr, nr)
        return found


class Forms:
    """Accelerations rddot of a `Split` at u = 0, by each formulation.

    Every method returns a residual that is linear in rddot, as an expression of (q, rdot, rddot).
    """

    def __init__(self, split: Split) -> None:
        self.split = split
        self.y = ca.SX.sym("rdot", split.r.numel())
        self.z = ca.SX.sym("rddot", split.r.numel())

    def acceleration(self, residual: ca.SX, q: np.ndarray, rdot: np.ndarray) -> np.ndarray:
        """Solve a residual for rddot."""
        mass = ca.jacobian(residual, self.z)
        rest = put(residual, self.z, ca.SX.zeros(self.z.numel()))
        both = ca.Function("f", [self.split.q, self.y], [mass, rest])(q, rdot)
        return np.linalg.solve(np.array(both[0]), -np.array(both[1])[:, 0])

    def _turned(self, gammas: list[ca.SX], momenta: ca.SX) -> ca.SX:
        """p_alpha gamma^alpha_IJ rdot^J."""
        return sum(momenta[a] * (gamma @ self.y) for a, gamma in enumerate(gammas))

    def hamel(self) -> ca.SX:
        """Hamel's equations, the coefficients contracted and u = 0 after differentiation.

        000: (2.8)-(2.10), (2.12); 003: (20)-(24).
        """
        system, n, ns = self.split, self.split.q.numel(), self.split.s.numel()
        full = boltzmann_hamel(system.q, system.lagrangian, system.forms, system.back)
        rates = ca.vertcat(ca.SX.zeros(ns), self.y), ca.vertcat(ca.SX.zeros(ns), self.z)
        residual = full(*rates) - system.back.T @ system.force
        assert residual.numel() == n
        return residual[ns:]

    def holonomic(self, slope: bool = True, factor: bool = True, mixed: bool = True) -> ca.SX:
        """Hamel's equations with u on the fibre, rdot on the shape.

        Printed without the derivative along s and, for A1 other than I, with dL/dsdot for dL/du.

        000: (3.6), (3.7), (3.12), (3.13); 003: (34)-(36).
        """
        system, ns = self.split, self.split.s.numel()
        u = ca.SX.sym("u", ns)
        b1, b2 = system.back[:ns, :ns], system.back[:ns, ns:]
        sdot = b1 @ u + b2 @ self.y
        lagrangian = system.lagrangian(system.q, ca.vertcat(sdot, self.y))
        own = ca.gradient(lagrangian, self.y)
        momenta = ca.gradient(lagrangian, u)
        if not factor:
            momenta = system.first.T @ momenta
        residual = self._along(own, u) - ca.gradient(lagrangian, system.r)
        if slope:
            residual -= b2.T @ ca.gradient(lagrangian, system.s)
        residual += self._turned(system.curvature(mixed), momenta) - system.pulled
        return put(residual, u, ca.SX.zeros(ns))

    def constrained_lagrangian(self, momentum: bool = True) -> ca.SX:
        """Residual with A1 = I and the constraints put in first; printed with dL/ds for dL/dsdot.

        000: (3.14); 003: (34)-(36).
        """
        system = self.split.normalized()
        ns = system.s.numel()
        qdot = system.lift @ self.y
        lagrangian = system.lagrangian(system.q, qdot)
        x = ca.SX.sym("qdot", system.q.numel())
        free = system.lagrangian(system.q, x)
        slope = ca.gradient(free, x)[:ns] if momentum else ca.gradient(free, system.s)
        momenta = put(slope, x, qdot)
        return (
            self._along(ca.gradient(lagrangian, self.y))
            - ca.gradient(lagrangian, system.r)
            + system.connection.T @ ca.gradient(lagrangian, system.s)
            + self._turned(system.curvature(), momenta)
            - system.pulled
        )

    def voronets(self, sign: float = -1.0) -> ca.SX:
        """Projected Lagrange equations; printed with the other sign in source 000.

        000: (3.15); 003: (34)-(36).
        """
        system, ns = self.split, self.split.s.numel()
        qdot = system.lift @ self.y
        qddot = system.lift @ self.z + along(qdot, (system.q, qdot))
        residual = lagrange(system.q, system.lagrangian, qdot, qddot)
        return residual[ns:] + sign * system.connection.T @ residual[:ns] - system.pulled

    def _along(self, f: ca.SX, u: ca.SX | None = None) -> ca.SX:
        """d/dt along the constrained motion; u, where it is still a variable, stays zero."""
        return along(f, (self.split.q, self.split.lift @ self.y), (self.y, self.z))

    def multipliers(self, q: np.ndarray, rdot: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """rddot, and the multipliers of u = 0."""
        system, n = self.split, self.split.q.numel()
        x, a = ca.SX.sym("qdot", n), ca.SX.sym("qddot", n)
        residual = lagrange(system.q, system.lagrangian, x, a) - system.force
        rows = ca.horzcat(system.first, system.second)
        turning = along(rows @ x, (system.q, x))
        mass = ca.jacobian(residual, a)
        rest = put(residual, a, ca.SX.zeros(n))
        lift = ca.Function("f", [system.q], [system.lift])(q)
        values = ca.Function("f", [system.q, x], [mass, rest, rows, turning])(q, lift @ rdot)
        m, h, c, e = map(np.array, values)
        k = len(c)
        matrix = np.block([[m, c.T], [c, np.zeros((k, k))]])
        found = np.linalg.solve(matrix, -np.concatenate([h, e])[:, 0])
        return found[k:n], found[n:]


def lagrange(q: ca.SX, lagrangian: Lagrangian, qdot: ca.SX, qddot: ca.SX) -> ca.SX:
    """Euler-Lagrange expression d/dt dL/dqdot - dL/dq. Thesis: (3.1.2)."""
    x = ca.SX.sym("x", q.numel())
    value = lagrangian(q, x)
    momenta = ca.gradient(value, x)
    residual = ca.jtimes(momenta, q, x) - ca.gradient(value, q)
    residual = put(residual, x, qdot)
    mass = put(ca.jacobian(momenta, x), x, qdot)
    return residual + mass @ qddot


def boltzmann_hamel(
    q: ca.SX, lagrangian: Lagrangian, forms: ca.SX, back: ca.SX
) -> Callable[[ca.SX, ca.SX], ca.SX]:
    """Left side as a function of u and udot, the coefficients contracted.

    000: (2.3), (2.4); 003: (10), (13), (14), (19), (86)-(93), (96)-(113), (115)-(124).
    """
    n = q.numel()
    u, udot = ca.SX.sym("u", n), ca.SX.sym("udot", n)
    value = lagrangian(q, back @ u)
    momenta = ca.gradient(value, u)
    qdot = back @ u
    fixed, rate = ca.SX.sym("p", n), ca.SX.sym("x", n)
    # gamma^b_ac p_b u^c = B^T [d(A^T p)/dq qdot - d(p^T A qdot)/dq], p and qdot held.
    turned = ca.jtimes(forms.T @ fixed, q, rate) - ca.gradient(fixed.T @ forms @ rate, q)
    turned = put(turned, ca.vertcat(fixed, rate), ca.vertcat(momenta, qdot))
    residual = along(momenta, (q, qdot), (u, udot)) - back.T @ ca.gradient(value, q)
    residual += back.T @ turned

    def at(velocities: ca.SX, rates: ca.SX) -> ca.SX:
        return put(residual, ca.vertcat(u, udot), ca.vertcat(velocities, rates))

    return at
