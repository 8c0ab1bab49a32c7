"""Numbers as C."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


def number(value: float) -> str:
    """A number, to the last bit; integers stay integers."""
    if isinstance(value, int):
        return str(value)
    if math.isinf(value):
        return "-INFINITY" if value < 0 else "INFINITY"
    return "NAN" if math.isnan(value) else repr(float(value))


def array(name: str, values: Iterable[Any], whole: bool = False) -> str:
    """Definition of an array, with a zero if it has no entry."""
    items = [str(int(v)) if whole else number(float(v)) for v in values]
    return f"{name}[{max(1, len(items))}] = {{{', '.join(items or ['0'])}}};"
