"""Every term of the equations at constant momentum counts: each left out, the end is another.

The equations are put together in NumPy from Pinocchio's matrices. The driven case study of
section 3.4 is run for one second without one term; the errors at the end are known from a
computation outside this package.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import concur as cc
from tests.oracles import assert_close
from tests.reduction._floaters import Formulas

CASE_MU = np.array([0.0, 20.0, 0.0, 5.0, 0.0, 0.0])
CASE_S = np.array([0.2, -0.1, 0.15, 0.3, -0.25, 0.2])
CASE_Q = np.concatenate(
    [
        [0.303953439892, 0.1, -0.260597470346],
        [0.061561950373, 0.108071193922, -0.131125270051, 0.983532870251],
        [0.093306593773, -0.226566306890, 0.210983826856, 0.946280831966],
        [0.6, -0.7, 0.8],
    ]
)
CASE_END = np.array(
    [
        2.825182444024,
        -0.374691119448,
        0.697614561068,
        2.007474877621,
        0.020075230351,
        0.383059987731,
    ]
)
"""phat after one second of the driven case study, from a simulation at full order."""


def _case_torque(t: float) -> np.ndarray:
    sines = 0.5 * np.sin(t), 0.3 * np.sin(1.5 * t), -0.15 * np.sin(2 * t), 0.1 * np.sin(3 * t)
    return np.array([sines[0], -0.4 * np.cos(2 * t), sines[1], 0.2 * np.cos(t), *sines[2:]])


@pytest.fixture(scope="module")
def case_study() -> Formulas:
    return Formulas(cc.robots.two_handed_spacecraft())


def _end(formulas: Formulas, weights: dict[str, float]) -> np.ndarray:
    """Reduced momentum after a second, with weights other than one on some terms."""
    full, nq = formulas.full, len(CASE_Q)

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        q, pi, p = np.split(x, [nq, nq + 6])
        locked, connection, metric = full.blocks(q)
        s = np.linalg.solve(metric, p)
        v = np.concatenate([np.linalg.solve(locked, pi) - connection @ s, s])
        terms = formulas.terms(q, pi, p)
        pdot = sum(weights.get(name, 1.0) * term for name, term in terms.items())
        body_rate = weights.get("Pidot", 1.0) * formulas.body_rate(q, pi, p)
        return np.concatenate([full.rate(q, v), body_rate, pdot + _case_torque(t)])

    start = [CASE_Q, full.body_momentum(CASE_Q, CASE_MU), full.blocks(CASE_Q)[2] @ CASE_S]
    solution = solve_ivp(
        rate, (0.0, 1.0), np.concatenate(start), method="DOP853", rtol=1e-9, atol=1e-10
    )
    return solution.y[nq + 6 :, -1]


def test_all_terms_together_reach_the_printed_state(case_study: Formulas) -> None:
    assert_close(_end(case_study, {}), CASE_END, 1e-8)


@pytest.mark.by_default(4)
@pytest.mark.parametrize(
    ("term", "weight", "error"),
    [
        ("dM11", 0.0, 0.51),
        ("D_u A", 0.0, 1.04),
        ("A[s, e]", 0.0, 0.61),
        ("[As, Ae]", 0.0, 0.23),
        ("[As, Ae]", -1.0, 0.46),
        ("ad*_s p", 0.0, 0.46),
        ("ad*_a Pi", 0.0, 0.53),
        ("Pidot", -1.0, 0.09),
    ],
)
def test_a_term_left_out_is_seen(
    case_study: Formulas, term: str, weight: float, error: float
) -> None:
    found = np.abs(_end(case_study, {term: weight}) - CASE_END).max()
    assert found == pytest.approx(error, abs=0.006)
