"""Parameters of laws in words, for tables and reports that put laws side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from itertools import groupby
from typing import Any

import numpy as np

from concur.control._own_law import OwnLaw
from concur.control._tracking_law import TrackingLaw
from concur.errors import shown

FIRST = ("stiffness", "damping", "integral", "rate")
"""Gains, which come first."""

NO_PARAMETERS = ("model", "outputs", "inertia", "own", "given")
"""Fields of laws that are not their parameters."""


def law_parameters(law: TrackingLaw) -> str:
    """Gains of a law, and those of its other parameters that differ from their defaults.

    Parameters
    ----------
    law : TrackingLaw
        The law.

    Returns
    -------
    str
        Names and values. Of equal numbers there is one; others stand behind the names of their
        outputs, with coordinates where these differ, or of their controls.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> cc.control.law_parameters(cc.Servo(model, [base], 4.0, [4.0, 5.0], torque_limits=9.0))
    'stiffness 4; damping base[x] 4, base[y] 5; torque_limits 9'
    """
    names, found = _names(law), dict(_stated(law))
    if isinstance(law, OwnLaw):  # whose gains of outputs are none
        of_outputs = {name: x for name, x in found.items() if name not in FIRST}
        found = {**law.given, **of_outputs}
    ordered = [name for name in FIRST if name in found]
    ordered += [name for name in found if name not in FIRST]
    return "; ".join(_in_words(name, found[name], names.get(name, ())) for name in ordered)


def _names(law: TrackingLaw) -> dict[str, list[tuple[str, str]]]:
    """Output and coordinate, or control, of each number of a parameter."""
    outputs = [(output.name, "") for output in law.outputs]
    coordinates = [
        (output.name, name) for output in law.outputs for name in output.coordinate_names
    ]
    controls = [(name, "") for name in law.model.control_names]
    return {
        **dict.fromkeys(("stiffness", "damping", "integral"), coordinates),
        "rate": outputs,
        **dict.fromkeys(("torque_limits", "torque_weights"), controls),
    }


def _stated(part: Any) -> Iterator[tuple[str, Any]]:
    """Parameters of a data class that are given, and are not the default."""
    for entry in fields(part):
        value = getattr(part, entry.name)
        if not entry.init or entry.name in NO_PARAMETERS or value is None:
            continue
        default = entry.default
        alike = default is not MISSING and not isinstance(value, np.ndarray)
        if not (alike and type(value) is type(default) and value == default):
            yield entry.name, value


def _in_words(name: str, value: Any, names: Sequence[tuple[str, str]] = ()) -> str:
    if is_dataclass(value):
        inner = ", ".join(_in_words(*one) for one in _stated(value))
        return f"{name} ({inner})" if inner else name
    if value is True:
        return name
    if isinstance(value, Mapping):
        return f"{name} {', '.join(_in_words(str(key), one) for key, one in value.items())}"
    return f"{name} {_numbers(name, value, names)}"


def _numbers(name: str, value: Any, names: Sequence[tuple[str, str]]) -> str:
    """Numbers as a list, those of a diagonal matrix and of symmetric limits by one each."""
    try:
        values = np.asarray(value, dtype=float)
    except (TypeError, ValueError):  # texts, lists of lists, and what own laws take
        return shown(value)
    if name == "torque_limits" and values.ndim == 2:
        each = [f"{high:g}" if low == -high else f"[{low:g}, {high:g}]" for low, high in values]
    else:
        if values.ndim == 2 and np.array_equal(values, np.diag(np.diag(values))):
            values = np.diag(values)
        if values.ndim > 1:
            return shown(value)
        each = [f"{one:g}" for one in values.ravel()]
    if len({*each}) == 1:
        return each[0]
    return ", ".join(_named(each, names) if len(each) == len(names) else each)


def _named(each: list[str], names: Sequence[tuple[str, str]]) -> Iterator[str]:
    """Numbers behind their names; neighbours that are equal together."""
    for owner, own in groupby(zip(names, each, strict=True), lambda pair: pair[0][0]):
        parts = [
            (number, [coordinate for (_, coordinate), _ in part])
            for number, part in groupby(own, lambda pair: pair[1])
        ]
        for number, coordinates in parts:
            places = f"[{','.join(coordinates)}]" if len(parts) > 1 else ""
            yield f"{owner}{places} {number}"
