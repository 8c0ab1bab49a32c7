"""Digest of what a plan was made for: a plan file whose problem has changed is recognized."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concur.outputs import Output
from concur.planning._clearances import clearance_of
from concur.planning._path_limits import PlanLimits
from concur.planning._targets import targets_of, vias_of
from concur.robot import Clearance, Mechanism, Obstacle

UNUSED = ("keyframes", "unread", "file", "function")
"""Fields that no plan depends on: named postures, notes of readers, where a mesh lies, and
functions of outputs, whose `text` counts."""


def made_for(
    robot: Mechanism,
    momentum: ArrayLike | None,
    outputs: Sequence[Output],
    start: tuple[ArrayLike, Mapping[str, float]],
    goals: Mapping[str, Any],
    limits: PlanLimits,
    obstacles: Clearance | Sequence[Obstacle],
    time: float | str,
    via: Sequence[Mapping[str, Any]] = (),
) -> dict[str, str]:
    """Digests of the parts of a problem; the start is q with the speeds of joints by their names.

    Empty for a part that is not data, such as an output that is a function of the user.
    """
    q, speeds = start
    moves = {name: float(value) for name, value in speeds.items() if value}
    drift = [] if momentum is None else np.asarray(momentum, dtype=float).tolist()
    targets = targets_of(outputs, goals, "plan")
    parts = {
        "robot": robot,
        "momentum": drift if any(drift) else [],
        "outputs": list(outputs),
        "start": [robot.check_configuration(q, "plan"), dict(sorted(moves.items()))],
        "goals": [targets, vias_of(outputs, via, "plan")] if via else targets,
        "limits": limits,
        "obstacles": clearance_of(robot, obstacles, "plan"),
        "time": time,
    }
    return {name: _digest(value) for name, value in parts.items()}


def changed(made: Any, wanted: Mapping[str, str]) -> list[str]:
    """Parts of a problem that differ from those that a plan was made for."""
    known = made if isinstance(made, Mapping) else {}
    return [name for name, own in wanted.items() if not own or known.get(name) != own]


def _digest(value: Any) -> str:
    try:
        return hashlib.sha256(json.dumps(_plain(value)).encode()).hexdigest()[:16]
    except TypeError:
        return ""


def _plain(value: Any) -> Any:
    """Data as JSON, numbers to the last bit; TypeError for all else."""
    if isinstance(value, Enum):
        return value.name
    if value is None or isinstance(value, str | bool):
        return value
    if isinstance(value, int | float | np.number):
        return (float(value) + 0.0).hex()  # -0.0 is 0.0
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if dataclasses.is_dataclass(value):
        own = {
            f.name: _plain(getattr(value, f.name))
            for f in dataclasses.fields(value)
            if f.init and f.name not in UNUSED
        }
        # Defaults are left out, so that a plan outlives fields that later versions add.
        return [
            type(value).__name__,
            {name: part for name, part in own.items() if part != _default(type(value), name)},
        ]
    raise TypeError(type(value).__name__)


def _default(kind: type, name: str) -> Any:
    """Default of a field as JSON; a mark that nothing equals if it has none."""
    (field,) = (f for f in dataclasses.fields(kind) if f.name == name)
    if field.default is not dataclasses.MISSING:
        return _plain(field.default)
    if field.default_factory is not dataclasses.MISSING:
        return _plain(field.default_factory())
    return dataclasses.MISSING
