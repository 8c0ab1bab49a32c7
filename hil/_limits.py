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
    from hil._transmission import Transmission
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
    power: float
    damping: float
    stiffness: float
    slack: float  # bound of the rounding error of a change of the torque
    overspeed: float  # speed at which the rig stops


@dataclass(frozen=True, slots=True)
class JointLimits:
    """Range of one joint, and the motors that move or measure it."""

    low: float
    high: float
    zone: float  # width of the soft zone inside, and of the margin outside, each end of the range
    torque: float  # largest torque of all motors
    damping: float
    motors: tuple[tuple[int, float, float], ...]
    """Index of each motor, its ratio to the joint, and the joint's position per its own."""


@dataclass(frozen=True, eq=False)
class Limits:
    """Bounds of every axis, at the motor, and ranges of its joints; fixed while a rig runs.

    Parameters
    ----------
    torque : numpy.ndarray
        Largest torque, N m (N), above zero, shape (n,).
    rate : numpy.ndarray
        Largest rate of change of the torque, N m/s (N/s), above zero, shape (n,).
    speed : numpy.ndarray
        Largest speed, rad/s (m/s), above zero, shape (n,).
    low, high : numpy.ndarray
        Ends of the range of each joint, rad (m), shape (k,); infinite on wheels.
    power : numpy.ndarray
        Largest mechanical power, W, above zero, shape (n,); infinite: no limit.
    damping : numpy.ndarray
        Damping of a braking stop, N m s/rad (N s/m), shape (n,).
    stiffness : numpy.ndarray
        Stiffness of a holding stop, N m/rad (N/m), shape (n,).
    period : float
        Duration of a cycle, s.
    largest_age : float
        Age above which a report is too old, s.
    names : sequence of str, optional
        Names of the axes, for messages.
    ratios, inverse : numpy.ndarray, optional
        Turns of the motors per turn of the joints, shape (n, k), and its inverse. Default: one
        joint for each motor.
    continuous, thermal_time : numpy.ndarray, optional
        Torque that each motor bears for any time, N m (N), and time constant of its heating, s,
        shape (n,). Default: heat is no limit.

    Attributes
    ----------
    size : int
        Number of axes.
    axes : tuple of AxisLimits
        The bounds of each axis.
    joints : tuple of JointLimits
        The joints with a range.

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
    ratios: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    inverse: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 0)))
    continuous: NDArray[np.float64] | float = np.inf
    thermal_time: NDArray[np.float64] | float = 1.0
    size: int = field(init=False)
    shape: tuple[int] = field(init=False, repr=False)
    axes: tuple[AxisLimits, ...] = field(init=False, repr=False)
    joints: tuple[JointLimits, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for name in (*_COLUMNS, "low", "high"):
            array = np.array(getattr(self, name), dtype=np.float64)
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        size = self.torque.size
        names = tuple(self.names) or tuple(f"axis {i}" for i in range(size))
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "shape", (size,))
        for name in ("ratios", "inverse"):
            if not getattr(self, name).size:
                object.__setattr__(self, name, np.eye(size))
        ratios, inverse = self.ratios, self.inverse
        for name in (*_COLUMNS, "low", "high"):
            count = size if name in _COLUMNS else ratios.shape[1]
            self._require(name, getattr(self, name).shape == (count,), f"shape ({count},)")
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
        parts = [getattr(self, name) for name in _COLUMNS]
        parts += [slack, self.speed * (1.0 + SPEED_MARGIN)]
        axes = zip(*(part.tolist() for part in parts), strict=True)
        object.__setattr__(self, "axes", tuple(AxisLimits(*bounds) for bounds in axes))
        torque, damping = np.abs(ratios).T @ self.torque, (ratios**2).T @ self.damping
        parts = [self.low, self.high, zone, torque, damping]
        joints = []
        for j, (low, high, near, most, drag) in enumerate(np.stack(parts, axis=1).tolist()):
            pairs = zip(ratios[:, j].tolist(), inverse[j].tolist(), strict=True)
            motors = tuple((i, *pair) for i, pair in enumerate(pairs) if any(pair))
            if math.isfinite(low) or math.isfinite(high):
                joints.append(JointLimits(low, high, near, most, drag, motors))
        object.__setattr__(self, "joints", tuple(joints))

    def _require(self, name: str, good: NDArray[np.bool_] | bool, expected: str) -> None:
        if np.all(good):
            return
        value = getattr(self, name)
        if np.ndim(good):
            at = int(np.argmin(good))
            of_joint = name in ("low", "high")  # which has the name of its first motor
            index = int(np.argmax(self.ratios[:, at] != 0.0)) if of_joint else at
            where, came = f"`{name}` of axis `{self.names[index]}`", f"{value[at]}"
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
        cls,
        axes: Sequence[Axis],
        period: float,
        largest_age: float | None = None,
        transmission: Transmission | None = None,
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
        transmission : Transmission, optional
            Joints of the axes, with their ranges. Default: one for each axis, with its range.

        Returns
        -------
        Limits
            Bounds of every axis.
        """
        ends = np.array([axis.position_limits for axis in axes]).reshape(-1, 2)
        own: dict[str, NDArray[np.float64]] = {}
        if transmission is not None:
            ends = transmission.limits
            own = {"ratios": transmission.ratios, "inverse": transmission.inverse}
        return cls(
            **{name: np.array([getattr(a, of) for a in axes]) for name, of in _COLUMNS.items()},
            low=ends[:, 0],
            high=ends[:, 1],
            period=period,
            largest_age=LARGEST_AGE_CYCLES * period if largest_age is None else largest_age,
            names=tuple(a.name for a in axes),
            **own,
            continuous=np.array([a.continuous for a in axes]),
            thermal_time=np.array([a.thermal_time for a in axes]),
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
        return cls.from_axes(rig.axes, period, age, rig.transmission)
