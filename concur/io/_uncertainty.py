"""Reader of the tables [uncertainty] and [world] of a task: deviations from nominal values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from typing import Any

import numpy as np

from concur.errors import DescriptionError, shown
from concur.io._nominal import Nominal
from concur.tables import entry, is_number, placed, refused, show, stranger
from concur.worlds import Quantity, Uncertainty, World

ALL = "*"
"""Name that stands for every name of a kind."""

WAYS = {"interval": 2, "normal": 2, "triangular": 3, "choice": None}
"""Distributions by their field, and how many numbers they take."""

FORMS = (
    "an interval [low, high], or a table with one of `relative`, `normal`, `triangular`, `choice`"
)

_ACT = (
    "Give the number in [imperfections], or in the robot, whose motors act in a task with a table "
    "[imperfections]."
)

Place = tuple[str, ...]
"""Position of an entry in the file."""


def read_uncertainty(
    tables: Mapping[str, Mapping[str, Any]] | None, nominal: Nominal, path: str | PathLike[str]
) -> Uncertainty:
    """Uncertain quantities in the order of the file."""
    quantities: list[Quantity] = []
    with placed(path, {"uncertainty": tables}):
        for kind, place, value in _entries(tables or {}, "uncertainty", nominal):
            known, name = nominal[kind], place[-1]
            if name == ALL:
                found = [
                    quantity
                    for other in known
                    if other not in _at(tables, place[1:-1])
                    for quantity in _quantities(kind, other, value, nominal, place, skip=True)
                ]
                if not found:
                    raise _no_nominal(place, "quantities with nominal values other than zero")
            else:
                _check_name(name, known, place)
                found = _quantities(kind, name, value, nominal, place)
            quantities += found
    return Uncertainty(tuple(quantities))


def read_world(
    tables: Mapping[str, Any] | None, nominal: Nominal, path: str | PathLike[str]
) -> World | None:
    """One world: its deviations, and the number and seed of its random numbers."""
    if tables is None:
        return None
    keys = {key: tables[key] for key in ("number", "seed") if key in tables}
    kinds = {key: value for key, value in tables.items() if key not in keys}
    with placed(path, {"world": tables}):
        for key, value in keys.items():
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                cure = f"Write the {key} that the campaign gives."
                raise refused(("world", key), "a whole number of zero or more", show(value), cure)
        for kind, place, value in _entries(kinds, "world", nominal):
            _check_name(place[-1], nominal[kind], place)
            shape = nominal[kind][place[-1]].value.shape
            if np.isinf(nominal[kind][place[-1]].value).any():
                raise refused(place, "a finite nominal value", "none", _ACT)
            entries = value if shape and isinstance(value, list) else [value]
            sound = all(is_number(entry) and np.isfinite(entry) for entry in entries)
            if not sound or np.shape(value) != shape:
                expected = f"{shape[0]} numbers" if shape else "a number"
                cure = "Give deviations from the nominal values, in SI units."
                raise refused(place, expected, show(value), cure)
    return World(kinds, **keys)


def _entries(
    tables: Mapping[str, Any], whole: str, nominal: Nominal
) -> Iterator[tuple[str, Place, Any]]:
    """Kind, position and value of each entry; references have a table for each output."""
    kinds = list(dict.fromkeys(kind.split(".")[0] for kind in nominal))
    outputs = [other.split(".", 1)[1] for other in nominal if "." in other]
    for kind, table in tables.items():
        if kind not in kinds:
            raise stranger((whole, kind), "a kind of quantity of this robot", kind, kinds)
        _check_table(table, (whole, kind))
        parts = {kind: table}
        if kind == "reference":
            for name in table:
                if name not in outputs:
                    raise stranger((whole, kind, name), "an output", name, outputs)
            parts = {f"{kind}.{name}": part for name, part in table.items()}
        for each, part in parts.items():
            place = (whole, *each.split(".", 1))
            _check_table(part, place)
            for name, value in part.items():
                yield each, (*place, name), value


def _at(tables: Any, place: Place) -> Any:
    for part in place:
        tables = tables[part]
    return tables


def _check_table(value: Any, place: Place) -> None:
    if not isinstance(value, Mapping):
        cure = f"Write a table [{'.'.join(place)}]."
        raise refused(place, "a table of quantities by name", show(value), cure)


def _check_name(name: str, known: Mapping[str, Any], place: Place) -> None:
    if name not in known:
        raise stranger(place, "a name that has such a quantity", name, known)


def _quantities(
    kind: str, name: str, value: Any, nominal: Nominal, place: Place, skip: bool = False
) -> list[Quantity]:
    """Quantities of one entry: one, or one for each uncertain component."""
    values, unit = nominal[kind][name].value, nominal[kind][name].unit
    size = None if not values.shape else values.shape[0]
    entries = [value] * (size or 1)
    # A list of numbers is an interval for all components, one of entries has one for each.
    each = isinstance(value, list) and not (len(value) == 2 and all(map(is_number, value)))
    if size is not None and each:
        if len(value) != size:
            expected = f"an interval or table for all, or a list with {size} of them"
            cure = "Give one entry for each component, 0 for one that is certain."
            raise refused(place, expected, show(value), cure)
        entries = value
    found = []
    for k, (own, number) in enumerate(zip(entries, np.ravel(values).tolist(), strict=True)):
        if size is not None and is_number(own) and own == 0:
            continue
        drawn = _distribution(own, number, place, skip or size is not None)
        if drawn is not None:
            index = None if size is None else k
            with entry(*place):
                found.append(Quantity(kind, name, drawn, index, size, unit))
    if size is not None and not skip and not found:
        raise _no_nominal(place, "a component that is uncertain")
    return found


def _distribution(value: Any, nominal: float, place: Place, skip: bool) -> Any:
    """Distribution of a deviation; None for a share of zero, if it may be skipped."""
    table = {"interval": value} if isinstance(value, list) else value
    share = False
    if isinstance(table, Mapping) and "relative" in table:
        given = table["relative"]
        share = given is not False
        table = {key: entry for key, entry in table.items() if key != "relative"}
        if isinstance(given, list) and "interval" not in table:
            table = {"interval": given, **table}
        elif not isinstance(given, bool):
            table = {}
    way = next(iter(table), "") if isinstance(table, Mapping) else ""
    numbers = table[way] if way in WAYS else None
    sound = (
        isinstance(numbers, list)
        and len(table) == 1
        and all(is_number(number) and np.isfinite(number) for number in numbers)
        and WAYS[way] in (None, len(numbers))
    )
    if not sound:
        came = show(value) if not isinstance(value, Mapping) else f"a table {shown(dict(value))}"
        cure = "Write for example [-0.1, 0.1], or { relative = [-0.1, 0.1] }."
        raise refused(place, FORMS, came, cure)
    if np.isinf(nominal):
        raise refused(place, "a finite nominal value", "none", _ACT)
    if share and (nominal == 0.0 or not np.isfinite(nominal)):
        if skip and nominal == 0.0:
            return None
        came = "zero" if nominal == 0.0 else "a quantity without one"
        raise _no_nominal(place, "a nominal value other than zero for a relative deviation", came)
    return _made(way, np.array(numbers, dtype=float), nominal if share else 1.0, place)


def _made(way: str, numbers: np.ndarray, factor: float, place: Place) -> Any:
    """Distribution of SciPy of a value times a factor."""
    from scipy import stats

    values = len(set(numbers.tolist()))
    ordered = values > 1 and bool((np.diff(numbers) >= 0.0).all())
    right, expected = {
        "interval": (ordered, "two ends, low below high"),
        "normal": (bool((numbers[1:] > 0.0).all()), "a standard deviation above zero"),
        "triangular": (ordered, "low, mode and high in this order"),
        "choice": (1 < len(numbers) == values, "two or more values that differ"),
    }[way]
    if not right:
        cure = "Correct the numbers, in SI units."
        raise refused(place, expected, show(numbers.tolist()), cure)
    scaled = numbers * factor
    low, high = scaled.min(), scaled.max()
    if way == "interval":
        return stats.uniform(low, high - low)
    if way == "normal":
        return stats.norm(scaled[0], abs(scaled[1]))
    if way == "triangular":
        return stats.triang((scaled[1] - low) / (high - low), low, high - low)
    return stats.rv_discrete(values=(scaled, np.full(len(scaled), 1.0 / len(scaled))))()


def _no_nominal(place: Place, expected: str, came: str = "zero") -> DescriptionError:
    return refused(place, expected, came, "Give an interval in SI units instead.")
