"""Result of a campaign: one table, a row for each world, sorted by the number of the world."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NoReturn, TypeAlias, get_args

import numpy as np

from concur.errors import (
    ConcurError,
    DescriptionError,
    ShapeError,
    UnknownNameError,
    entries,
    shown,
)
from concur.hdf5 import hdf5_file
from concur.results import Figures, Row, plain, show
from concur.simulation import write_arrays

Columns: TypeAlias = tuple[tuple[str, str], ...]
"""Name and unit of each column."""

Method = Literal["independent", "sobol"]

LIMITED = ("limited", "limit")
"""Kinds of signals of a law's limits, of any and of each; their extreme is a share of time."""


def is_share(signal: str) -> bool:
    """Whether the extreme of a signal is the share of the time in which a limit was active.

    Parameters
    ----------
    signal : str
        Name of the signal.

    Returns
    -------
    bool
        True for "limited" and for each "limit:NAME".
    """
    return signal.partition(":")[0] in LIMITED


class Answer:
    """An answer of a campaign: a dataclass."""

    def as_dict(self) -> dict[str, Any]:
        """Fields for JSON; null for infinite and missing numbers."""
        found: dict[str, Any] = plain(self)
        return found


_FORMAT = "concur campaign 2"


@dataclass(frozen=True, eq=False, repr=False)
class CampaignResult:
    """Values of the requirements in all worlds of a campaign.

    The rows are sorted by the number of their world, whatever the order in which they came, so
    that every figure and every total depends on the campaign alone. The arrays are read-only.

    Parameters
    ----------
    quantities : sequence of (str, str)
        Name and unit of each uncertain quantity: columns of `worlds`.
    columns : sequence of (str, str)
        Name and unit of each requirement: columns of `values`.
    numbers : array_like
        Numbers of the worlds, shape (n,), all different.
    worlds : array_like
        Deviations from nominal numbers, shape (n, d), in the units of the quantities.
    values : array_like
        Robustness of the requirements, shape (n, m): positive if the requirement holds. NaN
        never holds.
    stopped : array_like
        Time at which each world ended, shape (n,), s; `duration` for a whole run.
    duration : float
        Duration of a whole run, s.
    method : str
        "independent" for independent draws, "sobol" for scrambled Sobol points.
    seed : int
        Seed of the draws.
    key : str
        Hash of what was evaluated: robot, law, reference, compiler, processor, versions.
    signals : sequence of (str, str), optional
        Name and unit of each reduced signal: columns of `extremes`.
    extremes : array_like, optional
        Extremes of the signals, such as the largest absolute torque of a control, shape (n, k); of
        a limit of the law the share of the time in which it was active.
    crashes : mapping of int to str, optional
        Reason for each world that ended the process or ran out of time, by its number. Such a
        world fails every requirement.
    limits : mapping of str to (float, float), optional
        Lower and upper limit of an extreme by the name of its signal, for figures; an absent
        limit is infinite.
    invalid : mapping of int to str, optional
        Reason for each world whose run is not valid from some time on, by its number. Such a world
        fails every requirement.
    looks : sequence of int, optional
        Numbers of worlds at which answers of this campaign were given. That of the result is
        added, so that a result with more rows keeps the earlier ones.

    Raises
    ------
    ShapeError
        If the arrays do not fit together.
    ConcurError
        If two rows have the same number, or the method is unknown.

    Examples
    --------
    >>> import numpy as np
    >>> from concur.campaign import CampaignResult
    >>> mass = np.linspace(-0.1, 0.1, 50)
    >>> result = CampaignResult(
    ...     quantities=[("mass of arm", "kg")], columns=[("error of hand", "m")],
    ...     numbers=range(50), worlds=mass[:, None], values=0.05 - mass[:, None],
    ...     stopped=np.full(50, 5.0), duration=5.0, method="independent", seed=0, key="")
    >>> result.values.shape
    (50, 1)
    >>> int((result.values > 0).sum())
    37
    """

    quantities: Columns
    columns: Columns
    numbers: np.ndarray
    worlds: np.ndarray
    values: np.ndarray
    stopped: np.ndarray
    duration: float
    method: Method
    seed: int
    key: str
    signals: Columns = ()
    extremes: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    crashes: dict[int, str] = field(default_factory=dict)
    limits: dict[str, tuple[float, float]] = field(default_factory=dict)
    invalid: dict[int, str] = field(default_factory=dict)
    looks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("quantities", "columns", "signals"):
            pairs = tuple((str(label), str(unit)) for label, unit in getattr(self, name))
            object.__setattr__(self, name, pairs)
        numbers = np.asarray(self.numbers, dtype=np.int64)
        n = len(numbers) if numbers.ndim == 1 else -1
        if not np.size(self.extremes) and not (n and self.signals):
            object.__setattr__(self, "extremes", np.zeros((n, len(self.signals))))
        order = np.argsort(numbers, kind="stable")
        for name, shape in (
            ("numbers", (n,)),
            ("worlds", (n, len(self.quantities))),
            ("values", (n, len(self.columns))),
            ("stopped", (n,)),
            ("extremes", (n, len(self.signals))),
        ):
            array = np.asarray(getattr(self, name), dtype=np.int64 if name == "numbers" else float)
            if array.shape != shape:
                cure = "Pass a row for each number and a column for each name."
                _refuse(name, f"shape {shape}", f"shape {array.shape}", cure, ShapeError)
            array = array[order]
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        reasons = {
            name: {int(number): str(why) for number, why in dict(getattr(self, name)).items()}
            for name in ("crashes", "invalid")
        }
        known: set[int] = set(self.numbers.tolist())
        looks: Any = entries(self.looks, (int, np.integer))  # type: ignore[arg-type]
        for name, right, expected in (
            ("numbers", len(known) == n, "each world once"),
            ("crashes", known >= set(reasons["crashes"]), "numbers of the campaign"),
            ("invalid", known >= set(reasons["invalid"]), "numbers of the campaign"),
            (
                "looks",
                looks is not None and all(_is_number(look) and look >= 0 for look in looks),
                "numbers of worlds",
            ),
            ("duration", _is_number(self.duration, float), "a finite number"),
            ("seed", _is_number(self.seed), "a whole number"),
            ("method", self.method in get_args(Method), " or ".join(get_args(Method))),
        ):
            if not right:
                _refuse(name, expected, shown(getattr(self, name)), "Pass that of the campaign.")
        limits = {str(name): (float(a), float(b)) for name, (a, b) in dict(self.limits).items()}
        object.__setattr__(self, "limits", limits)
        for name, texts in reasons.items():
            object.__setattr__(self, name, dict(sorted(texts.items())))
        object.__setattr__(self, "looks", tuple(sorted({*map(int, looks or ()), n})))

    def __len__(self) -> int:
        """Number of worlds."""
        return len(self.numbers)

    def __repr__(self) -> str:
        return (
            f"CampaignResult({len(self)} worlds, {self.method}, {len(self.quantities)} quantities, "
            f"{int(self.passed.sum())} passed)"
        )

    @property
    def grown(self) -> bool:
        """Whether answers were given with another number of worlds too."""
        return len(self.looks) > 1

    @property
    def crashed(self) -> np.ndarray:
        """Whether each world crashed, shape (n,)."""
        return np.isin(self.numbers, list(self.crashes))

    @property
    def robustness(self) -> np.ndarray:
        """Values in which NaN and crashed worlds are minus infinity, shape (n, m)."""
        lost = np.isnan(self.values) | self.crashed[:, None]
        return np.where(lost, -np.inf, self.values)

    @property
    def held(self) -> np.ndarray:
        """Whether each requirement holds in each world, whose run is valid, shape (n, m)."""
        valid = np.isin(self.numbers, list(self.invalid), invert=True)
        return np.asarray((self.robustness > 0.0) & valid[:, None])

    @property
    def passed(self) -> np.ndarray:
        """Whether each world passed all requirements, shape (n,); False without requirements."""
        return np.asarray(self.held.all(axis=1) & bool(self.columns))

    @property
    def status(self) -> str:
        """Whether all worlds keep all requirements: "passed" or "failed"."""
        return "passed" if len(self) and self.passed.all() else "failed"

    @property
    def rows(self) -> tuple[Row, ...]:
        """Lowest robustness of each requirement, which holds above zero, with its world; limits."""
        if not len(self):
            return ()
        worst = self.robustness.argmin(axis=0)
        held = np.asarray(self.held.all(axis=0))
        required = (
            Row(
                f"robustness of {name}", float(self.robustness[worst[k], k]), 0.0, unit,
                f"world {self.numbers[worst[k]]}", bool(held[k]), at_least=True,
            )
            for k, (name, unit) in enumerate(self.columns)
        )  # fmt: skip
        return (*required, *self.limited)

    @property
    def limited(self) -> tuple[Row, ...]:
        """Share of the time in which limits of the law were active in all worlds together, in %.

        First that of any limit, which is 0 where none was active, then each one that was. The place
        names the number of worlds and the one with the largest share.
        """
        found = []
        for (name, _), own in zip(self.signals, self.extremes.T, strict=True):
            limit = name.partition(":")[2]
            if not is_share(name) or not len(self) or (limit and not (own > 0.0).any()):
                continue
            label = f"limit active: {limit}" if limit else "share of the time with active limits"
            count, most = int(np.sum(own > 0.0)), int(np.nan_to_num(own).argmax())
            place = f"in {count} of {len(self)} worlds"
            if count:
                place += f", most in world {self.numbers[most]}: {100 * own[most]:.3g} %"
            ran = np.nan_to_num(self.stopped)
            share = float(np.nan_to_num(own) @ ran / max(float(ran.sum()), 1e-300))
            found.append(Row(label, 100.0 * share, unit="%", place=place))
        return tuple(found)

    @property
    def figures(self) -> Figures:
        """Robustness of the requirements over the worlds, and the extremes of the signals."""
        drawn = {"robustness": "robustness_figure"} if self.columns and len(self) else {}
        drawn |= {"extremes": "extremes_figure"} if self.signals and len(self) else {}
        return {name: partial(show, draw, self) for name, draw in drawn.items()}

    def requirement(self, name: str) -> int:
        """Return the column of a requirement.

        Parameters
        ----------
        name : str
            Its name.

        Returns
        -------
        int
            Index of its column in `values`.

        Raises
        ------
        UnknownNameError
            If no requirement has this name.
        """
        names = [label for label, _ in self.columns]
        if name not in names:
            raise UnknownNameError(
                "campaign, requirement",
                expected=f"one of {', '.join(names)}",
                came=shown(name),
                cure="Name a requirement of the campaign.",
            )
        return names.index(name)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the table to an HDF5 file.

        Parameters
        ----------
        path : str or path-like
            File to write; an existing one is replaced.

        Returns
        -------
        pathlib.Path
            The file.

        Raises
        ------
        DescriptionError
            If it cannot be written.
        """
        arrays = {
            "numbers": (self.numbers, [("number", "1")]),
            "worlds": (self.worlds, self.quantities),
            "values": (self.values, self.columns),
            "extremes": (self.extremes, self.signals),
            "stopped": (self.stopped, [("stopped", "s")]),
        }
        head = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in arrays}
        head |= {name: list(head[name].items()) for name in ("crashes", "invalid")}
        return write_arrays(path, arrays, {}, {"campaign": json.dumps({"format": _FORMAT, **head})})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> CampaignResult:
        """Read a table that `save` has written.

        Parameters
        ----------
        path : str or path-like
            The file.

        Returns
        -------
        CampaignResult
            The same table.

        Raises
        ------
        DescriptionError
            If it is another file.
        """
        cure = "Name a file that `save` of a campaign has written."
        with hdf5_file(Path(path), "the table of a campaign", cure) as file:
            try:
                head: dict[str, Any] = json.loads(file.text("campaign"))
                if head.pop("format") != _FORMAT:
                    raise ValueError("another version of the format")
                names = ("worlds", "values", "extremes", "stopped")
                head |= {name: file.array(name) for name in names}
                head["numbers"] = file.array("numbers", kinds="iu")
                return cls(**head | {name: dict(head[name]) for name in ("crashes", "invalid")})
            except DescriptionError:
                raise
            except (*_INVALID, ConcurError) as problem:
                file.refuse(f"another file ({shown(str(problem), 100)})")


_INVALID = (AttributeError, KeyError, OverflowError, RecursionError, TypeError, ValueError)
"""Errors of JSON with other members than those of `save`."""


def _is_number(value: Any, kind: type = int) -> bool:
    whole = isinstance(value, (int, np.integer, kind)) and not isinstance(value, bool)
    return whole and bool(np.isfinite(float(value)))


def _refuse(
    name: str, expected: str, came: str, cure: str, error: type[ConcurError] = ConcurError
) -> NoReturn:
    raise error(f"campaign, `{name}`", expected=expected, came=came, cure=cure)
