"""Certificates of laws with integral action: proved decay rates of (z, x, ve)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from os import PathLike

import numpy as np
from numpy.typing import ArrayLike

from concur.certify._bounds import rational
from concur.certify._certificate import decay_rows
from concur.certify._channels import Channel
from concur.certify._files import law_section, proof_section, write_document
from concur.certify._recheck_conditions import texts
from concur.certify._recheck_document import INTEGRAL
from concur.certify._status import Status
from concur.certify._structure import Structure
from concur.codegen import finite_floats
from concur.control import ErrorDynamics
from concur.errors import shown
from concur.results import Figures, Row
from concur.rounding import rounded_down


@dataclass(frozen=True, eq=False)
class IntegralPart:
    """Certificate of coordinates that the gains couple to each other and to no others.

    Parameters
    ----------
    channel : Channel
        The channel, with its gains.
    places : numpy.ndarray
        The coordinates' indices in the channel, shape (n,).
    status : Status
        Whether the decay is proved.
    reason : str
        Explanation of the status.
    rate, true_rate : float
        Proved decay rate, zero without a proof, and linearized rate, 1/s.
    angle : float or None
        Bound of the rotation errors, rad; None without rotations.
    bound : float
        Bound that zeta^T P zeta must start below; infinite if every start is covered.
    P : numpy.ndarray or None
        Symmetric matrix of the Lyapunov function zeta^T P zeta, shape (3 n, 3 n), of
        zeta = (z, x, ve); (2 n, 2 n), of (x, ve), where KI is zero; None if absent.
    """

    channel: Channel
    places: np.ndarray
    status: Status
    reason: str
    rate: float
    true_rate: float
    angle: float | None
    bound: float = math.inf
    P: np.ndarray | None = None

    @property
    def index(self) -> np.ndarray:
        """Indices of the coordinates in x, shape (n,)."""
        return np.asarray(self.channel.index[self.places])

    @property
    def name(self) -> str:
        """Names of the coordinates."""
        return ", ".join(self.channel.names[i] for i in self.places)

    def form(self, x: np.ndarray, ve: np.ndarray, z: np.ndarray) -> Fraction | None:
        """Exact value of the Lyapunov function.

        Parameters
        ----------
        x, ve, z : numpy.ndarray
            Pose error, velocity error and integral of x of the whole loop, shape (size,).

        Returns
        -------
        fractions.Fraction or None
            zeta^T P zeta; None without P.
        """
        if self.P is None:
            return None
        parts = [v[self.index] for v in (z, x, ve)]
        zeta = rational(np.concatenate(parts[3 - len(self.P) // len(self.places) :]))
        return Fraction(zeta @ rational(self.P) @ zeta)

    def __str__(self) -> str:
        anywhere = "from any start" if self.status is Status.PROVED else "no region"
        room = f"angle {np.degrees(self.angle):.4g} deg" if self.angle else anywhere
        return (
            f"{self.name}: {self.status.name}, rate {rounded_down(self.rate, 4)} 1/s of "
            f"{self.true_rate:.4g} 1/s, {room}. {self.reason}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class IntegralCertificate:
    """Certificate of a closed loop with integral action: an exponential rate and a region.

    When the status is PROVED, ``norm(x, ve, z)`` decays at least as ``exp(-rate t)`` along
    ``zdot = x``, ``xdot = -B(x) ve``, ``vedot = I^-1 (B(x)^T KP x - KD ve + KI z)``, from every
    start with ``contains(x, ve, z)``, while the `conditions` hold.

    Parameters
    ----------
    dynamics : ErrorDynamics
        The certified error dynamics.
    status : Status
        PROVED, REFUTED when the linearised loop is not stable, or UNDECIDED.
    angle : float
        Largest rotation error covered, rad; pi if no output rotates.
    parts : tuple of IntegralPart
        One for each set of coupled coordinates; empty when REFUTED.
    counterexample : Structure or None
        Failed exact checks of the gains, when REFUTED.
    conditions : tuple of str
        Conditions of the claim, as of `Certificate`.
    """

    dynamics: ErrorDynamics
    status: Status
    angle: float
    parts: tuple[IntegralPart, ...]
    counterexample: Structure | None = None
    conditions: tuple[str, ...] = ()

    @property
    def rate(self) -> float:
        """Proved rate of the slowest part, 1/s; zero unless the status is PROVED."""
        return min((part.rate for part in self.parts), default=0.0)

    @property
    def rows(self) -> tuple[Row, ...]:
        """Rate of each part, and of the loop: a number where it is proved."""
        whole = ("whole loop", self.status, self.rate)
        return decay_rows([*((part.name, part.status, part.rate) for part in self.parts), whole])

    @property
    def figures(self) -> Figures:
        """Empty: there is no figure of a law with integral action."""
        return {}

    @property
    def reason(self) -> str:
        """Explanation of the status."""
        if self.counterexample is not None:
            return str(self.counterexample)
        return " ".join(f"{p.name}: {p.reason}" for p in self.parts if p.status is self.status)

    def norm(self, x: ArrayLike, ve: ArrayLike, z: ArrayLike) -> float:
        """Value of the norm that decays at the rate.

        Parameters
        ----------
        x, ve, z : array_like
            Pose error, velocity error and integral of x, shape (size,).

        Returns
        -------
        float
            Square root of the sum of the parts' Lyapunov functions; NaN if a part has none.

        Raises
        ------
        ShapeError
            If an argument is not a vector of the outputs' dimension.
        NonFiniteError
            If an argument has a NaN or an infinity.
        """
        values = [part.form(*self._state(x, ve, z)) for part in self.parts]
        known = [value for value in values if value is not None]
        if not values or len(known) < len(values):
            return math.nan
        return math.sqrt(sum(known))

    def contains(self, x: ArrayLike, ve: ArrayLike, z: ArrayLike) -> bool:
        """Whether a start lies in the certified region.

        Parameters
        ----------
        x, ve, z : array_like
            Pose error, velocity error and integral of x, shape (size,).

        Returns
        -------
        bool
            Whether every part's Lyapunov function is below its bound, decided exactly; False
            unless the status is PROVED.

        Raises
        ------
        ShapeError
            If an argument is not a vector of the outputs' dimension.
        NonFiniteError
            If an argument has a NaN or an infinity.
        """
        state = self._state(x, ve, z)
        if self.status is not Status.PROVED:
            return False
        return all(
            value is not None and (part.bound == math.inf or value < Fraction(part.bound))
            for part in self.parts
            for value in [part.form(*state)]
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the certificate with its proof, for `recheck`.

        Parameters
        ----------
        path : str or os.PathLike
            File to write, JSON; the format is described in `concur.certify._recheck_integral`.

        Raises
        ------
        OutputError
            If an output's group is not defined by the package.
        DescriptionError
            If the file cannot be written.
        """
        members = {
            "status": self.status.name,
            "rate": self.rate if self.status is Status.PROVED else None,
            "conditions": list(self.conditions),
            "law": law_section(self.dynamics),
            "channels": [
                proof_section(p.index, p.status, p.rate, p.angle, p.bound, p.P)
                for p in self.parts
                if p.P is not None
            ],
        }
        write_document(path, INTEGRAL, members)

    def _state(self, *values: ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        shape, names = (self.dynamics.size,), ("x", "ve", "z")
        x, ve, z = (
            finite_floats(value, f"certificate, `{name}`", shape)
            for name, value in zip(names, values, strict=True)
        )
        return x, ve, z

    def __repr__(self) -> str:
        names = shown(", ".join(part.name for part in self.parts), 100)
        rate = rounded_down(self.rate, 4)
        return (
            f"<certificate with integral: {self.status.name}, rate {rate} 1/s, {names}; "
            f"if {len(self.conditions)} conditions hold>"
        )

    def __str__(self) -> str:
        lines = [f"{self.status.name}. {self.status.value}"]
        if self.counterexample is not None:
            return "\n".join([*lines, str(self.counterexample)])
        lines.append(f"Rate {rounded_down(self.rate, 4)} 1/s, with integral action.")
        lines += [f"- {part}" for part in self.parts]
        return "\n".join([*lines, *texts(self.conditions)])
