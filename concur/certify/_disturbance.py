"""Bounds of disturbances: unmodelled output accelerations."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

import numpy as np

from concur.certify._checks import check, check_sizes
from concur.certify._status import ESTIMATE
from concur.codegen import LARGEST, as_floats, finite_floats, shape_error


@dataclass(frozen=True, eq=False)
class Disturbance:
    """Bound of an unmodelled output acceleration.

    Parameters
    ----------
    components : numpy.ndarray
        Largest absolute value of each component over all outputs, shape (size,), m/s^2 and rad/s^2.
    source : str
        Origin of the disturbance.
    sampled : bool
        Whether the bound comes from samples; it may be exceeded between them.
    points : numpy.ndarray, optional
        Extreme disturbances, shape (k, size): every disturbance is a mean of them with either
        sign. A smaller set than the box of `components`.
    feedback : numpy.ndarray, optional
        Matrices D of the part D nu_fb that grows with the feedback; at any time one of them
        holds; shape (k, size, size), in the outputs' units.

    Raises
    ------
    ShapeError
        If the shapes do not fit.
    NonFiniteError
        If there is a NaN or an infinity.
    OutputError
        If a bound is negative.
    """

    components: np.ndarray
    source: str = "given"
    sampled: bool = False
    points: np.ndarray | None = None
    feedback: np.ndarray | None = None

    def __post_init__(self) -> None:
        where = f"disturbance, {self.source}"
        bounds = as_floats(self.components, f"{where}, `components`")
        size = bounds.shape[0] if bounds.ndim == 1 else 1
        for name, tail in (("components", ()), ("points", (size,)), ("feedback", (size, size))):
            if getattr(self, name) is None:
                continue
            value = finite_floats(getattr(self, name), f"{where}, `{name}`").copy()
            if value.ndim != 1 + len(tail) or value.shape[1:] != tail:
                rows = len(value) if value.ndim else 1
                raise shape_error(f"{where}, `{name}`", (rows, *tail), value.shape)
            value.setflags(write=False)
            object.__setattr__(self, name, value)
            largest = np.abs(value).max(initial=0.0)
            expected = f"sizes up to {LARGEST:g}"
            check(largest <= LARGEST, f"{where}, `{name}`", expected, largest, "Give SI units.")
        check_sizes(f"{where}, `components`", bounds)

    @property
    def size(self) -> int:
        """Number of components."""
        return int(self.components.size)

    def __add__(self, other: Disturbance) -> Disturbance:
        """Bound of the sum of two simultaneous disturbances."""
        if not isinstance(other, Disturbance):
            return NotImplemented
        if other.size != self.size:
            raise shape_error(f"disturbance, {other.source}", (self.size,), (other.size,))
        feedback = self.feedback if other.feedback is None else other.feedback
        if self.feedback is not None and other.feedback is not None:
            pairs = self.feedback[:, None] + other.feedback[None]
            feedback = pairs.reshape(-1, self.size, self.size)
        return Disturbance(
            np.nextafter(self.components + other.components, inf),
            f"{self.source}; {other.source}",
            self.sampled or other.sampled,
            feedback=feedback,
        )

    def __or__(self, other: Disturbance) -> Disturbance:
        """Bound of either of two disturbances, as at the corners of a box."""
        if not isinstance(other, Disturbance):
            return NotImplemented
        if other.size != self.size:
            raise shape_error(f"disturbance, {other.source}", (self.size,), (other.size,))
        points = None
        if self.points is not None and other.points is not None:
            points = np.vstack([self.points, other.points])
        # A disturbance without feedback is smaller than any with it.
        grown = [one.feedback for one in (self, other) if one.feedback is not None]
        return Disturbance(
            np.maximum(self.components, other.components),
            f"{self.source}, or {other.source}",
            self.sampled or other.sampled,
            points=points,
            feedback=np.vstack(grown) if grown else None,
        )

    def __str__(self) -> str:
        worst = ", ".join(f"{x:.4g}" for x in self.components)
        kind = f"from samples: {ESTIMATE}" if self.sampled else "as given"
        return f"{self.source}: at most ({worst}), {kind}"
