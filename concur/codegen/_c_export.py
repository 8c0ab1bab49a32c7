"""Export to C99: a folder that can be added to a controller project without changes.

The folder holds the code, a C program that replays states through it, a CMake file, a README and a
manifest. The same function and versions give the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import casadi as ca
import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from concur.codegen._c_text import c_text, real_type
from concur.codegen._exported import Exported, ReferenceVector, Signal
from concur.errors import ConcurError
from concur.files import writing

_TEMPLATES = Path(__file__).with_name("c")
_MARGIN = 10.0  # ratio of the tolerance in single precision to the largest estimated error
_ROUNDING, _TRIALS = 2.0**-23, 3  # distance of neighbours in single precision, relative


@dataclass(frozen=True)
class SingleError:
    """Estimated relative error of outputs in single precision, largest and median of some states.

    It is how far outputs in double precision move if each input moves to a neighbour in single
    precision.
    """

    largest: float
    usual: float
    states: int


@dataclass(frozen=True)
class CFolder:
    """Exported C.

    Parameters
    ----------
    name : str
        Name of the code, the prefix of all its public names.
    files : tuple of pathlib.Path
        The written files.
    states : int
        Number of states in its replay.
    error : SingleError or None
        Estimated error of single precision; None in double precision.
    """

    name: str
    files: tuple[Path, ...]
    states: int
    error: SingleError | None


def write_c(exported: Exported, directory: Path, precision: str = "double") -> CFolder:
    """Write a function in C99.

    Parameters
    ----------
    exported : Exported
        The function.
    directory : pathlib.Path
        Directory for the files.
    precision : str
        "double" or "single".

    Returns
    -------
    CFolder
        The files, with sizes and errors.

    Raises
    ------
    ConcurError
        If a law with torque limits or tables is exported in single precision, or writing fails.
    """
    real = real_type(precision)
    law = c_text(exported.function, precision)
    if precision == "single" and not exported.function.is_a("SXFunction"):
        raise ConcurError(
            f"export of `{exported.name}`, `precision`",
            expected="double precision, which torque limits and references with tables require",
            came='"single"',
            cure='Use precision="double", or limit the torques after the law and leave out the '
            "reference.",
        )
    vectors, tolerance, error = list(exported.vectors), exported.tolerance, None
    if precision == "single":
        vectors, error = _rounded(exported)
        tolerance = _MARGIN * error.largest
    facts = {**exported.facts, "source": _digest(law.text)}
    given = {
        "name": exported.name,
        "upper": exported.name.upper(),
        "title": exported.title,
        "inputs": exported.inputs,
        "outputs": exported.outputs,
        "codes": exported.codes,
        "largest_code": max(code.number for code in exported.codes),
        "preset_momentum": any(signal.name == "momentum" for signal in exported.inputs),
        "has_solver": law.further > 1,
        "timed": any(signal.name == "t" for signal in exported.inputs),
        "kept": exported.kept,
        "state": exported.state,
        "law": law,
        "real": real,
        "f": "f" if precision == "single" else "",
        "precision": precision,
        "vectors": vectors,
        "tolerance": tolerance,
        "error": error,
        "facts": facts,
        "memory": _memory(law, exported, 8 if precision == "double" else 4),
        "n_in": sum(signal.size for signal in exported.inputs),
        "n_out": sum(signal.size for signal in exported.outputs),
    }
    environment = _environment(precision)
    texts = {
        f"{exported.name}.h": "header.h.j2",
        f"{exported.name}.c": "source.c.j2",
        "replay.c": "replay.c.j2",
        "CMakeLists.txt": "CMakeLists.txt.j2",
        "README.md": "README.md.j2",
    }
    written = {
        name: environment.get_template(template).render(given) for name, template in texts.items()
    }
    written["manifest.json"] = json.dumps(_manifest(exported, given, written), indent=2) + "\n"
    files = []
    with writing(directory):
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in written.items():
            files.append(directory / name)
            files[-1].write_bytes(text.encode("ascii"))
    return CFolder(exported.name, tuple(files), len(vectors), error)


def _rounded(exported: Exported) -> tuple[list[ReferenceVector], SingleError]:
    """States whose code does not depend on rounding, and the error of their outputs."""
    function, rng = exported.function, np.random.default_rng(0)
    ends = np.cumsum([function.numel_in(i) for i in range(function.n_in())])[:-1]
    size = sum(signal.size for signal in exported.outputs)
    numbers = {code.name: code.number for code in exported.codes}
    checked = [numbers[name] for name in ("BAD_INPUT", "TOO_FAST")]  # before the function
    kept, errors = [], []
    for vector in exported.vectors:
        given = np.pad(vector.inputs, (0, exported.kept))
        rows = []
        for _ in range(0 if vector.code in checked else _TRIALS):
            moved = given * (1.0 + _ROUNDING * rng.choice((-1.0, 1.0), given.size))
            found = function.call([ca.DM(part) for part in np.split(moved, ends)])
            rows.append(np.concatenate([np.array(part).ravel() for part in found]))
        if all((row[size] != 0) == (vector.code != 0) for row in rows):
            kept.append(vector)
            if vector.code == 0:
                largest = max(np.abs(row[:size] - vector.outputs).max() for row in rows)
                errors.append(largest / max(np.abs(vector.outputs).max(), 1.0))
    if not errors:
        raise ConcurError(
            f"export of `{exported.name}`, `precision`",
            expected="a law with torques in single precision",
            came='"single", in which no state gives torques',
            cure='Use precision="double".',
        )
    return kept, SingleError(float(max(errors)), float(np.median(errors)), len(errors))


def _memory(law: Any, exported: Exported, size: int) -> dict[str, int]:
    """Bytes of the context for pointers of four bytes, without padding."""
    results = sum(signal.size for signal in exported.outputs) + 1 + 2 * exported.kept
    numbers = law.numbers + law.further + results
    return {"context": 4 * (law.arguments + law.results + law.integers) + size * numbers}


def _manifest(exported: Exported, given: dict[str, Any], written: dict[str, str]) -> dict[str, Any]:
    error = given["error"]
    return {
        "name": exported.name,
        "title": exported.title,
        "target": "c",
        "precision": given["precision"],
        **given["facts"],
        "inputs": [_signal(signal) for signal in exported.inputs],
        "outputs": [_signal(signal) for signal in exported.outputs],
        **({} if exported.state is None else {"state": _signal(exported.state)}),
        "codes": {code.name: code.number for code in exported.codes},
        "states": len(given["vectors"]),
        "tolerance": given["tolerance"],
        "error": error and {name: getattr(error, name) for name in error.__dataclass_fields__},
        "context_bytes": given["memory"]["context"],
        "files": {name: _digest(text) for name, text in sorted(written.items())},
    }


def _signal(signal: Signal) -> dict[str, Any]:
    finite = [value if math.isfinite(value) else None for value in signal.largest]
    bounded = {"largest": finite} if finite else {}
    return {
        "name": signal.name,
        "meaning": signal.meaning,
        "size": signal.size,
        "entries": [{"name": entry.name, "unit": entry.unit or "1"} for entry in signal.entries],
        **bounded,
    }


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _environment(precision: str) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES, encoding="utf-8"),
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
    )
    suffix = "f" if precision == "single" else ""
    largest = "FLT_MAX" if precision == "single" else "DBL_MAX"

    def number(value: float) -> str:
        return largest if math.isinf(value) else f"{float(value)!r}{suffix}"

    environment.filters["number"] = number
    environment.filters["exact"] = _exact
    environment.globals["number"] = number
    return environment


def _exact(value: float) -> str:
    """A number as a C literal, exact to the last bit."""
    if math.isnan(value):
        return "(double)NAN"
    if math.isinf(value):
        return "(double)INFINITY" if value > 0 else "-(double)INFINITY"
    return repr(float(value))
