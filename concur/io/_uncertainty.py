"""Reader of the tables [uncertainty] and [world] of a task: deviations from nominal values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from os import PathLike
from typing import Any

import numpy as np

from concur.errors import DescriptionError
from concur.io._nominal import Nominal
from concur.tables import fault, is_number, located, show, unknown
from concur.worlds import (
    Choice,
    Distribution,
    Normal,
    Quantity,
    Triangular,
    Uncertainty,
    Uniform,
    World,
)

ALL = "*"
"""Name that stands for every name of a kind."""

WAYS: dict[str, tuple[int | None, Callable[..., Distribution]]] = {
    "interval": (2, Uniform),
    "normal": (2, Normal),
    "triangular": (3, Triangular),
    "choice": (None, lambda *values: Choice(values)),
}
"""Distributions by their field, and how many numbers they take."""

FORMS = (
    "an interval [low, high], or a table with one of `relative`, `normal`, `triangular`, `choice`"
)

Path = str | PathLike[str]
Place = tuple[Path, str, str]


def read_uncertainty(
    tables: Mapping[str, Mapping[str, Any]] | None, nominal: Nominal, path: Path
) -> Uncertainty:
    """Uncertain quantities in the order of the file."""
    quantities: list[Quantity] = []
    for kind, table in _tables(tables or {}, "uncertainty", nominal, path):
        known = nominal[kind]
        for name, value in table.items():
            place = path, f"[uncertainty.{kind}]", name
            if name == ALL:
                found = [
                    quantity
                    for other in known
                    if other not in table
                    for quantity in _quantities(kind, other, value, nominal, place, skip=True)
                ]
                if not found:
                    raise _no_nominal(place, "quantities with nominal values other than zero")
            else:
                _check_name(name, known, place)
                found = _quantities(kind, name, value, nominal, place)
            quantities += found
    return Uncertainty(tuple(quantities))


def read_world(tables: Mapping[str, Any] | None, nominal: Nominal, path: Path) -> World | None:
    """One world: its deviations, and the number and seed of its random numbers."""
    if tables is None:
        return None
    keys = {key: tables[key] for key in ("number", "seed") if key in tables}
    for key, value in keys.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise fault(
                path,
                "[world]",
                key,
                expected="a whole number of zero or more",
                came=show(value),
                cure=f"Write the {key} that the campaign gives.",
            )
    kinds = {key: value for key, value in tables.items() if key not in keys}
    for kind, table in _tables(kinds, "world", nominal, path):
        for name, value in table.items():
            place = path, f"[world.{kind}]", name
            _check_name(name, nominal[kind], place)
            shape = nominal[kind][name].value.shape
            entries = value if shape and isinstance(value, list) else [value]
            sound = all(is_number(entry) and np.isfinite(entry) for entry in entries)
            if not sound or np.shape(value) != shape:
                raise fault(
                    *place,
                    expected=f"{shape[0]} numbers" if shape else "a number",
                    came=show(value),
                    cure="Give deviations from the nominal values, in SI units.",
                )
    return World(kinds, **keys)


def _tables(
    tables: Mapping[str, Any], whole: str, nominal: Nominal, path: Path
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Kind and table of each kind; those of references have one for each output."""
    kinds = list(dict.fromkeys(kind.split(".")[0] for kind in nominal))
    for kind, table in tables.items():
        if kind not in kinds:
            raise unknown(path, f"[{whole}]", kind, "a kind of quantity of this robot", kind, kinds)
        if kind != "reference" or not isinstance(table, Mapping):
            yield kind, _mapping(table, path, f"[{whole}]", kind)
            continue
        outputs = [other.split(".", 1)[1] for other in nominal if "." in other]
        for name, part in table.items():
            if name not in outputs:
                raise unknown(path, f"[{whole}.{kind}]", name, "an output", name, outputs)
            yield f"{kind}.{name}", _mapping(part, path, f"[{whole}.{kind}]", name)


def _mapping(value: Any, path: Path, table: str, field: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    raise fault(
        path,
        table,
        field,
        expected="a table of quantities by name",
        came=show(value),
        cure=f"Write a table [{table[1:-1]}.{field}].",
    )


def _check_name(name: str, known: Mapping[str, Any], place: Place) -> None:
    if name not in known:
        path, table, _ = place
        raise unknown(path, table, name, "a name that has such a quantity", name, known)


def _quantities(
    kind: str, name: str, value: Any, nominal: Nominal, place: Place, skip: bool = False
) -> list[Quantity]:
    """Quantities of one entry: one, or one for each uncertain component."""
    values, unit = nominal[kind][name].value, nominal[kind][name].unit
    if not values.shape:
        found = _distribution(value, float(values), place, skip)
        return [] if found is None else [Quantity(kind, name, found, unit=unit)]
    size = values.shape[0]
    entries = [value] * size
    # A list of numbers is an interval for all components, one of entries has one for each.
    if isinstance(value, list) and not (len(value) == 2 and all(map(is_number, value))):
        if len(value) != size:
            raise fault(
                *place,
                expected=f"an interval or table for all, or a list with {size} of them",
                came=show(value),
                cure="Give one entry for each component, 0 for one that is certain.",
            )
        entries = value
    drawn = [
        None if is_number(entry) and entry == 0 else _distribution(entry, float(v), place, True)
        for entry, v in zip(entries, values, strict=True)
    ]
    if not skip and all(entry is None for entry in drawn):
        raise _no_nominal(place, "a component that is uncertain")
    return [
        Quantity(kind, name, entry, k, size, unit)
        for k, entry in enumerate(drawn)
        if entry is not None
    ]


def _distribution(value: Any, nominal: float, place: Place, skip: bool) -> Distribution | None:
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
    field = next(iter(table), "") if isinstance(table, Mapping) else ""
    numbers = table[field] if field in WAYS else None
    sound = (
        isinstance(numbers, list)
        and len(table) == 1
        and all(is_number(number) and np.isfinite(number) for number in numbers)
        and WAYS[field][0] in (None, len(numbers))
    )
    if not sound:
        raise fault(
            *place,
            expected=FORMS,
            came=show(value) if not isinstance(value, Mapping) else f"a table {dict(value)}",
            cure="Write for example [-0.1, 0.1], or { relative = [-0.1, 0.1] }.",
        )
    if share and (nominal == 0.0 or not np.isfinite(nominal)):
        if skip and nominal == 0.0:
            return None
        came = "zero" if nominal == 0.0 else "a quantity without one"
        raise _no_nominal(place, "a nominal value other than zero for a relative deviation", came)
    if np.isinf(nominal):
        raise fault(
            *place,
            expected="a finite nominal value",
            came="no limit",
            cure=f"Give {place[1].replace('uncertainty', 'imperfections')} {place[2]}.",
        )
    path, label, name = place
    with located(path, label, name):
        found = WAYS[field][1](*(float(number) for number in numbers or ()))
        return found.scaled(nominal) if share else found


def _no_nominal(place: Place, expected: str, came: str = "zero") -> DescriptionError:
    return fault(*place, expected=expected, came=came, cure="Give an interval in SI units instead.")
