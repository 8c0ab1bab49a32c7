"""Which displacements closed loops can reach: the algebra that curvature and its brackets span.

By the theorem of Ambrose and Singer it is spanned by the curvature at all shapes, each carried back
to the start along a curve. Here the shapes are samples, and brackets complete the span.
"""

from __future__ import annotations

from dataclasses import dataclass

import casadi as ca
import numpy as np

from concur.groups import Subgroup, classify, se3
from concur.planning._fibre import Fibre
from concur.planning._transport import transport
from concur.robot import robot_size

SAMPLES = 8
"""Shapes at which the curvature is evaluated."""

STEPS = 64
"""Steps along the straight line to a sampled shape."""

ANGLE = 1e-6
"""Angle between directions of displacement below which they are one direction, rad."""

FLAT = 1e-10
"""Curvature, relative to the square of the connection, that counts as zero."""


@dataclass(frozen=True, eq=False)
class Reach:
    """Displacements that closed loops reach from a shape: a subgroup, and its algebra.

    `basis`, (dim, k), is in the coordinates of the joint.
    """

    subgroup: Subgroup
    basis: np.ndarray

    def missed(self, wanted: np.ndarray, turning: np.ndarray | None) -> np.ndarray:
        """Part of a logarithm, or of its rotation, that no loop reaches; `turning` has its rows."""
        columns = self.basis if turning is None else turning @ self.basis
        inside = columns @ np.linalg.lstsq(columns, wanted, rcond=1e-9)[0]
        return np.asarray(wanted - inside)


def reach_of(fibre: Fibre, start: np.ndarray, low: np.ndarray, high: np.ndarray) -> Reach:
    """Find the displacements that loops from a shape reach within limits of the shape."""
    ns = fibre.model.ns
    end, r = ca.SX.sym("end", ns), ca.MX.sym("end", ns)
    way = end - ca.SX(ca.DM(start))
    back = transport(fibre, lambda x: (ca.SX(ca.DM(start)) + x * way, way), end, STEPS)
    carry = ca.Function("carry", [r], [back(r)])
    rng = np.random.default_rng(0)
    low, high = np.maximum(low, start - 1.0), np.minimum(high, start + 1.0)
    found, size = [np.zeros((6, 0))], 0.0
    for shape in [start, *rng.uniform(low, high, (SAMPLES, ns))]:
        size = max(size, float(np.abs(np.array(fibre.connection(shape))).max(initial=0.0)))
        twists = fibre.joint.basis @ np.array(fibre.curvature(shape))
        # The left side carries body twists by Ad_g; the right side those of the parent back.
        pose = np.array(carry(shape))
        pose = pose if fibre.side > 0 else np.asarray(se3.inverse(pose))
        found.append(np.asarray(se3.adjoint(pose)) @ twists)
    twists = np.hstack(found)
    twists = twists[:, np.abs(twists).max(axis=0, initial=0.0) > FLAT * size**2]
    span = classify(twists, tolerance=ANGLE, length=robot_size(fibre.model.robot))
    group = span.closure or span
    basis = np.linalg.lstsq(fibre.joint.basis, group.basis, rcond=None)[0]
    return Reach(group, basis)
