"""How a closed loop is integrated."""

from __future__ import annotations

from dataclasses import dataclass

from concur.robot import unknown_name
from concur.simulation._start import check_compiled, check_time

FIXED_STEP = ("rk4", "rkmk4")
ADAPTIVE = {"dop853": "DOP853", "rk45": "RK45", "radau": "Radau", "lsoda": "LSODA"}
METHODS = (*FIXED_STEP, *ADAPTIVE)


@dataclass(frozen=True)
class Integrator:
    """How `simulate` integrates a closed loop.

    Parameters
    ----------
    method : str
        "rk4", "rkmk4" (both with fixed steps) or, adaptive within each step of the record
        and to a relative tolerance of 1e-10, "dop853", "rk45", "radau", "lsoda".
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

    Raises
    ------
    UnknownNameError
        If there is no such method.
    SimulationError
        If a time is not above zero or out of range, or `compiled` is not a bool.

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

    def __post_init__(self) -> None:
        if not isinstance(self.method, str) or self.method not in METHODS:
            raise unknown_name("integrator, `method`", "method", self.method, METHODS)
        check_time("integrator", "dt", self.dt)
        if self.control_period is not None:
            check_time("integrator", "control_period", self.control_period)
        check_compiled("integrator", self.compiled)
