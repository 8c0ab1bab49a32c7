"""Layout of a row: the numbers of one cycle for records, views and replay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from hil._concur import TrackingLaw

SCALARS: tuple[tuple[str, str], ...] = (
    ("cycle", ""),
    ("time", "s"),  # of the loop's clock, at the start of the cycle
    ("deadline", "s"),  # scheduled start of the cycle
    ("elapsed", "s"),  # since RUN began: argument of the reference; NaN before
    ("compute", "s"),  # decode, state, tick, guard, encode
    ("state", ""),  # `State` of the latch
    ("reason", ""),  # `Reason` of the stop; 0: no stop
    ("tick", ""),  # `TickStatus`
    ("flags", ""),  # `Flag` bits of the guard's verdict
    ("late", ""),  # counters so far
    ("lost", ""),
    ("clipped", ""),
    ("pose_age", "s"),  # age of the last external pose; NaN before the first pose
    ("command_time", "s"),  # of the loop's clock, when the commands were sent
    ("axis", ""),  # axis that causes the stop; -1: none
)
"""Scalar columns and their units."""

LARGEST = 10_000
"""Largest valid size in a layout."""


@dataclass(frozen=True)
class Layout:
    """Position of each quantity in a row of float64.

    Parameters
    ----------
    axes : tuple of str
        Names of the axes.
    nq, ns : int
        Lengths of the estimated state.
    pose_size, size : int
        Lengths of the reference's pose, and of the error.
    limits : tuple of str
        Names of the limits that the law keeps.
    further : int
        By how much twist and acceleration of the reference are longer than the error: one for each
        output in S2.
    """

    axes: tuple[str, ...]
    nq: int
    ns: int
    pose_size: int
    size: int
    limits: tuple[str, ...] = ()
    further: int = 0
    spans: Mapping[str, slice] = field(init=False, repr=False, compare=False)
    width: int = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.axes)
        lengths = {name: 1 for name, _ in SCALARS} | {
            "q": self.nq,
            "s": self.ns,
            "pose": self.pose_size,
            "twist": self.size + self.further,
            "acceleration": self.size + self.further,
            "error": self.size,
            "demand": n,  # torque of the law
            "torque": n,  # torque that was sent to the drives
            "position": n,  # position that the drives report
            "velocity": n,
            "measured": n,  # torque that the drives report
            "residual": n,  # torque of the motion beyond the sent one, and its bound
            "allowed": n,
            "report_time": n,
            "doubtful": n,  # whether an earlier report may be outstanding
            "reports": n,
            "invalid": n,
            "enabled": n,
            "fault": n,
        }
        if self.limits:
            lengths["active"] = len(self.limits)  # 1 while the law keeps this limit
        spans, start = {}, 0
        for name, length in lengths.items():
            spans[name] = slice(start, start + length)
            start += length
        object.__setattr__(self, "spans", spans)
        object.__setattr__(self, "width", start)

    @classmethod
    def of(cls, axes: Sequence[str], law: TrackingLaw) -> Layout:
        """Make the layout of a law and the axes that it drives.

        Parameters
        ----------
        axes : sequence of str
            Names of the axes.
        law : TrackingLaw
            The law.

        Returns
        -------
        Layout
            The layout.
        """
        sizes = law.nq, law.nw, law.pose_size, law.size
        return cls(tuple(axes), *sizes, law.limit_names, law.twist_size - law.size)

    def active(self, row: Mapping[str, NDArray[np.float64]]) -> str:
        """Name the limits of the law that are active in one of some rows, "" without any.

        Parameters
        ----------
        row : mapping of str to numpy.ndarray
            The row, or several ones, by name, from `views`.

        Returns
        -------
        str
            The names, with commas.
        """
        if not self.limits:
            return ""
        flags = (row["active"].reshape(-1, len(self.limits)) == 1.0).any(axis=0)
        return ", ".join(name for name, flag in zip(self.limits, flags, strict=True) if flag)

    def views(self, row: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Views of one row, or of columns of several rows, by name.

        Parameters
        ----------
        row : numpy.ndarray
            Shape (width,) or (rows, width).

        Returns
        -------
        dict of str to numpy.ndarray
            Parts of the last axis.
        """
        return {name: row[..., span] for name, span in self.spans.items()}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Layout:
        """Read a layout from a dictionary.

        Parameters
        ----------
        found : mapping
            Result of `to_dict`, possibly from an untrusted file.

        Returns
        -------
        Layout
            The layout.

        Raises
        ------
        KeyError, ValueError
            If an entry is missing, or has a wrong type or size.
        """
        sizes = {name: found[name] for name in ("nq", "ns", "pose_size", "size")}
        sizes["further"] = found.get("further", 0)
        lists = {name: found[name] for name in ("axes", "limits")}
        named = all(
            isinstance(names, list | tuple)
            and len(names) <= LARGEST
            and all(isinstance(name, str) for name in names)
            for names in lists.values()
        )
        whole = all(type(size) is int and 0 <= size <= LARGEST for size in sizes.values())
        if not (named and whole):
            raise ValueError(f"names of axes and limits, and sizes up to {LARGEST} expected")
        return cls(tuple(lists["axes"]), limits=tuple(lists["limits"]), **sizes)

    def to_dict(self) -> dict[str, object]:
        """Arguments of `Layout`, for a file."""
        return {
            "axes": list(self.axes),
            "nq": self.nq,
            "ns": self.ns,
            "pose_size": self.pose_size,
            "size": self.size,
            "further": self.further,
            "limits": list(self.limits),
        }
