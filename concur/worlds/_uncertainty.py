"""Uncertain quantities, and worlds: rows of their deviations from the nominal values, by number."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concur.codegen import finite_floats
from concur.errors import DescriptionError, ShapeError, SimulationError, shown

METHODS = ("independent", "sobol")
"""Ways to draw worlds."""

LARGEST_NUMBER = 2**30 - 1
"""Largest number of a world: Sobol points have 30 bits."""

GAP = 1000
"""Numbers that are drawn in vain rather than one more generator made."""


@dataclass(frozen=True)
class Quantity:
    """One uncertain number: its deviation from the nominal value is drawn for each world.

    Parameters
    ----------
    kind : str
        What it is, the table in a task file: "mass", "viscous", "initial_q", "reference.hand".
    name : str
        Body, control, joint or field that has it.
    distribution : scipy.stats distribution
        Distribution of the deviation with all its parameters, in SI units, such as
        ``scipy.stats.uniform(-0.1, 0.4)``.
    index : int, optional
        Index among the components, if it is one of several.
    size : int, optional
        Number of components.
    unit : str
        Unit of the deviation.

    Raises
    ------
    DescriptionError
        If the parameters of the distribution are out of range.

    Examples
    --------
    >>> from scipy.stats import norm
    >>> from concur.worlds import Quantity
    >>> Quantity("mass", "hand", norm(0.0, 0.02), unit="kg").label
    'mass.hand'
    """

    kind: str
    name: str
    distribution: Any
    index: int | None = None
    size: int | None = None
    unit: str = ""

    def __post_init__(self) -> None:
        with np.errstate(invalid="ignore"):
            low, high = np.asarray(self.distribution.ppf([1e-9, 1.0 - 1e-9]), dtype=float)
        if not (np.isfinite([low, high]).all() and low < high):
            raise DescriptionError(
                f"distribution of `{self.label}`",
                expected="finite parameters, in order, for two values or more",
                came=f"quantiles from {low:g} to {high:g}",
                cure="Correct the numbers, in SI units.",
            )

    @property
    def label(self) -> str:
        """Kind, name and index: the name of a column."""
        return f"{self.kind}.{self.name}" + ("" if self.index is None else f"[{self.index}]")

    @property
    def support(self) -> tuple[float, float]:
        """Smallest and largest deviation, infinite for an unbounded distribution."""
        low, high = (float(f"{end:.15g}") for end in self.distribution.support())
        return low, high  # SciPy adds a width to the lower end, and so rounds the upper one


@dataclass(frozen=True)
class Uncertainty:
    """Declared uncertain quantities; a world is a row of their deviations.

    Parameters
    ----------
    quantities : tuple of Quantity
        The quantities, in the order of the columns.

    Raises
    ------
    SimulationError
        If a quantity is declared twice, or its components do not fit.

    Examples
    --------
    >>> from scipy.stats import uniform
    >>> from concur.worlds import Quantity, Uncertainty
    >>> payload = Quantity("mass", "hand", uniform(-0.1, 0.4), unit="kg")
    >>> uncertainty = Uncertainty((payload,))
    >>> worlds = uncertainty.draw(range(4), seed=1)
    >>> worlds.shape
    (4, 1)
    >>> bool((uncertainty.draw([2], seed=1) == worlds[2]).all())
    True
    >>> uncertainty.world([0.25])
    {'mass': {'hand': 0.25}}
    """

    quantities: tuple[Quantity, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "quantities", tuple(self.quantities))
        sizes: dict[tuple[str, str], int | None] = {}
        for entry in self.quantities:
            of_all = sizes.setdefault((entry.kind, entry.name), entry.size)
            whole = entry.index is None and entry.size is None
            inside = entry.index is not None and 0 <= entry.index < (entry.size or 0)
            if entry.size != of_all or not (whole or inside):
                raise SimulationError(
                    f"uncertainty, `{entry.label}`",
                    expected="an index and the number of components, or neither",
                    came=f"index {entry.index} of {entry.size}",
                    cure="Give all components of a quantity the same size.",
                )
        if len(set(self.labels)) < self.size:
            twice = next(label for label in self.labels if self.labels.count(label) > 1)
            raise SimulationError(
                f"uncertainty, `{twice}`",
                expected="each quantity once",
                came="two of them",
                cure="Remove one.",
            )

    @property
    def size(self) -> int:
        """Number of uncertain quantities, d."""
        return len(self.quantities)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Name of each column of worlds."""
        return tuple(entry.label for entry in self.quantities)

    def draw(
        self, numbers: ArrayLike | range, seed: int = 0, method: str = "independent"
    ) -> NDArray[np.float64]:
        """Worlds by number.

        Parameters
        ----------
        numbers : array_like of int
            Numbers of the worlds, shape (B,), from 0.
        seed : int
            Seed: other worlds for each.
        method : str
            "independent" draws, for which the interval of a pass rate holds, or "sobol": scrambled
            Sobol points, which cover the intervals evenly.

        Returns
        -------
        numpy.ndarray
            Deviations from the nominal values, shape (B, d), SI units. A row depends on seed,
            method and its number alone; an independent one not even on the other quantities.

        Raises
        ------
        SimulationError
            If an argument is out of range.

        Notes
        -----
        Independent draws come from Philox counters (Salmon et al., SC 2011, "Parallel random
        numbers: as easy as 1, 2, 3") with the number of the world as counter.
        """
        return self.at(self.shares(numbers, seed, method))

    def shares(
        self, numbers: ArrayLike | range, seed: int = 0, method: str = "independent"
    ) -> NDArray[np.float64]:
        """Worlds by number as points of the unit cube: shares of the probability.

        Parameters
        ----------
        numbers : array_like of int
            Numbers of the worlds, shape (B,), from 0.
        seed : int
            As of `draw`.
        method : str
            As of `draw`.

        Returns
        -------
        numpy.ndarray
            Shares above zero and below one, shape (B, d); `at` turns them into deviations.
        """
        wanted, place = np.unique(_checked(numbers, seed, method), return_inverse=True)
        if not self.size or not wanted.size:
            return np.zeros((place.size, self.size))
        draw = _philox if method == "independent" else _sobol
        runs = np.split(wanted, np.flatnonzero(np.diff(wanted) > GAP) + 1)
        return np.concatenate(list(draw(runs, int(seed), self.labels)))[place.reshape(-1)]

    def at(self, shares: ArrayLike) -> NDArray[np.float64]:
        """Deviations at points of the unit cube.

        Parameters
        ----------
        shares : array_like
            Shares above zero and below one, shape (B, d).

        Returns
        -------
        numpy.ndarray
            Deviations from the nominal values, shape (B, d), SI units.
        """
        found = np.array(shares, dtype=float)
        for k, entry in enumerate(self.quantities):
            found[:, k] = entry.distribution.ppf(found[:, k])
        return found

    def values(self, worlds: ArrayLike) -> dict[tuple[str, str], NDArray[np.float64]]:
        """Deviations of many worlds by kind and name.

        Parameters
        ----------
        worlds : array_like
            Worlds, shape (B, d).

        Returns
        -------
        dict
            By (kind, name): shape (B,), or (B, size) for a quantity with components, zero for
            those that are certain.
        """
        rows = finite_floats(worlds, "worlds")
        if rows.ndim != 2 or rows.shape[1] != self.size:
            raise ShapeError(
                "worlds",
                expected=f"shape (B, {self.size}), a column for each uncertain quantity",
                came=str(rows.shape),
                cure="Draw them with `Uncertainty.draw`.",
            )
        found: dict[tuple[str, str], NDArray[np.float64]] = {}
        for k, entry in enumerate(self.quantities):
            if entry.index is None:
                found[entry.kind, entry.name] = rows[:, k]
                continue
            own = np.zeros((len(rows), entry.size or 0))
            found.setdefault((entry.kind, entry.name), own)[:, entry.index] = rows[:, k]
        return found

    def world(self, row: ArrayLike) -> dict[str, Any]:
        """One world as nested tables, as a task file has them.

        Parameters
        ----------
        row : array_like
            Deviations, shape (d,).

        Returns
        -------
        dict
            Deviations by kind and name: a number, or a list for a quantity with components.
        """
        deviations = finite_floats(row, "world", (self.size,))
        found: dict[str, Any] = {}
        for (kind, name), value in self.values(deviations[None]).items():
            table = found
            for part in kind.split(".", 1):
                table = table.setdefault(part, {})
            table[name] = value[0].tolist()
        return found


@dataclass(frozen=True)
class World:
    """One world, as the table `[world]` of a task file has it.

    Parameters
    ----------
    deviations : mapping
        Deviations from the nominal values by kind and name, as of `Uncertainty.world`.
    number, seed : int
        Number of the world and seed of its campaign: the key of jitter and noise.

    Examples
    --------
    >>> from concur.worlds import World
    >>> World({"mass": {"hand": 0.2}}, number=17).values
    {('mass', 'hand'): array([0.2])}
    """

    deviations: Mapping[str, Any] = field(default_factory=dict)
    number: int = 0
    seed: int = 0

    @property
    def values(self) -> dict[tuple[str, str], NDArray[np.float64]]:
        """Deviations by kind and name with a leading axis of one world."""
        found = {}
        for kind, table in self.deviations.items():
            for name, value in table.items():
                parts = value.items() if isinstance(value, Mapping) else [(None, value)]
                for part, entry in parts:
                    key = (kind, name) if part is None else (f"{kind}.{name}", part)
                    found[key] = np.array([entry], float)
        return found


def _philox(
    runs: Sequence[NDArray[np.int64]], seed: int, names: Sequence[str]
) -> Iterator[NDArray[np.float64]]:
    """Shares by counters: a further name leaves the others as they are."""
    digests = [hashlib.blake2b(name.encode(), digest_size=8).digest() for name in names]
    keys = [np.array([seed, int.from_bytes(one, "little")], np.uint64) for one in digests]
    for run in runs:
        first = int(run[0]) // 4  # a counter gives four numbers
        count = int(run[-1]) + 1 - 4 * first
        words = [np.random.Philox(counter=first, key=key).random_raw(count) for key in keys]
        # 52 bits and half a step: neither zero nor one.
        shares = ((np.stack(words, axis=1) >> np.uint64(12)) + 0.5) * 2.0**-52
        yield np.asarray(shares[run - 4 * first], dtype=np.float64)


def _sobol(
    runs: Sequence[NDArray[np.int64]], seed: int, names: Sequence[str]
) -> Iterator[NDArray[np.float64]]:
    """Points that the seed scrambles; the number of a world is the index of its point."""
    from scipy.stats import qmc

    if len(names) > qmc.Sobol.MAXDIM:
        raise SimulationError(
            "draw of worlds, `method`",
            expected=f"at most {qmc.Sobol.MAXDIM} uncertain quantities for Sobol points",
            came=str(len(names)),
            cure='Draw with method="independent".',
        )
    engine = qmc.Sobol(len(names), seed=np.random.default_rng(seed))
    for run in runs:
        first, count = int(run[0]), int(run[-1] - run[0]) + 1
        if first:
            engine.fast_forward(first - engine.num_generated)
            found = engine.random(count)
        else:  # the first one alone: the engine warns of numbers that are no power of two
            found = np.concatenate([engine.random(1), engine.random(count - 1)])
        yield np.asarray(found[run - first] + 2.0**-31, dtype=np.float64)


def _checked(numbers: Any, seed: Any, method: Any) -> NDArray[np.int64]:
    """Numbers of worlds as an array, after the checks of all arguments of a draw."""
    found = np.asarray(numbers)
    whole = found.ndim == 1 and (found.dtype.kind in "iu" or not found.size)
    inside = not found.size or (whole and found.min() >= 0 and found.max() <= LARGEST_NUMBER)
    seeded = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    for name, given, right, expected, cure in (
        (
            *("method", method, method in METHODS, '"independent" or "sobol"'),
            'Take "independent" where an interval of the pass rate is to follow.',
        ),
        (
            *("seed", seed, seeded and 0 <= seed < 2**63, "a whole number from 0 to 2^63 - 1"),
            "Take 0, or another whole number for other worlds.",
        ),
        (
            *("numbers", numbers, whole and inside, f"whole numbers from 0 to {LARGEST_NUMBER}"),
            "Pass range(1000) for the first thousand worlds.",
        ),
    ):
        if not right:
            where = f"draw of worlds, `{name}`"
            raise SimulationError(where, expected=expected, came=shown(given), cure=cure)
    return found.astype(np.int64)
