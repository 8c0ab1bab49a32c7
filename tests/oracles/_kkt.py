"""Wheeled robots at full order: one-forms by hand, reactions as multipliers of a KKT system."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy.integrate import solve_ivp

from tests.oracles._pinocchio import Pinocchio

Rows = Callable[[np.ndarray], np.ndarray]
Law = Callable[[float, np.ndarray, np.ndarray], np.ndarray]

_COMPLEX_STEP = 1e-40


def rover_rows(b: float, c: float) -> Rows:
    """Return the one-forms w1, w2, w3 of Example 4.6.1 as rows on v, wheels third and fourth.

    Parameters
    ----------
    b, c : float
        Radius of the wheels and half their distance, m.
    """

    def rows(q: np.ndarray) -> np.ndarray:
        cos, sin = np.cos(q[2]), np.sin(q[2])
        forms = np.zeros((3, len(q)), dtype=q.dtype)
        forms[0, :2] = -sin, cos
        forms[1, [0, 1, 2, 3]] = cos, sin, -c, -b
        forms[2, [0, 1, 2, 4]] = cos, sin, c, -b
        return _on_body_velocity(forms, q)

    return rows


def crane_rows(l: float, b: float, c: float) -> Rows:
    """Return the one-forms w1..w4 of Example 4.6.2 as rows on v.

    The order of q is (x, y, theta, psi1, phi1, psi2, psi3, phi2).

    Parameters
    ----------
    l, b, c : float
        Wheelbase, radius of the wheels and half their distance, m.
    """

    def rows(q: np.ndarray) -> np.ndarray:
        theta, psi1 = q[2], q[3]
        cos, sin = np.cos(theta + psi1), np.sin(theta + psi1)
        forms = np.zeros((4, len(q)), dtype=q.dtype)
        forms[0, :2] = -np.sin(theta), np.cos(theta)
        forms[1, :3] = -sin, cos, l * np.cos(psi1)
        forms[2, [0, 1, 2, 3, 5]] = cos, sin, l * np.sin(psi1) - c, -c, -b
        forms[3, [0, 1, 2, 3, 6]] = cos, sin, l * np.sin(psi1) + c, c, -b
        return _on_body_velocity(forms, q)

    return rows


def car_rows(l: float, b: float, c: float, nv: int) -> Rows:
    """Return rows of a car with front steering: steering and wheels third to fifth.

    Parameters
    ----------
    l, b, c : float
        Wheelbase, radius of the wheels and half their distance, m.
    nv : int
        Number of velocities.
    """

    def rows(q: np.ndarray) -> np.ndarray:
        cos, sin = np.cos(q[3]), np.sin(q[3])
        forms = np.zeros((4, nv), dtype=q.dtype)
        forms[0, 1] = 1.0
        forms[1, :3] = -sin, cos, l * cos
        forms[2, :5] = cos, sin, l * sin - c, -c, -b
        forms[3, [0, 1, 2, 3, 5]] = cos, sin, l * sin + c, c, -b
        return forms

    return rows


def mecanum_rows(lx: float, ly: float, b: float, nv: int) -> Rows:
    """Return rows of four mecanum wheels: front left, front right, rear left, rear right.

    The front left one rolls with b psi' = vx - vy - (lx + ly) w; their spins are the third to
    sixth velocities.

    Parameters
    ----------
    lx, ly, b : float
        Half the distances of the wheels along x and y, and their radius, m.
    nv : int
        Number of velocities.
    """
    reach = lx + ly

    def rows(q: np.ndarray) -> np.ndarray:
        forms = np.zeros((4, nv), dtype=q.dtype)
        forms[:, :3] = [[1, -1, -reach], [1, 1, reach], [1, 1, -reach], [1, -1, reach]]
        forms[:, 3:7] = -b * np.eye(4)
        return forms

    return rows


def trailer_rows(b: float, c: float, hitches: Sequence[float], axles: Sequence[float]) -> Rows:
    """Return rows of a tractor on two wheels and its trailers: their angles fifth and on.

    Parameters
    ----------
    b, c : float
        Radius of the wheels and half their distance, m.
    hitches : sequence of float
        How far each hitch is behind the axle in front of it, m.
    axles : sequence of float
        How far the axle of each trailer is behind its own hitch, m.
    """

    def rows(q: np.ndarray) -> np.ndarray:
        nv = 5 + len(axles)
        forms = np.zeros((3 + len(axles), nv), dtype=q.dtype)
        forms[0, 1] = 1.0
        forms[1, [0, 2, 3]] = 1.0, -c, -b
        forms[2, [0, 2, 4]] = 1.0, c, -b
        heading = q[2] * 0.0
        moves = np.zeros((2, nv), dtype=q.dtype)  # of the axle in front, in the tractor's axes
        moves[:, :2] = np.eye(2)
        turns = np.zeros(nv, dtype=q.dtype)
        turns[2] = 1.0
        for k, (hitch, axle) in enumerate(zip(hitches, axles, strict=True)):
            across = np.array([-np.sin(heading), np.cos(heading)])
            moves = moves - hitch * np.outer(across, turns)
            heading = heading + q[5 + k]
            turns = turns.copy()
            turns[5 + k] = 1.0
            across = np.array([-np.sin(heading), np.cos(heading)])
            moves = moves - axle * np.outer(across, turns)
            forms[3 + k] = across @ moves
        return forms

    return rows


def sleigh_rows(a: float) -> Rows:
    """Return the row of a sleigh whose skate is at (a, 0) of the base frame.

    Parameters
    ----------
    a : float
        Place of the skate, m.
    """

    def rows(q: np.ndarray) -> np.ndarray:
        return np.array([[0.0, 1.0, a]], dtype=q.dtype)

    return rows


def snakeboard_rows(l: float) -> Rows:
    """Return rows of two skates that steer, at (l, 0) and (-l, 0): angles fourth and fifth.

    Parameters
    ----------
    l : float
        Half the distance of the skates, m.
    """

    def rows(q: np.ndarray) -> np.ndarray:
        forms = np.zeros((2, 6), dtype=q.dtype)
        for row, (angle, place) in enumerate(((q[4], l), (q[5], -l))):
            forms[row, :3] = -np.sin(angle), np.cos(angle), place * np.cos(angle)
        return forms

    return rows


def _on_body_velocity(forms: np.ndarray, q: np.ndarray) -> np.ndarray:
    """From (dx, dy, ...) to (vx, vy, ...) in the axes of the base."""
    cos, sin = np.cos(q[2]), np.sin(q[2])
    rows = forms.copy()
    rows[:, 0] = cos * forms[:, 0] + sin * forms[:, 1]
    rows[:, 1] = -sin * forms[:, 0] + cos * forms[:, 1]
    return rows


class Constrained:
    """Full-order dynamics under rows C(q) v = 0.

    M vdot + bias = tau + C^T lam and C vdot = -Cdot v; M and bias are Pinocchio's, Cdot is a
    complex step through rows written by hand.

    Parameters
    ----------
    oracle : Pinocchio
        The robot without wheels' contacts.
    rows : callable
        q (nq,), possibly complex, to C (f, nv).

    Thesis: (4.1.1), (4.1.4), (4.1.7), (4.2.9), (4.2.15).
    """

    def __init__(self, oracle: Pinocchio, rows: Rows) -> None:
        self.oracle = oracle
        self.rows = rows

    def turning(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Cdot v, shape (f,)."""
        moved = q + 1j * _COMPLEX_STEP * self.oracle.rate(q, v)
        return self.rows(moved).imag @ v / _COMPLEX_STEP

    def acceleration(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Acceleration vdot (nv,) and reactions lam (f,)."""
        q, v = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
        rows = self.rows(q)
        f = len(rows)
        matrix = np.block([[self.oracle.mass_matrix(q), rows.T], [rows, np.zeros((f, f))]])
        right = np.concatenate([tau - self.oracle.bias(q, v), -self.turning(q, v)])
        solution = np.linalg.solve(matrix, right)
        return solution[: len(v)], -solution[len(v) :]

    def simulate(
        self, q0: Sequence[float], v0: Sequence[float], law: Law, times: Sequence[float]
    ) -> tuple[np.ndarray, np.ndarray]:
        """States (k, nq) and (k, nv) at times, from (q0, v0) at time 0 under law(t, q, v)."""
        nq = len(q0)

        def rate(t: float, x: np.ndarray) -> np.ndarray:
            q, v = x[:nq], x[nq:]
            return np.concatenate(
                [self.oracle.rate(q, v), self.acceleration(q, v, law(t, q, v))[0]]
            )

        solution = solve_ivp(
            rate,
            (0.0, max(times)),
            np.concatenate([q0, v0]),
            method="DOP853",
            t_eval=times,
            rtol=1e-12,
            atol=1e-13,
        )
        assert solution.success, solution.message
        return solution.y[:nq].T, solution.y[nq:].T
