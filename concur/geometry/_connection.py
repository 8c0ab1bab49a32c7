"""Connections in frames, given by symbols or as that of a metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from concur.codegen import Array, EvaluatedMethods, Matrix, Vector, evaluated, finite_floats
from concur.errors import ConcurError, DescriptionError, ShapeError, shown
from concur.geometry._frame import DEPENDENT, Frame, expression, symbols_of_coordinates

TOLERANCE = 1e-11
"""Relative tolerance of the integration of autoparallels and transports."""


@dataclass(frozen=True, init=False, repr=False)
class Connection(EvaluatedMethods):
    """How vectors are differentiated along motions of a manifold, in the velocities of a frame.

    A vector with components y has the derivative ``ydot^k + L^k_ij v^i y^j`` along v.

    Parameters
    ----------
    q : casadi.SX
        Symbols of the coordinates, shape (nq,).
    symbols : sequence of casadi.SX, optional
        Matrices L^k of expressions in q, one for each upper index, shape (n, n): row i is the
        direction, column j the field that is differentiated. Default zero: the fields of the frame
        are parallel.
    frame : Frame, optional
        Velocities in which the symbols are written; default the rates of the coordinates.

    Raises
    ------
    DescriptionError, ShapeError, UnknownNameError
        If an argument is no expression of these coordinates, or has another shape.

    See Also
    --------
    Connection.of_metric : the connection of a metric, without torsion.
    Connection.canonical : that of a group, whose symbols are the structure constants.

    References
    ----------
    Source 004, (10), (26).

    Examples
    --------
    The sphere, in polar angle and azimuth:

    >>> import casadi as ca
    >>> from concur.geometry import Connection
    >>> q = ca.SX.sym("q", 2)
    >>> sphere = Connection.of_metric(q, ca.diag(ca.vertcat(1, ca.sin(q[0]) ** 2)))
    >>> sphere.curvature([0.8, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]).round(6)
    array([0.5146, 0.    ])
    """

    frame: Frame
    text: str

    def __init__(self, q: Any, symbols: Any = None, frame: Frame | None = None) -> None:
        coordinates, own = _coordinates_and_frame(q, frame)
        n = own.n
        if symbols is None:
            rows = [ca.SX(n, n)] * n
        else:
            listed = isinstance(symbols, Sequence | np.ndarray)
            if not listed or len(symbols) != n:
                came = f"{len(symbols)}" if listed else shown(symbols)
                raise ShapeError(
                    "connection, `symbols`",
                    expected=f"{n} matrices, one for each upper index",
                    came=came,
                    cure="Write [L0, L1, ...], each with the direction as row.",
                )
            rows = [
                expression(part, coordinates, (n, n), f"connection, `symbols`, entry {k}")
                for k, part in enumerate(symbols)
            ]
        self._set(coordinates, rows, own)

    def _set(self, q: ca.SX, symbols: Sequence[ca.SX], frame: Frame) -> None:
        graph = ca.Function("symbols", [q], [ca.densify(ca.vertcat(*symbols))], {"cse": True})
        object.__setattr__(self, "frame", frame)
        object.__setattr__(self, "text", graph.serialize())

    @classmethod
    def of_metric(cls, q: Any, metric: Any, frame: Frame | None = None) -> Connection:
        """Levi-Civita connection of a metric: without torsion, lengths are kept by transport.

        Parameters
        ----------
        q : casadi.SX
            Symbols of the coordinates, shape (nq,).
        metric : casadi.SX
            Symmetric matrix g(q) of the velocities of the frame, shape (n, n). Of a kinetic energy
            ``v g v / 2`` the autoparallels are the motions without forces.
        frame : Frame, optional
            The frame; default the rates of the coordinates.

        Returns
        -------
        Connection
            The connection.

        Raises
        ------
        DescriptionError, ShapeError, UnknownNameError
            If `metric` is no symmetric and regular matrix of expressions in q.

        References
        ----------
        Source 004, (42)-(46), (84)-(87), (90).
        """
        coordinates, own = _coordinates_and_frame(q, frame)
        n, where = own.n, "connection, `metric`"
        given = expression(metric, coordinates, (n, n), where)
        _check_metric(coordinates, given, where)
        g, fields, units = ca.densify(given), own.fields(coordinates), ca.SX.eye(n)
        slopes = [
            ca.reshape(ca.jtimes(ca.vec(g), coordinates, fields[:, k]), n, n) for k in range(n)
        ]
        # Lowered brackets: b[i][j] @ l is <[e_i, e_j], e_l>.
        lowered = [
            [g @ own.bracket(coordinates, units[:, i], units[:, j]) for j in range(n)]
            for i in range(n)
        ]
        symbols = [ca.SX(n, n) for _ in range(n)]
        for i in range(n):
            for j in range(n):
                row = [
                    slopes[i][j, k]
                    + slopes[j][i, k]
                    - slopes[k][i, j]
                    + lowered[k][i][j]
                    + lowered[k][j][i]
                    + lowered[i][j][k]
                    for k in range(n)
                ]
                raised = ca.solve(g, ca.vertcat(*row) / 2)
                for k in range(n):
                    symbols[k][i, j] = raised[k]
        made = object.__new__(cls)
        made._set(coordinates, symbols, own)
        return made

    @classmethod
    def canonical(cls, q: Any, frame: Frame) -> Connection:
        """Connection with the brackets of the fields as symbols.

        On a group with left-invariant fields it has no curvature, and the brackets as its torsion;
        autoparallels are the left translates of one-parameter subgroups.

        Parameters
        ----------
        q : casadi.SX
            Symbols of the coordinates, shape (nq,).
        frame : Frame
            The frame.

        Returns
        -------
        Connection
            The connection.

        References
        ----------
        Source 004, (57).
        """
        coordinates, own = _coordinates_and_frame(q, frame)
        units = ca.SX.eye(own.n)
        symbols = [ca.SX(own.n, own.n) for _ in range(own.n)]
        for i in range(own.n):
            for j in range(own.n):
                turned = own.bracket(coordinates, units[:, i], units[:, j])
                for k in range(own.n):
                    symbols[k][i, j] = turned[k]
        made = object.__new__(cls)
        made._set(coordinates, symbols, own)
        return made

    def __repr__(self) -> str:
        return f"<Connection in {self.n} velocities over {self.nq} coordinates>"

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return self.frame.nq

    @property
    def n(self) -> int:
        """Number of velocities: dimension of the manifold."""
        return self.frame.n

    @cached_property
    def graph(self) -> ca.Function:
        """Function of q to the matrices L^k, one below the other."""
        return ca.Function.deserialize(self.text)

    def symbols(self, q: ArrayLike) -> np.ndarray:
        """Symbols of the connection.

        Parameters
        ----------
        q : array_like
            Coordinates, shape (nq,).

        Returns
        -------
        numpy.ndarray
            ``L[k, i, j]``, shape (n, n, n).
        """
        values = finite_floats(q, "connection, `q`", (self.nq,))
        found: np.ndarray = np.array(self.graph(values)).reshape(self.n, self.n, self.n)
        return found

    @evaluated("(nq),(n)->(n,n)")
    def along(self, q: Vector, v: Vector) -> Matrix:
        """Matrix of the connection along a velocity: a vector changes by ``ydot + along y``.

        Parameters
        ----------
        q : array_like
            Coordinates, shape (nq,).
        v : array_like
            Velocity in the frame, shape (n,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            ``L^k_ij v^i``, shape (n, n).
        """
        symbols, n = self.graph(q), self.n
        return ca.vertcat(*[v.T @ symbols[k * n : (k + 1) * n, :] for k in range(n)])

    @evaluated("(nq),(n),(n)->(n)")
    def torsion(self, q: Vector, u: Vector, w: Vector) -> Vector:
        """Torsion of two vectors, T(u, w).

        Parameters
        ----------
        q : array_like
            Coordinates, shape (nq,).
        u, w : array_like
            Vectors in the frame, shape (n,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            ``(L^k_ij - L^k_ji - c^k_ij) u^i w^j``, shape (n,).

        References
        ----------
        Source 004, (12).
        """
        return self.along(q, u) @ w - self.along(q, w) @ u - self.frame.bracket(q, u, w)

    @evaluated("(nq),(n),(n),(n)->(n)")
    def curvature(self, q: Vector, u: Vector, w: Vector, y: Vector) -> Vector:
        """Curvature of two directions, on a vector: R(u, w) y.

        Parameters
        ----------
        q : array_like
            Coordinates, shape (nq,).
        u, w : array_like
            Directions in the frame, shape (n,).
        y : array_like
            Vector in the frame, shape (n,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (n,). A transport round the small parallelogram of u and w, u first, changes y by
            -R(u, w) y.

        References
        ----------
        Source 004, (13).
        """
        first, second = self.along(q, u), self.along(q, w)
        turned = self.along(q, self.frame.bracket(q, u, w))
        bent = self._slope(q, u, w) - self._slope(q, w, u)
        return (bent + first @ second - second @ first - turned) @ y

    def non_metricity(
        self, q: ArrayLike, metric: Callable[[ca.SX], Any], u: ArrayLike
    ) -> np.ndarray:
        """Derivative of a metric in a direction, D_u g: zero if the connection keeps lengths.

        Parameters
        ----------
        q : array_like
            Coordinates, shape (nq,).
        metric : callable
            From coordinates, a casadi.SX, to the metric in the frame, shape (n, n), such as the
            method `mass_matrix` of a robot.
        u : array_like
            Direction in the frame, shape (n,).

        Returns
        -------
        numpy.ndarray
            ``(g_ij,k - g_li L^l_kj - g_lj L^l_ki) u^k``, shape (n, n).

        References
        ----------
        Source 004, (23), (24).
        """
        matrix, slopes = self._metric(q, metric)
        direction = finite_floats(u, "connection, `u`", (self.n,))
        along = np.asarray(self.along(q, direction))
        found: np.ndarray = np.tensordot(direction, slopes, 1) - matrix @ along - along.T @ matrix
        return found

    def lacking_forces(
        self, q: ArrayLike, metric: Callable[[ca.SX], Any], v: ArrayLike
    ) -> np.ndarray:
        """Forces that the law of momentum of this connection lacks: zero if it is admissible.

        With the momenta p = g v the law is ``pdot_i - L^k_ji v^j p_k = f_i``. All admissible
        connections give it the same motion, that of Hamel's equations of ``v^T g v / 2``.

        Parameters
        ----------
        q : array_like
            Coordinates, shape (nq,).
        metric : callable
            As of `non_metricity`.
        v : array_like
            Velocity in the frame, shape (n,).

        Returns
        -------
        numpy.ndarray
            ``(L^k_ji - c^k_ji) v^j p_k - g_jk,i v^j v^k / 2``, shape (n,).

        References
        ----------
        Source 004, (18), (19), (21).
        """
        matrix, slopes = self._metric(q, metric)
        velocity = finite_floats(v, "connection, `v`", (self.n,))
        momenta = matrix @ velocity
        brackets = np.asarray(self.frame.coefficients(q))
        own = self.symbols(q) - brackets
        turned: np.ndarray = np.einsum("kji,j,k->i", own, velocity, momenta)
        found: np.ndarray = turned - (slopes @ velocity) @ velocity / 2
        return found

    def _metric(
        self, q: ArrayLike, metric: Callable[[ca.SX], Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Metric, and its slopes along the fields of the frame, the field first."""
        x = ca.SX.sym("q", self.nq)
        matrix = ca.densify(ca.SX(metric(x)))
        if matrix.shape != (self.n, self.n):
            raise ShapeError(
                "connection, `metric`",
                expected=f"a matrix of shape ({self.n}, {self.n})",
                came=str(matrix.shape),
                cure="Write it in the velocities of the frame.",
            )
        fields = self.frame.fields(x)
        slopes = [ca.jtimes(ca.vec(matrix), x, fields[:, k]) for k in range(self.n)]
        values = finite_floats(q, "connection, `q`", (self.nq,))
        graph = ca.Function("metric", [x], [matrix, ca.horzcat(*slopes)])
        here, changes = (np.array(part) for part in graph(values))
        return here, changes.T.reshape(self.n, self.n, self.n)

    @evaluated("(nq),(n)->(nq),(n)")
    def autoparallel_rate(self, q: Vector, v: Vector) -> tuple[Vector, Vector]:
        """Equations of autoparallels: ``qdot = E v`` and ``vdot = -L(v) v``.

        Parameters
        ----------
        q : array_like
            Coordinates, shape (nq,).
        v : array_like
            Velocity in the frame, shape (n,).

        Returns
        -------
        qdot, vdot : numpy.ndarray or casadi.SX
            Shapes (nq,) and (n,).

        References
        ----------
        Source 004, (123); source 000, (7.1).
        """
        return self.frame.fields(q) @ v, -(self.along(q, v) @ v)

    def autoparallel(
        self, q: ArrayLike, v: ArrayLike, times: ArrayLike
    ) -> tuple[np.ndarray, np.ndarray]:
        """Motion that carries its own velocity along: a geodesic, if the connection is a metric's.

        Parameters
        ----------
        q : array_like
            Coordinates at the first time, shape (nq,).
        v : array_like
            Velocity there, shape (n,).
        times : array_like
            Increasing times, shape (k,).

        Returns
        -------
        q, v : numpy.ndarray
            Coordinates and velocities at these times, shapes (k, nq) and (k, n), integrated with a
            relative tolerance of 1e-11.

        Raises
        ------
        ShapeError, NonFiniteError
            If an argument does not fit.
        ConcurError
            If the motion leaves the coordinates before the last time.
        """
        start = finite_floats(q, "autoparallel, `q`", (self.nq,))
        speed = finite_floats(v, "autoparallel, `v`", (self.n,))

        def slope(_: float, x: np.ndarray) -> np.ndarray:
            return np.concatenate(self.autoparallel_rate(x[: self.nq], x[self.nq :]))

        rows = _integrated(slope, np.concatenate([start, speed]), times, "autoparallel")
        return rows[:, : self.nq], rows[:, self.nq :]

    def transport(
        self,
        motion: Callable[[float], tuple[ArrayLike, ArrayLike]],
        y: ArrayLike,
        times: ArrayLike,
    ) -> np.ndarray:
        """Carry a vector parallel along a motion.

        Parameters
        ----------
        motion : callable
            Takes a time and gives coordinates (nq,) and velocity in the frame (n,).
        y : array_like
            The vector at the first time, shape (n,).
        times : array_like
            Increasing times, shape (k,).

        Returns
        -------
        numpy.ndarray
            The vector at these times, shape (k, n), integrated with a relative tolerance of 1e-11.

        Raises
        ------
        ShapeError, NonFiniteError
            If an argument, or a value of the motion, does not fit.
        ConcurError
            If a number of the motion is not finite.

        References
        ----------
        Source 004, (122).

        Examples
        --------
        Round the parallel of 60 degrees a vector of the sphere turns by pi:

        >>> import casadi as ca, numpy as np
        >>> from concur.geometry import Connection
        >>> q = ca.SX.sym("q", 2)
        >>> sphere = Connection.of_metric(q, ca.diag(ca.vertcat(1, ca.sin(q[0]) ** 2)))
        >>> circle = lambda t: ([np.pi / 3, t], [0.0, 1.0])
        >>> sphere.transport(circle, [1.0, 0.0], [0.0, 2 * np.pi])[-1].round(6) + 0.0
        array([-1.,  0.])
        """
        start = finite_floats(y, "transport, `y`", (self.n,))

        def slope(t: float, y: np.ndarray) -> np.ndarray:
            return np.asarray(-self.along(*motion(t)) @ y)

        return _integrated(slope, start, times, "transport")

    def _slope(self, q: Vector, u: Vector, w: Vector) -> Array:
        """Derivative of `along` w, with constant components, in the direction u."""
        x, held = ca.SX.sym("q", self.nq), ca.SX.sym("w", self.n)
        way = ca.SX.sym("way", self.nq)
        slope = ca.jtimes(ca.vec(ca.densify(self.along(x, held))), x, way)
        found = ca.Function("slope", [x, held, way], [ca.reshape(slope, self.n, self.n)])
        result: Array = found(q, w, self.frame.fields(q) @ u)
        return result


def _coordinates_and_frame(q: Any, frame: Any) -> tuple[ca.SX, Frame]:
    coordinates = symbols_of_coordinates(q, "connection")
    own = Frame(coordinates) if frame is None else frame
    if not isinstance(own, Frame) or own.nq != coordinates.numel():
        raise DescriptionError(
            "connection, `frame`",
            expected=f"a Frame over {coordinates.numel()} coordinates",
            came=shown(own),
            cure="Make it with the same q.",
        )
    return coordinates, own


def _check_metric(q: ca.SX, metric: ca.SX, where: str) -> None:
    """Demand a symmetric matrix, regular at one of a few random places."""
    at, rng, regular = ca.Function("metric", [q], [metric]), np.random.default_rng(1), list[bool]()
    for _ in range(4):
        g = np.array(at(rng.normal(size=q.numel())))
        if not np.isfinite(g).all():
            continue
        skew = np.abs(g - g.T)
        if skew.max() > 1e-9 * np.abs(g).max():
            i, j = divmod(int(skew.argmax()), len(g))
            raise DescriptionError(
                where,
                expected="a symmetric matrix",
                came=f"entries {g[i, j]:.6g} and {g[j, i]:.6g} of {i}, {j} at random coordinates",
                cure="Correct one of them.",
            )
        # In velocities of length one, whatever their units; null directions have none.
        lengths = np.abs(np.diag(g))
        unit = 1.0 / np.sqrt(np.where(lengths > 0.0, lengths, 1.0))
        sizes = np.linalg.svd(g * np.outer(unit, unit), compute_uv=False)
        regular.append(bool(sizes[-1] > DEPENDENT * sizes[0]))
    if regular and not any(regular):
        raise DescriptionError(
            where,
            expected="a regular matrix",
            came="a singular one at random coordinates",
            cure="Give every velocity of the frame a length; the spin of a two-sphere has none.",
        )


def _integrated(
    slope: Callable[[float, np.ndarray], np.ndarray], start: np.ndarray, times: Any, what: str
) -> np.ndarray:
    """Solution at increasing times, one row for each."""
    t = finite_floats(times, f"{what}, `times`")
    if t.ndim != 1 or t.size < 1 or (np.diff(t) <= 0.0).any():
        raise ShapeError(
            f"{what}, `times`",
            expected="increasing times, shape (k,)",
            came=shown(times),
            cure="Write numpy.linspace(0, 1, 11).",
        )
    if t.size == 1:
        return start[None]
    found = solve_ivp(
        slope, (t[0], t[-1]), start, "DOP853", t, rtol=TOLERANCE, atol=1e-2 * TOLERANCE
    )
    if not found.success:
        raise ConcurError(
            what,
            expected=f"a solution up to {t[-1]:.6g}",
            came=f"none after {found.t[-1] if len(found.t) else t[0]:.6g}: {found.message}",
            cure="Choose coordinates that are regular along the motion.",
        )
    return np.asarray(found.y.T)
