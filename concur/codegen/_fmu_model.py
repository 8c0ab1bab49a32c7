"""Model of an FMU for co-simulation, independent of the version of FMI."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from concur.codegen._exported import Signal
from concur.errors import ConcurError

CAUSALITIES = ("input", "parameter", "output")
STEP_SIZE = "step_size"
"""Parameter of every FMU with a state: longest step of its integration, s."""

LONGEST_STEP = "longest_step"
"""Parameter of every FMU with a `period`: longest communication step, s."""


@dataclass(frozen=True)
class FmuVariable:
    """A variable of an FMU: a number or a vector.

    Parameters
    ----------
    name : str
        Name of the variable.
    causality : str
        "input", "parameter" (fixed once the initialization is over) or "output".
    description : str
        Meaning, and axes.
    elements : tuple of str
        Name of each number; empty for a single number without another name.
    units : tuple of str
        Unit of each number, "1" if dimensionless.
    start : tuple of float
        Values at the start, for inputs and parameters.
    integer : bool
        Whether it is an integer, for outputs.
    largest : tuple of float
        Largest value of each number; empty without bounds.
    smallest : tuple of float
        Smallest value of each number, with `largest`.
    """

    name: str
    causality: str
    description: str
    elements: tuple[str, ...] = ()
    units: tuple[str, ...] = ("1",)
    start: tuple[float, ...] = ()
    integer: bool = False
    largest: tuple[float, ...] = ()
    smallest: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        counts = {len(self.elements) or 1, len(self.units)}
        if self.causality != "output":
            counts.add(len(self.start))
        if self.causality not in CAUSALITIES or len(counts) != 1:
            raise ConcurError(
                f"variable `{self.name}` of a unit for co-simulation",
                expected=f"one of {', '.join(CAUSALITIES)}, with a unit and a start per element",
                came=f"{self.causality}, {sorted(counts)} entries",
                cure="Give `elements`, `units` and `start` the same length.",
            )

    @classmethod
    def of(cls, signal: Signal, causality: str, name: str | None = None) -> FmuVariable:
        """Turn a signal into a variable.

        Parameters
        ----------
        signal : Signal
            Signal with names, units and presets.
        causality : str
            "input", "parameter" or "output".
        name : str, optional
            Name of the variable; default: that of the signal.

        Returns
        -------
        FmuVariable
            The variable.
        """
        units = (entry.unit.replace(" ", ".").replace("^", "") for entry in signal.entries)
        # An FMU evaluates the function alone, without guards before it.
        largest = () if signal.guard else signal.largest
        start = () if causality == "output" else signal.preset or (0.0,) * signal.size
        return cls(
            name or signal.name,
            causality,
            f"{signal.meaning[:1].upper()}{signal.meaning[1:]}.",
            () if signal.scalar else tuple(entry.name for entry in signal.entries),
            tuple(unit or "1" for unit in units),
            tuple(map(float, start)),
            largest=largest,
            smallest=tuple(-bound for bound in largest),
        )

    @property
    def size(self) -> int:
        """Number of entries."""
        return len(self.units)


@dataclass(frozen=True)
class FmuModel:
    """Model of an FMU for co-simulation.

    Parameters
    ----------
    name : str
        Name, from which the identifier in C is derived.
    description : str
        One sentence.
    variables : sequence of FmuVariable
        Inputs, parameters and outputs; the functions use the same names.
    outputs : casadi.Function
        Function of the inputs, or of the state, that returns the outputs.
    state : tuple of str
        Outputs that form the state; empty without a state.
    initial : casadi.Function, optional
        Function of the parameters that returns the state and `sound`: whether the parameters are
        valid.
    move : casadi.Function, optional
        Function of the state, the inputs and the length "h" of a step, s, that returns the state
        after it.
    unsound : str
        Error message for invalid parameters.
    messages : tuple of str
        Message of each value of the output `status`, if there is one.
    memory : int
        Size of the memory from step to step. The input `before`, the last of `outputs`, is
        `after`, its last result, of the previous step; zeros at the start.
    remembered : str
        Output that shows the last numbers of the memory, which are the state of a law; empty
        without one.
    longest_step : float
        Longest communication step, s, of a function with an input `period`, which is the length of
        the step; 0 without one.
    step_size : float
        Default step, s: that of the integration, if there is a state.
    """

    name: str
    description: str
    variables: Sequence[FmuVariable]
    outputs: ca.Function
    state: tuple[str, ...] = ()
    initial: ca.Function | None = None
    move: ca.Function | None = None
    unsound: str = ""
    messages: tuple[str, ...] = ()
    memory: int = 0
    remembered: str = ""
    longest_step: float = 0.0
    step_size: float = 1e-3

    @property
    def identifier(self) -> str:
        """The name as an identifier in C."""
        # Limit of the length for file names and C identifiers.
        name = re.sub(r"\W", "_", self.name, flags=re.ASCII)[:100]
        return name if name[:1].isalpha() else f"unit_{name}"

    @property
    def all_variables(self) -> tuple[FmuVariable, ...]:
        """The variables, with the steps after the parameters."""
        own = list(self.variables)
        if self.longest_step:
            longest = FmuVariable(
                LONGEST_STEP,
                "parameter",
                "Longest communication step, by which the state of the law is advanced; a longer "
                "one is rejected as bad input.",
                units=("s",),
                start=(self.longest_step,),
                largest=(self.longest_step,),
                smallest=(0.0,),
            )
            own.append(longest)
        if self.state:
            step = FmuVariable(
                STEP_SIZE,
                "parameter",
                "Longest step of the fourth-order Runge-Kutta method; a longer communication step "
                "is divided into equal parts.",
                units=("s",),
                start=(self.step_size,),
            )
            own.append(step)
        return tuple(sorted(own, key=lambda variable: CAUSALITIES.index(variable.causality)))

    def functions(self) -> dict[str, ca.Function]:
        """The functions of the FMU, by purpose.

        Returns
        -------
        dict of str to casadi.Function
            The functions that exist.
        """
        named = {
            "outputs": self.outputs,
            "initial": self.initial,
            "move": self.move,
        }
        return {name: function for name, function in named.items() if function is not None}
