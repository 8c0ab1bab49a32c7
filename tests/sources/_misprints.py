"""Printed forms that fail, and corrected forms that hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tests.oracles import assert_close, each

Values = tuple[object, object, object] | tuple[object, object, object, float]
"""Truth by an independent route, printed form, corrected form, and the tolerance if not 1e-9."""


def check_misprints(module: Mapping[str, Any]) -> None:
    """Check all functions of a module that are named ``misprint_...``."""
    found = {name: f for name, f in module.items() if name.startswith("misprint_")}

    def check(name: str) -> None:
        function: Callable[[], Values] = found[name]
        truth, printed, corrected, *rest = function()
        tolerance = rest[0] if rest else 1e-9
        scale = float(np.abs(np.asarray(truth, dtype=float)).max())
        assert_close(corrected, truth, tolerance, name="corrected form")
        error = np.abs(np.asarray(printed, dtype=float) - np.asarray(truth, dtype=float)).max()
        assert error > max(1e-3, 10 * tolerance) * max(1.0, scale), f"printed form holds: {error}"

    each(list(found), check)
