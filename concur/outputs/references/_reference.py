"""Base class of references, and the check against a list of outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array
from concur.errors import ConcurError, OutputError
from concur.outputs._output import Output
from concur.outputs._parts import check_parts
from concur.outputs._sample import Part, ReferenceSample
from concur.outputs.references._columns import Floats
from concur.outputs.references._expression import Graph, Motion, Pieces, Reader, Rows, Samples
from concur.outputs.references._inputs import numbers


class Reference(ABC):
    """Desired motion of one or several outputs as a function of time.

    Attributes
    ----------
    pose_size : int
        Number of pose coordinates, see `ReferenceSample`.
    size : int
        Number of twist coordinates.

    Examples
    --------
    >>> import concur as cc
    >>> cc.references.hold([1.0, 0.0])(0.0).pose
    array([1., 0.])
    """

    pose_size: int
    size: int

    @property
    def groups(self) -> tuple[Part, ...]:
        """Parts in output order: pose coordinates, twist coordinates, group.

        The group is None where any group of these sizes fits; then one part may also be meant
        for several outputs.
        """
        return ((self.pose_size, self.size, None),)

    def __call__(self, t: float) -> ReferenceSample:
        """Evaluate the reference at one time.

        Parameters
        ----------
        t : float
            Time (s).

        Returns
        -------
        ReferenceSample
            Pose, twist and acceleration at `t`.

        Raises
        ------
        NonFiniteError
            If `t` is NaN or infinite.
        """
        poses, twists, accelerations = self.sample([t])
        return ReferenceSample(poses[0], twists[0], accelerations[0], groups=self._kept_groups)

    @cached_property
    def _kept_groups(self) -> tuple[Part, ...]:
        return self.groups

    def sample(self, times: ArrayLike) -> Samples:
        """Evaluate the reference at many times.

        Parameters
        ----------
        times : array_like, shape (k,)
            Times (s), in any order.

        Returns
        -------
        poses : ndarray, shape (k, pose_size)
            Poses, flat.
        twists : ndarray, shape (k, size)
            Left-trivialised velocities.
        accelerations : ndarray, shape (k, size)
            Time derivatives of the twists.

        Raises
        ------
        ShapeError, NonFiniteError
            If `times` is no flat array of finite numbers.
        """
        return self._evaluate(numbers(times, "times", ndim=1))

    def graph(self) -> ca.Function | None:
        """The reference as an expression graph.

        Returns
        -------
        casadi.Function or None
            From the time `t` (s) to `pose`, `twist` and `acceleration`, flat columns as in
            `ReferenceSample`; over SX, or over MX where the reference has tables of segments. None
            where a custom function is part of the reference: it has no graph.

        Examples
        --------
        >>> from concur.outputs.references import polynomial
        >>> polynomial([[1.0], [2.0]]).graph()(3.0)[0]
        DM(7)
        """
        return None

    def pieces(self) -> Pieces | None:
        """The reference as one formula between the times at which its segments change.

        Returns
        -------
        Pieces or None
            Formula over SX, and its tables. None with custom functions, and where a table is read
            at other times than t, as in a loop.
        """
        return None

    @abstractmethod
    def _evaluate(self, times: Floats) -> Samples:
        """Do the work of `sample` on times that have been checked."""

    def _motion(self, t: Array, read: Reader) -> Motion:
        """Pose, twist and acceleration as expressions of a time over SX, and of rows."""
        row = read(_Evaluated(self), t)
        pose, twist, acceleration = ca.vertsplit(
            row, [0, self.pose_size, self.pose_size + self.size, row.shape[0]]
        )
        return pose, twist, acceleration


class _Evaluated(Rows):
    """Samples of a reference without a graph."""

    def __init__(self, reference: Reference) -> None:
        self.width = reference.pose_size + 2 * reference.size
        self._reference = reference

    def at(self, times: Floats) -> Floats:
        return np.hstack(self._reference._evaluate(times))


class Expression(Reference):
    """A reference that is an expression of time; its parts may be other references."""

    def graph(self) -> ca.Function | None:
        return self._graph.function

    def pieces(self) -> Pieces | None:
        return self._graph.pieces

    @cached_property
    def _graph(self) -> Graph:
        return Graph(self._motion)

    def _evaluate(self, times: Floats) -> Samples:
        return self._graph(times)

    @abstractmethod
    def _motion(self, t: Array, read: Reader) -> Motion:
        """Pose, twist and acceleration as expressions of a time over SX, and of rows."""

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_graph"}


class Path(Expression):
    """A reference whose twist is the plain rate of its coordinates, in inertial axes.

    It fits R^n outputs and angles, several of them too, but no SE2 output, whose velocity is
    in the axes of the reference pose: `planar` makes one of it.
    """

    @property
    def groups(self) -> tuple[Part, ...]:
        """One part, in R^n."""
        return ((self.size, self.size, f"R{self.size}"),)


def check(reference: Reference, outputs: Sequence[Output], where: str) -> None:
    """Refuse a reference that does not fit a list of outputs, see `check_parts`."""
    if not isinstance(reference, Reference):
        raise OutputError(
            f"{where}, reference",
            expected="a Reference",
            came=f"{type(reference).__name__} {reference!r:.60}",
            cure="Make one with `references`; wrap own functions with `references.from_function`.",
        )
    check_parts(reference.groups, outputs, where)


def check_reference(value: object, where: str) -> None:
    """Reject anything but a reference where references are combined."""
    if not isinstance(value, Reference):
        raise ConcurError(
            f"reference {where}",
            expected="references",
            came=type(value).__name__,
            cure="Wrap own functions with `references.from_function`.",
        )
