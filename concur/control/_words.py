"""Parameters of laws in words, for tables and reports that put laws side by side."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
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
        Names and values; of several equal numbers one.

    Examples
    --------
    >>> import concur as cc
    >>> model = cc.reduce(cc.robots.rover_arm())
    >>> base = cc.Output("base", "chassis", "R2", point=(0.25, 0, 0))
    >>> cc.control.law_parameters(cc.Servo(model, [base], 4.0, [4.0, 5.0], torque_limits=9.0))
    'stiffness 4; damping 4, 5; torque_limits 9'
    """
    found = dict(_stated(law))
    if isinstance(law, OwnLaw):  # whose gains of outputs are none
        of_outputs = {name: x for name, x in found.items() if name not in FIRST}
        found = {**law.given, **of_outputs}
    ordered = [name for name in FIRST if name in found]
    ordered += [name for name in found if name not in FIRST]
    return "; ".join(_in_words(name, found[name]) for name in ordered)


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


def _in_words(name: str, value: Any) -> str:
    if is_dataclass(value):
        inner = ", ".join(_in_words(*one) for one in _stated(value))
        return f"{name} ({inner})" if inner else name
    if value is True:
        return name
    if isinstance(value, Mapping):
        return f"{name} {', '.join(_in_words(str(key), one) for key, one in value.items())}"
    return f"{name} {_number(name, value)}"


def _number(name: str, value: Any) -> str:
    """Numbers as a list, those of a diagonal matrix and of symmetric limits by one each."""
    try:
        values = np.asarray(value, dtype=float)
    except (TypeError, ValueError):  # texts, lists of lists, and what own laws take
        return shown(value)
    if name == "torque_limits" and values.ndim == 2:
        pairs = [f"{high:g}" if low == -high else f"[{low:g}, {high:g}]" for low, high in values]
        return ", ".join(pairs if len({*pairs}) > 1 else pairs[:1])
    if values.ndim == 2 and np.array_equal(values, np.diag(np.diag(values))):
        values = np.diag(values)
    if values.ndim > 1:
        return shown(value)
    each = [f"{one:g}" for one in values.ravel()]
    return ", ".join(each if len({*each}) > 1 else each[:1])
