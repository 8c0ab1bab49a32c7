"""Whether the leaves of a proof cover all that a task may reach, on one branch of the arm.

**What holds.** Each relative position that the segment may have is in a leaf or in one of the cells
that `lacking` returns. If `check_branch` returns, the root of each cell is the continuous one of
the start.
"""

from __future__ import annotations

import numpy as np

from concur.proofs._recheck_arm import Angles, forward
from concur.proofs._recheck_case import Case
from concur.proofs._recheck_claims import Stored
from concur.proofs._recheck_motion import cells_reached
from concur.proofs._recheck_smooth import Floats, Rejection, Smooth, constant, require
from concur.proofs._recheck_work import spend

CELLS = 200_000
"""Most cells that one segment may reach."""

DEPTH, WIDTH = 6, 4096
"""Most halvings of a cell, and largest index of a cell without them."""

PARTS = (32, 15)
"""Parts of a segment and of its headings in the test which cells it reaches."""

FEW, SHARE = 2, 0.02
"""Cells that the leaves of a segment may lack: a number, and a share of the leaves."""

CORNERS = np.array([[i, j, l] for i in (0, 1) for j in (0, 1) for l in (0, 1)])
"""Corners of a unit cell."""


def _keys(cells: np.ndarray) -> np.ndarray:
    """One integer for each level and place."""
    size = np.int64(2 * WIDTH * 2**DEPTH)
    key = cells[:, 0].astype(np.int64)
    for i in (1, 2, 3):
        key = key * size + cells[:, i] + size // 2
    return key


def lacking(stored: Stored, k: int, relative: Smooth, x: Floats) -> np.ndarray:
    """Cells (n, 4) that a segment may reach and that none of its leaves covers.

    The prover's test which cells are reached differs at the border of the reached set, so a few
    may be missing; they become leaves too. A file that lacks more is rejected.
    """
    leaves, edge = stored.leaves[k], stored.edge
    known, inner = np.unique(_keys(leaves)), _ancestors(leaves)
    reach = relative.reach[:, 0] + np.array([x.sum(), x.sum(), x[1]]) + 1e-9
    low, high = (np.floor((relative.c[:, 0] + sign * reach) / edge).astype(int) for sign in (-1, 1))
    require(bool(np.isfinite(reach).all()), f"segment {k} has no bounded positions")
    require(int(np.prod(high - low + 1.0)) <= CELLS, f"segment {k} reaches more than {CELLS} cells")
    axes = [np.arange(a, b + 1) for a, b in zip(low, high, strict=True)]
    cells = np.array(np.meshgrid(*axes, indexing="ij")).reshape(3, -1).T
    found, most = [np.zeros((0, 4), dtype=np.int64)], max(FEW, SHARE * len(leaves))
    for level in range(DEPTH + 1):
        size = edge / 2**level
        own = np.column_stack([np.full(len(cells), level), cells])
        cells = cells[~np.isin(_keys(own), known)]
        spend(1e-2 * PARTS[0] * PARTS[1] * len(cells))
        cells = cells[cells_reached(relative, x, cells * size, np.full(len(cells), size), PARTS)]
        own = np.column_stack([np.full(len(cells), level), cells])
        deeper = np.isin(_keys(own), inner)
        found.append(own[~deeper])
        require(
            sum(map(len, found)) <= most,
            f"segment {k} may reach {np.round((found[-1][:1, 1:] + 0.5) * size, 4).tolist()} m and "
            "other cells, which no leaf covers",
        )
        cells = (2 * cells[deeper][:, None] + CORNERS[None]).reshape(-1, 3)
        if not len(cells):
            break
        require(len(cells) <= CELLS, f"segment {k} reaches more than {CELLS} cells")
    return np.vstack(found)


def _ancestors(leaves: np.ndarray) -> np.ndarray:
    """Keys of all cells that contain smaller leaves."""
    found = []
    for up in range(1, DEPTH + 1):
        own = leaves[leaves[:, 0] >= up]
        found.append(_keys(np.column_stack([own[:, 0] - up, own[:, 1:] // 2**up])))
    return np.unique(np.concatenate(found))


def check_branch(case: Case, edge: float, cells: np.ndarray, angles: Angles) -> None:
    """Verify that touching cells have the same root, and the start's cell that of the start.

    Two cells of different or equal size that touch have a corner of the smaller one in common, and
    roots that agree in one common point agree in all.
    """
    polynomial = angles.phi.parts[:3]
    radius, unique = angles.radius, angles.unique
    keys = _keys(cells)
    order = np.argsort(keys)

    def at(k: np.ndarray, place: Floats) -> Floats:
        """Candidate of the angles in cells k at positions (3, n)."""
        size = edge / 2.0 ** cells[k, 0]
        xi = 2 * (place / size - cells[k, 1:].T) - 1
        c, g, h = (part[..., k] for part in polynomial)
        pairs = [(i, j) for i in range(3) for j in range(i, 3)]
        square = sum(h[m] * xi[i] * xi[j] for m, (i, j) in enumerate(pairs))
        return np.asarray(c + np.einsum("iab,ib->ab", g, xi) + square)

    def lookup(level: int, places: np.ndarray) -> np.ndarray:
        wanted = _keys(np.column_stack([np.full(len(places), level), places]))
        spot = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
        return np.where(keys[order[spot]] == wanted, order[spot], -1)

    own = np.arange(len(cells))
    for corner in CORNERS:
        fine = (cells[:, 1:] + corner) * 2 ** (DEPTH - cells[:, :1])
        place = (fine * (edge / 2**DEPTH)).T
        mine = at(own, place)
        for level in np.unique(cells[:, 0]).tolist():
            for side in CORNERS:
                other = lookup(level, (fine - side) // 2 ** (DEPTH - level))
                k = np.flatnonzero(other >= 0)
                apart = np.abs(mine[:, k] - at(other[k], place[:, k])) + radius[:, k] + 1e-9
                same = (apart <= unique[other[k]]).all(axis=0)
                require(bool(same.all()), "touching cells may be on two branches of the arm")
    start = forward(case.rover, constant(case.angles[:, None], 0)).hand.c[:, 0]
    start = start - np.array([case.rover.lead, 0.0, 0.0])
    for level in np.unique(cells[:, 0]).tolist():
        home = lookup(level, np.floor(start / (edge / 2**level)).astype(int)[None])
        if home[0] >= 0:
            away = np.abs(at(home, start[:, None])[:, 0] - case.angles).max() + 1e-9
            require(bool(away <= unique[home[0]]), "the start is on another branch of the arm")
            return
    raise Rejection("the start is in no leaf")
