"""Write statements and proofs as JSON."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np

from concur import documents
from concur.certify._recheck_document import GAINS, VERSION, law_hash
from concur.certify._status import Status
from concur.control import ErrorDynamics
from concur.errors import OutputError
from concur.outputs.groups import (
    Angle,
    Coordinates,
    Direction,
    OutputGroup,
    PlanarPose,
    Pose,
    Product,
    Rotation,
    Vector,
)
from concur.results import plain

_NAMES: dict[type[OutputGroup], str] = {
    Angle: "SO2",
    PlanarPose: "SE2",
    Rotation: "SO3",
    Pose: "SE3",
    Direction: "S2",
}


def write_document(path: str | PathLike[str], kind: str, members: dict[str, Any]) -> None:
    """Write a document of some format, with its hash, as JSON, one member per line."""
    documents.write_document(path, kind, VERSION, members)


def group_names(group: OutputGroup) -> list[str]:
    """Names of a group's factors in files; a user-defined group is rejected."""
    if type(group) is Product:
        return [name for factor in group.factors for name in group_names(factor)]
    if type(group) in (Coordinates, Vector):
        return [f"R{group.dim}"] if group.dim <= 3 else ["R1"] * group.dim
    name = _NAMES.get(type(group))
    if name is None:
        raise OutputError(
            "certificate, file",
            expected="outputs on groups of the package",
            came=type(group).__name__,
            cure="Do not save it: the file format names only groups of the package.",
        )
    return [name]


def law_section(dynamics: ErrorDynamics) -> dict[str, Any]:
    """Groups, KP, KD and I of error dynamics, with their hash, and KI where there is one."""
    groups = group_names(dynamics.group)
    law = {name: np.asarray(getattr(dynamics, name), dtype=float).tolist() for name in GAINS}
    law = {"groups": groups, **law, "hash": law_hash(groups, *law.values())}
    if dynamics.integral is not None:
        law["integral"] = dynamics.integral.tolist()
    return law


def proof_section(
    components: np.ndarray,
    status: Status,
    rate: float,
    angle: float | None,
    bound: float,
    P: np.ndarray | None,
) -> dict[str, Any]:
    """Members that the proof of every channel has."""
    assert P is not None
    return {
        "components": components.tolist(),
        "status": status.name,
        "rate": rate,
        "angle": angle,
        "bound": plain(bound),
        "P": P.tolist(),
    }
