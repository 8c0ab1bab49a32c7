"""Certificates written by hand."""

from __future__ import annotations

import copy
import hashlib
import json
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import solve_continuous_lyapunov

UNITS = {
    "R1": "m",
    "R2": "mm",
    "R3": "mmm",
    "SO2": "r",
    "SE2": "mmr",
    "SO3": "rrr",
    "SE3": "mmmrrr",
}


def law_digest(law: dict[str, Any]) -> str:
    """The format's definition of the law's hash, written a second time."""
    rows = [
        [[(float(x) + 0.0).hex() for x in row] for row in law[name]]
        for name in ("stiffness", "damping", "inertia")
    ]
    return hashlib.sha256(json.dumps([law["groups"], *rows]).encode()).hexdigest()


def digest(document: dict[str, Any]) -> str:
    rest = {k: v for k, v in document.items() if k != "hash"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def write(path: Path, document: dict[str, Any], sealed: bool = True) -> Path:
    """Write a document; `sealed` recomputes its hashes, as a careful forger would."""
    document = copy.deepcopy(document)
    if sealed:
        with suppress(KeyError, TypeError, ValueError, OverflowError):
            document["law"]["hash"] = law_digest(document["law"])
        document["hash"] = digest(document)
    path.write_text(json.dumps(document))
    return path


def scalar_form(kp: float, kd: float, alpha: float) -> np.ndarray:
    """2 x 2 form of the linear channel from the Lyapunov equation shifted by a rate."""
    F = np.array([[0.0, -1.0], [kp, -kd]]) + alpha * np.eye(2)
    P = solve_continuous_lyapunov(F.T, -np.eye(2))
    return np.asarray((P + P.T) / 2)


def grid(low: float, high: float, count: int) -> list[list[list[float]]]:
    ends = np.linspace(low, high, count + 1)
    return [[[float(a), float(b)]] for a, b in pairwise(ends)]


def multipliers(group: str, P: np.ndarray, kp: float) -> tuple[np.ndarray, np.ndarray]:
    """Multipliers that replace B phi by phi wherever possible, for unit inertia."""
    n = len(UNITS[group])
    L, M = np.zeros((2 * n, n)), np.zeros((2 * n, n))
    a, b, c = P[0, 0], P[n, n], -P[0, n]
    if group in ("SO3", "SE3"):
        w = n - 3
        M[w:n, w:] = c * kp * np.eye(3)
        M[n + w :, w:] = (a - b * kp) * np.eye(3)
        L[:w, :w] = c * kp * np.eye(w)
    return L, M


def document(
    group: str, angle: float, rate: float, shift: float, kp: float = 4.0, kd: float = 2.8
) -> dict[str, Any]:
    """Certificate of one output with isotropic gains, its P from the linear channel's."""
    n = len(UNITS[group])
    P = np.kron(scalar_form(kp, kd, shift), np.eye(n))
    L, M = multipliers(group, P, kp)
    eigenvalues = np.linalg.eigvalsh(P)
    lower, upper = eigenvalues[0] * (1 - 1e-9), eigenvalues[-1] * (1 + 1e-9)
    turning = "r" in UNITS[group]
    reach = group in ("SE2", "SE3")
    bound = kp * angle**2 / 2 * (1 - 1e-12)
    if group in ("SO3", "SE3"):
        reduction, boxes = "one axis, one plane", grid(0.0, angle, 8)
    elif group == "SE2":
        reduction, boxes = "all", grid(-angle, angle, 8)
    else:
        reduction, boxes = "linear", []
    gains = {
        name: (value * np.eye(n)).tolist()
        for name, value in (("stiffness", kp), ("damping", kd), ("inertia", 1.0))
    }
    return {
        "format": "concur certificate",
        "version": 1,
        "versions": {"pencil": "1"},
        "status": "PROVED",
        "method": "tight",
        "rate": rate,
        "overshoot": float(np.sqrt(upper / lower) * (1 + 1e-12)),
        "law": {"groups": [group], **gains},
        "channels": [
            {
                "components": list(range(n)),
                "status": "PROVED",
                "rate": rate,
                "angle": angle if turning else None,
                "distance": angle if reach else None,
                "bound": bound if turning else None,
                "P": P.tolist(),
                "L": L.tolist(),
                "M": M.tolist(),
                "weight": 1.0 / lower,
                "length": 1.0,
                "lower": lower,
                "upper": upper,
                "reduction": reduction,
                "boxes": boxes,
            }
        ],
        "counterexample": None,
    }
