"""Content of the file of a proof, and its claims against values that the checker found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from concur.proofs._recheck_smooth import Floats, require

Entry: TypeAlias = "tuple[str, str, str, float, float | None]"
"""Kind, name, unit, side and limit of a claim."""


@dataclass(frozen=True)
class StoredBound:
    """A claimed bound; `sign` is 1 for upper bounds and -1 for lower ones."""

    kind: str
    name: str
    unit: str
    sign: float
    value: float
    limit: float | None


@dataclass(frozen=True, eq=False)
class Stored:
    """Content of a file, as arrays.

    Parameters
    ----------
    count : int
        Number of equal steps of the grid.
    edge : float
        Edge of the cells without halving (m).
    first : numpy.ndarray
        First step of each segment.
    disturbance : numpy.ndarray
        D of each output, (outputs, segments).
    leaves : list of numpy.ndarray
        Level and place of the leaves of each segment, (k, 4).
    bounds : dict
        Claims by kind and name.
    statement : Statement
        The claims.
    room : numpy.ndarray or None
        With errors of what the law reads, how far they move x and ve of both outputs at most,
        (2, 2, segments).
    """

    count: int
    edge: float
    first: np.ndarray
    disturbance: Floats
    leaves: list[np.ndarray]
    bounds: dict[tuple[str, str], StoredBound]
    statement: Any
    room: Floats | None = None

    def require_disturbance(self, outputs: int) -> None:
        """Reject a D that is no bound for each output and segment."""
        same = self.disturbance.shape == (outputs, len(self.first))
        require(same, "D has another shape than the segments")
        sound = bool(np.isfinite(self.disturbance).all() and (self.disturbance >= 0.0).all())
        require(sound, "D has numbers that are no bounds")


@dataclass(frozen=True)
class Names:
    """Names of a law's controls, shape velocities, joints with bounded angles, and outputs."""

    controls: list[str]
    shape: list[str]
    joints: list[str]
    outputs: list[str]
    refused_below: float


def claims(
    names: Names, stored: Stored, more: dict[str, list[Entry]] | None = None
) -> dict[str, list[StoredBound]]:
    """Claimed bounds in the order of the rows of values; all have the statement's limits."""
    given = stored.statement
    rows: dict[str, list[Entry]] = {
        "torque": [("torque", n, "N m", 1.0, given.torques.get(n)) for n in names.controls],
        "speed": [("speed", n, "rad/s", 1.0, given.speeds.get(n)) for n in names.shape],
        "margin": [("margin", "decoupling", "", -1.0, given.margin)],
        "pivot": [("pivot", "of the law", "", -1.0, names.refused_below)],
        "corridor": [("corridor", n, "m", 1.0, given.corridor.get(n)) for n in names.outputs],
    }
    for i, (row, kind, sign) in enumerate(
        (("low", "angle above", -1.0), ("high", "angle below", 1.0))
    ):
        ends = {name: pair[i] for name, pair in given.angles.items() if np.isfinite(pair[i])}
        rows[row] = [(kind, name, "rad", sign, ends.get(name)) for name in names.joints]
    rows |= more or {}
    keys = {entry[:2] for part in rows.values() for entry in part}
    require(set(stored.bounds) == keys, "bounds of other quantities than the statement's")
    limits = {"torque": given.torques, "speed": given.speeds, "angle above": given.angles}
    for kind, limited in (limits | {"corridor": given.corridor}).items():
        for name in limited:
            require((kind, name) in keys, f"{kind} {name}: the statement has a limit, but no bound")
    found = {}
    for row, entries in rows.items():
        found[row] = [stored.bounds[entry[:2]] for entry in entries]
        for entry, claim in zip(entries, found[row], strict=True):
            what = f"{claim.kind} {claim.name}"
            same = (claim.kind, claim.name, claim.unit, claim.sign, claim.limit) == entry
            require(same, f"{what}: its unit, side or limit is not that of the statement")
            kept = claim.limit is None or claim.sign * (claim.limit - claim.value) >= 0.0
            require(kept, f"{what}: the bound {claim.value:.6g} exceeds the limit {claim.limit}")
    return found


def confirm(claimed: dict[str, list[StoredBound]], found: dict[str, Floats]) -> None:
    """Verify that values over all segments, times their signs, are within the claims."""
    for row, entries in claimed.items():
        for claim, values in zip(entries, found[row], strict=True):
            own = claim.sign * float(values.max())
            require(
                bool(claim.sign * (claim.value - own) >= 0.0),
                f"{claim.kind} {claim.name}: {own:.6g} exceeds the bound {claim.value:.6g}",
            )
