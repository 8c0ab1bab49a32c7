"""Bounds of every axis for the guard."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hil.errors import RigFileError

if TYPE_CHECKING:
    from hil.settings import Axis, Rig

SPEED_MARGIN = 0.2
"""Relative excess of the speed limit at which the rig stops."""

END_SHARE = 0.05
"""Width of each soft zone inside and each margin outside, as a fraction of the joint's range."""

LARGEST_ZONE = 0.1
"""Largest soft zone and margin at an end of the range, rad (m)."""

LARGEST_AGE_CYCLES = 8
"""Default age above which a report is too old, cycles."""

_ULP = 2.0**-52

_COLUMNS = {
    "torque": "torque_limit",
    "rate": "torque_rate_limit",
    "speed": "speed_limit",
    "power": "power_limit",
    "damping": "damping",
    "stiffness": "stiffness",
}
"""Bounds and their fields in `Axis`."""


@dataclass(frozen=True, slots=True)
class AxisLimits:
    """Bounds of one axis as Python floats, which take half the time of NumPy's in a short loop."""

    torque: float
    rate: float
    speed: float
    low: float
    high: float
    power: float
    damping: float
    stiffness: float
    slack: float  # bound of the rounding error of a change of the torque
    zone: float  # width of the soft zone inside, and of the margin outside, each end of the range
    overspeed: float  # speed at which the rig stops


@dataclass(frozen=True, eq=False)
class Limits:
    """Bounds of every axis, at the joint, in the order of the axes; fixed while a rig runs.

    Parameters
    ----------
    torque : numpy.ndarray
        Largest torque, N m (N), above zero, shape (n,).
    rate : numpy.ndarray
        Largest rate of change of the torque, N m/s (N/s), above zero, shape (n,).
    speed : numpy.ndarray
        Largest speed, rad/s (m/s), above zero, shape (n,).
    low, high : numpy.ndarray
        Ends of the range, rad (m), shape (n,); infinite on wheels.
    power : numpy.ndarray
        Largest mechanical power, W, above zero, shape (n,); infinite: no limit.
    damping : numpy.ndarray
        Joint damping of a braking stop, N m s/rad (N s/m), shape (n,).
    stiffness : numpy.ndarray
        Joint stiffness of a holding stop, N m/rad (N/m), shape (n,).
    period : float
        Duration of a cycle, s.
    largest_age : float
        Age above which a report is too old, s.
    names : sequence of str, optional
        Names of the axes, for messages.

    Attributes
    ----------
    size : int
        Number of axes.
    axes : tuple of AxisLimits
        The bounds of each axis.

    Raises
    ------
    RigFileError
        If a bound has the wrong shape or an invalid value, such as NaN or `low` not below `high`.

    Examples
    --------
    >>> import hil
    >>> limits = hil.Limits.from_rig(hil.load_rig("examples/rover_rig/rig.toml"))
    >>> limits.size, limits.torque
    (5, array([ 8.,  8., 12., 12.,  4.]))
    """

    torque: NDArray[np.float64]
    rate: NDArray[np.float64]
    speed: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    power: NDArray[np.float64]
    damping: NDArray[np.float64]
    stiffness: NDArray[np.float64]
    period: float
    largest_age: float
    names: Sequence[str] = ()
    size: int = field(init=False)
    shape: tuple[int] = field(init=False, repr=False)
    axes: tuple[AxisLimits, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        columns = ("torque", "rate", "speed", "low", "high", "power", "damping", "stiffness")
        for name in columns:
            array = np.array(getattr(self, name), dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        size = self.torque.size
        names = tuple(self.names) or tuple(f"axis {i}" for i in range(size))
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "shape", (size,))
        for name in columns:
            self._require(name, getattr(self, name).shape == (size,), f"shape ({size},)")
        finite = np.isfinite
        for name in ("torque", "rate", "speed"):
            array = getattr(self, name)
            self._require(name, finite(array) & (array > 0.0), "a finite bound above zero")
        self._require("power", self.power > 0.0, "a bound above zero")
        for name in ("damping", "stiffness"):
            array = getattr(self, name)
            self._require(name, finite(array) & (array >= 0.0), "a finite number, not negative")
        self._require("low", self.low < self.high, "a lower end below the upper end")
        self._require("low", self.low < np.inf, "a lower end below infinity")
        self._require("high", self.high > -np.inf, "an upper end above minus infinity")
        for name in ("period", "largest_age"):
            value = getattr(self, name)
            good = math.isfinite(value) and value > 0.0
            self._require(name, good, "a finite time above zero")
        # The largest step is reduced by the rounding error of a change of the torque.
        slack = 4.0 * _ULP * self.torque
        self._require(
            "rate",
            self.rate * self.period > 2.0 * slack,
            "a change of the torque in a cycle above the rounding error",
        )
        zone = np.minimum(END_SHARE * (self.high - self.low), LARGEST_ZONE)
        self._require("high", zone > 0.0, "a range above the rounding error")
        parts = [getattr(self, name) for name in columns]
        parts += [slack, zone, self.speed * (1.0 + SPEED_MARGIN)]
        axes = zip(*(part.tolist() for part in parts), strict=True)
        object.__setattr__(self, "axes", tuple(AxisLimits(*bounds) for bounds in axes))

    def _require(self, name: str, good: NDArray[np.bool_] | bool, expected: str) -> None:
        if np.all(good):
            return
        value = getattr(self, name)
        if np.ndim(good):
            index = int(np.argmin(good))
            where, came = f"`{name}` of axis `{self.names[index]}`", f"{value[index]}"
        else:
            where, came = f"`{name}` of the limits", f"{value}"
        raise RigFileError(
            where,
            expected=expected,
            came=came,
            cure="Correct the limit in the rig file: an invalid limit does not bound the torque.",
        )

    @classmethod
    def from_axes(
        cls, axes: Sequence[Axis], period: float, largest_age: float | None = None
    ) -> Limits:
        """Make limits from the axes of a rig file.

        Parameters
        ----------
        axes : sequence of Axis
            The axes, in the order of the robot's controls.
        period : float
            Duration of a cycle, s.
        largest_age : float, optional
            Age above which a report is too old, s; default: 8 periods.

        Returns
        -------
        Limits
            Bounds of every axis.
        """
        ends = np.array([axis.position_limits for axis in axes]).reshape(-1, 2)
        return cls(
            **{name: np.array([getattr(a, of) for a in axes]) for name, of in _COLUMNS.items()},
            low=ends[:, 0],
            high=ends[:, 1],
            period=period,
            largest_age=LARGEST_AGE_CYCLES * period if largest_age is None else largest_age,
            names=tuple(a.name for a in axes),
        )

    @classmethod
    def from_rig(cls, rig: Rig) -> Limits:
        """Make the limits of a rig; its policy of missing reports bounds their age.

        Parameters
        ----------
        rig : Rig
            The rig.

        Returns
        -------
        Limits
            Bounds of every axis; the largest age is the latency plus `max_consecutive_faults` + 2
            periods.
        """
        period = rig.loop.period
        age = (rig.policies.max_consecutive_faults + 2) * period + rig.estimator.latency
        return cls.from_axes(rig.axes, period, age)
