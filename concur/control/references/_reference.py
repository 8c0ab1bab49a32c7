"""Base class of references, and the check against a list of outputs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import Array
from concur.control._output import Output
from concur.control._sample import ReferenceSample
from concur.control.references._columns import Floats
from concur.control.references._expression import Graph, Motion, Pieces, Reader, Rows, Samples
from concur.control.references._inputs import numbers
from concur.errors import ConcurError, OutputError, ShapeError

Part: TypeAlias = tuple[int, int, str | None]

_LINE: Part = (1, 1, "R")
_FACTORS: dict[str, list[Part]] = {
    "R": [_LINE],
    "R3xSO3": [*[_LINE] * 3, (4, 3, "SO3")],
}


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
        return ReferenceSample(poses[0], twists[0], accelerations[0])

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
        >>> from concur.control.references import polynomial
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


def _resized(reference: Reference, outputs: Sequence[Output], pose_size: int) -> str:
    """Remedy for a wrong number of coordinates: a flat pose is not a point of R^7."""
    grouped = [o.group for o in outputs if o.pose_size != o.dim]
    if reference.pose_size == pose_size and grouped:
        return (
            f'Name the group of a flat pose, as in `hold(pose, "{grouped[0]}")`, and stack one '
            "reference for each output, in output order."
        )
    return "Stack one reference for each output, in output order."


def check(reference: Reference, outputs: Sequence[Output], where: str) -> None:
    """Refuse a reference that does not fit a list of outputs.

    Sizes must agree, and where a part of the reference is made for a certain group, this must be
    the output's. Products count by their factors: a place in R^3 and a quaternion, stacked, fit an
    output in "R3xSO3". A part for any group fits one or several whole outputs.
    """
    if not isinstance(reference, Reference):
        raise OutputError(
            f"{where}, reference",
            expected="a Reference",
            came=f"{type(reference).__name__} {reference!r:.60}",
            cure="Make one with `references`; wrap own functions with `references.from_function`.",
        )
    needed: list[Part] = [(o.pose_size, o.dim, o.group) for o in outputs]
    listed = ", ".join(f"`{o.name}` {_shown(w)}" for o, w in zip(outputs, needed, strict=True))
    came = ", ".join(_shown(part) for part in reference.groups)
    pose_size, size = sum(part[0] for part in needed), sum(part[1] for part in needed)
    if (reference.pose_size, reference.size) != (pose_size, size):
        raise ShapeError(
            f"{where}, reference",
            expected=f"{pose_size} pose and {size} twist coordinates, in output order: {listed}",
            came=f"{reference.pose_size} and {reference.size}: {came}",
            cure=_resized(reference, outputs, pose_size),
        )
    atoms = [(i, atom) for i, part in enumerate(needed) for atom in factors(part)]
    start = 0
    for part in reference.groups:
        stop, fits = _covered(part, [atom for _, atom in atoms[start:]])
        if not fits:
            first = atoms[start + stop][0]
            raise OutputError(
                f"{where}, reference of output `{outputs[first].name}`",
                expected=f"a part in {_shown(needed[first])}",
                came=f"one in {_shown(part)}; the outputs are {listed}, the parts {came}",
                cure="Make the reference of each output for its group (`group=...`; `planar` for "
                "SE2) and stack them in output order.",
                output=outputs[first].name,
            )
        start += stop


def _covered(part: Part, atoms: list[Part]) -> tuple[int, bool]:
    """Number of atoms that a part takes up and True, or place of the first misfit and False."""
    if part[2] is None:
        pose_size = size = count = 0
        while pose_size < part[0] or size < part[1]:
            pose_size, size = pose_size + atoms[count][0], size + atoms[count][1]
            count += 1
        fits = (pose_size, size) == part[:2]
        return (count, True) if fits else (0, False)
    own, plain = factors(part), part[2] != "R"
    for i, atom in enumerate(own):
        angle = plain and i < len(atoms) and atom == _LINE and atoms[i][2] == "SO2"
        if not angle and (i >= len(atoms) or atom != atoms[i]):
            return min(i, len(atoms) - 1), False
    return len(own), True


def factors(part: Part) -> list[Part]:
    """Factors of a part: lines for R^n, lines and "SO3" for "R3xSO3", else the part itself."""
    name = part[2] or ""
    if name.startswith("R") and name[1:].isdigit():
        return [_LINE] * int(name[1:])
    return _FACTORS.get(name, [part])


def _shown(part: Part) -> str:
    return f"{part[2] or 'any group'} ({part[0]} pose, {part[1]} twist coordinates)"


def check_reference(value: object, where: str) -> None:
    """Reject anything but a reference where references are combined."""
    if not isinstance(value, Reference):
        raise ConcurError(
            f"reference {where}",
            expected="references",
            came=type(value).__name__,
            cure="Wrap own functions with `references.from_function`.",
        )
