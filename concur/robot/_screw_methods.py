"""Screw parameters of a robot: products of exponentials and Jacobians along them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array, Matrix, Vector, as_floats, constant, evaluated
from concur.robot import _exponentials
from concur.robot._tree import Tree


class ScrewMethods(Tree):
    """The methods of a robot that take screw parameters of its joints."""

    @evaluated("(nv)->(nq)")
    def configuration(self, s: Vector) -> Vector:
        """Configuration reached from the joints' identities by screw parameters, (2.1.3a).

        Parameters
        ----------
        s : array_like
            Screw parameters of all joints, shape (nv,), m and rad: joint j moves by
            exp(basis s_j).

        Returns
        -------
        numpy.ndarray or casadi.SX
            Configuration, shape (nq,).

        References
        ----------
        Thesis, Theorem 2.1.5, (2.1.3).
        """
        return self.integrate(constant(self._identities()), s)

    @evaluated("(nq)->(nv)")
    def screw_parameters(self, q: Vector) -> Vector:
        """Screw parameters of a configuration, m and rad: inverse of `configuration`.

        Angles are at most pi, except for joints that count turns in q.

        Parameters
        ----------
        q : array_like
            Configuration, shape (nq,).

        Returns
        -------
        numpy.ndarray or casadi.SX
            The value, shape (nv,).
        """
        return self.difference(constant(self._identities()), q)

    @evaluated("(nv)->(4,4)")
    def forward(self, s: Vector, body: str) -> Matrix:
        """Pose of a body by the product of exponentials, (2.2.6).

        Parameters
        ----------
        s : array_like
            Screw parameters of all joints, shape (nv,), m and rad.
        body : str
            Name of the body.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Homogeneous matrix (4, 4), body to world, m.

        References
        ----------
        Thesis, (2.1.2), (2.2.6), (3.3.30).
        """
        return _exponentials.product_of_exponentials(self, s, body)

    @evaluated("(nv)->(6,nv)")
    def screw_jacobian(
        self,
        s: Vector,
        body: str,
        seen_from: str | None = None,
        relative_to: str | None = None,
    ) -> Matrix:
        """Map from the rate of the screw parameters to the spatial twist of a body, (2.3.7).

        Parameters
        ----------
        s : array_like
            Screw parameters of all joints, shape (nv,), m and rad.
        body : str
            Name of the body.
        seen_from : str, optional
            Body in whose frame the twist is expressed, (2.3.11); default the inertial frame.
        relative_to : str, optional
            Body relative to which the motion is meant, (2.3.12); default the inertial frame.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (6, nv), [linear; angular]; its linear rows are the velocity of the point of
            the body that passes the observer's origin.

        References
        ----------
        Thesis, (2.1.1), (2.3.7)-(2.3.12).
        """
        return _exponentials.screw_jacobian(self, s, body, seen_from, relative_to)

    def modified_jacobian(
        self, s: Vector, body: str, rows: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """Spatial Jacobian along motions that nonholonomic joints admit, (2.3.13).

        Parameters
        ----------
        s : array_like
            Screw parameters, shape (nv,), m and rad.
        body : str
            Name of the body.
        rows : mapping of str to array_like, optional
            For a nonholonomic joint, by body, constant rows on its body velocity, shape
            (f, nv of the joint): rows @ v = 0.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (6, n): n admissible speeds of the whole robot.
        """
        return self._with_rows(s, "modified", (body,), _frozen_rows(rows))

    def stacked_jacobian(
        self, s: Vector, bodies: Sequence[str], rows: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """Modified Jacobians of several bodies over each other, shared joints once.

        Parameters
        ----------
        s : array_like
            Screw parameters, shape (nv,), m and rad.
        bodies : sequence of str
            Names of the bodies.
        rows : mapping of str to array_like, optional
            As for `modified_jacobian`.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Shape (6 k, n) for k bodies: the map to use for every question of rank.
        """
        return self._with_rows(s, "stacked", tuple(bodies), _frozen_rows(rows))

    def branch_jacobians(
        self, s: Vector, bodies: Sequence[str], rows: Mapping[str, ArrayLike] | None = None
    ) -> Array:
        """Modified Jacobians of several branches as blocks, shared joints repeated, (2.3.13).

        Beware: its rank is not that of the robot; `stacked_jacobian` has the true one.

        Parameters
        ----------
        s : array_like
            Screw parameters, shape (nv,), m and rad.
        bodies : sequence of str
            Names of the bodies at the ends of the branches.
        rows : mapping of str to array_like, optional
            As for `modified_jacobian`.

        Returns
        -------
        numpy.ndarray or casadi.SX
            Block diagonal, shape (6 k, sum of the branches' speeds).
        """
        return self._with_rows(s, "branch", tuple(bodies), _frozen_rows(rows))

    @evaluated("(nv)->(*,*)")
    def _with_rows(
        self, s: Vector, kind: str, bodies: tuple[str, ...], rows: tuple[tuple[str, Any], ...]
    ) -> Matrix:
        given = {name: np.array(values) for name, values in rows}
        if kind == "modified":
            return _exponentials.modified_jacobian(self, s, bodies[0], given)
        if kind == "stacked":
            return _exponentials.stacked_jacobian(self, s, bodies, given)
        return _exponentials.branch_jacobians(self, s, bodies, given)


def _frozen_rows(rows: Mapping[str, ArrayLike] | None) -> tuple[tuple[str, Any], ...]:
    """Rows as something that can name a function."""
    frozen = []
    for name, values in sorted((rows or {}).items()):
        numbers = np.atleast_2d(as_floats(values, f"`rows` of `{name}`"))
        frozen.append((name, tuple(map(tuple, numbers.tolist()))))
    return tuple(frozen)
