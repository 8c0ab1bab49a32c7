"""Tubes: bounds of the error of a channel under a disturbance."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from math import exp, inf
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from concur.certify._bounds import largest_eigenvalue, rational, root_above, solve
from concur.certify._channels import Channel
from concur.certify._decay import Decay, widest_square
from concur.certify._disturbance import Disturbance
from concur.certify._files import law_section, write_document
from concur.certify._recheck_conditions import CONTINUOUS, FOLLOWED, texts
from concur.certify._recheck_document import TUBE
from concur.certify._status import Status
from concur.results import Figures, Row, plain, show


@dataclass(frozen=True, eq=False)
class Tube:
    """Bound of the error of a channel under a disturbance.

    Parameters
    ----------
    decay : Decay
        Decay without a disturbance.
    status : Status
        PROVED: for every disturbance within the bound, and every start with |z|_P at most
        `start`, |z|_P stays at most `radius`. UNDECIDED when the decay is not proved, a bound
        rests on samples, or the tube does not fit in the domain.
    reason : str
        Explanation of the status.
    start : float
        Largest |z|_P at the start.
    ultimate : float
        Bound of |z|_P as the time tends to infinity; infinite without a bound.
    radius : float
        Bound of |z|_P at all times; infinite without a bound.
    rate : float
        Rate at which |z|_P approaches `ultimate`, 1/s; zero without a claim, as for disturbances
        that grow with the feedback.
    disturbance : Disturbance or float
        The given disturbance of the channel's outputs, or its largest length.
    """

    decay: Decay
    status: Status
    reason: str
    start: float
    ultimate: float
    radius: float
    rate: float
    disturbance: Disturbance | float | None = None

    @property
    def channel(self) -> Channel:
        """The outputs."""
        return self.decay.channel

    @property
    def rows(self) -> tuple[Row, ...]:
        """Bound of each error while the disturbance is within its own."""
        proved = self.status is Status.PROVED
        return tuple(
            Row(f"error {k + 1} in the tube", float(most), None, unit, self.channel.name, proved)
            for k, (most, unit) in enumerate(zip(self.components, self.channel.units, strict=True))
        )

    @property
    def figures(self) -> Figures:
        """Disturbed motions inside the tube; none if its radius is infinite."""
        drawn = self.radius < inf and isinstance(self.disturbance, float)
        return {"tube": partial(show, "tube_figure", self)} if drawn else {}

    @property
    def conditions(self) -> tuple[str, ...]:
        """Conditions of the claim: the errors obey the error dynamics with the disturbance."""
        return (CONTINUOUS, f"{FOLLOWED}; what else acts is within the disturbance")

    @property
    def limit(self) -> float:
        """Least |z|_P on the boundary of the domain; the radius must be less."""
        return self.decay.limit

    @property
    def fits(self) -> bool:
        """Whether the tube lies in the domain of the decay."""
        return self.radius < self.limit

    @cached_property
    def components(self) -> np.ndarray:
        """Bound of the magnitude of each component of x, shape (n,), m and rad; rounded up."""
        n = self.channel.size
        inverse = solve(rational(self.decay.P), rational(np.eye(2 * n)))
        return np.array([self._reach(inverse[i, i]) for i in range(n)])

    @cached_property
    def angle(self) -> float | None:
        """Bound of every rotation error, rad; None without rotations."""
        return self._largest("rad")

    @cached_property
    def distance(self) -> float | None:
        """Bound of every factor's position error, m; None without positions."""
        return self._largest("m")

    @cached_property
    def size(self) -> float:
        """Bound of the length of x, with metres divided by the channel's length."""
        n = self.channel.size
        metric = np.full((2 * n, 2 * n), Fraction(0))
        metric[:n, :n] = self.channel.length_metric
        return self._reach(largest_eigenvalue(metric, rational(self.decay.P)))

    def envelope(self, time: float) -> float:
        """Compute the bound of |z|_P after a time.

        Parameters
        ----------
        time : float
            Time since the start, not negative, s.

        Returns
        -------
        float
            exp(-rate t) start + (1 - exp(-rate t)) ultimate; the radius if `rate` is zero.
        """
        if self.rate == 0.0 or self.ultimate == inf:
            return self.radius
        share = exp(-self.rate * time)
        return share * self.start + (1.0 - share) * self.ultimate

    def norm(self, x: ArrayLike, ve: ArrayLike) -> float:
        """Compute the norm of an error.

        Parameters
        ----------
        x, ve : array_like
            Pose and velocity error of the channel, shape (n,).

        Returns
        -------
        float
            |z|_P.
        """
        z = np.concatenate([np.asarray(x, dtype=float), np.asarray(ve, dtype=float)])
        return float(np.sqrt(z @ self.decay.P @ z))

    def save(self, path: str | PathLike[str]) -> None:
        """Write the tube with the proof of its decay, for `recheck`.

        Parameters
        ----------
        path : str or os.PathLike
            File to write, JSON; the format is described in `concur.certify._recheck_tube`.

        Raises
        ------
        OutputError
            If an output's group is not defined by the package.
        DescriptionError
            If the file cannot be written.
        """
        channel, decay = self.channel, self.decay
        n = channel.size
        L, M = decay.multipliers or (np.zeros((2 * n, n)),) * 2
        usual = "scalar" if channel.scalar else "linear"
        members = {
            "status": self.status.name,
            "reason": self.reason,
            "conditions": list(self.conditions),
            "law": law_section(channel.dynamics),
            "components": channel.index.tolist(),
            "rate": decay.rate,
            "angle": decay.angle,
            "distance": decay.distance,
            "P": decay.P.tolist(),
            "L": L.tolist(),
            "M": M.tolist(),
            "length": channel.length,
            "reduction": decay.reduction or usual,
            "boxes": decay.boxes.tolist(),
            "disturbance": _stored(self.disturbance),
            "start": self.start,
            "ultimate": plain(self.ultimate),
            "radius": plain(self.radius),
            "bounds": {
                "components": plain(self.components),
                "angle": plain(self.angle),
                "distance": plain(self.distance),
            },
        }
        write_document(path, TUBE, members)

    def _largest(self, unit: str) -> float | None:
        form = rational(self.decay.P)
        widest = [
            widest_square(form, places)
            for _, places, own in self.channel.error_parts
            if own == unit
        ]
        return self._reach(max(widest)) if widest else None

    def _reach(self, square: Fraction) -> float:
        if self.radius == inf:
            return inf
        return root_above(square * Fraction(self.radius) ** 2)

    def __str__(self) -> str:
        if self.radius == inf:
            return f"{self.channel.name}: {self.status.name}, no tube. {self.reason}"
        bounds = [f"angle {np.degrees(self.angle):.4g} deg"] if self.angle is not None else []
        bounds += [f"distance {self.distance:.4g} m"] if self.distance is not None else []
        rows = ", ".join(
            f"|{name}| <= {bound:.4g} {unit}"
            for name, bound, unit in zip(
                self.channel.names, self.components, self.channel.units, strict=True
            )
        )
        room = "no limit" if self.limit == inf else f"limit {self.limit:.4g}"
        line = (
            f"{self.channel.name}: {self.status.name}, {', '.join(bounds)} ({rows}); "
            f"|z|_P <= {self.radius:.4g}, {room}. {self.reason}"
        )
        return "\n".join([line, *texts(self.conditions)])


def _stored(given: Disturbance | float | None) -> dict[str, Any]:
    """Stored form of the disturbance: length, bounds of components, or extreme points."""
    kinds: dict[str, Any] = {"length": None, "components": None, "points": None}
    if isinstance(given, float):
        kinds["length"] = given
    elif given is not None and given.points is not None:
        kinds["points"] = given.points.tolist()
    elif given is not None:
        kinds["components"] = given.components.tolist()
    return kinds
