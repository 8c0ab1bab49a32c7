"""Certificates of directions: attacked by search, with verdicts that motions show.

The oracle is a point on a sphere with a spring and a damper to its goal, in inertial axes without
normals, logarithms or B, integrated by SciPy.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import concur as cc
from concur.certify import Certificate, Status, certify
from concur.checker import recheck
from concur.control import ErrorDynamics
from concur.outputs.groups import Direction
from tests.certify._stored import write
from tests.outputs.test_directions import made

TIMES = np.linspace(0.0, 1.0, 21)
ONE = np.eye(2)


def loop(kp: float, kd: float, inertia: float = 1.0) -> ErrorDynamics:
    return ErrorDynamics(Direction(), kp * ONE, kd * ONE, inertia * ONE)


def points(
    angles: np.ndarray, speeds: np.ndarray, kp: float, kd: float, times: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Angle to the goal, its rate and the speed across, each (n, k), of n points.

    Each starts at its angle with its velocity (n, 2), away from the goal and across; kp and kd are
    per unit of inertia.
    """
    goal = np.array([0.0, 0.0, 1.0])
    start = np.zeros((6, len(angles)))
    start[0], start[2] = np.sin(angles), np.cos(angles)
    start[3], start[5] = speeds[:, 0] * np.cos(angles), -speeds[:, 0] * np.sin(angles)
    start[4] = speeds[:, 1]

    def slope(_: float, flat: np.ndarray) -> np.ndarray:
        d, rate = flat.reshape(2, 3, -1)
        across = goal[:, None] - d[2] * d
        sine = np.linalg.norm(across, axis=0)
        force = kp * np.arctan2(sine, d[2]) / np.maximum(sine, 1e-300) * across - kd * rate
        return np.concatenate([rate, force - np.sum(rate * rate, axis=0) * d]).ravel()

    flat = solve_ivp(slope, times[[0, -1]], start.ravel(), "DOP853", times, rtol=1e-9, atol=1e-11)
    d, rate = np.moveaxis(flat.y.reshape(2, 3, len(angles), -1), 1, 0).swapaxes(0, 1)
    across = goal[:, None, None] - d[2] * d
    sine = np.linalg.norm(across, axis=0)
    away = -np.sum(rate * across, axis=0) / np.maximum(sine, 1e-300)
    sideways = np.sqrt(np.maximum(np.sum(rate * rate, axis=0) - away**2, 0.0))
    return np.arctan2(sine, d[2]), away, sideways


class Attack:
    """Starts in the region of a certificate of one direction, and what its claim says of them."""

    def __init__(self, found: Certificate) -> None:
        (part,) = found.parts
        assert part.P is not None
        self.part, self.rate, self.level, self.angle = part, part.rate, part.level, part.angle
        self.kp, self.kd, self.inertia = (
            gain[0, 0]
            for gain in (part.channel.stiffness, part.channel.damping, part.channel.inertia)
        )
        # The form, of rotation vectors to the goal and of angular velocities, which turn away.
        np.testing.assert_array_equal(part.P, np.kron(part.P[::2, ::2], ONE))
        self.form = part.P[::2, ::2]

    def starts(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of numbers in 0 to 1, (n, 3): size of V_L, share of the spring, direction."""
        size, spring, turn = shares.T
        energy = 2.0 * self.level * size
        angles = np.sqrt(energy * spring / self.kp)
        speed = np.sqrt(energy * (1.0 - spring) / self.inertia)
        way = np.pi * turn
        return angles, speed[:, None] * np.column_stack([np.cos(way), np.sin(way)])

    def worst(self, rate: float | None = None) -> tuple[float, float]:
        """Largest growth of V exp(2 rate t), and largest angle, that a search finds."""
        grid = np.linspace(0.02, 0.999, 9)
        sizes, springs, turns = np.meshgrid([0.01, 0.3, 0.999], grid, np.linspace(0, 1, 9))
        shares = np.column_stack([sizes.ravel(), springs.ravel(), turns.ravel()])
        rng, growth, widest = np.random.default_rng(0), -np.inf, 0.0
        for round_ in range(4):
            grown, angles = self.follow(shares, self.rate if rate is None else rate)
            growth, widest = max(growth, grown.max()), max(widest, angles.max())
            best = np.concatenate([shares[np.argsort(-of)[:6]] for of in (grown, angles)])
            near = best[:, None] + rng.normal(size=(len(best), 12, 3)) * 0.1 / 2**round_
            shares = np.clip(near.reshape(-1, 3), [1e-3, 1e-3, 0.0], [0.9999, 0.9999, 1.0])
        return growth, widest

    def follow(self, shares: np.ndarray, rate: float) -> tuple[np.ndarray, np.ndarray]:
        angles, speeds = self.starts(shares)
        kp, kd = self.kp / self.inertia, self.kd / self.inertia
        angle, away, sideways = points(angles, speeds, kp, kd, TIMES)
        # x points to the goal, and the velocity error away from it is minus along x.
        (a, c), (_, b) = self.form
        V = a * angle**2 - 2 * c * angle * away + b * (away**2 + sideways**2)
        grown = V[:, 1:] * np.exp(2 * rate * TIMES[1:]) / V[:, :1]
        return grown.max(axis=1), angle.max(axis=1)


LOOPS = {"critical": (9.0, 6.0, 1.0), "underdamped": (8.0, 2.0, 0.5), "overdamped": (2.0, 9.0, 1.5)}


# By default each loop at the largest angle, and one at each angle.
CLAIMS = [(loop, 3.1) for loop in LOOPS] + [("critical", angle) for angle in (0.5, 1.9)]
CLAIMS += [(loop, angle) for loop in ("underdamped", "overdamped") for angle in (0.5, 1.9)]


@pytest.mark.by_default(3)
@pytest.mark.parametrize(("name", "angle"), CLAIMS)
def test_the_certificate_holds_against_attacks(name: str, angle: float) -> None:
    """A search finds no start that leaves the region or decays slower; for false claims it does."""
    dynamics = loop(*LOOPS[name])
    found = certify(dynamics, angle=angle)
    assert found.status is Status.PROVED
    fastest = -np.linalg.eigvals(dynamics.matrix).real.max()
    assert 0.98 * fastest < found.rate <= fastest
    attack = Attack(found)
    growth, widest = attack.worst()
    assert growth <= 1.0 + 1e-6
    assert widest < angle
    # The same search shows a rate above the true one to be wrong, and a region that is too large.
    assert attack.worst(1.02 * fastest)[0] > 1.0 + 1e-4
    attack.level *= 1.1
    assert attack.worst()[1] > angle


def test_a_form_that_does_not_decay_is_found_by_the_attack() -> None:
    """V_L itself, whose rate is zero at velocities of zero."""
    found = certify(loop(9.0, 6.0), angle=1.9)
    assert found.parts[0].P is not None
    energy = np.kron(np.diag([9.0, 1.0]), ONE)
    attack = Attack(replace(found, parts=(replace(found.parts[0], P=energy),)))
    assert attack.worst()[0] > 1.1
    assert attack.worst(0.0)[0] <= 1.0 + 1e-6


FORGED = {
    "rate": lambda c: {"rate": 3.0 + 1e-9},
    "region": lambda c: {"bound": c["bound"] * (1 + 1e-9)},
    "form": lambda c: {"P": np.kron(np.diag([9.0, 1.0]), ONE).tolist()},
}


@pytest.mark.parametrize("angle", [0.5, 1.9, 3.1])
@pytest.mark.parametrize("change", FORGED)
def test_forged_certificates_are_refused(angle: float, change: str, tmp_path: Path) -> None:
    law = made("pendulum")
    path = tmp_path / "proof.json"
    certify(law, angle=angle).save(path)
    assert recheck(path, law).status is Status.PROVED
    document = json.loads(path.read_text())
    (own,) = document["channels"]
    own |= FORGED[change](own)
    document["rate"] = own["rate"]
    assert recheck(write(path, document), law).status is not Status.PROVED


@pytest.mark.parametrize(
    ("kp", "kd", "refuted"),
    [
        (9.0, -0.5, True),
        (-1.0, 6.0, True),
        (9.0, 0.0, True),
        (9.0, 0.01, False),
        (0.01, 6.0, False),
    ],
)
def test_refuted_loops_have_a_motion_that_does_not_decay(
    kp: float, kd: float, refuted: bool, tmp_path: Path
) -> None:
    """The slowest motion of the linearised loop, followed on the sphere, has its rate."""
    dynamics = loop(kp, kd)
    found = certify(dynamics, angle=1.0)
    found.save(tmp_path / "found.json")
    assert found.status is (Status.REFUTED if refuted else Status.PROVED)
    assert recheck(tmp_path / "found.json") is found.status
    values, vectors = np.linalg.eig([[0.0, -1.0], [kp, -kd]])
    slowest = values[np.argmax(values.real)]
    slope = (vectors[1] / vectors[0])[np.argmax(values.real)]
    # After a turn of the oscillation the same direction: only the size has changed.
    times = np.linspace(0.0, 2 * np.pi / abs(slowest.imag) if slowest.imag else 3.0, 9)
    # A velocity error along x is a motion to the goal.
    first = np.array([1e-3]), -1e-3 * np.array([[slope.real, 0.0]])
    angle, away, _ = points(*first, kp, kd, times)
    size = np.hypot(angle[0], away[0])
    assert np.log(size[-1] / size[0]) == pytest.approx(slowest.real * times[-1], abs=1e-4)
    assert (size[-1] > (1 - 1e-6) * size[0]) == refuted


def test_what_is_not_decided_is_undecided(tmp_path: Path) -> None:
    """Gains along normals that jump, the thesis's theorem, and torques that may reach a limit."""
    slanted = ErrorDynamics(Direction(), np.diag([9.0, 8.0]), 6 * ONE, ONE)
    limited = made("pendulum", torque_limits=30.0)
    for law, options, why in (
        (slanted, {}, "No quadratic Lyapunov function"),
        (loop(9.0, 6.0), {"method": "thesis"}, "no closed form"),
        (limited, {}, "which is not shown"),
    ):
        found = certify(law, angle=1.0, **options)
        assert found.status is Status.UNDECIDED
        assert why in found.parts[0].reason
        assert found.rate == 0.0
        found.save(tmp_path / "found.json")
        assert recheck(tmp_path / "found.json") is Status.UNDECIDED
    free = cc.certify(limited.error_dynamics, angle=1.0)
    assert free.status is Status.PROVED
    assert free.rate > 0.98 * 3.0
