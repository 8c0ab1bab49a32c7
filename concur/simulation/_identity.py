"""Which robot a record belongs to: names of a tree of bodies, numbers of any other system."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import numpy as np

from concur.errors import DescriptionError
from concur.robot import Mechanism, control_velocities
from concur.simulation._stored import check_names
from concur.system import System

SAME = 1e-6
"""Largest relative difference of the numbers of equal systems: two builds of CasADi round apart."""


def identity(system: System, q: np.ndarray) -> dict[str, Any]:
    """Attributes that name a system in a file whose first configuration is q (nq,)."""
    if isinstance(system, Mechanism):
        return {"bodies": [body.name for body in system.bodies]}
    return {"velocities": list(system.freedom_names), "system": _numbers(system, q)}


def check_identity(
    path: str | PathLike[str],
    facts: Mapping[str, Any],
    system: System,
    q: np.ndarray,
    expected: Mapping[str, Any],
) -> None:
    """Reject a file of another system, or with other attributes than those expected."""
    own = identity(system, q)
    numbers = own.pop("system", None)
    check_names(path, facts, {**own, **expected})
    if numbers is None:
        return
    found = np.asarray(facts.get("system", ()), dtype=float)
    slack = SAME * (np.abs(numbers) + 1e-3 * np.abs(numbers).max())
    if found.shape != numbers.shape or not (np.abs(found - numbers) <= slack).all():
        raise DescriptionError(
            f"{path}, attribute `system`",
            expected=f"energies, forces, constraints and inputs of `{system.name}`",
            came="those of another system",
            cure="Pass the law and the system with which the file was made.",
        )


def _numbers(system: System, q: np.ndarray) -> np.ndarray:
    """Energies and forces of a motion near q, its velocities along constraints and inputs."""
    n = system.nv
    v, vdot = np.cos(np.arange(n)), np.sin(1.0 + np.arange(n))
    # Terms may vanish where a motion starts: at rest, or with all joints at zero.
    q = np.asarray(system.normalize(system.integrate(q, 0.3 * v)))
    parts = [
        system.kinetic_energy(q, v),
        system.potential_energy(q),
        system.inverse_dynamics(q, v, vdot),
        np.asarray(system.constraints(q)) @ v,
        np.asarray(control_velocities(system, q, np.eye(n))) @ v,
    ]
    return np.concatenate([np.ravel(part) for part in parts])
