"""Base class of all joints: basis, coordinates, pose, rate and differences."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import casadi as ca
import numpy as np

from concur.codegen import Array, Vector


class Joint(ABC):
    """A displacement subgroup of SE(3) between two bodies.

    Attributes
    ----------
    nq, nv : int
        Number of configuration coordinates and of freedoms.
    coordinate_names, coordinate_units : tuple of str
        One per configuration coordinate.
    freedom_names, freedom_units, effort_units : tuple of str
        One per freedom: name, unit of the displacement, unit of the force or torque.

    Examples
    --------
    >>> import concur as cc
    >>> isinstance(cc.joints.Free(), cc.joints.Joint)
    True
    """

    nq: ClassVar[int]
    nv: ClassVar[int]
    coordinate_names: ClassVar[tuple[str, ...]]
    coordinate_units: ClassVar[tuple[str, ...]]
    freedom_names: ClassVar[tuple[str, ...]]
    freedom_units: ClassVar[tuple[str, ...]]

    @property
    @abstractmethod
    def basis(self) -> np.ndarray:
        """Twist basis (6, nv) of the subgroup's algebra, [linear; angular]."""

    @property
    def neutral(self) -> np.ndarray:
        """Configuration (nq,) of the identity."""
        return np.zeros(self.nq)

    @property
    def effort_units(self) -> tuple[str, ...]:
        """Unit of the force or torque of each freedom."""
        return tuple("N m" if unit == "rad" else "N" for unit in self.freedom_units)

    @property
    def quaternion_at(self) -> int | None:
        """Index in q where a unit quaternion begins, if there is one."""
        return None

    @abstractmethod
    def pose(self, q: Vector) -> tuple[Array, Array]:
        """Pose of the child's frame in the joint frame.

        Parameters
        ----------
        q : casadi.SX
            Configuration, shape (nq,).

        Returns
        -------
        rotation, translation : casadi.SX
            Shapes (3, 3) and (3,), m.
        """

    @abstractmethod
    def rate(self, q: Vector, v: Vector) -> Vector:
        """Time derivative of the configuration.

        Parameters
        ----------
        q : casadi.SX
            Configuration, shape (nq,).
        v : casadi.SX
            Body-twist coordinates, shape (nv,).

        Returns
        -------
        casadi.SX
            Shape (nq,).
        """

    @abstractmethod
    def integrate(self, q: Vector, dv: Vector) -> Vector:
        """Append the motion exp(basis dv) to a configuration.

        Parameters
        ----------
        q : casadi.SX
            Configuration, shape (nq,).
        dv : casadi.SX
            Displacement in the basis, shape (nv,).

        Returns
        -------
        casadi.SX
            Configuration, shape (nq,).
        """

    @abstractmethod
    def difference(self, q0: Vector, q1: Vector) -> Vector:
        """Displacement dv with ``integrate(q0, dv) = q1``, the shorter way round.

        Parameters
        ----------
        q0, q1 : casadi.SX
            Configurations, shape (nq,).

        Returns
        -------
        casadi.SX
            Shape (nv,).
        """

    @abstractmethod
    def dexp(self, dv: Vector, rate: Array) -> Array:
        """Body twist of exp(basis dv) for a rate of dv, (2.1.4).

        Parameters
        ----------
        dv : casadi.SX
            Displacement in the basis, shape (nv,).
        rate : casadi.SX
            Its time derivative, shape (nv,).

        Returns
        -------
        casadi.SX
            Body-twist coordinates, shape (nv,).
        """

    @abstractmethod
    def dexp_inverse(self, dv: Vector, v: Vector) -> Array:
        """Rate of dv that gives the body twist v at exp(basis dv), (2.1.4) inverted.

        Parameters
        ----------
        dv : casadi.SX
            Displacement in the basis, shape (nv,).
        v : casadi.SX
            Body-twist coordinates, shape (nv,).

        Returns
        -------
        casadi.SX
            Shape (nv,).
        """

    @abstractmethod
    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Draw a configuration.

        Parameters
        ----------
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        numpy.ndarray
            Shape (nq,): uniform rotations and angles, translations in [-1, 1] m.
        """

    def bracket(self, a: Array, b: Array) -> Array:
        """Lie bracket of two algebra elements in the basis; zero for abelian groups.

        Parameters
        ----------
        a, b : casadi.SX
            Coordinates in the basis, shape (nv,).

        Returns
        -------
        casadi.SX
            Coordinates of [a, b], shape (nv,).
        """
        return ca.SX(self.nv, 1)
