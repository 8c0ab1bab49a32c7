"""Models of co-simulation units (FMUs), and their C sources and descriptions in FMI 2.0 and 3.0."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import casadi as ca
from markupsafe import Markup

from concur.codegen import c_text
from concur.export._signals import Entry, Signal
from concur.export._templates import templates

ROLES = ("input", "parameter", "output")
"""Order of the variables."""

TOKEN = "@TOKEN@"
"""Placeholder of the hash of the contents."""

_TIME = Signal("time", "independent", "time", (Entry("", "s"),), scalar=True)
_STEP_SIZE = Signal(
    "step_size",
    "parameter",
    "longest step of the fourth-order Runge-Kutta method; a longer communication step is divided "
    "into equal parts",
    (Entry("", "s"),),
    scalar=True,
)
_LONGEST_STEP = Signal(
    "longest_step",
    "parameter",
    "longest communication step, by which the state of the law is advanced; a longer one is "
    "rejected as bad input",
    (Entry("", "s"),),
    positive=True,
    scalar=True,
)
_FACTOR = re.compile(r"(kg|rad|m|s|N|J)(-?\d*)")
_BASE = {
    "kg": {"kg": 1},
    "m": {"m": 1},
    "s": {"s": 1},
    "rad": {"rad": 1},
    "N": {"kg": 1, "m": 1, "s": -2},
    "J": {"kg": 1, "m": 2, "s": -2},
}


@dataclass(frozen=True)
class FmuModel:
    """Model of an FMU for co-simulation, independent of the version of FMI.

    Parameters
    ----------
    name : str
        Name, from which the identifier in C is derived.
    description : str
        One sentence.
    signals : sequence of Signal
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
    signals: Sequence[Signal]
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
    def all_signals(self) -> list[Signal]:
        """The signals, with the steps after the parameters."""
        own = list(self.signals)
        if self.longest_step:
            longest = (self.longest_step,)
            own.append(replace(_LONGEST_STEP, start=longest, largest=longest))
        if self.state:
            own.append(replace(_STEP_SIZE, start=(self.step_size,)))
        return sorted(own, key=lambda signal: ROLES.index(signal.role))

    def size(self, *names: str) -> int:
        """Count the entries of some signals.

        Parameters
        ----------
        *names : str
            Names of the signals.

        Returns
        -------
        int
            Their number, of all signals together.
        """
        return sum(signal.size for signal in self.signals if signal.name in names)

    @cached_property
    def functions(self) -> dict[str, ca.Function]:
        """The functions that exist, by purpose."""
        named = {"outputs": self.outputs, "initial": self.initial, "move": self.move}
        return {name: function for name, function in named.items() if function is not None}


@dataclass(frozen=True)
class _Variable:
    """A variable of FMI: its signal, and its place among the numbers of an instance."""

    signal: Signal
    offset: int = 0

    @property
    def units(self) -> list[str]:
        return [unit_name(entry.unit) for entry in self.signal.entries]

    @property
    def description(self) -> str:
        told = sentence(self.signal.meaning)
        if self.signal.scalar:
            return told
        alike = len(set(self.units)) == 1
        named = (
            entry.name if alike or unit == "1" else f"{entry.name} ({unit})"
            for entry, unit in zip(self.signal.entries, self.units, strict=True)
        )
        return f"{told} Entries: {', '.join(named)}."

    @property
    def variability(self) -> str:
        varying = "fixed" if self.signal.role == "parameter" else "continuous"
        return "discrete" if self.signal.integer else varying


def fmu_files(model: FmuModel, version: str) -> dict[str, str]:
    """Texts of an FMU, by their path in its archive; those that end with `.c` must be compiled."""
    texts = {name: c_text(function) for name, function in model.functions.items()}
    offsets, values = _offsets(model)
    variables = _variables(model, offsets, version)
    known: dict[str, list[int]] = {role: [] for role in (*ROLES, _TIME.role)}
    for reference, variable in enumerate(variables):
        if variable.signal.name != _STEP_SIZE.name:
            known[variable.signal.role].append(reference)
    inputs, parameters = known["input"], known["parameter"]
    units = {unit for variable in variables for unit in variable.units}
    interface = f"fmi{version[0]}.c"
    given = {
        "model": model,
        "version": version,
        "token": TOKEN,
        "variables": variables,
        "units": {name: base_units(name) for name in sorted(units - {"1"})},
        # What the outputs depend on: in operation, and at the start.
        "dependencies": ([], parameters) if model.state else (inputs, inputs),
        "sources": sorted([interface, *(f"{name}.c" for name in texts)]),
        "texts": texts,
        "offsets": offsets,
        "states": model.size(*model.state),
        "start": values,
        "calls": {name: _call(model, name, offsets) for name in texts},
    }
    environment = templates("fmu", escaped=True)
    environment.filters |= {
        "sentence": sentence,
        "unit": unit_name,
        "quoted": lambda text: Markup(json.dumps(text)),
    }
    files = {
        "modelDescription.xml": "description.xml.j2",
        "documentation/index.html": "page.html.j2",
        "sources/model.h": "model.h.j2",
    }
    if version == "3.0":
        files["sources/buildDescription.xml"] = "build.xml.j2"
    written = {path: environment.get_template(name).render(given) for path, name in files.items()}
    for name in (interface, "calls.h", "unit.h"):
        source = environment.loader.get_source(environment, name)  # type: ignore[union-attr]
        written[f"sources/{name}"] = source[0]
    for name, text in texts.items():
        signature = (
            f"int {model.identifier}_{name}"
            "(const double **arg, double **res, int *iw, double *w, double *more)"
        )
        written[f"sources/{name}.c"] = (
            f"/* {model.identifier}: {name}. */\n\n#include <math.h>\n\ntypedef double real_t;\n\n"
            f"{signature};\n\n{text.text}\n"
            f"{signature} {{\n  return law(arg, res, iw, w, more);\n}}\n"
        )
    return written


def _offsets(model: FmuModel) -> tuple[dict[str, int], list[float]]:
    """Place of each signal among the numbers of an instance, and these at the start."""
    offsets, values = dict[str, int](), list[float]()
    signals = [signal for signal in model.all_signals if signal.name != model.remembered]
    # The state comes first among the outputs and is contiguous.
    for signal in sorted(signals, key=lambda s: s.role == "output" and s.name not in model.state):
        offsets[signal.name] = len(values)
        values += signal.start
    if model.memory:
        offsets |= {"before": len(values), "after": len(values) + model.memory}
        if model.remembered:
            offsets[model.remembered] = offsets["after"] - model.size(model.remembered)
        values += [0.0] * (3 * model.memory)
    if model.longest_step:
        offsets["period"] = len(values)
        values.append(0.0)
    return offsets, values


def _variables(model: FmuModel, offsets: Mapping[str, int], version: str) -> list[_Variable]:
    """Variables in the order of their references; the first is the time."""
    found = [_Variable(_TIME)]
    for signal in model.all_signals:
        whole = version == "3.0" or signal.scalar
        parts = [signal] if whole else [signal.entry(k) for k in range(signal.size)]
        found += [_Variable(part, offsets[signal.name] + k) for k, part in enumerate(parts)]
    return found


def _call(model: FmuModel, name: str, offsets: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """Pointers in C through which a graph reads and writes the numbers in place."""
    function, moves = model.functions[name], name == "move"

    def place(signal: str, state: str) -> str:
        if moves and signal in model.state:
            return f"{state} + {offsets[signal] - offsets[model.state[0]]}"
        return f"x + {offsets[signal]}"

    return (
        ["&h" if taken == "h" else place(taken, "state") for taken in function.name_in()],
        ["&sound" if given == "sound" else place(given, "moved") for given in function.name_out()],
    )


def sentence(text: str) -> str:
    """A text as a sentence."""
    return f"{text[:1].upper()}{text[1:]}."


def unit_name(unit: str) -> str:
    """A unit as FMI writes it: "1" for none."""
    return unit.replace(" ", ".").replace("^", "") or "1"


def base_units(unit: str) -> dict[str, Any]:
    """Exponents of kg, m, s and rad in a unit like "kg.m/s"; ValueError for any other text."""
    exponents = dict[str, int]()
    above, _, below = unit.partition("/")
    for parts, sign in ((above, 1), (below, -1)):
        for part in filter(None, parts.split(".")):
            found = _FACTOR.fullmatch(part)
            if found is None:
                raise ValueError(unit)
            for name, power in _BASE[found[1]].items():
                exponents[name] = exponents.get(name, 0) + sign * power * int(found[2] or 1)
    return {name: power for name, power in exponents.items() if power}
