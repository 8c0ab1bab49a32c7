"""Uncertain quantities, and worlds: rows of their deviations from the nominal values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from concur.codegen import finite_floats
from concur.errors import ShapeError, SimulationError, UnknownNameError, shown
from concur.worlds._distributions import Distribution
from concur.worlds._draws import shares
from concur.worlds._world import flat


@dataclass(frozen=True)
class Quantity:
    """One uncertain number: its deviation from the nominal value is drawn for each world.

    Parameters
    ----------
    kind : str
        What it is, the table in a task file: "mass", "viscous", "initial_q", "reference.hand".
    name : str
        Body, control, joint or field that has it.
    distribution : Distribution
        Distribution of the deviation, in SI units.
    index : int, optional
        Index among the components, if it is one of several.
    size : int, optional
        Number of components.
    unit : str
        Unit of the deviation.

    Examples
    --------
    >>> import concur as cc
    >>> task = cc.load_task("examples/rover_campaign.toml")
    >>> task.uncertainty.quantities[0].kind
    'mass'
    """

    kind: str
    name: str
    distribution: Distribution
    index: int | None = None
    size: int | None = None
    unit: str = ""

    @property
    def label(self) -> str:
        """Kind, name and index: the name of a column."""
        return f"{self.kind}.{self.name}" + ("" if self.index is None else f"[{self.index}]")


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
    >>> from concur.worlds import Quantity, Uncertainty, Uniform
    >>> payload = Quantity("mass", "hand", Uniform(-0.1, 0.3), unit="kg")
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
        return shares(numbers, seed, self.labels, method)

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
            found[:, k] = entry.distribution.quantile(found[:, k])
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

    def row(self, world: Mapping[str, Any]) -> NDArray[np.float64]:
        """Row of a world that is given as nested tables.

        Parameters
        ----------
        world : mapping
            As `world` returns it; what it lacks is nominal.

        Returns
        -------
        numpy.ndarray
            Deviations, shape (d,).

        Raises
        ------
        UnknownNameError
            If the world has a quantity that is not uncertain.
        ShapeError
            If a value has another number of components.
        """
        given = flat(world)
        row = np.zeros(self.size)
        for k, entry in enumerate(self.quantities):
            if (entry.kind, entry.name) in given:
                shape = () if entry.size is None else (entry.size,)
                place = f"world, `{entry.kind}.{entry.name}`"
                values = finite_floats(given[entry.kind, entry.name], place, shape)
                row[k] = values if entry.index is None else values[entry.index]
        again = self.values(row[None])
        for key, value in given.items():
            if key not in again or not np.array_equal(again[key][0], np.asarray(value, float)):
                raise UnknownNameError(
                    f"world, `{'.'.join(key)}`",
                    expected=f"uncertain quantities ({', '.join(self.labels)})",
                    came=f"a deviation {shown(value)} of a quantity that is certain",
                    cure="Declare it as uncertain, or omit it.",
                )
        return row
