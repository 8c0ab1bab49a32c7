"""Certificates: which rates are proved, beside the thesis's own constants, and in what time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version

import numpy as np

import concur as cc
from concur.certify import Certificate
from concur.control import ErrorDynamics
from concur.outputs.groups import OutputGroup, Pose, Product, Rotation, Vector
from tests.benchmarks._report import duration
from tests.benchmarks._thesis_grid import thesis_rate

ANGLES = (30, 60, 90, 120, 170)

SETS = {"A": (4.0, 5.0, 4.0, 5.0), "B": (4.0, 2.8, 4.0, 2.8), "C": (1.0, 2.5, 9.0, 7.5)}
"""Stiffness and damping of position, then of rotation, over unit inertia."""

LIMITS = {"SE(3)": 20.0, "SO(3)": 2.0, "R3 x SO(3)": 2.0, "SO(3), anisotropic": 120.0}
"""Longest processor times allowed, s."""


SOLVERS = ("cvxpy", "clarabel", "python-flint")


@dataclass(frozen=True)
class Case:
    """Error dynamics on a domain.

    Parameters
    ----------
    group : str
        Key of `LIMITS`.
    gains : str
        What the gains are.
    degrees : int
        Bound of the rotation error.
    dynamics : ErrorDynamics
        The error dynamics.
    """

    group: str
    gains: str
    degrees: int
    dynamics: ErrorDynamics


@dataclass(frozen=True)
class Proved:
    """A case with what was proved of it.

    Parameters
    ----------
    case : Case
        The case.
    thesis : float
        Rate by Theorem 5.4.2 with its own constants, 1/s.
    certificate : Certificate
        The tighter one.
    seconds : float
        Processor time that it took, search and proof.
    """

    case: Case
    thesis: float
    certificate: Certificate
    seconds: float


def certificate_cases(angles: tuple[int, ...] = ANGLES) -> Iterator[Case]:
    """Yield the gain sets of the reference table, then rotations alone and beside positions."""
    for name, (kp, kd, kpw, kdw) in SETS.items():
        dynamics = _loop(Pose(), [kp] * 3 + [kpw] * 3, [kd] * 3 + [kdw] * 3)
        label = f"{name}: kp {kp:g}, kd {kd:g}"
        if (kp, kd) != (kpw, kdw):
            label += f"; rotation {kpw:g}, {kdw:g}"
        for degrees in angles:
            yield Case("SE(3)", label, degrees, dynamics)
    for group, lie in (
        ("SO(3)", Rotation()),
        ("R3 x SO(3)", Product([Vector("xyz"), Rotation()])),
    ):
        for kp, kd in ((4.0, 2.8), (4.0, 5.0)):
            dynamics = _loop(lie, [kp] * lie.dim, [kd] * lie.dim)
            for degrees in angles[-1:]:
                yield Case(group, f"kp {kp:g}, kd {kd:g}", degrees, dynamics)
    uneven = _loop(Rotation(), [4.0, 6.0, 9.0], [4.0, 5.0, 6.6])
    yield Case("SO(3), anisotropic", "kp 4, 6, 9, kd 4, 5, 6.6", min(60, max(angles)), uneven)


def prove_all(cases: Iterator[Case]) -> list[Proved]:
    """Certify every case once, after one that loads the solvers."""
    cc.certify(_loop(Rotation(), [4.0] * 3, [4.0] * 3), 1.0)
    found = []
    for case in cases:
        angle = np.radians(case.degrees)
        thesis = thesis_rate(case.dynamics, angle)
        begin = time.process_time()
        certificate = cc.certify(case.dynamics, angle)
        found.append(Proved(case, thesis, certificate, time.process_time() - begin))
    return found


def certificate_table(found: list[Proved]) -> str:
    """Rates over the true rate, and times, as a Markdown table under the solvers' versions."""
    solvers = ", ".join(f"{name} {version(name)}" for name in SOLVERS)
    lines = [
        f"Processor time, all threads added up: what one core needs. With {solvers}.",
        "",
        "| outputs | gains | angle | true rate | thesis | proved | status | time | at most |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- | ---: | ---: |",
    ]
    for one in found:
        true = one.certificate.true_rate
        cells = (
            one.case.group,
            one.case.gains,
            f"{one.case.degrees}°",
            f"{true:.3g} 1/s",
            f"{one.thesis / true:.2g}",
            f"**{one.certificate.rate / true:.3f}**",
            one.certificate.status.name,
            duration(one.seconds),
            f"{LIMITS[one.case.group]:g} s",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _loop(group: OutputGroup, stiffness: list[float], damping: list[float]) -> ErrorDynamics:
    one = np.ones(group.dim)
    return ErrorDynamics(group, np.diag(stiffness), np.diag(damping), np.diag(one))
