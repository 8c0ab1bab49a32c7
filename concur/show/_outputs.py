"""Columns of each output in the flat arrays of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concur.outputs import Output
from concur.show.style import Floats


@dataclass(frozen=True, eq=False)
class Place:
    """Position of an output in a run, with its reference.

    Parameters
    ----------
    output : Output
        The output.
    axes : str
        Axes of the columns, such as "xyz": inertial ones, or those of the body `relative_to`.
    actual, reference : ndarray, shape (k, n)
        Position and its reference, m.
    """

    output: Output
    axes: str
    actual: Floats
    reference: Floats

    @property
    def is_path(self) -> bool:
        """Whether it is a path in the inertial frame, at least in the plane z = 0."""
        return self.axes[:2] == "xy" and self.output.relative_to is None


@dataclass(frozen=True, eq=False)
class Attitude:
    """Attitude of an output in a run, with its reference.

    Parameters
    ----------
    output : Output
        The output.
    actual, reference : ndarray, shape (k, n)
        Unit quaternions with the scalar part last, headings in rad, or directions.
    """

    output: Output
    actual: Floats
    reference: Floats


def attitudes(run: Any) -> list[Attitude]:
    """Return the attitudes of the outputs of a run that have one, in output order."""
    found, start = [], 0
    for output in run.servo.outputs:
        start += output.pose_size
        size = 1 if output.group in ("SO2", "SE2") else output.lie.unit_size
        if size and not output.is_function:
            part = slice(start - size, start)
            found.append(Attitude(output, run.pose[:, part], run.reference[:, part]))
    return found


def places(run: Any) -> list[Place]:
    """Return the positions of the outputs of a run or film that have one, in output order."""
    found, start = [], 0
    for output in run.servo.outputs:
        letters = position_axes(output)
        axes = "".join(sorted(letters))
        part = [start + letters.index(axis) for axis in axes]
        start += output.pose_size
        if axes:
            found.append(Place(output, axes, run.pose[:, part], run.reference[:, part]))
    return found


def position_axes(output: Any) -> str:
    """Axes of the leading coordinates of an output, where these are a position; else empty."""
    if output.is_function:
        return ""
    if output.group == "SE2":
        return "xy" if tuple(output.normal) == (0.0, 0.0, 1.0) else ""
    return str(output.axes or {"SE3": "xyz", "R3xSO3": "xyz"}.get(output.group, ""))


def frames_of(robot: Any) -> list[Any]:
    """Bodies that are frames only: fixed, without mass, shape, wheel or another body on them."""
    carrying = {body.parent for body in robot.bodies} | {wheel.body for wheel in robot.wheels}
    return [
        body
        for body in robot.bodies
        if body.parent and not body.joint.nv and not body.inertia.mass
        if not body.shape and body.name not in carrying
    ]


def few(run: Any, number: int) -> NDArray[np.intp]:
    """Indices of samples, at most a number of them, from the first to the last."""
    count = len(run.t)
    return np.unique(np.linspace(0, count - 1, min(count, number)).astype(np.intp))


def nearest(t: Floats, moments: Floats) -> NDArray[np.intp]:
    """Index of the sample nearest to each moment; times are ascending, s."""
    return np.searchsorted((t[1:] + t[:-1]) / 2, moments)
