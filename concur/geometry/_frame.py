"""Velocities that are linear in the rates of coordinates, and how their fields commute."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import EvaluatedMethods, Matrix, Vector, evaluated
from concur.errors import DescriptionError, ShapeError, UnknownNameError, shown
from concur.system import System

DEPENDENT = 1e-10
"""Least over largest singular value of fields below which they depend on each other."""

ACROSS = 1e-8
"""Largest part of a bracket across the fields that is rounding, relative to its terms."""


@dataclass(frozen=True, init=False, repr=False)
class Frame(EvaluatedMethods):
    """Velocities v of a motion q(t) with ``qdot = E(q) v``: the columns of E are the fields.

    Parameters
    ----------
    q : casadi.SX
        Symbols of the coordinates, shape (nq,).
    fields : casadi.SX, optional
        Fields E(q), shape (nq, n), as columns. There may be more coordinates than fields, such as
        those of a unit quaternion; then brackets of fields have to be combinations of them.
        Default: the rates of the coordinates.
    forms : casadi.SX, optional
        In place of fields: A(q), regular, with ``v = A(q) qdot``, shape (nq, nq).

    Raises
    ------
    DescriptionError
        If an argument is no CasADi expression, both `fields` and `forms` are given, or, at a few
        random coordinates, the fields depend on each other or a bracket is no combination of them.
    ShapeError
        If an expression has another shape.
    UnknownNameError
        If an expression contains other symbols.

    Examples
    --------
    Polar coordinates, in velocities of length:

    >>> import casadi as ca
    >>> from concur.geometry import Frame
    >>> q = ca.SX.sym("q", 2)
    >>> polar = Frame(q, forms=ca.diag(ca.vertcat(1, q[0])))
    >>> polar.bracket([2.0, 0.3], [1.0, 0.0], [0.0, 1.0])
    array([ 0. , -0.5])
    """

    nq: int
    n: int
    text: str

    def __init__(self, q: Any, fields: Any = None, forms: Any = None) -> None:
        symbols = symbols_of_coordinates(q, "frame")
        nq = symbols.numel()
        if fields is not None and forms is not None:
            raise DescriptionError(
                "frame",
                expected="`fields` or `forms`",
                came="both",
                cure="Leave one of them out: each follows from the other.",
            )
        if forms is not None:
            matrix = expression(forms, symbols, (nq, nq), "frame, `forms`")
            matrix = ca.solve(matrix, ca.SX.eye(nq))
        else:
            columns = ca.SX.eye(nq) if fields is None else fields
            wide = getattr(columns, "shape", (0, 0))[1] if fields is not None else nq
            matrix = expression(columns, symbols, (nq, wide), "frame, `fields`")
        graph = ca.Function("fields", [symbols], [ca.densify(matrix)], ["q"], ["fields"])
        for name, value in (("nq", nq), ("n", matrix.shape[1]), ("text", graph.serialize())):
            object.__setattr__(self, name, value)
        _check_independent(graph, nq)
        _check_closed(graph, nq)

    @classmethod
    def of(cls, system: System) -> Frame:
        """Velocities of a system, such as the twists of joints or those of a `LagrangianSystem`.

        Parameters
        ----------
        system : System
            The system.

        Returns
        -------
        Frame
            Its velocities v with the rates of its coordinates.

        Raises
        ------
        DescriptionError
            If it has two-spheres, whose spins move nothing.

        Examples
        --------
        >>> import concur as cc
        >>> from concur.geometry import Frame
        >>> frame = Frame.of(cc.robots.chaplygin_sleigh())
        >>> frame.bracket([0.0, 0.0, 0.4], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]).round(12) + 0.0
        array([ 0., -1.,  0.])
        """
        q, v = ca.SX.sym("q", system.nq), ca.SX.sym("v", system.nv)
        return cls(q, ca.jacobian(system.rate(q, v), v))

    def __repr__(self) -> str:
        return f"<Frame of {self.n} velocities over {self.nq} coordinates>"

    @cached_property
    def graph(self) -> ca.Function:
        """Function of q to the fields."""
        return ca.Function.deserialize(self.text)

    @evaluated("(nq)->(nq,n)")
    def fields(self, q: Vector) -> Matrix:
        """Fields E with ``qdot = E v``, as columns.

        Parameters
        ----------
        q : array_like
            Coordinates, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (nq, n).
        """
        return ca.sparsify(self.graph(q))

    @evaluated("(nq),(n),(n)->(n)")
    def bracket(self, q: Vector, u: Vector, w: Vector) -> Vector:
        """Bracket of two combinations of fields with constant components, ``[u, w]``.

        Parameters
        ----------
        q : array_like
            Coordinates, shape (nq,).
        u, w : array_like
            Components along the fields, shape (n,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Components of the bracket, ``c^k_ij u^i w^j``, shape (n,).

        References
        ----------
        Source 004, (3); source 003, (17), (18).
        """
        x, fields = ca.SX.sym("q", self.nq), self.fields(q)
        there = self.graph(x)
        components = ca.SX.sym("u", self.n), ca.SX.sym("w", self.n)
        first, second = (there @ part for part in components)
        turned = ca.jtimes(second, x, first) - ca.jtimes(first, x, second)
        rate = ca.Function("bracket", [x, *components], [turned])(q, u, w)
        if self.n == self.nq:
            return ca.solve(fields, rate)
        return ca.solve(fields.T @ fields, fields.T @ rate)

    def coefficients(self, q: ArrayLike) -> np.ndarray:
        """Hamel coefficients: brackets of the fields.

        Parameters
        ----------
        q : array_like
            Coordinates, shape (nq,).

        Returns
        -------
        numpy.ndarray
            ``c[k, i, j]``, component k of the bracket of the fields i and j, shape (n, n, n). On a
            group with left-invariant fields they are the structure constants.

        References
        ----------
        Source 000, (2.6), (2.11); source 003, (12); source 004, (3), (55).
        """
        units = np.eye(self.n)
        brackets = [[self.bracket(q, u, w) for w in units] for u in units]
        found: np.ndarray = np.array(brackets).reshape(self.n, self.n, self.n)
        turned: np.ndarray = np.moveaxis(found, 2, 0)
        return turned


def symbols_of_coordinates(q: Any, where: str) -> ca.SX:
    """Coordinates as a column of symbols."""
    if not (isinstance(q, ca.SX) and q.is_column() and q.numel() and q.is_valid_input()):
        raise DescriptionError(
            f"{where}, `q`",
            expected="a column of symbols, casadi.SX",
            came=shown(q),
            cure='Write q = casadi.SX.sym("q", 2).',
        )
    return q


def expression(value: Any, q: ca.SX, shape: tuple[int, int], where: str) -> ca.SX:
    """A matrix of the coordinates, of a given shape."""
    try:
        matrix = ca.SX(value)
    except (TypeError, ValueError, NotImplementedError):
        raise DescriptionError(
            where,
            expected="an expression of casadi.SX, or numbers",
            came=shown(value),
            cure="Build it from the symbols q.",
        ) from None
    if matrix.shape != shape:
        raise ShapeError(
            where,
            expected=f"shape {shape}",
            came=f"shape {matrix.shape}",
            cure="Give one row and one column as stated.",
        )
    strange = [s.name() for s in ca.symvar(matrix) if not ca.depends_on(q, s)]
    if strange:
        raise UnknownNameError(
            where,
            expected="symbols of q alone",
            came=f"`{strange[0]}`",
            cure="Put numbers in their place, or make them coordinates.",
        )
    return matrix


def _check_independent(graph: ca.Function, nq: int) -> None:
    """Demand independent fields at one of a few random places."""
    rng, best, rank = np.random.default_rng(0), 0.0, graph.size2_out(0)
    for _ in range(4):
        sizes = np.linalg.svd(_finite(graph(rng.normal(size=nq))), compute_uv=False)
        if rank <= nq:
            best = max(best, float(sizes[-1] / sizes[0]) if sizes[0] > 0.0 else 0.0)
    if best < DEPENDENT:
        raise DescriptionError(
            "frame",
            expected="fields that are independent of each other",
            came=f"{rank} fields over {nq} coordinates that depend on each other",
            cure="Leave some out. The spin of a two-sphere moves nothing: write it in two angles.",
        )


def _check_closed(graph: ca.Function, nq: int) -> None:
    """Demand brackets that are combinations of the fields, at a few random places."""
    n = graph.size2_out(0)
    if n == nq:
        return
    x, rng = ca.SX.sym("q", nq), np.random.default_rng(0)
    slopes = ca.Function("slopes", [x], [graph(x), ca.jacobian(ca.vec(graph(x)), x)])
    for _ in range(4):
        fields, parts = (_finite(part) for part in slopes(rng.normal(size=nq)))
        # One column for each field, along each field.
        along = np.einsum("jik,kl->ijl", parts.reshape(n, nq, nq), fields)
        terms = along.transpose(0, 2, 1), along
        brackets = (terms[0] - terms[1]).reshape(nq, n * n)
        size = (np.abs(terms[0]) + np.abs(terms[1])).reshape(nq, n * n).max(axis=0)
        rest = brackets - fields @ np.linalg.lstsq(fields, brackets, rcond=None)[0]
        off = np.abs(rest).max(axis=0) - ACROSS * size
        if off.max() > 0.0:
            i, j = sorted(divmod(int(off.argmax()), n))
            raise DescriptionError(
                "frame, `fields`",
                expected="fields whose brackets are combinations of them",
                came=f"{n} fields over {nq} coordinates; that of {i} and {j} leaves them",
                cure="Add the fields that are missing, up to one for each coordinate.",
            )


def _finite(matrix: Any) -> np.ndarray:
    return np.asarray(np.nan_to_num(np.array(matrix, dtype=float)))
