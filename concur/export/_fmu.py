"""Co-simulation units (FMUs) for other simulators: their model, and their archive in FMI 2 or 3."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import sys
import tempfile
import uuid
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import NamedTuple

import casadi as ca
from markupsafe import Markup

from concur.codegen import CompilationError, CompilerWarning, c_text, find_compiler
from concur.errors import UnknownNameError
from concur.export._signals import Entry, Signal
from concur.export._templates import templates
from concur.files import folder_named, writing

FMI_VERSIONS = ("3.0", "2.0")
"""Supported versions of FMI."""

ROLES = ("input", "parameter", "output")
"""Order of the variables."""

TOKEN = "@TOKEN@"
"""Placeholder of the hash of the contents."""

FLAGS = ("-std=c99", "-fPIC", "-shared", "-fvisibility=hidden", "-ffp-contract=off", "-w")
_LONG = 400_000  # characters of C above which compile time matters more than speed
_DATE = (1980, 1, 1, 0, 0, 0)  # fixed: the same contents give the same bytes

_MACHINES = {"x86_64": "x86_64", "amd64": "x86_64", "aarch64": "aarch64", "arm64": "aarch64"}
_SYSTEMS = {"linux": ("linux", ".so"), "darwin": ("darwin", ".dylib"), "win32": ("windows", ".dll")}
_OLD_NAMES = {
    "x86_64-linux": "linux64",
    "x86_64-darwin": "darwin64",
    "x86_64-windows": "win64",
}

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

    @property
    def functions(self) -> dict[str, ca.Function]:
        """The functions that exist, by purpose."""
        named = {"outputs": self.outputs, "initial": self.initial, "move": self.move}
        return {name: function for name, function in named.items() if function is not None}


class _Variable(NamedTuple):
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
    given = {
        "model": model,
        "version": version,
        "token": TOKEN,
        "variables": variables,
        "units": {name: base_units(name) for name in sorted(units - {"1"})},
        # What the outputs depend on: in operation, and at the start.
        "dependencies": ([], parameters) if model.state else (inputs, inputs),
        "sources": sorted(["fmi.c", *(f"{name}.c" for name in texts)]),
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
        **({"sources/buildDescription.xml": "build.xml.j2"} if version == "3.0" else {}),
    }
    written = {path: environment.get_template(name).render(given) for path, name in files.items()}
    written["sources/fmi.c"] = Path(__file__).with_name("fmu").joinpath("fmi.c").read_text("utf-8")
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


def base_units(unit: str) -> dict[str, int]:
    """Exponents of kg, m, s and rad in a unit like "kg.m/s"; empty for a unit of other ones."""
    exponents = dict[str, int]()
    above, _, below = unit.partition("/")
    for parts, sign in ((above, 1), (below, -1)):
        for part in filter(None, parts.split(".")):
            found = _FACTOR.fullmatch(part)
            if found is None:
                return {}
            for name, power in _BASE[found[1]].items():
                exponents[name] = exponents.get(name, 0) + sign * power * int(found[2] or 1)
    return {name: power for name, power in exponents.items() if power}


def write_fmu(
    model: FmuModel, directory: str | PathLike[str], fmi: str = "3.0", binary: bool = True
) -> Path:
    """Write a functional mock-up unit (FMU) for co-simulation.

    It always contains C sources, and a binary for this machine if a compiler is found.

    Parameters
    ----------
    model : FmuModel
        Model of the FMU.
    directory : str or os.PathLike
        Folder of the archive; created if it does not exist.
    fmi : str
        Version of FMI, "3.0" or "2.0".
    binary : bool
        Whether to compile it for this machine.

    Returns
    -------
    pathlib.Path
        The archive, `<name>.fmu`.

    Raises
    ------
    UnknownNameError
        If the version is not supported.
    ConcurError
        If the archive cannot be written.

    Warns
    -----
    CompilerWarning
        If the archive has no binary because the compilation failed.
    """
    if fmi not in FMI_VERSIONS:
        raise UnknownNameError(
            f"unit `{model.name}`, `fmi`",
            expected=" or ".join(f'"{version}"' for version in FMI_VERSIONS),
            came=repr(fmi),
            cure='Omit it for 3.0, or pass "2.0" for tools that read 2.0 only.',
        )
    target = folder_named(directory, f"unit `{model.name}`")
    texts = fmu_files(model, fmi)
    digest = hashlib.sha256()
    for name in sorted(texts):
        digest.update(f"{name}\0{texts[name]}\0".encode())
    token = f"{{{uuid.UUID(bytes=digest.digest()[:16])}}}"
    contents = {name: text.replace(TOKEN, token).encode() for name, text in texts.items()}
    with writing(target):  # before the compilation, which takes long
        target.mkdir(parents=True, exist_ok=True)
    if binary:
        contents |= _binary(model, fmi, contents)
    path = target / f"{model.identifier}.fmu"
    with writing(target), zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(contents):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3
            entry.external_attr = (0o755 if name.startswith("binaries/") else 0o644) << 16
            archive.writestr(entry, contents[name])
    return path


def _binary(model: FmuModel, version: str, contents: Mapping[str, bytes]) -> dict[str, bytes]:
    """The library for this machine, by its path in the archive; empty without a compiler."""
    machine = _MACHINES.get(platform.machine().lower())
    system, suffix = _SYSTEMS.get(sys.platform, (None, None))
    folder: str | None = f"{machine}-{system}"
    if version == "2.0":
        folder = _OLD_NAMES.get(str(folder))
    compiler, library = find_compiler(), f"{model.identifier}{suffix}"
    if machine is None or system is None or folder is None:
        reason = f"FMI {version} has no name for this machine, {platform.machine()} {sys.platform}"
    elif compiler is None:
        reason = "no C compiler was found"
    else:
        sources = {
            Path(name).name: content
            for name, content in contents.items()
            if name.endswith((".c", ".h"))
        }
        level = "-O2" if sum(map(len, sources.values())) < _LONG else "-O1"
        with tempfile.TemporaryDirectory() as scratch:
            for name, content in sources.items():
                Path(scratch, name).write_bytes(content)
            units = sorted(name for name in sources if name.endswith(".c"))
            try:
                compiler.run([level, *FLAGS, *units, "-lm", "-o", library], Path(scratch))
                return {f"binaries/{folder}/{library}": Path(scratch, library).read_bytes()}
            except CompilationError as error:
                reason = f"`{' '.join(compiler.command)}` failed: {error}"
    warnings.warn(
        CompilerWarning(
            f"{model.identifier}.fmu holds sources only: {reason}. Use it with a tool that "
            "compiles FMUs from their sources, or write it on a machine with gcc or clang."
        ),
        stacklevel=3,
    )
    return {}
