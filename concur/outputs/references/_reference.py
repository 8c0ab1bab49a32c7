"""References: desired motions of outputs, as formulas of time or as functions of a user.

A `Formula` is an expression over SX. Numbers without a formula are read as rows: the coefficients
of the segment that contains the time, or the samples of a custom function. A formula whose rows all
come from tables is a graph.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike, NDArray

from concur.codegen import Array, Evaluator
from concur.errors import ConcurError
from concur.outputs._output import Output
from concur.outputs._sample import Part, ReferenceSample, check_parts, total
from concur.outputs.references._arguments import numbers, refused

Floats: TypeAlias = NDArray[np.float64]
Samples: TypeAlias = tuple[Floats, Floats, Floats]
Motion: TypeAlias = tuple[Array, Array, Array]
"""Pose, twist and acceleration as columns over SX."""


BLOCK = 10_000
"""Rows that are evaluated at once."""


class Rows(Protocol):
    """Numbers that depend on time by no formula: `width` of them at each time."""

    @property
    def width(self) -> int:
        """Count of numbers at each time."""

    def at(self, times: Floats) -> Floats:
        """Look up the rows at times (k,), shape (k, width)."""


class Reader:
    """Takes rows, and returns the symbols of the row at the time of the reference.

    Corners are times (s) at which a formula, or a part of it, is not smooth.
    """

    def __init__(self, corners: Iterable[float] = ()) -> None:
        self.rows, self.symbols, self.corners = list[Rows](), list[Array](), set(corners)

    def __call__(self, rows: Rows) -> Array:
        self.rows.append(rows)
        self.symbols.append(ca.SX.sym(f"row{len(self.symbols)}", rows.width))
        return self.symbols[-1]


@dataclass(frozen=True, eq=False)
class Table:
    """Rows (k + 1, width) that change at increasing times (k,).

    The first holds before the first time, each other one from its time on.
    """

    times: Floats
    rows: Floats

    @property
    def width(self) -> int:
        """Count of numbers at each time."""
        return int(self.rows.shape[1])

    def at(self, times: Floats) -> Floats:
        """Look up the rows at times (k,), shape (k, width)."""
        return self.rows[np.searchsorted(self.times, times, side="right")]

    def over(self, t: ca.MX) -> ca.MX:
        """Look up the row at a symbolic time by bisection, shape (width, 1)."""
        # The ends of the grid do not count: times beyond them belong to the outer rows.
        grid = np.concatenate([self.times[:1] - 1.0, self.times, self.times[-1:] + 1.0])
        row = ca.low(ca.DM(grid), t, {"lookup_mode": "binary"})
        return ca.MX(ca.DM(self.rows.T))[:, row]


@dataclass(frozen=True, eq=False)
class Pieces:
    """A reference as one formula over SX between the times at which rows of its tables change.

    Parameters
    ----------
    function : casadi.Function
        From the time t (s) and the rows of each table to pose, twist and acceleration.
    tables : tuple of Table
        The tables.
    """

    function: ca.Function
    tables: tuple[Table, ...]

    @property
    def knots(self) -> Floats:
        """Times (s) at which a row changes, ascending."""
        return np.unique(np.concatenate([np.zeros(0), *(table.times for table in self.tables)]))

    def rows(self, times: Floats) -> list[Floats]:
        """Rows of each table at times (k,), shapes (k, width)."""
        return [table.at(times) for table in self.tables]


class Reference(ABC):
    """Desired motion of one or several outputs as a function of time.

    Attributes
    ----------
    pose_size : int
        Number of pose coordinates, see `ReferenceSample`.
    size : int
        Number of twist coordinates.
    notes : tuple of str
        What a user should learn of how it was made, such as the smoothing of samples.
    warnings : tuple of str
        What suggests a mistake, such as a gap between samples.
    span : tuple of float, or None
        Times of the first and the last sample, s, if it comes from a file.
    smoothing : Smoothing or None
        Scatter and noise of the samples, if it was smoothed from a file.

    Examples
    --------
    >>> import concur as cc
    >>> cc.references.hold([1.0, 0.0])(0.0).pose
    array([1., 0.])
    """

    pose_size: int
    size: int
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    span: tuple[float, float] | None = None
    smoothing: Any = None

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
        pose, twist, acceleration = (part[0] for part in self.sample([t]))
        return ReferenceSample(pose, twist, acceleration, groups=self._kept_groups)

    @cached_property
    def _kept_groups(self) -> tuple[Part, ...]:
        """The same object at each time, by which callers notice that nothing has changed."""
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
            Formula over SX, and its tables. None with custom functions.
        """
        return None

    @property
    def knots(self) -> Floats:
        """Times (s), ascending, between which the motion is smooth; unknown of custom functions.

        Integrators end their steps there.
        """
        return np.zeros(0)

    @abstractmethod
    def _evaluate(self, times: Floats) -> Samples:
        """Do the work of `sample` on times that have been checked."""

    def _expression(self, t: Array, read: Reader) -> Motion:
        """Pose, twist and acceleration as expressions of a time over SX, and of rows."""
        pose, twist, acceleration = ca.vertsplit(
            read(_Evaluated(self)), [0, *np.cumsum([self.pose_size, self.size, self.size])]
        )
        return pose, twist, acceleration


@dataclass(frozen=True, eq=False)
class _Evaluated:
    """Samples of a reference without a formula."""

    reference: Reference

    @property
    def width(self) -> int:
        return self.reference.pose_size + 2 * self.reference.size

    def at(self, times: Floats) -> Floats:
        return np.hstack(self.reference._evaluate(times))


class Formula(Reference):
    """A reference that is an expression of time; its parts may be other references.

    `motion` takes a time over SX and a `Reader`, and returns pose, twist and acceleration.
    `corners` are times at which the formula itself is not smooth.
    """

    def __init__(
        self,
        groups: Iterable[Part],
        motion: Callable[[ca.SX, Reader], Sequence[Array]],
        corners: Iterable[float] = (),
    ) -> None:
        self._groups = tuple(groups)
        self.pose_size, self.size = total(self._groups)
        t, read = ca.SX.sym("t"), Reader(corners)
        results = [ca.densify(ca.SX(part)) for part in motion(t, read)]
        self._rows, self._corners = read.rows, sorted(read.corners)
        self._motion = ca.Function("motion", [t, *read.symbols], results, {"cse": True})

    @property
    def groups(self) -> tuple[Part, ...]:
        return self._groups

    @property
    def knots(self) -> Floats:
        tables = [rows.times for rows in self._rows if isinstance(rows, Table)]
        return np.unique(np.concatenate([self._corners, *tables]))

    def _expression(self, t: Array, read: Reader) -> Motion:
        read.corners.update(self._corners)
        pose, twist, acceleration = self._motion.call([t, *map(read, self._rows)])
        return pose, twist, acceleration

    def graph(self) -> ca.Function | None:
        pieces = self.pieces()
        if pieces is None:
            return None
        t = ca.MX.sym("t") if pieces.tables else ca.SX.sym("t")
        motion = self._motion.call([t, *(table.over(t) for table in pieces.tables)])
        return ca.Function("reference", [t], motion, ["t"], ["pose", "twist", "acceleration"])

    def pieces(self) -> Pieces | None:
        tables = tuple(rows for rows in self._rows if isinstance(rows, Table))
        return Pieces(self._motion, tables) if len(tables) == len(self._rows) else None

    def _evaluate(self, times: Floats) -> Samples:
        rows = [source.at(times) for source in self._rows]
        if len(times) == 1:
            found = self._at_once(times, *[row[0] for row in rows])
            poses, twists, changes = (part[None] for part in found)
        else:
            poses, twists, changes = evaluate(self._motion, times[:, None], *rows)
        return poses, twists, changes

    @cached_property
    def _at_once(self) -> Evaluator:
        sizes = [(self._motion.size1_out(i),) for i in range(3)]
        return Evaluator(self._motion, sizes, "reference")

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_at_once"}


def evaluate(function: ca.Function, *tables: Floats) -> list[Floats]:
    """Evaluate a function of columns over SX row by row: tables (k, size) to tables (k, width)."""
    count = len(tables[0])
    given = [np.ascontiguousarray(table) for table in tables]
    results = [np.zeros((count, function.size1_out(i))) for i in range(function.n_out())]
    for start in range(0, count, BLOCK):
        # In memory a table of rows is a matrix of columns, as CasADi orders it.
        rows = slice(start, min(start + BLOCK, count))
        buffer, trigger = function.map(rows.stop - start).buffer()
        for i, table in enumerate(given):
            buffer.set_arg(i, table[rows].data)
        for i, result in enumerate(results):
            buffer.set_res(i, result[rows].data)
        trigger()
    return results


def from_function(
    function: Callable[[float], ReferenceSample], pose_size: int, size: int
) -> Reference:
    """Make a reference of a custom function of time.

    Parameters
    ----------
    function : callable
        Maps a time (s) to a `ReferenceSample`. Twist and acceleration must be the true
        derivatives of the pose: the servo feeds them forward.
    pose_size : int
        Number of pose coordinates of the samples.
    size : int
        Number of twist coordinates of the samples.

    Returns
    -------
    Reference
        The function as a reference.

    Raises
    ------
    ConcurError
        At once if `function` cannot be called or a size is no positive whole number; when
        evaluated if it returns something else than a numeric sample of the sizes named.

    Examples
    --------
    >>> import math
    >>> wave = from_function(
    ...     lambda t: ReferenceSample([math.sin(t)], [math.cos(t)], [-math.sin(t)]), 1, 1
    ... )
    >>> wave(0.0).twist
    array([1.])
    """
    if not callable(function):
        raise refused(
            "from_function", "a function of time", repr(function), "Pass it itself.", ConcurError
        )
    for name, count in (("pose_size", pose_size), ("size", size)):
        if not isinstance(count, int | np.integer) or count < 1:
            expected, cure = "a positive whole number", "Count the coordinates of the samples."
            raise refused(f"from_function, {name}", expected, repr(count), cure, ConcurError)
    return _Function(function, int(pose_size), int(size))


class _Function(Reference):
    def __init__(
        self, function: Callable[[float], ReferenceSample], pose_size: int, size: int
    ) -> None:
        self.pose_size, self.size = pose_size, size
        self._function = function

    def _evaluate(self, times: Floats) -> Samples:
        samples = [self._checked(float(t)) for t in times]
        return (
            np.array([s.flat_pose for s in samples]).reshape(-1, self.pose_size),
            np.array([s.twist for s in samples]).reshape(-1, self.size),
            np.array([s.acceleration for s in samples]).reshape(-1, self.size),
        )

    def _checked(self, t: float) -> ReferenceSample:
        sample, where = self._function(t), f"from_function, t = {t:.9g} s"
        if not isinstance(sample, ReferenceSample):
            raise refused(
                where, "a ReferenceSample", type(sample).__name__, "Return one.", ConcurError
            )
        if any(isinstance(x, ca.SX) for x in (sample.pose, sample.twist, sample.acceleration)):
            cure = "Samples of CasADi SX go to the servo itself, not into a reference."
            raise refused(where, "a sample of numbers", "a symbolic one", cure, ConcurError)
        sizes = sample.flat_pose.size, sample.twist.size
        if sizes != (self.pose_size, self.size):
            expected = f"{self.pose_size} pose and {self.size} twist coordinates"
            cure = "Return samples of the sizes named in `from_function`."
            raise refused(where, expected, f"{sizes[0]} and {sizes[1]}", cure)
        return sample


def reference_for(
    reference: Reference | Callable[[float], ReferenceSample] | None,
    outputs: Sequence[Output],
    where: str,
) -> Reference:
    """Take a reference for outputs.

    Parameters
    ----------
    reference : Reference, callable or None
        A reference, or a function of time that returns samples; None without outputs.
    outputs : sequence of Output
        The outputs.
    where : str
        Place named in errors.

    Returns
    -------
    Reference
        The reference.

    Raises
    ------
    ConcurError
        If it is neither, or does not fit the outputs.
    """
    if reference is None and not outputs:
        return Formula((), lambda t, read: [ca.SX(0, 1)] * 3)
    if not isinstance(reference, Reference):
        if reference is None or not callable(reference) or isinstance(reference, type):
            raise ConcurError(
                "reference",
                expected="a Reference or a function from time to ReferenceSample",
                came=f"{type(reference).__name__} {reference!r:.60}",
                cure="Make one with `references`, for example `references.hold([0.1, 0.2])`.",
            )
        sizes = total([(o.pose_size, o.twist_size, o.group) for o in outputs])
        reference = from_function(reference, *sizes)
    check_parts(reference.groups, outputs, where)
    return reference
