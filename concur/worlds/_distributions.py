"""Distributions of uncertain quantities, by their quantile functions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import finite_floats
from concur.errors import ConcurError, DescriptionError, shown


class Distribution(ABC):
    """Distribution of one number: `Uniform`, `Normal`, `Triangular` or `Choice`."""

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """Smallest and largest value; infinite for an unbounded distribution."""

    @abstractmethod
    def quantile(self, u: ArrayLike) -> np.ndarray:
        """Value below which a share of the probability lies.

        Parameters
        ----------
        u : array_like
            Shares, above zero and below one, of any shape.

        Returns
        -------
        numpy.ndarray
            Values, of the same shape.
        """

    @abstractmethod
    def scaled(self, factor: float) -> Distribution:
        """Distribution of the value times a factor.

        Parameters
        ----------
        factor : float
            A factor other than zero.

        Returns
        -------
        Distribution
            One of the same kind.
        """


@dataclass(frozen=True)
class Uniform(Distribution):
    """Uniform distribution on an interval.

    Parameters
    ----------
    low, high : float
        Ends, low below high.

    Raises
    ------
    DescriptionError
        If the ends are not in order.

    Examples
    --------
    >>> from concur.worlds import Uniform
    >>> Uniform(-1.0, 3.0).quantile([0.25, 0.5])
    array([0., 1.])
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _numbers(self, "low", "high")
        if not self.low < self.high:
            raise _refused("uniform distribution", "two ends, low below high", self)

    @property
    def support(self) -> tuple[float, float]:
        return self.low, self.high

    def quantile(self, u: ArrayLike) -> np.ndarray:
        return self.low + (self.high - self.low) * np.asarray(u, dtype=float)

    def scaled(self, factor: float) -> Uniform:
        low, high = sorted((self.low * factor, self.high * factor))
        return Uniform(low, high)


@dataclass(frozen=True)
class Normal(Distribution):
    """Normal distribution.

    Parameters
    ----------
    mean, std : float
        Mean, and standard deviation above zero.

    Raises
    ------
    DescriptionError
        If the standard deviation is not above zero.
    """

    mean: float
    std: float

    def __post_init__(self) -> None:
        _numbers(self, "mean", "std")
        if not self.std > 0.0:
            raise _refused("normal distribution", "a standard deviation above zero", self)

    @property
    def support(self) -> tuple[float, float]:
        return -np.inf, np.inf

    def quantile(self, u: ArrayLike) -> np.ndarray:
        from scipy.special import ndtri

        return np.asarray(self.mean + self.std * ndtri(np.asarray(u, dtype=float)))

    def scaled(self, factor: float) -> Normal:
        return Normal(self.mean * factor, self.std * abs(factor))


@dataclass(frozen=True)
class Triangular(Distribution):
    """Triangular distribution: its density rises from one end to the mode, and falls to the other.

    Parameters
    ----------
    low, mode, high : float
        Ends, low below high, and the most frequent value between them.

    Raises
    ------
    DescriptionError
        If the numbers are not in order.
    """

    low: float
    mode: float
    high: float

    def __post_init__(self) -> None:
        _numbers(self, "low", "mode", "high")
        if not (self.low <= self.mode <= self.high and self.low < self.high):
            raise _refused("triangular distribution", "low, mode and high in this order", self)

    @property
    def support(self) -> tuple[float, float]:
        return self.low, self.high

    def quantile(self, u: ArrayLike) -> np.ndarray:
        share, width = np.asarray(u, dtype=float), self.high - self.low
        left, right = (self.mode - self.low) / width, (self.high - self.mode) / width
        rising = self.low + width * np.sqrt(share * left)
        return np.where(share < left, rising, self.high - width * np.sqrt((1.0 - share) * right))

    def scaled(self, factor: float) -> Triangular:
        low, high = sorted((self.low * factor, self.high * factor))
        return Triangular(low, self.mode * factor, high)


@dataclass(frozen=True)
class Choice(Distribution):
    """One of several values, all with the same probability.

    Parameters
    ----------
    values : tuple of float
        The values, two or more that differ.

    Raises
    ------
    DescriptionError
        If there are fewer than two values, or one occurs twice.
    """

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        found = finite_floats(self.values, "distribution of choices, `values`")
        if found.ndim != 1 or len(found) < 2 or len(set(found.tolist())) < len(found):
            raise _refused("distribution of choices", "two or more values that differ", self)
        object.__setattr__(self, "values", tuple(found.tolist()))

    @property
    def support(self) -> tuple[float, float]:
        return min(self.values), max(self.values)

    def quantile(self, u: ArrayLike) -> np.ndarray:
        place = np.floor(np.asarray(u, dtype=float) * len(self.values)).astype(int)
        return np.asarray(np.array(self.values)[place])

    def scaled(self, factor: float) -> Choice:
        return Choice(tuple(value * factor for value in self.values))


def _numbers(given: Distribution, *names: str) -> None:
    for name in names:
        number = finite_floats(getattr(given, name), f"distribution, `{name}`", ())
        object.__setattr__(given, name, float(number))


def _refused(kind: str, expected: str, came: object) -> ConcurError:
    return DescriptionError(
        kind, expected=expected, came=shown(came), cure="Correct the numbers, in SI units."
    )
