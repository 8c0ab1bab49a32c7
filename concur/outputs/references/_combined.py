"""References made of others: side by side, or one on top of the other."""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca
import numpy as np

from concur.codegen import Array, as_floats
from concur.errors import ConcurError, ShapeError, shown
from concur.outputs._sample import Part
from concur.outputs.references._expression import Motion, Reader
from concur.outputs.references._reference import Expression, Reference, check_reference


def stack(*references: Reference) -> Reference:
    """Put the references of several outputs into one.

    Parameters
    ----------
    *references : Reference
        References in the order of the outputs.

    Returns
    -------
    Reference
        Reference of all outputs.

    Raises
    ------
    ConcurError
        If there is no argument, or one is not a `Reference`.

    Examples
    --------
    >>> from concur.outputs.references import hold
    >>> stack(hold([1.0, 2.0]), hold([3.0]))(0.0).pose
    array([1., 2., 3.])
    """
    if not references:
        raise ConcurError(
            "reference stack",
            expected="at least one reference",
            came="no value",
            cure="Give the reference of each output, in output order.",
        )
    for reference in references:
        check_reference(reference, "stack")
    return _Stack(references)


def relative(
    reference: Reference, to: Reference, components: Sequence[int] | None = None
) -> Reference:
    """Add two references in R^n, for example a hand's circle to the path of its base.

    Parameters
    ----------
    reference : Reference
        Motion relative to `to`, in inertial axes: only the place moves along, not the heading.
    to : Reference
        Motion of the moving origin.
    components : sequence of int, optional
        Where the coordinates of the one with fewer coordinates are added in the other. By
        default to the first ones: a path in R^2 moves x and y of a point in R^3.

    Returns
    -------
    Reference
        The sum, with as many coordinates and the groups of the larger one; of `reference` where
        both are of one size.

    Raises
    ------
    ConcurError
        If one of them is a reference of poses, or `components` does not fit.

    Examples
    --------
    >>> from concur.outputs.references import hold, polynomial
    >>> path = polynomial([[0.0, 0.0], [1.0, 0.0]])
    >>> relative(hold([0.1, 0.2, 0.3]), path)(1.0).pose
    array([1.1, 0.2, 0.3])
    """
    for part in (reference, to):
        check_reference(part, "relative")
        if not _adds(part):
            raise ShapeError(
                "reference relative",
                expected="two references in R^n",
                came="a reference with a rotation in it",
                cure="Add positions only; give the orientation in inertial axes.",
            )
    low, high = sorted((reference, to), key=lambda r: r.size)
    given = np.arange(low.size) if components is None else components
    columns = np.array(as_floats(given, "reference relative, components"))
    if (
        columns.shape != (low.size,)
        or not (columns % 1.0 == 0.0).all()
        or len(set(columns.tolist())) != low.size
        or columns.min() < 0
        or columns.max() >= high.size
    ):
        raise ShapeError(
            "reference relative, components",
            expected=f"{low.size} different whole numbers from 0 to {high.size - 1}",
            came=shown(components),
            cure="Name the coordinate of the larger reference to which each number is added.",
        )
    return _Sum(
        low, high, columns.astype(int).tolist(), reference if reference.size == high.size else to
    )


class _Stack(Expression):
    def __init__(self, references: tuple[Reference, ...]) -> None:
        self.pose_size = sum(r.pose_size for r in references)
        self.size = sum(r.size for r in references)
        self._references = references

    @property
    def groups(self) -> tuple[Part, ...]:
        return tuple(part for reference in self._references for part in reference.groups)

    def _motion(self, t: Array, read: Reader) -> Motion:
        parts = [reference._motion(t, read) for reference in self._references]
        pose, twist, acceleration = (ca.vertcat(*part) for part in zip(*parts, strict=True))
        return pose, twist, acceleration


class _Sum(Expression):
    def __init__(
        self, low: Reference, high: Reference, columns: list[int], named: Reference
    ) -> None:
        self.pose_size = self.size = high.size
        self._named = named
        self._low, self._high, self._columns = low, high, columns

    @property
    def groups(self) -> tuple[Part, ...]:
        return self._named.groups

    def _motion(self, t: Array, read: Reader) -> Motion:
        pose, twist, acceleration = map(ca.SX, self._high._motion(t, read))
        for part, more in zip((pose, twist, acceleration), self._low._motion(t, read), strict=True):
            part[self._columns] += more
        return pose, twist, acceleration


def _adds(reference: Reference) -> bool:
    """Whether twists are plain rates of the pose coordinates, so that references add."""
    return all(pose_size == size and group != "SE2" for pose_size, size, group in reference.groups)
