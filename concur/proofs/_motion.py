"""Reference and its derivatives between the points at which its formula changes."""

from __future__ import annotations

import casadi as ca
import numpy as np

from concur._polynomials import Floats, Model, Space, Walker
from concur.errors import OutputError
from concur.outputs.references import Reference
from concur.proofs._wheeled import not_covered

JUMP = 1e-9
"""Jump of a reference at a knot, relative, that counts as rounding."""


class Motion:
    """Reference and its derivatives as functions between knots."""

    def __init__(self, reference: Reference, where: str) -> None:
        pieces = reference.pieces()
        if pieces is None:
            raise not_covered(where, "a reference with a formula", "custom functions or a loop")
        self.pieces = pieces
        t = ca.SX.sym("t")
        rows = [ca.SX.sym(f"row{k}", table.width) for k, table in enumerate(pieces.tables)]
        pose, twist, acceleration = pieces.function(t, *rows)
        jerk = ca.jacobian(acceleration, t)
        results = [ca.densify(part) for part in (pose, twist, acceleration, jerk)]
        formula = ca.Function("reference", [t, *rows], results, {"cse": True})
        try:
            self._walker = Walker(formula, where)
        except OutputError as error:
            raise not_covered(
                where,
                "a reference without conditionals, as `rest_to_rest` has at its begin and end",
                error.came,
                "Write the motion as `waypoints`, `polynomial`, `circle` or `hold`.",
            ) from error
        self.where = where

    def jumps(self, knots: Floats) -> Floats:
        """Jumps of the acceleration of base and hand at knots, (2, k), m/s^2.

        References whose position or velocity jumps are rejected.
        """
        found = np.zeros((2, len(knots)))
        for k, t in enumerate(knots):
            sides = [
                [row[0] for row in self.pieces.rows(np.array([at]))]
                for at in (np.nextafter(t, -np.inf), t)
            ]
            before, after = (
                [np.asarray(part).ravel() for part in self.pieces.function(t, *side)]
                for side in sides
            )
            room = JUMP * (1.0 + max(float(np.abs(part).max()) for part in after))
            pose, twist, acceleration = (b - a for a, b in zip(before, after, strict=True))
            jump = float(np.abs([*pose, *twist]).max())
            if jump > room:
                came = f"a jump by {jump:.3g} at {t:g} s"
                raise not_covered(self.where, "a reference with continuous velocity", came)
            if np.abs(acceleration).max() > room:
                parts = acceleration[:2], acceleration[2:]
                found[:, k] = [np.linalg.norm(part) * (1 + 1e-12) for part in parts]
        return found

    def models(self, space: Space, clock: int, middle: Floats, half: Floats) -> list[list[Model]]:
        """Pose, twist, acceleration and its rate over intervals without knots inside."""
        rows = [list(table.T) for table in self.pieces.rows(middle)]
        found = self._walker([space.symbol(clock, half, middle)], *rows)
        return [part.ravel().tolist() for part in found]
