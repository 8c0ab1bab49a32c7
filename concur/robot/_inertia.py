"""Inertia of a rigid body, checked to be physical."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from concur.codegen import finite_floats, shape_error
from concur.errors import DescriptionError, InertiaError
from concur.groups import so3
from concur.robot._pose import scalar, vector
from concur.tables import Matrix3, Vector3


@dataclass(frozen=True)
class Inertia:
    """Mass, centre of mass and moments of inertia of one rigid body.

    Parameters
    ----------
    mass : float
        Mass, kg; zero for a body without inertia.
    com : sequence of float
        Centre of mass in the body frame, shape (3,), m.
    moments : sequence of float or array_like
        Moments about the centre of mass along the body axes, kg m^2: the three diagonal
        ones (Ixx, Iyy, Izz), or the whole symmetric tensor, shape (3, 3).

    Attributes
    ----------
    edges : tuple of float or None
        Edges, shape (3,), m, if it was made by `box`: drawings show this box if the body has no
        shape. None otherwise.

    Raises
    ------
    InertiaError
        If the mass is negative, the tensor is not symmetric, has a negative eigenvalue,
        breaks the triangle inequality, or a body with mass zero has moments.

    Examples
    --------
    >>> import concur as cc
    >>> cc.Inertia(2.0, com=(0.1, 0, 0), moments=(0.01, 0.02, 0.02)).mass
    2.0
    """

    mass: float
    com: Vector3 = (0.0, 0.0, 0.0)
    moments: Sequence[Any] = (0.0, 0.0, 0.0)
    edges: Vector3 | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "mass", scalar(self.mass, "Inertia, `mass`"))
        object.__setattr__(self, "com", vector(self.com, 3, "Inertia, `com`"))
        object.__setattr__(self, "moments", _moments(self.moments))
        self.check("Inertia")

    @classmethod
    def box(
        cls, mass: float, size: Sequence[float], com: Sequence[float] = (0.0, 0.0, 0.0)
    ) -> Inertia:
        """Inertia of a box of uniform density.

        Parameters
        ----------
        mass : float
            Mass, kg.
        size : sequence of float
            Edges along the body axes, shape (3,), m.
        com : sequence of float
            Centre of the box in the body frame, shape (3,), m.

        Returns
        -------
        Inertia
            The inertia.

        Raises
        ------
        InertiaError
            If the mass is negative, or an edge is.
        ShapeError, NonFiniteError
            If an array has another shape, or a number is not finite.

        Examples
        --------
        >>> import concur as cc
        >>> cc.Inertia.box(12.0, (1.0, 2.0, 3.0)).moments
        (13.0, 10.0, 5.0)
        """
        mass, edges = scalar(mass, "Inertia, `mass`"), vector(size, 3, "Inertia, `box`")
        if min(edges) < 0.0:
            raise InertiaError(
                "Inertia, `box`",
                expected="edges of zero or more, m",
                came=str(edges),
                cure="Give the lengths of the edges.",
            )
        x, y, z = (edge**2 for edge in edges)
        moments = tuple(mass * (a + b) / 12.0 for a, b in ((y, z), (x, z), (x, y)))
        found = cls(mass, com, moments)
        object.__setattr__(found, "edges", edges)
        return found

    @classmethod
    def from_table(
        cls,
        mass: float,
        com: Vector3 = (0.0, 0.0, 0.0),
        moments: Vector3 | None = None,
        tensor: Matrix3 | None = None,
        box: Vector3 | None = None,
    ) -> Inertia:
        """Mass and moments of inertia of a body, with one of `moments`, `tensor` and `box`.

        Parameters
        ----------
        mass : float
            Mass, kg.
        com : sequence of float
            Centre of mass in the body frame, shape (3,), m.
        moments : sequence of float, optional
            Ixx, Iyy, Izz about the centre of mass, along the body axes, shape (3,), kg m^2.
            Default: none, with `tensor`.
        tensor : sequence of sequence of float, optional
            Tensor about the centre of mass, along the body axes, shape (3, 3), kg m^2; an
            off-diagonal element is Ixy = -∫ x y dm. Default: none, with `moments`.
        box : sequence of float, optional
            Edges of a box of uniform density about the centre of mass, along the body axes, shape
            (3,), m, in place of moments. Default: none.

        Returns
        -------
        Inertia
            The inertia.

        Raises
        ------
        DescriptionError
            If more than one of `moments`, `tensor` and `box` is given.
        InertiaError
            As of the constructor.
        """
        ways = {"moments": moments, "tensor": tensor, "box": box}
        given = [name for name, value in ways.items() if value is not None]
        if len(given) > 1:
            raise DescriptionError(
                f"Inertia, `{given[1]}`",
                expected="either `moments`, `tensor` or `box`",
                came="both" if len(given) == 2 else "all of them",
                cure="Keep one of them.",
                field=given[1],
            )
        if box is not None:
            return cls.box(mass, box, com)
        about = tensor if moments is None else moments
        return cls(mass, com) if about is None else cls(mass, com, about)

    @property
    def tensor(self) -> np.ndarray:
        """Inertia tensor (3, 3) about the centre of mass, body axes, kg m^2."""
        moments = np.array(self.moments)
        return np.asarray(np.diag(moments) if moments.ndim == 1 else moments)

    @property
    def origin_tensor(self) -> np.ndarray:
        """Inertia tensor (3, 3) about the origin of the body frame, kg m^2."""
        com = np.array(self.com)
        about = self.mass * (com @ com * np.eye(3) - np.outer(com, com))
        return np.asarray(self.tensor + about)

    @property
    def principal_moments(self) -> np.ndarray:
        """Eigenvalues (3,) of the tensor about the centre of mass, ascending, kg m^2."""
        return np.asarray(np.linalg.eigvalsh(self.tensor))

    @property
    def matrix(self) -> np.ndarray:
        """Spatial inertia (6, 6) in the body frame: twist [linear; angular] to momentum."""
        c = so3.skew(self.com)
        return np.block(
            [
                [self.mass * np.eye(3), -self.mass * c],
                [self.mass * c, self.origin_tensor],
            ]
        )

    def check(self, where: str) -> None:
        """Raise unless a rigid body can have this inertia.

        Parameters
        ----------
        where : str
            Name of the body, for the message.

        Raises
        ------
        InertiaError
            As for the constructor.
        """
        tensor, values = self.tensor, self.principal_moments
        shown = f"eigenvalues ({', '.join(f'{x:.6g}' for x in values)}) kg m^2"
        scale = max(float(np.abs(tensor).max()), 1e-300)
        if self.mass < 0.0:
            _refuse(where, "a mass of zero or more", f"{self.mass:.6g} kg", values)
        if np.abs(tensor - tensor.T).max() > 1e-9 * scale:
            _refuse(where, "a symmetric inertia tensor", f"{tensor.tolist()}", values)
        if values[0] < -1e-12 * scale:
            _refuse(where, "moments of inertia with no negative eigenvalue", shown, values)
        if values[0] + values[1] < values[2] * (1.0 - 1e-9):
            _refuse(
                where,
                "principal moments where none exceeds the sum of the two others",
                shown,
                values,
            )
        if self.mass == 0.0 and values[2] > 0.0:
            _refuse(where, "no moments of inertia on a body without mass", shown, values)


def unphysical(masses: np.ndarray, tensors: np.ndarray) -> np.ndarray:
    """Find inertias that `Inertia` refuses, of many bodies at once.

    Parameters
    ----------
    masses : numpy.ndarray
        Masses, shape (...), kg.
    tensors : numpy.ndarray
        Symmetric inertia tensors about the centres of mass, shape (..., 3, 3), kg m^2.

    Returns
    -------
    numpy.ndarray
        Truth values, shape (...).
    """
    values = np.linalg.eigvalsh(tensors)
    scale = np.maximum(np.abs(tensors).max(axis=(-2, -1)), 1e-300)
    low, middle, high = values[..., 0], values[..., 1], values[..., 2]
    wrong = (masses < 0.0) | (low < -1e-12 * scale) | (low + middle < high * (1.0 - 1e-9))
    return np.asarray(wrong | ((masses == 0.0) & (high > 0.0)))


def _moments(value: Any) -> tuple[Any, ...]:
    moments = finite_floats(value, "Inertia, `moments`")
    if moments.shape not in ((3,), (3, 3)):
        raise shape_error("Inertia, `moments`", (3, 3), moments.shape)
    return tuple(tuple(row) if isinstance(row, list) else row for row in moments.tolist())


def _refuse(where: str, expected: str, came: str, values: np.ndarray) -> None:
    raise InertiaError(
        where,
        expected=expected,
        came=came,
        cure="Check units and the point of reference: moments are taken about the centre of "
        "mass, along the body axes.",
        eigenvalues=values,
    )
