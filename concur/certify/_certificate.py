"""Certificates: proved decay rates of the tracking error, with the region of their starts.

The rate of the loop is that of its slowest channel; the decaying norm is the root of the sum of
the channels' Lyapunov functions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from concur.certify._bounds import (
    rational,
    root_above,
)
from concur.certify._chain import ChannelChain, DecayChain
from concur.certify._channel_certificate import ChannelCertificate
from concur.certify._channels import split
from concur.certify._checks import check
from concur.certify._files import law_section, proof_section, write_document
from concur.certify._recheck_conditions import texts
from concur.certify._recheck_document import FORMAT
from concur.certify._status import Status
from concur.certify._structure import Structure
from concur.codegen import finite_floats
from concur.control import ErrorDynamics
from concur.errors import shown
from concur.results import Figures, Row, show
from concur.rounding import percent_down, rounded_down, rounded_up

Method = Literal["tight", "thesis"]


@dataclass(frozen=True, eq=False, repr=False)
class Certificate:
    """Certificate of a closed loop: an exponential rate, a norm and a certified region.

    When the status is PROVED, ``norm(x(t), ve(t)) <= norm(x(0), ve(0)) exp(-rate t)`` for all
    t >= 0 along the error dynamics, from every start with ``contains(x(0), ve(0))``, while the
    `conditions` hold.

    Parameters
    ----------
    dynamics : ErrorDynamics
        The certified error dynamics.
    status : Status
        PROVED, REFUTED when the gains are not symmetric positive definite, or UNDECIDED.
    method : str
        "tight" or "thesis".
    angle, distance : float, float or None
        Requested error bounds, rad and m; `angle` is pi by default if no output rotates.
    parts : tuple of ChannelCertificate
        One for each channel; empty when REFUTED.
    counterexample : Structure or None
        Failed exact checks of the gains, when REFUTED.
    low_transient : Certificate or None
        Second proved certificate of the same loop and region, with a smaller transient bound at
        a lower rate; present if the transient bound is large.
    chain : DecayChain or None
        Tighter bound over time for the same region, from several forms; present on request where
        every channel consists of scalar loops.
    conditions : tuple of str
        Conditions of the claim, such as that the torques are not held and the robot is the model.

    Examples
    --------
    >>> import concur as cc
    >>> robot = cc.robots.rover_arm()
    >>> model = cc.reduce(robot)
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> hand = cc.Output("hand", "forearm", "R3", point=(0, 0.2, 0))
    >>> servo = cc.Servo(model, [base, hand], stiffness=4, damping=4)
    >>> certificate = cc.certify(servo, angle=1.0)
    >>> certificate.status.name, bool(certificate.rate <= certificate.true_rate)
    ('PROVED', True)
    """

    dynamics: ErrorDynamics
    status: Status
    method: Method
    angle: float
    distance: float | None
    parts: tuple[ChannelCertificate, ...]
    counterexample: Structure | None = None
    low_transient: Certificate | None = None
    chain: DecayChain | None = None
    conditions: tuple[str, ...] = ()

    @property
    def rate(self) -> float:
        """Rate of the slowest channel, 1/s: proved with status PROVED, zero without a claim."""
        return min((part.rate for part in self.parts), default=0.0)

    @cached_property
    def true_rate(self) -> float:
        """Linearized rate, 1/s: decay rate of small errors, upper bound of every certified rate."""
        return min(channel.true_rate for channel in split(self.dynamics))

    @property
    def transient_bound(self) -> float:
        """Transient bound c of |z(t)| <= c exp(-rate t) |z(0)|; NaN if a channel has no P.

        |z| is the Euclidean norm of (x, ve) with metres divided by the channel's length.
        """
        if not self.parts or any(part.P is None for part in self.parts):
            return math.nan
        return root_above(_spread(self.parts))

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Pairs of a rate, 1/s, and its transient bound, the fastest first; all hold at once."""
        own = ((self.rate, self.transient_bound),) if self.status is Status.PROVED else ()
        return own if self.low_transient is None else own + self.low_transient.bounds

    def bound(self, time: float) -> float:
        """Bound of |z| after a time, as a fraction of |z| at the start.

        Parameters
        ----------
        time : float
            Time since the start, not negative, s.

        Returns
        -------
        float
            The minimum of overshoot exp(-rate time) over all `bounds`, and of the chain's bound;
            infinite when nothing is proved.
        """
        found = min(
            (overshoot * math.exp(-rate * time) for rate, overshoot in self.bounds),
            default=math.inf,
        )
        return found if self.chain is None else min(found, self.chain.bound(time))

    def settling(self, share: float = 0.01) -> float:
        """Time after which |z| stays below a share of |z| at the start.

        Parameters
        ----------
        share : float, default 0.01
            Share of |z| at the start, above 0.

        Returns
        -------
        float
            The least time that `bounds` or the chain prove, s; infinite when nothing is proved.

        Raises
        ------
        OutputError
            If the share is not a positive finite number.
        """
        sound = 0.0 < share < math.inf
        check(sound, "certificate, `share`", "a number above 0", share, "Give such as 0.01.")
        times = [max(0.0, math.log(c / share) / rate) for rate, c in self.bounds if rate > 0.0]
        times += [] if self.chain is None else [self.chain.settling(share)]
        return min(times, default=math.inf)

    @property
    def boxes(self) -> int:
        """Number of boxes of rotation vectors in the proof."""
        return sum(len(part.boxes) for part in self.parts)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Rate of each channel, and of the loop: a number where it is proved."""
        whole = ("whole loop", self.status, self.rate)
        parts = [(part.channel.name, part.status, part.rate) for part in self.parts]
        return decay_rows([*parts, whole])

    @property
    def figures(self) -> Figures:
        """Norms of random motions below the proved decay; none unless the status is PROVED."""
        drawn = self.status is Status.PROVED
        return {"decay": partial(show, "decay_figure", self)} if drawn else {}

    def norm(self, x: ArrayLike, ve: ArrayLike) -> float:
        """Value of the norm that decays at the rate.

        Parameters
        ----------
        x, ve : array_like
            Pose and velocity error, shape (size,).

        Returns
        -------
        float
            Square root of the sum of the channels' Lyapunov functions; NaN when a channel has none.
            At least |z| when every channel has a constant P.

        Raises
        ------
        ShapeError
            If an argument is not a vector of the outputs' dimension.
        NonFiniteError
            If an argument has a NaN or an infinity.
        """
        pose, velocity = self._vector(x, "x"), self._vector(ve, "ve")
        if not self.parts:
            return math.nan
        total = sum(p.form(pose[p.channel.index], velocity[p.channel.index]) for p in self.parts)
        return float(np.sqrt(total))

    def contains(self, x: ArrayLike, ve: ArrayLike) -> bool:
        """Whether a start lies in the certified region.

        Parameters
        ----------
        x, ve : array_like
            Pose and velocity error, shape (size,).

        Returns
        -------
        bool
            Whether V_L is below its bound in every channel, decided exactly; False unless the
            status is PROVED.

        Raises
        ------
        ShapeError
            If an argument is not a vector of the outputs' dimension.
        NonFiniteError
            If an argument has a NaN or an infinity.
        """
        pose, velocity = self._vector(x, "x"), self._vector(ve, "ve")
        return self.status is Status.PROVED and all(_below(p, pose, velocity) for p in self.parts)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the certificate with its proof, for `recheck` and other proof checkers.

        Parameters
        ----------
        path : str or os.PathLike
            File to write, JSON; the format is described in `concur.certify._recheck_document`.

        Raises
        ------
        OutputError
            If an output's group is not defined by the package.
        DescriptionError
            If the file cannot be written.
        """
        stated = self.status is Status.PROVED
        members = {
            "status": self.status.name,
            "method": self.method,
            "rate": self.rate if stated else None,
            "overshoot": self.transient_bound if stated else None,
            "conditions": list(self.conditions),
            "law": law_section(self.dynamics),
            "channels": [_stored(part) for part in self.parts if part.P is not None],
            "counterexample": None,
        }
        if self.chain is not None:
            members["chain"] = [_stored_chain(part) for part in self.chain.parts]
        write_document(path, FORMAT, members)

    def _vector(self, value: ArrayLike, name: str) -> np.ndarray:
        return finite_floats(value, f"certificate, `{name}`", (self.dynamics.size,))

    def __repr__(self) -> str:
        channels = ", ".join(part.channel.name for part in self.parts)
        rate = rounded_down(self.rate, 4)
        return (
            f"<certificate: {self.status.name}, rate {rate} 1/s, {shown(channels, 100)}; "
            f"if {len(self.conditions)} conditions hold>"
        )

    def _repr_html_(self) -> str:
        reasons = "\n".join(dict.fromkeys(part.reason for part in self.parts))
        return show("notebook.text_html", f"Certificate: {self.status.name}", str(self), reasons)

    def __str__(self) -> str:
        lines = [f"{self.status.name}. {self.status.value}"]
        if self.counterexample is not None:
            return "\n".join([*lines, str(self.counterexample)])
        share = (
            f"{percent_down(self.rate / self.true_rate)} of the " if self.true_rate > 0.0 else ""
        )
        rate = rounded_down(self.rate, 4)
        lines.append(f"Rate {rate} 1/s, {share}linearized rate {self.true_rate:.4g} 1/s.")
        if not math.isnan(self.transient_bound):
            lines.append(
                f"Transient bound {rounded_up(self.transient_bound, 4)}; method `{self.method}`."
            )
        if self.low_transient is not None:
            lines.append(
                f"At {rounded_down(self.low_transient.rate, 4)} 1/s the transient bound is "
                f"{rounded_up(self.low_transient.transient_bound, 4)}."
            )
        lines += [f"- {part}" for part in self.parts]
        return "\n".join([*lines, *texts(self.conditions)])


def decay_rows(claims: Iterable[tuple[str, Status, float]]) -> tuple[Row, ...]:
    """Rows of decay rates: place, status and rate of each claim, rounded down."""
    found = []
    for place, status, rate in claims:
        proved = status is Status.PROVED
        value = float(rounded_down(rate, 3)) if proved else status.name
        found.append(Row("decay rate", value, None, "1/s" * proved, place, proved))
    return tuple(found)


def _spread(parts: tuple[ChannelCertificate, ...]) -> Fraction:
    most = max(Fraction(part.weight) * Fraction(part.upper) for part in parts)
    return most / min(Fraction(part.weight) * Fraction(part.lower) for part in parts)


def _below(part: ChannelCertificate, x: np.ndarray, ve: np.ndarray) -> bool:
    if part.level == math.inf:
        return True
    channel, twice = part.channel, Fraction(0)
    for vector, metric in ((x, channel.stiffness), (ve, channel.inertia)):
        own = rational(vector[channel.index])
        twice += own @ rational(metric) @ own
    return bool(twice < 2 * Fraction(part.level))


def _stored_chain(part: ChannelChain) -> dict[str, Any]:
    half = len(part.bounds) // 2
    return {
        "step": part.step,
        "bounds": [part.bounds[:half].tolist(), part.bounds[half:].tolist()],
        "forms": [_stored(form) for form in part.forms],
    }


def _stored(part: ChannelCertificate) -> dict[str, Any]:
    assert part.multipliers is not None
    proof = proof_section(
        part.channel.index, part.status, part.rate, part.angle, part.level, part.P
    )
    return proof | {
        "distance": part.distance,
        "L": part.multipliers[0].tolist(),
        "M": part.multipliers[1].tolist(),
        "weight": part.weight,
        "length": part.channel.length,
        "lower": part.lower,
        "upper": part.upper,
        "reduction": part.reduction,
        "boxes": part.boxes.tolist(),
    }
