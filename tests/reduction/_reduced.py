"""Reduced quantities from the oracles alone: horizontal lift, mass matrix, momentum rate."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.integrate import solve_ivp

from concur.reduction import ReducedModel
from tests.oracles import Constrained, difference_quotient


class Reference:
    """Expected results of a reduced model, from hand-written rows and Pinocchio.

    Parameters
    ----------
    full : Constrained
        The full-order robot with its rows.
    shape, dependent : sequence of int
        Indices in v.
    """

    def __init__(self, full: Constrained, shape: Sequence[int], dependent: Sequence[int]) -> None:
        self.full = full
        self.shape, self.dependent = list(shape), list(dependent)

    def lift(self, q: np.ndarray) -> np.ndarray:
        rows = self.full.rows(q)
        lift = np.zeros((rows.shape[1], len(self.shape)))
        lift[self.shape] = np.eye(len(self.shape))
        lift[self.dependent] = -np.linalg.solve(rows[:, self.dependent], rows[:, self.shape])
        return lift

    def mass_matrix(self, q: np.ndarray) -> np.ndarray:
        lift = self.lift(q)
        return lift.T @ self.full.oracle.mass_matrix(q) @ lift

    def acceleration(self, q: np.ndarray, s: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """Shape acceleration by the multipliers."""
        vdot, _ = self.full.acceleration(q, self.lift(q) @ s, tau)
        return vdot[self.shape]

    def momentum_rate(self, q: np.ndarray, s: np.ndarray, tau: np.ndarray) -> np.ndarray:
        """d/dt (Mhat s): the mass matrix differenced along the motion, sdot by the multipliers."""
        qdot = self.full.oracle.rate(q, self.lift(q) @ s)
        turning = difference_quotient(lambda h: self.mass_matrix(q + h * qdot))
        return turning @ s + self.mass_matrix(q) @ self.acceleration(q, s, tau)

    def energy(self, q: np.ndarray, s: np.ndarray) -> float:
        oracle = self.full.oracle
        return oracle.kinetic_energy(q, self.lift(q) @ s) + oracle.potential_energy(q)


def torques(model: ReducedModel, u: np.ndarray) -> np.ndarray:
    """Put the controls at their places in v."""
    tau = np.zeros(model.nv)
    tau[list(model.robot.actuated_freedoms)] = u
    return tau


Law = Callable[[float, np.ndarray, np.ndarray], np.ndarray]


def simulate_momentum_form(
    model: ReducedModel, q0: np.ndarray, s0: np.ndarray, law: Law, times: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Integrate the reduced Hamilton equations under law(t, q, v) on v: q and p at the times."""
    drives = list(model.robot.actuated_freedoms)
    nq = model.nq

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        q, p = x[:nq], x[nq:]
        v = model.velocity(q, np.linalg.solve(model.mass_matrix(q), p))
        velocity, pdot = model.vector_field(q, p, law(t, q, v)[drives])
        return np.concatenate([model.robot.rate(q, velocity), pdot])

    return _integrate(rate, np.concatenate([q0, model.mass_matrix(q0) @ s0]), times, nq)


def simulate_acceleration_form(
    model: ReducedModel, q0: np.ndarray, s0: np.ndarray, law: Law, times: Sequence[float]
) -> tuple[np.ndarray, np.ndarray]:
    """Integrate shape velocities under law(t, q, v) on v: q and s at the times."""
    drives = list(model.robot.actuated_freedoms)
    nq = model.nq

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        q, s = x[:nq], x[nq:]
        v = model.velocity(q, s)
        return np.concatenate(
            [model.robot.rate(q, v), model.acceleration(q, s, law(t, q, v)[drives])]
        )

    return _integrate(rate, np.concatenate([q0, s0]), times, nq)


def _integrate(
    rate: Callable[[float, np.ndarray], np.ndarray],
    start: np.ndarray,
    times: Sequence[float],
    nq: int,
) -> tuple[np.ndarray, np.ndarray]:
    solution = solve_ivp(
        rate, (0.0, max(times)), start, method="DOP853", t_eval=times, rtol=1e-12, atol=1e-13
    )
    assert solution.success, solution.message
    return solution.y[:nq].T, solution.y[nq:].T
