"""Documents of tubes, as `_recheck_tube` reads them."""

from __future__ import annotations

from math import inf
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from concur.certify._files import group_names, program_versions, write_document
from concur.certify._recheck_document import TUBE, document_hash, law_hash

if TYPE_CHECKING:
    from concur.certify._robust import Tube


def write_tube(tube: Tube, path: str | PathLike[str]) -> None:
    """Write a tube.

    Parameters
    ----------
    tube : Tube
        The tube.
    path : str or os.PathLike
        File to write, JSON.

    Raises
    ------
    OutputError
        If an output's group is not one of the package's own.
    DescriptionError
        If the file cannot be written.
    """
    channel, decay = tube.channel, tube.decay
    gains = [np.asarray(g).tolist() for g in (channel.stiffness, channel.damping, channel.inertia)]
    groups = group_names(channel.group)
    law = dict(zip(("stiffness", "damping", "inertia"), gains, strict=True))
    n = channel.size
    L, M = decay.multipliers or (np.zeros((2 * n, n)),) * 2
    usual = "scalar" if channel.kind == "SO3 isotropic" else "linear"
    document = {
        "format": TUBE,
        "version": 1,
        "versions": program_versions(),
        "status": tube.status.name,
        "reason": tube.reason,
        "law": {"groups": groups, **law, "hash": law_hash(groups, *gains)},
        "components": channel.index.tolist(),
        "rate": decay.rate,
        "angle": decay.angle,
        "distance": decay.distance,
        "P": decay.P.tolist(),
        "L": L.tolist(),
        "M": M.tolist(),
        "length": channel.length,
        "reduction": decay.reduction or usual,
        "boxes": decay.boxes.tolist(),
        "disturbance": _disturbance(tube),
        "start": tube.start,
        "ultimate": _finite(tube.ultimate),
        "radius": _finite(tube.radius),
        "bounds": {
            "components": [_finite(value) for value in tube.components],
            "angle": None if tube.angle is None else _finite(tube.angle),
            "distance": None if tube.distance is None else _finite(tube.distance),
        },
    }
    document["hash"] = document_hash(document)
    write_document(path, document)


def _disturbance(tube: Tube) -> dict[str, Any]:
    """What acts: a length, the sizes of the components, or points whose means they are."""
    given = tube.disturbance
    kinds: dict[str, Any] = {"length": None, "components": None, "points": None}
    if isinstance(given, float):
        kinds["length"] = given
    elif given is not None and given.points is not None:
        kinds["points"] = given.points.tolist()
    elif given is not None:
        kinds["components"] = given.components.tolist()
    return kinds


def _finite(value: float) -> float | None:
    return float(value) if value < inf else None
