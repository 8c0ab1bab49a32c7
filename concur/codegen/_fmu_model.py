"""What a unit for co-simulation computes, apart from how FMI wants it written."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import casadi as ca

from concur.codegen._exported import Signal
from concur.errors import ConcurError

CAUSALITIES = ("input", "parameter", "output")
STEP_SIZE = "step_size"
"""Parameter that every unit with a state has: longest step of its integration, s."""


@dataclass(frozen=True)
class FmuVariable:
    """A variable of a unit: a number, or several in a row.

    Parameters
    ----------
    name : str
        Its name.
    causality : str
        "input", "parameter" (fixed once the initialization is over) or "output".
    description : str
        What it is, in which axes.
    elements : tuple of str
        Name of each number; empty for a single number that has no other name.
    units : tuple of str
        Unit of each number, "1" for none.
    start : tuple of float
        Values at the start, for inputs and parameters.
    integer : bool
        Whether it is an integer, for outputs.
    """

    name: str
    causality: str
    description: str
    elements: tuple[str, ...] = ()
    units: tuple[str, ...] = ("1",)
    start: tuple[float, ...] = ()
    integer: bool = False

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
            Names, units and presets; zeros where nothing is preset.
        causality : str
            "input", "parameter" or "output".
        name : str, optional
            Another name than the signal's.

        Returns
        -------
        FmuVariable
            The variable.
        """
        units = (entry.unit.replace(" ", ".").replace("^", "") for entry in signal.entries)
        start = () if causality == "output" else signal.preset or (0.0,) * signal.size
        return cls(
            name or signal.name,
            causality,
            f"{signal.meaning[:1].upper()}{signal.meaning[1:]}.",
            () if signal.scalar else tuple(entry.name for entry in signal.entries),
            tuple(unit or "1" for unit in units),
            tuple(map(float, start)),
        )

    @property
    def size(self) -> int:
        """How many numbers it has."""
        return len(self.units)


@dataclass(frozen=True)
class FmuModel:
    """What a unit for co-simulation computes.

    Parameters
    ----------
    name : str
        Name; the unit's identifier in C is made from it.
    description : str
        One sentence.
    variables : sequence of FmuVariable
        Inputs, parameters and outputs; the functions take and give them by these names.
    outputs : casadi.Function
        The outputs from inputs, or from the state.
    state : tuple of str
        Outputs that are the state; empty for a unit without one.
    initial : casadi.Function, optional
        The state from the parameters, and `sound`: whether these can be.
    rates : casadi.Function, optional
        Rate of each part of the state from state and inputs.
    settle : casadi.Function, optional
        The state after a step, brought back to where it has to lie.
    unsound : str
        What is wrong with parameters that are not `sound`.
    messages : tuple of str
        For a unit with an output `status`: what each value of it says.
    memory : int
        How many numbers it keeps from step to step: `before`, the last input of `outputs`, is
        `after`, its last result, of the step before; zeros at the start.
    step_size : float
        A step that suits it, s: the one of the integration, if it has a state.
    """

    name: str
    description: str
    variables: Sequence[FmuVariable]
    outputs: ca.Function
    state: tuple[str, ...] = ()
    initial: ca.Function | None = None
    rates: ca.Function | None = None
    settle: ca.Function | None = None
    unsound: str = ""
    messages: tuple[str, ...] = ()
    memory: int = 0
    step_size: float = 1e-3

    @property
    def identifier(self) -> str:
        """The name as C can have it."""
        # Names of files, and those in C, have no room for more.
        name = re.sub(r"\W", "_", self.name, flags=re.ASCII)[:100]
        return name if name[:1].isalpha() else f"unit_{name}"

    @property
    def all_variables(self) -> tuple[FmuVariable, ...]:
        """The variables, with the step of the integration behind the parameters."""
        own = list(self.variables)
        if self.state:
            step = FmuVariable(
                STEP_SIZE,
                "parameter",
                "Longest step of the Runge-Kutta method of fourth order; a longer step of the "
                "communication is cut into equal parts.",
                units=("s",),
                start=(self.step_size,),
            )
            own.append(step)
        return tuple(sorted(own, key=lambda variable: CAUSALITIES.index(variable.causality)))

    def functions(self) -> dict[str, ca.Function]:
        """The functions of the unit, by what they are for.

        Returns
        -------
        dict of str to casadi.Function
            Those that there are.
        """
        named = {
            "outputs": self.outputs,
            "initial": self.initial,
            "rates": self.rates,
            "settle": self.settle,
        }
        return {name: function for name, function in named.items() if function is not None}
