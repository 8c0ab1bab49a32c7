"""Columns of each output in the flat arrays of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from concur.errors import ShapeError, UnknownNameError
from concur.show.style import Floats
from concur.simulation import Run

# Width of one factor of a group in the flat pose, with rotations as quaternions (x, y, z, w).
_WIDTH = {"R": 1, "SO2": 1, "R2": 2, "R3": 3, "SE2": 3, "SO3": 4, "SE3": 7}
# The inertial axes of its leading entries, where these are a position.
_PLACED = {"R": "x", "R2": "xy", "SE2": "xy", "R3": "xyz", "SE3": "xyz"}


@dataclass(frozen=True)
class Channel:
    """The coordinates of one output that share a unit, so that their norm is meaningful.

    Parameters
    ----------
    output : str
        Name of the output.
    unit : str
        "m" or "rad".
    names : tuple of str
        Names of the coordinates.
    columns : tuple of int
        Their columns in `run.error`, `run.ideal` and `run.deviation`.
    """

    output: str
    unit: str
    names: tuple[str, ...]
    columns: tuple[int, ...]

    @property
    def title(self) -> str:
        """Name of the output and of the quantity."""
        kind = {"m": "position", "rad": "rotation"}.get(self.unit, self.unit)
        return f"{self.output}: {kind}"


def channels(run: Run) -> list[Channel]:
    """Split the outputs of a run into channels of one unit each, in output order."""
    found, start = [], 0
    for output in run.servo.outputs:
        units = tuple(output.coordinate_units)
        for unit in dict.fromkeys(units):
            inside = [i for i, this in enumerate(units) if this == unit]
            found.append(
                Channel(
                    output=output.name,
                    unit=unit,
                    names=tuple(output.coordinate_names[i] for i in inside),
                    columns=tuple(start + i for i in inside),
                )
            )
        start += output.dim
    return found


def group_name(output: Any) -> str:
    """Name of the group of an output, such as "R3xSO3"."""
    return str(getattr(output.group, "name", output.group))


def positions(run: Run) -> dict[str, tuple[Floats, Floats]]:
    """Actual and reference position, (k, 2) or (k, 3), m, of every output that has one, by name.

    Positions in the frame of a body have no path in the inertial frame.
    """
    return {
        output.name: (actual, reference)
        for output, axes, actual, reference in _placed(run)
        if axes[:2] == "xy" and not getattr(output, "relative_to", None)
    }


def relative_positions(run: Run) -> dict[str, tuple[str, str, Floats, Floats]]:
    """Positions in the frame of a body: its name, the axes, actual and reference position, m."""
    return {
        output.name: (output.relative_to, axes, actual, reference)
        for output, axes, actual, reference in _placed(run)
        if axes and getattr(output, "relative_to", None)
    }


def _placed(run: Run) -> Iterator[tuple[Any, str, Floats, Floats]]:
    """Each output with the axes of its position and, along them, position and reference, m."""
    names = [group_name(output) for output in run.servo.outputs]
    widths = [_width(name) for name in names]
    total = sum(widths)
    for label, table in (("run.pose", run.pose), ("run.reference", run.reference)):
        if table.ndim != 2 or table.shape[1] != total:
            raise ShapeError(
                label,
                expected=f"{total} columns for the groups {', '.join(names)}",
                came=f"an array of shape {table.shape}",
                cure="Give the flat poses in output order, rotations as x, y, z, w.",
            )
    start = 0
    for output, name, width in zip(run.servo.outputs, names, widths, strict=True):
        letters = getattr(output, "axes", None) or _PLACED.get(name.split("x")[0], "")
        letters = letters if on_bodies([output]) else ""
        axes = "".join(axis for axis in "xyz" if axis in letters)
        part = [start + letters.index(axis) for axis in axes]
        yield output, axes, run.pose[:, part], run.reference[:, part]
        start += width


def instants(run: Run, number: int) -> NDArray[np.intp]:
    """Indices of samples of a run, evenly spaced in time, from the first to the last."""
    return np.unique(nearest(run.t, np.linspace(run.t[0], run.t[-1], number)))


def nearest(t: Floats, moments: Floats) -> NDArray[np.intp]:
    """Index of the sample nearest to each moment; times are ascending, s."""
    return np.searchsorted((t[1:] + t[:-1]) / 2, moments)


def _width(group: str) -> int:
    if re.fullmatch(r"R\d+", group):
        return int(group[1:])
    factors = group.split("x")
    unknown = [factor for factor in factors if factor not in _WIDTH]
    if unknown:
        raise UnknownNameError(
            f"output group {group!r}",
            expected=f"a product of {', '.join(_WIDTH)}",
            came=", ".join(unknown),
            cure="Name the group as in `Output`, for instance R3xSO3.",
        )
    return sum(_WIDTH[factor] for factor in factors)


def on_bodies(outputs: Iterable[Any]) -> tuple[Any, ...]:
    """Select the outputs on bodies; one that is a function has no place on the robot."""
    return tuple(output for output in outputs if not getattr(output, "is_function", False))
