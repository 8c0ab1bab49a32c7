"""How a closed loop or a motion is integrated, and what is checked before it starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import casadi as ca
import numpy as np
from numpy.typing import ArrayLike

from concur._progress import busy
from concur.codegen import (
    as_floats,
    find_compiler,
    fingerprint,
    finite_floats,
    interpreted_on_purpose,
    recalled,
)
from concur.codegen import compiled as compile_all
from concur.errors import SimulationError, shown
from concur.reduction import ReducedModel
from concur.robot import unknown_name

FASTEST = 1e6
"""Velocity, m/s or rad/s, beyond which a run has diverged."""


FASTEST_START = 1e4
"""Shape velocity, m/s or rad/s, at which no robot starts: beyond it a step leaps whole turns."""

SHORTEST_STEP = 1e-8
"""Step of integration, s, below which rounding of the time itself shows after a run's 1e6 s."""

MOST_STEPS = 5_000_000
"""Steps of a run: their record, about 1 kB each, fills the memory of a usual machine."""

LONGEST_RUN = 1e6
"""Length of a run, s."""


def grid(where: str, duration: float, dt: float, hold: float | None) -> tuple[int, int | None]:
    """Count the steps of a run and of a control period; both must be whole numbers of steps."""
    check_time(where, "duration", duration)
    check_time(where, "dt", dt)
    if duration / dt > MOST_STEPS:
        raise SimulationError(
            f"{where}, `duration`",
            expected=f"at most {MOST_STEPS} steps of dt = {float(dt):g} s",
            came=f"{float(duration):g} s",
            cure="Shorten the run, or take longer steps.",
        )
    steps = round(float(duration) / float(dt))
    per_hold = None if hold is None else round(float(hold) / float(dt))
    for name, whole, count in (("duration", duration, steps), ("control_period", hold, per_hold)):
        if whole is None or count is None:
            continue
        if count < 1 or abs(count * dt - whole) > 1e-9 * max(1.0, whole):
            raise SimulationError(
                f"{where}, `{name}`",
                expected=f"a whole number of steps of dt = {dt} s",
                came=f"{whole} s",
                cure="Change one of the two.",
            )
    return steps, per_hold


def check_time(where: str, name: str, value: float | None) -> None:
    """Refuse what is not a time above zero and within the range of times, s."""
    number = as_floats(np.nan if value is None else value, f"{where}, `{name}`")
    if number.shape != () or not SHORTEST_STEP <= number <= LONGEST_RUN:
        raise SimulationError(
            f"{where}, `{name}`",
            expected=f"a time above zero, from {SHORTEST_STEP:g} to {LONGEST_RUN:g} s",
            came=shown(value),
            cure="Give seconds.",
        )


def check_compiled(where: str, compiled: object) -> None:
    """Refuse what is not True, False or None."""
    if not isinstance(compiled, (bool, np.bool_, type(None))):
        raise SimulationError(
            f"{where}, `compiled`",
            expected="True, False or None",
            came=f"{compiled!r:.40}",
            cure="Leave it out: long runs are compiled where there is a compiler.",
        )


def shape_start(where: str, model: ReducedModel, s0: ArrayLike) -> np.ndarray:
    """Check the shape velocities at the start."""
    s = finite_floats(s0, f"{where}, `s0` ({', '.join(model.shape_names)})", (model.ns,))
    if (fast := np.abs(s) > FASTEST_START).any():
        raise SimulationError(
            f"{where}, `s0`",
            expected=f"shape velocities up to {FASTEST_START:g} m/s or rad/s",
            came=f"{s[fast][0]:g} for `{model.shape_names[int(fast.argmax())]}`",
            cure="Give SI units.",
        )
    return s


def check_tolerance(where: str, name: str, value: float, least: float) -> None:
    """Check a tolerance of an adaptive integrator: finite, above zero, not below the least."""
    number = as_floats(value, f"{where}, `{name}`")
    if number.shape != () or not (np.isfinite(number) and number > 0.0 and number >= least):
        raise SimulationError(
            f"{where}, `{name}`",
            expected=f"a tolerance above {least:.2g}" if least else "a tolerance above zero",
            came=shown(value),
            cure="Leave it out, or give about 1e-10.",
        )


FIXED_STEP = ("rk4", "rkmk4")
ADAPTIVE = {"dop853": "DOP853", "rk45": "RK45", "radau": "Radau", "lsoda": "LSODA"}
METHODS = (*FIXED_STEP, *ADAPTIVE)


@dataclass(frozen=True)
class Integrator:
    """How `simulate` integrates a closed loop, and `forced_motion` a motion.

    Parameters
    ----------
    method : str
        "rk4", "rkmk4" (both with fixed steps) or, adaptive within each step of the record,
        "dop853", "rk45", "radau", "lsoda".
    dt : float
        Step of integration and recording, s.
    control_period : float, optional
        Period of a sampled law whose torque is held in between, s, a whole number of steps;
        without it the law acts continuously.
    compiled : bool, optional
        Whether to run machine code, which is made once and kept, or the interpreter, which is
        ready at once and five to fifteen times slower. Default: machine code from 10000 steps
        on, where a C compiler is. Length alone decides, since the two differ by rounding, and
        with torque limits by the tolerance of their quadratic program, about 1e-8.
    rtol, atol : float, optional
        Relative and absolute (m, rad, m/s, rad/s) tolerance of an adaptive method within a step;
        default 1e-10 and 1e-12, of `forced_motion` 1e-12 and 1e-13.
    progress : bool or callable
        Show a progress bar, or call with the fraction done.

    Raises
    ------
    UnknownNameError
        If there is no such method.
    SimulationError
        If a time or a tolerance is not above zero or out of range, or `compiled` is not a bool.

    Examples
    --------
    >>> from concur.simulation import Integrator
    >>> Integrator("rkmk4", dt=5e-3, control_period=0.01).method
    'rkmk4'
    """

    method: str = "rk4"
    dt: float = 1e-3
    control_period: float | None = None
    compiled: bool | None = None
    rtol: float | None = None
    atol: float | None = None
    progress: bool | Callable[[float], Any] = False

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise unknown_name("integrator, `method`", "method", self.method, METHODS)
        check_time("integrator", "dt", self.dt)
        if self.control_period is not None:
            check_time("integrator", "control_period", self.control_period)
        check_compiled("integrator", self.compiled)
        for name, least in (("rtol", 100 * np.finfo(float).eps), ("atol", 0.0)):
            if getattr(self, name) is not None:
                check_tolerance("integrator", name, getattr(self, name), float(least))


LONG = 10_000
"""Steps from which on a run is compiled by default."""


def is_compiled(where: str, compiled: bool | None, steps: int) -> bool:
    """Decide whether a run is compiled, by its length alone: the same run is the same each time.

    Compiled code and the interpreter round differently, so the contents of a cache must not matter.
    """
    if compiled is None:
        return steps >= LONG and find_compiler() is not None
    if compiled and find_compiler() is None:
        raise _no_compiler(where)
    return bool(compiled)


def machine_code(
    where: str,
    loop: Integrator,
    steps: int,
    value: Any,
    graphs: Callable[[], list[ca.Function]],
) -> tuple[ca.Function, ...] | None:
    """Compile functions, or take them from the cache without building their graphs.

    `value` is all that the graphs are made from. None for a run that is interpreted. Without a
    compiler that works: an error if machine code is demanded, else None and one warning.
    """
    if not is_compiled(where, loop.compiled, steps):
        return None
    key = fingerprint("simulation", value)
    made = recalled(key)
    if made is None:
        with busy(loop.progress, f"compiling the {where}"):
            made = compile_all(graphs(), key)
    if made is None and loop.compiled:
        raise _no_compiler(where)
    return None if made is None else made.functions


def _no_compiler(where: str) -> SimulationError:
    """Build the error for machine code that was asked for and cannot be made."""
    found = find_compiler()
    came = "no command that answers as one"
    if found is not None:
        came = f"`{' '.join(found.command)}`, which does not compile it"
    elif interpreted_on_purpose():
        came = "CONCUR_CC=none, which asks for the interpreter"
    return SimulationError(
        f"{where}, `compiled`",
        expected="a C compiler that works",
        came=came,
        cure="Install gcc or clang, let CONCUR_CC name one, or leave `compiled` out.",
    )
