"""Torques as a user may give them: a function of time or state, numbers, or none."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from concur.codegen import finite_floats
from concur.errors import SimulationError
from concur.reduction import ReducedModel

Torque: TypeAlias = Callable[..., ArrayLike] | ArrayLike | None
"""u(t), u(t, q, s), constant controls, or none for a free motion."""


class Drive:
    """Controls u(t), u(t, q, s), constant or none, checked at every call.

    `needs_state` is whether they depend on the state.
    """

    def __init__(self, model: ReducedModel, torque: Torque, where: str) -> None:
        self._names, self._where = model.control_names, f"{where}, `torque`"
        self._size = model.nu
        self.needs_state = False
        if callable(torque):
            self._function: Callable[..., Any] | None = torque
            self.needs_state = _takes_state(torque, self._where)
        else:
            self._function = None
            value = np.zeros(model.nu) if torque is None else torque
            self._constant = self._checked(value, self._where)

    def __call__(self, t: float, q: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Controls at an instant, checked, shape (nu,), N and N m."""
        if self._function is None:
            return self._constant
        # Copies: a function that keeps or changes what it is given must not reach the state.
        value = self._function(t, q.copy(), s.copy()) if self.needs_state else self._function(t)
        return self._checked(value, f"{self._where}, t = {t:.6g} s")

    def _checked(self, value: Any, where: str) -> np.ndarray:
        return finite_floats(value, f"{where} ({', '.join(self._names)})", (self._size,))


def _takes_state(function: Callable[..., Any], where: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some compiled functions have no signature
        return False
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p for p in positional if p.default is p.empty]
    rest = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(needed) == 3 or (rest and not needed):
        return True
    if len(needed) == 1 or (not needed and positional):
        return False
    raise SimulationError(
        where,
        expected="a function u(t) or u(t, q, s)",
        came=f"one that needs {len(needed)} arguments",
        cure="Let it take the time, or time, configuration and shape velocities.",
    )
