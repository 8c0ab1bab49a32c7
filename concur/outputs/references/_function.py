"""Custom functions of time as references."""

from __future__ import annotations

from collections.abc import Callable

import casadi as ca
import numpy as np

from concur.errors import ConcurError, ShapeError
from concur.outputs._sample import ReferenceSample
from concur.outputs.references._columns import Floats
from concur.outputs.references._expression import Samples
from concur.outputs.references._reference import Reference


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
        raise ConcurError(
            "reference from_function",
            expected="a function from time to ReferenceSample",
            came=repr(function),
            cure="Pass the function itself.",
        )
    for name, count in (("pose_size", pose_size), ("size", size)):
        if not isinstance(count, int | np.integer) or count < 1:
            raise ConcurError(
                f"reference from_function, {name}",
                expected="a positive whole number",
                came=repr(count),
                cure="Count the coordinates of the samples.",
            )
    return _Function(function, int(pose_size), int(size))


def as_reference(value: object, pose_size: int, size: int, where: str = "reference") -> Reference:
    """Take a reference as it is and wrap a plain function of time as by `from_function`."""
    if isinstance(value, Reference):
        return value
    if not callable(value) or isinstance(value, type):
        raise ConcurError(
            where,
            expected="a Reference or a function from time to ReferenceSample",
            came=f"{type(value).__name__} {value!r:.60}",
            cure="Make one with `references`, for example `references.hold([0.1, 0.2])`.",
        )
    return from_function(value, pose_size, size)


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
        sample = self._function(t)
        if not isinstance(sample, ReferenceSample):
            raise ConcurError(
                f"reference from_function, t = {t:.9g} s",
                expected="a ReferenceSample",
                came=type(sample).__name__,
                cure="Return ReferenceSample(pose, twist, acceleration).",
            )
        parts = (sample.pose, sample.twist, sample.acceleration)
        if any(isinstance(part, ca.SX) for part in parts):
            raise ConcurError(
                f"reference from_function, t = {t:.9g} s",
                expected="a sample of numbers",
                came="a symbolic one",
                cure="Samples of CasADi SX go to the servo itself, not into a reference.",
            )
        sizes = (sample.flat_pose.size, sample.twist.size)
        if sizes != (self.pose_size, self.size):
            raise ShapeError(
                f"reference from_function, t = {t:.9g} s",
                expected=f"{self.pose_size} pose and {self.size} twist coordinates",
                came=f"{sizes[0]} and {sizes[1]}",
                cure="Return samples of the sizes named in `from_function`.",
            )
        return sample
