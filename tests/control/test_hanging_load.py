"""A load on cables below a thrust vector, against Newton's equations of masses and rigid bars.

The oracle has the positions of all masses in inertial axes and the bars as constraints with
multipliers: no directions, no flat output.
"""

from __future__ import annotations

import math
from math import factorial
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import concur as cc
from concur.control import HangingLoad
from concur.errors import ConcurError, DescriptionError

G = 9.81
MASSES, LENGTHS = (1.2, 0.3, 0.2, 0.5), (0.8, 0.6, 0.5)


def newton(
    masses: Any, lengths: Any, x: np.ndarray, v: np.ndarray, thrust: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Accelerations of the masses, (n + 1, 3), and tensions of the bars, (n,)."""
    n = len(lengths)
    bars = np.diff(x, axis=0) / np.asarray(lengths)[:, None]
    rows, right = np.zeros((n, 3 * n + 3)), np.zeros(n)
    for k in range(n):
        rows[k, 3 * k : 3 * k + 3], rows[k, 3 * k + 3 : 3 * k + 6] = -bars[k], bars[k]
        right[k] = -np.sum((v[k + 1] - v[k]) ** 2) / lengths[k]
    weights = np.repeat(masses, 3)
    force = np.tile([0.0, 0.0, -G], n + 1) * weights
    force[:3] += thrust
    inverse = rows / weights
    tensions = np.linalg.solve(inverse @ rows.T, inverse @ force - right)
    return ((force - rows.T @ tensions) / weights).reshape(-1, 3), tensions


def placed(lengths: Any, q: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions and velocities of the masses."""
    x, v = [q[:3]], [s[:3]]
    for k, length in enumerate(lengths):
        bar, turn = (part[3 + 3 * k : 6 + 3 * k] for part in (q, s))
        x.append(x[-1] + length * bar)
        v.append(v[-1] + length * np.cross(turn, bar))
    return np.array(x), np.array(v)


def directed(lengths: Any, x: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Configuration and velocities of the system for those of the masses."""
    bars, rates = (np.diff(part, axis=0) / np.asarray(lengths)[:, None] for part in (x, v))
    bars /= np.linalg.norm(bars, axis=1, keepdims=True)
    return np.concatenate([x[0], *bars]), np.concatenate([v[0], *np.cross(bars, rates)])


def path(t: Any) -> list[Any]:
    return [ca.sin(t), 0.5 * ca.cos(0.7 * t), 0.3 * ca.sin(0.5 * t)]


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_flat_map_obeys_newton(n: int) -> None:
    """Second differences of all positions, and the tension of the last cable with its rate."""
    masses, lengths = MASSES[: n + 1], LENGTHS[:n]
    law = HangingLoad(masses, lengths, path, rate=2.0)
    h, t = 1e-3, 0.9

    def at(time: float) -> tuple[np.ndarray, ...]:
        found = law.flat(law._wanted(time))
        return tuple(np.array(part)[:, 0] for part in found)

    here = at(t)
    x, v = placed(lengths, here[0], here[1])
    acceleration, tensions = newton(masses, lengths, x, v, here[2])
    near = [placed(lengths, *at(t + k * h)[:2]) for k in (-2, -1, 1, 2)]
    slope = (near[0][1] - 8 * near[1][1] + 8 * near[2][1] - near[3][1]) / (12 * h)
    np.testing.assert_allclose(slope, acceleration, atol=1e-7)
    moved = (near[0][0] - 8 * near[1][0] + 8 * near[2][0] - near[3][0]) / (12 * h)
    np.testing.assert_allclose(moved, v, atol=1e-8)
    assert here[3][0] == pytest.approx(tensions[-1], rel=1e-9)
    rates = (at(t + h)[3][:-1] - at(t - h)[3][:-1]) / (2 * h)
    np.testing.assert_allclose(rates, here[3][1:], atol=1e-4 * np.abs(here[3]).max())


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_error_decays_by_its_equation(n: int) -> None:
    """From rest beside the goal, e(t) = e(0) exp(-rt) sum of (rt)^k / k!, k up to 2n + 1."""
    masses, lengths, rate = MASSES[: n + 1], LENGTHS[:n], 2.5
    goal, offset = np.array([0.3, -0.2, 1.0]), np.array([0.6, 0.4, -0.3])
    law = HangingLoad(masses, lengths, lambda t: goal.tolist(), rate)
    graph = law.graph()
    state, count = 2 * n, n + 1

    def moving(t: float, values: np.ndarray) -> np.ndarray:
        x, v = (values[k : k + 3 * count].reshape(-1, 3) for k in (0, 3 * count))
        z = values[6 * count :]
        thrust, change, margin = (np.array(p)[:, 0] for p in graph(t, *directed(lengths, x, v), z))
        assert margin > 1e-3
        return np.concatenate([v.ravel(), newton(masses, lengths, x, v, thrust)[0].ravel(), change])

    load = goal + offset
    x0 = [load + np.array([0.0, 0.0, sum(lengths[k:])]) for k in range(count)]
    start = np.concatenate([np.ravel(x0), np.zeros(3 * count + state)])
    times = np.linspace(0.0, 4.0, 21)
    found = solve_ivp(moving, (0.0, 4.0), start, t_eval=times, rtol=1e-10, atol=1e-11).y
    error = found[3 * n : 3 * n + 3].T - goal
    series = sum((rate * times) ** k / factorial(k) for k in range(law.order))
    np.testing.assert_allclose(error, np.outer(np.exp(-rate * times) * series, offset), atol=2e-6)
    assert np.ptp(found[:3], axis=1).max() > 0.2  # the point moves


def test_a_run_of_the_product_is_that_of_the_masses(tmp_path: Path) -> None:
    law = HangingLoad(MASSES[:3], LENGTHS[:2], path, rate=3.0)
    q0, s0 = law.start()
    run = cc.simulate(law.system, law, law.reference, 1.0, q0, s0, dt=1e-3)
    graph = law.graph()

    def moving(t: float, values: np.ndarray) -> np.ndarray:
        x, v = values[:9].reshape(-1, 3), values[9:18].reshape(-1, 3)
        thrust, change, _ = (
            np.array(p)[:, 0] for p in graph(t, *directed(LENGTHS[:2], x, v), values[18:])
        )
        return np.concatenate(
            [v.ravel(), newton(MASSES[:3], LENGTHS[:2], x, v, thrust)[0].ravel(), change]
        )

    x0, v0 = placed(LENGTHS[:2], q0, s0)
    start = np.concatenate([x0.ravel(), v0.ravel(), np.zeros(4)])
    found = solve_ivp(moving, (0.0, 1.0), start, rtol=1e-11, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(
        placed(LENGTHS[:2], run.q[-1], run.v[-1])[0].ravel(), found[:9], atol=1e-7
    )
    assert np.abs(run.error).max() < 2e-3
    assert cc.control.tracking_law(law).export(tmp_path / "c", target="c")


def test_slack_cables_have_no_thrust() -> None:
    """Margins on both sides: a path that falls nearly, and more than, as a stone does."""
    for share, taut in ((0.98, True), (0.995, False)):
        law = HangingLoad([1.0, 0.5], [0.8], lambda t, a=share: [0.0, 0.0, -a * G * t**2 / 2], 2.0)
        q, s = law.start()
        tension = 0.5 * G * (1 - share)
        _, _, margin = law.graph()(0.0, q, s, [tension - 0.5 * G, 0.0])
        assert (float(margin) >= 1e-3) is taut
    law = HangingLoad([1.0, 0.5, 0.5], [0.8, 0.8], path, 2.0)
    for cosine, taut in ((0.02, True), (0.005, False)):
        bent = [0.0, 0.0, 0.0, 0.0, 0.0, -1.0, np.sqrt(1 - cosine**2), 0.0, -cosine]
        _, _, margin = law.graph()(0.0, bent, np.zeros(9), np.zeros(4))
        assert (float(margin) >= 1e-3) is taut
    with pytest.raises(ConcurError, match="singular"):
        cc.simulate(law.system, law, law.reference, 0.1, bent, np.zeros(9), dt=1e-3)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"masses": [1.0]}, "one more mass"),
        ({"masses": [1.0, -0.5]}, "above zero"),
        ({"lengths": []}, "one more mass"),
        ({"lengths": [0.0]}, "above zero"),
        ({"rate": 0.0}, "above zero"),
        ({"gravity": float("inf")}, "above zero"),
        ({"path": lambda t: [t, t]}, "three expressions"),
        ({"path": lambda t: [t, ca.SX.sym("a"), t]}, "three expressions"),
        ({"path": lambda t: [t, t, ca.SX.sym("a")]}, "depends on a"),
        ({"path": lambda _: ca.SX.sym("a", 3)}, "depends on a_0"),
        ({"path": [0.0, 0.0, 1.0]}, "a function from the time"),
        ({"path": lambda _: None}, "a function from the time"),
        ({"path": lambda t: [math.sin(t), 0.0, 0.0]}, "a finite place"),
        ({"path": cc.references.hold([0.0, 0.0])}, "a reference in R\\^3"),
        ({"path": cc.references.waypoints([0, 1, 2], np.eye(3))}, "a reference in R\\^3"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict[str, Any], text: str) -> None:
    given: dict[str, Any] = {"masses": [1.0, 0.5], "lengths": [0.8], "path": path, "rate": 2.0}
    with pytest.raises(DescriptionError, match=text):
        HangingLoad(**(given | change))


def test_a_path_may_be_a_column_and_arguments_are_checked() -> None:
    law = HangingLoad([1.0, 0.5], [0.8], lambda t: ca.vertcat(ca.sin(t), 0, 0), rate=2.0)
    rows = HangingLoad([1.0, 0.5], [0.8], lambda t: [ca.sin(t), 0, 0], rate=2.0)
    np.testing.assert_array_equal(law.start(0.3), rows.start(0.3))
    for call in (lambda: law.load([0.0, 0.0]), lambda: law.start("x"), lambda: law.start(np.nan)):  # type: ignore[arg-type, return-value]
        with pytest.raises(ConcurError, match="hanging load"):
            call()


def test_a_reference_is_a_path() -> None:
    wave = cc.references.polynomial([[0.0, 0.0, 1.0], [0.2, 0.0, 0.1]])
    law = HangingLoad([1.0, 0.5], [0.8], wave, 2.0)
    assert law.reference is wave
    np.testing.assert_allclose(np.array(law._wanted(2.0))[:, :2].T, [[0.4, 0, 1.2], [0.2, 0, 0.1]])
