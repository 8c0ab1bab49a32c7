"""Screw parameters of a robot: forward kinematics by the product of exponentials.

Configurations are screw parameters s, shape (nv,), m and rad, stacked like the velocities v:
joint j moves by exp(basis s_j) from the neutral configuration. All twists are spatial, [linear;
angular], and seen in the inertial frame unless said otherwise; `jacobian` has the body form in v.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array, Matrix, Vector, as_floats, constant, evaluated
from concur.groups import se3
from concur.robot._screw import admissible, is_abelian
from concur.robot._tree import Tree

Rows = tuple[tuple[str, tuple[tuple[float, ...], ...]], ...]


class ScrewTree(Tree):
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
        Thesis, (2.1.2), Theorem 2.2.3, (2.2.6), (3.3.30).
        """
        index = self.index(body)
        return _displacements(self, s)[index] @ constant(_neutral_poses(self)[index])

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
        Thesis, (2.1.1), Theorem 2.3.1, (2.3.7)-(2.3.12).
        """
        # Column j is exp(ad_T1s1) ... exp(ad_Tj-1sj-1) F(T_j s_j) T_j, with the differential F of
        # the exponential, for the joints up to the body.
        path = self.paths[self.index(body)]
        start = () if relative_to is None else self.paths[self.index(relative_to)]
        # What carries both bodies alike cancels, also where they sit on different branches.
        own = [i for i in path if i not in start]
        others = [i for i in start if i not in path]
        screws, displacements = _joint_screws(self), _displacements(self, s)
        columns = ca.SX(6, self.nv)
        for joints, sign in ((own, 1.0), (others, -1.0)):
            for i in joints:
                span, before = self.v_spans[i], self.parents[i]
                column = sign * constant(screws[i])
                if not is_abelian(self.bodies[i].joint):
                    column = se3.dexp_spatial(constant(screws[i]) @ s[span, :]) @ column
                if before is not None:
                    column = se3.adjoint(displacements[before]) @ column
                columns[:, span] = column
        if seen_from is None:
            return columns
        observer = self.forward(s, seen_from)
        return se3.adjoint(se3.inverse(observer)) @ columns

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
        return self._stacked(s, (body,), _frozen(rows))

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
        return self._stacked(s, tuple(bodies), _frozen(rows))

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
        return self._branched(s, tuple(bodies), _frozen(rows))

    @evaluated("(nv)->(*,*)")
    def _stacked(self, s: Vector, bodies: tuple[str, ...], rows: Rows) -> Matrix:
        columns = ca.vertcat(*[self.screw_jacobian(s, body) for body in bodies])
        return columns @ ca.diagcat(*self._admissible(s, dict(rows)))

    @evaluated("(nv)->(*,*)")
    def _branched(self, s: Vector, bodies: tuple[str, ...], rows: Rows) -> Matrix:
        rates = self._admissible(s, dict(rows))
        blocks = []
        for body in bodies:
            columns, path = self.screw_jacobian(s, body), self.paths[self.index(body)]
            blocks.append(ca.horzcat(*[columns[:, self.v_spans[i]] @ rates[i] for i in path]))
        return ca.diagcat(*blocks)

    def _admissible(self, s: Vector, rows: Mapping[str, Any]) -> list[Array]:
        """Sigma of each joint: from its admissible velocities to the rates of its parameters."""
        for name in rows:
            self.index(name)
        return [
            admissible(body.joint, s[span, :], np.array(rows[body.name]))
            if body.name in rows
            else ca.SX.eye(body.joint.nv)
            for body, span in zip(self.bodies, self.v_spans, strict=True)
        ]


def _frozen(rows: Mapping[str, ArrayLike] | None) -> Rows:
    """Rows as something that can name a function."""
    frozen = []
    for name, values in sorted((rows or {}).items()):
        numbers = np.atleast_2d(as_floats(values, f"`rows` of `{name}`"))
        frozen.append((name, tuple(map(tuple, numbers.tolist()))))
    return tuple(frozen)


def _joint_screws(tree: Tree) -> list[np.ndarray]:
    """Twist bases (6, nv of the joint) at the neutral configuration, seen in the inertial frame.

    For each body this is T_j = Ad_(r_j,0^0) B_j of (2.2.6).
    """
    placed = zip(_neutral_poses(tree), tree.bodies, strict=True)
    return [se3.adjoint(pose) @ body.joint.basis for pose, body in placed]


def _neutral_poses(tree: Tree) -> list[np.ndarray]:
    """Pose (4, 4) of each body in the inertial frame at the neutral configuration."""
    poses: list[np.ndarray] = []
    for body, parent in zip(tree.described("product of exponentials"), tree.parents, strict=True):
        own = body.placement.matrix
        poses.append(own if parent is None else poses[parent] @ own)
    return poses


def _displacements(tree: Tree, s: Vector) -> list[Array]:
    """Product exp(T_1 s_1) ... exp(T_i s_i) along the path to each body, (4, 4)."""
    products: list[Array] = []
    for screw, parent, span in zip(_joint_screws(tree), tree.parents, tree.v_spans, strict=True):
        own = se3.exp(constant(screw) @ s[span, :])
        products.append(own if parent is None else products[parent] @ own)
    return products
