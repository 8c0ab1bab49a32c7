"""Certified time to 1 % for poses, by one form and by a chain: a table of docs/certificates.md.

python docs/compare_chains.py

takes about ten minutes; the ascent over starts takes most of it.
"""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
from scipy.linalg import expm

from concur.certify import Certificate, Status, certify, prove, search, split
from concur.control import ErrorDynamics
from concur.outputs.groups import Pose

PAGE = Path(__file__).resolve().with_name("certificates.md")
GAINS = ((4.0, 2.8), (4.0, 4.0), (9.0, 5.0))
ANGLES = (0.1, 1.0, 3.0, 10.0, 30.0, 90.0, 130.0, 170.0)  # deg; the same in m with length 1 m
SHARE, END, STEP = 0.01, 9.0, 0.02


def loop(stiffness: float, damping: float) -> ErrorDynamics:
    """Error dynamics of a pose."""
    one = np.eye(6)
    return ErrorDynamics(Pose(), stiffness * one, damping * one, one)


def before(dynamics: ErrorDynamics, angle: float) -> tuple[float, float]:
    """Rate and time to 1 % of one form that is searched in the region alone."""
    (channel,) = split(dynamics)
    found = search(channel, angle, angle)
    if found is None:
        return 0.0, math.inf
    multipliers = found.multipliers
    proof = prove(channel, found.P, found.alpha, angle, angle, multipliers=multipliers)
    if proof.status is not Status.PROVED:
        return 0.0, math.inf
    transient = math.sqrt(np.linalg.cond(found.P))
    return found.alpha, math.log(transient / SHARE) / found.alpha


def linear_worst(stiffness: float, damping: float) -> float:
    """Time to 1 % of the linear loop from its worst start, s."""
    A = np.array([[0.0, -1.0], [stiffness, -damping]])
    times = np.arange(0.0, END, 0.005)
    norms = np.array([np.linalg.norm(expm(A * time), 2) for time in times])
    return float(times[np.flatnonzero(norms > SHARE)[-1]])


def bracket(x: np.ndarray) -> np.ndarray:
    """ad_x of poses, (k, 6, 6)."""
    out = np.zeros((len(x), 6, 6))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        for row, column, part in ((0, 0, 3), (3, 3, 3), (0, 3, 0)):
            out[:, row + i, column + j] = -x[:, part + k]
            out[:, row + j, column + i] = x[:, part + k]
    return out


def error_maps(x: np.ndarray) -> np.ndarray:
    """B(x), (k, 6, 6), by its closed form in ad_x."""
    ad = bracket(x)
    square = ad @ ad
    t = np.linalg.norm(x[:, 3:], axis=1)[:, None, None]
    small, t = t < 0.05, np.maximum(t, 0.05)
    chord = 4.0 * t * (np.cos(t) - 1.0)
    second = np.where(small, 1.0 / 12.0, 2.0 / t**2 + (t + 3.0 * np.sin(t)) / chord)
    fourth = np.where(small, -1.0 / 720.0, 1.0 / t**4 + (t + np.sin(t)) / (chord * t**2))
    return np.asarray(np.eye(6) + ad / 2.0 + second * square + fourth * square @ square)


def times_to_share(z: np.ndarray, stiffness: float, damping: float) -> np.ndarray:
    """Times after which motions stay below 1 % of their starts z, (k, 12), by Runge-Kutta."""

    def rate(z: np.ndarray) -> np.ndarray:
        x, ve, B = z[:, :6], z[:, 6:], error_maps(z[:, :6])
        force = np.einsum("kji,kj->ki", B, x)
        return np.hstack([-np.einsum("kij,kj->ki", B, ve), stiffness * force - damping * ve])

    start, last = np.linalg.norm(z, axis=1), np.zeros(len(z))
    before = np.ones(len(z))
    for time in np.arange(0.0, END, STEP):
        a = rate(z)
        b = rate(z + STEP / 2 * a)
        c = rate(z + STEP / 2 * b)
        z = z + STEP / 6 * (a + 2 * b + 2 * c + rate(z + STEP * c))
        share = np.linalg.norm(z, axis=1) / start
        falling = np.log(np.maximum(before / share, 1.0001))
        more = np.clip(np.log(share / SHARE) / falling, 0.0, 1.0)
        last, before = np.where(share > SHARE, time + STEP * (1.0 + more), last), share
    return last


def worst_found(stiffness: float, damping: float, angle: float) -> float:
    """Longest time to 1 % found by random ascent over starts of the region, s; an estimate."""
    rng, level = np.random.default_rng(0), 0.999 * stiffness * angle**2

    def edge(z: np.ndarray) -> np.ndarray:
        twice = stiffness * (z[:, :6] ** 2).sum(axis=1) + (z[:, 6:] ** 2).sum(axis=1)
        return z * np.sqrt(level / twice)[:, None]

    z = edge(rng.normal(size=(300, 12)) * np.repeat([1.0 / math.sqrt(stiffness), 1.0], 6))
    times, spread = times_to_share(z, stiffness, damping), 0.1
    for _ in range(20):
        best = np.argsort(-times)[:30]
        size = np.linalg.norm(z[best], axis=1)[:, None]
        more = [edge(z[best] + spread * size * rng.normal(size=(30, 12))) for _ in range(4)]
        new = np.vstack(more)
        z = np.vstack([z[best], new])
        times = np.concatenate([times[best], times_to_share(new, stiffness, damping)])
        spread *= 0.88
    return float(times.max())


def row(stiffness: float, damping: float, degrees: float, worst: float) -> tuple[str, float]:
    """One line of the table, and the worst time found; that of a smaller region is given."""
    dynamics, angle = loop(stiffness, damping), math.radians(degrees)
    rate, time = before(dynamics, angle)
    found: Certificate = certify(dynamics, angle, chain=True)
    worst = max(worst, worst_found(stiffness, damping, angle))
    old = f"{rate / found.true_rate:.3f} | {time:.2f}" if rate else "UNDECIDED | "
    settled = found.settling(SHARE)
    line = (
        f"| {stiffness:g}, {damping:g} | {degrees:g} | {old} | {found.rate / found.true_rate:.3f} "
        f"| {settled:.3f} | {worst:.3f} | {settled / worst:.3f} |"
    )
    return line, worst


def main() -> None:
    """Prove all regions, print the table, and write it into the page."""
    lines = [
        "| KP, KD | angle, deg | rate over linearized, before | time to 1 % before, s | rate now "
        "| time now, s | worst found, s | ratio |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for gains in GAINS:
        worst = linear_worst(*gains)
        for degrees in ANGLES:
            line, worst = row(*gains, degrees, worst)
            lines.append(line)
            print(line, flush=True)
    block = "\n".join(lines)
    begin, end = (
        "<!-- table: written by `python docs/compare_chains.py` -->",
        "<!-- end of table -->",
    )
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.escape(begin) + r".*?" + re.escape(end)
    changed = re.sub(pattern, lambda _: f"{begin}\n\n{block}\n\n{end}", page, flags=re.DOTALL)
    PAGE.write_text(changed, encoding="utf-8")


if __name__ == "__main__":
    main()
