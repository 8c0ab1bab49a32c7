"""Expressions that a user wrote for a `LagrangianSystem`: read and checked at random states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np

from concur.codegen import Array
from concur.errors import (
    ConcurError,
    DescriptionError,
    NonFiniteError,
    ShapeError,
    UnknownNameError,
    shown,
)
from concur.formulations._factor import Factor

SAMPLES = 8
"""Random states at which expressions are checked."""

EXACT = 1e-9
"""Largest relative deviation of an expression from a linear or quadratic one."""

SINGULAR = 1e-10
"""Least eigenvalue of a matrix with a diagonal of ones below which it is singular."""

Row = tuple[str, ca.SX, str | None]
"""Name, expression and unit of a linear function of the velocities."""


@dataclass(frozen=True)
class Space:
    """Product of the factors: symbols, and states at which expressions are checked."""

    where: str
    factors: tuple[Factor, ...]

    @staticmethod
    def of(where: str, factors: Any) -> Space:
        """Read the factors."""
        listed = tuple(factors) if isinstance(factors, list | tuple) else ()
        if not listed or not all(isinstance(factor, Factor) for factor in listed):
            expected, cure = (
                "a list of factors",
                'Write [Factor("cart", "R"), Factor("load", "S2")].',
            )
            raise Space(where, ()).refused("`factors`", expected, shown(factors), cure)
        names = [factor.name for factor in listed]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            came, cure = f"`{twice}` twice", "Rename one of them."
            raise Space(where, ()).refused("`factors`", "different names", came, cure)
        return Space(where, listed)

    def refused(
        self,
        what: str,
        expected: str,
        came: str,
        cure: str,
        kind: type[ConcurError] = DescriptionError,
        **data: object,
    ) -> ConcurError:
        """Error for an argument."""
        return kind(f"{self.where}, {what}", expected=expected, came=came, cure=cure, **data)

    @property
    def q(self) -> ca.SX:
        """Symbols of all configurations, (nq,)."""
        return ca.vertcat(*[factor.q for factor in self.factors])

    @property
    def v(self) -> ca.SX:
        """Symbols of all velocities, (nv,)."""
        return ca.vertcat(*[factor.v for factor in self.factors])

    @property
    def nv(self) -> int:
        """Number of velocities."""
        return sum(factor.nv for factor in self.factors)

    def samples(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Draw configurations (nq,) and velocities (nv,)."""
        rng = np.random.default_rng(6)
        return [
            (np.concatenate([f.random(rng) for f in self.factors]), rng.normal(size=self.nv))
            for _ in range(SAMPLES)
        ]

    def column(self, value: Any, what: str) -> ca.SX:
        """Read an expression of the factors' symbols."""
        try:
            expression = ca.SX(value)
        except Exception:  # CasADi raises NotImplementedError, ValueError and RuntimeError
            expected = "a CasADi SX expression of the factors' `q` and `v`"
            came = f"{type(value).__name__} {shown(value, 40)}"
            raise self.refused(what, expected, came, "Build it with casadi.") from None
        known = ca.Function("known", [self.q, self.v], [expression], {"allow_free": True})
        if known.has_free():
            names = ", ".join(sorted({str(free).split("_")[0] for free in known.get_free()})[:5])
            expected, came = "symbols of the factors only", f"the symbols {names}"
            cure = "Use `q` and `v` of the very factors that are passed, and numbers elsewhere."
            raise self.refused(what, expected, came, cure, UnknownNameError, name=names)
        return expression

    def scalar(self, value: Any, what: str) -> ca.SX:
        """Read a scalar expression."""
        expression = self.column(value, what)
        if expression.shape != (1, 1):
            came, cure = (
                f"shape {expression.shape}",
                "Add up its entries: casadi.sumsqr.",
            )
            raise self.refused(what, "a scalar expression", came, cure, ShapeError)
        return expression

    def rows(self, value: Any, what: str, singular: str) -> list[Row]:
        """Read linear functions of the velocities: an expression, or expressions by name."""
        named: Mapping[Any, Any] = value if isinstance(value, Mapping) else {singular: value}
        found: list[Row] = []
        for name, given in named.items():
            # A mapping may give the unit of the force beside the expression.
            pair = isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], str)
            entry, unit = given if pair else (given, None)
            entry = ca.vertcat(*entry) if isinstance(entry, list | tuple) and entry else entry
            column = self.column(entry, f"{what} `{name}`")
            if column.shape[1] != 1 or not column.shape[0]:
                expected, came = "a column of one or more expressions", f"shape {column.shape}"
                cure = "Join the expressions with casadi.vertcat."
                raise self.refused(f"{what} `{name}`", expected, came, cure, ShapeError)
            many = column.shape[0] > 1 or not isinstance(value, Mapping)
            for k in range(column.shape[0]):
                found.append((f"{name}[{k}]" if many else str(name), column[k], unit))
        return found

    def linear(self, rows: Sequence[Row], what: str) -> ca.SX:
        """Matrix of linear functions of the velocities, shape (rows, nv)."""
        column = ca.vertcat(ca.SX(0, 1), *[row for _, row, _ in rows])
        matrix = ca.substitute(ca.jacobian(column, self.v), self.v, ca.SX.zeros(self.nv))
        both = ca.Function("both", [self.q, self.v], [column, matrix])
        for q, v in self.samples():
            value, slope = (np.array(part) for part in both(q, v))
            rest = np.abs(value[:, 0] - slope @ v)
            if not np.isfinite(rest).all():
                raise self.infinite(what, q)
            off = np.flatnonzero(rest > EXACT * (1.0 + np.abs(slope) @ np.abs(v)))
            if off.size:
                place, expected = (
                    f"{what} `{rows[off[0]][0]}`",
                    "a linear function of the velocities",
                )
                came = f"a rest of {rest[off[0]]:.3g} at a random state"
                raise self.refused(place, expected, came, "Only the form C(q) v is possible.")
        return ca.sparsify(matrix)

    def infinite(self, what: str, q: np.ndarray) -> ConcurError:
        """Error for an expression without a value at a random configuration."""
        came = f"NaN or infinity at q = {np.array2string(q, precision=3)}"
        cure = "Check roots, quotients and logarithms."
        return self.refused(what, "finite values", came, cure, NonFiniteError)

    def without_spin(self, expression: ca.SX) -> Array:
        """The same expression, of velocities without spin of the two-spheres."""
        if not any(factor.spherical for factor in self.factors):
            return expression
        still = ca.vertcat(
            *[f.v - f.q * ca.dot(f.q, f.v) if f.spherical else f.v for f in self.factors]
        )
        projected = ca.substitute(expression, self.v, still)
        both = ca.Function("both", [self.q, self.v], [expression, projected])
        for q, v in self.samples():
            own, other = (np.array(part) for part in both(q, v))
            if np.abs(own - other).max(initial=0.0) > EXACT * (1.0 + np.abs(own).max(initial=0.0)):
                return projected
        return expression


def least_eigenvalue(matrix: np.ndarray) -> tuple[float, int]:
    """Least eigenvalue in units of the diagonal, and the entry most involved."""
    diagonal = np.diag(matrix)
    lowest = int(np.argmin(diagonal))
    if not diagonal[lowest] > 0.0:
        return float(min(diagonal[lowest], 0.0)), lowest
    unit = 1.0 / np.sqrt(diagonal)
    values, vectors = np.linalg.eigh(matrix * np.outer(unit, unit))
    return float(values[0]), int(np.argmax(np.abs(vectors[:, 0])))
