"""Channels of the error dynamics: blocks of outputs without coupling between them.

B(x) of a product of groups is block diagonal, so only entries of KP, KD and I couple its factors.
Coupled factors form a channel. A property proved for every channel holds for the whole loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from scipy.linalg import eigvals
from scipy.sparse.csgraph import connected_components

from concur.certify._checks import check
from concur.codegen import as_floats, nonfinite_error
from concur.control import ErrorDynamics
from concur.errors import ShapeError
from concur.outputs.groups import Direction, OutputGroup, PlanarPose, Pose, Product, Rotation

Kind = Literal[
    "linear", "SO3 isotropic", "SO3", "SE3 isotropic", "SE3", "SE2", "S2", "general"
]  # fmt: skip
"""Structure of a channel's equation, which determines the argument of the proof."""


@dataclass(frozen=True, eq=False)
class Channel:
    """Outputs that are coupled to each other and to no others.

    Parameters
    ----------
    index : numpy.ndarray
        Indices of the channel's components in x and ve of the whole loop, ascending, shape (n,).
    factors : tuple of OutputGroup
        Factors of the group, in the order of the components.
    kind : str
        "linear" when all factors are abelian; "SO3 isotropic" and "SE3 isotropic" when KP, KD
        and I are exact multiples of the identity on each block of three components, and do not
        couple the blocks; "SO3", "SE3" and "SE2" otherwise; "S2" for a direction with one number
        as each gain; "general" when a factor that is not abelian is coupled with another one.
    stiffness, damping, inertia : numpy.ndarray
        Blocks of KP, KD and I, shape (n, n), not writable.
    names, units : tuple of str
        Name and unit (m or rad) of each component of x.
    length : float
        Length that weighs as much as one radian, m.
    integral : numpy.ndarray or None
        Block of KI, shape (n, n); None where it is zero.
    """

    index: np.ndarray
    factors: tuple[OutputGroup, ...]
    kind: Kind
    stiffness: np.ndarray
    damping: np.ndarray
    inertia: np.ndarray
    names: tuple[str, ...]
    units: tuple[str, ...]
    length: float
    integral: np.ndarray | None = None

    @property
    def name(self) -> str:
        """Label of the channel: indices in x and names of the components."""
        places = ", ".join(f"{i}: {n}" for i, n in zip(self.index, self.names, strict=True))
        return f"channel ({places})"

    @property
    def size(self) -> int:
        """Number of components of x."""
        return self.index.size

    @property
    def scalar(self) -> bool:
        """Whether ``B^T x = x``, no eigenvalue of sym(B) exceeds 1, and gains are single numbers.

        Then a form that decays where B = 1, isotropic and with P12 <= 0, decays everywhere.
        """
        return self.kind in ("SO3 isotropic", "S2")

    @cached_property
    def group(self) -> OutputGroup:
        """Group of the channel: its factor, or the product of its factors."""
        return self.factors[0] if len(self.factors) == 1 else Product(self.factors)

    @cached_property
    def dynamics(self) -> ErrorDynamics:
        """Error dynamics of the channel."""
        gains = (self.stiffness, self.damping, self.inertia, self.integral)
        return ErrorDynamics(self.group, *gains)

    @cached_property
    def error_parts(self) -> list[tuple[OutputGroup, np.ndarray, str]]:
        """Position and rotation of each factor: group, indices in x, and m or rad."""
        parts, start = [], 0
        for factor in self.factors:
            units = np.array(factor.error_units)
            for unit in ("m", "rad"):
                places = start + np.flatnonzero(units == unit)
                if places.size:
                    parts.append((factor, places, unit))
            start += factor.dim
        return parts

    @property
    def scales(self) -> np.ndarray:
        """Weights of metres (1 / length) and radians (1), shape (n,)."""
        return np.array([1.0 / self.length if unit == "m" else 1.0 for unit in self.units])

    @property
    def length_metric(self) -> np.ndarray:
        """Squares of the scales, exactly: a diagonal matrix of fractions, shape (n, n)."""
        square = 1 / Fraction(self.length) ** 2
        metric = np.full((self.size, self.size), Fraction(0))
        for i, unit in enumerate(self.units):
            metric[i, i] = square if unit == "m" else Fraction(1)
        return metric

    @cached_property
    def true_rate(self) -> float:
        """Linearized rate, 1/s: decay rate of small errors, upper bound of every certified rate.

        Negative spectral abscissa of [[0, -1], [I^-1 KP, -I^-1 KD]]. Zero or less when the loop is
        unstable; NaN when I is singular. Computed in floating point: accurate to rounding when KP,
        KD and I are diagonal, otherwise to the square root of rounding next to critical damping.
        """
        gains = (self.stiffness, self.damping, self.inertia)
        if self.integral is not None:
            try:
                return float(-eigvals(self.dynamics.matrix).real.max())
            except np.linalg.LinAlgError:
                return float("nan")
        if all(np.array_equal(gain, np.diag(np.diag(gain))) for gain in gains):
            mass = np.diag(self.inertia)
            if not mass.all():
                return float("nan")
            return min(
                _scalar_rate(stiffness, damping)
                for stiffness, damping in zip(
                    np.diag(self.stiffness) / mass, np.diag(self.damping) / mass, strict=True
                )
            )
        zero, one = np.zeros_like(self.inertia), np.eye(self.size)
        try:
            pull = np.linalg.solve(self.inertia, np.hstack([self.stiffness, -self.damping]))
        except np.linalg.LinAlgError:
            return float("nan")
        return float(-eigvals(np.vstack([np.hstack([zero, -one]), pull])).real.max())


def split(dynamics: ErrorDynamics, length: float | None = None) -> list[Channel]:
    """Split error dynamics into channels.

    Every nonzero entry of KP, KD or I couples, however small it is.

    Parameters
    ----------
    dynamics : ErrorDynamics
        The closed loop's error dynamics.
    length : float, optional
        Length that weighs as much as one radian, m. Default, per channel: sqrt(mean rotational
        entry / mean linear entry) of the diagonal of I; 1 for a channel with only one of them.

    Returns
    -------
    list of Channel
        The channels, ordered by their first component.

    Raises
    ------
    ShapeError
        If a gain is not a matrix of the group's dimension.
    NonFiniteError
        If a gain has a NaN or an infinity.
    OutputError
        If the length is not above zero.
    """
    sound = length is None or 0.0 < length < float("inf")
    cure = "Omit it: the default follows from the inertia I."
    check(sound, "length of the channels", "metres per radian, above zero", length, cure)
    size = dynamics.group.dim
    gains = [
        _matrix(getattr(dynamics, name), name, size) for name in ("stiffness", "damping", "inertia")
    ]
    factors = _factors(dynamics.group)
    ends = np.cumsum([factor.dim for factor in factors], dtype=int)
    spans = [np.arange(end - f.dim, end) for f, end in zip(factors, ends, strict=True)]

    if dynamics.integral is not None:
        gains.append(_matrix(dynamics.integral, "integral", size))
    coupled = sum(np.abs(np.sign(gain)) for gain in gains)
    for span in spans:
        coupled[np.ix_(span, span)] = 1.0
    labels = connected_components(coupled, directed=False)[1] if size else []
    members: dict[int, list[int]] = {}
    for k, span in enumerate(spans):
        if span.size:
            members.setdefault(labels[span[0]], []).append(k)

    channels = []
    for group in members.values():
        index = np.concatenate([spans[k] for k in group])
        blocks = [gain[np.ix_(index, index)] for gain in gains]
        for array in (index, *blocks):
            array.setflags(write=False)
        own = tuple(factors[k] for k in group)
        units = tuple(unit for f in own for unit in f.error_units)
        channels.append(
            Channel(
                index,
                own,
                _kind(own, blocks),
                stiffness=blocks[0],
                damping=blocks[1],
                inertia=blocks[2],
                integral=blocks[3] if len(blocks) > 3 and blocks[3].any() else None,
                names=tuple(name for f in own for name in f.error_names),
                units=units,
                length=_length(blocks[2], units) if length is None else float(length),
            )
        )
    return channels


def _matrix(value: np.ndarray, name: str, size: int) -> np.ndarray:
    where = f"error dynamics, `{name}`"
    matrix = as_floats(value, where)
    if matrix.shape != (size, size):
        raise ShapeError(
            where,
            expected=f"a matrix of shape ({size}, {size}), the group's dimension",
            came=f"shape {matrix.shape}",
            cure="Give one row and column for each component of the group's error.",
        )
    if not np.isfinite(matrix).all():
        raise nonfinite_error(where, matrix)
    return matrix


def _factors(group: OutputGroup) -> list[OutputGroup]:
    """Factors of nested products, in order."""
    if isinstance(group, Product):
        return [factor for part in group.factors for factor in _factors(part)]
    return [group]


def is_flat(factor: OutputGroup) -> bool:
    """Whether B of a factor is the identity for every error."""
    # For a user-defined group `abelian` is not trusted: its B must be the identity's formula.
    return factor.abelian and type(factor).error_map is OutputGroup.error_map


def _kind(factors: tuple[OutputGroup, ...], gains: list[np.ndarray]) -> Kind:
    if all(is_flat(f) for f in factors):
        return "linear"
    if len(factors) == 1:
        kind = type(factors[0])
        isotropic = all(_isotropic(gain) for gain in gains)
        if kind is Rotation:
            return "SO3 isotropic" if isotropic else "SO3"
        if kind is Pose:
            return "SE3 isotropic" if isotropic else "SE3"
        if kind is PlanarPose:
            return "SE2"
        if kind is Direction and all(np.array_equal(g, g[0, 0] * np.eye(len(g))) for g in gains):
            return "S2"
    return "general"


def _isotropic(gain: np.ndarray) -> bool:
    """Whether a gain is block diagonal, each 3 x 3 block an exact multiple of the identity."""
    scales = np.repeat(np.diag(gain)[::3], 3)
    return np.array_equal(gain, np.diag(scales)[: len(gain), : len(gain)])


def _length(inertia: np.ndarray, units: tuple[str, ...]) -> float:
    linear = np.array([unit == "m" for unit in units])
    if linear.all() or not linear.any():
        return 1.0
    diagonal = np.diag(inertia)
    metres, radians = diagonal[linear].mean(), diagonal[~linear].mean()
    # An inertia that is not positive has no length; the checks of the gains reject it.
    return float(np.sqrt(radians / metres)) if metres > 0.0 and radians > 0.0 else 1.0


def _scalar_rate(stiffness: float, damping: float) -> float:
    """Decay rate of s^2 + damping s + stiffness, without cancellation."""
    inside = damping * damping - 4.0 * stiffness
    if inside <= 0.0:
        return float(damping / 2.0)
    root = float(np.sqrt(inside))
    if damping <= 0.0:
        return float((damping - root) / 2.0)
    return float(2.0 * stiffness / (damping + root))
